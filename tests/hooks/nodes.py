"""A node of a cluster as far as the hooks see it: a meter, a command, folders, SLURM's variables."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from tests.instrument.wrapper import kill_if_alive
from tests.metering.processes import BURN, clean_environment, runs

HOOKS = Path(__file__).parents[2] / "docs" / "hooks"
SLURM = HOOKS / "slurm"

METER = """
import time
while True:
    print(f"{time.monotonic_ns() // 1000},300", flush=True)
    time.sleep(0.05)
"""

METERED = """
[[external]]
name = "node"
command = ["{python}", "{program}"]
component = "{component}"
boundary = "{boundary}"
gain_95 = 0.01
period_s = 0.05
"""


class Node:
    """Runs the hooks in a folder of the test instead of ``/run`` and ``/var``."""

    def __init__(self, folder: Path, component: str | None = "wall", boundary: str = "it") -> None:
        self.folder = folder
        self.ledger = folder / "ledger"
        self.state = folder / "run"
        program = folder / "meter.py"
        program.write_text(METER)
        meter = METERED.format(python=sys.executable, program=program, component=component, boundary=boundary)
        self.meter = meter if component else ""
        (folder / "hook-sources.toml").write_text('leave_out = ["cpu_model", "ram_model"]\n' + self.meter)
        self.command = folder / "carbonlens"
        self.command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m carbonlens.cli.main "$@"\n')
        self.command.chmod(0o755)

    def environ(self, **slurm: str) -> dict[str, str]:
        return clean_environment(
            self.folder,
            CARBONLENS_HOOK_CONFIG=str(self.folder / "none.conf"),
            CARBONLENS_HOOK_COMMAND=str(self.command),
            CARBONLENS_HOOK_DIR=str(self.state),
            CARBONLENS_HOOK_LEDGER=str(self.ledger),
            CARBONLENS_HOOK_SOURCES=str(self.folder / "hook-sources.toml"),
            CARBONLENS_HOOK_STATE=str(self.folder / "site-state"),
            CARBONLENS_HOOKS=str(SLURM),
            # A busy machine takes its time; how long a hang is waited for has a test of its own.
            **{"CARBONLENS_HOOK_PATIENCE_S": "25", **slurm},
        )

    def hook(self, *command: str, job: str = "42", **slurm: str) -> subprocess.CompletedProcess[str]:
        """Run a hook to its end, which is always 0."""
        done = subprocess.run(
            [str(SLURM / command[0]), *command[1:]],
            cwd=self.folder,
            env={**self.environ(**slurm), "SLURM_JOB_ID": job},
            capture_output=True,
            text=True,
            timeout=60,
        )
        assert done.returncode == 0, done.stderr
        return done

    def start(self, job: str = "42", **slurm: str) -> None:
        assert self.hook("node-record", "start", job=job, **slurm).stderr == ""

    def stop(self, job: str = "42", **slurm: str) -> None:
        assert self.hook("node-record", "stop", job=job, **slurm).stderr == ""

    def task(self, rank: int, *options: str, seconds: float = 0.3, job: str = "42", **slurm: str):
        """Start a rank of a step as slurmd does: with what TaskProlog exports."""
        variables = {"SLURM_JOB_ID": job, "SLURM_PROCID": str(rank), "SLURM_LOCALID": str(rank), **slurm}
        told = self.hook("task_prolog.sh", **{**variables, "job": job}).stdout.splitlines()
        exported = dict(line.removeprefix("export ").split("=", 1) for line in told)
        environ = {**self.environ(**variables), **exported}
        work = [sys.executable, "-S", "-c", BURN.format(seconds)]
        return subprocess.Popen(
            [str(self.command), "run", "--ledger", str(self.ledger), *options, "--", *work],
            cwd=self.folder,
            env=environ,
            stderr=subprocess.PIPE,
            text=True,
        )

    def pid(self, name: str = "42") -> int:
        return int((self.state / f"{name}.pid").read_text().split()[0])

    def runs(self):
        return runs(self.ledger)

    def left(self) -> list[str]:
        """Return what the hooks left of windows."""
        found = self.state.iterdir() if self.state.is_dir() else ()
        return sorted(f.name for f in found if f.name != "parts")

    def end(self) -> None:
        """End what a test that failed left running."""
        for file in self.state.glob("*.pid"):
            kill_if_alive(int(file.read_text().split()[0]))
        for file in self.state.glob("*.run"):
            kill_if_alive(int(file.read_text().split()[1]))


def ended(*tasks: subprocess.Popen[str]) -> None:
    """Wait for tasks, which must have succeeded."""
    for task in tasks:
        _, said = task.communicate(timeout=60)
        assert task.returncode == 0, said


def killed(pid: int) -> None:
    """Kill a process and wait until it is gone."""
    os.kill(pid, signal.SIGKILL)
    end = time.monotonic() + 10
    while time.monotonic() < end and Path(f"/proc/{pid}/stat").exists():
        if Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z":
            return
        time.sleep(0.02)
