"""Tables that were joined: a header that comes again is no row, and another one is refused."""

import pytest

from carbonlens.errors import InputFileError
from carbonlens.importers.columns import NumberTable
from carbonlens.importers.sources import Source
from carbonlens.importers.tables import Table, is_other_header


@pytest.mark.parametrize("kind", ["rows", "numbers"])
def test_another_header_is_refused_and_the_same_one_cut_off_is_not(tmp_path, kind):
    """Rows below it would be read by the columns above, and no word of it."""

    def read(text):
        file = Source(tmp_path / "a.csv")
        file.path.write_text(text)
        table = Table(file) if kind == "rows" else NumberTable(file, ("a_w", "b_v"))
        return list(table.rows() if kind == "rows" else table.blocks())

    text = "a_w,b_v,c3\n1,2,3\n4,5,6\n"
    others = ["b_v,a_w,c3", "A_W,C3,b_v", '"c3","b_v","a_w"', "a_w,b_v,d", "a_w,c3", "b_v,c3,a_w,d"]
    for other in others:
        with pytest.raises(InputFileError, match="another header on line 4"):
            read(f"{text}{other}\n7,8,9\n")
    for end in range(len("a_w,b_v,c3") + 1):
        assert read(text + "a_w,b_v,c3"[:end])
        # A tool that was started anew writes it once more.
        again = read(f"{text}{'a_w,b_v,c3'[:end]}\na_w,b_v,c3\n7,8,9\n")
        assert "8" in str(again)


@pytest.mark.parametrize("kind", ["rows", "numbers"])
@pytest.mark.parametrize("other", ["a_w,b_v,c", "a_w,b_v", "a_w", "a_w,d,e", '"a_w","d","e"'])
@pytest.mark.parametrize("size", [5, 1 << 22])
def test_the_begin_of_a_header_is_another_one_where_rows_stand_below_it(tmp_path, kind, other, size):
    """``energy`` is no ``energy_kwh`` that was cut off."""
    file = Source(tmp_path / "a.csv")
    file.path.write_text(f"a_w,b_v,c3\n1,2,3\n{other}\n7,8,9\n")
    table = Table(file) if kind == "rows" else NumberTable(file, ("a_w", "b_v"))
    blocks = file.blocks
    file.blocks = lambda: blocks(size)
    with pytest.raises(InputFileError, match="another header on line 3"):
        list(table.rows() if kind == "rows" else table.blocks())


@pytest.mark.parametrize(
    ("line", "is_one"),
    [
        ("b,a,c", True),
        ("a,b", False),
        ("a,c", True),
        ("x,y,z", False),
        ("a,b,1.5", False),
        ("a,b,c2026,5,b", False),
        ("", False),
    ],
)
def test_a_line_names_columns_where_half_of_its_cells_do_and_none_is_a_number(line, is_one):
    assert is_other_header(line.split(","), ["a", "b", "c"]) is is_one


@pytest.mark.parametrize(
    "text",
    [
        ",power,status\n0,1,ok\n,N/A,fail\n1,2,ok\n",
        ",power,energy\n,W,J\n0,1,2\n1,3,4\n",
        "model,energy,note\nmodel,N/A,none\nm2,5,ok\n",
        '"",a_w,b_v\n1,2,3\n,nan,nan\n4,5,6\n',
    ],
)
def test_a_row_without_a_figure_is_no_header(tmp_path, text):
    """A column without a name, as of an index, or a cell that is its column's name, make it none."""
    file = Source(tmp_path / "a.csv")
    file.path.write_text(text)
    assert len(list(Table(file).rows())) == text.count("\n") - 1
