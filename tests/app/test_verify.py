"""Verify: a report that says what follows from its runs holds, and any change of it is found."""

from __future__ import annotations

import base64
import gzip
import io
import re

import msgspec
import pikepdf
import pytest

from carbonlens.app.compare import compared, computed
from carbonlens.app.report import report
from carbonlens.app.verify import verify
from carbonlens.domain import evidence as evidence_of
from carbonlens.domain.evidence import Evidence
from carbonlens.errors import InputFileError, SelectionError, UsageError
from carbonlens.ledger.store import Ledger
from tests.compare.study_runs import demo_outcomes, demo_runs, demo_study, vector

FORMATS = ("html", "pdf", "json")


def evidence(**changes):
    return Evidence(
        study=demo_study(), runs=tuple(demo_runs(**changes)), vector=vector(), outcomes=demo_outcomes()
    )


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    given = evidence()
    return report(
        computed(given),
        sections=("business-case",),
        formats=FORMATS,
        out_dir=tmp_path_factory.mktemp("report"),
        evidence=given,
    )


@pytest.mark.parametrize("format_", FORMATS)
def test_a_report_holds_from_its_file_alone(written, format_):
    found = verify(written[format_])
    assert found.mismatches == ()
    assert found.rebuilt == "same"
    assert found.holds
    assert (found.runs, found.versions) == (len(demo_runs()), {})
    assert found.figures > 50


def changed_json(shape, change):
    text = msgspec.json.decode(msgspec.json.encode(shape))
    change(text)
    return text


def of_html(page):
    packed = re.search(r'id="carbonlens-report">([^<]*)<', page)[1]
    return packed, msgspec.json.decode(gzip.decompress(base64.b64decode(packed)))


def a_figure(shape):
    shape["figures"]["total.reduction_energy"]["value"] *= 1.01


def a_printed_figure(shape):
    shape["figures"]["total.reduction_energy"]["printed"] = "99.9 %"


def a_figure_that_is_gone(shape):
    del shape["figures"]["total.reduction_energy"]


def a_figure_too_many(shape):
    shape["figures"]["total.trees_planted"] = shape["figures"]["total.reduction_energy"]


def a_run(shape):
    reading = shape["evidence"]["runs"][0]["energy"][0]
    reading["energy_j"] = str(float(reading["energy_j"]) * 2)


def a_run_fewer(shape):
    shape["evidence"]["runs"] = shape["evidence"]["runs"][:-1]


def a_factor(shape):
    shape["evidence"]["vector"]["location"]["value_kg_per_kwh"] /= 2


def a_gate(shape):
    shape["evidence"]["study"]["gates"] = []


CHANGES = [a_figure, a_printed_figure, a_figure_that_is_gone, a_figure_too_many, a_run, a_run_fewer,
           a_factor, a_gate]  # fmt: skip


@pytest.fixture(scope="module")
def shape(written):
    return msgspec.json.decode(written["json"].read_bytes())


@pytest.mark.parametrize("change", CHANGES, ids=lambda c: c.__name__)
def test_whatever_is_changed_in_the_data_is_found(tmp_path, shape, change):
    file = tmp_path / "report.json"
    file.write_bytes(msgspec.json.encode(changed_json(shape, change)))
    found = verify(file)
    assert not found.holds
    assert found.mismatches


def test_the_figure_and_both_numbers_are_named(tmp_path, shape):
    file = tmp_path / "report.json"
    file.write_bytes(msgspec.json.encode(changed_json(shape, a_printed_figure)))
    (one,) = verify(file).mismatches
    assert one.figure_id == "total.reduction_energy"
    assert one.said.startswith("99.9 %")
    assert one.computed.startswith(shape["figures"]["total.reduction_energy"]["printed"])


def test_a_number_changed_on_the_page_is_found_though_its_data_are_whole(tmp_path, written, shape):
    page = written["html"].read_text(encoding="utf-8")
    printed = shape["figures"]["total.reduction_energy"]["printed"]
    forged = page.replace(f">{printed}<", ">99.9 %<")
    assert forged != page
    file = tmp_path / "report.html"
    file.write_text(forged, encoding="utf-8")
    found = verify(file)
    assert found.rebuilt == "different"
    assert [m.figure_id for m in found.mismatches] == ["total.reduction_energy"]


def test_words_changed_on_the_page_are_found_by_the_bytes(tmp_path, written):
    page = written["html"].read_text(encoding="utf-8")
    file = tmp_path / "report.html"
    file.write_text(page.replace("Decision asked", "Decision taken"), encoding="utf-8")
    found = verify(file)
    assert (found.mismatches, found.rebuilt, found.holds) == ((), "different", False)


def test_data_changed_inside_a_page_are_found(tmp_path, written):
    page = written["html"].read_text(encoding="utf-8")
    packed, held = of_html(page)
    forged = base64.b64encode(gzip.compress(msgspec.json.encode(changed_json(held, a_run)))).decode()
    file = tmp_path / "report.html"
    file.write_text(page.replace(packed, forged), encoding="utf-8")
    assert not verify(file).holds


def test_data_changed_inside_a_pdf_are_found(tmp_path, written):
    pdf = pikepdf.open(io.BytesIO(written["pdf"].read_bytes()))
    held = msgspec.json.decode(pdf.attachments["report.json"].get_file().read_bytes())
    content = msgspec.json.encode(changed_json(held, a_figure))
    pdf.attachments["report.json"] = pikepdf.AttachedFileSpec(pdf, content, filename="report.json")
    file = tmp_path / "report.pdf"
    pdf.save(file)
    found = verify(file)
    assert [m.figure_id for m in found.mismatches] == ["total.reduction_energy"]
    assert found.rebuilt == "different"


def test_other_versions_are_named_and_no_bytes_are_compared(tmp_path, shape):
    def older(held):
        held["evidence"]["made_with"]["libraries"]["numpy"] = "1.0"

    file = tmp_path / "report.json"
    file.write_bytes(msgspec.json.encode(changed_json(shape, older)))
    found = verify(file)
    assert found.holds
    assert found.rebuilt is None
    assert found.versions["numpy"][0] == "1.0"
    assert found.unchecked == ("bytes of the file",)


def test_a_pdf_of_other_versions_is_read_for_its_numbers(tmp_path, monkeypatch):
    from carbonlens.render import environment

    made = environment.made_with()
    older = msgspec.structs.replace(made, carbonlens="0.0.1")
    given = evidence()
    monkeypatch.setattr(environment, "made_with", lambda: older)
    files = report(
        computed(given), sections=("business-case",), formats=["pdf"], out_dir=tmp_path, evidence=given
    )
    monkeypatch.setattr(environment, "made_with", lambda: made)
    found = verify(files["pdf"])
    assert (found.mismatches, found.rebuilt) == ((), None)
    assert found.versions["carbonlens"][0] == "0.0.1"


def filled_ledger(folder, **changes):
    """A ledger that holds the demo's runs with their outcomes."""
    store = Ledger(folder)
    kept = {name: store.add_outcomes(outcomes) for name, outcomes in demo_outcomes().items()}
    for run in demo_runs(**changes):
        quality = tuple(
            msgspec.structs.replace(q, outcomes_sha256=kept.get(q.outcomes_sha256)) for q in run.quality
        )
        store.append(msgspec.structs.replace(run, quality=quality))
    return folder


def test_against_a_ledger_its_runs_count_and_not_the_enclosed_ones(tmp_path):
    ledger = filled_ledger(tmp_path / "ledger")
    found = compared(demo_study(), ledger=ledger, vector=vector())
    files = report(found.comparison, formats=["json"], out_dir=tmp_path, evidence=found.evidence)
    held = verify(files["json"], ledger=ledger)
    # The ledger has the very runs of the report, so that even its bytes follow.
    assert (held.mismatches, held.from_ledger, held.rebuilt) == ((), True, "same")
    assert not verify(files["json"], ledger=filled_ledger(tmp_path / "other", watts=18.0)).holds
    with pytest.raises(SelectionError):
        verify(files["json"], ledger=tmp_path / "none")


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.json", b"{"),
        ("a.json", b"[]"),
        ("a.json", b'{"schema": "carbonlens/compare/1"}'),
        ("a.json", b'{"schema": "carbonlens/report-document/1", "sections": [1], "figures": {}}'),
        ("a.json", b'{"schema": "carbonlens/report-document/1", "sections": [{"name": "x"}], "figures": {}}'),
        ("a.html", b"<html>nothing</html>"),
        (
            "a.html",
            b'<script type="application/vnd.carbonlens.report+gzip" id="carbonlens-report">AAAA</script>',
        ),
        ("a.html", b"\xff\xfe\x00"),
        ("a.html", b""),
        ("a.pdf", b"%PDF-1.7\nnothing"),
        ("a.pdf", b""),
    ],
)
def test_what_is_no_report_is_refused_plainly(tmp_path, name, content):
    file = tmp_path / name
    file.write_bytes(content)
    with pytest.raises(InputFileError, match=name):
        verify(file)


def test_a_pdf_cut_short_or_of_others_is_refused(tmp_path, written):
    whole = written["pdf"].read_bytes()
    foreign = pikepdf.new()
    foreign.add_blank_page()
    held = io.BytesIO()
    foreign.save(held)
    for content in (whole[: len(whole) // 2], held.getvalue()):
        file = tmp_path / "cut.pdf"
        file.write_bytes(content)
        with pytest.raises(InputFileError):
            verify(file)


def test_formats_without_data_say_which_have_them(tmp_path):
    for suffix in ("xlsx", "md"):
        with pytest.raises(UsageError, match="verify the PDF, HTML or JSON"):
            verify(tmp_path / f"a.{suffix}")


def test_too_many_runs_are_left_out_and_asked_of_the_ledger(tmp_path, monkeypatch):
    from carbonlens.app import report_enclosed

    monkeypatch.setattr(report_enclosed, "MOST_RUNS", 10)
    given = evidence()
    files = report(
        computed(given), sections=("engineering",), formats=["json"], out_dir=tmp_path, evidence=given
    )
    assert msgspec.json.decode(files["json"].read_bytes())["evidence"]["runs"] == []
    with pytest.raises(InputFileError, match=r"too many to travel with it.*--ledger"):
        verify(files["json"])


def test_evidence_comes_back_as_it_was():
    given = evidence()
    assert evidence_of.decode(evidence_of.encode(given), "x") == given


def test_a_report_of_a_comparison_alone_carries_no_evidence(tmp_path):
    files = report(
        computed(evidence()), formats=["json", "html"], sections=("engineering",), out_dir=tmp_path
    )
    for file in files.values():
        with pytest.raises(InputFileError):
            verify(file)
