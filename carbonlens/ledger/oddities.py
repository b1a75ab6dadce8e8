"""What the times and machines of runs tell about clocks and clones, as Findings; none is repaired."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from decimal import Decimal
from itertools import pairwise
from typing import Final

import msgspec

from carbonlens.domain.finding import Finding
from carbonlens.domain.identity import uuid7_ms
from carbonlens.domain.limits import MOST_HOURS, stands_in_one_hour
from carbonlens.domain.run import Run
from carbonlens.domain.units import HOURS_PER_DAY, US_PER_HOUR, US_PER_S

FUTURE_S: Final = 300
"""Clocks of hosts that share a folder may differ by so much without a word."""

_EPOCH_OF_SENSE_US: Final = 946_684_800 * US_PER_S
"""2000-01-01: an earlier start is a clock that was never set."""

_STEP_S: Final = 2.0
_STEP_SHARE: Final = 0.05
"""Wall and monotonic time of a run may differ by the larger of these before it is a clock step."""

_ID_AGE_S: Final = 3600
"""A live run's id carries when it was made; it is made at the start."""


class _Boot(msgspec.Struct, frozen=True, kw_only=True):
    """When one boot of a machine was seen to run something."""

    host_id: str
    first_us: int
    last_us: int
    hardware: frozenset[str]


def clock_oddities(runs: Iterable[Run], *, now_us: int) -> list[Finding]:
    """Return runs whose times cannot be right.

    Args:
        runs: Records, corrected ones included.
        now_us: The present, UTC microseconds.
    """
    return [
        Finding(
            code="CL512",
            severity="warning",
            message=text,
            subject=run.run_id,
            mend="set the clock (NTP); correct the run: carbonlens runs supersede RUN --by start_us=...",
        )
        for run in runs
        for text in _clock_faults(run, now_us)
    ]


def _clock_faults(run: Run, now_us: int) -> Iterable[str]:
    start, end = run.start_us, run.end_us
    if start is None:
        return
    if start > now_us + FUTURE_S * US_PER_S:
        yield f"run {run.run_id} starts in the future ({_when(start)})"
    elif end is not None and end > now_us + FUTURE_S * US_PER_S:
        yield f"run {run.run_id} ends in the future ({_when(end)})"
    if stands_in_one_hour(run):
        days = MOST_HOURS // HOURS_PER_DAY
        yield f"run {run.run_id} takes more than {days} days: its energy stands in the hour of its start"
    if start < _EPOCH_OF_SENSE_US:
        yield f"run {run.run_id} starts before 2000: the clock was not set"
    if end is not None and end < start:
        yield f"run {run.run_id} ends {(start - end) / US_PER_S:.0f} s before it starts"
        return
    if run.host_id is None:
        return  # Imported times are rounded, and their ids are the source's.
    if end is not None and run.duration_s is not None:
        step = (end - start) / US_PER_S - run.duration_s
        if abs(step) > max(_STEP_S, _STEP_SHARE * run.duration_s):
            yield f"the clock jumped by {step:+.0f} s during run {run.run_id}"
    made = uuid7_ms(run.run_id)
    if made is not None and run.supersedes is None and abs(made / 1000 - start / US_PER_S) > _ID_AGE_S:
        yield f"run {run.run_id} starts {start / US_PER_S - made / 1000:+.0f} s from when its id was made"


def machine_oddities(runs: Iterable[Run]) -> list[Finding]:
    """Return machine ids that two machines seem to share.

    One machine's boots follow each other. Boots that overlap are two machines
    with one id (a cloned image), or a clock set back over a restart.
    """
    boots: dict[str, dict[str, list[Run]]] = defaultdict(lambda: defaultdict(list))
    for run in runs:
        if run.machine_id and run.host_id and run.start_us is not None:
            boots[run.machine_id][run.host_id].append(run)
    findings: list[Finding] = []
    for machine, hosts in boots.items():
        seen = sorted((_boot(host, own) for host, own in hosts.items()), key=lambda b: b.first_us)
        overlapping = [(a, b) for a, b in pairwise(seen) if b.first_us < a.last_us]
        if overlapping:
            findings.append(_shared_name(machine, overlapping))
    return findings


def _boot(host: str, runs: Sequence[Run]) -> _Boot:
    starts = [r.start_us for r in runs if r.start_us is not None]
    return _Boot(
        host_id=host,
        first_us=min(starts),
        last_us=max([*starts, *(r.end_us for r in runs if r.end_us is not None)]),
        hardware=frozenset(r.hardware for r in runs if r.hardware),
    )


def _shared_name(machine: str, overlapping: Sequence[tuple[_Boot, _Boot]]) -> Finding:
    first, second = overlapping[0]
    differ = bool(first.hardware and second.hardware and first.hardware.isdisjoint(second.hardware))
    which = "two machines have it" if differ else "two machines have it, or its clock was set back"
    return Finding(
        code="CL513",
        severity="warning",
        message=(
            f"boots of machine {machine[:12]} overlap ({first.host_id[:12]} and {second.host_id[:12]}, "
            f"{_when(second.first_us)}): {which}; no run is lost or counted twice"
        ),
        subject=machine,
        mend="give a cloned image its own machine id (systemd-machine-id-setup)",
    )


def hours_fit(run: Run) -> bool:
    """Tell whether a run's hours lie inside its times and sum to its energy."""
    return not stray_hours([run]) and not unbalanced_hours([run])


def with_fitting_hours(run: Run) -> tuple[Run, Finding | None]:
    """Return a run without the hours of the components whose hours do not fit, and what says so.

    Their energy is spread evenly over the run's time then; every other component keeps its hours.
    """
    names = dict.fromkeys(h.component for h in run.energy_by_hour)
    unfit = [name for name in names if not hours_fit(_of_component(run, name))]
    if not unfit:
        return run, None
    kept = tuple(h for h in run.energy_by_hour if h.component not in unfit)
    told = Finding(
        code="CL530",
        severity="warning",
        message=f"the hours measured of {', '.join(unfit)} do not lie inside the run's times, or do not sum "
        "to its energy: they are left out, and the energy is spread evenly over the run's time",
        subject=run.run_id,
        mend="keep the clock of the machine in step (NTP)",
    )
    return msgspec.structs.replace(run, energy_by_hour=kept), told


def _of_component(run: Run, name: str) -> Run:
    hours = tuple(h for h in run.energy_by_hour if h.component == name)
    return msgspec.structs.replace(run, energy_by_hour=hours)


def stray_hours(runs: Iterable[Run]) -> list[Finding]:
    """Return runs with energy in hours outside their own times: a period of those times does not hold it."""
    findings: list[Finding] = []
    for run in runs:
        stray = sorted({h.hour_utc for h in run.energy_by_hour if not _has_part_in(run, h.hour_utc)})
        if stray:
            more = f" and {len(stray) - 1} more" if len(stray) > 1 else ""
            findings.append(
                Finding(
                    code="CL516",
                    severity="warning",
                    message=f"run {run.run_id} has energy in an hour outside its times:"
                    f" {_when(stray[0] * US_PER_HOUR)}{more}",
                    subject=run.run_id,
                    mend="correct it: carbonlens runs supersede RUN --by energy_by_hour=[] spreads it evenly",
                )
            )
    return findings


def _has_part_in(run: Run, hour: int) -> bool:
    if run.start_us is None:
        return True
    last_us = run.start_us if run.end_us is None else max(run.start_us, run.end_us - 1)
    return run.start_us // US_PER_HOUR <= hour <= last_us // US_PER_HOUR


def unbalanced_hours(runs: Iterable[Run]) -> list[Finding]:
    """Return runs whose hours do not sum to their energy, component by component."""
    findings: list[Finding] = []
    for run in runs:
        hours: dict[str, Decimal] = defaultdict(Decimal)
        for hour in run.energy_by_hour:
            hours[hour.component] += hour.energy_j
        energy: dict[str, Decimal] = defaultdict(Decimal)
        for reading in run.energy:
            energy[reading.component] += reading.energy_j or 0
        findings += [
            _unbalanced(run, name, joules, energy[name])
            for name, joules in hours.items()
            if joules != energy.get(name, joules)
        ]
    return findings


def _unbalanced(run: Run, component: str, hours_j: Decimal, energy_j: Decimal) -> Finding:
    return Finding(
        code="CL516",
        severity="error",
        message=f"hours of {component} in run {run.run_id} sum to {hours_j} J, its energy is {energy_j} J",
        subject=run.run_id,
        mend="restore the record from a copy",
    )


def _when(us: int) -> str:
    try:
        return datetime.fromtimestamp(us / US_PER_S, tz=UTC).strftime("%Y-%m-%d %H:%M UTC")
    except (ValueError, OverflowError, OSError):
        return f"{us} us"
