"""Otii: columns that state their unit, of which the best counts."""

from typing import ClassVar

import pytest

from carbonlens.errors import InputFileError
from carbonlens.importers.contract import Options
from carbonlens.importers.otii import IMPORTER
from tests.conformance.importers import ImporterContract
from tests.importers.reading import claimed, codes, read_text

HEAD = "Timestamp (s),Main Current (A),Main Voltage (V)\n"


def rows(cells, count=101, step=0.01):
    return "".join(f"{i * step:.5f},{cells}\n" for i in range(count))


class TestConformance(ImporterContract):
    """The contract of importers: 10 mA at 3.3 V over 1 s."""

    importer = IMPORTER
    files: ClassVar = {"main.csv": HEAD + rows("0.010000,3.3000")}
    runs = 1
    energy_j = 0.033
    delimiter = ","
    essential = ("main current (a)", "main voltage (v)", "timestamp (s)")
    clocks = True
    tolerance = 1e-3


@pytest.mark.parametrize(
    ("head", "cells", "joules"),
    [
        ("Timestamp (s),Main Current (mA),Main Voltage (mV)", "10.0,3300", 0.033),
        ("Time [ms],Main Power [uW]", "33000.0", 0.033),
        ("timestamp_us,main_current_ua,main_voltage_v", "10000,3.3", 0.033),
        ("Timestamp (s),Arc 1 - Main Power (W)", "0.033", 0.033),
    ],
)
def test_each_unit_is_read_as_the_header_states_it(tmp_path, head, cells, joules):
    step = 10.0 if "ms" in head else 10_000.0 if "us" in head else 0.01
    got = read_text(IMPORTER, tmp_path, f"{head}\n{rows(cells, step=step)}")
    assert float(got.energy_j) == pytest.approx(joules, rel=1e-3)
    assert got.runs[0].energy[0].grade == "A"
    assert codes(got) == ["CL245"]


@pytest.mark.parametrize(
    ("head", "unit"),
    [
        ("Timestamp,Main Current (A),Main Voltage (V)", "'timestamp'"),
        ("Timestamp (s),Main Current,Main Voltage (V)", "'main current'"),
        ("Timestamp (s),Main Current (furlong),Main Voltage (V)", "'furlong'"),
    ],
)
def test_a_unit_that_is_not_told_is_refused_and_never_guessed(tmp_path, head, unit):
    with pytest.raises(InputFileError, match=unit) as error:
        read_text(IMPORTER, tmp_path, f"{head}\n{rows('0.01,3.3')}")
    assert "header" in error.value.mend


def test_current_alone_needs_the_voltage(tmp_path):
    text = "timestamp_s,datetime,current_A\n" + "".join(
        f"{i * 0.01},2026-04-13 10:00:{i * 0.01:06.3f},0.01\n" for i in range(101)
    )
    with pytest.raises(InputFileError, match="current alone"):
        read_text(IMPORTER, tmp_path, text)
    got = read_text(IMPORTER, tmp_path, text, Options(voltage_v=3.3))
    assert float(got.energy_j) == pytest.approx(0.033, rel=1e-3)
    assert "3.3 V, as given" in got.runs[0].energy[0].method


def test_a_voltage_that_was_measured_goes_before_one_that_is_given(tmp_path):
    got = read_text(IMPORTER, tmp_path, HEAD + rows("0.01,3.3"), Options(voltage_v=5.0))
    assert float(got.energy_j) == pytest.approx(0.033, rel=1e-3)


def test_voltage_alone_is_refused(tmp_path):
    with pytest.raises(InputFileError, match="voltage alone"):
        read_text(IMPORTER, tmp_path, f"Timestamp (s),Main Voltage (V)\n{rows('3.3')}")


def test_energy_so_far_counts_alone_and_stands_beside_power(tmp_path):
    body = "".join(f"{i * 0.01:.2f},{i * 0.00033:.6f}\n" for i in range(101))
    got = read_text(IMPORTER, tmp_path, f"Timestamp (s),Main Energy (J)\n{body}")
    assert float(got.energy_j) == pytest.approx(0.033, rel=1e-3)
    both = "".join(f"{i * 0.01:.2f},{i * 0.00033:.6f},0.033\n" for i in range(101))
    (run,) = read_text(IMPORTER, tmp_path, f"Timestamp (s),Main Energy (J),Main Power (W)\n{both}").runs
    assert float(run.energy[0].energy_j) == pytest.approx(0.033, rel=1e-3)
    assert float(run.beside[0].energy_j) == pytest.approx(0.033, rel=1e-3)


def test_two_supplies_are_added_up(tmp_path):
    head = "Timestamp (s),Arc - Main Power (W),Ace - Main Power (W)"
    (run,) = read_text(IMPORTER, tmp_path, f"{head}\n{rows('1.0,2.0')}").runs
    assert {r.devices[0]: float(r.energy_j) for r in run.energy} == {
        "arc": pytest.approx(1.0, rel=1e-3),
        "ace": pytest.approx(2.0, rel=1e-3),
    }


def test_decimal_commas_are_read(tmp_path):
    text = HEAD.replace(",", ";") + "".join(f"{i / 100:.2f};0.01;3.3\n".replace(".", ",") for i in range(101))
    assert float(read_text(IMPORTER, tmp_path, text).energy_j) == pytest.approx(0.033, rel=1e-3)


@pytest.mark.parametrize(
    "head", ["time,current,voltage", "Timestamp (s),Current (A)", "main current (A),x", "timestamp,main"]
)
def test_tables_of_others_are_not_claimed(tmp_path, head):
    file = tmp_path / "a.csv"
    file.write_text(f"{head}\n0,1,2\n")
    assert not claimed(IMPORTER, file)
