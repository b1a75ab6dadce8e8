"""Batches of many alike runs: their rows go into the file as columns, not as one object each.

The rows are those that ``schema`` would make of each run. DuckDB takes some thousand runs at a
time as it writes, so that the texts of no more than those are held.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from itertools import accumulate, chain
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec

from carbonlens.domain.alike import MICRO, MOST_UJ, Alike
from carbonlens.domain.limits import MOST_KG, MOST_S, misfit
from carbonlens.domain.run import Reading, Run
from carbonlens.domain.units import US_PER_HOUR
from carbonlens.errors import RecordError
from carbonlens.ledger import alike_text, parquet, schema
from carbonlens.ledger.arrow_stream import (
    INTEGER,
    TEXT,
    WORD,
    Column,
    Numbers,
    Stream,
    Words,
    decimal,
    joined,
)
from carbonlens.ledger.atomic import ROWS
from carbonlens.ledger.records import Stored

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    from duckdb import DuckDBPyConnection

    Whole = npt.NDArray[np.int64]

_AT_ONCE: Final = 10_000_000
"""Bytes of records that are handed over together."""

_LONGEST_LETTER: Final = 6
"""Bytes of a character in JSON."""

_LAST_HOUR: Final = 70_389_528
"""Since 1970, with which the year 10000 begins: no calendar goes on."""

_MEMORY: Final = "1GB"
"""Of rows that wait for the file; more lie on the disk meanwhile."""

_KEPT: Final = "512MB"
"""Of that what DuckDB keeps once it took it: to give pages back and ask for them anew takes longer
than to press what stands in them. No more is taken than is used."""

_MOST_THREADS: Final = 4
"""Each holds some 100 MB of records that are being written. They are half of the processors: texts are
made beside."""

_LEVEL: Final = 1
"""Of zstd: hashes take a third of the time of its usual one, and records no more room."""

_ROW_GROUP: Final = 61_440
"""Rows that are pressed together, and held until then."""

_NUMBERS: Final = ("start_us", "end_us", "hour_utc", "month_utc", "part")
_MICROS: Final = ("energy_j", "u_sensor_j", "u_model_j", "u_host_j", "duration_s")
_TEXTS: Final = ("run_id", "record_sha256", "record", "emissions_reported_kg")
_OF_RUNS: Final = ("run_id", "record_sha256")
"""Texts that stand on every row of a run."""

_KG: Final = (
    "coalesce(TRY_CAST(emissions_reported_kg AS DECIMAL(18,9)), CAST(emissions_reported_kg AS DECIMAL(24,9)))"
)
"""Texts that 64 bits hold are read three times as fast as wider ones, to the same figure."""

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
        MissingExtraError: If DuckDB is not installed.
        UnwritableError: If DuckDB cannot write the file.
        RecordError: If a figure is too large for its column.
        OSError: If the folder cannot be written.
    """
    refuse_misfits(alike)
    # Closed before the folder goes: what waits on the disk lies there.
    with parquet.whole(file) as (connection, folder), closing(connection):
        connection.execute(f"SET temp_directory = {parquet.quoted(folder)}")
        connection.execute(f"SET memory_limit = '{_MEMORY}'")
        connection.execute(f"SET block_allocator_memory = '{_KEPT}'")
        connection.execute(f"SET threads = {min(max((os.cpu_count() or 1) // 2, 1), _MOST_THREADS)}")
        records = (Stored(run=run, text=msgspec.json.encode(run), file=str(file)) for run in runs)
        others = parquet.rows_source(folder / ROWS, schema.COLUMNS, schema.rows_of(records))
        has_others = (folder / ROWS).stat().st_size > 0
        words = _words(alike, connection, others if has_others else None)
        for name in _listed(words):
            listed = ", ".join(parquet.quoted(word) for word in words[name])
            connection.execute(f"CREATE TYPE word_of_{name} AS ENUM ({listed})")
        stream = Stream(_formats(words), lambda: _ahead(_batches(alike, words)))
        connection.register("made", stream)
        query = f"SELECT {_selected(words, _column)} FROM made"  # noqa: S608  # our own names and quoted paths: SQL takes no parameter there
        if has_others:
            query += f" UNION ALL SELECT {_selected(words, _same)} FROM {others}"  # noqa: S608  # our own names and quoted paths: SQL takes no parameter there
        # Words have a list of theirs already; of other columns no cell is twice.
        options = ("DICTIONARY_SIZE_LIMIT 1", f"ROW_GROUP_SIZE {_ROW_GROUP}", f"COMPRESSION_LEVEL {_LEVEL}")
        try:
            connection.execute(parquet.copied(query, folder, *options))
        except Exception:
            if stream.error is not None:
                raise stream.error from None
            raise


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


def _formats(words: dict[str, list[str]]) -> dict[str, str]:
    """Return the columns that are handed over, and the format of each."""
    found = {name: WORD if name in _OF_RUNS else TEXT for name in _TEXTS}
    found |= dict.fromkeys(_NUMBERS, INTEGER) | {name: decimal(schema.COLUMNS[name]) for name in _MICROS}
    return found | dict.fromkeys(_listed(words), WORD)


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


def _ahead(batches: Iterator[dict[str, Column]]) -> Iterator[dict[str, Column]]:
    """Yield batches, each of which is made while the one before is written."""
    with ThreadPoolExecutor(1) as maker:
        waiting = maker.submit(next, batches, None)
        while (batch := waiting.result()) is not None:
            waiting = maker.submit(next, batches, None)
            yield batch


def _batches(alike: Sequence[Alike], words: dict[str, list[str]]) -> Iterator[dict[str, Column]]:
    """Yield the rows of so many runs at a time, as columns."""
    waiting: list[Alike] = []
    size = 0
    for one in alike:
        longest = len(msgspec.json.encode(one.pattern)) + _LONGEST_LETTER * max(
            map(len, one.run_ids), default=0
        )
        step = max(_AT_ONCE // longest, 1)
        for first in range(0, len(one), step):
            part = one if len(one) <= step else one.of(range(first, min(first + step, len(one))))
            waiting.append(part)
            size += len(part) * longest
            if size >= _AT_ONCE:
                yield _batch(waiting, _listed(words))
                waiting, size = [], 0
    if waiting:
        yield _batch(waiting, _listed(words))


def _batch(parts: Sequence[Alike], words: Sequence[str]) -> dict[str, Column]:
    """Return the rows of alike runs of several kinds: one a reading and hour, those of a run together."""
    import numpy as np

    every = [_Rows(one) for one in parts]
    texts = [alike_text.texts_of(one) for one in parts]
    constants = [_constants(one) for one in parts]
    runs_before = [0, *accumulate(map(len, parts))]
    readings_before = [0, *accumulate(map(len, constants))]
    run = np.concatenate([r.run + n for r, n in zip(every, runs_before, strict=False)])
    reading = np.concatenate([r.reading + n for r, n in zip(every, readings_before, strict=False)])
    part = np.concatenate([r.part for r in every])
    is_first = part == 0
    seconds = _rounded(np.concatenate([one.duration_s for one in parts]))
    places = run.astype(np.int32)
    found: dict[str, Column] = {
        "run_id": Words(joined([text for told in texts for text in told.run_ids]), places),
        "record_sha256": Words(joined([text for told in texts for text in told.hashes]), places),
        "record": joined([text for told in texts for text in told.records], is_first),
        "emissions_reported_kg": joined([text for told in texts for text in told.kg], is_first),
        "duration_s": Numbers(seconds[run], is_first),
        "start_us": Numbers(np.concatenate([one.start_us for one in parts])[run]),
        "end_us": Numbers(np.concatenate([one.end_us for one in parts])[run]),
        "hour_utc": Numbers(np.concatenate([r.hour for r in every])),
        "month_utc": Numbers(month := np.concatenate([r.month for r in every]), month >= 0),
        "part": Numbers(part),
        "energy_j": Numbers(np.concatenate([r.energy_uj for r in every])),
    }
    width = np.concatenate([r.width_uj for r in every])
    listed = list(chain.from_iterable(constants))
    for kind in schema.KINDS:
        of_kind = np.array([c.get(f"{kind}_source_id") is not None for c in listed])
        found[f"u_{kind}_j"] = Numbers(width, of_kind[reading])
    at = reading.astype(np.int32)
    for name in words:
        found[name] = _worded([c.get(name) for c in listed], at)
    state = found.get("run_state")
    if isinstance(state, Words):
        found["run_state"] = Words(state.words, state.places, is_first)
    return found


def _worded(values: Sequence[object], at: npt.NDArray[np.int32]) -> Words:
    """Return a word of each row's reading, where that has one."""
    import numpy as np

    known = np.array([value is not None for value in values])
    told = [b"" if value is None else str(value).encode() for value in values]
    return Words(joined(told), at, None if known.all() else known[at])


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


def _column(name: str) -> str:
    """Return the SQL of a column of the file, by those that are handed over."""
    known = {
        "u_random_j": "0",
        "is_first": "part = 0",
        "counts": "true",
        "row_schema": str(schema.VERSION),
        "emissions_reported_kg": _KG,
    }
    return known.get(name, name if name in (*_TEXTS, *_NUMBERS, *_MICROS) else "NULL")
