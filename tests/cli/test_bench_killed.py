"""A bench that is killed in any way leaves nothing running and nothing in the folder for scratch files."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

SPIN = """
import os, pathlib, sys, time
pathlib.Path("pid-" + sys.argv[1]).write_text(str(os.getpid()))
if sys.argv[1] == "apart" and os.fork() == 0:
    os.setsid()
    pathlib.Path("pid-inner").write_text(str(os.getpid()))
if sys.argv[1] == "stubborn":
    import signal
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
time.sleep(120)
"""
ENDING = [signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGKILL]


@pytest.fixture
def killed(shell, tmp_path):
    """Start a bench, kill it when its command works, and return how it ended."""
    (tmp_path / "spin.py").write_text(SPIN)
    (tmp_path / "work.py").write_text("import time\ndef call():\n    time.sleep(120)\n")
    (tmp_path / "tmp").mkdir()

    def kill(number, *arguments, until):
        command = [sys.executable, "-m", "carbonlens.cli.main", "bench", *arguments]
        env = {**shell.env, "TMPDIR": str(tmp_path / "tmp")}
        bench = subprocess.Popen(
            command, cwd=tmp_path, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
        )
        wait_for(lambda: all((tmp_path / f).exists() and (tmp_path / f).read_text() for f in until))
        os.kill(bench.pid, number)
        said = bench.communicate(timeout=60)[0]
        assert bench.returncode == -number, said
        for file in until:
            pid = int((tmp_path / file).read_text())
            wait_for(lambda pid=pid: is_gone(pid))
        wait_for(lambda: not list((tmp_path / "tmp").iterdir()))

    return kill


def wait_for(done, within_s=60.0):
    deadline = time.monotonic() + within_s
    while not done():
        assert time.monotonic() < deadline, "it did not come to it"
        time.sleep(0.05)


def is_gone(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] in "ZX"
    except OSError:
        return True


@pytest.mark.parametrize("number", ENDING, ids=lambda n: n.name)
def test_a_command_ends_with_the_bench(killed, number):
    line = f"{sys.executable} spin.py plain"
    killed(number, "--baseline", line, "--candidate", line, "--units", "1", until=["pid-plain"])


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL], ids=lambda n: n.name)
@pytest.mark.parametrize(
    ("how", "files"), [("apart", ["pid-apart", "pid-inner"]), ("stubborn", ["pid-stubborn"])]
)
def test_so_does_one_that_left_its_group_or_ignores_what_it_is_sent(killed, number, how, files):
    line = f"{sys.executable} spin.py {how}"
    killed(number, "--baseline", line, "--candidate", line, "--units", "1", until=files)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL], ids=lambda n: n.name)
@pytest.mark.parametrize("role", ["prepare", "evaluate"])
def test_so_does_an_effort_or_an_evaluation(killed, tmp_path, number, role):
    (tmp_path / "quick.py").write_text("def call():\n    pass\n")
    (tmp_path / "b.toml").write_text(
        '[bench]\nname = "s"\nunit = "call"\n[[variant]]\nname = "a"\ncallable = "quick:call"\n'
        f'{role} = "{sys.executable} spin.py {role}"\n'
        '[[variant]]\nname = "b"\ncallable = "quick:call"\n'
    )
    killed(number, "b.toml", until=[f"pid-{role}"])


def test_one_with_an_emptied_environment_ends_with_a_bench_that_can_still_act(killed):
    line = f"env -i {sys.executable} spin.py bare"
    killed(signal.SIGTERM, "--baseline", line, "--candidate", line, "--units", "1", until=["pid-bare"])
