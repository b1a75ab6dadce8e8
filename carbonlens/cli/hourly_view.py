"""How the hourly matching of a statement is printed: one line an entity and market, more where asked."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from carbonlens.accounting.conversions import kwh_to_j
from carbonlens.accounting.hourly_matching import HourlyMatch
from carbonlens.app.hourly_matching import Hourly
from carbonlens.domain.estimate import Estimate
from carbonlens.reporting import format as fmt

_NAMES = ("load_kwh", "clean_kwh", "matched_kwh", "annual_matched_kwh", "score", "hourly_kg", "annual_kg")


def as_json(hourly: Hourly) -> dict[str, Any]:
    """Return the matching as a mapping that JSON can hold."""
    return {
        "why_none": hourly.why_none or None,
        "matches": [
            {
                "entity": one.entity,
                "market": one.market,
                **{
                    name: {**getattr(one.match, name).as_json(), "id": f"{one.prefix}.{name}"}
                    for name in _NAMES
                },
            }
            for one in hourly.matches
        ],
    }


def lines(hourly: Hourly, *, in_full: bool) -> Iterator[str]:
    """Yield what is printed of it.

    Args:
        hourly: Of a statement.
        in_full: Whether energies and emissions are told too, or why there is no matching.
    """
    if hourly.why_none and in_full:
        yield f"Hourly matching: none, {hourly.why_none}"
    for one in hourly.matches:
        match = one.match
        score = _percent(match.score)
        over = f", over the period {_energy(match.annual_matched_kwh)} of {_energy(match.load_kwh)}"
        yield f"Hourly matching, {one.entity} in {one.market}: {score}{over}"
        if in_full:
            yield from _further(match)


def _further(match: HourlyMatch) -> Iterator[str]:
    yield f"  clean electricity in its hours {_energy(match.clean_kwh)}, matched {_energy(match.matched_kwh)}"
    by_hour, over_period = fmt.mass(match.hourly_kg).text, fmt.mass(match.annual_kg).text
    yield f"  what is not matched, at the residual mix: {by_hour} by the hour, {over_period} over the period"
    yield "  beside the market-based figure, which it does not change"


def _percent(score: Estimate) -> str:
    if score.value is None or score.state != "known":
        return "score unknown"
    if score.low is None or score.high is None or score.low == score.high:
        return f"{score.value:.1%} of the load"
    return f"{score.value:.1%} of the load [{score.low:.1%}, {min(score.high, 1.0):.1%}]"


def _energy(kwh: Estimate) -> str:
    return fmt.energy(kwh.scale(float(kwh_to_j(1)), "J")).text
