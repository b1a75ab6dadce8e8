"""Factor tables as CSV: what is written is read back, and each fault names its line."""

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carbonlens.domain.factor_row import FactorRow
from carbonlens.errors import ConfigError
from carbonlens.factors.table_file import FIELDS, read_csv, write_csv
from tests.factors.rows import row

HEADER = "factor_id,kind,subject,period,value,source,address,licence,vintage"
LINE = "mine/FR,grid,FR,2024,0.05,s,a,own,2025"

# An empty cell is a field that is not stated, so texts here are not empty.
TEXTS = st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1).filter(lambda t: "\x00" not in t)
ROWS = st.builds(
    FactorRow,
    factor_id=TEXTS,
    kind=st.sampled_from(["grid", "pue", "embodied"]),
    subject=TEXTS,
    name=st.one_of(st.just(""), TEXTS),
    period=TEXTS,
    value=st.decimals(0, 1000, places=7),
    method=st.sampled_from([None, "location", "market"]),
    span=st.sampled_from([None, "direct", "life_cycle"]),
    low=st.one_of(st.none(), st.decimals(0, 1, places=3)),
    u_relative=st.one_of(st.none(), st.floats(0, 2)),
    source=TEXTS,
    address=TEXTS,
    licence=TEXTS,
    vintage=TEXTS,
    note=st.one_of(st.just(""), TEXTS),
)


@given(st.lists(ROWS, max_size=4))
def test_what_is_written_is_read_back(rows):
    assert read_csv(write_csv(rows), where="t.csv").rows == tuple(rows)


def test_a_cell_may_hold_commas_quotes_and_line_breaks():
    odd = row(name='a, "b"\nc', note="d\u2028e\x85f", value="0.0000001")
    text = write_csv([odd, row()])
    assert "0.0000001" in text
    read = read_csv(text, where="t.csv")
    assert read.rows == (odd, row())
    # The place of a row is the line it ends in.
    assert read.places == ("line 3", "line 4")


def test_columns_may_stand_in_any_order_and_others_be_left_out():
    read = read_csv(f"{HEADER},span\n{LINE},direct\n".encode("utf-8-sig"), where="t.csv")
    assert (read.rows[0].value, read.rows[0].span, read.rows[0].flow) == (Decimal("0.05"), "direct", None)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("", "line 1: lacks the column factor_id"),
        (HEADER.replace("period,", ""), "line 1: lacks the column period"),
        (f"{HEADER},zone", "line 1: unknown column 'zone'"),
        (f"{HEADER},kind", "line 1: names the column kind twice"),
        (f"{HEADER}\n{LINE}\nmine/DE,grid,DE,0.3,s,a,own,2025", "line 3: has 8 cells"),
        (f"{HEADER}\n\n{LINE.replace('0.05', 'five')}", "line 3: Invalid decimal string - at `$.value`"),
        (f"{HEADER}\n{LINE.replace('grid', 'grit')}", "line 2: Invalid enum value 'grit' - at `$.kind`"),
        (f"{HEADER}\n{LINE.replace(',own,', ',,')}", "line 2: Object missing required field `licence`"),
        (f'{HEADER}\n"{LINE}', "is no CSV"),
        (b"\xff\xfe", "is not UTF-8 text"),
    ],
)
def test_each_fault_names_its_line_and_column(content, words):
    with pytest.raises(ConfigError) as error:
        read_csv(content, where="t.csv")
    assert words in str(error.value)
    assert "t.csv" in str(error.value)


def test_columns_nobody_fills_are_not_written():
    header = write_csv([row()]).splitlines()[0].split(",")
    assert "low" not in header
    assert [name for name in FIELDS if name in header] == header
