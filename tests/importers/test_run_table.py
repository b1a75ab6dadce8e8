"""The plain run table: what people type, and what they get wrong."""

from decimal import Decimal
from pathlib import Path
from typing import ClassVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carbonlens.errors import InputFileError
from carbonlens.importers.run_table import IMPORTER
from tests.conformance.importers import ImporterContract
from tests.importers.reading import claimed, codes, read_any, read_text

HEAD = "run_id,study,step,energy_j,units,boundary,energy_grade"
BODY = "a1,s,base,100.5,10,it,B\na2,s,fast,50,10,it,B"


class TestConformance(ImporterContract):
    """The contract of importers."""

    importer = IMPORTER
    files: ClassVar = {"table.csv": f"{HEAD}\n{BODY}\n"}
    runs = 2
    energy_j = 150.5
    delimiter = ","
    essential = ("energy_j",)


def read(tmp_path: Path, text: str | bytes):
    return read_text(IMPORTER, tmp_path, text)


def test_two_plain_rows(tmp_path):
    extract = read(tmp_path, f"{HEAD}\n{BODY}\n")
    assert (extract.rows, extract.rows_rejected, extract.energy_j) == (2, 0, Decimal("150.5"))
    first = extract.runs[0]
    assert (first.run_id, first.study, first.step, first.role) == ("a1", "s", "base", "variant")
    assert first.energy[0].energy_j == Decimal("100.500000")
    assert first.energy[0].grade == "B"
    assert first.origin.source_line == 2
    assert extract.findings == ()


@pytest.mark.parametrize(
    "content",
    [
        f"\ufeff{HEAD}\n{BODY}".encode(),
        f"{HEAD}\r\n{BODY}\r\n".replace("B\na2", "B\r\na2").encode(),
        f"\n\n{HEAD}\n\n{BODY}\n\n".encode(),
        f"{HEAD}\n{BODY}\n".encode("utf-16"),
        f"{HEAD}\n{BODY}\n".replace(",", ";").replace("100.5", "100,5").encode(),
        f"{HEAD}\n{BODY}\n".replace(",", "\t").replace("100.5", "100,5").encode(),
        f"{HEAD}\n{HEAD}\n{BODY}\n".encode(),
        f"{HEAD}\n{BODY}\n".replace(",", " , ").encode(),
        f"{HEAD.upper()}\n{BODY}\n".encode(),
    ],
    ids=[
        "bom",
        "crlf",
        "blank lines",
        "utf-16",
        "decimal comma",
        "tabs",
        "header twice",
        "padded",
        "capitals",
    ],
)
def test_the_same_table_in_other_clothes(tmp_path, content):
    extract = read(tmp_path, content)
    assert [r.run_id.strip() for r in extract.runs] == ["a1", "a2"]
    assert extract.energy_j == Decimal("150.5")


def test_on_names_the_optimizations_and_factors_is_its_alias(tmp_path):
    extract = read(tmp_path, "run_id,study,factors,energy_j,units\n1,s,,9,1\n2,s,int8 + prune,4,1\n")
    assert [r.on for r in extract.runs] == [(), ("int8", "prune")]
    assert [r.step for r in extract.runs] == ["baseline", "int8+prune"]


def test_missing_boundary_and_grade_are_findings(tmp_path):
    extract = read(tmp_path, "run_id,study,step,energy_j,units\n1,s,b,9,1\n2,s,b,8,1\n")
    assert codes(extract) == ["CL206", "CL207"]
    assert extract.runs[0].energy[0].boundary is None


@pytest.mark.parametrize("word", ["", "NaN", "n/a", "-", "unknown"])
def test_unknown_energy_is_kept_as_unknown_never_zero(tmp_path, word):
    extract = read(tmp_path, f"{HEAD}\na,s,b,{word},1,it,B\nb,s,b,5,1,it,B\n")
    assert extract.runs[0].energy[0].energy_j is None
    assert extract.runs[0].energy[0].state == "unknown"
    assert extract.energy_j is None
    assert codes(extract) == ["CL204"]


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ("x,s,b,-5,1,it,B", "below 0"),
        ("x,s,b,ten,1,it,B", "no number"),
        ("x,s,b,inf,1,it,B", "not finite"),
        ("x,s,b,1e30,1,it,B", "plausible"),
        ("x,s,b,5,-1,it,B", "below 0"),
        ("x,s,b,1e-7,1,it,B", "finer than a microjoule"),
        ("x,s,b,5,1e-400,it,B", "plausible"),
        ("x,s,b,1_000,1,it,B", "no number"),
        (",s,b,5,1,it,B", "no run_id"),
        ("x,,b,5,1,it,B", "no study"),
        ("x,s,,5,1,it,B", "neither step nor on"),
        ("x,s,b,5,1,building,B", "known are device, it, facility"),
        ("x,s,b,5,1,it,Z", "known are"),
        ("x,s,b,5,1,it,B,surplus", "more cells"),
    ],
)
def test_a_bad_row_is_rejected_by_line_and_the_others_stay(tmp_path, row, reason):
    extract = read(tmp_path, f"{HEAD}\na,s,b,1,1,it,B\n{row}\nc,s,b,2,1,it,B\n")
    assert [r.run_id for r in extract.runs] == ["a", "c"]
    assert extract.rows_rejected == 1
    finding = next(f for f in extract.findings if f.code == "CL202")
    assert finding.line == 3
    assert reason in finding.message


def test_a_glued_line_does_not_pass_silently(tmp_path):
    extract = read(tmp_path, f"{HEAD}\na,s,b,1,1,it,Bb,s,b,2,1,it,B\nc,s,b,3,1,it,B\n")
    assert [r.run_id for r in extract.runs] == ["c"]
    assert extract.rows_rejected == 1


def test_a_repeated_row_counts_once_and_a_changed_one_is_refused(tmp_path):
    extract = read(tmp_path, f"{HEAD}\na,s,b,1,1,it,B\na,s,b,1,1,it,B\na,s,b,2,1,it,B\n")
    assert len(extract.runs) == 1
    assert codes(extract) == ["CL201", "CL202"]


def test_optional_columns_are_all_read(tmp_path):
    text = (
        "run_id,study,step,energy_j,units,role,repeat,start_utc,duration_s,energy_low_j,energy_high_j,"
        "energy_grade,boundary,unit,zone,site,cost,currency,latency_p50_ms,latency_p99_ms,quality_name,"
        "quality,quality_n,model_bytes,host,hardware,workload\n"
        "r,s,b,10,4,effort,3,2026-11-27T10:00:00Z,2.5,8,12,D,facility,image,DE,berlin,1.25,eur,3.5,9,"
        "accuracy,0.98,899,1000,h1,EPYC,digits\n"
    )
    run = read(tmp_path, text).runs[0]
    assert (run.role, run.repeat, run.unit, run.zone, run.site) == ("effort", 3, "image", "DE", "berlin")
    assert run.start_us == 1_795_773_600_000_000
    assert run.end_us == run.start_us + 2_500_000
    assert (run.energy[0].low_j, run.energy[0].high_j) == (8.0, 12.0)
    assert (run.total_energy.low, run.total_energy.high) == (8.0, 12.0)
    assert (str(run.cost.amount), run.cost.currency) == ("1.25", "EUR")
    assert (run.latency.p50_ms, run.latency.p99_ms) == (3.5, 9.0)
    assert (run.quality[0].name, run.quality[0].value, run.quality[0].n) == ("accuracy", 0.98, 899)
    assert (run.model_bytes, run.host_id, run.hardware, run.workload) == (1000, "h1", "EPYC", "digits")


@pytest.mark.parametrize(("grade", "factor"), [("B", 1.05), ("C", 1.05), ("D", 1.8), ("E", 2.0)])
def test_a_grade_without_an_interval_gets_its_usual_width(tmp_path, grade, factor):
    extract = read(tmp_path, f"{HEAD}\na,s,b,100,1,it,{grade}\nb,s,c,50,1,it,{grade}\n")
    total = extract.runs[0].total_energy
    assert total.high == pytest.approx(100 * factor, rel=2e-3)
    # One meter or model: its error is common to both rows.
    assert set(total.u_by_source) == set(extract.runs[1].total_energy.u_by_source)


@pytest.mark.parametrize("grade", ["A", ""])
def test_an_unstated_width_is_unknown_and_not_zero(tmp_path, grade):
    total = read(tmp_path, f"{HEAD}\na,s,b,100,1,it,{grade}\n").runs[0].total_energy
    assert (total.value, total.low, total.high) == (100.0, None, None)


def test_a_stated_offset_is_honoured_and_none_means_utc(tmp_path):
    head = "run_id,study,step,energy_j,units,start_utc\n"
    rows = "a,s,b,1,1,2026-11-27T10:00:00\nb,s,b,1,1,2026-11-27T12:00:00+02:00\n"
    first, second = read(tmp_path, head + rows).runs
    assert first.start_us == second.start_us


@pytest.mark.parametrize(
    "content", [b"", b"\x00\x01", b"hello", b"run_id,study\n1,s\n", b"\x7fELF", "{}".encode("utf-16")]
)
def test_other_content_is_not_claimed(tmp_path, content):
    file = tmp_path / "any"
    file.write_bytes(content)
    assert not claimed(IMPORTER, file)


def test_invalid_text_is_an_input_error(tmp_path):
    file = tmp_path / "t.csv"
    file.write_bytes(f"{HEAD}\n".encode() + b"\xff\xff\xff")
    with pytest.raises(InputFileError, match=r"t\.csv"):
        read_any(IMPORTER, file)


@given(st.binary(max_size=400), st.integers(0, 200))
def test_no_content_crashes_or_loses_rows_silently(tmp_path_factory, tail, cut):
    content = f"{HEAD}\n{BODY}\n".encode()[: max(cut, len(HEAD) + 1)] + tail
    file = tmp_path_factory.mktemp("t") / "t.csv"
    file.write_bytes(content)
    try:
        extract = read_any(IMPORTER, file)
    except InputFileError:
        return
    assert len(extract.runs) + extract.rows_rejected + extract.rows_repeated == extract.rows


def test_an_open_quote_does_not_swallow_rows_silently(tmp_path):
    file = tmp_path / "t.csv"
    file.write_text(f'{HEAD}\na,s,"b,1,1,it,B\nc,s,b,2,1,it,B\n')
    try:
        extract = read_any(IMPORTER, file)
    except InputFileError:
        return
    assert extract.rows_rejected == 1


def qualities(tmp_path, name, direction=None):
    head, cell = (f"{HEAD},quality_name,quality,quality_n", f",{name},0.02,2000")
    if direction is not None:
        head, cell = f"{head},quality_direction", f"{cell},{direction}"
    extract = read(tmp_path, head + "".join(f"\n{row}{cell}" for row in BODY.split("\n")))
    return [q.higher_is_better for r in extract.runs for q in r.quality], codes(extract)


@pytest.mark.parametrize(
    ("name", "direction", "is_more_better", "found"),
    [
        ("error_rate", None, False, []),
        ("wer", None, False, []),
        ("accuracy", None, True, []),
        ("score", None, None, ["CL215"]),
        ("score", "", None, ["CL215"]),
        ("score", "lower", False, []),
        ("score", "Higher", True, []),
        ("wer", "higher", True, []),
    ],
)
def test_the_direction_of_a_quality(tmp_path, name, direction, is_more_better, found):
    assert qualities(tmp_path, name, direction) == ([is_more_better] * 2, found)


def test_a_direction_that_is_none_is_refused_with_its_row(tmp_path):
    assert qualities(tmp_path, "score", "up") == ([], ["CL202", "CL202"])


@pytest.mark.parametrize(
    ("role", "said"), [("effort", False), ("idle", False), ("variant", True), ("serving", True)]
)
def test_units_are_missed_only_where_energy_is_divided_by_them(tmp_path, role, said):
    """An optimization's own cost and an idle machine do no units."""
    text = f"{HEAD},role\na1,s,base,100.5,,it,B,{role}\n"
    assert ("CL205" in codes(read(tmp_path, text))) is said
