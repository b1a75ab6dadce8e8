"""Real files of many tools against their right totals, where those lie beside the project.

Each file that an installed importer claims is read; what the list beside the files says of it
must come out within 0.1 %. Totals of traces there are trapezoids from first to last sample
with gaps bridged: they check the samples as parsed, here. What an import reports is another
thing: it does not bridge gaps, and covered and uncovered seconds make up the span.
"""

import json
import math
from collections import defaultdict
from pathlib import Path

import numpy as np
import pytest

from carbonlens.app.importing import import_files
from carbonlens.importers.claiming import claims, importers
from carbonlens.importers.contract import Channel, Chunk, Options, Window
from carbonlens.importers.sources import sources_of

CASES = Path(__file__).parents[2] / ".." / "shared" / "cases"
FILES = CASES / "files"
WITHIN = 1e-3
INTERVALS_S = {"dmon01_20streams.txt": 30.0, "teg03_nano_pom.csv": 0.25}
"""Periods that stand in the list and not in the files: a user gives them by --interval."""

BILLS_AND_TABLES = {
    *("AWS Cost and Usage Report", "Azure billing export", "OpenCost allocation API", "GCP region carbon"),
    *("hourly carbon intensity", "CCF grid factors", "Green Algorithms intensity table"),
    *("CCF on-premise input", "Electricity Maps hourly CSV"),
}
"""Kinds that are no runs and no traces: bills and factor tables have tests of their own."""

RUN_KEYS = {"energy_kwh": "energy_kwh", "emissions_kg": "emissions_reported_kg", "duration_s": "duration_s"}
NOT_MEASURED = {"ct01_output_zero.log"}
"""The list says 0 kWh of these, and that no measurement must be reported: unknown, and said."""


def entries():
    """Return the list's entries with the files of each that are there."""
    if not FILES.exists():
        return []
    found = []
    for entry in json.loads((CASES / "files.json").read_text("utf-8")):
        paths = sorted(FILES.glob(entry["file"]))
        if paths and entry["kind"] not in BILLS_AND_TABLES:
            found.append((entry, paths))
    return found


def claimed(paths):
    """Return who reads the files."""
    sources = [s for p in paths for s in sources_of(p) if s.fault is None]
    return claims(sources, importers())[0]


ALL = entries()
READ = [(entry, paths) for entry, paths in ALL if claimed(paths)]
RUNS = [(e, p) for e, p in READ if "runs" in e["totals"]]
TRACES = [(e, p) for e, p in READ if "samples" in e["totals"] and "runs" not in e["totals"]]
needs_files = pytest.mark.skipif(not FILES.exists(), reason="../shared/cases is not here")


def ids(found):
    return [entry["file"] for entry, _ in found]


def imported(paths, folder, **placing):
    from carbonlens.app.importing import Placing

    return import_files(paths, ledger=folder / "ledger", placing=Placing(**placing))


@needs_files
@pytest.mark.parametrize(("entry", "paths"), RUNS, ids=ids(RUNS))
def test_runs_come_to_their_totals(tmp_path, entry, paths):
    expected = entry["totals"]
    got = imported(paths, tmp_path, interval_s=INTERVALS_S.get(entry["file"])).totals
    assert got.runs == expected["runs"]
    if entry["file"] in NOT_MEASURED:
        assert (got.energy_kwh, got.emissions_reported_kg) == (None, None)
        assert got.duration_s == expected["duration_s"]
        return
    for key, name in RUN_KEYS.items():
        if expected.get(key) is not None and expected["runs"]:
            assert getattr(got, name) == pytest.approx(expected[key], rel=WITHIN, abs=1e-12), key
    if "bad_rows" in expected:
        assert (got.rows, got.rows_rejected) == (expected["rows"], expected["bad_rows"])


def parsed(paths, interval_s):
    """Return each counted channel's samples and the window, as an importer parses them."""
    options = Options(interval_s=interval_s)
    series, window = defaultdict(list), None
    for claim in claimed(paths):
        for item in claim.importer.read(claim.group, options):
            if isinstance(item, Channel):
                series[item.key] += []
            elif isinstance(item, Window):
                window = item
            elif isinstance(item, Chunk) and item.channel.counted:
                times = item.t_us if item.t_us is not None else np.full(len(item.values), math.nan)
                series[item.channel.key].append((times, item.values))
    joined = {
        key: tuple(np.concatenate(column) for column in zip(*parts, strict=True))
        for key, parts in series.items()
        if parts
    }
    return joined, window


@needs_files
@pytest.mark.parametrize(("entry", "paths"), TRACES, ids=ids(TRACES))
def test_traces_are_parsed_whole_and_integrated_without_bridging(tmp_path, entry, paths):
    expected, interval_s = entry["totals"], INTERVALS_S.get(entry["file"])
    if expected.get("energy_kwh", 0) is None:
        assert imported(paths, tmp_path).refused, "without power there is no trace"
        return
    totals = imported(paths, tmp_path, interval_s=interval_s).totals
    assert totals.samples == expected["samples"]
    series, _ = parsed(paths, interval_s)
    watts = next(iter(series.values()))[1] if len(series) == 1 else None
    means = [v for k, v in expected.items() if k.startswith("mean_") and k.endswith("_W")]
    if watts is not None and means:
        timed_mean = "energy_J_trapezoid" in expected
        mean = trapezoid(series) / expected["duration_s"] if timed_mean else float(np.nanmean(watts))
        assert mean == pytest.approx(means[0], rel=WITHIN)
        assert totals.mean_power_w == pytest.approx(means[0], rel=0.01)
    joules = [v for k, v in expected.items() if k.startswith("energy_J") and k.endswith("trapezoid")]
    if joules:
        assert trapezoid(series) == pytest.approx(joules[0], rel=WITHIN)
        times = next(iter(series.values()))[0]
        assert (times.max() - times.min()) / 1e6 == pytest.approx(expected["duration_s"], rel=WITHIN)
    elif "energy_kwh" in expected:
        assert totals.energy_kwh == pytest.approx(expected["energy_kwh"], rel=WITHIN)


def trapezoid(series):
    """Return the joules of power samples from first to last, gaps bridged."""
    return sum(float(np.trapezoid(watts, times) / 1e6) for times, watts in series.values())


@needs_files
@pytest.mark.parametrize(("entry", "paths"), TRACES, ids=ids(TRACES))
def test_covered_and_uncovered_seconds_make_up_the_span(entry, paths):
    from carbonlens.importers.harvest import harvest

    options = Options(interval_s=INTERVALS_S.get(entry["file"]))
    if entry["totals"].get("energy_kwh", 0) is None:
        return
    for claim in claimed(paths):
        for record in harvest(claim.importer, claim.group, options).records:
            told = record.measured
            if told is None or told.covered_s is None or record.run.duration_s is None:
                continue
            assert told.covered_s + told.uncovered_s == pytest.approx(record.run.duration_s, rel=1e-3)


@needs_files
def test_the_folder_is_imported_with_exit_0_and_every_file_is_accounted_for(tmp_path):
    result = imported([FILES], tmp_path)
    there = [p for p in FILES.iterdir() if p.is_file()]
    assert {f.path.partition("::")[0] for f in result.files} == {str(p) for p in there}
    assert result.refused == ()
    assert all(f.findings for f in result.files if f.status == "refused")
    again = imported([FILES], tmp_path)
    assert again.totals.runs == 0
