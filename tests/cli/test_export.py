"""``report``, ``verify`` and ``export`` as users call them, on a study's ledger."""

from __future__ import annotations

import json

import msgspec
import pytest
import yaml

from carbonlens.ledger.store import Ledger
from tests.app import sci_case
from tests.app.test_verify import filled_ledger
from tests.cli.commands import Shell

FACTOR = """
[place]
name = "Example place"

[grid.location]
id = "grid:example"
zone = "XX"
period = "2024"
value_kg_per_kwh = 0.35
u_relative = 0.05
source = "example"
example = true
"""
PUE = """
[facility]
pue = 1.0
source = "example"
"""


@pytest.fixture(scope="module")
def carbonlens(tmp_path_factory):
    folder = tmp_path_factory.mktemp("export")
    filled_ledger(folder / ".carbonlens")
    return Shell(folder)


def test_every_format_is_written_and_verify_takes_three(carbonlens):
    made = carbonlens("report", "engineering", "--format", "html,pdf,xlsx,md,json", "-o", "out")
    assert made.stdout.count("saved ") == 5
    for suffix in ("html", "pdf", "json"):
        told = carbonlens("verify", f"out/engineering.{suffix}")
        assert told.stdout.startswith("verified: ")
        assert "byte for byte the same file" in told.stdout
        assert max(len(line) for line in told.stdout.splitlines()) <= 80
    for suffix in ("xlsx", "md"):
        refused = carbonlens("verify", f"out/engineering.{suffix}", code=2)
        assert "verify the PDF, HTML or JSON" in refused.stderr


def test_a_forged_report_exits_4_and_names_the_figure(carbonlens):
    carbonlens("report", "business-case", "--format", "json", "-o", "forged")
    file = carbonlens.folder / "forged" / "business-case.json"
    text = file.read_text(encoding="utf-8")
    whole = carbonlens.json("verify", file)
    assert (whole["schema"], whole["holds"], whole["mismatches"]) == ("carbonlens/verify/1", True, [])
    file.write_text(text.replace('"printed_interval": "[', '"printed_interval": "[0', 1), encoding="utf-8")
    told = carbonlens("verify", file, code=4)
    assert told.stdout.startswith("NOT verified: 1 figure of ")
    shape = carbonlens.json("verify", file, code=4)
    assert [m["figure_id"] for m in shape["mismatches"]]
    assert shape["rebuilt"] == "different"


def test_verify_against_the_ledger_sees_what_was_changed_there(carbonlens):
    carbonlens("report", "business-case", "--format", "json", "-o", "kept")
    told = carbonlens("verify", "kept/business-case.json", "--ledger", ".carbonlens")
    assert "of the ledger" in told.stdout


def test_a_missing_report_is_a_plain_error(carbonlens):
    assert "cannot be read" in carbonlens("verify", "none.json", code=3).stderr


def test_a_model_card_in_grams(carbonlens):
    def card(assumptions):
        (carbonlens.folder / "assumptions.toml").write_text(assumptions)
        made = carbonlens(
            "export", "model-card", "--assumptions", "assumptions.toml", "--training-type", "fine-tuning"
        )
        return yaml.safe_load(made.stdout.split("---\n")[1])

    # Without a PUE it is a lower bound, which no card's one number may be.
    assert card(FACTOR) is None
    entry = card(FACTOR + PUE)["co2_eq_emissions"]
    assert entry["emissions"] > 0
    assert entry["training_type"] == "fine-tuning"


def test_forms_tables_comments_and_badges(carbonlens):
    form = carbonlens("export", "ai-act", "--flop", "1e18").stdout
    assert "1.00e+18 FLOP (stated)" in form
    assert carbonlens("export", "latex").stdout.count(r"\begin{tabular}") == 1
    assert carbonlens("export", "pr").stdout.startswith("<!-- carbonlens: ")
    assert carbonlens("export", "badge", "-o", "badge.svg").stdout == "saved badge.svg\n"
    assert (carbonlens.folder / "badge.svg").read_text(encoding="utf-8").startswith("<svg ")
    shape = carbonlens.json("export", "badge")
    assert (shape["schema"], shape["kind"]) == ("carbonlens/export/1", "badge")


def test_a_statement_of_software_carbon_intensity(tmp_path):
    sci_case.write(tmp_path, [*sci_case.served(), sci_case.headroom()])
    made = Shell(tmp_path)(
        "export", "sci", "--unit", "request", "--study", "chat", "--inventory", "inventory", "--factors",
        "factors.csv", "--ledger", "ledger",
    )  # fmt: skip
    text = made.stdout
    assert "ISO/IEC 21031" in text
    assert "**Functional unit (R)**: request" in text
    assert f"**Count of R**: {sci_case.SERVING * sci_case.REQUESTS} " in text
    assert "**Score**: unknown" not in text
    assert text.count("| lab, serving |") >= 4


@pytest.mark.parametrize("kind", ["model-card", "ai-act"])
def test_runs_of_several_studies_are_one_card_only_by_choice(tmp_path, kind):
    from tests.reporting.test_snippets import run

    ledger = Ledger(tmp_path / ".carbonlens")
    for name in ("first", "second"):
        ledger.append(run(name, study=name))
    shell = Shell(tmp_path)
    told = shell("export", kind, code=2).stderr
    assert "several studies (first, second)" in told
    assert "--study 'first'" in told
    assert shell("export", kind, "--study", "second").stdout
    assert shell("export", kind, "--study", "none", code=2).stderr


def test_warnings_of_a_snippet_fit_80_columns_and_say_what_to_do(tmp_path):
    from tests.reporting.test_snippets import run

    ledger = Ledger(tmp_path / ".carbonlens")
    ledger.append(run("first", study="first"))
    told = Shell(tmp_path)("export", "model-card").stderr
    assert "warning: " in told
    assert all(len(line) <= 80 for line in told.splitlines())
    assert "(" in told.partition("warning: ")[2]


def test_operations_of_inference_are_those_of_runs_that_infer(tmp_path):
    from tests.reporting.test_snippets import run

    ledger = Ledger(tmp_path / ".carbonlens")
    ledger.append(run("train", study="s", macs_per_unit=3_000, unit="batch"))
    shell = Shell(tmp_path)
    assert "**Computation used for inference**: N/A" in shell("export", "ai-act").stdout
    serving = msgspec.structs.replace(
        run("serve", study="s", macs_per_unit=500, unit="token"), role="serving"
    )
    ledger.append(serving)
    assert "1.00e+03 FLOP per token" in shell("export", "ai-act").stdout


@pytest.mark.parametrize("case", ["words", "hostile"])
def test_verify_says_in_80_columns_what_it_did_not_check(carbonlens, case):
    carbonlens("report", "business-case", "--format", "json", "-o", f"aged-{case}")
    file = carbonlens.folder / f"aged-{case}" / "business-case.json"
    shape = json.loads(file.read_text(encoding="utf-8"))
    made = shape["evidence"]["made_with"]
    made["carbonlens"] = "0.0.1" if case == "words" else "\x1b]0;owned\x07\x1b[2J" + "9" * 300
    made["libraries"]["numpy"] = "1" * 200
    file.write_text(json.dumps(shape), encoding="utf-8")
    told = carbonlens("verify", file).stdout
    assert told.startswith("verified in part: ")
    assert "bytes not compared" in told
    assert "unchecked  bytes of the file; words of its data" in told
    if case == "hostile":
        next(iter(shape["figures"].values()))["printed"] = "\x1b[31m\u202e" + "8" * 500
        shape["figures"]["\x1b[2J" + "x" * 200] = {}
        file.write_text(json.dumps(shape), encoding="utf-8")
        told += carbonlens("verify", file, code=4).stdout
    assert max(len(line) for line in told.splitlines()) <= 80
    assert all(c.isprintable() or c == "\n" for c in told)


def test_a_file_whose_bytes_alone_were_changed_is_not_called_verified(carbonlens):
    carbonlens("report", "business-case", "--format", "html", "-o", "touched")
    file = carbonlens.folder / "touched" / "business-case.html"
    page = file.read_text(encoding="utf-8")
    file.write_text(page.replace("Decision asked", "Decision taken"), encoding="utf-8")
    told = carbonlens("verify", file, code=4).stdout
    assert told.startswith("NOT verified: ")
    assert "\nverified" not in told
    assert "NOT the same bytes" in told


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("model-card", "--step", "none"), "no run of role"),
        (("model-card", "--role", "dancing"), "no such role"),
        (("sci",), "a score is per functional unit"),
        (("badge", "--study", "none"), "no runs of study"),
        (("badge", "-o", "none/there/badge.svg"), "cannot be written"),
        (("poem",), "poem"),
    ],
)
def test_what_cannot_be_exported_is_said(carbonlens, arguments, words):
    told = carbonlens("export", *arguments, code=2)
    assert words in told.stderr
    assert "Traceback" not in told.stderr
