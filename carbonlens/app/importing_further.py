"""Records of one run that come several times, ever further: which of them counts, and what it is called."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import msgspec

from carbonlens.app.importing_totals import stated_j
from carbonlens.app.importing_versions import Key
from carbonlens.domain.counting import counted
from carbonlens.domain.finding import Finding
from carbonlens.domain.run import Run
from carbonlens.domain.units import US_PER_S
from carbonlens.importers.contract import RunRecord

SAME_TIME_US: Final = 2 * US_PER_S
"""Machine-scope records of one machine that start and end this near are one measurement."""


def furthest(records: Sequence[RunRecord], superseded: dict[str, list[int]]) -> list[tuple[int, RunRecord]]:
    """Return records and their first lines, of a run that is written several times the furthest alone."""
    best: dict[Key, RunRecord] = {}
    order: list[tuple[Key, RunRecord]] = []
    for record in records:
        if not record.cumulative:
            order.append((key_of(record), record))
            continue
        key = key_of(record)
        earlier = best.get(key)
        if earlier is not None and not touch(record.run, earlier.run):
            named = renamed(record, f"{record.run.run_id}@{record.run.start_us}")
            key, record = key_of(named), named  # noqa: PLW2901  # the same record under its own name
            earlier = best.get(key)
        if earlier is None:
            best[key] = record
            order.append((key, record))
        elif progress(record) >= progress(earlier):
            superseded[record.run.run_id].append(earlier.line)
            best[key] = record
        else:
            superseded[record.run.run_id].append(record.line)
    return [(record.line, best.get(key, record)) for key, record in order]


def superseded_rows(found: Mapping[str, list[int]], file: str) -> list[Finding]:
    """Return what is said of runs that are written several times.

    Args:
        found: Their ids, and the lines that do not count.
        file: The source.
    """
    return [
        Finding(
            code="CL252",
            severity="info",
            message=f"run {run_id!r} is written {len(lines) + 1} times, ever further: "
            f"{counted(len(lines), 'superseded row was', 'superseded rows were')} dropped",
            file=file,
            line=lines[0] or None,
        )
        for run_id, lines in found.items()
    ]


def touch(one: Run, other: Run) -> bool:
    """Whether two records can be of one run: their times meet, or one has none."""
    if None in (one.start_us, one.end_us, other.start_us, other.end_us):
        return True
    a0, a1, b0, b1 = (t or 0 for t in (one.start_us, one.end_us, other.start_us, other.end_us))
    return a0 <= b1 + SAME_TIME_US and b0 <= a1 + SAME_TIME_US


def progress(record: RunRecord) -> tuple[float, ...]:
    """Return how far a record of a run is: its energy, and its seconds."""
    energy = stated_j(record)
    return (float(energy) if energy is not None else 0.0, record.run.duration_s or 0.0)


def renamed(record: RunRecord, name: str, *, supersedes: Run | None = None) -> RunRecord:
    """Return a record under another id, and in the place of an earlier one where it corrects that."""
    run = msgspec.structs.replace(record.run, run_id=name)
    if supersedes is not None:
        study = supersedes.study or ""
        run = msgspec.structs.replace(run, supersedes=supersedes.run_id, supersedes_study=study)
    return msgspec.structs.replace(record, run=run)


def key_of(record: RunRecord) -> Key:
    """Return what a run is known by."""
    return record.run.study, record.run.run_id
