"""A wheel installed in an empty venv outside the repository renders a report."""

import json
import subprocess
import zipfile

import pytest

from tests.packaging.conftest import ENVIRONMENT

pytestmark = pytest.mark.slow

TABLE = "run_id,study,step,repeat,energy_j,units,unit,boundary,energy_grade\n" + "".join(
    f"{step}{i},s,{step},{i},{energy * (1 + 0.01 * (i % 3))},100,image,it,B\n"
    for i in range(1, 7)
    for step, energy in (("base", 50.0), ("fast", 20.0))
)


def test_the_wheel_holds_templates_fonts_and_fixtures(wheel):
    names = zipfile.ZipFile(wheel).namelist()
    assert any(n.startswith("carbonlens/_report_templates/") and n.endswith(".j2") for n in names)
    assert any(n.startswith("carbonlens/_report_templates/fonts/") and n.endswith(".ttf") for n in names)
    assert "carbonlens/_fixtures/demo/assumptions.toml" in names
    assert not [n for n in names if n.startswith("tests/")]


def test_an_installed_wheel_imports_compares_and_reports(wheel, new_venv, tmp_path):
    bin_ = new_venv(f"carbonlens[analysis,report] @ {wheel.as_uri()}", compiled=False)
    (tmp_path / "runs.csv").write_text(TABLE)
    for command in (
        ["import", "runs.csv"],
        ["compare", "--json"],
        ["report", "business-case", "-o", "out"],
        ["report", "engineering", "-o", "out"],
    ):
        done = subprocess.run(
            [str(bin_ / "carbonlens"), *command],
            cwd=tmp_path,
            env=ENVIRONMENT,
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, f"{command}: {done.stderr}"
        if command[0] == "compare":
            step = json.loads(done.stdout)["steps"][0]
            assert (step["step"], step["verdict"]) == ("fast", "better")
    names = sorted(p.name for p in (tmp_path / "out").iterdir())
    assert names == ["business-case.html", "business-case.pdf", "engineering.html", "engineering.pdf"]
    assert (tmp_path / "out" / "business-case.pdf").read_bytes().startswith(b"%PDF-")
