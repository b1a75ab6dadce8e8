"""FOCUS bills, versions 1.0 to 1.4: CSV, plain or gzipped, read line by line.

The four costs stay exact, and what a line leaves null stays unknown. A line has no id of its
own in the format: it is identified by its whole content, so that a line that is there twice,
in one file or in two that overlap, counts once.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Any, Final, get_args

import msgspec

from carbonlens.domain.charge import Charge, ChargeCategory, CommitmentStatus
from carbonlens.domain.counting import counted, with_article
from carbonlens.domain.finding import Finding, Severity
from carbonlens.domain.identity import sha256_hex
from carbonlens.domain.run import Origin
from carbonlens.errors import InputFileError
from carbonlens.importers import focus_cells as cells
from carbonlens.importers.cells import Decimals, Row, RowError, delimiter_of, stated
from carbonlens.importers.claiming import each
from carbonlens.importers.contract import USUAL, ChargeRecord, Facts, Group, Item, Kind, Options, Tally
from carbonlens.importers.focus_datasets import other_dataset
from carbonlens.importers.sources import Source
from carbonlens.importers.tables import is_other_header, other_header

_UTF_16: Final = (b"\xff\xfe", b"\xfe\xff")
_SIGNS: Final = frozenset({*cells.COSTS, *cells.ESSENTIAL, "BillingPeriodStart", "ChargeCategory"})
_ENOUGH_SIGNS: Final = 4
_CANONICAL: Final = {name.lower(): name for name in cells.KNOWN}
_CATEGORIES: Final = get_args(ChargeCategory)
_STATES: Final = get_args(CommitmentStatus)
_NUMERIC: Final = frozenset({*cells.COSTS, *cells.NUMBERS.values()})


class FocusImporter:
    """Importer of FOCUS cost and usage files."""

    name = "focus"
    version = 1
    kind: Kind = "bill"
    rank = USUAL
    facts = Facts(
        title="FOCUS cost and usage (CSV)",
        reads="versions 1.0 to 1.4, plain or gzipped",
        units="money in the billing currency; consumed quantities in the unit of their own column",
        grade="none: a bill states no energy, unless it bills energy by the kWh",
        traps=(
            "billed and effective cost are two bases and are never added",
            "a line that repeats another in every cell counts once",
            "a cost that is null is unknown, not zero",
        ),
        tested_on=("examples of the specification, and bills of the four large clouds in its form",),
    )

    def claim(self, sources: Sequence[Source]) -> list[Group]:
        """Claim tables whose header names costs and charge periods as FOCUS does."""
        return each(sources, is_bill)

    def read(self, group: Group, options: Options) -> Iterator[Item]:  # noqa: ARG002  # nothing is unsaid in it
        """Yield the charges; each line that is none becomes a Finding with its number.

        Raises:
            InputFileError: If the file cannot be read, or lacks a column that no charge can do without.
        """
        source = group.main
        bill = _Bill(source.name, source.sha256)
        try:
            _read_into(bill, source.csv_lines(), source.shown, _decimals(source))
        except csv.Error as error:
            raise InputFileError(
                f"is no CSV table ({error})", where=source.shown, mend="check quotes and line ends"
            ) from error
        yield from bill.items()


IMPORTER: Final = FocusImporter()


def is_bill(source: Source) -> bool:
    """Tell whether a source is a bill by the names in its header."""
    if not source.first_lines:
        return False
    first = source.first_lines[0]
    try:
        names = set(_header(next(csv.reader([first], delimiter=delimiter_of(first)), [])))
    except csv.Error:
        return False
    is_bill_like = bool(names & {"BilledCost", "EffectiveCost"}) and len(names & _SIGNS) >= _ENOUGH_SIGNS
    # The other data sets of the format are claimed too, to be refused by their name.
    return is_bill_like or other_dataset(names) is not None


class _Bill:
    """Collects the charges and Findings of one file."""

    def __init__(self, name: str, sha256: str) -> None:
        self.name = name
        self.sha256 = sha256
        self.rows = self.rejected = self.repeated = 0
        self.charges: dict[str, Charge] = {}
        self.findings: list[Finding] = []
        self._noted: dict[str, list[int]] = {}
        self._instants: dict[str, int] = {}
        self._tag_texts: dict[str, dict[str, str] | None] = {}
        self._labels: list[str] = []

    def take(self, line: int, row: Row) -> None:
        """Turn one line into a charge, or into a Finding."""
        self.rows += 1
        try:
            fields = self._fields(row, line)
        except RowError as error:
            self.reject(line, str(error))
            return
        name = _identity(row, fields)
        earlier = self.charges.get(name)
        if earlier is not None:
            self._repeat(line, earlier)
            return
        origin = Origin(
            instrument=f"{FocusImporter.name}/{FocusImporter.version}",
            source_file=self.name,
            source_sha256=self.sha256,
            source_line=line,
        )
        self.charges[name] = Charge(charge_id=name, origin=origin, **fields)

    def reject(self, line: int, text: str) -> None:
        """Leave a line out, and say why."""
        self.rejected += 1
        self._find("CL232", "error", f"{text}; the line is left out", line, "mend the line, or export again")

    def take_header(self, header: list[str]) -> None:
        """Note mandatory columns that the file does not have."""
        self._labels = [name for name in header if name.startswith("x_") or name in cells.ALLOCATED]
        lacking = [name for name in cells.MANDATORY if name not in header]
        if not any(name in header for name in cells.PARTIES):
            lacking.append("ServiceProviderName (ProviderName before 1.3)")
        if lacking:
            text = f"lacks {counted(len(lacking), 'column')} that FOCUS demands: {', '.join(lacking)}"
            mend = "export the whole table; what a column would say stays unknown"
            self._find("CL230", "warning", text, 1, mend)

    def items(self) -> Iterator[Item]:
        """Yield what the file gave, with a Finding for each kind of gap in its lines."""
        for what, lines in self._noted.items():
            code, severity, text, mend = _GAPS[what.partition(":")[0]]
            told = text.format(what=what.partition(":")[2], lines=counted(len(lines), "line"))
            self._find(code, severity, told, lines[0], mend)
        yield from (ChargeRecord(charge) for charge in self.charges.values())
        yield from self.findings
        yield Tally(rows=self.rows, rejected=self.rejected, repeated=self.repeated)

    def _repeat(self, line: int, earlier: Charge) -> None:
        """Leave out a line that says all that an earlier one says."""
        first = earlier.origin.source_line if earlier.origin else None
        billed = earlier.billed or earlier.effective
        worth = "" if billed is None else f" ({billed.amount:f} {billed.currency})"
        text = f"repeats line {first} in every cell{worth}; counted once"
        mend = "if both were charged, give them an x_ column that tells them apart"
        self._find("CL231", "warning", text, line, mend)
        self.repeated += 1

    def _fields(self, row: Row, line: int) -> dict[str, Any]:
        """Return the fields of a charge, but for its id and origin."""
        currency = cells.currency_of(row)
        costs = cells.costs_of(row, currency)
        start_us, end_us = self._period(row, "ChargePeriod")
        if start_us is None or end_us is None:
            raise RowError("has no charge period")
        billing = self._period(row, "BillingPeriod")
        numbers = {field: cells.exact(row, column) for field, column in cells.NUMBERS.items()}
        for column, field in cells.COSTS.items():
            if costs[field] is None:
                self._note(f"null:{column}", line)
        return {
            "start_us": start_us,
            "end_us": end_us,
            "billing_start_us": billing[0],
            "billing_end_us": billing[1],
            "category": self._word(row, "ChargeCategory", _CATEGORIES, line),
            "correction": row.get("ChargeClass", "").lower() == "correction",
            "commitment_status": self._word(row, "CommitmentDiscountStatus", _STATES, line),
            "tags": self._tags(row, line),
            "energy_j": cells.energy_j(numbers["quantity"], row.get("ConsumedUnit", "")),
            **{field: _first(row, names) for field, names in cells.TEXTS.items()},
            **costs,
            **numbers,
        }

    def _period(self, row: Row, name: str) -> tuple[int | None, int | None]:
        start, end = (self._instant(row, f"{name}{edge}") for edge in ("Start", "End"))
        if start is not None and end is not None and end < start:
            raise RowError(f"has {with_article(name)}End before its {name}Start")
        return start, end

    def _instant(self, row: Row, column: str) -> int | None:
        text = row.get(column)
        if text is None:
            return None
        # A month of lines has few different times.
        known = self._instants.get(text)
        if known is None:
            known = self._instants[text] = cells.instant_us(text, column)
        return known

    def _word(self, row: Row, column: str, allowed: tuple[str, ...], line: int) -> str | None:
        text = row.get(column)
        if text is None or text.lower() in allowed:
            return None if text is None else text.lower()
        self._note(f"word:{column} {text!r}", line)
        return None

    def _tags(self, row: Row, line: int) -> dict[str, str]:
        tags: dict[str, str] = {}
        for name in self._labels:
            value = row.get(name, "")
            if len(value) > cells.LONGEST_TAG:
                self._note(f"long:{name}", line)
            elif value:
                tags[name] = value
        for column in ("AllocatedTags", "Tags"):
            text = row.get(column)
            if text is None:
                continue
            # Few sets of tags stand on many lines.
            if text not in self._tag_texts:
                self._tag_texts[text] = _tags_or_none(text)
            found = self._tag_texts[text]
            if found is None:
                self._note(f"tags:{column}", line)
            else:
                tags.update(found)
        return tags

    def _note(self, what: str, line: int) -> None:
        self._noted.setdefault(what, []).append(line)

    def _find(self, code: str, severity: Severity, text: str, line: int, mend: str) -> None:
        self.findings.append(
            Finding(code=code, severity=severity, message=text, file=self.name, line=line, mend=mend)
        )


_READ: Final = frozenset(
    {
        *cells.COSTS,
        *cells.ESSENTIAL,
        *cells.PARTIES,
        *cells.NUMBERS.values(),
        *(name for names in cells.TEXTS.values() for name in names[:1]),
        *cells.ALLOCATED,
        *("BillingPeriodStart", "BillingPeriodEnd", "ChargeCategory", "ChargeClass"),
        "CommitmentDiscountStatus",
    }
)
"""Columns whose cells the charge holds whole; all others tell lines apart by their text."""

_GAPS: Final[dict[str, tuple[str, Severity, str, str]]] = {
    "null": (
        "CL234",
        "warning",
        "{lines} of the bill state no {what}: its sum is unknown",
        "export the cost, or read another of the four",
    ),
    "word": (
        "CL238",
        "warning",
        "{what} of {lines} is no word of FOCUS, and is read as unknown",
        "check the version of the export",
    ),
    "tags": (
        "CL233",
        "warning",
        "{what} of {lines} are no JSON object of plain values: these lines have no such tags",
        "export tags as JSON; without them lines are joined by resource or time",
    ),
    "long": (
        "CL235",
        "info",
        "{what} of {lines} is longer than a label, and is not kept as a tag",
        "look it up in the file",
    ),
}
"""Gaps that many lines may have: code, severity, message and mend; told once a kind."""


def _begin(text: Iterator[str]) -> tuple[str, Iterator[str]]:
    """Return what parts the cells of a table, and its lines from the header on."""
    first = next((line for line in text if line.strip()), "")
    return delimiter_of(first), chain([first], text)


def _decimals(source: Source) -> Decimals | None:
    """Return how the numbers of a bill mark decimals; ``None`` where commas part its cells."""
    delimiter, lines = _begin(source.csv_lines())
    if delimiter == ",":
        return None
    reader = csv.reader(lines, delimiter=delimiter, strict=True)
    header = _header(next(reader, []))
    places = [i for i, name in enumerate(header) if name in _NUMERIC]
    found = Decimals()
    for values in reader:
        for i in places:
            if i < len(values):
                found.see(header[i], values[i], reader.line_num)
    return found


def _read_into(bill: _Bill, text: Iterator[str], where: str, decimals: Decimals | None) -> None:
    delimiter, lines = _begin(text)
    reader = csv.reader(lines, delimiter=delimiter, strict=True)
    header = _header(next(reader, []))
    _check_header(header, where)
    bill.take_header(header)
    unsure = decimals.undecided(bill.name, delimiter) if decimals is not None else None
    bill.findings += [unsure] if unsure else []
    names = [name.lower() for name in header]
    for values in _lines(reader, header):
        if isinstance(values, int):
            bill.rows += 1
            size = "has more cells than" if values > len(header) else "has fewer cells than"
            bill.reject(reader.line_num, f"{size} the header has columns")
            continue
        if is_other_header(values, names):
            raise other_header(where, reader.line_num)
        row = dict(zip(header, values, strict=True))
        if decimals is not None:
            try:
                row = {k: decimals.plain(k, v) if k in _NUMERIC else v for k, v in row.items()}
            except RowError as error:
                bill.rows += 1
                bill.reject(reader.line_num, str(error))
                continue
        bill.take(reader.line_num, stated(row))


def _lines(reader: Iterator[list[str]], header: list[str]) -> Iterator[list[str] | int]:
    """Yield the cells of each line, or their number where they do not fit the header."""
    for values in reader:
        # Exports that were put together have a header each.
        if not any(values) or not any(v.strip() for v in values):
            continue
        if values[0].strip().lower() == header[0].lower() and _header(values) == header:
            continue
        yield values if len(values) == len(header) else len(values)


def _header(names: list[str]) -> list[str]:
    """Return column names in the spelling of the format, whatever their case."""
    plain = [n.strip().strip("\ufeff") for n in names]
    return [_CANONICAL.get(n.lower(), n) for n in plain]


def _check_header(header: list[str], where: str) -> None:
    other = other_dataset(header)
    if other is not None:
        name, mend = other
        text = f"is the {name} data set of FOCUS, whose lines are no charges"
        raise InputFileError(text, where=where, mend=mend)
    double = sorted({c for c in header if c and header.count(c) > 1})
    if double:
        raise InputFileError(f"has the column {double[0]!r} twice", where=where, mend="keep one of them")
    lacking = [name for name in cells.ESSENTIAL if name not in header]
    if not any(name in header for name in cells.COSTS):
        lacking.append("any of the four costs")
    if lacking:
        raise InputFileError(
            f"lacks {', '.join(lacking)}: no line of it can be a charge",
            where=where,
            mend="export these columns too",
        )


def _tags_or_none(text: str) -> dict[str, str] | None:
    try:
        return cells.tags_of(text)
    except RowError:
        return None


def _identity(row: Row, fields: dict[str, Any]) -> str:
    """Return an id made of all that a line says, whatever its order and spelling."""
    said = dict(fields)
    # Who sells is named by another column from 1.3 on.
    del said["provider"]
    for name in (*cells.NUMBERS, "energy_j"):
        if said[name] is not None:
            said[name] = said[name].normalize()
    for name in cells.COSTS.values():
        if said[name] is not None:
            said[name] = (said[name].amount.normalize(), said[name].currency)
    unread = {k: v for k, v in row.items() if k not in _READ}
    digest = sha256_hex(msgspec.json.encode((said, unread), order="deterministic"))
    return f"focus-{digest[:32]}"


def _first(row: Row, names: tuple[str, ...]) -> str | None:
    for name in names:
        if name in row:
            return row[name]
    return None
