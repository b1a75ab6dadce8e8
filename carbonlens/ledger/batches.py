"""Parquet batches of imported runs: the columns of ``schema``, one file a source."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import msgspec

from carbonlens.domain.alike import Alike
from carbonlens.domain.run import Run
from carbonlens.ledger import bulk, parquet, schema
from carbonlens.ledger.records import Stored


def write(file: Path, runs: Sequence[Run], alike: Sequence[Alike] = ()) -> None:
    """Write one batch; the file appears whole or not at all.

    Args:
        file: Where; named by the source's hash and its importer.
        runs: In the order of the source, which says what of two equal keys counts.
        alike: Further ones as columns, whose keys no other has.

    Raises:
        MissingExtraError: If DuckDB is not installed.
        UnwritableError: If DuckDB cannot write the file.
        RecordError: If a figure is too large for its column.
        OSError: If the folder cannot be written.
    """
    if alike:
        bulk.write(file, alike, runs)
        return
    records = (Stored(run=run, text=msgspec.json.encode(run), file=str(file)) for run in runs)
    parquet.write(file, schema.COLUMNS, schema.rows_of(records))
