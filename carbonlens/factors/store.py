"""The factors in force: the bundled tables, and the user's own rows in their place.

The bundled tables lie in ``carbonlens/factors/data``, one file a source and licence; they
were checked when they were made, and a test checks them again. The user's are checked
each time they are read.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from functools import cache, cached_property
from operator import itemgetter
from pathlib import Path
from typing import Final

import msgspec

from carbonlens.domain.counting import counted
from carbonlens.domain.factor_row import FactorKind, FactorRow
from carbonlens.domain.finding import Finding
from carbonlens.domain.identity import sha256_hex
from carbonlens.errors import ConfigError, InputFileError
from carbonlens.factors import checks
from carbonlens.factors.place import locate_factors
from carbonlens.factors.table_file import COLUMNS, REQUIRED, Table, read_csv, records

SUFFIXES: Final = (".csv", ".toml")
"""Files of a factor folder that are read."""


LENGTH_OF_HOUR: Final = len("2026-03-01T13")
"""Of the period of a row that holds for a single hour."""


class Override(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A row of the user's that stands where bundled ones stood.

    Attributes:
        row: The user's.
        place: File and line it was read from.
        replaces: Bundled rows that are not used because of it; empty for an addition.
    """

    row: FactorRow
    place: str
    replaces: tuple[FactorRow, ...] = ()


class FactorSet(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    """The rows in force.

    Attributes:
        rows: All of them: the user's, then the bundled ones that are not replaced.
        overrides: Where each of the user's rows came from, and what it replaces.
        findings: Warnings about the user's rows, and notes on what they replace.
        files: The user's files.
    """

    rows: tuple[FactorRow, ...]
    overrides: tuple[Override, ...] = ()
    findings: tuple[Finding, ...] = ()
    files: tuple[str, ...] = ()

    def find(self, kind: FactorKind, subject: str) -> tuple[FactorRow, ...]:
        """Return the rows of a kind for a zone, region, provider or device, in no order."""
        return self._by_subject.get((kind, subject), ())

    @cached_property
    def own(self) -> tuple[FactorRow, ...]:
        """The user's rows."""
        return tuple(o.row for o in self.overrides)

    @cached_property
    def own_ids(self) -> frozenset[str]:
        """Ids of the user's rows."""
        return frozenset(row.factor_id for row in self.own)

    @cached_property
    def sha256(self) -> str:
        """Hash of the whole set, whatever order and files its rows stand in."""
        return sha256_hex("\n".join(sorted(row.sha256 for row in self.rows)).encode())

    def of_period(self, kind: FactorKind, subject: str, period: str) -> tuple[FactorRow, ...]:
        """Return those of ``find`` that are of one period."""
        return self._by_period.get((kind, subject, period), ())

    def of_hours(self, kind: FactorKind, subject: str, months: Iterable[str]) -> tuple[FactorRow, ...]:
        """Return those of ``find`` that are of single hours of some UTC months, in the order of the set.

        Args:
            kind: Of the rows.
            subject: Likewise.
            months: ``2026-03``, each once.
        """
        held = [one for month in months for one in self._by_hours.get((kind, subject, month), ())]
        return tuple(row for _, row in sorted(held, key=itemgetter(0)))

    @cached_property
    def _by_hours(self) -> Mapping[tuple[FactorKind, str, str], Sequence[tuple[int, FactorRow]]]:
        """Rows of hours with their place in the set, by the month they lie in."""
        lists: dict[tuple[FactorKind, str, str], list[tuple[int, FactorRow]]] = {}
        for number, row in enumerate(self.rows):
            if len(row.period) == LENGTH_OF_HOUR:
                lists.setdefault((row.kind, row.subject, row.period[:7]), []).append((number, row))
        return lists

    @cached_property
    def _by_period(self) -> Mapping[tuple[FactorKind, str, str], tuple[FactorRow, ...]]:
        lists: dict[tuple[FactorKind, str, str], list[FactorRow]] = {}
        for row in self.rows:
            lists.setdefault((row.kind, row.subject, row.period), []).append(row)
        return {key: tuple(rows) for key, rows in lists.items()}

    @cached_property
    def _by_subject(self) -> Mapping[tuple[FactorKind, str], tuple[FactorRow, ...]]:
        lists: dict[tuple[FactorKind, str], list[FactorRow]] = {}
        for row in self.rows:
            lists.setdefault((row.kind, row.subject), []).append(row)
        return {key: tuple(rows) for key, rows in lists.items()}


@cache
def bundled_tables() -> tuple[Table, ...]:
    """Return the tables that come with carbonlens, by file name."""
    from importlib import resources

    folder = resources.files("carbonlens.factors") / "data"
    names = sorted(item.name for item in folder.iterdir() if item.name.endswith(".csv"))
    return tuple(read_csv((folder / name).read_bytes(), where=name) for name in names)


@cache
def bundled() -> FactorSet:
    """Return the bundled rows alone."""
    return FactorSet(rows=tuple(row for table in bundled_tables() for row in table.rows))


def open_factors(explicit: str | Path | None = None, *, now: str | None = None) -> FactorSet:
    """Return the factors in force here.

    Args:
        explicit: File or folder of the user's own; found by ``locate_factors`` when ``None``.
        now: The present hour in UTC, ``2026-11-28T15``; the clock's when ``None``.

    Raises:
        ConfigError: If a file of the user's is malformed, or a row of it implausible.
        InputFileError: If the place named cannot be read.
        UsageError: If the place named is empty text.
    """
    place = locate_factors(explicit)
    if place is None:
        return bundled()
    return with_own(bundled(), read_own(place, now=now or present()))


def read_own(place: Path, *, now: str) -> tuple[Table, ...]:
    """Return the user's tables, each row checked.

    Args:
        place: A CSV or TOML file, or a folder of such files.
        now: The present hour in UTC.

    Raises:
        ConfigError: If a file is malformed, or a row implausible.
        InputFileError: If the place cannot be read.
    """
    return checked_tables([read_table(file) for file in files_of(place)], now=now)


def checked_tables(tables: Sequence[Table], *, now: str) -> tuple[Table, ...]:
    """Return tables as they are, if each row stands, also beside those of the other tables.

    Args:
        tables: The user's.
        now: The present hour in UTC.

    Raises:
        ConfigError: If a row is refused; the first is named, the others are counted.
    """
    rows = tuple(row for table in tables for row in table.rows)
    if not any(checks.faults_of(rows, today=now)):
        return tuple(tables)
    # Only now the place of each is needed.
    places = tuple(place for table in tables for place, _ in table.placed())
    refused = checks.check_table(Table(where="", rows=rows, places=places), today=now).findings
    first, more = refused[0], len(refused) - 1
    rest = f"; {counted(more, 'more row is', 'more rows are')} refused" if more else ""
    raise ConfigError(
        f"{first.message}{rest} [{first.code}]", where=first.file, mend=first.mend or "mend that row"
    )


def read_table(file: Path) -> Table:
    """Return the rows of a CSV or TOML file, not checked for plausibility.

    Raises:
        ConfigError: If it is no factor table.
        InputFileError: If it cannot be read.
    """
    try:
        content = file.read_bytes()
    except OSError as error:
        raise InputFileError(
            f"cannot be read ({error.strerror or error})", where=str(file), mend="check the path"
        ) from error
    if file.suffix == ".toml":
        return _read_toml(content, where=str(file))
    return read_csv(content, where=str(file))


def with_own(base: FactorSet, tables: Sequence[Table]) -> FactorSet:
    """Return a set in which the user's rows stand in the place of bundled ones.

    A row takes the place of all bundled rows of its kind, subject and period that count the
    same; what it does not say (``None``) it does not tell apart.

    Args:
        base: The bundled rows.
        tables: The user's.
    """
    overrides: list[Override] = []
    groups: dict[tuple[str | None, ...], list[FactorRow]] = {}
    replaced: set[str] = set()
    for table in tables:
        for place, row in table.placed():
            # Mostly none, of thousands of hours: bundled rows are of months and years.
            peers = base.of_period(row.kind, row.subject, row.period)
            gone = tuple(peer for peer in peers if checks.counts_the_same(row, peer)) if peers else ()
            # A row with the id of a bundled one is meant as that one, mended.
            replaced.update((row.factor_id, *(peer.factor_id for peer in gone)))
            overrides.append(Override(row=row, place=place, replaces=gone))
            key = (row.kind, row.subject, row.period[:4], row.method, row.span, row.flow, row.source)
            groups.setdefault(key, []).append(row)
    far = (checks.far_from(group, base.find(group[0].kind, group[0].subject)) for group in groups.values())
    kept = tuple(row for row in base.rows if row.factor_id not in replaced)
    return FactorSet(
        rows=(*(o.row for o in overrides), *kept),
        overrides=tuple(overrides),
        findings=tuple(f for f in (*far, *map(_note, overrides)) if f is not None),
        files=tuple(table.where for table in tables),
    )


def present() -> str:
    """Return the present hour in UTC, as a factor's period has it."""
    return f"{datetime.now(tz=UTC):%Y-%m-%dT%H}"


def files_of(place: Path) -> Sequence[Path]:
    """Return a file, or the tables of a folder by name.

    Raises:
        InputFileError: If there is no such place.
    """
    if place.is_dir():
        return sorted(f for f in place.iterdir() if f.suffix in SUFFIXES and not f.name.startswith("."))
    if not place.exists():
        raise InputFileError(
            "there is no such file or folder", where=str(place), mend="name your factor tables, or none"
        )
    return [place]


def _read_toml(content: bytes, *, where: str) -> Table:
    import tomllib

    try:
        tables = tomllib.loads(content.decode("utf-8"), parse_float=str)
    except (UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ConfigError(f"is not valid TOML: {error}", where=where, mend="mend that line") from error
    found = tables.get("factor")
    if (
        set(tables) != {"factor"}
        or not isinstance(found, list)
        or not all(isinstance(f, dict) for f in found)
    ):
        raise ConfigError("is no factor table", where=where, mend="write each row below [[factor]]")
    places = [f"factor {n}" for n in range(1, len(found) + 1)]
    for row, place in zip(found, places, strict=True):
        for name in (*(r for r in REQUIRED if r not in row), *(k for k in row if k not in COLUMNS)):
            fault = "has no" if name in REQUIRED else "has an unknown field"
            raise ConfigError(
                f"{fault} {name}", where=f"{where}, {place}", mend=f"fields: {', '.join(COLUMNS)}"
            )
    plain = [{name: str(value) for name, value in row.items()} for row in found]
    return records(plain, where=where, places=places)


def _note(override: Override) -> Finding | None:
    if not override.replaces:
        return None
    row, values = override.row, ", ".join(f"{peer.value:f} ({peer.source})" for peer in override.replaces)
    return Finding(
        code="CL348",
        severity="info",
        message=f"{row.kind} {row.subject} {row.period}: {row.value:f} {row.unit} of {override.place} "
        f"stands in the place of the bundled {values}",
        subject=row.factor_id,
    )
