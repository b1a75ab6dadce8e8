"""Holding: whether the joules of one run's readings stand in those of a run above it too.

A run names the run that was open where it was started. That one's readings of CPU time and
memory hold it only where its process descends from the other's: what a scheduler or a daemon
starts for it, or a server that was started apart, does not (docs/adr/0007-shared-devices.md).
"""

from __future__ import annotations

from typing import Final, Literal

from carbonlens.domain.run import Reading, Run

Kinship = Literal["below", "beside", "untold"]
"""Of two processes: the one descends from the other or is it; does not; nobody can say."""

_IN_A_MODULE: Final = frozenset({"cpu", "gpu", "npu", "ram"})


def kinship(run: Run, other: Run) -> Kinship:
    """Return whether a run's process descends from another's.

    Processes of two containers cannot be compared: each tells its own line only, up to the
    first process that it sees.

    Args:
        run: The run that may be below.
        other: The run that may be above.
    """
    if run.process is None or other.process is None:
        return "untold"
    if other.process == run.process or other.process in (run.ancestors or ()):
        return "below"
    if run.ancestors is None or other.ancestors is None:
        return "untold"
    first, second = ((r.process, *(r.ancestors or ()))[-1] for r in (run, other))
    return "beside" if first == second else "untold"


def holds(own: Reading, below: Reading) -> bool:
    """Tell whether the joules of a reading of a run inside stand in a reading around it.

    Args:
        own: Of the run around.
        below: Of the run inside.
    """
    if own.energy_j is None:
        return False
    holds_others = own.component == "wall" or (own.component == "total" and below.component in _IN_A_MODULE)
    if holds_others and not own.divided:
        return True
    if own.component != below.component:
        # A processor's watts at the boundary of a whole server hold its memory (ADR 8).
        return (own.component, own.boundary, below.component) == ("cpu", "it", "ram") and not own.divided
    alike = not own.devices or not below.devices or not set(own.devices).isdisjoint(below.devices)
    return alike and (not own.divided or below.divided)
