"""Drivers of change as JSON: ``carbonlens/drivers/1``."""

from __future__ import annotations

from typing import Any, Final

from carbonlens.compare.drivers_figures import words
from carbonlens.domain.drivers import Bridge, Change, Drivers, Effect, Part
from carbonlens.reporting.statement_json import figure_json

SCHEMA: Final = "carbonlens/drivers/1"


def drivers_json(drivers: Drivers) -> dict[str, Any]:
    """Return all bridges as a mapping that JSON can hold.

    Args:
        drivers: Between two periods.
    """
    return {
        "schema": SCHEMA,
        "period": drivers.period,
        "against": drivers.against,
        "by": drivers.by,
        "bridges": [_bridge(b, f"{drivers.prefix}.{b.key}") for b in drivers.bridges],
        "figures": [figure_json(f) for f in drivers.figures],
        "findings": drivers.findings,
    }


def _bridge(made: Bridge, at: str) -> dict[str, Any]:
    return {
        "measure": made.measure,
        "unit": made.unit,
        "is_lower_bound": made.is_least,
        "method": made.method,
        "before": made.before.as_json(),
        "after": made.after.as_json(),
        "change": made.change.as_json(),
        "effects": [_effect(e, at) for e in made.effects],
        "remainder": made.remainder,
        "units": [_part(p, f"{at}.unit:{p.unit}") for p in made.parts],
        "classes": [_part(p, f"{at}.unit:{p.unit}.class:{p.name}") for p in made.classes],
        "names": [_change(c) for c in made.changes],
    }


def _effect(effect: Effect, at: str) -> dict[str, Any]:
    return {
        "driver": effect.name,
        "label": words(effect.name),
        "change": effect.change.as_json(),
        "figure": f"{at}.{effect.name}",
    }


def _part(part: Part, at: str) -> dict[str, Any]:
    return {
        "unit": part.unit,
        "class": part.name,
        "volume_before": part.volumes[0],
        "volume_after": part.volumes[1],
        "before": part.before.as_json(),
        "after": part.after.as_json(),
        "effects": [_effect(e, at) for e in part.effects],
    }


def _change(change: Change) -> dict[str, Any]:
    return {
        "kind": change.kind,
        "unit": change.unit,
        "name": change.name,
        "to": change.to,
        "evidence": change.evidence or None,
        "before": change.before.as_json(),
        "after": change.after.as_json(),
    }
