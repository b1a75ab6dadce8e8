"""Reads what an importer parsed from a trace, and integrates it the plain way: an oracle."""

import json
from pathlib import Path

import numpy as np
import pytest

from carbonlens.importers.claiming import claims
from carbonlens.importers.contract import Chunk, Importer, Options
from carbonlens.importers.harvest import harvest
from carbonlens.importers.sources import Source

SHARED = Path(__file__).parents[3] / "shared" / "cases"


def real_file(name: str) -> Path:
    """Return a real file of the shared cases; skip where they are not there."""
    path = SHARED / "files" / name
    if not path.is_file():
        pytest.skip("the shared cases are not on this machine")
    return path


def right_totals(name: str) -> dict:
    """Return what the shared cases say of a file; skip where they are not there."""
    if not (SHARED / "files.json").is_file():
        pytest.skip("the shared cases are not on this machine")
    told = json.loads((SHARED / "files.json").read_text())
    return next(f["totals"] for f in told if f["file"] == name)


def parsed(importer: Importer, path: Path, options: Options | None = None):
    """Return times in seconds and values of the counted channels, by name."""
    (claim,), _ = claims([Source(path)], [importer])
    found: dict[str, list] = {}
    for item in importer.read(claim.group, options or Options()):
        if isinstance(item, Chunk) and item.channel.counted:
            found.setdefault(item.channel.name, []).append(item)
    return {
        name: (
            None if chunks[0].t_us is None else np.concatenate([c.t_us for c in chunks]) * 1e-6,
            np.concatenate([c.values for c in chunks]),
        )
        for name, chunks in found.items()
    }


def trapezoid_j(t_s, watts) -> float:
    """Return the area from first to last sample, gaps bridged."""
    return float(np.sum(np.diff(t_s) * (watts[1:] + watts[:-1]) / 2))


def taken(importer: Importer, path: Path, options: Options | None = None):
    """Return what harvest makes of a file."""
    (claim,), _ = claims([Source(path)], [importer])
    return harvest(importer, claim.group, options or Options())


def assert_as_told(importer: Importer, name: str):
    """Check samples, mean, span and trapezoid of one channel, and that its seconds add up."""
    path, told = real_file(name), right_totals(name)
    ((t_s, watts),) = parsed(importer, path).values()
    assert len(watts) == told["samples"]
    assert t_s[-1] - t_s[0] == pytest.approx(told["duration_s"], rel=1e-3)
    area_j = told.get("energy_J_trapezoid") or told["energy_J_VDD_IN_trapezoid"]
    assert trapezoid_j(t_s, watts) == pytest.approx(area_j, rel=1e-3)
    if "mean_W" in told:  # over time, not over samples
        assert trapezoid_j(t_s, watts) / (t_s[-1] - t_s[0]) == pytest.approx(told["mean_W"], rel=1e-3)
    else:
        assert float(watts.mean()) == pytest.approx(told["mean_VDD_IN_W"], rel=1e-3)
    got = taken(importer, path)
    (record,) = got.records
    measured = record.measured
    assert measured.samples == told["samples"]
    assert measured.mean_power_w == pytest.approx(float(watts.mean()), rel=1e-9)
    assert measured.covered_s + measured.uncovered_s == pytest.approx(told["duration_s"], rel=1e-3)
    # Held until the next sample, not drawn as lines; and what is uncovered is not bridged.
    bridged_j = measured.uncovered_s * float(watts.max())
    assert area_j * 0.99 - bridged_j <= float(record.stated_j) <= area_j * 1.01
    return got
