"""Mixes: arms that ran on several machines or workloads must have run on the same of each.

A mean over five rounds on one machine and one on another is no mean over one and five: the
difference would be the machines'. So each arm has the same share of every machine, but for what
moves its mean by less than a tenth of the margin; where both are not on one machine within each
numbered round too, that is said. A run that does not state its machine may have been on any: only
a difference that no such run could explain counts.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from carbonlens.accounting.job_runs import wholes
from carbonlens.compare.arms import Arm
from carbonlens.compare.observation import Observation, measured_energy
from carbonlens.domain.counting import counted
from carbonlens.domain.finding import Finding
from carbonlens.domain.run import Run
from carbonlens.errors import IncomparableError

Reader = Callable[[Run], str | None]
Mix = Mapping[str | None, float]
"""Shares by value, ``None`` for what is not stated; they sum to one."""

TOLERATED: Final = 0.1
"""Part of the margin by which another mix may move a mean."""

_ROUNDING: Final = 1e-9
"""Differences of shares below it are those of floats."""


class _Mixes(NamedTuple):
    """The mixes of one arm.

    Attributes:
        over: Shares over all rounds; each weighs alike, as in the mean.
        by_round: Shares within each numbered round.
    """

    arm: Arm
    over: Mix
    by_round: Mapping[int, Mix]


def other_mixes(
    field: str, read: Reader, arms: Sequence[Arm], study: str, mend: str, *, margin: float
) -> list[Finding]:
    """Refuse arms whose rounds are spread otherwise over the values of a field; say what is crossed over.

    Args:
        field: Its name in words.
        read: What a run states of it.
        arms: Usable arms that did not fail, baseline first.
        study: For the error.
        mend: For error and finding.
        margin: Relative change regarded as none.

    Raises:
        IncomparableError: If two arms have other shares of a value.
    """
    if len({read(r) for a in arms for r in a.runs}) < 2:
        return []  # the usual case
    first, *others = (_mixes(a, read) for a in arms)
    findings: list[Finding] = []
    for one in others:
        apart = _apart(first.over, one.over)
        rounds = [n for n in first.by_round if n in one.by_round]
        crossed = sorted(n for n in rounds if _apart(first.by_round[n], one.by_round[n]) > _ROUNDING)
        if apart > _ROUNDING:
            moved = apart * max(_spread(first.arm, read), _spread(one.arm, read))
            if moved > TOLERATED * margin:
                raise _another(field, first, one, crossed, study, mend)
            findings.append(_tolerated(field, first, one, moved, mend))
        elif crossed:
            findings.append(_crossed(field, first, one, len(crossed), mend))
    return findings


def _mixes(arm: Arm, read: Reader) -> _Mixes:
    sums: dict[str | None, float] = defaultdict(float)
    by_round: dict[int, Mix] = {}
    for one in arm.observations:
        mix = _mix(one, read)
        for value, share in mix.items():
            sums[value] += share
        if one.repeat is not None:
            by_round[one.repeat] = mix
    return _Mixes(arm, {value: total / len(arm.observations) for value, total in sums.items()}, by_round)


def _mix(one: Observation, read: Reader) -> Mix:
    """Return the shares within a round, by units of work; the ranks of a job are one run.

    Ranks share their work as it comes, so that of a job the set of values counts.
    """
    if len(one.runs) == 1:
        return {read(one.runs[0]): 1.0}
    jobs = wholes(one.runs)
    works = [_work(job) for job in jobs]
    if len(jobs) == 1 or any(w <= 0 for w in works):
        works = [1.0 for _ in jobs]
    whole = math.fsum(works)
    shares: dict[str | None, float] = defaultdict(float)
    for job, work in zip(jobs, works, strict=True):
        shares[_of_job(job, read)] += work / whole
    return shares


def _work(job: Iterable[Run]) -> float:
    return math.fsum(float(r.units) for r in job if r.units is not None)


def _of_job(job: Sequence[Run], read: Reader) -> str | None:
    values = {read(r) for r in job}
    return None if None in values else " + ".join(sorted(v for v in values if v is not None))


def _apart(one: Mix, other: Mix) -> float:
    """Return the least share of the rounds that ran elsewhere, whatever the silent ones ran on.

    Both mixes can be one only if the larger of the shares of each value sum to no more than one.
    """
    if one == other:
        return 0.0
    values = {v for v in (*one, *other) if v is not None}
    return math.fsum(max(one.get(v, 0.0), other.get(v, 0.0)) for v in values) - 1.0


def _spread(arm: Arm, read: Reader) -> float:
    """Return how far apart an arm's energies per unit lie on the values, over their mean.

    A mean moves by no more than this times the share that ran elsewhere.
    """
    joules: dict[str | None, float] = defaultdict(float)
    works: dict[str | None, float] = defaultdict(float)
    for one in arm.observations:
        for job in wholes(one.runs):
            value = _of_job(job, read)
            joules[value] += math.fsum(measured_energy(r).value or 0.0 for r in job)
            works[value] += _work(job) or 1.0
    means = [joules[v] / works[v] for v in joules]
    whole = math.fsum(joules.values()) / math.fsum(works.values())
    return (max(means) - min(means)) / whole if whole > 0 else math.inf


def _another(
    field: str, first: _Mixes, one: _Mixes, crossed: Sequence[int], study: str, mend: str
) -> IncomparableError:
    where = ""
    if crossed:
        theirs, mine = first.by_round[crossed[0]], one.by_round[crossed[0]]
        where = f" (round {crossed[0]}: {_words(theirs, mine)} and {_words(mine, theirs)})"
    return IncomparableError(
        f"steps {first.arm.name!r} and {one.arm.name!r} ran on another mix of {field}: "
        f"{_words(first.over, one.over)} and {_words(one.over, first.over)}{where}",
        where=study,
        mend=f"{mend}, both on the same one in each round; or compare the runs of one alone",
    )


def _tolerated(field: str, first: _Mixes, one: _Mixes, moved: float, mend: str) -> Finding:
    return Finding(
        code="CL453",
        severity="info",
        message=f"steps {first.arm.name!r} and {one.arm.name!r} ran on nearly the same mix of {field}: "
        f"what differs moves the change by {moved * 100:.1g} % at most",
        subject=one.arm.name,
        mend=f"{mend}, both on the same one in each round",
    )


def _crossed(field: str, first: _Mixes, one: _Mixes, rounds: int, mend: str) -> Finding:
    return Finding(
        code="CL450",
        severity="warning",
        message=f"in {counted(rounds, 'round')} steps {first.arm.name!r} and {one.arm.name!r} ran on "
        f"another {field}, each as often: what tells them apart is in the scatter of the rounds",
        subject=one.arm.name,
        mend=f"{mend}, both on the same one in each round",
    )


def _words(mix: Mix, other: Mix) -> str:
    """Return a mix in words, with as many digits as tell it from another."""
    digits = next((d for d in range(3, 12) if _shares(mix, d) != _shares(other, d)), 12)
    return _shares(mix, digits)


def _shares(mix: Mix, digits: int) -> str:
    if len(mix) == 1:
        return next(iter(mix)) or "not stated"
    ordered = sorted(mix.items(), key=lambda item: item[0] or "\uffff")
    return ", ".join(f"{share * 100:.{digits}g} % {value or 'not stated'}" for value, share in ordered)
