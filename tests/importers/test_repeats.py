"""A log that is in one file twice, whole or in part, counts once, in whatever blocks it is read."""

import numpy as np
import pytest

from carbonlens.importers import repeats, tracing
from carbonlens.importers.contract import Channel, Chunk, Options
from carbonlens.importers.harvest import measured

SECOND = 1_000_000
POWER = Channel(name="GPU 0", component="gpu", method="test")
DELTA = Channel(name="cpu", component="cpu", kind="delta", method="test")
COUNTER = Channel(name="package", component="cpu", kind="counter", method="test")
RNG = np.random.default_rng(7)
WATTS = np.round(RNG.uniform(50, 400, 20_000), 2)
TIMES = np.arange(len(WATTS)) * 0.1 * SECOND


@pytest.fixture(autouse=True)
def small(monkeypatch):
    """Blocks of 4096 samples, and sums of 32 steps: a log of some thousand samples has several."""
    monkeypatch.setattr(tracing, "BLOCK", 4096)
    monkeypatch.setattr(repeats, "BUCKET", 32)


def read(places, *, channel=POWER, size=1000, values=WATTS):
    """Return the series of the samples at these places of the log, in this order."""
    places = np.asarray(places)
    series = tracing.Series(channel, None, "f", Options())
    for start in range(0, len(places), size):
        some = places[start : start + size]
        series.take(Chunk(channel=channel, t_us=TIMES[some], values=values[some]))
    series.close()
    return series


def codes(series):
    return [f.code for f in series.findings]


def span(first, end):
    return np.arange(first, end)


@pytest.mark.parametrize(
    ("parts", "repeated"),
    [
        ([(0, 9000), (0, 9000)], 9000),
        ([(0, 20_000), (0, 20_000)], 20_000),
        ([(0, 4095), (0, 4095)], 4095),
        ([(0, 4100), (0, 4100)], 4100),
        ([(0, 9000), (0, 9000), (0, 9000)], 18_000),
        ([(0, 9000), (6000, 15_000)], 3000),
        ([(0, 2000), (1500, 3500)], 500),
        ([(0, 15_000), (3000, 12_000), (12_000, 20_000)], 12_000),
        ([(0, 15_000), (1000, 1600)], 600),
        ([(0, 12_000), (500, 20_000), (300, 20_000)], 11_500 + 19_700),
    ],
)
@pytest.mark.parametrize("size", [173, 1000, 50_000])
@pytest.mark.parametrize("channel", [POWER, COUNTER, DELTA], ids=["power", "counter", "delta"])
def test_what_is_in_a_log_twice_counts_once(parts, repeated, size, channel):
    values = np.cumsum(WATTS) * 0.1 if channel is COUNTER else WATTS
    places = np.concatenate([span(*p) for p in parts])
    got = read(places, channel=channel, size=size, values=values)
    once = read(np.unique(places), channel=channel, values=values)
    assert got.energy_j == pytest.approx(once.energy_j, rel=1e-9)
    assert (got.samples, got.covered_s) == (once.samples, pytest.approx(once.covered_s))
    assert got.mean_w == pytest.approx(once.mean_w)
    assert codes(got) == ["CL201"]
    assert f"{repeated} samples repeat earlier ones" in got.findings[0].message


@pytest.mark.parametrize("size", [173, 50_000])
def test_energies_keep_their_own_seconds_where_others_repeat(size):
    places = np.array([*span(0, 9000), *span(6000, 15_000)])
    lengths = np.linspace(0.05, 0.15, len(WATTS))
    series = tracing.Series(DELTA, None, "f", Options())
    for start in range(0, len(places), size):
        some = places[start : start + size]
        series.take(Chunk(channel=DELTA, t_us=TIMES[some], values=WATTS[some], seconds=lengths[some]))
    series.close()
    assert series.energy_j == pytest.approx(WATTS[:15_000].sum())
    assert series.covered_s == pytest.approx(lengths[:15_000].sum())


def test_how_many_seconds_repeat_is_said():
    got = read([*span(0, 9000), *span(6000, 15_000)])
    assert "over 299.9 s; counted once" in got.findings[0].message


def test_readings_that_failed_repeat_as_others_do():
    watts = np.where(np.arange(len(WATTS)) % 7 == 0, np.nan, WATTS)
    got, once = read([*span(0, 9000), *span(0, 9000)], values=watts), read(span(0, 9000), values=watts)
    assert (got.energy_j, got.samples) == (pytest.approx(once.energy_j, rel=1e-9), once.samples)


@pytest.mark.parametrize("ahead", [3000, 9000])
def test_a_clock_that_was_set_back_over_other_power_adds_its_parts(ahead):
    """An hour happens twice on a night in autumn: the second one's power is its own."""
    series = tracing.Series(POWER, None, "f", Options())
    t_us = np.concatenate([TIMES[:ahead], TIMES[ahead - 2000 : ahead + 7000]])
    watts = WATTS[: len(t_us)]
    for start in range(0, len(t_us), 1000):
        series.take(Chunk(channel=POWER, t_us=t_us[start : start + 1000], values=watts[start : start + 1000]))
    series.close()
    assert codes(series) == ["CL243"]
    assert series.samples == len(t_us)
    assert series.covered_s == pytest.approx((len(t_us) - 2) * 0.1)


@pytest.mark.parametrize(("channel", "seconds"), [(POWER, 699.8), (DELTA, 700.0)], ids=["power", "delta"])
def test_equal_power_all_the_time_is_no_repetition_of_a_part(channel, seconds):
    """Its times may be equal too where a clock of whole seconds was set back."""
    steady = np.full(len(WATTS), 60.0)
    got = read([*span(0, 3000), *span(2000, 6000)], channel=channel, values=steady)
    assert codes(got) == ["CL243"]
    assert got.covered_s == pytest.approx(seconds)


def test_the_memory_of_a_long_log_is_bounded(monkeypatch):
    monkeypatch.setattr(repeats, "_MOST_BUCKETS", 64)
    got, once = read([*span(0, 20_000), *span(0, 20_000)]), read(span(0, 20_000))
    assert len(got._repeats._memory._sums) <= 64
    assert got.energy_j == pytest.approx(once.energy_j, rel=1e-9)


def test_covered_and_uncovered_seconds_are_the_span():
    """A second is covered when each device tells of it, as of a run's readings."""
    whole = read(span(0, 1000))
    with_gap = read([*span(0, 300), *span(700, 1000)])
    for order in ([whole, with_gap], [with_gap, whole]):
        told = measured(order)
        assert told.covered_s == pytest.approx(with_gap.covered_s)
        assert told.covered_s + told.uncovered_s == pytest.approx(99.9)
    assert measured([whole]).uncovered_s == pytest.approx(0.0, abs=1e-9)


@pytest.mark.parametrize(
    "parts", [[(3000, 6000), (0, 6000)], [(3000, 6000), (0, 3002)], [(9000, 9500), (0, 20_000)]]
)
@pytest.mark.parametrize("size", [173, 50_000])
@pytest.mark.parametrize("channel", [POWER, DELTA], ids=["power", "delta"])
def test_what_a_log_tells_for_the_first_time_is_no_repetition(parts, size, channel):
    """A tail before the whole, or rotated logs joined with the newest first: nothing of it is lost."""
    places = np.concatenate([span(*p) for p in parts])
    got, once = read(places, channel=channel, size=size), read(np.unique(places), channel=channel)
    assert got.samples >= once.samples
    assert got.energy_j >= once.energy_j * (1 - 1e-9)


@pytest.mark.parametrize("size", [173, 50_000])
@pytest.mark.parametrize("channel", [POWER, COUNTER, DELTA], ids=["power", "counter", "delta"])
@pytest.mark.parametrize(
    "lacking",
    [
        [(800, 890)],
        [(3, 4)],
        [(100, 130), (500, 540), (1990, 1999)],
        [(n, n + 1) for n in range(20, 1900, 20)],
    ],
)
def test_what_a_copy_tells_beside_what_it_repeats_counts(lacking, size, channel):
    """The first was cut from a damaged file, say, and the whole one appended to it."""
    values = np.cumsum(WATTS) * 0.1 if channel is COUNTER else WATTS
    whole = span(0, 2000)
    first = np.setdiff1d(whole, np.concatenate([span(*gap) for gap in lacking]))
    got = read([*first, *whole], channel=channel, size=size, values=values)
    once = read(whole, channel=channel, values=values)
    assert (got.samples, got.energy_j) == (once.samples, pytest.approx(once.energy_j, rel=1e-9))
    assert codes(got) == ["CL201"]
    assert f"{len(first)} samples repeat earlier ones" in got.findings[0].message
    if channel is not DELTA:
        assert (got.covered_s, got.uncovered_s) == (
            pytest.approx(once.covered_s),
            pytest.approx(0.0, abs=1e-9),
        )


@pytest.mark.parametrize("channel", [POWER, DELTA], ids=["power", "delta"])
def test_another_value_at_a_time_that_was_told_is_no_repetition_and_not_added(channel):
    series = tracing.Series(channel, None, "f", Options())
    other = np.where(np.arange(1000) % 11, WATTS[:1000], 1.0)
    for values in (WATTS[:1000], other):
        series.take(Chunk(channel=channel, t_us=TIMES[:1000], values=values))
    series.close()
    assert series.energy_j == pytest.approx(read(span(0, 1000), channel=channel).energy_j)
    assert codes(series) == ["CL201", "CL299"]
    assert "909 samples repeat" in series.findings[0].message
    assert "91 samples stand" in series.findings[1].message


@pytest.mark.parametrize("channel", [POWER, DELTA], ids=["power", "delta"])
def test_one_power_all_the_time_at_earlier_times_is_not_said_to_be_known(channel):
    """A board without a battery for its clock begins each time at the same moment."""
    steady = np.full(len(WATTS), 9.0)
    boots = [*span(0, 3000), *span(0, 1200), *span(0, 2000)]
    got, once = (
        read(boots, channel=channel, values=steady),
        read(span(0, 3000), channel=channel, values=steady),
    )
    assert got.energy_j == pytest.approx(once.energy_j)
    assert codes(got) == ["CL299"]
    assert "3200 samples stand" in got.findings[0].message
    assert (got.reading("f").state, once.reading("f").state) == ("unbounded", "known")


@pytest.mark.parametrize(("parts", "is_even"), [([(0, 2000)] * 2, True), ([(0, 3000), (100, 1900)], False)])
def test_one_power_all_the_time_repeats_where_its_times_or_its_ends_tell(monkeypatch, parts, is_even):
    if not is_even:
        monkeypatch.setitem(globals(), "TIMES", TIMES + np.round(RNG.uniform(0, 9000, len(TIMES))))
    got = read(np.concatenate([span(*p) for p in parts]), values=np.full(len(WATTS), 9.0))
    assert codes(got) == ["CL201"]
    assert got.reading("f").state == "known"


@pytest.mark.parametrize("channel", [POWER, DELTA], ids=["power", "delta"])
def test_a_part_is_compared_with_those_alone_that_it_may_repeat(monkeypatch, channel):
    """A clock that goes back all the time makes as many parts as a log is long."""
    met, match = [], repeats._match
    monkeypatch.setattr(repeats, "_match", lambda *a, **k: met.append(1) or match(*a, **k))
    n = np.arange(20_000)
    series = tracing.Series(channel, None, "f", Options())
    monkeypatch.setattr(tracing, "BLOCK", 1 << 20)
    series.take(Chunk(channel=channel, t_us=TIMES[n - 10 * (n // 60)], values=WATTS))
    series.close()
    assert codes(series).count("CL243") == 20_000 // 60
    assert len(met) < 20_000 // 60


def test_the_memory_of_a_clock_that_restarts_at_one_time_is_bounded(monkeypatch):
    monkeypatch.setattr(repeats, "_MOST_BUCKETS", 64)
    memory = repeats._Memory()
    for _ in range(200):
        memory.add(TIMES[:320], RNG.uniform(50, 400, 320), goes_on=False)
    assert sum(map(len, memory._sums.values())) <= 2 * 64 + 320 // 32 + 1
    memory.add(TIMES[:320], WATTS[:320], goes_on=False)
    assert memory.known(TIMES[:320], WATTS[:320]).all()
