"""The end of the command line: the exit code stands, whatever threads were given up on."""

import os
import subprocess
import sys

import pytest

END = """
import atexit, sys, time
from carbonlens.cli.main import _leave
from carbonlens.metering.threads import give_up_on, start_beside

class Told:
    def __del__(self, write=sys.stderr.write):
        write("the interpreter ended")

told = Told()
atexit.register(lambda: print("exit handler"))
thread = start_beside(lambda: time.sleep({seconds}), "held")
give_up_on(thread)
print("out")
if not {seconds}:
    thread.join()
_leave({code})
"""


def ended(folder, seconds, code):
    """Run that as a command of the program that loads more than ``run``."""
    script = folder / "carbonlens"
    script.write_text(END.format(seconds=seconds, code=code))
    command = [sys.executable, str(script), "runs"]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


@pytest.mark.parametrize(("code", "wanted"), [(7, 7), (0, 0), (None, 0), (143, 143)])
def test_a_thread_that_was_given_up_on_takes_no_exit_code(tmp_path, code, wanted):
    done = ended(tmp_path, 600, code)
    assert (done.returncode, done.stdout) == (wanted, "out\nexit handler\n")
    # The interpreter's own end, under which such a thread may crash, is not begun.
    assert done.stderr == ""


def test_one_that_came_to_its_end_after_all_changes_nothing(tmp_path):
    done = ended(tmp_path, 0, 3)
    assert (done.returncode, done.stdout) == (3, "out\nexit handler\n")
    assert done.stderr == "the interpreter ended"


HOST = """
import runpy, sys, time
sys.argv = sys.argv[1:]
{more}
try:
    runpy.run_path(sys.argv[0], run_name="__main__")
except SystemExit as end:
    print("caught", end.code)
finally:
    print("results saved")
"""

SCRIPT = "import sys\nfrom carbonlens.cli.main import main\nsys.exit(main())\n"


@pytest.mark.parametrize(
    "more",
    [
        "",
        # A thread of ours that nobody waits for any longer is no reason to end somebody else's program.
        "from carbonlens.metering.threads import give_up_on, start_beside\n"
        "give_up_on(start_beside(lambda: time.sleep(600), 'held'))",
    ],
    ids=["plain", "given up"],
)
@pytest.mark.parametrize("options", [[], ["-X", "utf8", "-Walways"]], ids=["no options", "options"])
def test_a_program_that_runs_ours_within_its_own_comes_to_its_own_end(tmp_path, environ, more, options):
    host, script = tmp_path / "profiler", tmp_path / "carbonlens"
    host.write_text(HOST.format(more=more))
    script.write_text(SCRIPT)
    words = [*options, str(host), str(script), "run", "--", "sh", "-c", "exit 7"]
    done = ran(words, environ)
    assert done.stdout == "caught 7\nresults saved\n", done.stderr
    assert done.returncode == 0


TOLD = """
import atexit, sys
class Told:
    def __del__(self, write=sys.stderr.write):
        write("the interpreter ended\\n")
sys.told = Told()
atexit.register(lambda: sys.stderr.write("exit handler\\n"))
{more}
"""


@pytest.fixture
def environ(tmp_path):
    """Return the environment of a user who keeps everything in the test's folder."""
    return {
        "PATH": os.environ["PATH"],
        "HOME": str(tmp_path),
        "PYTHONPATH": str(tmp_path),
        "CARBONLENS_LEDGER": str(tmp_path / "ledger"),
    }


def ran(words, environ):
    command = [sys.executable, *words]
    return subprocess.run(
        command, input="", capture_output=True, text=True, timeout=60, env=environ, check=False
    )


MONITORING = """
import types
sys.monitoring = types.SimpleNamespace(get_tool=lambda k: {tool} if k == 2 else None)
"""
"""Stands for the module that Python has from 3.12 on."""


@pytest.mark.parametrize(
    ("words", "more", "usual"),
    [
        (["run", "--", "sh", "-c", "exit 7"], "", False),
        (["run", "--", "sh", "-c", "exit 7"], "sys.setprofile(lambda *_: None)", True),
        (["run", "--", "sh", "-c", "exit 7"], MONITORING.format(tool="'cProfile'"), True),
        (["run", "--", "sh", "-c", "exit 7"], MONITORING.format(tool="None"), False),
        (["--help"], "", False),
        (["runs", "--ledger", "none"], "", True),
    ],
)
def test_the_program_ends_at_once_where_nothing_else_has_a_part_in_it(tmp_path, environ, words, more, usual):
    (tmp_path / "sitecustomize.py").write_text(TOLD.format(more=more))
    done = ran(["-m", "carbonlens.cli.main", *words], environ)
    assert done.stderr.count("exit handler") == 1
    assert ("the interpreter ended" in done.stderr) is usual
    if words[0] == "run":
        assert done.returncode == 7
        assert "saved run" in done.stderr
    if words[0] == "--help":
        assert "Commands:" in done.stdout


@pytest.mark.parametrize(
    ("options", "variables"),
    [(["-i"], {}), ([], {"PYTHONINSPECT": "1"}), ([], {"MADE_SO": "1"})],
    ids=["-i", "PYTHONINSPECT", "set by a module"],
)
def test_a_prompt_that_was_asked_for_comes(tmp_path, environ, options, variables):
    more = "import os\nif 'MADE_SO' in os.environ: os.environ['PYTHONINSPECT'] = '1'"
    (tmp_path / "sitecustomize.py").write_text(TOLD.format(more=more))
    words = [*options, "-m", "carbonlens.cli.main", "run", "--", "sh", "-c", "exit 7"]
    done = ran(words, {**environ, **variables})
    assert "saved run" in done.stderr
    # The interpreter goes on to its prompt, or to its usual end where nobody could type at one.
    assert "the interpreter ended" in done.stderr
    assert (">>>" in done.stderr) is bool(options)


def test_the_installed_script_ends_at_once(tmp_path, environ):
    (tmp_path / "sitecustomize.py").write_text(TOLD.format(more=""))
    (tmp_path / "carbonlens").write_text(SCRIPT)
    done = ran(["-X", "utf8", str(tmp_path / "carbonlens"), "run", "--", "sh", "-c", "exit 7"], environ)
    assert done.returncode == 7
    assert "exit handler" in done.stderr
    assert "the interpreter ended" not in done.stderr
