"""From a study's runs to its arms: which run belongs where, and which is usable."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence

import msgspec
from msgspec.structs import replace

from carbonlens.accounting.job_runs import JobRun, wholes
from carbonlens.compare.arms import Arm, make_arm
from carbonlens.compare.from_runs import VARIANT_ROLES, joined, refuse_mixed_sets, spelled_set
from carbonlens.compare.nested import EFFORT_ROLES, Nesting, about_nested, nesting, why_none
from carbonlens.compare.observation import measured_energy, observe
from carbonlens.domain.counting import counted
from carbonlens.domain.estimate import Estimate
from carbonlens.domain.factor import Vector
from carbonlens.domain.finding import Finding, Severity
from carbonlens.domain.limits import LEAST_UNITS, MOST
from carbonlens.domain.run import Quality, Run
from carbonlens.domain.study import Study
from carbonlens.errors import ConfigError, SelectionError

Measured = tuple[Run, Estimate]
"""A run with its energy."""

_CUT_SHORT = ("running", "recovered")


class StepRuns(msgspec.Struct, frozen=True, kw_only=True):
    """The runs of one step.

    Attributes:
        step: Name of the step.
        on: Optimizations that were on; ``None`` when neither study nor runs say.
        variants: Runs that measure it and ended well.
        failed: Runs of any role that ended with an error; of a job with a rank that did, every rank's.
            A measuring run inside another run of the study is none: it would be no round either.
        cut_short: Runs of any role that did not end, as above.
        spoilt: Ids of all runs that did not end well.
        effort: Runs that made it.
        effort_around: Of those that lie in other effort runs of the study, id to the ids of these.
        all: Every run of the step, those that lie inside another run of the study too.
    """

    step: str
    on: frozenset[str] | None
    variants: tuple[Run, ...]
    failed: tuple[Run, ...]
    cut_short: tuple[Run, ...] = ()
    effort: tuple[Run, ...]
    spoilt: frozenset[str] = frozenset()
    effort_around: Mapping[str, frozenset[str]] = {}
    all: tuple[Run, ...]

    @property
    def recorded(self) -> tuple[Quality, ...]:
        """Qualities of the step, in any run that ended well: one that did not judged something else."""
        return tuple(q for r in self.all if r.run_id not in self.spoilt for q in r.quality)

    @property
    def unused_quality(self) -> tuple[str, ...]:
        """Names of the qualities that only runs record which failed or were cut short."""
        if not self.spoilt:
            return ()
        used = {q.name for q in self.recorded}
        names = (q.name for r in self.all if r.run_id in self.spoilt for q in r.quality)
        return tuple(dict.fromkeys(n for n in names if n not in used))

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
    a run that is itself there, but for one that only holds the rounds of its step. One inside a run
    of another step or role is no round and no effort of its own.

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
    by_step = _by_step(study, current)
    nested = nesting(current, {r.run_id for _, _, some in by_step for r in some})
    if nested.same or nested.numbers:
        kept = (r for r in current if r.run_id not in nested.same)
        current = [replace(r, repeat=nested.numbers.get(r.run_id, r.repeat)) for r in kept]
        by_step = _by_step(study, current)
    named = {study.baseline, *(s.name for s in study.steps)}
    stated = {s.name: s.on for s in study.steps if s.on is not None}
    refuse_mixed_sets([r for r in current if r.step in named], study.name, stated)
    groups = {name: _step_runs(name, on, some, nested) for name, on, some in by_step}
    for found in groups.values():
        _require(found, study, current, nested)
    findings = [f for g in groups.values() for f in _cut_short(g) + _failed_rounds(g) + _spoilt_quality(g)]
    return groups, (*findings, *about_nested(nested, current), *_outside(groups, current))


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
    pooled = sum(len(wholes([run for run, _ in one])) - 1 for one in rounds if len(one) > 1)
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
    tried = (r for r in (*runs.variants, *runs.failed, *runs.cut_short) if r.role in VARIANT_ROLES)
    given = frozenset(r.repeat for r in tried if r.repeat is not None)
    arm = make_arm(runs.step, runs.on, observations, vector, measured=given)
    return arm, (*findings, *arm.findings)


def is_per_run(groups: Mapping[str, StepRuns]) -> bool:
    """Return whether no measured run states its units of work."""
    return all(r.units is None for g in groups.values() for r in g.variants)


def _current(runs: Sequence[Run]) -> list[Run]:
    # A record that names itself (a slip in a ledger) replaces nothing.
    replaced = {r.supersedes for r in runs if r.supersedes not in (None, r.run_id)}
    return [r for r in runs if r.run_id not in replaced]


def _by_step(study: Study, runs: Sequence[Run]) -> list[tuple[str, tuple[str, ...] | None, Sequence[Run]]]:
    """Return name, stated set and runs of the baseline and of every step, in the study's order."""
    index = _Index(runs)
    of_baseline = index.named(study.baseline) or index.of(study.baseline, ())
    steps = ((s.name, s.on, index.of(s.name, s.on)) for s in study.steps)
    return [(study.baseline, None, of_baseline), *steps]


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


def _step_runs(step: str, on: tuple[str, ...] | None, runs: Sequence[Run], nested: Nesting) -> StepRuns:
    own = [r for r in runs if r.role not in VARIANT_ROLES or r.run_id not in nested.inside]
    variants = [r for r in own if r.role in VARIANT_ROLES]
    stated = on if on is not None else next((r.on for r in variants if r.on is not None), None)
    # A job is as its worst rank: the others' parts alone are no measurement of it.
    status = {id(r): r.status for r in runs}
    if any(r.rank is not None for r in runs):
        status |= {id(r): JobRun(parts=whole).status for whole in wholes(runs) for r in whole}
    effort = tuple(r for r in runs if r.role in EFFORT_ROLES)
    return StepRuns(
        step=step,
        on=None if stated is None else frozenset(stated),
        variants=tuple(r for r in variants if status[id(r)] == "complete" and r.run_id not in nested.frames),
        failed=tuple(r for r in own if status[id(r)] == "failed"),
        cut_short=tuple(r for r in own if status[id(r)] in _CUT_SHORT),
        spoilt=frozenset(r.run_id for r in runs if status[id(r)] in ("failed", *_CUT_SHORT)),
        effort=effort,
        effort_around={r.run_id: held for r in effort if (held := nested.efforts.get(r.run_id))},
        all=tuple(runs),
    )


def _require(found: StepRuns, study: Study, runs: Sequence[Run], nested: Nesting) -> None:
    if found.variants or (found.failed and found.step != study.baseline):
        return
    free = [r for r in runs if r.role in VARIANT_ROLES and r.run_id not in nested.inside]
    known = sorted({r.step for r in free if r.step is not None})
    what = "baseline" if found.step == study.baseline else "step"
    why = f": it failed with {found.error!r}" if found.failed else why_none(nested, found.step, found.all)
    raise SelectionError(
        f"{what} {found.step!r} has no measured run{why}",
        where=study.name,
        mend=f"measure it, or choose among the measured: {', '.join(known) or 'none'}",
    )


def _usable(runs: StepRuns, *, per_run: bool) -> tuple[list[Measured], list[Finding]]:
    usable: list[Measured] = []
    left_out: dict[str, list[Run]] = {}
    for whole in wholes(runs.variants):
        energies = [(run, measured_energy(run)) for run in whole]
        code = _unusable(whole, [energy.value for _, energy in energies], per_run=per_run)
        if code is None:
            usable += energies
        else:
            left_out.setdefault(code, []).extend(whole)
    return usable, [_left_out(code, left_out[code], runs.step) for code in sorted(left_out)]


def _unusable(whole: tuple[Run, ...], values: Sequence[float | None], *, per_run: bool) -> str | None:
    """Return the code of why a run, or a job's ranks, tell no energy per unit; ``None`` if they do."""
    known = [v for v in values if v is not None and math.isfinite(v)]
    # What one rank lacks, the job lacks: the others' energy is not what its work took.
    if len(known) < len(whole) or (len(whole) > 1 and len({run.boundary for run in whole}) > 1):
        return "CL401"
    if min(known) < 0:
        return "CL402"
    if per_run:
        return None
    units = whole[0].units if len(whole) == 1 else JobRun(parts=whole).units
    if units is None or not units.is_finite() or units <= 0:
        return "CL404"
    return None if LEAST_UNITS <= units < MOST else "CL451"


def _left_out(code: str, some: Sequence[Run], step: str) -> Finding:
    have, no_units, too_many = ("have", "state no units", "state units")
    if len(wholes(some)) == 1:
        have, no_units, too_many = ("has", "states no units", "states units")
    of_ranks = ": in a job, count the units of each rank's own part" if _has_ranks(some) else ""
    why, mend = {
        "CL401": (f"{have} no energy, or energy at mixed boundaries", "measure their energy"),
        "CL402": (f"{have} negative energy", "correct them with runs that supersede them"),
        "CL404": (f"{no_units} of work", f"state the units with the runs{of_ranks}"),
        "CL451": (
            f"{too_many} of work beyond what a record holds ({LEAST_UNITS:f} to {MOST:.0e})",
            "correct the units with runs that supersede them",
        ),
    }[code]
    message = f"{_count(some)} of step {step!r} {_says(some, why)} and {_are(some)} left out"
    return _finding(code, "warning", message, step, mend)


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
    holding = {r.parent_run_id for g in groups.values() for r in g.all}
    nameless = [r for r in outside if r.step is None and r.on is None]
    strange = [r for r in outside if not (r.step is None and r.on is None)]
    findings = []
    if nameless:
        text = f"{_count(nameless)} of the study {_names(nameless)} no step and {_are(nameless)} left out"
        findings.append(Finding(code="CL423", severity="warning", message=text, mend="state their step"))
    if strange:
        steps = ", ".join(sorted({r.step or joined(r.on or ()) for r in strange}))
        text = f"{_count(strange)} {_names(strange)} a step that the study does not ({steps})"
        frames = all(r.run_id in holding for r in strange)
        mend = "none where it only runs the others inside it" if frames else "add the step to the study"
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
