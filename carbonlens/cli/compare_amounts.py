"""How a comparison's parts, amounts and break-even are put into words."""

from __future__ import annotations

from collections.abc import Sequence

from carbonlens.cli import output
from carbonlens.domain.comparison import BreakEven, Comparison
from carbonlens.domain.estimate import Estimate
from carbonlens.reporting import format as fmt
from carbonlens.reporting import names, number_words

NAME_WIDTH = 20
_PLACE_WIDTH = 30
_MEASURES = {"energy": "energy", "carbon_location": "carbon", "cost": "cost"}

METHODS = {
    "ladder": "along the accepted path",
    "shapley": "Shapley values",
    "shapley_estimate": "Shapley values estimated from drawn orders",
    "order_mean": "means over the measured orders, no Shapley values",
}


def adding_up(parts: Sequence[Estimate], total: Estimate, show: fmt.Quantity) -> list[str]:
    """Return parts of a total, rounded together so that they add up to it as it is printed.

    Args:
        parts: What sums to the total.
        total: The total.
        show: How both are printed.
    """
    scale = show.choose(total)
    known = [p.value * scale.factor for p in parts if p.value is not None]
    if total.value is None or total.state != "known" or len(known) < len(parts):
        return [show(p, scale).text for p in parts]
    places = show.places(total, scale)
    rounded = fmt.apportion(known, places, total=total.value * scale.factor)
    return [show(p, scale, at=(v, places)).text for p, v in zip(parts, rounded, strict=True)]


def per(comparison: Comparison) -> str:
    """Return what amounts stand for: one unit, or the volume."""
    if comparison.basis == "per_unit":
        return f" per {comparison.study.unit}"
    period = comparison.study.volume_period
    return " for the volume" if period is None else f" {output.clip(period, _PLACE_WIDTH)}"


def saved_per(comparison: Comparison) -> tuple[str, float]:
    """Return what the lines on savings stand for, all of them, and how many units that is.

    A cent fraction an image is unreadable; a million of them is an amount. Energy and carbon beside
    money are of the same million.
    """
    cost = None if comparison.total is None else comparison.total.cost
    if comparison.basis != "per_unit" or cost is None or cost.value is None or cost.state == "unknown":
        return per(comparison), 1.0
    return f" per million {names.plural(comparison.study.unit)}", 1e6


def names_apart(comparison: Comparison, width: int = NAME_WIDTH) -> dict[str, str]:
    """Return each step's name as printed: cut to a width, and no two alike."""
    steps = [comparison.study.baseline, *(s.step for s in comparison.steps)]
    return dict(zip(steps, output.clip_apart(steps, width), strict=True))


def earned_back_text(items: Sequence[BreakEven], unit: str) -> str:
    """Return after how many units and what time work is earned back, in plain words.

    Measures that say the same share their words.

    Args:
        items: Break-even, one entry a measure.
        unit: Functional unit, in the plural.
    """
    by_words: dict[str, list[str]] = {}
    for item in items:
        words = _earned_back(item, unit) if item.measure in _MEASURES else ""
        if words:
            by_words.setdefault(words, []).append(_MEASURES[item.measure])
    return "; ".join(f"{number_words.join_words(labels)} {words}" for words, labels in by_words.items())


def _earned_back(item: BreakEven, unit: str) -> str:
    if item.outcome == "unknown":
        return ""
    if item.outcome == "never":
        return "never"
    may_never = item.outcome == "may_never"
    is_told = item.units.low is not None
    least = item.units.low if may_never and is_told else item.units.value
    if not least and may_never:
        return "perhaps never"
    if least is None:
        return ""
    time = ""
    if item.days is not None and item.days.value is not None and item.units.value:
        days = least * item.days.value / item.units.value
        time = f" ({fmt.span(Estimate(value=days * fmt.S_PER_DAY, unit='s')).text})"
    if may_never and not is_told:
        # The best value of an unknown width bounds nothing.
        more = " or more" if item.units.state == "unbounded" else ""
        about = fmt.count(Estimate(value=least, unit="1")).text
        return f"about {about} {unit}{time}{more}, how sure is unknown; may never"
    if may_never:
        return f"at least {fmt.count(Estimate(value=least, unit='1')).text} {unit}{time}, may never"
    printed = fmt.count(item.units)
    return f"{f'{printed.text} {unit} {printed.interval}'.rstrip()}{time}"
