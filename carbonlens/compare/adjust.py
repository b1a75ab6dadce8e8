"""Routine adjustments: arms measured at another batch, sequence length or volume.

A saving is the adjusted baseline minus what was measured (DESIGN, law 10). What
the study declares brings all arms to one size of the variable; nothing is
guessed, and an arm whose runs do not state the variable is refused.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from carbonlens.compare.arms import Arm, with_observations
from carbonlens.domain.finding import Finding
from carbonlens.domain.study import Adjustment, Study
from carbonlens.errors import ConfigError, IncomparableError


def adjusted(arms: Sequence[Arm], study: Study) -> tuple[tuple[Arm, ...], tuple[Finding, ...]]:
    """Return the arms at the sizes that the study's adjustments name.

    Args:
        arms: The usable arms, baseline first.
        study: Declares the adjustments.

    Raises:
        IncomparableError: If an arm's runs do not state the variable, or state
            more than one value of it.
        ConfigError: If the variable, or what it is brought to, is not positive.
    """
    found = tuple(arms)
    findings: list[Finding] = []
    for one in study.adjustments:
        if one.exponent == 0 and one.u_exponent == 0:
            continue
        values = {a.name: _value(a, one.tag, study.name) for a in found}
        at = one.at if one.at is not None else values[_last(found, study)]
        if not (math.isfinite(one.exponent) and math.isfinite(at) and at > 0):
            raise ConfigError(
                f"the adjustment of {one.tag} has exponent {one.exponent:g} at {at:g}",
                where=study.name,
                mend="give a number and a positive size",
            )
        findings += _said(one, values, at)
        found = tuple(_bring(a, one, math.log(at / values[a.name])) for a in found)
    return found, tuple(findings)


def _bring(arm: Arm, one: Adjustment, log_size: float) -> Arm:
    if log_size == 0:
        return arm
    factor = math.exp(one.exponent * log_size)
    # One declared exponent: its error is common to all arms, in proportion to how far each is moved.
    errors = {f"adjustment:{one.tag}": one.u_exponent * log_size} if one.u_exponent else {}
    return with_observations(arm, (o.scaled(factor, errors) for o in arm.observations))


def _last(arms: Sequence[Arm], study: Study) -> str:
    """Return the last step of the study that was measured: its conditions are the reporting ones."""
    names = {a.name for a in arms}
    return next((s.name for s in reversed(study.steps) if s.name in names), arms[0].name)


def _value(arm: Arm, tag: str, study: str) -> float:
    stated = {run.tags.get(tag) for run in arm.runs}
    text = stated.pop() if len(stated) == 1 else None
    if text is None:
        raise IncomparableError(
            f"the runs of step {arm.name!r} do not all state one {tag}, which the study adjusts for",
            where=study,
            mend=f"tag the runs with {tag}",
        )
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not (math.isfinite(value) and value > 0):
        raise ConfigError(
            f"step {arm.name!r} has {tag} {text!r}", where=study, mend="state a positive number"
        )
    return value


def _said(one: Adjustment, values: Mapping[str, float], at: float) -> list[Finding]:
    moved = [f"{name} from {value:g}" for name, value in values.items() if value != at]
    if not moved:
        return []
    source = one.source or "no source is stated"
    power = f"its power {one.exponent:g} ({source})"
    return [
        Finding(
            code="CL435",
            severity="info",
            message=f"adjusted to {one.tag} {at:g} by {power}: {', '.join(moved)}",
            subject=one.tag,
            mend="measure all arms at one size",
        )
    ]
