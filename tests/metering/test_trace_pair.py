"""Traces from files, and the sum over a meter's rails."""

import pytest

from carbonlens.errors import InputFileError
from carbonlens.metering.sensors.meter_lines import MeterLine
from carbonlens.metering.trace_pair import read_trace, summed


def test_rails_are_summed_from_the_moment_all_have_told_something():
    lines = [
        MeterLine(0, 10.0, "slot"),
        MeterLine(5, 100.0, "plug"),
        MeterLine(10, 12.0, "slot"),
        MeterLine(15, 90.0, "plug"),
    ]
    assert summed(lines) == ((5, 10, 15), (110.0, 112.0, 102.0))
    assert summed(lines[::2]) == ((0, 10), (10.0, 12.0))


def test_a_file_is_read_with_or_without_a_header(tmp_path):
    file = tmp_path / "trace.csv"
    file.write_text("t_us,watts\n0,60\n20000,61.5")
    assert read_trace(file) == ((0.0, 20000.0), (60.0, 61.5))
    file.write_text("0,60\n20000,61.5\n")
    assert read_trace(file) == ((0.0, 20000.0), (60.0, 61.5))


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("t_us,watts\n", "holds no reading"),
        ("0,60\n10,sixty\n", "1 line is no t_us,watts"),
        ("", "no reading"),
    ],
)
def test_a_file_without_power_is_refused(tmp_path, text, fault):
    file = tmp_path / "trace.csv"
    file.write_text(text)
    with pytest.raises(InputFileError, match=fault):
        read_trace(file)


def test_a_missing_file_is_refused(tmp_path):
    with pytest.raises(InputFileError, match="cannot be read"):
        read_trace(tmp_path / "none.csv")
