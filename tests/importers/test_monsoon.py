"""Monsoon: a header of ms over seconds, packets of one time, supplies beside."""

from typing import ClassVar

import pytest

from carbonlens.errors import InputFileError
from carbonlens.importers.contract import Options
from carbonlens.importers.monsoon import IMPORTER
from carbonlens.importers.sources import Source
from tests.conformance.importers import ImporterContract
from tests.importers.reading import codes, read_text

HEAD = "Time(s),Main(mA),Main Voltage(V)\n"


def rows(count, step, *, cell="{}", end=""):
    return "".join(
        ",".join(cell.format(v) for v in (round(i * step, 9), 500.0, 4.0)) + end + "\n" for i in range(count)
    )


class TestConformance(ImporterContract):
    """The contract of importers: 500 mA at 4 V over 20 ms."""

    importer = IMPORTER
    files: ClassVar = {"monsoon.csv": HEAD + rows(101, 0.0002)}
    runs = 1
    energy_j = 0.04
    delimiter = ","
    essential = ("main(ma)", "main voltage(v)", "time(s)")
    clocks = True


def test_milliseconds_are_believed_where_they_can_be(tmp_path):
    text = HEAD.replace("(s)", "(ms)") + rows(101, 0.2)
    got = read_text(IMPORTER, tmp_path, text)
    assert float(got.energy_j) == pytest.approx(0.04)
    assert codes(got) == ["CL245"]


def test_a_header_of_ms_over_seconds_is_put_right_and_said(tmp_path):
    text = HEAD.replace("(s)", "(ms)") + rows(5001, 0.0002)
    got = read_text(IMPORTER, tmp_path, text)
    assert float(got.energy_j) == pytest.approx(2.0)
    assert got.runs[0].duration_s == pytest.approx(1.0)
    assert "CL272" in codes(got)


@pytest.mark.parametrize(("cell", "end"), [("np.float64({})", ""), ("{}", ","), ("np.float64({})", ",")])
def test_every_dress_of_cells_is_read(tmp_path, cell, end):
    text = HEAD.replace("\n", end + "\n") + rows(101, 0.0002, cell=cell, end=end)
    assert float(read_text(IMPORTER, tmp_path, text).energy_j) == pytest.approx(0.04)


def test_samples_of_one_packet_count_by_their_mean(tmp_path):
    text = HEAD + "".join(f"{i},{ma},4\n" for i in range(11) for ma in (0, 500, 1000))
    got = read_text(IMPORTER, tmp_path, text)
    assert float(got.energy_j) == pytest.approx(20.0)
    assert "CL126" not in codes(got)


def test_a_packet_may_lie_over_the_end_of_a_block(tmp_path, monkeypatch):
    blocks = Source.blocks
    monkeypatch.setattr(Source, "blocks", lambda self, size=0: blocks(self, 40))
    text = HEAD + "".join(f"{i},{ma},4\n" for i in range(200) for ma in (0, 500, 1000))
    got = read_text(IMPORTER, tmp_path, text)
    assert float(got.energy_j) == pytest.approx(398.0)
    assert got.records[0].measured.samples == 200
    assert codes(got) == ["CL245"]


def test_usb_stands_beside_main(tmp_path):
    head = "Time(s),Main(mA),USB(mA),Main Voltage(V),USB Voltage(V)\n"
    got = read_text(IMPORTER, tmp_path, head + "".join(f"{i},500,100,4,5\n" for i in range(11)))
    assert float(got.energy_j) == pytest.approx(20)
    assert [float(r.energy_j) for r in got.runs[0].beside] == pytest.approx([5.0])
    assert "CL273" in codes(got)


def test_usb_counts_where_it_is_alone(tmp_path):
    text = "Time(s),USB(mA),USB Voltage(V)\n" + "".join(f"{i},100,5\n" for i in range(11))
    assert float(read_text(IMPORTER, tmp_path, text).energy_j) == pytest.approx(5)


def test_the_voltage_may_be_stated(tmp_path):
    text = "Time(s),Main(mA)\n" + "".join(f"{i},500\n" for i in range(11))
    with pytest.raises(InputFileError, match="without the voltage"):
        read_text(IMPORTER, tmp_path, text)
    assert float(read_text(IMPORTER, tmp_path, text, Options(voltage_v=4)).energy_j) == pytest.approx(20)


def test_failed_samples_are_uncovered(tmp_path):
    text = HEAD + "".join(f"{i},{'nan' if 8 <= i < 14 else 500},4\n" for i in range(21))
    got = read_text(IMPORTER, tmp_path, text)
    assert got.records[0].measured.uncovered_s > 0
    assert got.records[0].measured.mean_power_w == pytest.approx(2)
