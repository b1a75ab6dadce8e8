"""What a bench may not say: contradictions and impossible values, each with its mend."""

from __future__ import annotations

import math
from typing import Final

from carbonlens.domain.bench import Bench, Variant
from carbonlens.domain.counting import counted
from carbonlens.domain.limits import LEAST_UNITS, MOST
from carbonlens.errors import ConfigError
from carbonlens.inventory import study_check

LEAST_ROUNDS: Final = 10
"""A series may not end on the width of its interval before as many."""

_BELONGS: Final = {"serve": "url", "inputs": "onnx", "providers": "onnx", "body": "url", "headers": "url"}


def check(bench: Bench, where: str) -> None:
    """Refuse a bench that contradicts itself.

    Args:
        bench: As read.
        where: The file or the option, for the error.

    Raises:
        ConfigError: For the first fault.
    """
    study_check.check(bench.study, where)
    for variant in bench.variants:
        _check_variant(variant, where)
    _check_pace(bench, where)


def _check_variant(variant: Variant, where: str) -> None:
    name = f"variant {variant.name!r}"
    if not variant.name.strip():
        raise ConfigError("a variant has no name", where=where, mend="name every variant")
    if variant.units is not None and not (variant.units.is_finite() and LEAST_UNITS <= variant.units < MOST):
        raise ConfigError(
            f"{name} does {variant.units} units", where=where, mend="state how many units one execution does"
        )
    if variant.kind == "command":
        if variant.units is None:
            raise ConfigError(
                f"{name} does not say how many units its command does",
                where=where,
                mend="state units, for the variant or for all in [bench]",
            )
        if not variant.command or not variant.command[0]:
            raise ConfigError(f"{name} has an empty command", where=where, mend="name a program")
    if variant.kind == "url" and not variant.serve:
        raise ConfigError(
            f"{name} does not say what serves its url, so that nothing could measure it",
            where=where,
            mend='state the command of a server on this machine: serve = "python server.py"',
        )
    _check_fields(variant, name, where)


def _check_fields(variant: Variant, name: str, where: str) -> None:
    """Refuse what belongs to another kind of variant."""
    for work in ("prepare", "evaluate"):
        if variant.kind == "command" and isinstance(getattr(variant, work), str):
            raise ConfigError(
                f"{name} is a command, and its {work} a function",
                where=where,
                mend=f"state a command for {work}, or a callable for the variant",
            )
    for field, kind in _BELONGS.items():
        if getattr(variant, field) and variant.kind != kind:
            raise ConfigError(
                f"{name} has {field}, which belongs to {kind}", where=where, mend=f"leave {field} out"
            )


def _check_pace(bench: Bench, where: str) -> None:
    pace = bench.pace
    if pace.most < LEAST_ROUNDS:
        raise ConfigError(
            f"most_rounds is {pace.most}: it would end after {counted(pace.most, 'round')}",
            where=where,
            mend=f"allow {LEAST_ROUNDS} at least (most_rounds, --rounds)",
        )
    if pace.least < LEAST_ROUNDS:
        raise ConfigError(
            f"least_rounds is {pace.least}: it could end after {counted(pace.least, 'round')}",
            where=where,
            mend=f"measure at least {LEAST_ROUNDS} (least_rounds)",
        )
    if pace.least > pace.most:
        raise ConfigError(
            f"least_rounds is {pace.least}, and most_rounds {pace.most}",
            where=where,
            mend="allow as many as it needs at least (most_rounds, --rounds)",
        )
    if not 0 < pace.half_width < math.inf:
        raise ConfigError(
            f"half_width is {pace.half_width}: no stop rule has that",
            where=where,
            mend="give a relative half width above 0, for example 0.01",
        )
    for name in ("window_s", "budget_s", "timeout_s"):
        value = getattr(pace, name)
        if value is not None and not 0 < value < math.inf:
            raise ConfigError(f"{name} is {value}", where=where, mend="give seconds, more than 0")
    if pace.warm_up < 0:
        raise ConfigError(f"warm_up is {pace.warm_up}", where=where, mend="give a number of calls, 0 or more")
