"""Sustainability energy: the quarter by site, team, model, hardware and grade of evidence."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

import msgspec

from carbonlens.accounting.largest_groups import largest_groups
from carbonlens.accounting.statement import Statement
from carbonlens.accounting.statement_lines import Line
from carbonlens.domain.counting import counted
from carbonlens.reporting.block_charts import Kind
from carbonlens.reporting.columns import Column
from carbonlens.reporting.content import Phrase, Row, label, phrase, quoted
from carbonlens.reporting.document import Block, Paragraph, TableBlock
from carbonlens.reporting.figures import Entry
from carbonlens.reporting.names import clip
from carbonlens.reporting.statement_columns import TOTAL, Columns, of
from carbonlens.reporting.sustainability_desk import MOST_GROUPS, Desk, heading, table
from carbonlens.reporting.sustainability_marks import bars
from carbonlens.reporting.sustainability_prints import by_id, cell, flat

_AMOUNTS: Final = ("facility_kwh", "location_kg", "market_kg")
_HEADS: Final = ("Energy of the facility", "Location-based", "Market-based")
_KINDS: Final = {
    "metered": ", metered",
    "recorded": "",
    "at_least": ", lower bound",
    "unattributed": ", of it no run explains",
}
"""What a line of a site is, in the order of the table: a meter stands before what is a part of it."""

_ROUNDED: Final = "Rounded so that the lines of each column add up to its total"
_PARTS: Final = "lines “of it” are parts of the metered line above them, and not added again"
_OF_IT: Final = ", of it recorded by runs"
_GRADES: Final = {
    "A": "external meter",
    "B": "energy counter of the device",
    "C": "integrated power",
    "D": "model of utilisation",
    "E": "data sheet or assumption",
}


def energy_blocks(desk: Desk) -> Iterator[Block]:
    """Yield the tables and charts of the quarter's energy."""
    yield heading("Energy and emissions of electricity")
    statement = desk.given.current
    columns = desk.columns(statement)
    yield _sites(desk, statement, columns)
    for name, made in desk.given.splits.items():
        yield from _split(desk, name, made)
    yield from _grades(desk, statement)


def _sites(desk: Desk, statement: Statement, columns: Columns) -> TableBlock:
    kinds, metered = tuple(_KINDS), {x.site_id for x in statement.lines if x.kind == "metered"}
    lines = sorted(statement.lines, key=lambda x: (x.site_id, kinds.index(x.kind)))
    rows = []
    for line in lines:
        is_part = line.site_id in metered and line.kind != "metered"
        row = _row(desk, statement, columns, line, _site(line, is_part=is_part))
        rows.append(msgspec.structs.replace(row, mark="muted") if is_part else row)
    rows.append(_row(desk, statement, columns, statement.total, phrase("Total"), is_total=True))
    if statement.at_least is not None:
        rows.append(
            _row(desk, statement, columns, statement.at_least, phrase("Beside it, known as at least"))
        )
    top = [x for x in lines if x.kind == "metered" or x.site_id not in metered]
    note = [_ROUNDED if _adds_up(columns, top) else "", _PARTS if metered else ""]
    said = "; ".join(n for n in note if n)
    return table(
        "Sites",
        "By site, as meters counted it where they cover the site, else as runs recorded it",
        "Site",
        [*_HEADS, "Runs"],
        rows,
        f"{said[:1].upper()}{said[1:]}." if said else (),
    )


def _adds_up(columns: Columns, lines: Sequence[Line]) -> bool:
    """Tell whether lines add up as printed to each total that is known; not where none is."""
    held = [(name, one) for name, one in columns.held.items() if TOTAL in one.numbers]
    known = [(n, c, x) for n, c in held for x in lines if not x.is_lower_bound and of(n, x).value is not None]
    return bool(known) and all(x.key in c.numbers for _, c, x in known)


def _site(line: Line, *, is_part: bool) -> Phrase:
    of_it = _OF_IT if is_part and line.kind in ("recorded", "at_least") else ""
    return phrase(quoted(clip(line.site_id, 40)), of_it + _KINDS[line.kind])


def _row(
    desk: Desk,
    statement: Statement,
    columns: Columns,
    line: Line,
    head: Phrase,
    *,
    is_total: bool = False,
) -> Row:
    prefix = f"statement.{statement.period.name}"
    held = by_id(line.figures(prefix))
    cells = []
    for name in _AMOUNTS:
        figure = held.get(f"{prefix}.{line.key}.{name}")
        entry = None if figure is None else desk.prints.entered(figure, columns.printed(name, line))
        cells.append(cell(entry))
    # A site that meters cover has its runs in the lines beside its meters', a total has all of them.
    number = desk.given.runs if line is statement.total else line.runs
    runs = desk.prints.count(f"{prefix}.{line.key}.runs", f"runs of {line.key}", float(number))
    cells.append(flat(runs) if line.kind in ("recorded", "at_least") and number else flat(None))
    return Row(head=head, cells=tuple(cells), total=is_total)


def _split(desk: Desk, name: str, made: Statement) -> Iterator[Block]:
    """Yield the table and chart of a split: the largest groups, the others in one, and the total."""
    kept, others, left = largest_groups(made, MOST_GROUPS)
    named = [x for x in kept if not x.key.endswith(".(none)")]
    least = sum(x.is_lower_bound for x in made.groups)
    if not named and others is None:
        yield Paragraph(text=phrase(f"By {name}: no run of the quarter names one."))
        return
    columns = _with_others(desk.columns(made), made, kept, others)
    begin = f"by.{name}."
    rows, entries = [], []
    for line in kept:
        value = line.key.removeprefix(begin)
        words = "not named" if value == "(none)" else value
        rows.append(_row(desk, made, columns, line, phrase(quoted(clip(words, 48)))))
        entries.append((words, line))
    if others is not None:
        rows.append(_row(desk, made, columns, others, phrase(*_of_others(desk, name, left))))
        entries.append(("all others", others))
    for line in made.unattributed:
        head = phrase("no run explains, at ", quoted(clip(line.site_id, 30)))
        rows.append(_row(desk, made, columns, line, head))
    rows.append(_row(desk, made, columns, made.total, phrase("Total"), is_total=True))
    note = f"{counted(least, 'group')} known as at least, left out here" if least else ""
    said = phrase(*_counted(desk, name, least, note), ". ") if least else ()
    if _adds_up(columns, [*kept, *([others] if others is not None else []), *made.unattributed]):
        said = phrase(*([said] if said else []), _ROUNDED, ".")
    yield table(f"By {name}", f"By {name}", name.capitalize(), [*_HEADS, "Runs"], rows, said)
    drawn = [(n, _entry(desk, made, x)) for n, x in entries]
    marks: list[tuple[str, Kind, Entry]] = [(n, "actual", e) for n, e in drawn if e is not None]
    if len(marks) > 1:
        yield from desk.picture(bars(f"by-{name}", phrase(f"Energy of the facilities by {name}"), marks))


def _of_others(desk: Desk, name: str, left: int) -> tuple[Phrase | str, ...]:
    number = desk.prints.count(f"others.{name}.groups", f"groups beside the largest, by {name}", float(left))
    return ("All others, ", phrase(number.text), " in all")


def _counted(desk: Desk, name: str, least: int, note: str) -> tuple[Phrase | str, ...]:
    number = desk.prints.count(f"least.{name}.groups", f"groups known as at least, by {name}", float(least))
    return (phrase(number.text), note[len(str(least)) :])


def _entry(desk: Desk, made: Statement, line: Line) -> Entry | None:
    prefix = f"statement.{made.period.name}"
    figure = by_id(line.figures(prefix)).get(f"{prefix}.{line.key}.facility_kwh")
    return None if figure is None else desk.prints.of(figure)


def _with_others(columns: Columns, made: Statement, kept: Sequence[Line], others: Line | None) -> Columns:
    """Return the columns with what the others come to as printed: the sum of their numbers."""
    if others is None:
        return columns
    rest = [x for x in made.groups if not x.is_lower_bound and x not in kept]
    held: dict[str, Column] = {}
    for name, column in columns.held.items():
        keys = [x.key for x in rest]
        numbers: Mapping[str, float] = column.numbers
        if column.scale is not None and set(keys) <= set(numbers) and of(name, others).value is not None:
            total = round(sum(numbers[k] for k in keys), max(column.places, 0))
            column = Column(  # noqa: PLW2901 - the same, with one number more
                show=column.show,
                scale=column.scale,
                places=column.places,
                numbers={**numbers, others.key: total},
            )
        held[name] = column
    return Columns(held=held, prefix=columns.prefix)


def _grades(desk: Desk, statement: Statement) -> Iterator[Block]:
    """Yield the shares of evidence, best first."""
    held = sorted(statement.grade_shares.items())
    if not held:
        yield Paragraph(text=phrase("Evidence: no energy of the quarter is known."))
        return
    prefix = f"statement.{statement.period.name}"
    rows, entries = [], []
    for grade, share in held:
        words = _GRADES[grade]
        entry = desk.prints.share(
            f"{prefix}.grade.{grade}", f"share of recorded energy of grade {grade}", share
        )
        rows.append(Row(head=phrase(f"{grade}: {words}"), cells=(flat(entry),)))
        entries.append((f"{grade}: {words}", entry))
    yield table(
        "Evidence",
        "Recorded energy by grade of evidence",
        "Grade",
        ["Share"],
        rows,
        phrase(
            "Default intervals, where nothing better is known: B ± ", label("5 %"), ", C ± ", label("5 %"),
            " with duty and edges, D times or over ", label("1.8"), ", E times or over ", label("2"), ".",
        ),
    )  # fmt: skip
    if len(entries) > 1:
        marks: list[tuple[str, Kind, Entry]] = [(n, "actual", e) for n, e in entries]
        yield from desk.picture(bars("grades", phrase("Recorded energy by grade of evidence"), marks))
