"""Runs of a study that shared a device: their energy is the part they are billed.

What divides the device decides what a comparison may use. Own activity, CPU time
and parts between runs of one step are used, with the error of dividing. Equal parts
between runs of different steps are no measurement of either: such runs are left
out, and where nothing else is left the comparison is refused. Effort is kept by its
part: leaving it out would flatter the step. Nothing is done about less than 1 % of a
run's energy. docs/adr/0007-shared-devices.md explains why.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from typing import Final

from msgspec.structs import replace

from carbonlens.accounting.allocation_bills import Allocation, RunBill
from carbonlens.accounting.allocation_error import billed_run
from carbonlens.accounting.allocation_findings import named
from carbonlens.accounting.allocation_share import Share
from carbonlens.accounting.job_runs import wholes
from carbonlens.compare.from_runs import VARIANT_ROLES, joined
from carbonlens.domain.finding import Finding
from carbonlens.domain.run import Run
from carbonlens.domain.study import Study
from carbonlens.errors import IncomparableError

MATERIAL: Final = Decimal("0.01")
"""Part of a run's energy below which an overlap changes nothing worth saying."""


def without_double_billing(
    runs: Sequence[Run], allocation: Allocation, study: Study
) -> tuple[tuple[Run, ...], tuple[Finding, ...]]:
    """Return a study's runs with the energy they are billed, and what was done.

    Args:
        runs: Runs of the study.
        allocation: Made of all runs of the ledger, these among them.
        study: Says which steps are compared.

    Raises:
        IncomparableError: If all runs of a compared step shared a device with other steps
            and nothing measured divides it.
    """
    kept: list[Run] = []
    divided: list[Run] = []
    guessed: list[Run] = []
    stated: list[Run] = []
    spoilt = _spoilt(runs, allocation)
    for run in runs:
        bill = allocation.bills[run.run_id]
        if _part(bill, guessed=True, by_device=False) > MATERIAL:
            stated.append(run)
        if run.run_id in spoilt:
            guessed.append(run)
        elif _part(bill) > MATERIAL and run.role != "idle":  # it watches, and is billed nothing by its nature
            divided.append(run)
            kept.append(_billed(run, allocation))
        else:
            kept.append(run)
    _refuse_emptied(guessed, kept, study)
    return tuple(kept), tuple(_findings(divided, guessed, stated))


def _spoilt(runs: Sequence[Run], allocation: Allocation) -> set[str]:
    """Return the runs that nothing measured divides, and with a rank the others of its job."""
    return {
        run.run_id
        for whole in wholes([r for r in runs if _is_measured(r)])
        if any(_part(allocation.bills[r.run_id], guessed=True) > MATERIAL for r in whole)
        for run in whole
    }


def _part(bill: RunBill, *, guessed: bool = False, by_device: bool = True) -> Decimal:
    """Return the largest part of any reading's energy that rests on dividing its device."""
    shares = [s for s in bill.shares if s.named == by_device and s.measured_j > 0]
    return max((_moved(s, guessed=guessed) for s in shares), default=Decimal(0))


def _moved(share: Share, *, guessed: bool) -> Decimal:
    # Against what was read: a run that is billed nothing of a device was divided too.
    if guessed:
        return share.guessed_j / share.measured_j
    return max(share.split_j, abs(share.measured_j - share.billed_j)) / share.measured_j


def _billed(run: Run, allocation: Allocation) -> Run:
    """Return the run as billed; a stated total that names no device stays as it was stated."""
    unnamed = {s.reading for s in allocation.bills[run.run_id].shares if not s.named}
    billed = billed_run(run, allocation).energy
    energy = tuple(run.energy[k] if k in unnamed else reading for k, reading in enumerate(billed))
    return replace(run, energy=energy)


def _is_measured(run: Run) -> bool:
    """Whether a figure is made of the run; failed attempts and effort must not disappear."""
    return run.role in VARIANT_ROLES and run.status == "complete"


def _refuse_emptied(guessed: Sequence[Run], kept: Sequence[Run], study: Study) -> None:
    compared = {study.baseline, *(s.name for s in study.steps)}
    left = {_step(r) for r in kept if _is_measured(r)}
    emptied = [r for r in guessed if _step(r) in compared - left]
    if emptied:
        raise IncomparableError(
            f"all runs of step {_step(emptied[0])!r} shared a device with other runs, and nothing "
            "measured tells how much of its energy is whose",
            where=study.name,
            mend="run the steps one after another, or record own shares (NVML process utilisation)",
        )


def _step(run: Run) -> str:
    return run.step or joined(run.on or ())


def _findings(divided: Sequence[Run], guessed: Sequence[Run], stated: Sequence[Run]) -> list[Finding]:
    found: list[Finding] = []
    if divided:
        found.append(
            _finding(
                "CL321",
                f"{_count(divided)} overlapped others on a device they all read: each is compared by "
                "its part of the device's energy, with the error of dividing it",
                "run them one after another for narrower figures",
            )
        )
    if guessed:
        found.append(
            _finding(
                "CL322",
                f"{_count(guessed)} shared a device with runs of other steps, and nothing measured "
                "divides it: left out",
                "run the steps one after another, or record own shares (NVML process utilisation)",
            )
        )
    if stated:
        found.append(
            _finding(
                "CL323",
                f"{_count(stated)} state a total without a device and overlap runs of other steps on "
                "their host: used as stated, which is wrong if a total is the whole machine's",
                "state totals of runs that did not overlap, or leave host out if each is the run's own",
            )
        )
    return found


def _count(runs: Sequence[Run]) -> str:
    ids = named([r.run_id for r in runs])
    return f"run {ids}" if len(runs) == 1 else f"{len(runs)} runs ({ids})"


def _finding(code: str, message: str, mend: str) -> Finding:
    return Finding(code=code, severity="warning", message=message, mend=mend)
