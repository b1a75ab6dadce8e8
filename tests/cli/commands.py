"""Running the command line as users do: a subprocess, outside the repository."""

import json
import os
import subprocess
import sys
from pathlib import Path


class Shell:
    """Runs ``carbonlens`` with its own home, state and working folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        keep = {k: v for k, v in os.environ.items() if not k.startswith(("CARBONLENS", "XDG"))}
        self.env = {
            **keep,
            "HOME": str(folder / "home"),
            "XDG_STATE_HOME": str(folder / "state"),
            "COLUMNS": "80",
            "NO_COLOR": "1",
        }

    def __call__(self, *arguments: object, code: int = 0, **env: str) -> subprocess.CompletedProcess[str]:
        """Run a command and check its exit code."""
        command = [sys.executable, "-m", "carbonlens.cli.main", *map(str, arguments)]
        done = subprocess.run(
            command, cwd=self.folder, env={**self.env, **env}, capture_output=True, text=True, timeout=300
        )
        assert done.returncode == code, f"{arguments}: {done.returncode}\n{done.stdout}\n{done.stderr}"
        return done

    def json(self, *arguments: object, code: int = 0, **env: str):
        """Run a command with ``--json`` and return what it printed."""
        return json.loads(self(*arguments, "--json", code=code, **env).stdout)
