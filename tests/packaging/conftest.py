"""A wheel built once, and venvs outside the repository to install it in."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[2]
ENVIRONMENT = {
    **{k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "CARBONLENS"))},
    "PIP_DISABLE_PIP_VERSION_CHECK": "1",
}


def run(*command: object, cwd: Path, **more: object) -> subprocess.CompletedProcess[str]:
    """Run a command that must succeed; its output is shown when it does not."""
    done = subprocess.run(
        [str(c) for c in command],
        cwd=cwd,
        env=ENVIRONMENT,
        capture_output=True,
        text=True,
        check=False,
        **more,
    )
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the wheel from the working tree."""
    folder = tmp_path_factory.mktemp("wheel")
    run(sys.executable, "-m", "build", "--wheel", "--outdir", folder, REPOSITORY, cwd=folder)
    (built,) = folder.glob("*.whl")
    return built


@pytest.fixture
def new_venv(tmp_path: Path):
    """Return a function that makes a venv with the given requirements and returns its bin folder.

    Not compiled, each module is when it is first imported, and no other.
    """

    def make(*requirements: str, compiled: bool = True) -> Path:
        # Ours installs from outside: a pip in each venv takes longer than the packages do.
        run(sys.executable, "-m", "venv", "--without-pip", tmp_path / "venv", cwd=tmp_path)
        bin_ = tmp_path / "venv" / "bin"
        constraints = REPOSITORY / "constraints.txt"
        pins = tmp_path / "constraints.txt"
        # A test may ask for another numpy than the one the project pins.
        named = {re.split(r"[<>=\[]", r)[0].strip().lower() for r in requirements}
        lines = constraints.read_text("utf-8").splitlines()
        pins.write_text("\n".join(li for li in lines if li.split("==")[0].lower() not in named))
        pip = (sys.executable, "-m", "pip", "--python", bin_ / "python")
        more = () if compiled else ("--no-compile",)
        run(*pip, "install", "-q", *more, "-c", pins, *requirements, cwd=tmp_path)
        return bin_

    return make
