"""Runs of a job that several ranks recorded: each rank its own part, together one run."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from decimal import Decimal
from typing import Final

import msgspec
from msgspec.structs import replace

from carbonlens.accounting.allocation_bills import Allocation
from carbonlens.domain.estimate import Estimate, add, unknown
from carbonlens.domain.run import Run
from carbonlens.domain.units import US_PER_S, RunStatus

_OWN: Final = "a run of its rank alone"
_WORST_FIRST: Final[tuple[RunStatus, ...]] = ("failed", "recovered", "running", "complete")


class JobRun(msgspec.Struct, frozen=True, kw_only=True):
    """One run of a job, made of what its ranks recorded of one attempt.

    Attributes:
        parts: The run of each rank, the lowest rank first; two or more, where not one run stands for itself.
    """

    parts: tuple[Run, ...]

    @property
    def first(self) -> Run:
        """The run of the lowest rank, which stands for all in what they have in common."""
        return self.parts[0]

    @property
    def hosts(self) -> int:
        """Number of hosts they ran on; one whose host is not known counts as one."""
        return len({r.host_id for r in self.parts})

    @property
    def status(self) -> RunStatus:
        """The worst of the ranks'."""
        return min((r.status for r in self.parts), key=_WORST_FIRST.index)

    @property
    def units(self) -> Decimal | None:
        """Units of all ranks; unknown where one rank's are, or where they are of several kinds."""
        known = [r.units for r in self.parts if r.units is not None]
        are_alike = len({r.unit for r in self.parts}) == 1
        return sum(known, Decimal(0)) if are_alike and len(known) == len(self.parts) else None

    @property
    def start_us(self) -> int | None:
        """When the first rank began."""
        return min((r.start_us for r in self.parts if r.start_us is not None), default=None)

    @property
    def duration_s(self) -> float | None:
        """Seconds from the first begin to the last end; by the wall clock, as ranks share no other.

        The longest rank's own where an end is not known.
        """
        ends = [r.end_us for r in self.parts if r.end_us is not None]
        if self.start_us is not None and len(ends) == len(self.parts):
            return (max(ends) - self.start_us) / US_PER_S
        return max((r.duration_s for r in self.parts if r.duration_s is not None), default=None)


def job_runs(runs: Sequence[Run]) -> tuple[JobRun, ...]:
    """Return the runs that several ranks recorded together, in the order of their first rank's.

    Runs of one job and attempt that measure the same belong together, one of each rank: the
    first that each rank recorded, then the second, and so on. What ranks recorded inside a run
    of their own each (``carbonlens run`` around every rank) belongs together as well.

    Args:
        runs: In the order they were recorded in.
    """
    ranked = [r for r in runs if r.job_id is not None and r.rank is not None]
    ranks_in: dict[str | None, set[int | None]] = {}
    for run in ranked:
        ranks_in.setdefault(run.parent_run_id, set()).add(run.rank)
    seen: dict[tuple[object, ...], int] = {}
    found: dict[tuple[object, ...], list[Run]] = {}
    for run in ranked:
        is_own = run.parent_run_id is not None and len(ranks_in[run.parent_run_id]) == 1
        key = (_OWN if is_own else run.parent_run_id, *_measured(run))
        number = seen[*key, run.rank] = seen.get((*key, run.rank), 0) + 1
        found.setdefault((*key, number), []).append(run)
    return tuple(JobRun(parts=tuple(_by_rank(parts))) for parts in found.values() if len(parts) > 1)


def wholes(runs: Sequence[Run]) -> list[tuple[Run, ...]]:
    """Return the runs, those together that the ranks of a job recorded; in the order of their first.

    Args:
        runs: In the order they were recorded in.
    """
    if not any(r.rank is not None for r in runs):
        return [(r,) for r in {id(r): r for r in runs}.values()]  # the usual case, asked often
    parts = {id(r): job.parts for job in job_runs(runs) for r in job.parts}
    together = {id(r): parts.get(id(r), (r,)) for r in runs}
    return list({id(whole[0]): whole for whole in together.values()}.values())


def billed(job: JobRun, allocation: Allocation) -> Estimate:
    """Return what the ranks are billed together in joules: of what they share, each joule once.

    Args:
        job: The ranks' runs.
        allocation: Made of all runs of the ledger.

    Returns:
        Unknown where the ranks were measured at several boundaries.
    """
    parts = [replace(r, energy=allocation.bills[r.run_id].readings) for r in job.parts]
    if len({r.boundary for r in parts}) > 1:
        return unknown("J")
    return add((r.total_energy for r in parts), "J")


def _measured(run: Run) -> tuple[object, ...]:
    """Return what ranks have in common that recorded one run together."""
    what = (run.study, run.step, run.on, run.role, run.workload, run.repeat)
    return (run.job_id, run.attempt, *what)


def _by_rank(runs: Iterable[Run]) -> list[Run]:
    return sorted(runs, key=lambda r: r.rank or 0)
