"""Electricity Maps' CSV downloads, by hour, day, month or year, in the old and the new heading.

A file says combustion ("direct") and life cycle in columns of their own: each becomes a row.
A daily mean stands for each hour of its day, because a factor's period is an hour, a month
or a year.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Final, Literal

import msgspec

from carbonlens.domain.factor_row import FactorRow, Span
from carbonlens.errors import ConfigError
from carbonlens.factors.foreign import Format, Line, Placed, Reading, kg_per_kwh

Step = Literal["hourly", "daily", "monthly", "yearly"]

_TIME: Final = "datetime (utc)"
_ZONE: Final = "zone id"
_INTENSITY: Final = "carbon intensity gco2eq/kwh"
_SPANS: Final[Mapping[str, Span]] = {
    f"{_INTENSITY} (direct)": "direct",
    f"{_INTENSITY} (lca)": "life_cycle",
    f"{_INTENSITY} (life cycle)": "life_cycle",
}

_STEPS: Final[Mapping[Step, tuple[int, int]]] = {
    "hourly": (1, 1),
    "daily": (24, 24),
    "monthly": (28 * 24, 31 * 24),
    "yearly": (365 * 24, 366 * 24),
}
"""Least and greatest hours from one line to the next."""

_PERIODS: Final[Mapping[Step, str]] = {
    "hourly": "%Y-%m-%dT%H",
    "daily": "%Y-%m-%dT%H",
    "monthly": "%Y-%m",
    "yearly": "%Y",
}


def claims(columns: Sequence[str]) -> bool:
    """Tell from the plain column names whether a file has this format."""
    return {_TIME, _ZONE} <= set(columns) and not _SPANS.keys().isdisjoint(columns)


def rows(lines: Sequence[Line], reading: Reading) -> list[Placed]:
    """Return two rows a line, combustion and life cycle; 24 times as many where lines are days.

    Args:
        lines: Of the file.
        reading: The file's name tells the step where one line a zone cannot.

    Raises:
        ConfigError: If a cell cannot be read, or the step between lines is none of the four.
    """
    timed = [(line, _time(line, reading)) for line in lines]
    step = _step(timed, reading.file)
    found: list[Placed] = []
    for line, start in timed:
        if start.year < reading.since:
            reading.left_out[f"before {reading.since}"] += 1
            continue
        for column, span in _SPANS.items():
            if line.cells.get(column, "").strip():
                value = kg_per_kwh(line.cells[column], reading.place(line))
                row = _row(line, start, step, span, value)
                row = msgspec.structs.replace(row, address=reading.file.name)
                found += [Placed(line.number, each) for each in _hours_of(row, start, step)]
            elif column in line.cells:
                reading.left_out["without a value"] += 1
    return found


FORMAT: Final = Format("Electricity Maps CSV", claims, rows)


def _row(line: Line, start: datetime, step: Step, span: Span, value: Decimal) -> FactorRow:
    zone = line.cells[_ZONE].strip()
    period = f"{start:{_PERIODS[step]}}"
    return FactorRow(
        factor_id=f"em-csv/{zone}/{period}/{span}",
        kind="grid",
        subject=zone,
        name=line.cells.get("zone name", "").strip(),
        period=period,
        value=value,
        method="location",
        averaging="average",
        span=span,
        flow="consumption",
        source=f"Electricity Maps {step} download",
        address="",
        licence="terms of the Electricity Maps download",
        vintage=str(start.year),
        note=_note(line, step),
    )


def _hours_of(row: FactorRow, start: datetime, step: Step) -> Iterator[FactorRow]:
    if step != "daily":
        yield row
        return
    for hour in range(24):
        period = f"{start + timedelta(hours=hour):{_PERIODS[step]}}"
        yield msgspec.structs.replace(
            row, period=period, factor_id=f"em-csv/{row.subject}/{period}/{row.span}"
        )


def _note(line: Line, step: Step) -> str:
    parts = ["mean of its day"] if step == "daily" else []
    if line.cells.get("data estimated", "").strip().lower() == "true":
        how = line.cells.get("data estimation method", "").strip()
        parts.append(f"estimated: {how}" if how else "estimated")
    return "; ".join(parts)


def _time(line: Line, reading: Reading) -> datetime:
    cell = line.cells[_TIME].strip()
    try:
        return datetime.fromisoformat(cell).replace(tzinfo=None)
    except ValueError as error:
        raise ConfigError(
            f"{cell!r} is no time", where=reading.place(line), mend="download the file again"
        ) from error


def _step(timed: Sequence[tuple[Line, datetime]], file: Path) -> Step:
    by_zone: defaultdict[str, list[datetime]] = defaultdict(list)
    for line, start in timed:
        by_zone[line.cells[_ZONE]].append(start)
    gaps = {
        (later - earlier) / timedelta(hours=1)
        for times in by_zone.values()
        for earlier, later in zip(sorted(times), sorted(times)[1:], strict=False)
        if later > earlier
    }
    if gaps:
        # A month of hours may lack some: the shortest gap is the step.
        for step, (low, high) in _STEPS.items():
            if low <= min(gaps) <= high:
                return step
        raise ConfigError(
            f"has a line every {min(gaps) * 60:g} minutes", where=str(file), mend="download it by the hour"
        )
    named: list[Step] = [step for step in _STEPS if step in file.stem.lower()]
    if not named:
        raise ConfigError(
            "has one line a zone, so that nobody can tell hour from year",
            where=str(file),
            mend="name it as it was downloaded, such as FR_2024_yearly.csv",
        )
    return named[0]
