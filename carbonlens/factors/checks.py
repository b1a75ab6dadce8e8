"""What a factor table may hold: bounds per kind, periods, duplicates, and how far from ours.

Codes: CL340 the period is none, CL341 zero, CL342 exactly 1.000 kg/kWh, CL343 out of bounds,
CL344 said twice, CL345 an id used twice, CL346 the period lies ahead, CL347 far from the
bundled value, CL348 takes the place of bundled rows, CL349 the interval contradicts the value.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from decimal import Decimal
from typing import Final, NamedTuple

from carbonlens.domain.factor_row import FactorKind, FactorRow
from carbonlens.domain.finding import Finding
from carbonlens.factors.table_file import Table


class Bound(NamedTuple):
    """Least and greatest plausible value of a kind, in its unit, and whether zero is one."""

    low: Decimal
    high: Decimal
    zero: bool = False


BOUNDS: Final[dict[FactorKind, Bound]] = {
    # From nearly all hydro (direct, 0.002) to small systems on oil and lignite (1.3).
    "grid": Bound(Decimal("0.0001"), Decimal("1.5")),
    "upstream": Bound(Decimal("0.0001"), Decimal("0.5")),
    "transmission": Bound(Decimal("0.001"), Decimal("0.6")),
    # A facility cannot use less than the computers in it.
    "pue": Bound(Decimal(1), Decimal(4)),
    # Cooled by air alone, a site evaporates nothing.
    "wue": Bound(Decimal(0), Decimal(20), zero=True),
    "water_source": Bound(Decimal("0.01"), Decimal(200)),
    "embodied": Bound(Decimal("0.01"), Decimal(100_000)),
    "host_overhead": Bound(Decimal(1), Decimal(10)),
}
"""Bounds that catch a wrong unit, not an unusual place."""

FAR: Final = 3.0
"""A user's grid row this many times above or below the bundled one is worth a look."""

_PERIOD: Final = re.compile(
    r"(?:19|20)\d\d(?:-(?:0[1-9]|1[0-2])(?:-(?:0[1-9]|[12]\d|3[01])T(?:[01]\d|2[0-3]))?)?"
)

_PLACEHOLDER: Final = Decimal(1)


class Fault(NamedTuple):
    """Why a row is refused."""

    code: str
    what: str
    mend: str


class Checked(NamedTuple):
    """A table after its checks: the rows that stand, and an error per row that does not."""

    kept: Table
    findings: tuple[Finding, ...]


def check_table(table: Table, *, today: str) -> Checked:
    """Return a table without its implausible rows, each of which is an error.

    Args:
        table: As read.
        today: The present hour in UTC, ``2026-11-28T15``; a period that begins later is refused.
    """
    faults = faults_of(table.rows, today=today)
    if not any(faults):
        return Checked(table, ())
    held = list(zip(table.places, table.rows, faults, strict=True))
    kept = [(place, row) for place, row, fault in held if fault is None]
    standing = Table(
        where=table.where, rows=tuple(row for _, row in kept), places=tuple(place for place, _ in kept)
    )
    refused = (_refused(row, fault, table.where, place) for place, row, fault in held if fault is not None)
    return Checked(standing, tuple(refused))


def faults_of(rows: Sequence[FactorRow], *, today: str) -> list[Fault | None]:
    """Return of each row why it is refused, by itself or beside the others; ``None`` where it stands.

    Args:
        rows: Of one table, or of several that are used together.
        today: As of ``check_table``.
    """
    keys = [basis_key(row) for row in rows]
    groups = Counter(keys)
    ids = Counter(row.factor_id for row in rows)
    alone = len(groups) == len(ids) == len(rows)
    found = [fault_of(row, today=today) for row in rows]
    if alone:
        return found
    for n, (row, key) in enumerate(zip(rows, keys, strict=True)):
        if found[n] is None and (groups[key] > 1 or ids[row.factor_id] > 1):
            found[n] = _fault_among(is_said_again=groups[key] > 1)
    return found


def fault_of(row: FactorRow, *, today: str) -> Fault | None:
    """Return why a row is refused by itself, ``None`` when it stands.

    Args:
        row: The row.
        today: The present hour in UTC, ``2026-11-28T15``.
    """
    if not _PERIOD.fullmatch(row.period):
        return Fault(
            "CL340",
            f"has the period {row.period!r}" if row.period.strip() else "has no period",
            "write a year 2024, a month 2024-03 or an hour 2024-03-01T13: a factor holds for a time",
        )
    if row.period > today[: len(row.period)]:
        return Fault("CL346", f"has a period that lies ahead: {row.period}", "enter it when it is known")
    return _fault_of_value(row) or _fault_of_interval(row)


def far_from(rows: Sequence[FactorRow], bundled: Iterable[FactorRow]) -> Finding | None:
    """Return the warning that a user's grid rows are far from the bundled ones of their zone.

    Their mean is compared with the nearest value of the period nearest to theirs, whatever
    that counts: combustion and life cycle differ by less than this.

    Args:
        rows: The user's of one zone, year and source; months and hours are taken together.
        bundled: Rows of the same kind and subject.
    """
    row = rows[0]
    if row.kind != "grid" or row.method in {"market", "residual"}:
        return None
    others = [b for b in bundled if b.value > 0]
    mean = sum((r.value for r in rows), Decimal(0)) / len(rows)
    if not others or mean <= 0:
        return None
    least = min(_years_off(row, other) for other in others)
    peers = [other for other in others if _years_off(row, other) == least]
    nearest = min(peers, key=lambda peer: abs(math.log(mean / peer.value)))
    ratio = float(mean / nearest.value)
    if 1 / FAR < ratio < FAR:
        return None
    times = f"{ratio:.1f} times" if ratio > 1 else f"1/{1 / ratio:.1f} of"
    stated = f"{row.value:f} kg/kWh" if len(rows) == 1 else f"{float(mean):.4g} kg/kWh (mean of {len(rows)})"
    return Finding(
        code="CL347",
        severity="warning",
        message=f"{row.subject} {row.period[:4] if len(rows) > 1 else row.period} at {stated} is {times} "
        f"the bundled {nearest.value:f} of {nearest.period} ({nearest.source}); yours is used ({row.source})",
        mend="check zone, unit and year of your row",
        subject=row.factor_id,
    )


def _years_off(row: FactorRow, other: FactorRow) -> int:
    return abs(int(other.period[:4]) - int(row.period[:4]))


def basis_key(row: FactorRow) -> tuple[str | None, ...]:
    """Return what two rows of one source may not share."""
    return (row.kind, row.subject, row.period, row.method, row.averaging, row.span, row.flow, row.source)


def counts_the_same(row: FactorRow, peer: FactorRow) -> bool:
    """Tell whether two rows of one kind and subject give one figure.

    Args:
        row: The user's, or the new one; what it does not say (``None``) it does not tell apart.
        peer: The other.
    """
    pairs = (
        (row.method, peer.method),
        (row.averaging, peer.averaging),
        (row.span, peer.span),
        (row.flow, peer.flow),
    )
    return row.period == peer.period and all(own is None or own == theirs for own, theirs in pairs)


def _fault_of_value(row: FactorRow) -> Fault | None:
    bound, value, unit = BOUNDS[row.kind], row.value, "" if row.unit == "1" else f" {row.unit}"
    if not value.is_finite():
        return Fault("CL343", f"has the value {value}", "give a number")
    if value == 0 and not bound.zero and row.method != "market":
        # A contract may be for power without emissions; a grid has no zero, only figures left out.
        return Fault("CL341", f"is 0{unit}: unknown is not zero", "give the figure, or leave the row out")
    if row.kind == "grid" and value == _PLACEHOLDER:
        return Fault(
            "CL342",
            "is exactly 1 kg/kWh: in the tables that have it, 1000 g/kWh stands for rounded or missing data",
            "give the figure with its decimals, or leave the row out",
        )
    if value == 0 or bound.low <= value <= bound.high:
        return None
    grams = row.unit.startswith("kg") and bound.low <= value / 1000 <= bound.high
    return Fault(
        "CL343",
        f"is {value:f}{unit}, outside {bound.low:f} to {bound.high:f}",
        "it looks like grams: divide it by 1000" if grams else f"give it in {row.unit}",
    )


def _fault_of_interval(row: FactorRow) -> Fault | None:
    low, high, u = row.low, row.high, row.u_relative
    if not all(end is None or end.is_finite() for end in (low, high)):
        return Fault("CL349", f"has the interval {low} to {high}", "give numbers, or leave both cells empty")
    if (low is not None and low > row.value) or (high is not None and high < row.value):
        return Fault(
            "CL349", f"has an interval without its value: {low} to {high}, {row.value:f}", "mend low and high"
        )
    if u is not None and not 0 <= u <= 2:
        return Fault("CL349", f"has a relative sigma of {u}", "give one sigma as a share, such as 0.1")
    return None


def _fault_among(*, is_said_again: bool) -> Fault:
    """Return why a row is refused beside the others: it says what another says, or has the id of one."""
    # Which of the two would be right nobody can tell, so neither stands.
    if is_said_again:
        return Fault(
            "CL344", "says again what another row of the table says", "leave one row per period and basis"
        )
    return Fault("CL345", "has an id that another row of the table has", "give each row its own id")


def _refused(row: FactorRow, fault: Fault, where: str, place: str) -> Finding:
    kind, _, number = place.partition(" ")
    in_line = kind == "line" and number.isdigit()
    file = where if in_line else ", ".join(part for part in (where, place) if part)
    return Finding(
        code=fault.code,
        severity="error",
        message=f"{row.kind} {row.subject} {row.period} {fault.what}".replace("  ", " "),
        file=file,
        line=int(number) if in_line else None,
        mend=fault.mend,
        subject=row.factor_id,
    )
