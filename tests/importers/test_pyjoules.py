"""pyJoules: microjoules by domain, pieces within pieces, counters too slow or wrapped."""

from typing import ClassVar

import pytest

from carbonlens.importers.pyjoules import IMPORTER
from carbonlens.importers.sources import Source
from tests.conformance.importers import ImporterContract
from tests.importers.reading import codes, read_text

HEAD = "timestamp;tag;duration;package_0;dram_0;core_0;uncore_0;nvidia_gpu_0\n"
START = 1_772_445_600.25


def row(start_s, tag, length_s, package, *, dram="2000000", core="6000000", gpu="30000000"):
    return f"{START + start_s};{tag};{length_s};{package};{dram};{core};0;{gpu}\n"


class TestConformance(ImporterContract):
    """The contract of importers: three pieces of 10 s, each of 100 J, 2 J and 30 J."""

    importer = IMPORTER
    files: ClassVar = {
        "result.csv": HEAD + "".join(row(11 * i, f"f{i}", 10.0, 100_000_000) for i in range(3))
    }
    runs = 3
    energy_j = 396.0
    delimiter = ";"
    clocks = True


def test_a_row_is_a_run_with_its_parts(tmp_path):
    (run,) = read_text(IMPORTER, tmp_path, HEAD + row(0, "load", 10, 100_000_000)).runs
    assert {r.devices[0]: float(r.energy_j) for r in run.energy} == {
        "package_0": 100.0,
        "dram_0": 2.0,
        "nvidia_gpu_0": 30.0,
    }
    assert {r.devices[0]: float(r.energy_j) for r in run.beside} == {"core_0": 6.0, "uncore_0": 0.0}
    assert run.tags == {"tag": "load"}
    assert (run.start_us, run.duration_s) == (1_772_445_600_250_000, 10.0)
    assert {r.grade for r in run.energy} == {"B"}


def test_cores_count_where_no_package_was_logged(tmp_path):
    text = f"timestamp;tag;duration;core_0;core_1\n{START};f;10;6000000;7000000\n"
    assert float(read_text(IMPORTER, tmp_path, text).energy_j) == pytest.approx(13)


@pytest.mark.parametrize("cell", ["0", "-250000000", "nan", ""])
def test_what_the_counter_did_not_tell_is_unknown_never_zero(tmp_path, cell):
    got = read_text(IMPORTER, tmp_path, HEAD + row(0, "f", 0.01, cell))
    package = next(r for r in got.runs[0].energy if r.devices == ("package_0",))
    assert package.energy_j is None
    assert package.state == "unknown"
    assert "CL253" in codes(got)


def test_a_piece_within_a_piece_counts_with_it(tmp_path):
    text = (
        HEAD
        + row(1, "inner", 2, 20_000_000)
        + row(0, "outer", 10, 100_000_000)
        + row(10, "next", 5, 50_000_000)
    )
    got = read_text(IMPORTER, tmp_path, text)
    inner, outer, after = got.runs
    assert inner.parent_run_id == outer.run_id
    assert outer.parent_run_id is None
    assert after.parent_run_id is None, "it begins where the other ends"
    assert codes(got) == ["CL262"]


def test_pieces_that_overlap_in_part_are_said(tmp_path):
    got = read_text(IMPORTER, tmp_path, HEAD + row(0, "a", 10, 100_000_000) + row(5, "b", 10, 100_000_000))
    assert [f.severity for f in got.findings if f.code == "CL262"] == ["warning"]


def test_a_long_piece_may_lack_turns_of_the_register(tmp_path):
    got = read_text(IMPORTER, tmp_path, HEAD + row(0, "f", 3600, 200_000_000_000))
    assert "CL273" in codes(got)


def test_joules_that_are_labelled_otherwise_are_flagged(tmp_path):
    got = read_text(
        IMPORTER, tmp_path, HEAD + row(0, "f", 10, "100000000000000", dram="0.1", core="0", gpu="30")
    )
    assert "CL248" in codes(got)
    assert float(got.runs[0].energy[0].energy_j) == 1e8, "the value stays as stated"


def test_a_zone_of_other_columns_is_not_claimed(tmp_path):
    file = tmp_path / "a.csv"
    file.write_text("timestamp;tag;duration;joules\n1;a;1;1\n")
    assert not IMPORTER.claim([Source(file)])
