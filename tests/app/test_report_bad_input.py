"""Reports of what hardly is a study: each is made with words for it, or refused with a reason."""

from __future__ import annotations

import msgspec
import pytest

from carbonlens.app.compare import compare, computed
from carbonlens.app.report import ensure_writable, report
from carbonlens.errors import (
    CarbonlensError,
    IncomparableError,
    RenderError,
    SelectionError,
    UnwritableError,
    UsageError,
)
from carbonlens.ledger.store import Ledger
from carbonlens.reporting.content import plain_text
from carbonlens.reporting.view import build_view
from tests.app.test_verify import evidence, filled_ledger
from tests.reporting.comparisons import EXAMPLE_VECTOR, Arm, comparison

SECTIONS = ("business-case", "engineering")
INCONCLUSIVE = tuple(Arm(name=f"s{n}", cpu_us=859 + n, status="undetermined") for n in range(3))
WORSE = (Arm(name="slow", cpu_us=1900, status="rejected"), Arm(name="slower", cpu_us=2900, status="rejected"))
NO_FACTOR = msgspec.structs.replace(EXAMPLE_VECTOR, location=None, market=None)
MADE = {
    "all inconclusive": comparison(INCONCLUSIVE, spread=0.3),
    "negative saving": comparison(WORSE),
    "missing factor": comparison(vector=NO_FACTOR),
}


def pages(made, section, tmp_path):
    files = report(made, sections=[section], formats=["html", "md"], out_dir=tmp_path)
    assert all(file.stat().st_size for file in files.values())
    return files["md"].read_text("utf-8")


@pytest.mark.parametrize("section", SECTIONS)
@pytest.mark.parametrize("case", MADE)
def test_what_saves_nothing_or_knows_little_is_reported_as_such(case, section, tmp_path):
    made = MADE[case]
    page = pages(made, section, tmp_path)
    title = plain_text(build_view(made).business_case.title)
    if case == "missing factor":
        assert "unknown" in page
    else:
        assert made.total is None
        assert "saves" not in title


@pytest.mark.parametrize("section", SECTIONS)
def test_one_run_an_arm_has_no_interval_to_speak_of(section, tmp_path):
    given = evidence()
    first = {}
    for run in given.runs:
        if run.role == "variant":
            first.setdefault(run.step, run)
    made = computed(msgspec.structs.replace(given, runs=tuple(first.values())))
    assert pages(made, section, tmp_path)
    assert {s.verdict for s in made.steps} == {"inconclusive"}


@pytest.mark.parametrize("section", SECTIONS)
def test_one_run_alone_is_no_study(section, tmp_path):
    given = evidence()
    with pytest.raises(CarbonlensError) as refused:
        pages(computed(msgspec.structs.replace(given, runs=given.runs[:1])), section, tmp_path / "out")
    assert refused.value.exit_code == 2


def test_an_empty_ledger_is_an_empty_selection(tmp_path):
    Ledger(tmp_path / "ledger")
    with pytest.raises(SelectionError) as refused:
        compare(ledger=tmp_path / "ledger")
    assert refused.value.exit_code == 2


def test_a_study_that_is_not_there_is_named(tmp_path):
    filled_ledger(tmp_path / "ledger")
    with pytest.raises(SelectionError, match="quarter"):
        compare("quarter", ledger=tmp_path / "ledger")


def test_mixed_currencies_are_refused():
    vector = EXAMPLE_VECTOR
    dollars = msgspec.structs.replace(vector.machine, currency="USD")
    given = evidence()
    mixed = msgspec.structs.replace(given, vector=msgspec.structs.replace(vector, machine=dollars))
    with pytest.raises(IncomparableError, match="currenc"):
        computed(mixed)


@pytest.mark.parametrize("section", ["quarterly", "business_case", "../engineering"])
def test_an_unknown_report_is_named_with_those_there_are(section, tmp_path):
    with pytest.raises(UsageError, match="business-case, engineering") as refused:
        report(comparison(), sections=[section], out_dir=tmp_path / "out")
    assert refused.value.exit_code == 2


@pytest.mark.parametrize("section", SECTIONS)
def test_a_refusal_leaves_no_folder_behind(section, tmp_path):
    out = tmp_path / "not" / "yet"
    with pytest.raises(CarbonlensError):
        report(comparison(), sections=[section], out_dir=out, templates=tmp_path / "no-templates")
    assert list(tmp_path.iterdir()) == []


def test_a_page_that_cannot_be_made_leaves_no_folder_behind(tmp_path, monkeypatch):
    def fail(*_, **__):
        raise RenderError("took too long", mend="ask for less")

    monkeypatch.setattr("carbonlens.render.worker.render", fail)
    with pytest.raises(RenderError):
        report(comparison(), sections=["engineering"], formats=["md", "html"], out_dir=tmp_path / "out")
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_was_there_stays_with_what_is_in_it(tmp_path):
    (tmp_path / "kept").mkdir()
    (tmp_path / "kept" / "notes.txt").write_text("mine", "utf-8")
    ensure_writable(tmp_path / "kept")
    ensure_writable(tmp_path / "kept" / "deeper" / "still")
    assert [p.name for p in tmp_path.rglob("*")] == ["kept", "notes.txt"]
    with pytest.raises(UnwritableError):
        ensure_writable(tmp_path / "kept" / "notes.txt" / "out")
    made = report(comparison(), sections=["engineering"], formats=["md"], out_dir=tmp_path / "a" / "b")
    assert made["md"].parent == tmp_path / "a" / "b"
