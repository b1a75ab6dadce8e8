"""Running Python programs as users do: fresh processes with a home and a state folder of their own."""

import os
import subprocess
import sys
import time
from pathlib import Path

from carbonlens.ledger.store import Ledger

BURN = "import time\nend = time.process_time() + {}\nwhile time.process_time() < end: pass\n"


def clean_environment(folder: Path, **more: str) -> dict[str, str]:
    """Return an environment in which nothing of the caller's own carbonlens is left."""
    keep = {k: v for k, v in os.environ.items() if not k.startswith(("CARBONLENS", "XDG", "SLURM"))}
    return {**keep, "HOME": str(folder / "home"), "XDG_STATE_HOME": str(folder / "state"), **more}


def state_folder(folder: Path) -> Path:
    """Return where a program run with ``clean_environment`` keeps its state."""
    return folder / "state" / "carbonlens"


def python(code: str, folder: Path, *arguments: str, **more: str) -> subprocess.CompletedProcess[str]:
    """Run a program to its end."""
    return subprocess.run(
        [sys.executable, "-c", code, *arguments],
        cwd=folder,
        env=clean_environment(folder, **more),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def start_python(code: str, folder: Path, *arguments: str, **more: str) -> subprocess.Popen[str]:
    """Start a program and wait for the line it prints when it is under way."""
    process = subprocess.Popen(
        [sys.executable, "-c", code, *arguments],
        cwd=folder,
        env=clean_environment(folder, **more),
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline()
    return process


def runs(ledger: Path):
    """Return all records of a ledger, oldest first."""
    view = Ledger(ledger).view()
    assert not view.findings
    return view.runs


def files_holding(folder: Path, secret: str) -> list[Path]:
    """Return the files below a folder whose content or name holds a text."""
    found = [f for f in folder.rglob("*") if secret in f.name]
    return found + [f for f in folder.rglob("*") if f.is_file() and secret.encode() in f.read_bytes()]


def burn(seconds: float) -> None:
    """Use CPU time of this process."""
    end = time.process_time() + seconds
    while time.process_time() < end:
        pass
