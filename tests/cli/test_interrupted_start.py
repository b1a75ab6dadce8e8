"""Ctrl-C while ``carbonlens`` is still being loaded: it dies by the signal, and prints no traceback."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from carbonlens.cli import IS_PROGRAM

STEP = 12
"""Each so many-th of the modules that a run loads is the one at which it is interrupted."""

HOOK = """
import os, signal, sys
wanted, seen = os.environ.get("INTERRUPT_AT"), []
def hook(event, arguments):
    if event != "import":
        return
    name = arguments[0]
    if name == "carbonlens.cli.light_start" and "READY" in os.environ:
        os.write(int(os.environ["READY"]), b".")
    if wanted is None:
        seen.append(name)
    elif name == wanted:
        os.kill(os.getpid(), signal.SIGINT)
sys.addaudithook(hook)
if wanted is None:
    import atexit
    atexit.register(lambda: print(*seen, sep="\\n", file=open(os.environ["SEEN"], "w")))
"""


@pytest.fixture
def environ(tmp_path):
    """Return the environment of a user who keeps everything in the test's folder."""
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "sitecustomize.py").write_text(HOOK)
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("CARBONLENS", "XDG"))}
    return {
        **kept,
        "HOME": str(tmp_path),
        "XDG_STATE_HOME": str(tmp_path / "state"),
        "PYTHONPATH": str(tmp_path / "site"),
        "SEEN": str(tmp_path / "seen.txt"),
    }


def wrapped(folder, *command):
    """Return the words that measure a command."""
    return [
        sys.executable, "-m", "carbonlens.cli.main", "run", "--ledger", str(folder / "ledger"), "--", *command
    ]  # fmt: skip


def test_these_tests_are_not_the_program():
    assert IS_PROGRAM is False
    assert signal.getsignal(signal.SIGINT) is not signal.SIG_DFL


@pytest.mark.slow
def test_an_interrupt_at_any_module_ends_it_quietly(tmp_path, environ):
    subprocess.run(wrapped(tmp_path, "true"), env=environ, check=True, capture_output=True, timeout=60)
    loaded = Path(environ["SEEN"]).read_text().split()
    ours = loaded[loaded.index("carbonlens.cli.light_start") :]
    assert len(ours) > 80
    for name in dict.fromkeys(ours[::STEP]):
        done = subprocess.run(
            wrapped(tmp_path, "true"),
            env={**environ, "INTERRUPT_AT": name},
            capture_output=True,
            text=True,
            timeout=60,
        )
        assert "Traceback" not in done.stderr, (name, done.stderr)
        # While the command runs the interrupt is its own affair: ours goes on, and is at an end with it.
        assert done.returncode in (-signal.SIGINT, 0, 130), (name, done.returncode, done.stderr)
        if name.startswith("carbonlens.metering.s"):
            assert done.returncode == -signal.SIGINT, name


@pytest.mark.parametrize("how", ["module", "script"])
def test_an_interrupt_before_the_command_line_loads_ends_it_quietly(tmp_path, environ, how):
    words = wrapped(tmp_path, "true")
    if how == "script":
        words = [str(Path(sys.executable).with_name("carbonlens")), *words[3:]]
    done = subprocess.run(
        words,
        env={**environ, "INTERRUPT_AT": "carbonlens._version"},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert (done.returncode, done.stdout, done.stderr) == (-signal.SIGINT, "", "")


@pytest.mark.parametrize(
    "load",
    ["import carbonlens", "import carbonlens.errors", "from carbonlens.instrument.request import FIELDS"],
)
@pytest.mark.parametrize("called", ["carbonlens", "carbonlens/__main__.py", "main.py"])
def test_a_program_of_the_users_that_bears_the_name_is_interrupted_as_ever(tmp_path, environ, called, load):
    script = tmp_path / "theirs" / called
    script.parent.mkdir(parents=True)
    # Its own folder is searched first, and lends its name to nothing here.
    script.write_text(
        f"import sys\nsys.path[:] = [{str(Path.cwd())!r}, *sys.path[1:]]\n{load}\nimport os, signal\n"
        "try:\n    os.kill(os.getpid(), signal.SIGINT)\n    signal.pause()\n"
        "except KeyboardInterrupt:\n    print('in order')\n"
    )
    started = script.parent if called.endswith("__main__.py") else script
    done = subprocess.run(
        [sys.executable, str(started)], env=environ, capture_output=True, text=True, timeout=60, cwd="/"
    )
    assert (done.returncode, done.stdout) == (0, "in order\n"), done.stderr


@pytest.mark.parametrize("argv", ["[None]", "[3]", "[b'x']", "[]", "None"])
def test_the_package_loads_whatever_a_runner_made_of_its_arguments(argv):
    code = f"import sys; sys.argv = {argv}; sys.orig_argv = {argv}\nimport carbonlens; carbonlens.track"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("delay_s", [0.0, 0.02, 0.05, 0.08, 0.12, 0.2, 0.3])
def test_an_interrupt_after_a_while_ends_it_quietly(tmp_path, environ, delay_s):
    # From the program's first lines on: before them the interpreter is on its own.
    told, ready = os.pipe()
    started = subprocess.Popen(
        wrapped(tmp_path, "sleep", "30"),
        env={**environ, "READY": str(ready)},
        pass_fds=[ready],
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    os.close(ready)
    assert os.read(told, 1) == b"."
    os.close(told)
    time.sleep(delay_s)
    os.killpg(started.pid, signal.SIGINT)
    _, said = started.communicate(timeout=60)
    assert started.returncode == -signal.SIGINT, said
    assert "Traceback" not in said
    assert "carbonlens: " not in said or "saved run" in said


def test_the_commands_that_unwind_are_interrupted_as_ever(tmp_path, environ):
    code = (
        "import signal, sys\n"
        "sys.argv = ['carbonlens', 'runs']\n"
        "sys.orig_argv = ['python', 'carbonlens', 'runs']\n"
        "from carbonlens import cli\n"
        "assert cli.IS_PROGRAM and signal.getsignal(signal.SIGINT) is signal.SIG_DFL\n"
        "from carbonlens.cli import commands, main\n"
        "seen = []\n"
        "commands.built = lambda names: lambda: seen.append(signal.getsignal(signal.SIGINT))\n"
        "main._ended()\n"
        "print(seen == [signal.default_int_handler])\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], env=environ, capture_output=True, text=True, timeout=60
    )
    assert done.stdout == "True\n", done.stderr


@pytest.mark.parametrize(
    ("argv", "words", "is_program"),
    [
        (["/venv/bin/carbonlens", "run"], ["python", "/venv/bin/carbonlens", "run"], True),
        (["-m", "run"], ["python", "-X", "importtime", "-m", "carbonlens.cli.main", "run"], True),
        (["/x/carbonlens/cli/main.py"], ["python", "-m", "carbonlens.cli.main"], True),
        (["-m"], ["python", "-m", "pytest"], False),
        (["/x/main.py"], ["python", "/x/main.py"], False),
        (["-c"], ["python", "-c", "import carbonlens.cli", "-m", "carbonlens.cli.main"], False),
        (["/x/pytest"], ["python", "/x/pytest"], False),
        (["/b/carbonlens", "run"], ["python", "-IXdev", "-W", "error", "/b/carbonlens", "run"], True),
        (["/b/carbonlens"], ["python", "--check-hash-based-pycs", "always", "--", "/b/carbonlens"], True),
        (["-m", "run"], ["python", "-Im", "carbonlens.cli.main", "run"], True),
        (["-m", "run"], ["python", "-mcarbonlens.cli.main", "run"], True),
        # Runners that move sys.argv up and run the program within their own.
        (["/b/carbonlens", "run"], ["python", "/b/memray", "run", "/b/carbonlens", "run"], False),
        (["/b/carbonlens", "run"], ["python", "-m", "cProfile", "/b/carbonlens", "run"], False),
        (["/b/carbonlens", "run"], ["python", "-Xdev", "-c", "run()", "/b/carbonlens"], False),
        (["/x/main.py"], ["python", "-m", "pdb", "-m", "carbonlens.cli.main"], False),
        (["/b/carbonlens", "run"], ["python", "-", "/b/carbonlens", "run"], False),
        ([], [], False),
    ],
)
def test_the_program_is_told_from_others(monkeypatch, argv, words, is_program):
    from carbonlens import cli

    monkeypatch.setattr(sys, "argv", argv)
    monkeypatch.setattr(sys, "orig_argv", words)
    assert cli._is_program() is is_program


def test_the_end_at_once_does_what_was_registered_and_writes_all_out(tmp_path, environ):
    # A hook of the interpreter's own start writes what it saw at the very end.
    done = subprocess.run(
        wrapped(tmp_path, sys.executable, "-S", "-c", "print('x' * 100000)"),
        env=environ,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0
    assert len(done.stdout) == 100001
    assert "saved run" in done.stderr
    assert "carbonlens.cli.light_start" in Path(environ["SEEN"]).read_text()
    (record,) = (tmp_path / "ledger").rglob("*.json")
    assert json.loads(record.read_text())["status"] == "complete"
