"""One execution of a command: how its end is told, and that nothing of it is left."""

import os
import sys
import time

import pytest

from carbonlens.errors import MeasurementError
from carbonlens.instrument.execution import execute, last_line


@pytest.fixture
def go(tmp_path):
    log = tmp_path / "log"
    log.touch()

    def run(*argv, **options):
        execute(argv, folder=str(tmp_path), environ=dict(os.environ), log=log, **options)
        return log.read_text()

    return run


def python(code):
    return sys.executable, "-c", code


def test_what_it_prints_is_kept_and_not_shown(go, capfd):
    assert go(*python("import sys; print('out'); print('err', file=sys.stderr)")).split() in (
        ["out", "err"],
        ["err", "out"],
    )
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("import sys; print('why'); sys.exit(3)", "ended with exit code 3: why"),
        ("import os, signal; os.kill(os.getpid(), signal.SIGKILL)", "was ended by SIGKILL"),
        ("raise ValueError('nine')", "ValueError: nine"),
    ],
)
def test_a_failure_is_told_with_its_last_line(go, code, said):
    with pytest.raises(MeasurementError, match=said):
        go(*python(code))


def test_a_command_that_cannot_start_is_told_as_a_shell_tells_it(go, tmp_path):
    with pytest.raises(MeasurementError, match="127"):
        go("no-such-program")
    (tmp_path / "plain").write_text("text")
    with pytest.raises(MeasurementError, match="126"):
        go(str(tmp_path / "plain"))
    with pytest.raises(MeasurementError, match="cannot be started"):
        go("a\0b")


def test_one_that_takes_too_long_is_ended_with_all_it_started(go, tmp_path):
    child = "import subprocess, sys; subprocess.run([sys.executable, '-c', 'import time; time.sleep(60)'])"
    code = f"import os, pathlib; pathlib.Path('pid').write_text(str(os.getpid())); {child}"
    began = time.monotonic()
    with pytest.raises(MeasurementError, match="longer than"):
        go(*python(code), timeout_s=2)
    assert time.monotonic() - began < 30
    group = int((tmp_path / "pid").read_text())
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        try:
            os.killpg(group, 0)
        except ProcessLookupError:
            return
        time.sleep(0.05)
    pytest.fail("a process of the group is left")


def test_the_last_line_is_that_of_this_execution(tmp_path):
    log = tmp_path / "log"
    log.write_text("earlier\n")
    start = log.stat().st_size
    assert last_line(log, start) is None
    log.write_text("earlier\nnow\n\n")
    assert last_line(log, start) == "now"
    assert last_line(tmp_path / "none") is None
