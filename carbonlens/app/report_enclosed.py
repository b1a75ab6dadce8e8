"""Use case: the files that a report carries: itself as JSON, its runs and its factors as tables."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator, Sequence
from decimal import Decimal
from typing import Final

import msgspec

from carbonlens.domain.evidence import Evidence
from carbonlens.domain.factor import Vector
from carbonlens.ledger.export import COLUMNS, row
from carbonlens.ledger.records import Stored
from carbonlens.render.attachments import REPORT_JSON, Enclosed

MOST_RUNS: Final = 100_000
"""Beyond this many runs a report carries none of them: ``verify --ledger`` takes them from there."""

_FACTOR_COLUMNS: Final = (
    "id", "kind", "value", "unit", "u_relative", "zone", "period", "basis", "source", "example",
)  # fmt: skip

_STARTS_A_FORMULA: Final = ("=", "+", "-", "@", "\t", "\r")


def enclosed(shape: bytes, evidence: Evidence | None) -> tuple[Enclosed, ...]:
    """Return what is embedded in a PDF.

    Args:
        shape: The report as JSON, with its evidence.
        evidence: What it was computed from; ``None`` where a caller gave a comparison alone.
    """
    files = [
        Enclosed(
            name=REPORT_JSON,
            content=shape,
            description="The report as JSON with what it was computed from, for carbonlens verify",
            relationship="Source",
        )
    ]
    if evidence is not None and len(evidence.runs) <= MOST_RUNS:
        files += [
            Enclosed(name="runs.csv", content=runs_csv(evidence), description="Every run that entered"),
            Enclosed(
                name="factors.csv",
                content=factors_csv(evidence.vector),
                description="Every factor and price, with its source",
            ),
        ]
    return tuple(files)


def runs_csv(evidence: Evidence) -> bytes:
    """Return the runs as ``ledger export`` gives them; no cell is taken for a formula by a spreadsheet.

    Args:
        evidence: Of a report.
    """
    rows = (row(Stored(run=run, text=msgspec.json.encode(run), file="")) for run in evidence.runs)
    return _csv(tuple(COLUMNS), ([cells[name] for name in COLUMNS] for cells in rows))


def factors_csv(vector: Vector) -> bytes:
    """Return the factors and prices of a comparison as a table.

    Args:
        vector: One for all arms.
    """
    return _csv(_FACTOR_COLUMNS, _factor_rows(vector))


def _factor_rows(vector: Vector) -> Iterator[Sequence[object]]:
    for factor in (vector.location, vector.market):
        if factor is not None:
            yield (
                factor.factor_id, f"grid, {factor.method}-based", factor.value_kg_per_kwh, "kg/kWh",
                factor.u_relative, factor.zone, factor.period, " ".join(factor.basis), factor.source,
                factor.example,
            )  # fmt: skip
    if vector.pue is not None:
        yield (
            "pue",
            "PUE",
            vector.pue,
            "1",
            vector.pue_u_relative,
            vector.place,
            None,
            None,
            vector.pue_source,
            None,
        )
    if vector.host_overhead is not None:
        yield (
            "host_overhead", "host overhead", vector.host_overhead, "1", vector.host_overhead_u_relative,
            vector.place, None, None, vector.host_overhead_source, None,
        )  # fmt: skip
    for price in (vector.electricity, vector.machine):
        if price is not None:
            yield (
                price.price_id, "price", price.amount, f"{price.currency}/{price.per}", price.u_relative,
                None, price.period, None, price.source, price.example,
            )  # fmt: skip
    if vector.embodied is not None:
        e = vector.embodied
        yield (
            e.factor_id, "embodied", e.value_kg_per_core_hour, "kg/core_hour", e.u_relative, None, None,
            None, e.source, e.example,
        )  # fmt: skip


def _csv(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> bytes:
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows([_cell(value) for value in values] for values in rows)
    return text.getvalue().encode()


def _cell(value: object) -> str:
    """Return a cell; a text that a spreadsheet would run is led by an apostrophe."""
    if value is None:
        return ""
    if isinstance(value, Decimal):
        return format(value, "f")
    said = str(value)
    return f"'{said}" if isinstance(value, str) and said.startswith(_STARTS_A_FORMULA) else said
