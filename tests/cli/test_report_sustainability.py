"""``report sustainability`` as users call it, and what it refuses."""

import re
import shlex
from pathlib import Path

import pytest

from tests.app import company_case
from tests.cli.commands import Shell

PAGE = (Path(__file__).parents[2] / "docs" / "sustainability.md").read_text("utf-8")
((NAME, BLOCK),) = re.findall(r"<!-- example: (\w+) -->\n```\n(.*?)```", PAGE, re.DOTALL)


@pytest.mark.slow
def test_the_page_and_a_closed_quarter_is_no_draft(tmp_path):
    given = company_case.make(tmp_path / "c", begin="2026-09-20")
    shell = Shell(tmp_path)
    places = {
        "CARBONLENS_LEDGER": str(given["ledger"]),
        "CARBONLENS_INVENTORY": str(given["inventory"]),
        "CARBONLENS_FACTORS": str(given["factors"]),
    }
    command, *said = BLOCK.splitlines()
    done = shell(*shlex.split(command.removeprefix("$ carbonlens ")), **places)
    assert done.stdout.splitlines() == said
    asked = ("report", "sustainability", "--period", "2026Q3", "--format", "md,json", "-o", tmp_path / "out")
    text = (tmp_path / "out" / "sustainability-2026Q3.md").read_text("utf-8")
    assert "DRAFT: 2026Q3 is not closed" in text
    shell("ledger", "close", "2026Q3", "--by", "auditor", **places)
    shell(*asked, **places)
    text = (tmp_path / "out" / "sustainability-2026Q3.md").read_text("utf-8")
    page = text.split("## ")[1]
    for other in ("2026Q2", "2025Q3"):
        # Heads of the other quarters' columns say that those are open.
        assert f"{other} DRAFT" in page
        page = page.replace(f"{other} DRAFT", other)
    assert "DRAFT" not in page
    assert "is closed: its records are those of the close" in text
    assert "auditor" in text


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("sustainability", "--study", "s"), "takes no --study"),
        (("business-case", "--period", "2026Q3"), "takes no --period"),
        (("engineering", "--factors", "f.csv"), "takes no --factors"),
        (("engineering", "--without-records"), "takes no --without-records"),
        (("engineering", "--with-host-names"), "takes no --with-host-names"),
        (("sustainability", "--format", "docx"), "no such format"),
    ],
)
def test_options_of_another_report_are_refused(arguments, words, tmp_path):
    done = Shell(tmp_path)("report", *arguments, "-o", tmp_path / "out", code=2)
    assert words in done.stderr


@pytest.mark.parametrize("declared", [True, False])
def test_templates_that_cannot_be_used_are_refused_before_any_work(declared, tmp_path):
    text = '[tool.carbonlens]\ntemplates = "nowhere"\n' if declared else ""
    (tmp_path / "pyproject.toml").write_text(text, "utf-8")
    more = () if declared else ("--templates", "nowhere")
    done = Shell(tmp_path)("report", "sustainability", *more, "-o", tmp_path / "out", code=2)
    assert "nowhere: is no folder of templates" in done.stderr
    assert not (tmp_path / "out").exists()
