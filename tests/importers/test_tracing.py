"""Traces become runs: integrated as the live meters are, whatever the pieces they come in."""

from decimal import Decimal
from itertools import pairwise
from typing import ClassVar

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from carbonlens.importers import hours, tracing
from carbonlens.importers.claiming import each
from carbonlens.importers.contract import USUAL, Channel, Chunk, Facts, Group, Named, Options, Tally, Window
from carbonlens.importers.harvest import harvest
from carbonlens.importers.sources import Source, first_names
from carbonlens.importers.tables import Table, exact
from carbonlens.signals.integrate import integrate_power
from carbonlens.signals.sensor import Sensor
from tests.conformance.importers import ImporterContract

GPU = Channel(name="GPU 0", component="gpu", method="test")
SECOND = 1_000_000
DAY_US = 1_774_742_400 * SECOND
"""2026-03-29 00:00 UTC."""


class Given:
    """An importer of items that a test gives."""

    name, version, kind, rank = "given", 1, "trace", USUAL
    facts = Facts(title="t", reads="r", units="u", grade="g")

    def __init__(self, *items):
        self.items = items

    def claim(self, sources):
        return each(sources, lambda source: True)

    def read(self, group, options):
        yield from self.items


@pytest.fixture
def made(tmp_path):
    def of(*items, **options):
        file = tmp_path / "trace.txt"
        file.write_text("any\n")
        return harvest(Given(*items), Group((Source(file),)), Options(**options))

    return of


def chunk(times_s, watts, channel=GPU, **more):
    t_us = None if times_s is None else np.asarray(times_s, float) * SECOND + DAY_US
    return Chunk(channel=channel, t_us=t_us, values=np.asarray(watts, float), **more)


def codes(got):
    return [f.code for f in got.findings]


def test_steady_power_over_a_minute(made):
    got = made(GPU, chunk(range(61), [100.0] * 61))
    (record,) = got.records
    assert record.run.energy[0].energy_j == Decimal("6000.000000")
    assert (record.run.energy[0].grade, record.run.duration_s) == ("C", 60.0)
    assert (record.measured.samples, record.measured.mean_power_w) == (61, 100.0)
    assert record.measured.covered_s == pytest.approx(60.0)
    assert record.run.start_us == DAY_US
    assert record.run.energy[0].estimate.low < 6000 < record.run.energy[0].estimate.high


@given(
    st.lists(st.floats(0, 500), min_size=30, max_size=200),
    st.lists(st.integers(1, 60), max_size=6),
    st.integers(8, 64),
)
def test_pieces_and_blocks_change_no_energy(watts, cuts, block):
    """The last sample of a block is the first of the next: nothing falls between."""
    times = np.arange(len(watts)) * float(SECOND)
    whole = integrate_power(times, np.array(watts), 0.0, times[-1], Sensor(kind="instant"))
    series = tracing.Series(GPU, None, "f", Options())
    usual, tracing.BLOCK = tracing.BLOCK, block
    try:
        places = [0, *sorted({c for c in np.cumsum(cuts) if c < len(watts)}), len(watts)]
        for start, end in pairwise(places):
            series.take(Chunk(channel=GPU, t_us=times[start:end], values=np.array(watts[start:end])))
        series.close()
    finally:
        tracing.BLOCK = usual
    assert series.energy_j == pytest.approx(whole.estimate.value, rel=1e-9, abs=1e-9)
    assert series.covered_s == pytest.approx(whole.covered_s)
    assert series.span_s == pytest.approx(times[-1] / SECOND)


def test_a_gap_is_not_bridged(made):
    times = [*range(10), *range(100, 110)]
    (record,) = made(GPU, chunk(times, [100.0] * 20)).records
    told = record.measured
    assert told.covered_s + told.uncovered_s == pytest.approx(109.0)
    assert told.uncovered_s == pytest.approx(88.0)  # a sample stands for three periods at most
    assert record.run.energy[0].state == "unbounded"


def test_failed_readings_are_no_zeros(made):
    watts = [100.0, 100.0, float("nan"), 100.0, 100.0]
    got = made(GPU, chunk(range(5), watts))
    assert got.records[0].run.energy[0].energy_j == Decimal("400.000000")
    assert got.records[0].measured.samples == 4
    assert "CL125" in codes(got)


def test_two_hosts_are_two_runs(made):
    """ls1intum/edutelligence 591: merged before integrating, half of the energy is lost."""
    a, b = (Channel(name="GPU 0", host=h, component="gpu", method="m") for h in "ab")
    got = made(a, b, chunk(range(11), [100.0] * 11, a), chunk(range(11), [100.0] * 11, b))
    assert [float(r.stated_j) for r in got.records] == [1000.0, 1000.0]
    assert len({r.run.run_id for r in got.records}) == 2


def test_a_rail_that_another_holds_stands_beside(made):
    total = Channel(name="VDD_IN", component="total", method="m")
    part = Channel(name="VDD_SOC", component="soc", method="m", counted=False)
    got = made(total, part, chunk(range(11), [10.0] * 11, total), chunk(range(11), [4.0] * 11, part))
    (record,) = got.records
    assert record.stated_j == Decimal("100.000000")
    assert [r.devices for r in record.run.beside] == [("VDD_SOC",)]


def test_without_times_there_is_a_mean_and_no_energy(made):
    got = made(GPU, chunk(None, [4.0, 6.0]))
    (record,) = got.records
    assert (record.measured.mean_power_w, record.run.energy[0].energy_j) == (5.0, None)
    assert (record.run.duration_s, record.stated_j) == (None, None)
    assert "CL244" in codes(got)


def test_an_interval_gives_times_and_a_start_gives_hours(made):
    got = made(GPU, chunk(None, [6.0] * 23), interval_s=30.0)
    assert got.records[0].stated_j == Decimal("4140.000000")
    assert got.records[0].run.duration_s == pytest.approx(690.0)
    assert "CL245" in codes(got)
    placed = made(GPU, chunk(None, [6.0] * 23), interval_s=30.0, start_us=DAY_US)
    assert placed.records[0].run.start_us == DAY_US
    assert "CL245" not in codes(placed)


def test_one_sample_is_no_energy(made):
    got = made(GPU, chunk([0], [300.0]))
    assert got.records[0].run.energy[0].energy_j is None
    assert "CL244" in codes(got)


def test_a_clock_set_back_adds_its_parts_and_a_log_joined_to_itself_counts_once(made):
    night = chunk([*range(60), *range(59, 119)], range(120))
    back = made(GPU, chunk([*range(100, 160), *range(100, 160)], range(120)))
    assert back.records[0].run.duration_s == pytest.approx(118.0)
    assert "CL243" in codes(back)
    doubled = made(GPU, chunk([*range(60), *range(60)], [*range(60), *range(60)]))
    once = made(GPU, chunk(range(60), range(60)))
    assert doubled.records[0].stated_j == once.records[0].stated_j
    assert doubled.records[0].measured.samples == 60
    assert "CL201" in codes(doubled)
    assert len(made(GPU, night).records) == 1


def test_counters_and_deltas(made):
    counter = Channel(name="package", component="cpu", kind="counter", method="m")
    (record,) = made(counter, chunk(range(11), np.arange(11) * 50.0 + 7e6, counter)).records
    assert (float(record.stated_j), record.run.energy[0].grade) == (pytest.approx(500.0), "B")
    delta = Channel(name="package", component="cpu", kind="delta", method="m")
    got = made(delta, chunk(range(10), [5.0] * 10, delta, seconds=np.ones(10)))
    assert (float(got.records[0].stated_j), got.records[0].measured.covered_s) == (50.0, 10.0)
    assert got.records[0].measured.mean_power_w == 5.0


def test_energies_without_their_seconds_take_those_between_their_times(made):
    """Ten energies are of ten intervals, the first one's too, whatever the pieces they come in."""
    delta = Channel(name="package", component="cpu", kind="delta", method="m")
    whole = made(delta, chunk(range(10), [5.0] * 10, delta)).records[0]
    apart = made(delta, *(chunk([n], [5.0], delta) for n in range(10))).records[0]
    for record in (whole, apart):
        assert float(record.stated_j) == 50.0
        assert record.measured.covered_s == pytest.approx(10.0)
        assert record.measured.mean_power_w == pytest.approx(5.0)
        assert record.run.duration_s == pytest.approx(10.0)
        assert record.run.start_us == DAY_US - SECOND
    (lone,) = made(delta, chunk([0], [5.0], delta)).records
    assert (float(lone.stated_j), lone.measured.covered_s) == (5.0, None)


def test_an_energy_that_failed_is_lost_time_and_a_lower_bound(made):
    delta = Channel(name="package", component="cpu", kind="delta", method="m")
    (record,) = made(delta, chunk(range(10), [5.0] * 4 + [float("nan")] * 2 + [5.0] * 4, delta)).records
    assert (record.measured.covered_s, record.measured.uncovered_s) == (8.0, 2.0)
    assert (record.run.energy[0].state, record.run.lost_s) == ("unbounded", 2.0)


def test_energies_after_a_clock_was_set_back_are_of_the_usual_time(made):
    delta = Channel(name="package", component="cpu", kind="delta", method="m")
    (record,) = made(delta, chunk([*range(100, 110), *range(10)], [5.0] * 20, delta)).records
    assert record.measured.covered_s == pytest.approx(20.0)


@pytest.mark.parametrize(
    ("stated_s", "said"), [(1.0, []), (1000.0, ["CL249"]), (0.001, ["CL249"]), (0.5, []), (0.3, [])]
)
def test_seconds_of_energies_are_held_against_their_times(made, stated_s, said):
    """Milliseconds under seconds: each sample would take longer than there is between two."""
    delta = Channel(name="package", component="cpu", kind="delta", method="m")
    got = made(delta, chunk(range(20), [5.0] * 20, delta, seconds=np.full(20, stated_s)))
    assert [c for c in codes(got) if c == "CL249"] == said


@pytest.mark.parametrize("place", [1, 250, 499])
def test_a_counter_that_was_reset_is_a_lower_bound_however_short_the_loss(made, place):
    counter = Channel(name="p", component="cpu", kind="counter", method="m")
    joules = np.arange(500) * 50.0 + 1e6
    joules[place:] -= joules[place]
    (record,) = made(counter, chunk(range(500), joules, counter)).records
    assert record.run.lost_s == pytest.approx(1.0)
    assert record.run.energy[0].state == "unbounded"


@pytest.mark.parametrize(("every", "words"), [(5, 0), (10, 0), (10, 20)])
def test_a_slower_column_is_no_column_of_failed_readings(made, every, words):
    """Rows of a faster one leave its cells empty: it holds for its own period, not for theirs."""
    watts = np.full(1001, np.nan)
    watts[::every] = 100.0
    watts[: words * every] = np.nan
    got = made(GPU, chunk(range(1001), watts))
    (record,) = got.records
    assert record.measured.covered_s == pytest.approx(1000.0 - words * every)
    assert float(record.stated_j) == pytest.approx(100.0 * (1000.0 - words * every))
    assert "CL290" in codes(got)
    assert "CL125" not in codes(got)


@pytest.mark.parametrize("share", [0.1, 0.3])
def test_readings_that_fail_here_and_there_are_failed_ones(made, share):
    watts = np.where(np.random.default_rng(3).random(1001) < share, np.nan, 100.0)
    got = made(GPU, chunk(range(1001), watts))
    assert "CL125" in codes(got)
    assert "CL290" not in codes(got)


def test_a_block_that_ends_in_failed_readings_loses_nothing_of_the_one_before():
    series = tracing.Series(GPU, None, "f", Options())
    usual, tracing.BLOCK = tracing.BLOCK, 50
    watts = np.full(200, 100.0)
    watts[48:50] = watts[98:100] = np.nan
    try:
        for start in range(0, 200, 10):
            times = np.arange(start, start + 10) * float(SECOND)
            series.take(Chunk(channel=GPU, t_us=times, values=watts[start : start + 10]))
        series.close()
    finally:
        tracing.BLOCK = usual
    assert series.covered_s == pytest.approx(199.0)
    assert series.energy_j == pytest.approx(19_900.0)


def test_a_power_that_is_too_low_for_its_device_is_said(made):
    """Kilowatts under a header of watts."""
    card = Channel(name="GPU 0", component="gpu", method="m", least_w=1.0)
    (found,) = [f for f in made(card, chunk(range(11), [0.35] * 11, card)).findings if f.code == "CL248"]
    assert "kW would fit, under a header of W" in found.message
    assert "CL248" not in codes(made(GPU, chunk(range(11), [0.35] * 11)))


def test_a_counter_that_wraps_is_exact(made):
    counter = Channel(name="p", component="cpu", kind="counter", method="m", max_range_j=1000.0)
    (record,) = made(counter, chunk(range(4), [900.0, 990.0, 80.0, 170.0], counter)).records
    assert float(record.stated_j) == pytest.approx(270.0)


def test_only_the_window_counts(made):
    window = Window(start_us=DAY_US + 10 * SECOND, end_us=DAY_US + 20 * SECOND, why="testing")
    (record,) = made(window, GPU, chunk(range(31), [50.0] * 31)).records
    assert record.stated_j == Decimal("500.000000")
    assert (record.run.duration_s, record.measured.samples) == (10.0, 11)


def test_an_external_meter_without_a_specification_has_no_width(made):
    meter = Channel(name="wall", component="wall", boundary="it", grade="A", method="m")
    (plain,) = made(meter, chunk(range(11), [50.0] * 11, meter)).records
    assert plain.run.energy[0].estimate.low is None
    sure = Channel(name="wall", component="wall", boundary="it", grade="A", method="m", gain_95=0.01)
    (known,) = made(sure, chunk(range(5001), [50.0] * 5001, sure)).records
    assert known.run.energy[0].estimate.high == pytest.approx(252_500.0, rel=1e-3)


@given(st.integers(0, 7200), st.integers(2, 30_000), st.sampled_from([1.0, 7.0, 60.0]))
def test_hours_sum_to_the_energy_exactly(start_s, seconds, period_s):
    times = DAY_US + (start_s + np.arange(0, seconds, period_s)) * SECOND
    series = tracing.Series(GPU, None, "f", Options())
    series.take(Chunk(channel=GPU, t_us=times, values=np.linspace(10, 300, len(times))))
    series.close()
    if series.energy_j:
        told = series.reading("x")
        rows = hours.rows("gpu", series.hours_j, told.energy_j)
        assert not rows or sum(r.energy_j for r in rows) == told.energy_j
        first, last = int(times[0]) // (3600 * SECOND), int(times[-1] - 1) // (3600 * SECOND)
        assert {r.hour_utc for r in rows} <= set(range(first, last + 1))


def test_steady_power_over_three_hours_is_in_each_by_its_time(made):
    times = np.arange(1800, 1800 + 3 * 3600 + 1, 60)
    (record,) = made(GPU, chunk(times, [100.0] * len(times))).records
    by_hour = [float(r.energy_j) / 3600 for r in record.run.energy_by_hour]
    assert by_hour == pytest.approx([50.0, 100.0, 100.0, 50.0], rel=1e-6)


@pytest.mark.parametrize("kind", ["instant", "counter"])
def test_a_damaged_time_costs_no_memory(kind):
    times = np.array([0.0, 1e6, 9e15])
    shares = hours.split(times, np.array([1.0, 2.0, 3.0]), (0.0, 9e15), 3e6, kind=kind)
    assert shares == {0: 1.0}


@pytest.mark.parametrize(
    ("channel", "watts", "told"),
    [
        (GPU, 250_000.0, "mW would fit"),
        (Channel(name="x", component="gpu", method="m", unit="W"), -40.0, "below zero"),
    ],
)
def test_power_that_cannot_be_is_said(made, channel, watts, told):
    got = made(channel, chunk(range(11), [watts] * 11, channel))
    (found,) = (f for f in got.findings if f.code == "CL248")
    assert told in found.message


def test_names_of_a_trace_are_on_its_run(made):
    got = made(Named(workload="resnet", units=Decimal(10), unit="image"), GPU, chunk(range(9), [1.0] * 9))
    run = got.records[0].run
    assert (run.workload, run.units, run.unit) == ("resnet", Decimal(10), "image")


class Watts(Given):
    """A trace format of two columns, to hold the contract against."""

    name = "watts-of-a-test"
    facts = Facts(title="t", reads="r", units="u", grade="g", traps=("none",), tested_on=("here",))

    def claim(self, sources):
        return each(sources, lambda source: first_names(source) == ("t_s", "test_watts"))

    def read(self, group, options):
        source = group.main
        table = Table(source)
        yield GPU
        rows = bad = 0
        for line, cells in table.dicts():
            rows += 1
            try:
                if not isinstance(cells, dict):
                    raise ValueError("cells")
                at, watts = (exact(cells[c], delimiter=table.delimiter) for c in ("t_s", "test_watts"))
                if at is None or abs(at) > 10**9:
                    raise ValueError("time")
            except ValueError:
                bad += 1
                from carbonlens.importers.records import finding

                yield finding("CL202", "error", "a row is left out", source, line=line)
                continue
            yield chunk([float(at)], [np.nan if watts is None else float(watts)], line=line)
        yield Tally(rows=rows, rejected=bad)


class TestConformance(ImporterContract):
    """The contract holds a framework that integrates, not only importers of runs."""

    importer = Watts()
    files: ClassVar = {"a.csv": "t_s,test_watts\n" + "".join(f"{n},{100 + n % 3}.5\n" for n in range(40))}
    runs = 1
    energy_j = 3958.5
    delimiter = ","
    essential = ("t_s", "test_watts")
    clocks = True

    def test_only_it_claims_its_sample_whatever_the_name(self):
        """It is not installed: nobody else may claim what is its own."""

    def test_copies_in_a_folder_count_once(self):
        """It is not installed: an import does not know it."""
