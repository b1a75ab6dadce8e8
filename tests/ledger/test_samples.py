"""Stored samples integrate to the energy their numbers say, by day and in any order."""

from decimal import Decimal
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from carbonlens.errors import RecordError
from carbonlens.ledger import samples

NOON = 1_764_331_200_000_000
MIDNIGHT = NOON + 12 * 3_600_000_000


def trapezoid(series):
    pairs = pairwise(series)
    return sum(Decimal(round(p * 1000) + round(q * 1000)) * (u - t) for (t, p), (u, q) in pairs) / (2 * 10**9)


def regular(n, start=NOON, step_us=100_000, power=lambda i: 100 + i % 7):
    return [(start + i * step_us, float(power(i))) for i in range(n)]


def found(ledger, **more):
    energies, findings = samples.energy(ledger, **more)
    assert findings == []
    return {(e.run_id, e.device): e for e in energies}


def test_a_run_over_midnight_loses_no_interval(tmp_path):
    series = regular(100, MIDNIGHT - 5_000_000)
    files = samples.write(tmp_path, "r", {"gpu": series})
    assert [f.parent.name for f in files] == samples.days(tmp_path) == ["20251128", "20251129"]
    (energy,) = found(tmp_path).values()
    assert energy.energy_j == trapezoid(series)
    assert (energy.samples, energy.covered_s, energy.gap_s) == (100, 9.9, 0.0)


@settings(max_examples=20, deadline=None)
@given(
    steps=st.lists(st.integers(0, 9_000_000), min_size=1, max_size=30),
    powers=st.lists(st.floats(0, 1e5), min_size=31, max_size=31),
)
def test_any_series_is_the_trapezoid_rule(tmp_path_factory, steps, powers):
    times = [NOON]
    for step in steps:
        times.append(times[-1] + step)
    series = list(zip(times, powers, strict=False))
    ledger = tmp_path_factory.mktemp("ledger")
    samples.write(ledger, "r", {"gpu": series})
    (energy,) = found(ledger).values()
    assert energy.energy_j == pytest.approx(trapezoid(series), abs=Decimal("0.000001"))


def test_runs_and_devices_are_apart(tmp_path):
    samples.write(tmp_path, "a", {"gpu0": regular(10), "gpu1": regular(20)})
    samples.write(tmp_path, "b", {"gpu0": regular(30)})
    assert {k: e.samples for k, e in found(tmp_path).items()} == {
        ("a", "gpu0"): 10,
        ("a", "gpu1"): 20,
        ("b", "gpu0"): 30,
    }


def test_a_long_gap_is_not_covered(tmp_path):
    series = [*regular(5), *regular(5, NOON + 60_000_000)]
    samples.write(tmp_path, "r", {"gpu": series})
    (energy,) = found(tmp_path).values()
    assert energy.energy_j == trapezoid(series[:5]) + trapezoid(series[5:])
    assert energy.covered_s == pytest.approx(0.8)
    assert energy.gap_s == pytest.approx(59.6)
    (whole,) = found(tmp_path, longest_gap_s=100).values()
    assert whole.energy_j == trapezoid(series)


def test_one_sample_tells_no_energy(tmp_path):
    samples.write(tmp_path, "r", {"gpu": regular(1)})
    (energy,) = found(tmp_path).values()
    assert (energy.energy_j, energy.samples) == (None, 1)


def test_samples_that_go_back_in_time_are_refused(tmp_path):
    with pytest.raises(RecordError, match="back in time"):
        samples.write(tmp_path, "r", {"gpu": [(NOON, 1.0), (NOON - 1, 1.0)]})


def test_merging_a_day_changes_no_figure_wherever_it_stops(tmp_path):
    for name in "abc":
        samples.write(tmp_path, name, {"gpu": regular(50)})
    before = found(tmp_path)
    folder = tmp_path / "samples" / "20251128"
    singles = {f: f.read_bytes() for f in folder.glob("*.parquet")}
    merged = samples.merge(tmp_path, "20251128")
    assert found(tmp_path) == before
    assert sorted(f.name for f in folder.glob("*.parquet")) == [merged.name]
    # Stopped before the old files went: they are in the manifest and do not count.
    for file, content in singles.items():
        file.write_bytes(content)
    assert found(tmp_path) == before
    # Stopped before the manifest was there: the new file does not count yet.
    merged.with_suffix(".json").unlink()
    assert found(tmp_path) == before
    assert samples.merge(tmp_path, "20251128") == merged
    assert found(tmp_path) == before


def test_a_late_run_of_a_merged_day_counts_too(tmp_path):
    for name in "ab":
        samples.write(tmp_path, name, {"gpu": regular(5)})
    samples.merge(tmp_path, "20251128")
    samples.write(tmp_path, "late", {"gpu": regular(5)})
    assert samples.merge(tmp_path, "20251128") is None
    assert [run for run, _ in found(tmp_path)] == ["a", "b", "late"]


def test_a_damaged_file_is_named_and_the_others_count(tmp_path):
    samples.write(tmp_path, "a", {"gpu": regular(5)})
    (bad,) = samples.write(tmp_path, "b", {"gpu": regular(5)})
    bad.write_bytes(bad.read_bytes()[:100])
    energies, findings = samples.energy(tmp_path)
    assert [e.run_id for e in energies] == ["a"]
    assert [(f.code, f.file) for f in findings] == [("CL524", str(bad))]


def test_an_empty_ledger_has_no_samples(tmp_path):
    assert samples.energy(tmp_path) == ([], [])
    assert samples.days(tmp_path) == []
