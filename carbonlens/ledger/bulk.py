"""Batches of many alike runs: their rows go into the file as columns, not as one object each.

The rows are those that ``schema`` would make of each run. Words that few rows have of their own
are handed to DuckDB as numbers and a list of words, which it writes many times as fast as texts.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import msgspec

from carbonlens.domain.alike import MICRO, MOST_UJ, Alike
from carbonlens.domain.limits import MOST_KG, MOST_S, misfit
from carbonlens.domain.run import Reading, Run
from carbonlens.domain.units import US_PER_HOUR
from carbonlens.errors import RecordError
from carbonlens.ledger import alike_text, parquet, schema
from carbonlens.ledger.atomic import ROWS
from carbonlens.ledger.records import Stored

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    from duckdb import DuckDBPyConnection

    Whole = npt.NDArray[np.int64]

_AT_ONCE: Final = 1 << 15
"""Runs whose rows are handed over together."""

_LAST_HOUR: Final = 70_389_528
"""Since 1970, with which the year 10000 begins: no calendar goes on."""

_MEMORY: Final = "1GB"
"""Of rows that wait for the file; more lie on the disk meanwhile."""

_MOST_THREADS: Final = 4
"""Each holds some 100 MB of records that are being written."""

_NUMBERS: Final = ("start_us", "end_us", "hour_utc", "month_utc", "part")
_MICROS: Final = ("energy_j", "u_sensor_j", "u_model_j", "u_host_j")
_TEXTS: Final = ("run_id", "record_sha256", "record", "emissions_reported_kg")
_WORDS: Final = tuple(
    name for name, kind in schema.COLUMNS.items() if kind == "VARCHAR" and name not in _TEXTS
)


def write(file: Path, alike: Sequence[Alike], runs: Iterable[Run] = ()) -> None:
    """Write one batch; the file appears whole or not at all.

    Args:
        file: Where; named by the source's hash and its importer.
        alike: Runs as columns, each with an id that no other run of the batch has.
        runs: The other runs.

    Raises:
        MissingExtraError: If DuckDB or pandas is not installed.
        UnwritableError: If DuckDB cannot write the file.
        RecordError: If a figure is too large for its column.
        OSError: If the folder cannot be written.
    """
    refuse_misfits(alike)
    # Closed before the folder goes: what waits on the disk lies there.
    with parquet.whole(file) as (connection, folder), closing(connection):
        connection.execute(f"SET temp_directory = {parquet.quoted(folder)}")
        connection.execute(f"SET memory_limit = '{_MEMORY}'")
        connection.execute(f"SET threads = {min(os.cpu_count() or 1, _MOST_THREADS)}")
        records = (Stored(run=run, text=msgspec.json.encode(run), file=str(file)) for run in runs)
        others = parquet.rows_source(folder / ROWS, schema.COLUMNS, schema.rows_of(records))
        has_others = (folder / ROWS).stat().st_size > 0
        words = _words(alike, connection, others if has_others else None)
        _make_table(connection, words)
        for frame in _frames(alike, words):
            _insert(connection, frame, words)
        query = f"SELECT {_selected(words, _column)} FROM held"  # noqa: S608  # our own names and quoted paths: SQL takes no parameter there
        if has_others:
            query += f" UNION ALL SELECT {_selected(words, _same)} FROM {others}"  # noqa: S608  # our own names and quoted paths: SQL takes no parameter there
        # Words have a list of theirs already; of other columns no cell is twice.
        connection.execute(parquet.copied(query, folder, "DICTIONARY_SIZE_LIMIT 1"))


def refuse_misfits(alike: Iterable[Alike]) -> None:
    """Refuse what no sum can hold.

    Raises:
        RecordError: If a figure is no finite number, negative where it cannot be, or larger than a
            column takes.
    """
    import numpy as np

    for one in alike:
        reason = misfit(one.pattern)
        if not all(((c > 0) & (c < MOST_UJ)).all() for c in (*one.energy_uj, *one.beside_uj)):
            reason = "an energy is not above zero, or too large"
        if not ((one.duration_s >= 0) & (one.duration_s < float(MOST_S))).all():
            reason = "a duration is no plausible number"
        if not all(0 <= kg < MOST_KG for kg in one.emissions_kg):
            reason = "emissions are no plausible number"
        if not np.all(one.start_us <= one.end_us):
            reason = "a run ends before it starts"
        if reason is not None:
            where = one.pattern.run_id
            mend = "check the figure and its unit"
            raise RecordError(f"a record cannot be kept: {reason}", where=where, mend=mend)


def _words(
    alike: Sequence[Alike], connection: DuckDBPyConnection, others: str | None
) -> dict[str, list[str]]:
    """Return the words of each column that has few of them; none where it is empty."""
    found: dict[str, dict[str, None]] = {name: {} for name in _WORDS}
    for one in alike:
        for constant in _constants(one):
            for name, value in constant.items():
                if name in found and isinstance(value, str):
                    found[name][value] = None
    if others is not None:
        listed = ", ".join(f"list(DISTINCT {name})" for name in _WORDS)
        (row,) = connection.execute(f"SELECT {listed} FROM {others}").fetchall()  # noqa: S608  # our own names and quoted paths: SQL takes no parameter there
        for name, values in zip(_WORDS, row, strict=True):
            found[name] |= dict.fromkeys(sorted(v for v in values or () if v is not None))
    return {name: list(values) for name, values in found.items()}


def _constants(one: Alike) -> list[dict[str, object]]:
    """Return what the rows of each reading have in common over all runs."""
    pattern = one.pattern
    labels = schema.labels(pattern) | {"run_state": "known"}
    return [labels | _of_reading(reading) for reading in pattern.energy]


def _of_reading(reading: Reading) -> dict[str, object]:
    (source,) = reading.u_by_source_j
    return {
        "component": reading.component,
        "boundary": reading.boundary,
        "grade": reading.grade,
        "state": reading.state,
        f"{schema.kind_of(source)}_source_id": source,
    }


def _make_table(connection: DuckDBPyConnection, words: dict[str, list[str]]) -> None:
    columns = [f"{name} {schema.COLUMNS[name]}" for name in (*_TEXTS, *_NUMBERS)]
    columns += [f"{name} BIGINT" for name in (*_MICROS, "duration_us")]
    for name in _listed(words):
        listed = ", ".join(parquet.quoted(word) for word in words[name])
        connection.execute(f"CREATE TYPE word_of_{name} AS ENUM ({listed})")
        columns.append(f"{name} word_of_{name}")
    connection.execute(f"CREATE TABLE held ({', '.join(columns)})")


def _listed(words: dict[str, list[str]]) -> list[str]:
    return [name for name in _WORDS if words[name]]


def _selected(words: dict[str, list[str]], column: Callable[[str], str]) -> str:
    """Return what is selected as the columns of the file, each of its type."""
    chosen = []
    for name, kind in schema.COLUMNS.items():
        told, of = column(name), kind
        if name in _WORDS:
            told, of = (name, f"word_of_{name}") if words[name] else ("NULL", kind)
        chosen.append(f"CAST({told} AS {of}) AS {name}")
    return ", ".join(chosen)


def _same(name: str) -> str:
    return name


def _frames(alike: Sequence[Alike], words: dict[str, list[str]]) -> Iterator[dict[str, Any]]:
    """Yield the columns of rows, so many runs at a time."""
    numbers = {name: {word: i for i, word in enumerate(listed)} for name, listed in words.items()}
    waiting: list[dict[str, Any]] = []
    count = 0
    for one in alike:
        for first in range(0, len(one), _AT_ONCE):
            whole = first == 0 and len(one) <= _AT_ONCE
            part = one if whole else one.of(range(first, min(first + _AT_ONCE, len(one))))
            waiting.append(_columns(part, numbers))
            count += len(part)
            if count >= _AT_ONCE:
                yield _joined(waiting)
                waiting, count = [], 0
    if waiting:
        yield _joined(waiting)


def _joined(parts: Sequence[dict[str, Any]]) -> dict[str, Any]:
    import numpy as np

    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


def _columns(one: Alike, numbers: dict[str, dict[str, int]]) -> dict[str, Any]:
    """Return the rows of alike runs: one a reading and hour, those of a run together."""
    import numpy as np

    texts, hashes = alike_text.texts_of(one)
    rows = _Rows(one)
    run, reading = rows.run, rows.reading
    is_first = rows.part == 0
    found: dict[str, Any] = {
        "run_id": _objects(one.run_ids)[run],
        "record_sha256": _objects(hashes)[run],
        "record": _at(is_first, _objects(texts)),
        "emissions_reported_kg": _at(is_first, _objects(list(map(str, one.emissions_kg)))),
        "duration_us": np.where(is_first, _rounded(one.duration_s)[run], -1),
        "start_us": one.start_us[run],
        "end_us": one.end_us[run],
        "hour_utc": rows.hour,
        "month_utc": rows.month,
        "part": rows.part,
        "energy_j": rows.energy_uj,
    }
    constants = _constants(one)
    for name, number_of in numbers.items():
        codes = np.array(
            [number_of.get(str(c[name]), -1) if c.get(name) is not None else -1 for c in constants]
        )
        found[name] = codes.astype(np.int32)[reading]
    found["run_state"] = np.where(is_first, found["run_state"], -1).astype(np.int32)
    for kind in schema.KINDS:
        of_kind = np.array([c.get(f"{kind}_source_id") is not None for c in constants])
        found[f"u_{kind}_j"] = np.where(of_kind[reading], rows.width_uj, -1)
    return found


class _Rows:
    """Which rows alike runs have: run, reading and hour of each, and what of the energy falls there.

    Args:
        one: The runs.
    """

    def __init__(self, one: Alike) -> None:
        """Work them out."""
        import numpy as np

        count, readings = len(one), len(one.energy_uj)
        first = one.start_us // US_PER_HOUR
        last = np.maximum(one.start_us, one.end_us - 1) // US_PER_HOUR
        self.run = np.repeat(np.arange(count), readings)
        self.reading = np.tile(np.arange(readings), count)
        energy = np.column_stack(one.energy_uj).ravel()
        width = np.column_stack(one.widths_j[:readings]).ravel()
        self.energy_uj, self.width_uj = energy, _rounded(width)
        self.part = self.reading
        self.hour: Whole = first[self.run]
        if (last > first).any():
            self._part_hours(one, first, last, width)
            self.month = _months(self.hour)
        else:
            self.month = _months(first)[self.run]

    def _part_hours(self, one: Alike, first: Whole, last: Whole, width: npt.NDArray[np.float64]) -> None:
        """Part the rows of runs that reach over hours, as ``spreading`` does."""
        import numpy as np

        hours = (last - first + 1)[self.run]
        row = np.repeat(np.arange(len(self.run)), hours)
        begins = np.concatenate(([0], np.cumsum(hours)[:-1]))
        within = np.arange(len(row)) - begins[row]
        run = self.run[row]
        self.hour = first[run] + within
        starts = np.maximum(one.start_us[run], self.hour * US_PER_HOUR)
        ends = np.minimum(one.end_us[run], (self.hour + 1) * US_PER_HOUR)
        whole = np.maximum(one.end_us - one.start_us, 1)[run]
        seen = ends - one.start_us[run]
        upto = _parts(self.energy_uj[row], seen, whole)
        before = np.where(within == 0, 0, np.concatenate(([0], upto[:-1])))
        share = np.where(hours[row] == 1, 1.0, (ends - starts) / whole)
        self.energy_uj, self.width_uj = upto - before, _rounded(width[row] * share)
        self.run, self.reading = run, self.reading[row]
        begin_of = np.concatenate(([0], np.flatnonzero(np.diff(run)) + 1))
        self.part = (
            np.arange(len(run)) - begin_of[np.searchsorted(begin_of, np.arange(len(run)), "right") - 1]
        )


def _months(hours: Whole) -> Whole:
    """Return the UTC month of each hour as a number; below zero where no calendar has it."""
    import numpy as np

    within = (hours >= 0) & (hours < _LAST_HOUR)
    months = np.where(within, hours, 0).astype("datetime64[h]").astype("datetime64[M]").astype(np.int64)
    return np.where(within, (months // 12 + 1970) * 100 + months % 12 + 1, -1)


def _parts(amount: Whole, seen: Whole, whole: Whole) -> Whole:
    """Return ``amount x seen / whole`` exactly, half to even."""
    import numpy as np

    made = amount.copy()
    for place in np.flatnonzero(seen != whole).tolist():
        over = int(whole[place])
        quotient, rest = divmod(int(amount[place]) * int(seen[place]), over)
        made[place] = quotient + (2 * rest > over or (2 * rest == over and quotient % 2 == 1))
    return made


def _rounded(values: npt.NDArray[np.float64]) -> Whole:
    """Return millionths as a record's text has them: what lies at the half of two is read as decimal."""
    import numpy as np

    scaled = values.astype(np.longdouble) * np.longdouble(10**MICRO)
    nearest = np.rint(scaled)
    made = nearest.astype(np.int64)
    unsure = np.abs(np.abs(scaled - nearest) - 0.5) <= np.abs(scaled) * 2.0**-50 + 1e-12
    for place in np.flatnonzero(unsure).tolist():
        made[place] = int(schema.to_micro(float(values[place])).scaleb(MICRO))
    found: Whole = made
    return found


def _objects(texts: Sequence[str]) -> npt.NDArray[np.object_]:
    import numpy as np

    made = np.empty(len(texts), dtype=object)
    made[:] = texts
    return made


def _at(is_first: npt.NDArray[np.bool_], texts: npt.NDArray[np.object_]) -> npt.NDArray[np.object_]:
    """Return a text on the first row of each run, and none on the others."""
    import numpy as np

    made = np.full(len(is_first), None, dtype=object)
    made[is_first] = texts
    return made


def _insert(connection: DuckDBPyConnection, columns: dict[str, Any], words: dict[str, list[str]]) -> None:
    import pandas  # type: ignore[import-untyped]  # it brings no types

    data = dict(columns)
    for name in _WORDS:
        codes = data.pop(name)
        if name in _listed(words):
            data[name] = pandas.Categorical.from_codes(codes, categories=words[name])
    frame = pandas.DataFrame(
        {n: pandas.Series(v, dtype=object) if n in _TEXTS else v for n, v in data.items()}
    )
    connection.register("frame", frame)
    connection.execute("INSERT INTO held BY NAME SELECT * FROM frame")
    connection.unregister("frame")


def _column(name: str) -> str:
    """Return the SQL of a column of the file, by those of the table."""
    if name in _MICROS:
        return _micro(name)
    known = {
        "month_utc": "nullif(month_utc, -1)",
        "duration_s": _micro("duration_us"),
        "u_random_j": "0",
        "is_first": "part = 0",
        "counts": "true",
        "row_schema": str(schema.VERSION),
    }
    return known.get(name, name if name in (*_TEXTS, *_NUMBERS) else "NULL")


def _micro(name: str) -> str:
    return f"CASE WHEN {name} >= 0 THEN {name}::DECIMAL(18,0) * 0.000001::DECIMAL(7,6) END"
