"""From a study's runs to its arms: which run belongs where, and which is usable."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Final

import msgspec

from carbonlens.accounting.job_runs import JobRun, wholes
from carbonlens.compare.arms import Arm, make_arm
from carbonlens.compare.from_runs import VARIANT_ROLES, joined, refuse_mixed_sets, spelled_set
from carbonlens.compare.observation import measured_energy, observe
from carbonlens.domain.counting import counted
from carbonlens.domain.estimate import Estimate
from carbonlens.domain.factor import Vector
from carbonlens.domain.finding import Finding, Severity
from carbonlens.domain.run import Quality, Run
from carbonlens.domain.study import Study
from carbonlens.domain.units import Role
from carbonlens.errors import ConfigError, SelectionError

Measured = tuple[Run, Estimate]
"""A run with its energy."""

EFFORT_ROLES: Final[frozenset[Role]] = frozenset({"effort", "training"})


class StepRuns(msgspec.Struct, frozen=True, kw_only=True):
    """The runs of one step.

    Attributes:
        step: Name of the step.
        on: Optimizations that were on; ``None`` when neither study nor runs say.
        variants: Runs that measure it and ended well.
        failed: Runs of any role that ended with an error; of a job with a rank that did, every rank's.
        cut_short: Runs of any role that did not end; of a job with a rank that did not, every rank's.
        effort: Runs that made it.
        all: Every run of the step.
    """

    step: str
    on: frozenset[str] | None
    variants: tuple[Run, ...]
    failed: tuple[Run, ...]
    cut_short: tuple[Run, ...] = ()
    effort: tuple[Run, ...]
    all: tuple[Run, ...]

    @property
    def recorded(self) -> tuple[Quality, ...]:
        """Qualities of the step, in any run that ended well: one that did not judged something else."""
        spoilt = self._spoilt
        return tuple(q for r in self.all if id(r) not in spoilt for q in r.quality)

    @property
    def unused_quality(self) -> tuple[str, ...]:
        """Names of the qualities that only runs record which failed or were cut short."""
        if not self.failed and not self.cut_short:
            return ()
        spoilt, used = self._spoilt, {q.name for q in self.recorded}
        names = (q.name for r in self.all if id(r) in spoilt for q in r.quality)
        return tuple(dict.fromkeys(n for n in names if n not in used))

    @property
    def _spoilt(self) -> frozenset[int]:
        return frozenset(id(r) for r in (*self.failed, *self.cut_short))

    @property
    def error(self) -> str:
        """What the first failed run says, one that measures the step before one that made it."""
        ended = [r for r in (*self.raised, *self.failed) if r.status == "failed"]
        texts = [r.error or f"run {r.run_id} failed" for r in ended]
        return texts[0] if texts else ""

    @property
    def raised(self) -> tuple[Run, ...]:
        """Failed runs that measure the step: it cannot be relied on, however good its other rounds."""
        return tuple(r for r in self.failed if r.role in VARIANT_ROLES)

    @property
    def has_failed(self) -> bool:
        """Whether the step failed: a run of it raised, or it could not be made at all."""
        return bool(self.raised) or (bool(self.failed) and not self.variants)


def group(study: Study, runs: Sequence[Run]) -> tuple[dict[str, StepRuns], tuple[Finding, ...]]:
    """Return the runs of the baseline and of every step, in the study's order.

    A run that another supersedes is left out, and so is a part (rank, stage) of
    a run that is itself there.

    Args:
        study: Names the steps.
        runs: Runs of the study.

    Raises:
        SelectionError: If the baseline or a step has no runs.
        ConfigError: If two steps, or a step and the baseline, have one name.
        IncomparableError: If the runs of one step state different sets of optimizations.
    """
    refuse_repeated(study)
    current = _current(runs)
    named = {study.baseline, *(s.name for s in study.steps)}
    stated = {s.name: s.on for s in study.steps if s.on is not None}
    refuse_mixed_sets([r for r in current if r.step in named], study.name, stated)
    index = _Index(current)
    of_baseline = index.named(study.baseline) or index.of(study.baseline, ())
    groups = {study.baseline: _step_runs(study.baseline, None, of_baseline)}
    for step in study.steps:
        groups[step.name] = _step_runs(step.name, step.on, index.of(step.name, step.on))
    for found in groups.values():
        _require(found, study, current)
    findings = [f for g in groups.values() for f in _cut_short(g) + _failed_rounds(g) + _spoilt_quality(g)]
    return groups, (*findings, *_outside(groups, current))


def refuse_repeated(study: Study) -> None:
    """Refuse a study in which a name stands twice.

    Args:
        study: Names baseline and steps.

    Raises:
        ConfigError: If two steps, or a step and the baseline, have one name.
    """
    names = [study.baseline, *(s.name for s in study.steps)]
    twice = [n for n, times in Counter(names).items() if times > 1]
    if twice:
        raise ConfigError(
            f"step {twice[0]!r} is named twice, or is the baseline itself",
            where=study.name,
            mend="give the baseline and every step a name of its own",
        )


def build_arm(runs: StepRuns, vector: Vector, *, per_run: bool) -> tuple[Arm | None, tuple[Finding, ...]]:
    """Return the arm of a step, ``None`` when no run of it can be used.

    Args:
        runs: The step's runs.
        vector: Factors and prices.
        per_run: No run of the study states units, so a run is the unit.
    """
    usable, findings = _usable(runs, per_run=per_run)
    rounds = sorted(_rounds(usable), key=lambda one: _place(one[0][0]))
    observations = [
        observe([run for run, _ in one], [energy for _, energy in one], per_run=per_run) for one in rounds
    ]
    pooled = sum(len(wholes([run for run, _ in one])) - 1 for one in rounds)
    if pooled:
        findings.append(
            _finding(
                "CL406",
                "info",
                f"{counted(pooled, 'run shares', 'runs share')} a round of step {runs.step!r} with another: "
                "they are pooled to one figure per round",
                runs.step,
                "give a repeated run a new number, or let it supersede the old one",
            )
        )
    if not observations:
        return None, tuple(findings)
    given = frozenset(r.repeat for r in runs.all if r.role in VARIANT_ROLES and r.repeat is not None)
    arm = make_arm(runs.step, runs.on, observations, vector, measured=given)
    return arm, (*findings, *arm.findings)


def is_per_run(groups: Mapping[str, StepRuns]) -> bool:
    """Return whether no measured run states its units of work."""
    return all(r.units is None for g in groups.values() for r in g.variants)


def _current(runs: Sequence[Run]) -> list[Run]:
    replaced = {r.supersedes for r in runs if r.supersedes is not None}
    kept = [r for r in runs if r.run_id not in replaced]
    known = {(r.run_id, r.step, r.role) for r in kept}
    return [r for r in kept if (r.parent_run_id, r.step, r.role) not in known]


class _Index:
    """Runs by the name of their step, and by their set where the name only spells it."""

    def __init__(self, runs: Sequence[Run]) -> None:
        self._runs = runs
        self._by_name: dict[str | None, list[int]] = {}
        self._by_set: dict[frozenset[str], list[int]] = {}
        for place, run in enumerate(runs):
            self._by_name.setdefault(run.step, []).append(place)
            spelled = spelled_set(run.step, run.on)
            if spelled is not None:
                self._by_set.setdefault(spelled, []).append(place)

    def named(self, step: str) -> list[Run]:
        """Return the runs that carry a step's name."""
        return [self._runs[i] for i in self._by_name.get(step, ())]

    def of(self, step: str, on: Sequence[str] | None) -> list[Run]:
        """Return the runs of a step by its name or its set, in their order."""
        places = set(self._by_name.get(step, ()))
        if on is not None:
            places |= set(self._by_set.get(frozenset(on), ()))
        return [self._runs[i] for i in sorted(places)]


def _step_runs(step: str, on: tuple[str, ...] | None, runs: Sequence[Run]) -> StepRuns:
    variants = [r for r in runs if r.role in VARIANT_ROLES]
    stated = on if on is not None else next((r.on for r in variants if r.on is not None), None)
    # A job is as its worst rank: the others' parts alone are no measurement of it.
    status = {id(r): JobRun(parts=whole).status for whole in wholes(runs) for r in whole}
    return StepRuns(
        step=step,
        on=None if stated is None else frozenset(stated),
        variants=tuple(r for r in variants if status[id(r)] == "complete"),
        failed=tuple(r for r in runs if status[id(r)] == "failed"),
        cut_short=tuple(r for r in runs if status[id(r)] in ("running", "recovered")),
        effort=tuple(r for r in runs if r.role in EFFORT_ROLES),
        all=tuple(runs),
    )


def _require(found: StepRuns, study: Study, runs: Sequence[Run]) -> None:
    if found.variants or (found.failed and found.step != study.baseline):
        return
    known = sorted({r.step for r in runs if r.step is not None and r.role in VARIANT_ROLES})
    what = "baseline" if found.step == study.baseline else "step"
    why = f": it failed with {found.error!r}" if found.failed else ""
    raise SelectionError(
        f"{what} {found.step!r} has no measured run{why}",
        where=study.name,
        mend=f"measure it, or choose among the measured: {', '.join(known) or 'none'}",
    )


def _usable(runs: StepRuns, *, per_run: bool) -> tuple[list[Measured], list[Finding]]:
    usable: list[Measured] = []
    unknown: list[Run] = []
    negative: list[Run] = []
    unitless: list[Run] = []
    for whole in wholes(runs.variants):
        energies = [(run, measured_energy(run)) for run in whole]
        values = [energy.value for _, energy in energies if energy.value is not None]
        units = JobRun(parts=whole).units
        # What one rank lacks, the job lacks: the others' energy is not what its work took.
        if len(values) < len(whole) or len({run.boundary for run in whole}) > 1:
            unknown += whole
        elif min(values) < 0:
            negative += whole
        elif not per_run and (units is None or units <= 0):
            unitless += whole
        else:
            usable += energies
    of_ranks = ": in a job, count the units of each rank's own part" if _has_ranks(unitless) else ""
    left_out = (
        ("CL401", unknown, "have no energy, or energy at mixed boundaries", "measure their energy"),
        ("CL402", negative, "have negative energy", "correct them with runs that supersede them"),
        ("CL404", unitless, "state no units of work", f"state the units with the runs{of_ranks}"),
    )
    findings = [
        _finding(
            code,
            "warning",
            f"{_count(some)} of step {runs.step!r} {_says(some, why)} and {_are(some)} left out",
            runs.step,
            mend,
        )
        for code, some, why, mend in left_out
        if some
    ]
    return usable, findings


def _has_ranks(runs: Sequence[Run]) -> bool:
    return any(len(whole) > 1 for whole in wholes(runs))


def _says(runs: Sequence[Run], why: str) -> str:
    return f"{why} in one rank or more" if _has_ranks(runs) else why


def _rounds(runs: Sequence[Measured]) -> list[list[Measured]]:
    """Group by number of the round; without one a run, or what a job's ranks recorded, is a round."""
    energies = {id(run): energy for run, energy in runs}
    rounds: dict[object, list[Measured]] = {}
    for index, whole in enumerate(wholes([run for run, _ in runs])):
        repeat = whole[0].repeat
        key = ("run", index) if repeat is None else ("round", repeat)
        rounds.setdefault(key, []).extend((run, energies[id(run)]) for run in whole)
    return list(rounds.values())


def _place(run: Run) -> tuple[int, int]:
    """Return where a round stands: by its number, else by when it started, else as it was recorded."""
    return (0, run.repeat) if run.repeat is not None else (1, run.start_us or 0)


def _outside(groups: Mapping[str, StepRuns], runs: Sequence[Run]) -> list[Finding]:
    """Say which runs belong to no step of the study; idle power belongs to none by its nature."""
    used = {r.run_id for g in groups.values() for r in g.all}
    outside = [r for r in runs if r.run_id not in used and r.role != "idle"]
    nameless = [r for r in outside if r.step is None and r.on is None]
    strange = [r for r in outside if not (r.step is None and r.on is None)]
    findings = []
    if nameless:
        text = f"{_count(nameless)} of the study {_names(nameless)} no step and {_are(nameless)} left out"
        findings.append(Finding(code="CL423", severity="warning", message=text, mend="state their step"))
    if strange:
        steps = ", ".join(sorted({r.step or joined(r.on or ()) for r in strange}))
        text = f"{_count(strange)} {_names(strange)} a step that the study does not ({steps})"
        mend = "add the step to the study"
        findings.append(
            Finding(code="CL423", severity="info", message=f"{text}, and {_are(strange)} left out", mend=mend)
        )
    return findings


def _cut_short(runs: StepRuns) -> list[Finding]:
    cut = [r for r in runs.cut_short if r.role in VARIANT_ROLES]
    if not cut:
        return []
    return [
        _finding(
            "CL416",
            "warning",
            f"{_count(cut)} of step {runs.step!r} did not end and {_are(cut)} left out",
            runs.step,
            "measure again",
        )
    ]


def _failed_rounds(runs: StepRuns) -> list[Finding]:
    if not runs.failed:
        return []
    if runs.variants:
        # A failed attempt to make the step is part of its effort; only measuring runs are left out.
        some = runs.raised or runs.failed
        left_out = f" and {_are(some)} left out" if runs.raised else ""
        text = f"{_count(some)} of step {runs.step!r} failed{left_out}: {runs.error}"
        mend = "mend the error and measure again, each new run superseding the failed one"
        return [_finding("CL421", "warning", text, runs.step, mend)]
    text = f"step {runs.step!r} failed: {runs.error}"
    return [_finding("CL411", "error", text, runs.step, "mend the error and measure again")]


def _spoilt_quality(runs: StepRuns) -> list[Finding]:
    names = runs.unused_quality
    if not names:
        return []
    text = f"{', '.join(names)} of step {runs.step!r}: only runs that failed or did not end record it"
    mend = "evaluate what was measured, and record it with a run that ends"
    return [_finding("CL429", "warning", f"{text}, so it is not used", runs.step, mend)]


def _count(runs: Sequence[Run]) -> str:
    """Return how many runs these are, what a job's ranks recorded as one."""
    counts = wholes(runs)
    if len(counts) > 1:
        return f"{len(counts)} runs"
    of = f" of {len(runs)} ranks" if len(runs) > 1 else ""
    return f"1 run{of} ({runs[0].run_id})"


def _names(runs: Sequence[Run]) -> str:
    return "names" if len(wholes(runs)) == 1 else "name"


def _are(runs: Sequence[Run]) -> str:
    return "is" if len(wholes(runs)) == 1 else "are"


def _finding(code: str, severity: Severity, message: str, subject: str, mend: str) -> Finding:
    return Finding(code=code, severity=severity, message=message, subject=subject, mend=mend)
