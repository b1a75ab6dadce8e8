"""Power traces: the chart and the table of power over time, out of one run of each arm."""

from __future__ import annotations

import math
from typing import Final

import msgspec

from carbonlens.domain.comparison import ArmPower, NoPower, PhasePower
from carbonlens.domain.estimate import Estimate
from carbonlens.domain.phase import NAMES as PHASES
from carbonlens.reporting import format as fmt
from carbonlens.reporting.content import Column, Part, Phrase, Row, Spot, Table, label, phrase, quoted
from carbonlens.reporting.facts import Facts
from carbonlens.reporting.figures import Entry, exact
from carbonlens.reporting.names import as_head, clip, slugs
from carbonlens.reporting.number_words import in_words, join_words
from carbonlens.reporting.power_content import NAME, PowerArm, PowerPhase, PowerTraces

MOST_ARMS: Final = 6
MOST_PHASES: Final = 6
_MOST_PAIRS: Final = 4
"""With more phases than these a table has no room for how long each lasted."""
_NOTHING: Final = (phrase("–"),)
_LETTERS: Final = "abcdefghijklmnopqrstuvwxyz"
_SAID: Final = 4
"""Arms, and phases of one, that the alternative text names."""
_WHY: Final = 160
"""Width of a reason, and of its mend, as printed."""
_ID: Final = 12
"""Last digits of an id, which no two runs share; the first ones are the time."""

NONE_KEPT: Final = (
    "No power trace: no trace was kept. Run with --trace FILE (trace=True in Python), and name phases."
)

_BOUNDARIES: Final = {"device": "the device", "it": "the IT equipment", "facility": "the facility"}
_RUNS: Final = {"variant": "measured round", "evaluation": "run beside the rounds"}


def power_traces(facts: Facts) -> PowerTraces | None:
    """Return power over time by arm; ``None`` where no run keeps it.

    Args:
        facts: The comparison with its names and scales.
    """
    shown = [p for p in facts.comparison.power if p.power_w.value is not None][:MOST_ARMS]
    if not shown:
        return None
    phases = _longest(shown)
    arms = [_arm(facts, p, phases) for p in shown]
    return PowerTraces(
        title=phrase("Power over time of one run of each step, with its phases"),
        alt=_alt(arms),
        arms=tuple(arms),
        axis="seconds since the run’s start",
        table=_table(facts, shown, phases),
    )


def _longest(shown: list[ArmPower]) -> list[str]:
    """Return the names of the phases that last longest in all arms together, in order of appearance."""
    spent: dict[str, float] = {}
    for power in shown:
        for phase in power.phases:
            spent[phase.name] = spent.get(phase.name, 0.0) + phase.duration_s
    kept = sorted(spent, key=lambda name: -spent[name])[:MOST_PHASES]
    return [name for name in spent if name in kept]


def without_trace(facts: Facts) -> Phrase:
    """Say which arms have no power over time, and why; nothing where all have it.

    Args:
        facts: The comparison with its names and scales.
    """
    kept = [p.step for p in facts.comparison.power if p.power_w.value is not None]
    known = {n.step: n for n in facts.comparison.no_power}
    if not kept and not known:
        return phrase(NONE_KEPT)
    steps = [facts.comparison.study.baseline, *facts.steps]
    silent: dict[NoPower | None, list[str]] = {}
    for step in (s for s in steps if s not in kept):
        why = known.get(step)
        key = None if why is None else msgspec.structs.replace(why, step="")
        silent.setdefault(key, []).append(facts.name(step))
    words = [_silence(why, names, is_all=not kept) for why, names in silent.items()]
    hidden = len(kept) - MOST_ARMS
    if hidden > 0:
        words.append(phrase(f"Power traces of {in_words(hidden)} more are left out."))
    spaced = (phrase(" " if n else "", said) for n, said in enumerate(words))
    return phrase("" if kept else "No power trace: ", *spaced)


def _silence(why: NoPower | None, names: list[str], *, is_all: bool) -> Phrase:
    """Say why some arms have no power over time, and what would mend it."""
    some = quoted(", ".join(names[:_SAID]) + (" and others" if len(names) > _SAID else ""))
    said = phrase("no run of it kept one")
    if why is not None:
        said = phrase(
            quoted(clip(why.why, _WHY)), *(("; ", quoted(clip(why.mend, _WHY))) if why.mend else ())
        )
    return phrase(*(() if is_all else ("No power trace of ",)), some, ": ", said, ".")


# One arm --------------------------------------------------------------------


def _arm(facts: Facts, power: ArmPower, names: list[str]) -> PowerArm:
    phases = [
        PowerPhase(
            letter=_LETTERS[names.index(p.name)],
            phase=p.name,
            name=clip(p.name, NAME),
            mean=None if p.power_w.value is None else _spot(_mean(facts, power, p)),
        )
        for p in power.phases
        if p.name in names
    ]
    return PowerArm(
        name=facts.name(power.step),
        step=power.step,
        run_id=power.run_id,
        duration_s=power.duration_s,
        trace=power.trace,
        mean=_spot(_mean(facts, power)),
        peak=_spot(_peak(facts, power)),
        phases=tuple(phases),
        hidden=len(power.phases) - len(phases),
        idle=_spot(_idle(facts, power)) if _knows_idle(power) else None,
    )


def _id(facts: Facts, power: ArmPower, phase: PhasePower | None, what: str) -> str:
    names = slugs(p.name for p in power.phases)
    part = f".phase.{names[phase.name]}" if phase is not None else ""
    return f"power.{facts.slug(power.step)}{part}.{what}"


def _enter(facts: Facts, figure_id: str, label: str, estimate: Estimate, unit: str = "W") -> Entry:
    return facts.book.enter(figure_id, label, estimate, fmt.plain(estimate, unit))


def _mean(facts: Facts, power: ArmPower, phase: PhasePower | None = None) -> Entry:
    of = "the run" if phase is None else "a phase"
    estimate = power.power_w if phase is None else phase.power_w
    return _enter(facts, _id(facts, power, phase, "mean"), f"mean power of {of}", estimate)


def _lasted(facts: Facts, power: ArmPower, phase: PhasePower | None = None) -> Entry:
    of = "the run" if phase is None else "a phase"
    seconds = exact(power.duration_s if phase is None else phase.duration_s, "s")
    return _enter(facts, _id(facts, power, phase, "duration"), f"length of {of}", seconds, "s")


def _peak(facts: Facts, power: ArmPower) -> Entry:
    peak = exact(power.peak_w, "W")
    over_s = power.trace.over_s
    # A counter tells no moment: what it gained is known between looks alone.
    label = f"highest mean power over {over_s:g} s or more" if over_s else "highest power that was read"
    return _enter(facts, _id(facts, power, None, "peak"), label, peak)


def _idle(facts: Facts, power: ArmPower) -> Entry:
    idle = power.idle_w or exact(None, "W")
    return _enter(facts, _id(facts, power, None, "idle"), "power of the machine in runs without work", idle)


def _spot(entry: Entry) -> Spot:
    value = entry.printed.figure.estimate.value
    return Spot(
        value=value if value is not None and math.isfinite(value) else 0.0,
        figure_id=entry.figure_id,
        text=entry.printed.text,
    )


# Words ----------------------------------------------------------------------


def _alt(arms: list[PowerArm]) -> str:
    said = "; ".join(f"{clip(a.name, 30)}: {_finding(a)}" for a in arms[:_SAID])
    steps = in_words(len(arms))
    return f"Power over time of one run of each step ({steps}), phases as bands. {said}."


def _finding(arm: PowerArm) -> str:
    """Say what a curve shows, the longest phase first."""
    peak = f"peak {arm.peak.text}"
    spent: dict[str, float] = {}
    for span in arm.trace.spans:
        spent[span.name] = spent.get(span.name, 0.0) + span.end_s - span.start_s
    told = [p for p in arm.phases if p.mean is not None]
    if not told:
        return f"{arm.mean.text} on average, {peak}"
    first, *others = sorted(told, key=lambda p: -spent.get(p.phase, 0.0))[:_SAID]
    rest = [f"{p.name} {p.power}" for p in others]
    return ", ".join([f"{first.name} phase draws {first.power} on average", *rest, peak])


def _which(power: ArmPower) -> tuple[Phrase, ...]:
    """Say which run it is."""
    kind = _RUNS.get(power.role, f"{power.role} run")
    return phrase(kind), phrase(quoted(f"…{power.run_id[-_ID:]}"))


def _why(power: ArmPower) -> str:
    """Say why a run stands for its arm."""
    if power.alike > 1:
        return f"of {in_words(power.alike)} alike the one with the median energy"
    if power.kept > 1:
        return f"of {in_words(power.kept)} with a trace the one that tells most"
    return "the only one with a trace"


def _whys(facts: Facts, shown: list[ArmPower]) -> Phrase:
    """Say why these runs stand for their arms, each reason once."""
    named: dict[str, list[str]] = {}
    for power in shown:
        named.setdefault(_why(power), []).append(facts.name(power.step))
    if len(named) == 1:
        return phrase(f"Each run is {next(iter(named))}. ")
    parts: list[Phrase] = [
        phrase("; " if n else "", why, " (", quoted(", ".join(names)), ")")
        for n, (why, names) in enumerate(named.items())
    ]
    return phrase("The runs: ", *parts, ". ")


def _table(facts: Facts, shown: list[ArmPower], phases: list[str]) -> Table:
    """Return the table of the chart: a row a run, its longest phases beside it."""
    has_idle = any(_knows_idle(power) for power in shown)
    in_pairs = len(phases) <= _MOST_PAIRS
    boundaries = join_words(dict.fromkeys(_BOUNDARIES[p.boundary] for p in shown if p.boundary))
    more = len({p.name for a in shown for p in a.phases}) - len(phases)
    return Table(
        caption=phrase("Power of the runs that are drawn, and of their phases"),
        head="Step",
        columns=(
            Column(name=phrase("Lasted"), unit="s"),
            Column(name=phrase("Mean power"), unit="W"),
            Column(name=phrase("Peak"), unit="W"),
            *((Column(name=phrase("Idle"), unit="W"),) if has_idle else ()),
            *(column for name in phases for column in _columns(name, in_pairs=in_pairs)),
            Column(name=phrase("Run"), numeric=False),
        ),
        rows=tuple(_row(facts, p, phases, has_idle=has_idle, in_pairs=in_pairs) for p in shown),
        note=phrase(
            f"Boundary: {boundaries}. " if boundaries else "",
            _whys(facts, shown),
            "Means are joules over seconds of that run, not of the rounds that are compared. The curve "
            "is thinned: its ribbon holds the least and most that was read. Gaps were not measured.",
            *_of_counters(shown),
            f" Shorter phases ({in_words(more)}) have no column." if more > 0 else "",
        ),
    )


def _of_counters(shown: list[ArmPower]) -> tuple[str | Part, ...]:
    """Say of which time peaks are the mean that counters tell."""
    told = sorted({p.trace.over_s for p in shown if p.trace.over_s > 0})
    if not told:
        return ()
    seconds = label(" and ".join(dict.fromkeys((f"{told[0]:g} s", f"{told[-1]:g} s"))))
    of = "" if all(p.trace.over_s for p in shown) else " where a counter was read"
    return (f" Peak, least and most are{of} means over ", seconds, " or more: a counter tells no moment.")


def _knows_idle(power: ArmPower) -> bool:
    return power.idle_w is not None and power.idle_w.value is not None


def _columns(name: str, *, in_pairs: bool) -> tuple[Column, ...]:
    shown = phrase(quoted(as_head(clip(name, NAME), PHASES)))
    lasted = Column(name=phrase(shown, ", lasted"), unit="s")
    return Column(name=shown, unit="W"), *((lasted,) if in_pairs else ())


def _row(facts: Facts, power: ArmPower, phases: list[str], *, has_idle: bool, in_pairs: bool) -> Row:
    told = {p.name: p for p in power.phases}
    cells: list[tuple[Phrase, ...]] = [
        _lasted(facts, power).cell,
        _mean(facts, power).cell,
        _peak(facts, power).cell,
    ]
    if has_idle:
        cells.append(_idle(facts, power).cell if _knows_idle(power) else _NOTHING)
    for name in phases:
        phase = told.get(name)
        cells.append(_NOTHING if phase is None else _mean(facts, power, phase).cell)
        if in_pairs:
            cells.append(_NOTHING if phase is None else _lasted(facts, power, phase).cell)
    return Row(head=phrase(quoted(facts.name(power.step))), cells=(*cells, _which(power)))
