"""Use case part: what a quarter's report carries: its runs or what they sum to, factors, manifests."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import msgspec

from carbonlens.app.report_enclosed import csv_of, without_any_host_name
from carbonlens.app.sustainability import Gathered
from carbonlens.app.sustainability_carried import (
    LEDGER_ZIP,
    MOST_IN_DATA,
    MOST_IN_PDF,
    LeftOut,
    Packed,
    records_of,
)
from carbonlens.domain.counting import counted
from carbonlens.domain.factor_row import FactorRow
from carbonlens.domain.number_style import NumberStyle
from carbonlens.ledger import closes
from carbonlens.ledger.opening import open_ledger
from carbonlens.ledger.store import Ledger
from carbonlens.render.attachments import REPORT_JSON, Enclosed
from carbonlens.render.look import Look

if TYPE_CHECKING:
    from carbonlens.ledger.frames import View

MOST_RUNS: Final = 100_000
"""Runs up to which each travels with the report; beyond, sums by hour and by tag do."""

_BY_HOUR: Final = ("hour_utc", "site", "zone", "boundary")
_BY_TAG: Final = ("site", "team", "model", "hardware", "workload", "unit", "boundary")
_FACTOR: Final = tuple(FactorRow.__struct_fields__)


_WHY: Final[Mapping[LeftOut, str]] = {
    "redacted": "what a redaction takes out lies in them still (carbonlens ledger verify says where)",
    "unnamed": "one of them has a name that no archive may hold",
    "changing": "they were written to each time that they were read",
    "hosts": "they name hosts in plain letters, where the report has pseudonyms",
}
"""Why records stay behind, for a reader of the report."""


def words_of(runs: int, why: LeftOut = "") -> str:
    """Return what of the runs travels with the report, in words.

    Args:
        runs: Root runs of the quarter.
        why: Why the ledger's records stay behind, where they would be few enough.
    """
    if runs <= MOST_RUNS and why:
        return (
            f"It carries every run, the factors and the inventory. The ledger’s records stay behind: "
            f"{_WHY[why]}. It is verified with --ledger."
        )
    if runs <= MOST_RUNS:
        return (
            "It carries every run, the factors and the inventory, and the ledger’s records where these are "
            "few enough and were not left out, to be verified by itself; else it is verified with --ledger."
        )
    return (
        "Its runs are too many to travel with it: it carries their sums by hour and by tag, the factors "
        "and the inventory, and is verified with --ledger."
    )


class Taken(msgspec.Struct, frozen=True, kw_only=True):
    """What a report carries of its ledger: taken once, so that all formats carry the same.

    Attributes:
        files: Runs, or what they sum to, and the manifests of closes; a PDF has them.
        records: The ledger's records.
    """

    files: tuple[Enclosed, ...] = ()
    records: Packed = Packed()


class Wanted(msgspec.Struct, frozen=True, kw_only=True):
    """What a report is to carry of its ledger.

    Attributes:
        files: Whether the tables of runs and the manifests; a PDF alone has them.
        records: Whether the ledger's records, where they are few enough.
        host_names: Whether those travel though they name hosts in plain letters.
    """

    files: bool = True
    records: bool = True
    host_names: bool = False


def take(gathered: Gathered, wanted: Wanted = Wanted()) -> Taken:  # noqa: B008  # frozen
    """Return what a report carries of its ledger as this is now.

    Within the ``one_opening`` of gathering, runs are those that the figures were made of.

    Args:
        gathered: What the report was made of.
        wanted: What is to be taken.

    Raises:
        RecordError: If a file of the ledger cannot be read, or went away meanwhile.
    """
    files: tuple[Enclosed, ...] = ()
    records = Packed()
    with open_ledger(gathered.source.ledger) as store:
        try:
            if wanted.files:
                files = tuple(_files_of(gathered, store))
            if wanted.records and gathered.given.runs <= MOST_RUNS:
                records = records_of(store.path, MOST_IN_PDF, with_host_names=wanted.host_names)
        except OSError as error:
            raise store.unreadable(error) from error
    return Taken(files=files, records=records)


def _files_of(gathered: Gathered, store: Ledger) -> Iterator[Enclosed]:
    with store.query(gathered.given.period, gathered.source.calendar) as view:
        yield from _of_runs(view, gathered.given.runs)
    for one in gathered.given.closes:
        yield Enclosed(
            name=f"close-{one.period}.json",
            content=closes.file_of(store.path, one.period).read_bytes(),
            description=f"Manifest of the close of {one.period}",
        )


def enclosed(shape: bytes, gathered: Gathered, taken: Taken | None = None) -> tuple[Enclosed, ...]:
    """Return what is embedded in a PDF.

    Args:
        shape: The report as JSON.
        gathered: What it was made of.
        taken: What it carries of its ledger; taken from that when ``None``.
    """
    held = taken or take(gathered)
    files = [
        Enclosed(
            name=REPORT_JSON,
            content=shape,
            description="The report as JSON, with the inventory and the factors of the user",
            relationship="Source",
        ),
        Enclosed(
            name="factors.csv",
            content=csv_of((*_FACTOR, "sha256"), _factors(gathered.given.factors)),
            description="Every factor that the quarter's figures rest on, with its hash",
        ),
        *held.files,
    ]
    if held.records.content:
        words = "The ledger's records, from which the report is computed again"
        files.append(
            Enclosed(name=LEDGER_ZIP, content=held.records.content, description=words, relationship="Source")
        )
    return tuple(files)


def carried_in_data(records: Packed) -> str | None:
    """Return the ledger's records as the data of a page hold them; ``None`` where they are too many.

    Args:
        records: The records that travel.
    """
    if records.size > MOST_IN_DATA:
        return None
    return base64.b64encode(records.content).decode("ascii") or None


def _factors(rows: Iterable[FactorRow]) -> Iterator[Sequence[object]]:
    for row in rows:
        yield (*(getattr(row, name) for name in _FACTOR), row.sha256)


def _of_runs(view: View, runs: int) -> Iterator[Enclosed]:
    from carbonlens.ledger import queries

    parts = queries.roots(view.parts, view.orphans)
    if runs <= MOST_RUNS:
        rows = without_any_host_name(view.rows(queries.run_table(parts)))
        rows.sort(key=lambda r: str(r["run_id"]))
        yield _table("runs.csv", rows, f"Every run of the quarter, {counted(len(rows), 'row')}")
        return
    for name, keys in (("runs-by-hour.csv", _BY_HOUR), ("runs-by-tag.csv", _BY_TAG)):
        rows = _sums(view, parts, keys)
        yield _table(name, rows, f"Sums of {counted(runs, 'run')} by {', '.join(keys)}")


def _sums(view: View, parts: Any, keys: Sequence[str]) -> list[dict[str, Any]]:  # noqa: ANN401 - a frame
    import narwhals as nw

    held = [k for k in keys if k in parts.collect_schema().names()]
    one = nw.when(nw.col("is_first")).then(nw.lit(1))
    sums = parts.group_by(*held).agg(
        runs=one.count(), units=nw.col("units").sum(), energy_j=nw.col("energy_j").sum()
    )
    rows: list[dict[str, Any]] = view.rows(sums)
    rows.sort(key=lambda r: tuple(str(r[k]) for k in held))
    return rows


def _table(name: str, rows: Sequence[dict[str, Any]], words: str) -> Enclosed:
    columns = tuple(rows[0]) if rows else ()
    content = csv_of(columns, ([row[c] for c in columns] for row in rows))
    return Enclosed(name=name, content=content, description=words)


class Basis(msgspec.Struct, frozen=True, kw_only=True):
    """What a report is computed again from, beside a ledger.

    Attributes:
        present_us: The present, as far as figures depend on it: the end of the quarter at the latest.
        inventory: Its files by name.
        factors: The user's own factors; the others come with carbonlens.
        records_left_out: Why its files carry no records of the ledger, where those are few enough.
    """

    period: str
    present_us: int
    inventory: dict[str, str] = {}
    factors: tuple[FactorRow, ...] = ()
    factors_sha256: str
    made_with: dict[str, Any] = {}
    records_left_out: LeftOut = ""


def basis_of(
    gathered: Gathered,
    look: Look | None = None,
    numbers: NumberStyle | None = None,
    left_out: LeftOut = "",
) -> Basis:
    """Return what the report of a quarter is computed again from, beside its ledger.

    Args:
        gathered: What it was made of.
        look: The user's own templates.
        numbers: How its pages write figures; our way for ``None``.
        left_out: Why no records travel with it, where they are few enough.
    """
    from carbonlens.inventory.folder import load
    from carbonlens.render.environment import made_with

    made = msgspec.structs.replace(
        made_with(), own_templates_sha256=look.sha256 if look else None, numbers=numbers
    )
    source = gathered.source
    texts: dict[str, str] = {}
    if source.kept.folder is not None:
        texts = {f.name: f.text for f in load(Path(source.kept.folder)).files if f.kind is not None}
    return Basis(
        period=gathered.given.period,
        present_us=source.now_us,
        inventory=texts,
        factors=source.factors.own,
        factors_sha256=source.factors.sha256,
        made_with=msgspec.to_builtins(made),
        records_left_out=left_out,
    )
