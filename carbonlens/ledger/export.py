"""Export: the runs that count as a plain table (CSV, Parquet) or whole (JSON).

The table's columns are those of the plain run table that ``import`` reads, and
more; every number's name ends in its unit, exact amounts stay exact.
"""

from __future__ import annotations

import csv
import io
import tempfile
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Final, Literal

import msgspec

from carbonlens.domain.run import Run
from carbonlens.domain.units import US_PER_HOUR, US_PER_S
from carbonlens.ledger import parquet
from carbonlens.ledger.closes import Span
from carbonlens.ledger.records import Stored
from carbonlens.ledger.spreading import hours_of, spread

Format = Literal["csv", "parquet", "json"]
FORMATS: Final[Mapping[str, Format]] = {"csv": "csv", "parquet": "parquet", "json": "json"}
SCHEMA: Final = "carbonlens/ledger-export/1"

_TEXT: Final = "VARCHAR"
_JOULES: Final = "DECIMAL(38,9)"
_WHOLE: Final = "BIGINT"
_FLOAT: Final = "DOUBLE"

COLUMNS: Final[Mapping[str, str]] = {
    "run_id": _TEXT,
    "study": _TEXT,
    "step": _TEXT,
    "on": _TEXT,
    "role": _TEXT,
    "status": _TEXT,
    "repeat": _WHOLE,
    "start_utc": _TEXT,
    "end_utc": _TEXT,
    "start_us": _WHOLE,
    "end_us": _WHOLE,
    "duration_s": _FLOAT,
    "energy_j": _JOULES,
    "energy_in_period_j": _JOULES,
    "energy_low_j": _FLOAT,
    "energy_high_j": _FLOAT,
    "energy_state": _TEXT,
    "energy_grade": _TEXT,
    "boundary": _TEXT,
    "energy_by_component_j": _TEXT,
    "units": _JOULES,
    "unit": _TEXT,
    "coverage_ratio": _FLOAT,
    "lost_s": _FLOAT,
    "emissions_reported_kg": _JOULES,
    "cost": _JOULES,
    "currency": _TEXT,
    "quality_name": _TEXT,
    "quality": _FLOAT,
    "quality_n": _WHOLE,
    "model_bytes": _WHOLE,
    "zone": _TEXT,
    "site": _TEXT,
    "hardware": _TEXT,
    "workload": _TEXT,
    "host": _TEXT,
    "machine": _TEXT,
    "job_id": _TEXT,
    "parent_run_id": _TEXT,
    "attempt": _WHOLE,
    "rank": _WHOLE,
    "supersedes": _TEXT,
    "tags": _TEXT,
    "findings": _TEXT,
    "source_file": _TEXT,
    "record_sha256": _TEXT,
}
"""Column to DuckDB type. A cell without a value is empty: unknown is never 0."""


def export(records: Sequence[Stored], format_: Format, span: Span | None = None) -> bytes:
    """Return the runs in a file's bytes; the same runs give the same bytes.

    Args:
        records: The runs that count, in order.
        format_: ``csv``, ``parquet`` or ``json``.
        span: The period they were chosen by: a run that reaches over its edge is whole, and
            ``energy_in_period_j`` is what of it lies inside.

    Raises:
        MissingExtraError: For Parquet, if DuckDB is not installed.
        UnwritableError, OSError: For Parquet, if there is no room for a temporary file.
    """
    if format_ == "json":
        runs = [msgspec.Raw(r.text) for r in records]
        inside = [_energy_inside(r.run, span) for r in records]
        period: dict[str, object] | None = None
        if span is not None:
            # What is known of each: a part of it, where the state is unbounded.
            states = [
                None if j is None else r.run.total_energy.state for j, r in zip(inside, records, strict=True)
            ]
            period = {"name": span.name, "energy_in_period_j": inside, "energy_state": states}
        payload = msgspec.json.encode({"schema": SCHEMA, "period": period, "runs": runs})
        return msgspec.json.format(payload, indent=1) + b"\n"
    rows = [row(r, span) for r in records]
    return _csv(rows) if format_ == "csv" else _parquet(rows)


def row(record: Stored, span: Span | None = None) -> dict[str, object]:
    """Return a run's cells by column; ``None`` where it states none."""
    run = record.run
    total = run.total_energy
    quality = run.quality[0] if run.quality else None
    return {
        **_plain(run),
        "on": None if run.on is None else "+".join(run.on),
        "start_utc": _instant(run.start_us),
        "end_utc": _instant(run.end_us),
        "energy_j": _exact_energy(run),
        "energy_in_period_j": _energy_inside(run, span),
        "energy_low_j": total.low,
        "energy_high_j": total.high,
        "energy_state": total.state,
        "energy_grade": total.grade,
        "boundary": run.boundary,
        "energy_by_component_j": _components(run),
        "coverage_ratio": run.coverage,
        "cost": None if run.cost is None else run.cost.amount,
        "currency": None if run.cost is None else run.cost.currency,
        "quality_name": None if quality is None else quality.name,
        "quality": None if quality is None else quality.value,
        "quality_n": None if quality is None else quality.n,
        "host": run.host_id,
        "machine": run.machine_id,
        "tags": _object(run.tags),
        "findings": " ".join(f.code for f in run.findings) or None,
        "source_file": None if run.origin is None else run.origin.source_file,
        "record_sha256": record.sha256,
    }


def _plain(run: Run) -> dict[str, object]:
    """Return the cells whose column is a field of the run."""
    own = {f.name for f in msgspec.structs.fields(Run)} - {"tags", "findings", "cost", "quality", "on"}
    return {name: getattr(run, name) if name in own else None for name in COLUMNS}


def _exact_energy(run: Run) -> Decimal | None:
    """Return the exact joules of the known parts; ``energy_state`` says whether a part is missing."""
    known = [r.energy_j for r in run.energy if r.energy_j is not None]
    if not known or run.total_energy.value is None:
        return None
    return sum(known, Decimal(0))


def _energy_inside(run: Run, span: Span | None) -> Decimal | None:
    """Return the exact joules of the hours inside a period, by the rule that queries have."""
    whole = _exact_energy(run)
    if span is None or whole is None:
        return whole
    first, end = span.start_us // US_PER_HOUR, span.end_us // US_PER_HOUR
    found = Decimal(0)
    for reading in run.energy:
        if reading.energy_j is not None:
            hours = hours_of(run, reading.component)
            parts = zip(hours, spread(reading.energy_j, hours), strict=True)
            found += sum(
                (j for (hour, _), j in parts if hour is not None and first <= hour < end), Decimal(0)
            )
    return found


def _components(run: Run) -> str | None:
    sums: dict[str, Decimal | None] = {}
    for reading in run.energy:
        before = sums.get(reading.component, Decimal(0))
        both = before is not None and reading.energy_j is not None
        sums[reading.component] = before + reading.energy_j if both else None  # type: ignore[operator]  # both are numbers where both are known
    return _object(sums)


def _object(mapping: Mapping[str, object]) -> str | None:
    return msgspec.json.encode(mapping, order="sorted").decode() if mapping else None


def _instant(us: int | None) -> str | None:
    if us is None:
        return None
    try:
        moment = datetime.fromtimestamp(us // US_PER_S, tz=UTC).replace(microsecond=us % US_PER_S)
    except (ValueError, OverflowError, OSError):
        return None
    return moment.isoformat(timespec="microseconds").replace("+00:00", "Z")


def _csv(rows: Sequence[Mapping[str, object]]) -> bytes:
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(COLUMNS)
    writer.writerows([_cell(cells[name]) for name in COLUMNS] for cells in rows)
    return text.getvalue().encode()


def _cell(value: object) -> str:
    if value is None:
        return ""
    # A float prints as the shortest text that reads back as itself.
    return format(value, "f") if isinstance(value, Decimal) else str(value)


def _parquet(rows: Sequence[Mapping[str, object]]) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "runs.parquet"
        parquet.write(file, COLUMNS, rows)
        return file.read_bytes()
