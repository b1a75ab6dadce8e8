"""Columns of a table on paper: as wide as a layout engine makes them, and no text beside its column."""

from collections import defaultdict

import pytest

from carbonlens.render.blocks import document_variables
from carbonlens.render.column_widths import column_widths
from carbonlens.render.environment import template_environment
from carbonlens.render.pdf import paper
from carbonlens.reporting.content import Column, Part, Row, Table, phrase
from carbonlens.reporting.document import Document, Section, TableBlock
from carbonlens.reporting.document_view import DocumentView
from tests.render.quarter_pages import FIGURE, quarter

SAME_PERCENT = 1.5
"""How far a column's share of the page may be from what a layout engine gives it."""


def figure(text):
    return Part(text=text, figure_id=FIGURE, aspect="number")


def name(text):
    return Part(text=text, quoted=True)


def numbers():
    columns = (Column(name=phrase("Energy of the facility"), unit="kWh"), Column(name=phrase("Runs")))
    rows = [
        Row(head=phrase(f"team {n}"), cells=((phrase(figure(f"{n} 123 kg CO₂e")),), (phrase(figure("77")),)))
        for n in range(3)
    ]
    total = ((phrase(figure("3 369 kg CO₂e counted")), phrase(figure("[at least 2 000]"))), (phrase("231"),))
    rows.append(Row(head=phrase("All of them"), cells=total, total=True))
    return columns, rows


def words():
    columns = tuple(Column(name=phrase(n), numeric=False) for n in ("Severity", "What was found", "Mend"))
    long = "the rest of the electricity takes the grid average, which may count contracted electricity twice"
    cells = ((phrase("warning"),), (phrase(f"{long}; {long}"),), (phrase("add the market's residual mix"),))
    return columns, [Row(head=phrase("CL392"), cells=cells, mark="bad")] * 3


def names():
    columns = (Column(name=phrase("Place"), numeric=False), Column(name=phrase("Energy"), unit="MWh"))
    texts = ("<script>alert(1)</script>", "=cmd|' /C calc'!A0", "../../etc/passwd", "مصنع برلين", "😀 工場")
    rows = [
        Row(head=phrase(name(text)), cells=((phrase("in ", name(text)),), (phrase(figure("1.5")),)))
        for text in texts
    ]
    return columns, rows


def made(given):
    columns, rows = given
    return Table(caption=phrase("A table"), head="Name", columns=columns, rows=tuple(rows))


def laid_out(table, widths):
    """Return the table of a page as WeasyPrint lays it out."""
    block = TableBlock(name="table", table=table)
    document = Document(
        title="t",
        subject=phrase("s"),
        example=False,
        sections=(Section(name="statement", blocks=(block,)),),
    )
    shown = DocumentView(
        kind="k",
        title="t",
        subject=phrase("s"),
        badges=(),
        document=document,
        plots={},
        figures=quarter().figures,
    )
    variables = document_variables(shown, "paper", None)
    variables["parts"] = defaultdict(tuple, variables["parts"])  # it has one section of a quarter's
    variables["widths"] = {"table": widths}
    page = paper(template_environment().get_template("report.html.j2").render(variables))
    return next(b for b in page.pages[0]._page_box.descendants() if is_table(b))


def is_table(box):
    return getattr(box, "column_widths", None) is not None


def shares(table):
    """Return the percent of the width that each column has."""
    return [100 * width / sum(table.column_widths) for width in table.column_widths]


def tables_of_a_quarter():
    return [t.table for section in quarter().document.sections for t in section.tables]


@pytest.mark.parametrize("given", [numbers, words])
def test_columns_are_as_wide_as_a_layout_engine_makes_them(given):
    table = made(given())
    widths = column_widths(table)
    assert widths is not None
    assert sum(widths) == pytest.approx(100, abs=1e-9)
    found = shares(laid_out(table, widths))
    assert found == pytest.approx(widths, abs=0.01)
    assert found == pytest.approx(shares(laid_out(table, None)), abs=SAME_PERCENT)


def test_all_tables_of_a_quarter_are_as_a_layout_engine_makes_them():
    told = 0
    for table in tables_of_a_quarter():
        widths = column_widths(table)
        if widths is not None:
            told += 1
            assert shares(laid_out(table, None)) == pytest.approx(widths, abs=SAME_PERCENT), table.caption
    assert told == len(tables_of_a_quarter()) > 5


@pytest.mark.parametrize("given", [numbers, words, names])
def test_no_text_stands_beside_its_column(given):
    table = made(given())
    shown = laid_out(table, column_widths(table))
    cells = [b for b in shown.descendants() if type(b).__name__ == "TableCellBox"]
    assert len(cells) == (len(table.columns) + 1) * (len(table.rows) + 1)
    for cell in cells:
        lines = [b for b in cell.descendants() if type(b).__name__ == "LineBox"]
        assert lines
        for line in lines:
            assert line.width <= cell.width + cell.padding_right / 4, line.element


def test_what_does_not_fit_is_left_to_the_layout_engine():
    columns = tuple(Column(name=phrase(f"column{n}" * 3), numeric=False) for n in range(9))
    row = Row(head=phrase("row"), cells=((phrase("x"),),) * 9)
    assert column_widths(made((columns, [row]))) is None
    assert (
        column_widths(made(((Column(name=phrase("c")),), [Row(head=phrase("m" * 200), cells=((),))]))) is None
    )


def test_a_users_rules_get_no_widths_of_ours():
    """They may set a text in any size or font."""
    from carbonlens.render import blocks
    from carbonlens.render.look import Look

    pages = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(blocks, "paper", lambda page, _: pages.append(page) or paper(page))
        for look in (None, Look(folder="theirs", css="table { font-size: 12pt; }")):
            blocks.render_document_pdf(quarter(), look=look)
    assert ["<col " in page for page in pages] == [True, False]
