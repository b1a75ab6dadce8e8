"""A quarter's report out of statements made by hand, without a ledger."""

from __future__ import annotations

from carbonlens.accounting.periods_compared import compared
from carbonlens.accounting.statement import Statement
from carbonlens.reporting.content import plain_text
from carbonlens.reporting.document import Bullets, Heading, Paragraph, Tiles
from carbonlens.reporting.document_view import DocumentView
from carbonlens.reporting.sustainability import build_sustainability
from carbonlens.reporting.sustainability_input import Given, Quarter

QUARTER, BEFORE, LAST_YEAR = "2026Q3", "2026Q2", "2025Q3"


def given(statements: dict[str, Statement], labels: dict[str, str] | None = None, **more: object) -> Given:
    """Return what the report of 2026Q3 is made of; quarters without a statement are not there."""
    names = (LAST_YEAR, BEFORE, QUARTER)
    held = {n: statements.get(n) for n in names}
    against = tuple(n for n in (BEFORE, LAST_YEAR) if held[n] is not None)
    return Given(
        period=QUARTER,
        quarters=tuple(
            Quarter(name=n, statement=held[n], label=(labels or {}).get(n, ""), why_none=f"no runs in {n}")
            for n in names
        ),
        previous=BEFORE,
        last_year=LAST_YEAR,
        to_date=(BEFORE, QUARTER),
        compared=compared(held, QUARTER, against, (BEFORE, QUARTER)),
        **more,
    )


def view(*args: object, **more: object) -> DocumentView:
    """Return the whole report of such material."""
    return build_sustainability(given(*args, **more))


def tiles(made: DocumentView) -> dict[str, str]:
    """Return what each headline tile says, by its name."""
    (found,) = (b for s in made.document.sections for b in s.blocks if isinstance(b, Tiles))
    return {
        t.label: " | ".join(plain_text(p) for p in (t.value, t.interval, *t.lines) if p) for t in found.tiles
    }


def words(made: DocumentView, section: str) -> str:
    """Return headings, paragraphs and bullets of a section, one a line."""
    (found,) = (s for s in made.document.sections if s.name == section)
    lines = []
    for block in found.blocks:
        if isinstance(block, Heading | Paragraph):
            lines.append(plain_text(block.text))
        elif isinstance(block, Bullets):
            lines += [plain_text(i) for i in block.items]
    return "\n".join(lines)


def rows(made: DocumentView, table: str) -> dict[str, list[str]]:
    """Return the cells of a table, by the head of each row; ``""`` holds the heads of its columns."""
    (found,) = (b.table for s in made.document.sections for b in s.tables if b.name == table)
    held = {"": [plain_text(c.name) for c in found.columns]}
    for row in found.rows:
        held[plain_text(row.head)] = [" | ".join(plain_text(p) for p in cell) for cell in row.cells]
    return held
