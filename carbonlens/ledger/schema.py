"""The one column schema of Parquet in the ledger: import batches and compacted months.

A file has one row per part of a run's energy: one reading in one UTC hour. What
tells runs apart and what queries group by stands on every row; measures of the
whole run, and the whole record as JSON, stand on its first row only, so that a
plain sum is right. Each row is an estimate: a value, its random part, and one
(source, one sigma) pair per kind of source.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from decimal import Decimal
from typing import Final, Literal

import msgspec

from carbonlens.domain.decoding import convert
from carbonlens.domain.limits import oversize
from carbonlens.domain.run import Reading, Run
from carbonlens.domain.units import US_PER_HOUR
from carbonlens.errors import RecordError
from carbonlens.ledger import spreading
from carbonlens.ledger.layout import UNDATED, month_of
from carbonlens.ledger.records import Stored
from carbonlens.ledger.spreading import hours_in, hours_unknown, shares_of, spread

VERSION: Final = spreading.VERSION
"""Of the columns; stands in ``row_schema``. Batches without that column are of version 1."""

Kind = Literal["sensor", "model", "host"]
KINDS: Final[tuple[Kind, ...]] = ("sensor", "model", "host")
"""Kinds of error sources of energy; factors and prices bring theirs when they are joined."""

_TEXT: Final = "VARCHAR"
_ENERGY: Final = "DECIMAL(24,6)"

COLUMNS: Final[Mapping[str, str]] = {
    "run_id": _TEXT,
    "study": _TEXT,
    "step": _TEXT,
    "role": _TEXT,
    "status": _TEXT,
    "job_id": _TEXT,
    "parent_run_id": _TEXT,
    "supersedes": _TEXT,
    "host_id": _TEXT,
    "hardware": _TEXT,
    "workload": _TEXT,
    "zone": _TEXT,
    "site": _TEXT,
    "team": _TEXT,
    "model": _TEXT,
    "tags": _TEXT,
    "unit": _TEXT,
    "start_us": "BIGINT",
    "end_us": "BIGINT",
    "hour_utc": "BIGINT",
    "month_utc": "INTEGER",
    "part": "INTEGER",
    "is_first": "BOOLEAN",
    "counts": "BOOLEAN",
    "component": _TEXT,
    "boundary": _TEXT,
    "grade": _TEXT,
    "state": _TEXT,
    "energy_j": _ENERGY,
    "u_random_j": _ENERGY,
    "sensor_source_id": _TEXT,
    "u_sensor_j": _ENERGY,
    "model_source_id": _TEXT,
    "u_model_j": _ENERGY,
    "host_source_id": _TEXT,
    "u_host_j": _ENERGY,
    "units": _ENERGY,
    "run_state": _TEXT,
    "duration_s": "DECIMAL(18,6)",
    "emissions_reported_kg": "DECIMAL(24,9)",
    "cost_amount": "DECIMAL(24,8)",
    "cost_currency": _TEXT,
    "record_sha256": _TEXT,
    "row_schema": "INTEGER",
    "record": _TEXT,
}
"""Column to DuckDB type; ``Row`` describes them."""

_MICRO: Final = Decimal("0.000001")
_SEPARATOR: Final = "\x1f"


class Row(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One part of a run's energy.

    Attributes:
        team, model: The tags of these names, as columns of their own.
        tags: All tags as one text; see ``tag_text``.
        hour_utc: ``start_us // 3_600_000_000`` of the part; ``None`` without a time.
        month_utc: UTC month of that hour as a number, ``202611``.
        part: Place of the row within its run, from 0.
        is_first: Whether it is the run's first row.
        counts: False for a record that stands in the same file before.
        state: Of the part: ``unknown`` has no energy, ``unbounded`` is a lower bound.
        u_random_j: One sigma; ``None`` where nobody knows how wide the figure is.
        units: The run's units, split over its hours as its energy is; on the
            rows of its first reading only.
        run_state: Whether the whole run's energy is known; on the first row only.
        duration_s, emissions_reported_kg, cost_amount, cost_currency: Of the
            whole run; on the first row only.
        record: The record as stored; on the first row only.
    """

    run_id: str
    study: str | None = None
    step: str | None = None
    role: str
    status: str
    job_id: str | None = None
    parent_run_id: str | None = None
    supersedes: str | None = None
    host_id: str | None = None
    hardware: str | None = None
    workload: str | None = None
    zone: str | None = None
    site: str | None = None
    team: str | None = None
    model: str | None = None
    tags: str | None = None
    unit: str | None = None
    start_us: int | None = None
    end_us: int | None = None
    hour_utc: int | None = None
    month_utc: int | None = None
    part: int
    is_first: bool
    counts: bool
    component: str | None = None
    boundary: str | None = None
    grade: str | None = None
    state: str
    energy_j: Decimal | None = None
    u_random_j: Decimal | None = None
    sensor_source_id: str | None = None
    u_sensor_j: Decimal | None = None
    model_source_id: str | None = None
    u_model_j: Decimal | None = None
    host_source_id: str | None = None
    u_host_j: Decimal | None = None
    units: Decimal | None = None
    run_state: str | None = None
    duration_s: Decimal | None = None
    emissions_reported_kg: Decimal | None = None
    cost_amount: Decimal | None = None
    cost_currency: str | None = None
    record_sha256: str
    row_schema: int
    record: str | None = None


def rows_of(records: Iterable[Stored], *, version: int = VERSION) -> Iterator[Row]:
    """Yield the rows of one file.

    Args:
        records: In the order in which the file is to hold them; of several with
            one key the first counts.
        version: Of the columns; an older one tells what a file of that version holds.

    Raises:
        RecordError: If a figure is too large for its column.
    """
    met: set[tuple[str | None, str]] = set()
    for record in records:
        yield from rows(record, counts=record.key not in met, version=version)
        met.add(record.key)


def rows(stored: Stored, *, counts: bool = True, is_first: bool = True, version: int = VERSION) -> list[Row]:
    """Return the rows of one record, at least one.

    Args:
        stored: The record and its text.
        counts: False where the same file holds the run before.
        is_first: False for a further part of a run, which does not count as one.
        version: Of the columns.

    Raises:
        RecordError: If a figure is too large for its column.
    """
    run = stored.run
    _check_range(run)
    on_all = labels(run) | {"record_sha256": stored.sha256, "row_schema": version, "counts": counts}
    parts = [part for reading in run.energy for part in _reading_parts(run, reading, version)]
    if not parts:
        parts = [{"state": "unknown", "hour_utc": hour} for hour, _ in hours_unknown(run, None, version)]
    for part, units in zip(parts, _units(run, version), strict=False):
        part["units"] = units
    whole = _whole(run) | {"record": stored.text.decode()}
    made = []
    for place, part in enumerate(parts):
        is_top = is_first and place == 0
        of_run = whole if is_top else {}
        place_of = {"part": place, "is_first": is_top, "month_utc": month_number(part["hour_utc"])}
        made.append(convert({**on_all, **of_run, **part, **place_of}, Row))
    return made


def kind_of(source_id: str) -> Kind:
    """Return the kind of an error source by the first word of its name.

    It only says in which pair of columns the source stands: a figure's several
    sources of one kind take a row each.
    """
    word = source_id.partition(":")[0]
    if word.endswith("_model") or word in {"grade_D", "grade_E"}:
        return "model"
    return "host" if word in {"host", "share", "allocation"} else "sensor"


def tag_text(tags: Mapping[str, str]) -> str | None:
    """Return tags as one text that plain expressions can search: each ends the one before."""
    if not tags:
        return None
    pairs = (f"{escaped(key)}={escaped(value)}" for key, value in sorted(tags.items()))
    return f"{_SEPARATOR}{_SEPARATOR.join(pairs)}{_SEPARATOR}"


def tags_of(text: str | None) -> dict[str, str]:
    """Return the tags that ``tag_text`` was given."""
    pairs = (pair.partition("=") for pair in (text or "").split(_SEPARATOR) if pair)
    return {unescaped(key): unescaped(value) for key, _, value in pairs}


def escaped(text: str) -> str:
    """Return a tag's name or value without the characters that end one."""
    return text.replace("%", "%25").replace("=", "%3D").replace(_SEPARATOR, "%1F")


def unescaped(text: str) -> str:
    """Return what ``escaped`` was given."""
    return text.replace("%1F", _SEPARATOR).replace("%3D", "=").replace("%25", "%")


def _reading_parts(run: Run, reading: Reading, version: int) -> Iterator[dict[str, object]]:
    """Yield a reading's columns, one row an hour, and one more for each further source of a kind."""
    what = {
        "component": reading.component,
        "boundary": reading.boundary,
        "grade": reading.grade,
        "state": reading.state,
    }
    if reading.energy_j is None:
        for hour, _ in hours_unknown(run, reading.component, version):
            yield {**what, "state": "unknown", "hour_utc": hour}
        return
    weights = hours_in(run, reading.component, version)
    wide = reading.estimate.has_unknown_width
    sources = _by_kind(reading.u_by_source_j)
    shares = shares_of(weights)
    energies = spread(reading.energy_j, weights)
    for (hour, _), energy, share in zip(weights, energies, shares, strict=True):
        random = None if wide else to_micro(reading.u_random_j * math.sqrt(share))
        part: dict[str, object] = {**what, "hour_utc": hour, "energy_j": energy, "u_random_j": random}
        yield part | _pairs([of_kind[0] for of_kind in sources.values()], share)
    for more in (source for of_kind in sources.values() for source in of_kind[1:]):
        for (hour, _), share in zip(weights, shares, strict=True):
            part = {**what, "hour_utc": hour, "energy_j": Decimal(0), "u_random_j": Decimal(0)}
            yield part | _pairs([more], share)


def _by_kind(sources: Mapping[str, float]) -> dict[Kind, list[tuple[str, float]]]:
    found: dict[Kind, list[tuple[str, float]]] = {}
    for name, u in sources.items():
        if u:
            found.setdefault(kind_of(name), []).append((name, u))
    return found


def _pairs(sources: Iterable[tuple[str, float]], share: float) -> dict[str, object]:
    columns: dict[str, object] = {}
    for name, u in sources:
        kind = kind_of(name)
        columns |= {f"{kind}_source_id": name, f"u_{kind}_j": to_micro(u * share)}
    return columns


def _units(run: Run, version: int) -> list[Decimal]:
    """Return the run's units over the rows of its first reading, or over those of a run without one."""
    if run.units is None:
        return []
    component = run.energy[0].component if run.energy else None
    known = bool(run.energy) and run.energy[0].energy_j is not None
    hours = hours_in if known else hours_unknown
    return spread(run.units, hours(run, component, version))


def labels(run: Run) -> dict[str, object]:
    """Return what stands on every row of a run."""
    return {
        "run_id": run.run_id,
        "study": run.study,
        "step": run.step,
        "role": run.role,
        "status": run.status,
        "job_id": run.job_id,
        "parent_run_id": run.parent_run_id,
        "supersedes": run.supersedes,
        "host_id": run.host_id,
        "hardware": run.hardware,
        "workload": run.workload,
        "zone": run.zone,
        "site": run.site,
        "team": run.tags.get("team"),
        "model": run.tags.get("model"),
        "tags": tag_text(run.tags),
        "unit": run.unit,
        "start_us": run.start_us,
        "end_us": run.end_us,
    }


def _whole(run: Run) -> dict[str, object]:
    return {
        "run_state": _run_state(run),
        "duration_s": None if run.duration_s is None else to_micro(run.duration_s),
        "emissions_reported_kg": run.emissions_reported_kg,
        "cost_amount": None if run.cost is None else run.cost.amount,
        "cost_currency": None if run.cost is None else run.cost.currency,
    }


def _run_state(run: Run) -> str:
    known = [r for r in run.energy if r.energy_j is not None]
    if not known:
        return "unknown"
    complete = len(known) == len(run.energy) and all(r.state == "known" for r in known)
    return "known" if complete else "unbounded"


def month_number(hour: object) -> int | None:
    """Return the UTC month of an hour, such as 202611; ``None`` where no calendar has it."""
    if not isinstance(hour, int):
        return None
    month = month_of(hour * US_PER_HOUR)
    return None if month == UNDATED else int(month)


def to_micro(value: float) -> Decimal:
    """Return a float as its column has it."""
    return Decimal(repr(value)).quantize(_MICRO)


def _check_range(run: Run) -> None:
    reason = oversize(run)
    if reason is not None:
        raise RecordError(
            f"run {run.run_id} fits no column: {reason}",
            where=run.run_id,
            mend="check its unit: energy is in joules",
        )
