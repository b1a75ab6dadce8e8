"""XLSX: typed numbers in base units, harmless texts, the same bytes every time."""

from __future__ import annotations

import hashlib
import io
import os
import re
import subprocess
import sys
import zipfile

import pytest
from lxml import etree

from carbonlens.render.xlsx import render_xlsx
from carbonlens.reporting.document import PowerSeries, document
from tests.render.pages import view
from tests.reporting.golden import cases

BOTH = ("business-case", "engineering")
MAIN = "{http://schemas.openxmlformats.org/spreadsheetml/2006/main}"
NAMES = [*cases(), "hostile"]


def book(name, sections=BOTH):
    v = view(name)
    return render_xlsx(document(v, sections), v.figures)


class Book:
    """A workbook read by its XML: sheets by name, cells as typed values."""

    def __init__(self, content):
        self.file = zipfile.ZipFile(io.BytesIO(content))
        strings = etree.fromstring(self.file.read("xl/sharedStrings.xml"))
        self.strings = ["".join(t.text or "" for t in si.iter(f"{MAIN}t")) for si in strings]
        tree = etree.fromstring(self.file.read("xl/workbook.xml"))
        self.names = [s.attrib["name"] for s in tree.iter(f"{MAIN}sheet")]

    def rows(self, name):
        place = self.names.index(name) + 1
        tree = etree.fromstring(self.file.read(f"xl/worksheets/sheet{place}.xml"))
        for row in tree.iter(f"{MAIN}row"):
            yield {re.sub(r"\d", "", c.attrib["r"]): self._value(c) for c in row}

    def _value(self, cell):
        value = cell.find(f"{MAIN}v")
        assert cell.find(f"{MAIN}f") is None
        if value is None:
            return None
        return self.strings[int(value.text)] if cell.attrib.get("t") == "s" else float(value.text)

    def table(self, name):
        """Rows of a table sheet by column head."""
        _, heads, *rows = [r for r in self.rows(name) if r]
        return [{heads[c]: v for c, v in row.items() if c in heads} for row in rows if len(row) > 1]


def test_every_figure_is_a_number_with_its_bounds_and_id():
    found = {row["Figure"]: row for row in Book(book("demo")).table("Figures")}
    figures = view("demo").figures
    assert found.keys() == figures.keys()
    for name, figure in figures.items():
        e = figure.figure.estimate
        row = found[name]
        assert row.get("Value") == pytest.approx(e.value, rel=1e-12)
        assert row.get("Low (95 %)") == pytest.approx(e.low, rel=1e-12)
        assert row["Unit"] == e.unit
        assert row["Printed"] == f"{figure.text} {figure.interval}".strip()


def test_an_unknown_figure_is_an_empty_cell_and_never_0():
    rows = Book(book("unknown_factors")).table("Figures")
    unknown = [r for r in rows if r["State"] == "unknown"]
    assert unknown
    assert all(r.get("Value") is None for r in unknown)


def test_columns_are_typed_with_their_unit_in_the_head():
    rows = Book(book("demo")).table("Used")
    heads = rows[0].keys()
    assert "Energy per image (J)" in heads
    assert all(isinstance(r["Energy per image (J)"], float) for r in rows)
    assert all(r["Energy per image, low (J)"] < r["Energy per image (J)"] for r in rows)


@pytest.mark.parametrize("name", NAMES)
def test_every_case_has_its_tables_and_no_formula_and_no_link(name):
    made = Book(book(name))
    tables = [b.name for s in document(view(name), BOTH).sections for b in s.tables]
    curves = [b for s in document(view(name), BOTH).sections for b in s.blocks if isinstance(b, PowerSeries)]
    assert len(made.names) == len(tables) + len(curves) + 2
    assert len({n.lower() for n in made.names}) == len(made.names)
    for sheet in made.names:
        assert list(made.rows(sheet))
        assert len(sheet) <= 31
    assert not [n for n in made.file.namelist() if "vbaProject" in n or "externalLink" in n]
    for part in made.file.namelist():
        assert b"<hyperlink" not in made.file.read(part)
        assert b"<f>" not in made.file.read(part)


def test_the_same_bytes_in_processes_with_other_hash_seeds():
    code = (
        "import hashlib; from tests.render.test_xlsx import book; "
        "print(hashlib.sha256(book('demo')).hexdigest())"
    )
    seen = {hashlib.sha256(book("demo")).hexdigest()}
    for seed in ("1", "2"):
        env = {**os.environ, "PYTHONHASHSEED": seed}
        made = subprocess.run(
            [sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True
        )
        seen.add(made.stdout.strip())
    assert len(seen) == 1


@pytest.mark.parametrize(
    ("state", "said"),
    [("unbounded", "at least"), ("unknown", "unknown"), ("not_applicable", "not applicable")],
)
def test_a_column_tells_a_lower_bound_from_a_value(state, said):
    from carbonlens.domain.estimate import Estimate
    from carbonlens.render.xlsx import _typed

    value = 90.0 if state == "unbounded" else None
    odd = Estimate(value=value, unit="J", state=state)
    known = Estimate(value=100.0, unit="J")
    columns = {c.head: c.cells for c in _typed("Energy", [((),), ((),)], [odd, known])}
    assert columns["Energy, state"] == (said, "known")
    assert "Energy, state" not in {c.head for c in _typed("Energy", [((),)], [known])}


def test_every_sheet_of_a_report_says_which_of_its_numbers_are_lower_bounds():
    import msgspec

    from carbonlens.app.compare import computed
    from carbonlens.reporting.view import build_view
    from tests.app.test_verify import evidence
    from tests.compare.study_runs import vector

    without_pue = msgspec.structs.replace(evidence(), vector=msgspec.structs.replace(vector(), pue=None))
    v = build_view(computed(without_pue))
    found = Book(render_xlsx(document(v, BOTH), v.figures))
    bounds = {r["Figure"] for r in found.table("Figures") if r["State"] == "unbounded"}
    assert bounds
    stated = [
        value
        for name in found.names
        if name not in ("Report", "Figures")
        for row in found.table(name)
        for head, value in row.items()
        if head.endswith(", state")
    ]
    assert "at least" in stated
