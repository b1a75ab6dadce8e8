"""Use case: the files that a report carries: itself as JSON, its runs and its factors as tables."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from functools import cache
from typing import Any, Final

import msgspec

from carbonlens.domain.evidence import Evidence, encode
from carbonlens.domain.factor import Vector
from carbonlens.domain.identity import host_pseudonym, is_plain_host, without_host_name
from carbonlens.domain.study import EffortPlace
from carbonlens.ledger.export import COLUMNS, row
from carbonlens.ledger.records import Stored
from carbonlens.render.attachments import LARGEST_BYTES, REPORT_JSON, Enclosed

MOST_RUNS: Final = 100_000
"""Beyond this many runs a report carries none of them: ``verify --ledger`` takes them from there."""

MOST_BYTES: Final = LARGEST_BYTES // 2
"""Nor where they take more than this: indented, and with all that is computed from them, the report
must stay one that ``verify`` reads."""

_FACTOR_COLUMNS: Final = (
    "id", "kind", "value", "unit", "u_relative", "zone", "period", "basis", "source", "example",
    "used_for",
)  # fmt: skip

_HOSTS: Final = ("host", "host_id", "machine")
_FILE: Final = "source_file"
_RUN_IDS: Final = ("run_id", "parent_run_id", "supersedes")

_STARTS_A_FORMULA: Final = ("=", "+", "-", "@", "\t", "\r")


def enclosed(shape: bytes, evidence: Evidence | None) -> tuple[Enclosed, ...]:
    """Return what is embedded in a PDF.

    Args:
        shape: The report as JSON, with its evidence.
        evidence: What it was computed from; ``None`` where a caller gave a comparison alone.
    """
    files = [
        Enclosed(
            name=REPORT_JSON,
            content=shape,
            description="The report as JSON with what it was computed from, for carbonlens verify",
            relationship="Source",
        )
    ]
    if evidence is not None and not travelling(evidence).runs_left_out:
        files += [
            Enclosed(name="runs.csv", content=runs_csv(evidence), description="Every run that entered"),
            Enclosed(
                name="factors.csv",
                content=factors_csv(evidence),
                description="Every factor and price, with its source",
            ),
        ]
    return tuple(files)


def travelling(evidence: Evidence) -> Evidence:
    """Return what of the evidence travels with a report: all, or all but the runs.

    Args:
        evidence: Of a report.
    """
    if len(evidence.runs) <= MOST_RUNS and len(encode(evidence)) <= MOST_BYTES:
        return evidence
    return evidence.without_runs()


def runs_csv(evidence: Evidence) -> bytes:
    """Return the runs as ``ledger export`` gives them; no cell is taken for a formula by a spreadsheet.

    Args:
        evidence: Of a report.
    """
    stored = (Stored(run=run, text=msgspec.json.encode(run), file="") for run in evidence.runs)
    rows = without_any_host_name([row(one) for one in stored])
    return csv_of(tuple(COLUMNS), ([cells[name] for name in COLUMNS] for cells in rows))


def without_any_host_name(rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return rows of runs with pseudonyms in the place of the plain names of all their hosts.

    Args:
        rows: Cells by column.
    """
    plain = dict.fromkeys(row[n] for row in rows for n in _HOSTS if is_plain_host(row.get(n)))
    files = cache(_hiding(plain)) if plain else None
    return [without_host_names(row, plain, files) for row in rows]


def without_host_names(
    cells: Mapping[str, Any], hosts: Collection[str] = (), files: Callable[[str], str] | None = None
) -> dict[str, Any]:
    """Return a row of runs with pseudonyms in the place of hosts' plain names.

    Ids of runs too: importers end one with its host where a file tells of several, and a run may
    have one of another host as its parent. And names of source files, which often tell the host.

    Args:
        cells: By column.
        hosts: Plain names of other rows' hosts.
        files: What the name of a file is with pseudonyms in it; made for these hosts when ``None``.
    """
    named = {*hosts, *(cells[n] for n in _HOSTS if is_plain_host(cells.get(n)))}
    if not named:
        return dict(cells)
    hidden = {n: without_host_name(cells[n]) for n in _HOSTS if n in cells}
    if cells.get(_FILE):
        hidden[_FILE] = (files or _hiding(named))(cells[_FILE])
    for name in _RUN_IDS:
        said = cells.get(name) or ""
        ends = (said[at + 1 :] for at, letter in enumerate(said) if letter == "-")
        host = next((end for end in ends if end in named), None)
        if host is not None:
            hidden[name] = said.removesuffix(host) + host_pseudonym(host)
    return {**cells, **hidden}


def _hiding(hosts: Iterable[str]) -> Callable[[str], str]:
    """Return what puts pseudonyms in the place of hosts in the name of a file.

    Each stands as a word of its own, in large or small letters, by its whole name or by the first
    label of a domain name: ``log-gpu07.csv`` tells ``gpu07.example.org``.
    """
    labels: dict[str, str] = {}
    for host in hosts:
        label = host.partition(".")[0]
        # The first label of an address is a number, and no name; one of two hosts is that of neither.
        if label and not label.isdigit():
            labels[label] = label if label in labels else host
    names = labels | {h: h for h in hosts}
    known = {n.casefold(): h for n, h in names.items()}
    longest_first = "|".join(map(re.escape, sorted(names, key=lambda n: (-len(n), n))))
    said = re.compile(rf"(?<![^\W_])(?:{longest_first})(?![^\W_])", re.IGNORECASE)
    return lambda name: said.sub(lambda m: host_pseudonym(known.get(m[0].casefold(), m[0])), name)


def factors_csv(evidence: Evidence) -> bytes:
    """Return the factors and prices of a comparison as a table.

    Args:
        evidence: Of a report: one vector for all arms, and those of the places where effort ran.
    """
    rows = [(*row, "all arms") for row in _factor_rows(evidence.vector)]
    for place in evidence.study.effort_places:
        rows += [(*row, f"effort: {_selected(place)}") for row in _factor_rows(place.vector)]
    return csv_of(_FACTOR_COLUMNS, rows)


def _selected(place: EffortPlace) -> str:
    """Return which effort runs a place is for, as the study file states it."""
    stated = (("zone", place.zone), ("site", place.site), ("period", place.period))
    return ", ".join(f"{name} {value}" for name, value in stated if value) or "any"


def _factor_rows(vector: Vector) -> Iterator[tuple[object, ...]]:
    for factor in (vector.location, vector.market):
        if factor is not None:
            yield (
                factor.factor_id, f"grid, {factor.method}-based", factor.value_kg_per_kwh, "kg/kWh",
                factor.u_relative, factor.zone, factor.period, " ".join(factor.basis), factor.source,
                factor.example,
            )  # fmt: skip
    if vector.pue is not None:
        yield (
            "pue", "PUE", vector.pue, "1", vector.pue_u_relative, vector.place, None, None,
            vector.pue_source, None,
        )  # fmt: skip
    if vector.host_overhead is not None:
        yield (
            "host_overhead", "host overhead", vector.host_overhead, "1", vector.host_overhead_u_relative,
            vector.place, None, None, vector.host_overhead_source, None,
        )  # fmt: skip
    for price in (vector.electricity, vector.machine):
        if price is not None:
            yield (
                price.price_id, "price", price.amount, f"{price.currency}/{price.per}", price.u_relative,
                None, price.period, None, price.source, price.example,
            )  # fmt: skip
    if vector.embodied is not None:
        e = vector.embodied
        yield (
            e.factor_id, "embodied", e.value_kg_per_core_hour, "kg/core_hour", e.u_relative, None, None,
            None, e.source, e.example,
        )  # fmt: skip


def csv_of(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> bytes:
    """Return a table as CSV; no cell is taken for a formula by a spreadsheet.

    Args:
        columns: Names of the columns.
        rows: With as many cells each.
    """
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows([_cell(value) for value in values] for values in rows)
    return text.getvalue().encode()


def _cell(value: object) -> str:
    """Return a cell; a text that a spreadsheet would run is led by an apostrophe."""
    if value is None:
        return ""
    if isinstance(value, Decimal):
        return format(value, "f")
    said = str(value)
    return f"'{said}" if isinstance(value, str) and said.startswith(_STARTS_A_FORMULA) else said
