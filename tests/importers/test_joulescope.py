"""Joulescope: amperes and volts; dropped samples are NaN."""

from typing import ClassVar

import pytest

from carbonlens.importers.contract import Options
from carbonlens.importers.joulescope import IMPORTER
from carbonlens.importers.sources import Source
from tests.conformance.importers import ImporterContract
from tests.importers.reading import codes, read_text

HEAD = "#time (s),current (A),voltage (V)\n"


class TestConformance(ImporterContract):
    """The contract of importers: 10 mA at 3.3 V over 10 ms."""

    importer = IMPORTER
    files: ClassVar = {"js.csv": HEAD + "".join(f"{i * 1e-4:.7f},0.010000000,3.3000\n" for i in range(101))}
    runs = 1
    energy_j = 0.00033
    delimiter = ","
    essential = ("current (a)", "voltage (v)", "#time (s)")
    clocks = True
    tolerance = 1e-3


def test_dropped_samples_are_uncovered(tmp_path):
    text = HEAD + "".join(
        f"{i},{'NaN' if 8 <= i < 14 else '1.0'},{'NaN' if 8 <= i < 14 else '2.0'}\n" for i in range(21)
    )
    got = read_text(IMPORTER, tmp_path, text)
    assert got.records[0].measured.uncovered_s > 0
    assert got.records[0].measured.mean_power_w == pytest.approx(2)
    assert "CL125" in codes(got)


def test_its_times_begin_where_the_user_says(tmp_path):
    text = HEAD + "".join(f"{i},1.0,2.0\n" for i in range(11))
    (run,) = (got := read_text(IMPORTER, tmp_path, text)).runs
    assert (run.start_us, run.duration_s, codes(got)) == (None, 10.0, ["CL245"])
    (run,) = read_text(IMPORTER, tmp_path, text, Options(start_us=1_772_445_600_000_000)).runs
    assert run.start_us == 1_772_445_600_000_000
    assert run.energy[0].grade == "A"


def test_three_bare_numbers_are_not_claimed(tmp_path):
    path = tmp_path / "bare.csv"
    path.write_text("0.0,0.01,3.3\n0.1,0.01,3.3\n")
    assert not IMPORTER.claim([Source(path)])
