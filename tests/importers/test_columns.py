"""Number columns of large tables: a block that is read at once comes to what its lines come to."""

from contextlib import nullcontext
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from carbonlens.importers.columns import NumberTable
from carbonlens.importers.sources import Source

CELLS = st.one_of(
    st.floats(-1e6, 1e6).map(lambda v: f"{v:.6f}"),
    st.floats(allow_nan=False).map(repr),
    st.integers(-(10**20), 10**20).map(str),
    st.sampled_from(["", "nan", "N/A", "-", " 5", "5 ", "+5", "1e5", ".5", "5.", "1e400", "inf", "1_0"]),
    st.sampled_from(
        ["true", "False", "x", "1.5.2", "0x1", "1 234", "٣", "\u00a0", "-", "e", "+", "--", "1e"]
    ),
)


@st.composite
def tables(draw):
    """Draw a table of three columns: most rows plain, some cut off, longer, blank or a header again."""
    mark = draw(st.sampled_from([",", ",", ";", "\t"]))
    plain = st.floats(-1e6, 1e6).map(lambda v: f"{v:.6f}".replace(".", "," if mark == ";" else "."))
    odd = draw(st.sampled_from([0, 0, 5]))
    lines = []
    for _ in range(draw(st.integers(1, 12))):
        cells = [draw(CELLS if draw(st.integers(1, 5)) <= odd else plain) for _ in range(3)]
        kind = draw(st.sampled_from(["whole"] * 8 + ["cut", "longer", "blank", "header"])) if odd else "whole"
        cells = {"cut": cells[:2], "longer": [*cells, "9"], "blank": [], "header": ["a", "b", "c"]}.get(
            kind, cells
        )
        lines.append(mark.join(cells))
    ending = draw(st.sampled_from(["", "", mark]))
    return "\n".join([mark.join("abc") + ending, *(line + ending for line in lines)]) + "\n"


def read(path, *, at_once):
    table = NumberTable(Source(path), ("a", "c"))
    with nullcontext() if at_once else patch.object(NumberTable, "_at_once", return_value=None):
        blocks = list(table.blocks())
    columns = {n: np.concatenate([b.columns[n] for b in blocks]) for n in ("a", "c")} if blocks else {}
    return columns, table.rows, table.rejected, list(table.findings())


@given(tables())
def test_a_block_read_at_once_is_what_its_lines_are(tmp_path_factory, text):
    path = tmp_path_factory.mktemp("table") / "t.csv"
    path.write_text(text)
    got, plain = read(path, at_once=True), read(path, at_once=False)
    assert got[1:] == plain[1:]
    assert got[0].keys() == plain[0].keys()
    for name in got[0]:
        np.testing.assert_array_equal(got[0][name], plain[0][name])


@pytest.mark.parametrize("word", ["True", "false", "TRUE"])
def test_a_word_of_truth_is_no_number(tmp_path, word):
    path = tmp_path / "t.csv"
    path.write_text(f"a,b,c\n1,2,3\n{word},2,3\n")
    columns, _, rejected, findings = read(path, at_once=True)
    assert columns["a"].tolist() == [1.0]
    assert (rejected, [f.line for f in findings]) == (1, [3])


@pytest.mark.parametrize(
    "text", ["a,b,c\n1.5,2,3\n-4,5e3,6\n", "a;b;c\n1,5;2;3\n-4;5e3;6\n", "a,b,c,\n1,2,3,\n"]
)
def test_plain_numbers_are_read_at_once(tmp_path, text):
    path = tmp_path / "t.csv"
    path.write_text(text)
    with patch.object(NumberTable, "_by_lines", side_effect=AssertionError):
        list(NumberTable(Source(path), ("a", "c")).blocks())
