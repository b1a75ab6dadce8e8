"""How a check is printed: JSON, or one line per condition and step."""

from __future__ import annotations

from typing import Any

import msgspec

from carbonlens.app.check import CheckResult
from carbonlens.cli import output
from carbonlens.compare.checking import Checked
from carbonlens.domain.estimate import Estimate
from carbonlens.reporting import format as fmt

SCHEMA = "carbonlens/check/1"
_STEP_WIDTH = 20
_LEAST = 12
_SURE = 0.95
"""A bound of less confidence is not called sure."""


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
    """Print one line per condition and step, failed ones first."""
    order = {"fail": 0, "undetermined": 1, "pass": 2}
    for one in sorted(result.checked, key=lambda c: order[c.outcome]):
        output.say(output.clip(_line(one), output.WIDTH))
    output.print_findings(result.findings)


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


def _line(one: Checked) -> str:
    c = one.condition
    head = f"{one.outcome}: {output.clip(one.step, _STEP_WIDTH)} "
    side = "at least" if c.above else "at most"
    sure = "for sure" if c.confidence >= _SURE else f"at {c.confidence * 100:g} % confidence"
    tail = f": {_shown(one, one.change)}, {side} {_shown(one, one.bound)} {sure}"
    if one.reason is not None:
        tail = f": {one.reason}"
    # A long condition is cut, never the figures behind it.
    return head + output.clip(c.text, max(output.WIDTH - len(head) - len(output.clean(tail)), _LEAST)) + tail


def _shown(one: Checked, change: float | None) -> str:
    estimate = Estimate(value=change, unit="1", state="unknown" if change is None else "known", signed=True)
    if one.condition.scale == "points":
        return fmt.points(estimate, plus=True).text
    return fmt.percent(estimate, plus=True).text
