"""Sustainability statement: the one page of a quarter, each method beside the other."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from carbonlens.accounting.periods_compared import (
    COST,
    every_scope_key,
    is_in_one,
    least_key,
    scope_key,
)
from carbonlens.accounting.scope_totals import METHODS, Method
from carbonlens.accounting.scopes import Place
from carbonlens.reporting import format as fmt
from carbonlens.reporting.block_charts import Kind
from carbonlens.reporting.content import Phrase, Row, Tile, label, phrase, quoted
from carbonlens.reporting.document import Block, Bullets, Heading, Paragraph, TableBlock, Tiles
from carbonlens.reporting.figures import Entry
from carbonlens.reporting.names import clip
from carbonlens.reporting.sustainability_desk import (
    Desk,
    cost_keys,
    currency_of,
    head_of,
    table,
    undrawn,
    words_of,
)
from carbonlens.reporting.sustainability_emissions import ENERGY, Sums, figure_of, is_alike, periods_of
from carbonlens.reporting.sustainability_marks import bars
from carbonlens.reporting.sustainability_prints import NONE, cell

_ADDS_UP = (
    " In each period emissions are rounded so that the lines of a method, with those alike by both, add up "
    "to its total; changes are rounded each by itself."
)
_ENERGY_LEAST = "total.at_least.facility_kwh"
_WORDS = {
    ENERGY: "Energy of the facilities",
    _ENERGY_LEAST: "beside it, known as at least",
    "total.water_site_l": "Water at the sites",
    "total.water_source_l": "Water at the power plants",
}


def statement_blocks(desk: Desk) -> Iterator[Block]:
    """Yield the page: message, status, headline figures, chart, table."""
    given, sums = desk.given, Sums(desk)
    rows = tuple(_rows(desk, sums))
    yield Heading(text=message(desk, sums), level=1)
    yield Paragraph(text=_status(desk), strong=bool(given.label))
    yield Paragraph(text=_about(desk))
    yield Tiles(tiles=tuple(_tiles(desk, sums)))
    yield from _charted(desk, sums)
    yield _table(desk, sums, rows)
    gone = [
        phrase(label(q.name), ": ", quoted(clip(q.why_none, 120)))
        for q in given.quarters
        if q.statement is None and q.name in (given.previous, given.last_year, *given.to_date)
    ]
    if gone:
        yield Bullets(items=tuple(gone))


def message(desk: Desk, sums: Sums) -> Phrase:
    """Return the title: energy, and emissions by both methods."""
    given = desk.given
    name = given.period
    energy = sums.entry(ENERGY, name, None) or sums.entry(_ENERGY_LEAST, name, None)
    both = [
        (m, sums.entry(every_scope_key(m), name, m) or sums.entry(every_scope_key(m, is_least=True), name, m))
        for m in METHODS
    ]
    parts = [phrase(_text(e), f" {m}-based") for m, e in both]
    if not any(e is not None and e.known for _, e in both):
        parts = [phrase("emissions ", fmt.UNKNOWN)]
    used = phrase(energy.text) if energy is not None and energy.known else phrase("energy ", fmt.UNKNOWN)
    return phrase(label(name), ": ", used, "; ", parts[0], *(phrase(", ", p) for p in parts[1:]))


def _text(entry: Entry | None) -> Phrase:
    if entry is not None and entry.known:
        return phrase(entry.text)
    return phrase("emissions ", fmt.UNKNOWN)


def _status(desk: Desk) -> Phrase:
    given = desk.given
    if given.label == "DRAFT":
        return phrase("DRAFT: ", label(given.period), " is not closed, and its figures may change.")
    if given.label:
        return phrase(
            given.label, ": records came after ", label(given.period), " was closed; see the restatements."
        )
    return phrase(label(given.period), " is closed: its records are those of the close.")


def _about(desk: Desk) -> Phrase:
    statement = desk.given.current
    of = statement.heading
    if statement.entity:
        who = phrase(quoted(clip(statement.entity, 60)), ": ", of)
    else:
        who = phrase(f"{of[:1].upper()}{of[1:]}")
    return phrase(
        who,
        ". Calendar: ",
        quoted(desk.given.calendar),
        ". Intervals hold ",
        label("95 %"),
        ". Offsets are in no figure.",
    )


def _tiles(desk: Desk, sums: Sums) -> Iterator[Tile]:
    yield _tile(desk, sums, "Energy of the facilities", ENERGY, None)
    for method in METHODS:
        yield _tile(desk, sums, f"Every scope, {method}-based", every_scope_key(method), method)
    yield _cost(desk, sums)


def _cost(desk: Desk, sums: Sums) -> Tile:
    """Return the tile of cost: currencies are never added to each other, so each has a line of its own."""
    keys = cost_keys(desk)
    if len(keys) == 1:
        return _tile(desk, sums, "Cost", keys[0], None)
    if not keys:
        return Tile(label="Cost", value=phrase(fmt.UNKNOWN), lines=(phrase("no price is known"),))
    found = [(k, sums.entry(k, desk.given.period, None)) for k in keys]
    lines = [phrase(e.text, *(phrase("; ", c) for c in _changes(desk, k))) for k, e in found if e is not None]
    return Tile(label="Cost", value=phrase("in several currencies"), lines=tuple(lines))


def _tile(desk: Desk, sums: Sums, name: str, key: str, method: Method | None) -> Tile:
    given = desk.given
    entry, least = sums.entry(key, given.period, method), least_key(key)
    lines = _changes(desk, key)
    if entry is None and least is not None:
        # Nothing but a lower bound is known, and that is more than nothing.
        entry = sums.entry(least, given.period, method)
        lines.insert(0, phrase("a lower bound: no whole sum is known"))
    if entry is None:
        return Tile(label=name, value=phrase(fmt.UNKNOWN), mark="open")
    return Tile(
        label=name,
        value=phrase(entry.text),
        interval=phrase(entry.interval),
        lines=tuple(lines or [phrase("no earlier quarter to compare with")]),
        mark="" if entry.printed.figure.estimate.state == "known" else "open",
    )


def _changes(desk: Desk, key: str) -> list[Phrase]:
    """Return the relative changes of a line against the other quarters, in words."""
    given, lines = desk.given, []
    series = given.compared.series.get(key)
    for other in (given.previous, given.last_year):
        change = None if series is None else series.change.get(other)
        if change is not None:
            share = desk.prints.of(change[1], plus=True)
            lines.append(phrase(share.text, " against ", label(other), _least_words(desk, key, other)))
    return lines


def _least_words(desk: Desk, key: str, other: str) -> Phrase:
    """Return why a change is unknown: whose sums are or have lower bounds; empty where none is."""
    left = [n for n in (desk.given.period, other) if desk.given.compared.has_least(key, n)]
    return phrase(": lower bounds in ", label(", ".join(left))) if left else ()


def _charted(desk: Desk, sums: Sums) -> Iterator[Block]:
    """Yield the chart of both methods: the quarter and those that it is compared with.

    A total with lower bounds beside it would look like a fall, so it is said instead of drawn.
    """
    given, entries = desk.given, []
    names = [n for n in (given.last_year, given.previous, given.period) if given.quarter(n) is not None]
    for method in METHODS:
        for name in names:
            key = every_scope_key(method)
            entry = sums.entry(key, name, method)
            kind: Kind = "actual" if name == given.period else "earlier"
            if entry is not None and not given.compared.has_least(key, name):
                entries.append((f"{name} {method}-based", kind, entry))
    yield from desk.picture(bars("scopes", phrase("Emissions of every scope, by both methods"), entries))
    left = undrawn(desk, [(f"Every scope, {m}-based", every_scope_key(m)) for m in METHODS], names)
    if left:
        yield left


def _rows(desk: Desk, sums: Sums) -> Iterator[Row]:
    series = desk.given.compared.series
    held = [k for k in (ENERGY, _ENERGY_LEAST) if _is_here(desk, k)]
    for key in held:
        # A lower bound stands beside a sum only where there is one.
        said = f"{_WORDS[ENERGY]}, known as at least" if held == [_ENERGY_LEAST] else _WORDS[key]
        yield _row(desk, sums, key, phrase(said), None)
    for place in desk.given.compared.places:
        yield from _of_place(desk, sums, place)
    for is_least in (False, True):
        for method in METHODS:
            key = every_scope_key(method, is_least=is_least)
            if _is_here(desk, key):
                least = ", known as at least" if is_least else ""
                yield _row(
                    desk,
                    sums,
                    key,
                    phrase(f"Every scope, {method}-based{least}"),
                    method,
                    is_total=not is_least,
                )
    for key in series:
        if key in _WORDS and key not in (ENERGY, _ENERGY_LEAST):
            yield _row(desk, sums, key, phrase(_WORDS[key]), None)
        elif key.startswith(COST):
            yield _row(desk, sums, key, phrase("Cost in ", quoted(currency_of(key))), None)
        elif is_in_one(key) and _is_converted(desk, key):
            words = phrase("Cost of every currency, in ", quoted(currency_of(key)))
            yield _row(desk, sums, key, words, None)


def _is_converted(desk: Desk, key: str) -> bool:
    """Tell whether a cost in the reporting currency says more than the line of that currency."""
    others = (k for k in desk.given.compared.series if k.startswith(COST))
    return any(k != f"{COST}{currency_of(key)}" for k in others)


def _of_place(desk: Desk, sums: Sums, place: Place) -> Iterator[Row]:
    name, words = phrase(label(place.label[:1].upper() + place.label[1:])), words_of(place)
    name = phrase(name, f", {words}" if words else "")
    for is_least in (False, True):
        keys = [scope_key(place, m, is_least=is_least) for m in METHODS]
        least = ", known as at least" if is_least else ""
        if not any(_is_here(desk, k) for k in keys):
            continue
        if sums.is_one_row(place) if not is_least else is_alike(desk, keys):
            yield _row(desk, sums, keys[0], phrase(name, least, ", alike by both methods"), METHODS[0])
            continue
        for method, key in zip(METHODS, keys, strict=True):
            if _is_here(desk, key):
                yield _row(desk, sums, key, phrase(name, f", {method}-based{least}"), method)


def _row(
    desk: Desk, sums: Sums, key: str, head: Phrase, method: Method | None, *, is_total: bool = False
) -> Row:
    given = desk.given
    found = [sums.entry(key, name, method) for name in periods_of(desk)]
    cells = [cell(e) for e in found]
    for other in (given.previous, given.last_year):
        cells.append(_changed(desk, key, other))
    return Row(head=head, cells=tuple(cells), total=is_total)


def _is_here(desk: Desk, key: str) -> bool:
    """Tell whether any period of the table has a line: the trend goes further back."""
    series = desk.given.compared.series.get(key)
    return any(figure_of(series, name) is not None for name in periods_of(desk))


def _changed(desk: Desk, key: str, other: str) -> tuple[Phrase, ...]:
    change = desk.given.compared.series[key].change.get(other)
    if change is None:
        return (phrase(NONE),)
    absolute, share = (desk.prints.of(f, plus=True) for f in change)
    lines: Sequence[Phrase] = (
        phrase(absolute.text),
        phrase(absolute.interval),
        phrase(share.text) if share.known else (),
        phrase("lower bounds") if _least_words(desk, key, other) else (),
    )
    return tuple(line for line in lines if line)


def _table(desk: Desk, sums: Sums, rows: Sequence[Row]) -> TableBlock:
    given = desk.given
    columns = [
        phrase(label(given.period)),
        head_of(desk, given.previous),
        head_of(desk, given.last_year),
        phrase("Year to date"),
        phrase("Change against ", label(given.previous)),
        phrase("Change against ", label(given.last_year)),
    ]
    return table(
        "Statement",
        "Statement of the quarter",
        "Line",
        columns,
        rows,
        phrase(
            "A total is by one method, never without its name. ",
            NONE,
            " is none of it in that period, or a lower bound of it alone. Lower bounds stand beside the "
            "sums and are in none; a change between sums that lack them is unknown.",
            _ADDS_UP if sums.adds_up else "",
        ),
    )
