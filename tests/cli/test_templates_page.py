"""The commands and code of docs/templates.md do what stands there."""

import re
import shlex
from pathlib import Path

import pytest

import carbonlens
from carbonlens.app.verify import verify
from carbonlens.domain.theme import Theme
from tests.app.test_verify import filled_ledger
from tests.cli.commands import Shell

PAGE = (Path(__file__).parents[2] / "docs" / "templates.md").read_text("utf-8")
BLOCKS = dict(re.findall(r"<!-- example: ([\w.]+) -->\n```\w*\n(.*?)```", PAGE, re.DOTALL))


@pytest.mark.slow
def test_the_page_is_true(tmp_path, monkeypatch):
    filled_ledger(tmp_path / ".carbonlens")
    shell = Shell(tmp_path)
    study = shell.json("runs")["runs"][0]["study"]
    for name in ("init", "use"):
        lines = BLOCKS[name].splitlines()
        command = lines[0].removeprefix("$ carbonlens ").replace("--study sort", f"--study {study}")
        assert shell(*shlex.split(command)).stdout.splitlines() == lines[1:]
    (template,) = re.findall(r"```jinja\n(.*?)```", PAGE, re.DOTALL)
    # Nothing was adopted in this study: it has no total.
    template = template.replace("total.reduction_energy", "baseline.share")
    (tmp_path / "own" / "business_case" / "page.html.j2").write_text(template)
    (tmp_path / "own" / "seal.png").write_bytes(_png())
    monkeypatch.chdir(tmp_path)
    (code,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    exec(code, {"out": tmp_path / "report", "own": "own"})  # noqa: S102  # the page's own code
    assert "Saved: " in (tmp_path / "report" / "report.html").read_text("utf-8")
    assert callable(carbonlens.report)
    report = tmp_path / "report" / "business-case.pdf"
    (tmp_path / "own" / "business_case" / "page.html.j2").unlink()
    assert set(verify(report).versions) == {"own_templates_sha256"}


def _png():
    from tests.render.test_user_templates import png

    return png()


def test_every_table_of_a_theme_stands_on_the_page():
    for name in Theme.__struct_fields__:
        assert f"`[{name}]`" in PAGE


def test_blocks_are_listed_and_a_folder_is_begun_once(tmp_path):
    shell = Shell(tmp_path)
    listed = shell("report", "--list-templates").stdout
    assert "business_case/page.html.j2" in listed
    assert "  tiles          The four headline figures with their intervals." in listed
    assert shell("report", "--init-template", "own").returncode == 0
    again = shell("report", "--init-template", "own", code=2)
    assert "there already" in again.stderr
