"""Rows against their total, rows stated twice, and rows of one total that count differently."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from carbonlens.audit.energy import at_facility
from carbonlens.audit.finding import about
from carbonlens.audit.quantities import KG, KWH, Span, agree, figure, span, total
from carbonlens.domain.claim import Claim, Stated
from carbonlens.domain.counting import counted
from carbonlens.domain.finding import Finding

_FIELDS: Final[tuple[tuple[str, str, Mapping[str, Callable[[Any], Any]] | None], ...]] = (
    ("hours", "h", None),
    ("energy", "kWh", KWH),
    ("emissions", "kg", KG),
    ("market_emissions", "kg", KG),
    ("water", "L", None),
    ("cost", "", None),
)
_IDENTITY: Final = ("scope", "region", "hardware", "year", "basis")
"""Rows of one name that differ in one of these are different rows."""

_APART: Final = 0.02
"""Factors of two rows may differ by this beyond their rounding: one grid, other months."""


def check_totals(claim: Claim) -> tuple[Finding, ...]:
    """Return a Finding for each figure of a total that its rows do not add up to."""
    return tuple(found for field in _FIELDS if (found := _off(claim, *field)) is not None)


def _off(
    claim: Claim, field: str, unit: str, units: Mapping[str, Callable[[Any], Any]] | None
) -> Finding | None:
    stated: Stated | None = getattr(claim, field)
    whole = span(stated, units)
    unit = unit or ("" if stated is None else stated.unit or "")
    parts = [p for part in claim.parts for p in _of_part(part, field, units)]
    if whole is None or not parts:
        return None
    summed = total(parts)
    if agree(whole, summed, slack=1e-9):
        return None
    name = field.replace("_", " ")
    gap = whole.value - summed.value
    says = (
        f"{counted(len(claim.parts), 'row sums', 'rows sum')} to {figure(summed.value)} {unit} of {name}, "
        f"the total states {figure(whole.value)} {unit}"
    )
    if gap > 0:
        missing = f"a row of {figure(gap)} {unit} is missing{_without(claim, field, units)}"
        return about(claim, "CL706", f"{says}: {missing}", "list the row, or correct the total")
    text = f"{says}: {figure(-gap)} {unit} too much in the rows"
    return about(claim, "CL706", f"{text}{_equal_to(claim, field, units, -gap)}", "correct the rows or total")


def _of_part(part: Claim, field: str, units: Mapping[str, Callable[[Any], Any]] | None) -> list[Span]:
    stated: list[Stated | None] = [getattr(part, field)]
    if field == "hours":
        stated += part.other_hours
    return [s for number in stated if (s := span(number, units)) is not None]


def _without(claim: Claim, field: str, units: Mapping[str, Callable[[Any], Any]] | None) -> str:
    """Name rows that state no such figure: what is missing may be theirs."""
    blank = [p.what for p in claim.parts if not _of_part(p, field, units)]
    return f" (no {field.replace('_', ' ')} stated for {', '.join(blank)})" if blank else ""


def _equal_to(claim: Claim, field: str, units: Mapping[str, Callable[[Any], Any]] | None, gap: float) -> str:
    """Name the row that is exactly what the rows have too much: it may not belong there."""
    for part in claim.parts:
        own = span(getattr(part, field), units)
        if own is not None and own.low <= gap <= own.high and own.value > 0:
            return f", which is row {part.what}"
    return ""


def check_duplicates(claims: Sequence[Claim]) -> tuple[Finding, ...]:
    """Return a Finding for each row that stands twice: with the same figures, or with others."""
    first: dict[tuple[object, ...], Claim] = {}
    found = []
    for claim in claims:
        key = (claim.what.casefold(), *(getattr(claim, name) for name in _IDENTITY))
        earlier = first.setdefault(key, claim)
        if earlier is claim or _figures(claim) == _figures(earlier) == ():
            continue
        line = f"line {earlier.line}" if earlier.line else "an earlier row"
        if _figures(claim) == _figures(earlier):
            text, mend = f"repeats {line} with the same figures", "count it once"
        else:
            text, mend = f"stands at {line} too, with other figures", "keep the right one, or name them apart"
        found.append(about(claim, "CL707", text, mend))
    return tuple(found)


def _figures(claim: Claim) -> tuple[Stated, ...]:
    names = ("energy", "emissions", "market_emissions", "hours", "watts", "water", "devices", "cost")
    return tuple(n for name in names if (n := getattr(claim, name)) is not None)


def check_basis(claim: Claim) -> tuple[Finding, ...]:
    """Return a Finding where the rows of a total count by different bases, or by unlike factors."""
    found = []
    bases = sorted({p.basis for p in claim.parts if p.basis is not None})
    if len(bases) > 1:
        text = f"sums rows of different factor bases ({', '.join(bases)})"
        found.append(about(claim, "CL713", text, "use one basis, or show a sum for each"))
    odd = _odd_row(claim.parts)
    if odd is not None:
        found.append(about(claim, "CL713", odd, "state the factor and place of each row"))
    return tuple(found)


def _odd_row(parts: Sequence[Claim]) -> str | None:
    """Return words where rows of no stated factor or place imply factors that cannot be one."""
    implied = [
        (part, factor)
        for part in parts
        if part.factor is None and part.region is None and (factor := implied_factor(part)) is not None
    ]
    if len(implied) < 2:
        return None
    low = min(implied, key=lambda item: item[1].high)
    high = max(implied, key=lambda item: item[1].low)
    if agree(low[1], high[1], _APART):
        return None
    return (
        f"rows imply {figure(low[1].value)} ({low[0].what}) to {figure(high[1].value)} kg/kWh "
        f"({high[0].what}), and none says why"
    )


def implied_factor(claim: Claim) -> Span | None:
    """Return the kg per kWh that a claim implies; ``None`` where it cannot be told."""
    kg, inputs = span(claim.emissions, KG), at_facility(claim)
    if kg is None or inputs is None or inputs[0].low <= 0 or kg.value <= 0:
        return None
    kwh = inputs[0]
    return Span(kg.low / kwh.high, kg.value / kwh.value, kg.high / kwh.low)
