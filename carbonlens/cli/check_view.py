"""How a check is printed: JSON, or one line per condition and step."""

from __future__ import annotations

from typing import Any

import msgspec

from carbonlens.app.check import CheckResult
from carbonlens.cli import output
from carbonlens.cli.compare_findings import OF_BOUNDARY, OF_COST, worth_showing
from carbonlens.compare.checking import Checked
from carbonlens.domain.estimate import Estimate
from carbonlens.reporting import format as fmt

SCHEMA = "carbonlens/check/1"
_STEP_WIDTH = 20
_LEAST = 12
_SURE = 0.95
"""A bound of less confidence is not called sure."""

_LOCATION, _MARKET = "emissions_location_kg", "emissions_market_kg"
_RESTS_ON = (
    (OF_BOUNDARY, {_LOCATION, _MARKET, "cost"}),
    ({"CL305"}, {_LOCATION}),
    ({"CL306"}, {_MARKET}),
    (OF_COST, {"cost"}),
)
"""Codes of what is missing to the metrics that need it."""


def print_as_json(result: CheckResult, *, fails: bool) -> None:
    """Print the outcome of every condition; ``failed`` is what the exit code says."""
    output.print_json(
        {
            "schema": SCHEMA,
            "study": result.study,
            "unit": result.unit,
            "failed": fails,
            "conditions": [_condition(c) for c in result.checked],
            "findings": [msgspec.to_builtins(f) for f in result.findings],
        }
    )


def print_as_text(result: CheckResult) -> None:
    """Print one line per condition and step, failed ones first, and what to look at.

    What is missing for carbon or cost is left out where no condition is on it.
    """
    order = {"fail": 0, "undetermined": 1, "pass": 2}
    steps = list(dict.fromkeys(c.step for c in result.checked))
    apart = dict(zip(steps, output.clip_apart(steps, _STEP_WIDTH), strict=True))
    for one in sorted(result.checked, key=lambda c: order[c.outcome]):
        for line in _lines(one, apart[one.step]):
            output.say(line)
    asked = {c.metric for c in result.checked}
    told = [codes for codes, metrics in _RESTS_ON if not asked & metrics]
    output.print_findings(worth_showing(result.findings, told=frozenset().union(*told)))


def _condition(one: Checked) -> dict[str, Any]:
    c = one.condition
    return {
        "fail_if": c.text,
        "metric": one.metric,
        "step": one.step,
        "reference": one.reference,
        "outcome": one.outcome,
        "scale": c.scale,
        "change": one.change,
        "bound": one.bound,
        "bound_is": "lower" if c.above else "upper",
        "limit": c.limit,
        "confidence": c.confidence,
        "reason": one.reason,
    }


def _lines(one: Checked, name: str) -> list[str]:
    c = one.condition
    head = f"{one.outcome}: {name} "
    # Not "at least": of a change below zero that reads the wrong way round.
    side = "not below" if c.above else "not above"
    sure = "for sure" if c.confidence >= _SURE else f"at {c.confidence * 100:g} % confidence"
    if one.reason is not None:
        return output.wrap(f"{head}{c.text}: {one.reason}", output.width())
    tail = f": {_shown(one, one.change)}, {side} {_shown(one, one.bound)} {sure}"
    # A long condition is cut, never the figures behind it.
    room = max(output.WIDTH - len(head) - len(output.clean(tail)), _LEAST)
    return output.wrap(f"{head}{output.clip(c.text, room)}{tail}", output.width())


def _shown(one: Checked, change: float | None) -> str:
    estimate = Estimate(value=change, unit="1", state="unknown" if change is None else "known", signed=True)
    if one.condition.scale == "points":
        return fmt.points(estimate, plus=True).text
    return fmt.percent(estimate, plus=True).text
