"""Factor rows for tests."""

from decimal import Decimal

import msgspec

from carbonlens.domain.factor_row import FactorRow
from carbonlens.factors.table_file import Table

BASE = FactorRow(
    factor_id="mine/FR/2024",
    kind="grid",
    subject="FR",
    period="2024",
    value=Decimal("0.05"),
    source="My source 2024",
    address="https://example.org/2024",
    licence="own",
    vintage="2025",
)


def row(**changes):
    """Return a plausible row, changed; a number becomes a decimal, and the id follows the content."""
    if "value" in changes:
        changes["value"] = Decimal(str(changes["value"]))
    made = msgspec.structs.replace(BASE, **changes)
    if "factor_id" in changes:
        return made
    name = "/".join(filter(None, ("mine", made.kind, made.subject, made.period, made.span, made.source)))
    return msgspec.structs.replace(made, factor_id=name)


def table(*rows, where="mine.csv"):
    """Return a table of rows, the first in line 2."""
    return Table(where=where, rows=rows, places=tuple(f"line {n}" for n in range(2, len(rows) + 2)))
