"""Waterfall: from the baseline's energy to the end of the accepted path, step by step."""

from __future__ import annotations

import math
from collections.abc import Sequence

import msgspec

from carbonlens.domain.comparison import StepResult
from carbonlens.domain.estimate import Estimate, unknown
from carbonlens.reporting import format as fmt
from carbonlens.reporting.content import Bar, BarKind, Waterfall, label, phrase, quoted
from carbonlens.reporting.facts import Facts
from carbonlens.reporting.figures import exact, quotient, recentred, reduction
from carbonlens.reporting.names import clip
from carbonlens.reporting.number_words import in_words

MOST_BARS = 9
"""Steps drawn; a page holds no more without shrinking the rest."""

_PERCENT = fmt.Scale("%", 100.0)


class _Move(msgspec.Struct, frozen=True, kw_only=True):
    """A step with the level it starts from and its change, both as fractions of the baseline."""

    step: StepResult
    on_path: bool
    start: float
    change: Estimate


def waterfall(facts: Facts) -> Waterfall | None:
    """Return the waterfall in percent of the baseline; ``None`` without a baseline figure.

    The steps of the path carry the running level down. Any other step is drawn
    from the level it was measured on and does not change it.
    """
    base = facts.comparison.baseline_amounts
    if base is None or not base.energy_j.value or not facts.comparison.steps:
        return None
    moves = _moves(facts, base.energy_j)
    drawn = _drawn(facts)
    rest = [m for m in moves if m.on_path and m.step.step not in drawn]
    rounded = _rounded(facts, moves)
    bars = [
        _baseline_bar(facts),
        *(_step_bar(facts, m, rounded.get(m.step.step)) for m in moves if m.step.step in drawn),
        *([_rest_bar(facts, rest, rounded)] if rest else []),
        *_remainder(facts, moves, rounded),
        _final_bar(facts),
    ]
    return Waterfall(
        title=phrase(
            "Energy per ", quoted(facts.unit), ", in percent of the baseline, with ", label("95 %"),
            " intervals",
        ),
        alt=_alt(facts, bars),
        bars=tuple(bars),
        axis="percent of the baseline",
    )  # fmt: skip


def _moves(facts: Facts, baseline: Estimate) -> list[_Move]:
    levels = {facts.comparison.study.baseline: 1.0}
    level = 1.0
    moves: list[_Move] = []
    for step in facts.comparison.steps:
        on_path = step.step in facts.comparison.path
        start = levels.get(step.measured_on, level) if facts.is_ladder else level
        change = _change(facts, step, start, baseline)
        moves.append(_Move(step=step, on_path=on_path, start=start, change=change))
        if change.value is not None:
            levels[step.step] = start + change.value
            level = levels[step.step] if on_path else level
    return moves


def _change(facts: Facts, step: StepResult, start: float, baseline: Estimate) -> Estimate:
    """Return a step's change as a fraction of the baseline, negative where it saves.

    In a ladder it is the difference of the ratios to the baseline, so that the
    parts add up to the headline, with the interval of the step's own ratio.
    Otherwise it is the step's part of the saving, common errors cancelled.
    """
    amounts = step.attribution if step.step in facts.comparison.path else step.would_have
    if amounts is None or amounts.energy_j.value is None or step.status == "failed":
        return unknown("1", signed=True)
    change = quotient(amounts.energy_j, baseline).scale(-1.0, "1")
    if not facts.is_ladder or step.vs_baseline is None or step.vs_baseline.ratio.value is None:
        return change
    width = step.vs_previous.ratio.scale(start, "1") if step.vs_previous else change
    return recentred(width, step.vs_baseline.ratio.value - start)


def _drawn(facts: Facts) -> set[str]:
    """Return the steps to draw: those of the path first, the others as far as there is room.

    Steps of the path that find no room share one bar.
    """
    path = [s.step for s in facts.path_steps]
    if len(path) > MOST_BARS:
        return set(path[: MOST_BARS - 1])
    others = [s.step for s in facts.comparison.steps if s.step not in path]
    return {*path, *others[: MOST_BARS - len(path)]}


def _rounded(facts: Facts, moves: Sequence[_Move]) -> dict[str, tuple[float, int]]:
    """Return the percentages of the path's steps, rounded so that they add up to the headline as printed.

    In a lattice the headline is of ratios and the parts are of joules. Where their sums differ by more
    than rounding does, the parts keep their own, and a bar of its own holds the rest.
    """
    saved = facts.reduction().printed.figure.estimate
    path = [m for m in moves if m.on_path and m.change.value is not None]
    if saved.value is None or len(path) != len(facts.path_steps):
        return {}
    places = fmt.percent.places(saved, _PERCENT)
    headline = round(100 * saved.value, places)
    changes = [100 * (m.change.value or 0.0) for m in path]
    is_rounding = abs(math.fsum(changes) + headline) <= len(changes) * 10.0**-places
    parts = fmt.apportion(changes, places, total=-headline if is_rounding else None)
    return {m.step.step: (value, places) for m, value in zip(path, parts, strict=True)}


def _remainder(facts: Facts, moves: Sequence[_Move], rounded: dict[str, tuple[float, int]]) -> list[Bar]:
    """Return the bar of what the headline has and no step, where the steps do not add up to it."""
    saved = facts.reduction().printed.figure.estimate
    if not rounded or saved.value is None:
        return []
    places = next(iter(rounded.values()))[1]
    printed = round(
        -round(100 * saved.value, places) - math.fsum(value for value, _ in rounded.values()), places
    )
    if not printed:
        return []
    start = 1.0 + math.fsum(m.change.value or 0.0 for m in moves if m.on_path)
    change = Estimate(value=1.0 - saved.value - start, unit="1", signed=True)
    entry = facts.book.enter(
        "waterfall.in_no_step",
        "change that is in the total and in no step, in percent of the baseline's energy",
        change,
        fmt.percent(change, plus=True, at=(printed, places)),
        formula="total - sum of the steps",
        inputs=("total.reduction_energy",),
    )
    return [
        Bar(
            name="In no step", kind="undetermined", start=100 * start, end=100 * (1.0 - saved.value),
            low=None, high=None, figure_id=entry.figure_id, text=entry.printed.text,
        )
    ]  # fmt: skip


def _baseline_bar(facts: Facts) -> Bar:
    whole = exact(1.0)
    entry = facts.book.enter("baseline.share", "the baseline itself", whole, fmt.percent(whole))
    return Bar(
        name=facts.name(facts.comparison.study.baseline), kind="baseline", start=0.0, end=100.0,
        low=None, high=None, figure_id=entry.figure_id, text=entry.printed.text,
    )  # fmt: skip


def _step_bar(facts: Facts, move: _Move, at: tuple[float, int] | None) -> Bar:
    step, change = move.step, move.change
    if change.value is None:
        return Bar(
            name=facts.name(step.step), kind=_kind(move), start=None, end=None, low=None, high=None,
            figure_id=None, text=f"{step.status}: no figure",
        )  # fmt: skip
    entry = facts.book.enter(
        f"step.{facts.slug(step.step)}.share_of_baseline",
        f"change by {facts.name(step.step)}, in percent of the baseline's energy",
        change,
        fmt.percent(change, plus=True, at=at),
        formula="ratio to the baseline - ratio of the preceding level",
    )
    ends = [None if end is None else 100 * (move.start + end) for end in (change.low, change.high)]
    # A lattice's path holds all its optimizations, accepted or not.
    said = "alternative" if step.status == "accepted" and not move.on_path else step.status
    suffix = "" if said == "accepted" else f" {said}"
    return Bar(
        name=facts.name(step.step), kind=_kind(move), start=100 * move.start,
        end=100 * (move.start + change.value), low=ends[0], high=ends[1],
        figure_id=entry.figure_id, text=entry.printed.text + suffix, interval=entry.printed.interval,
    )  # fmt: skip


def _kind(move: _Move) -> BarKind:
    if move.step.status == "failed":
        return "failed"
    if move.on_path:
        return "accepted"
    return "rejected" if move.step.status == "rejected" else "undetermined"


def _rest_bar(facts: Facts, rest: Sequence[_Move], rounded: dict[str, tuple[float, int]]) -> Bar:
    """Return the one bar of the accepted steps that found no room."""
    start = rest[0].start
    changes = [m.change for m in rest]
    halves = [(c.high - c.low) / 2 for c in changes if c.low is not None and c.high is not None]
    value = math.fsum(c.value or 0.0 for c in changes)
    half = math.hypot(*halves) if len(halves) == len(rest) else None
    change = Estimate(
        value=value,
        unit="1",
        signed=True,
        bounds=(None, None) if half is None else (value - half, value + half),
    )
    shown = [rounded[m.step.step] for m in rest if m.step.step in rounded]
    at = (math.fsum(v for v, _ in shown), shown[0][1]) if len(shown) == len(rest) else None
    entry = facts.book.enter(
        "waterfall.other_accepted", "change by the other accepted steps, in percent of the baseline's energy",
        change, fmt.percent(change, plus=True, at=at), formula="sum of the steps",
    )  # fmt: skip
    return Bar(
        name=f"{in_words(len(rest)).capitalize()} more accepted steps", kind="accepted", start=100 * start,
        end=100 * (start + value), low=None if half is None else 100 * (start + value - half),
        high=None if half is None else 100 * (start + value + half),
        figure_id=entry.figure_id, text=entry.printed.text, interval=entry.printed.interval,
    )  # fmt: skip


def _final_bar(facts: Facts) -> Bar:
    saved = facts.reduction().printed.figure.estimate
    # What is left is the other side of the headline, printed with its digits.
    rest = reduction(saved) if facts.has_path else exact(1.0)
    at = None
    if facts.has_path and saved.value is not None:
        places = fmt.percent.places(saved, _PERCENT)
        at = (100 - round(100 * saved.value, places), places)
    entry = facts.book.enter(
        "final.share", "energy at the end of the path, as a share of the baseline", rest,
        fmt.percent(rest, at=at), formula="1 - reduction", inputs=("total.reduction_energy",),
    )  # fmt: skip
    whiskers = [100 * b if b is not None and facts.has_path else None for b in (rest.low, rest.high)]
    name = "After the accepted steps" if facts.is_ladder else "With all optimizations"
    end = None if rest.value is None else 100 * rest.value
    return Bar(
        name=name if facts.has_path else "No step accepted", kind="final",
        start=None if end is None else 0.0, end=end,
        low=whiskers[0], high=whiskers[1], figure_id=entry.figure_id, text=entry.printed.text,
        interval=entry.printed.interval,
    )  # fmt: skip


def _alt(facts: Facts, bars: Sequence[Bar]) -> str:
    """Return the chart's finding in words, with its figures."""
    said = "; ".join(f"{clip(b.name, 30)} {b.text}" for b in bars)
    return f"Waterfall of energy in percent of the baseline, {in_words(len(facts.adopted))} accepted. {said}."
