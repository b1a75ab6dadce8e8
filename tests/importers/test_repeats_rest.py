"""What a part of a log tells beside what it repeats counts once, and nothing goes without proof."""

import numpy as np
import pytest

from carbonlens.importers import tracing
from carbonlens.importers.contract import Chunk, Options
from tests.importers.test_repeats import COUNTER, DELTA, POWER, TIMES, WATTS, codes, read, small, span

__all__ = ["small"]

RNG = np.random.default_rng(11)


def joined(*parts):
    return np.concatenate([span(*part) for part in parts])


def without(part, *gaps):
    return np.setdiff1d(span(*part), joined(*gaps))


@pytest.mark.parametrize("size", [173, 50_000])
@pytest.mark.parametrize("channel", [POWER, COUNTER, DELTA], ids=["power", "counter", "delta"])
@pytest.mark.parametrize(
    "places",
    [
        joined((200, 400), (0, 400)),
        joined((200, 400), (0, 300)),
        joined((200, 400), (0, 600)),
        joined((400, 600), (200, 420), (0, 220)),
        joined((1000, 2000), (100, 3000), (2400, 2600)),
        np.concatenate([without((0, 400), (100, 150)), span(50, 200)]),
        np.concatenate([without((0, 900), (200, 300), (500, 600)), span(150, 700)]),
        joined((0, 400), (100, 200), (400, 500)),
        joined((0, 100), (300, 400), (50, 350)),
    ],
    ids=[
        "newer half first",
        "rotated, newest first",
        "before and after",
        "three, newest first",
        "a copy of what was put elsewhere",
        "a gap",
        "two gaps",
        "a part of it, then on",
        "between two",
    ],
)
def test_what_is_new_beside_less_that_repeats_counts_once(places, channel, size):
    values = np.cumsum(WATTS) * 0.1 if channel is COUNTER else WATTS
    got = read(places, channel=channel, size=size, values=values)
    once = read(np.unique(places), channel=channel, values=values)
    assert got.energy_j == pytest.approx(once.energy_j, rel=1e-9)
    assert got.samples == once.samples
    assert codes(got) == ["CL201"]
    assert f"{len(places) - len(np.unique(places))} samples repeat" in got.findings[0].message
    if channel is not DELTA:
        assert got.covered_s == pytest.approx(once.covered_s)
        assert got.uncovered_s == pytest.approx(0.0, abs=1e-9)


def test_one_sample_long_after_a_copy_is_not_held_for_that_time():
    got, once = read([*joined((0, 400), (0, 400)), 9000]), read([*span(0, 400), 9000])
    assert once.energy_j - 3 * 0.1 * WATTS[399] <= got.energy_j <= once.energy_j * (1 + 1e-9)
    assert got.samples == once.samples


@pytest.mark.parametrize("channel", [POWER, DELTA], ids=["power", "delta"])
def test_what_is_no_longer_at_hand_is_left_out_where_it_is_known(channel):
    """Of sums of samples the first and the last are seldom whole: those count, and it is said."""
    places = joined((9000, 9500), (0, 20_000))
    got, once = read(places, channel=channel), read(np.unique(places), channel=channel)
    assert once.samples <= got.samples <= once.samples + 2 * 32
    assert once.energy_j * (1 - 1e-9) <= got.energy_j <= once.energy_j * 1.005
    assert codes(got) == ["CL243", "CL201", "CL243"]
    assert "at times that were told before, beside some that repeat; added up" in got.findings[-1].message


def times_of(kind, count):
    if kind == "coarse":  # of a clock of whole seconds, each 1.1 s
        return np.floor(np.arange(count) * 1.1) * 1e6
    return TIMES[:count]


@pytest.mark.parametrize("channel", [POWER, DELTA], ids=["power", "delta"])
@pytest.mark.parametrize("kind", ["even", "coarse"])
@pytest.mark.parametrize(
    "watts",
    [
        np.full(3600, 60.0),
        RNG.integers(60, 62, 3600).astype(float),
        np.where(RNG.uniform(size=3600) < 0.02, 61.0, 60.0),
        np.round(RNG.uniform(50, 400, 3600), 2),
    ],
    ids=["one", "two", "seldom another", "many"],
)
def test_nothing_is_left_out_of_a_time_that_happens_twice(watts, kind, channel):
    """A clock that was set back, over power that is like the one before: equal samples are by chance."""
    t_us = times_of(kind, 2400)[joined((600, 1800), (0, 2400))]
    series = tracing.Series(channel, None, "f", Options())
    series.take(Chunk(channel=channel, t_us=t_us, values=watts))
    series.close()
    assert series.samples == len(watts)
    assert codes(series) == ["CL243"]
    assert series.energy_j >= watts.sum() * 0.0999 if channel is POWER else watts.sum() * (1 - 1e-9)


@pytest.mark.parametrize("channel", [POWER, DELTA], ids=["power", "delta"])
def test_one_power_all_the_time_repeats_where_its_times_are_uneven(channel):
    t_us = TIMES[:2400] + np.round(np.random.default_rng(3).uniform(0, 9000, 2400))
    t_us = t_us[joined((600, 1800), (0, 2400))]
    series = tracing.Series(channel, None, "f", Options())
    series.take(Chunk(channel=channel, t_us=t_us, values=np.full(len(t_us), 60.0)))
    series.close()
    assert (series.samples, codes(series)) == (2400, ["CL201"])


@pytest.mark.parametrize("seed", range(25))
def test_joined_windows_of_a_log_count_each_second_once(monkeypatch, seed):
    monkeypatch.setattr(tracing, "BLOCK", 1 << 20)
    rng = np.random.default_rng(seed)
    parts = []
    for _ in range(int(rng.integers(2, 5))):
        first = int(rng.integers(0, 2000))
        part = span(first, first + int(rng.integers(100, 1500)))
        for gap in rng.integers(part[0], part[-1], int(rng.integers(0, 3))).tolist():
            part = np.setdiff1d(part, span(gap, gap + int(rng.integers(1, 200))))
        parts.append(part)
    places = np.concatenate(parts)
    got, once = read(places, size=50_000), read(np.unique(places))
    each = sum(read(part).energy_j for part in parts)
    assert got.samples >= once.samples
    # At gaps, and where the clock goes back between parts, a power may be held some steps more or less.
    assert got.energy_j == pytest.approx(once.energy_j, rel=0.02)
    assert got.energy_j <= each * (1 + 1e-2)
