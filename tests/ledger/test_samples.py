"""Stored samples integrate to the energy their numbers say, by day and in any order."""

from decimal import Decimal
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from carbonlens.errors import RecordError
from carbonlens.ledger import compaction, layout, parquet, samples
from carbonlens.ledger.store import Ledger
from carbonlens.ledger.verify import verify
from tests.ledger.test_store import make_run

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
    merged, _ = samples.merge(tmp_path, "20251128")
    assert found(tmp_path) == before
    assert sorted(f.name for f in folder.glob("*.parquet")) == [merged.name]
    # Stopped before the old files went: they are in the manifest and do not count.
    for file, content in singles.items():
        file.write_bytes(content)
    assert found(tmp_path) == before
    # Stopped before the manifest was there: the new file does not count yet.
    merged.with_suffix(".json").unlink()
    assert found(tmp_path) == before
    assert samples.merge(tmp_path, "20251128")[0] == merged
    assert found(tmp_path) == before


def test_a_late_run_of_a_merged_day_counts_too(tmp_path):
    for name in "ab":
        samples.write(tmp_path, name, {"gpu": regular(5)})
    samples.merge(tmp_path, "20251128")
    samples.write(tmp_path, "late", {"gpu": regular(5)})
    assert samples.merge(tmp_path, "20251128")[0] is None
    assert [run for run, _ in found(tmp_path)] == ["a", "b", "late"]


@pytest.mark.parametrize("merged", [False, True])
def test_more_samples_of_a_run_are_stored_and_none_twice(tmp_path, merged):
    series = regular(50)
    samples.write(tmp_path, "other", {"gpu": series})
    samples.write(tmp_path, "r", {"gpu": series[10:20]})
    if merged:
        samples.merge(tmp_path, "20251128")
    samples.write(tmp_path, "r", {"cpu": series[:5]})
    for more in (series[10:20], series[10:30], series[29:40], series, series):
        assert all(f.exists() for f in samples.write(tmp_path, "r", {"gpu": more}))
    assert len(list(tmp_path.rglob("*.parquet"))) == (5 if merged else 6)
    energies = found(tmp_path)
    assert energies["r", "cpu"].energy_j == trapezoid(series[:5])
    assert energies["r", "gpu"].energy_j == energies["other", "gpu"].energy_j == trapezoid(series)
    samples.merge(tmp_path, "20251128")
    assert found(tmp_path) == energies
    assert sample_findings(tmp_path) == []


def test_other_samples_of_a_time_that_is_stored_are_refused(tmp_path):
    series = regular(20)
    samples.write(tmp_path, "r", {"gpu": series})
    finer = regular(40, step_us=50_000)
    for other in (
        [(t, p + 1) for t, p in series],
        finer,
        series[::2],
        [(NOON + 1, 1.0)],
        [series[0], (MIDNIGHT - 1, 1.0)],
    ):
        with pytest.raises(RecordError, match="stored for the same time"):
            samples.write(tmp_path, "r", {"gpu": other})
    assert found(tmp_path)["r", "gpu"].energy_j == trapezoid(series)


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


def three_runs(folder):
    ledger = Ledger(folder)
    for name in "abc":
        ledger.append(make_run(name, start_us=NOON))
        ledger.add_samples(name, {"gpu": regular(50)})
    return ledger


def sample_findings(folder):
    return [(f.code, f.severity) for f in verify(folder, now_us=NOON + 10**12).findings]


def test_compaction_merges_the_days_of_past_months_and_verify_takes_them(tmp_path):
    ledger = three_runs(tmp_path)
    before = ledger.sampled_energy()
    assert sample_findings(tmp_path) == []
    assert compaction.compact(tmp_path, before="202511").days == ()
    assert compaction.compact(tmp_path, before="202512").days == ("20251128",)
    assert compaction.compact(tmp_path, before="202512").days == ()
    names = sorted(f.suffix for f in (tmp_path / "samples" / "20251128").iterdir())
    assert names == [".json", ".parquet"]
    assert ledger.sampled_energy() == before
    assert sample_findings(tmp_path) == []


def test_what_a_cut_off_merging_left_is_told_and_the_next_removes_it(tmp_path):
    ledger = three_runs(tmp_path)
    before = ledger.sampled_energy()
    folder = tmp_path / "samples" / "20251128"
    (file,) = folder.glob("a-*.parquet")
    content = file.read_bytes()
    merged, _ = samples.merge(tmp_path, "20251128")
    file.write_bytes(content)
    assert sample_findings(tmp_path) == [("CL515", "info")]
    assert samples.merge(tmp_path, "20251128")[0] is None
    assert sorted(f.name for f in folder.iterdir()) == [merged.with_suffix(".json").name, merged.name]
    assert ledger.sampled_energy() == before
    merged.with_suffix(".json").unlink()
    assert ("CL515", "info") in sample_findings(tmp_path)


@pytest.mark.parametrize("fault", ["torn", "manifest", "renamed", "gone", "moved", "doubled", "negative"])
def test_samples_that_were_altered_are_a_mismatch(tmp_path, fault):
    three_runs(tmp_path)
    merged, _ = samples.merge(tmp_path, "20251128")
    manifest = merged.with_suffix(".json")
    altered = {
        "moved": "SELECT * REPLACE (t_us + 86400000000 AS t_us)",
        "negative": "SELECT * REPLACE (-power_mw AS power_mw)",
        "doubled": f"SELECT * FROM '{merged}' UNION ALL SELECT *",
    }
    if fault == "torn":
        merged.write_bytes(merged.read_bytes()[:200])
    elif fault == "manifest":
        manifest.write_text("{")
    elif fault == "renamed":
        manifest.write_text('{"files": ["a.parquet"]}')
    elif fault == "gone":
        merged.unlink()
    else:
        connection = parquet.connect()
        connection.execute(f"COPY ({altered[fault]} FROM '{merged}') TO '{merged}.x' (FORMAT parquet)")
        connection.close()
        merged.with_name(merged.name + ".x").replace(merged)
    assert ("CL510", "error") in sample_findings(tmp_path) or ("CL524", "error") in sample_findings(tmp_path)
    assert not verify(tmp_path, now_us=NOON + 10**12).sound
    Ledger(tmp_path).sampled_energy()


def test_a_run_id_that_is_no_file_name_stays_inside_its_day(tmp_path):
    for name in ("../../x", "merged-1", ".hidden", "a" * 300, "röd"):
        Ledger(tmp_path).add_samples(name, {"gpu": regular(5)})
    assert {f.parent for f in tmp_path.rglob("*.parquet")} == {tmp_path / "samples" / "20251128"}
    energies, findings = Ledger(tmp_path).sampled_energy()
    assert findings == []
    assert {e.run_id for e in energies} == {"../../x", "merged-1", ".hidden", "a" * 300, "röd"}
    assert samples.merge(tmp_path, "20251128")[0] is not None
    assert sample_findings(tmp_path) == []


@pytest.mark.parametrize("content", [b"", b"PAR1", b"torn" * 99])
def test_a_torn_file_keeps_no_other_day_or_file_from_being_merged(tmp_path, content):
    for i, day in enumerate((NOON, NOON + 24 * 3_600_000_000)):
        for run in ("a", "b", "c"):
            samples.write(tmp_path, f"{run}{i}", {"gpu": regular(20, day)})
    expected = found(tmp_path)
    (torn,) = samples.write(tmp_path, "torn", {"gpu": regular(20)})
    torn.write_bytes(content)
    done = compaction.compact(tmp_path, before="202612")
    assert done.days == ("20251128", "20251129")
    assert [(f.code, f.file) for f in done.findings] == [("CL524", str(torn))]
    energies, _ = samples.energy(tmp_path)
    assert {(e.run_id, e.device): e for e in energies} == expected
    assert torn.read_bytes() == content


@pytest.mark.parametrize(
    "sample",
    [(NOON, float("nan")), (NOON, float("inf")), (NOON, -0.5), (NOON, 3e6), (10**30, 1.0), (-(10**18), 1.0)],
)
def test_an_impossible_sample_is_refused_and_nothing_is_written(tmp_path, sample):
    with pytest.raises(RecordError, match="impossible"):
        Ledger(tmp_path).add_samples("r", {"cpu": regular(3), "gpu": [sample]})
    assert found(tmp_path) == {}


@pytest.mark.parametrize("moment", range(8))
def test_a_day_that_another_host_merges_meanwhile_is_counted_whole(tmp_path, monkeypatch, moment):
    """The merging happens before the n-th time that a folder is listed."""
    for run in ("a", "b", "c"):
        samples.write(tmp_path, run, {"gpu": regular(20)})
    before = found(tmp_path)
    (day,) = samples.days(tmp_path)
    listed = layout.files_in
    calls = iter(range(1000))

    def listed_late(folder, suffix):
        if next(calls) == moment:
            monkeypatch.setattr(layout, "files_in", listed)
            samples.merge(tmp_path, day)
        return listed(folder, suffix)

    monkeypatch.setattr(layout, "files_in", listed_late)
    assert found(tmp_path) == before


def test_a_file_that_goes_away_after_it_was_listed_is_no_loss(tmp_path, monkeypatch):
    for run in ("a", "b"):
        samples.write(tmp_path, run, {"gpu": regular(20)})
    before = found(tmp_path)
    (day,) = samples.days(tmp_path)
    counted = samples.counting

    def counted_early(folder):
        monkeypatch.setattr(samples, "counting", counted)
        files = counted(folder)
        samples.merge(tmp_path, day)
        return files

    monkeypatch.setattr(samples, "counting", counted_early)
    assert found(tmp_path) == before
