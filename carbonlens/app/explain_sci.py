"""Use case part: the score that an id of SCI belongs to, made again as it was asked for."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

from carbonlens.app.sci import Scored, make_sci
from carbonlens.app.sci_ids import PERIOD, ROLE, unit_of_id

OF_SCI: Final = re.compile(r"(?:energy\.|runs\.)?sci\.(.+)")
"""Ids of a score, of its energies and of its lists of runs."""

_NUMBER: Final = r"[0-9][0-9.e+-]*?"
_UNIT: Final = re.compile(rf"([^.*=]+)(?:=({_NUMBER}))?(?:\*({_NUMBER}))?\.[a-z]")


def question_of(name: str, studies: Iterable[str], steps: Iterable[str]) -> dict[str, Any] | None:
    """Return what was asked for by the id of a figure, as ``make_sci`` takes it; ``None`` for another id.

    Args:
        name: Such as ``sci.study:chat.step:int8.2026Q1.consumer.request*1000.score``.
        studies: Of the ledger: their names may hold full stops.
        steps: Of the ledger, likewise.
    """
    match = OF_SCI.fullmatch(name)
    if match is None:
        return None
    study, rest = _taken(match[1], "study:", studies)
    step, rest = _taken(rest, "step:", steps)
    period, rest = _matched(rest, PERIOD)
    role, rest = _matched(rest, ROLE)
    unit = _UNIT.match(rest)
    if unit is None or (study is None and period is None):
        return None
    return {
        "unit": unit_of_id(unit[1]),
        "study": study,
        "step": step,
        "period": period,
        "ai": role,
        "units": None if unit[2] is None else float(unit[2]),
        "per": 1.0 if unit[3] is None else float(unit[3]),
    }


def score_of(
    name: str,
    *,
    ledger: str | Path | None,
    inventory: str | Path | None,
    factors: str | Path | None,
    embodied_source: str | None,
) -> Scored | None:
    """Return the score that an id belongs to; ``None`` for another id.

    Args:
        name: The id.
        ledger: The ledger's folder; found as the command line finds it when ``None``.
        inventory: The inventory folder, found likewise.
        factors: The user's own factors, found likewise.
        embodied_source: As the score was asked with.

    Raises:
        SelectionError: If the ledger holds no such runs.
    """
    asked = question_of(name, *_names(ledger)) if OF_SCI.fullmatch(name) else None
    if asked is None:
        return None
    return make_sci(
        asked.pop("unit"),
        **asked,
        ledger=ledger,
        inventory=inventory,
        factors=factors,
        embodied_source=embodied_source,
    )


def _names(ledger: str | Path | None) -> tuple[list[str], list[str]]:
    """Return the studies and the steps of a ledger."""
    from carbonlens.ledger.opening import open_ledger

    with open_ledger(ledger) as store:
        if not store.exists:
            return [], []
        with store.query() as view:
            rows = view.rows(view.parts.select("study", "step").unique())
    return [r["study"] for r in rows if r["study"]], [r["step"] for r in rows if r["step"]]


def _taken(rest: str, begin: str, names: Iterable[str]) -> tuple[str | None, str]:
    """Return the longest of some names that a text begins with, and what follows it."""
    for name in sorted(set(names), key=len, reverse=True):
        if rest.startswith(f"{begin}{name}."):
            return name, rest[len(begin) + len(name) + 1 :]
    return None, rest


def _matched(rest: str, pattern: re.Pattern[str]) -> tuple[str | None, str]:
    found = pattern.match(rest)
    return (None, rest) if found is None else (found[1], rest[found.end() :])
