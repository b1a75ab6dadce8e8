"""What is told of an import's runs beside their source: study, step and work, by options and the map.

A study is a part of what a run is known by, so that it is put on before runs are looked for.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec

from carbonlens.app.importing_versions import Marks, differs
from carbonlens.domain.in_study import FIELDS, placed
from carbonlens.domain.run import Run
from carbonlens.importers.contract import AlikeRecords, RunRecord


def in_study(
    records: Sequence[RunRecord], alike: Sequence[AlikeRecords], marks: Callable[[RunRecord], Marks]
) -> tuple[list[RunRecord], list[AlikeRecords]]:
    """Return records with the study, step and work that are told of them.

    Args:
        records: Of a source, in order.
        alike: Its further ones, as columns; those whose units are told become records, for a
            batch of columns holds none.
        marks: What the user says of a record.
    """
    found = [_placed(record, marks(record)) for record in records]
    columns: list[AlikeRecords] = []
    loose: list[RunRecord] = []
    for told in alike:
        pattern = _placed(told.pattern, marks(told.pattern))
        runs = msgspec.structs.replace(told.runs, pattern=placed(told.runs.pattern, marks(told.pattern)))
        made = msgspec.structs.replace(told, pattern=pattern, runs=runs)
        if pattern.run.units is None:
            columns.append(made)
        else:
            loose += [made.record(place) for place in range(len(made))]
    return sorted([*found, *loose], key=lambda record: record.line) if loose else found, columns


def _placed(record: RunRecord, marks: Marks) -> RunRecord:
    if not marks.told:
        return record
    return msgspec.structs.replace(record, run=placed(record.run, marks))


def is_same_source(run: Run, held: Run, marks: Marks, *, is_one: bool) -> bool:
    """Tell whether a run that was kept in another study is the same one of its source.

    Args:
        run: As it comes now.
        held: As it was kept; by the same importer.
        marks: What is told of it now.
        is_one: Whether its source gives each run an id of its own.
    """
    if run.origin is None or held.origin is None:
        return False
    if run.origin.instrument.partition("/")[0] != held.origin.instrument.partition("/")[0]:
        return False
    told_of = {"tags", "site", "zone", *FIELDS, *marks.told}
    return is_one or not differs(run, held, but_for=told_of)
