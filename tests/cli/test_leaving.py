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


def ended(seconds, code):
    text = END.format(seconds=seconds, code=code)
    command = [sys.executable, "-c", text]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


@pytest.mark.parametrize(("code", "wanted"), [(7, 7), (0, 0), (None, 0), (143, 143)])
def test_a_thread_that_was_given_up_on_takes_no_exit_code(code, wanted):
    done = ended(600, code)
    assert (done.returncode, done.stdout) == (wanted, "out\nexit handler\n")
    # The interpreter's own end, under which such a thread may crash, is not begun.
    assert done.stderr == ""


def test_one_that_came_to_its_end_after_all_changes_nothing():
    done = ended(0, 3)
    assert (done.returncode, done.stdout) == (3, "out\nexit handler\n")
    assert done.stderr == "the interpreter ended"


TOLD = """
import atexit, sys
class Told:
    def __del__(self, write=sys.stderr.write):
        write("the interpreter ended\\n")
sys.told = Told()
atexit.register(lambda: sys.stderr.write("exit handler\\n"))
{more}
"""


@pytest.mark.parametrize(
    ("words", "more", "usual"),
    [
        (["run", "--", "sh", "-c", "exit 7"], "", False),
        (["run", "--", "sh", "-c", "exit 7"], "sys.setprofile(lambda *_: None)", True),
        (["--help"], "", False),
        (["runs", "--ledger", "none"], "", True),
    ],
)
def test_the_program_ends_at_once_where_nothing_else_has_a_part_in_it(tmp_path, words, more, usual):
    (tmp_path / "sitecustomize.py").write_text(TOLD.format(more=more))
    environ = {
        "PATH": os.environ["PATH"],
        "HOME": str(tmp_path),
        "PYTHONPATH": str(tmp_path),
        "CARBONLENS_LEDGER": str(tmp_path / "ledger"),
    }
    command = [sys.executable, "-m", "carbonlens.cli.main", *words]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, env=environ, check=False)
    assert done.stderr.count("exit handler") == 1
    assert ("the interpreter ended" in done.stderr) is usual
    if words[0] == "run":
        assert done.returncode == 7
        assert "saved run" in done.stderr
    if words[0] == "--help":
        assert "Commands:" in done.stdout
