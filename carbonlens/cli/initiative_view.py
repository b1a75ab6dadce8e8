"""How initiatives are printed beside a statement: claimed and verified, never subtracted.

Both are what the register states. What ``initiatives`` measures of a claim confirms it, or does not.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from carbonlens.accounting.conversions import kwh_to_j
from carbonlens.accounting.initiative_lines import of_initiative
from carbonlens.accounting.statement import Statement
from carbonlens.cli import output
from carbonlens.domain.counting import counted
from carbonlens.domain.estimate import Estimate
from carbonlens.reporting import format as fmt

_MOST: Final = 2
_BY: Final = 40


def lines(statement: Statement) -> Iterator[str]:
    """Yield a line for each of the first initiatives, and one that counts the rest.

    Args:
        statement: Of a period.
    """
    shown = statement.initiatives[:_MOST]
    for one in shown:
        held = of_initiative(one)
        by = {"verified": f" by {output.clip(one.verified_by or 'nobody', _BY)}"}
        parts = [f"{said} {_told(savings)}{by.get(said, '')}" for said, savings in held.items() if savings]
        parts += [] if held["verified"] else ["no verified saving stated"]
        yield f"Initiative {one.initiative_id}, a year and in no total: {'; '.join(parts)}"
    more = len(statement.initiatives) - len(shown)
    if more:
        yield f"... and {counted(more, 'more initiative')} (--json lists all)"


def _told(savings: Mapping[str, Estimate]) -> str:
    return ", ".join(_text(name, estimate) for name, estimate in savings.items())


def _text(name: str, estimate: Estimate) -> str:
    """Return a saving as it was stated: it has no interval, and none is printed."""
    plain = Estimate(value=estimate.value, unit=estimate.unit, signed=True)
    if name == "energy_kwh":
        return fmt.energy(plain.scale(float(kwh_to_j(1)), "J")).text
    if name == "money":
        return fmt.money(plain).text
    return f"{fmt.mass(plain).text} {name.split('_')[1]}-based"
