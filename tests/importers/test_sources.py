"""The one reader: what files wear is taken off, what damage did is said, nothing is guessed by name."""

import gzip
import io
import zipfile

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carbonlens.errors import InputFileError
from carbonlens.importers.columns import NumberTable
from carbonlens.importers.sources import LONGEST_LINE, Source, sources_of
from carbonlens.importers.tables import exact

TEXT = "one\ntwo ä\nthree\n"


def source(folder, content, name="any.bin"):
    (folder / name).write_bytes(content)
    return Source(folder / name)


WEAR = {
    "plain": TEXT.encode(),
    "mark": b"\xef\xbb\xbf" + TEXT.encode(),
    "crlf": TEXT.replace("\n", "\r\n").encode(),
    "cr": TEXT.replace("\n", "\r").encode(),
    "utf-16": TEXT.encode("utf-16"),
    "utf-16 without a mark": TEXT.encode("utf-16-le"),
    "gzip": gzip.compress(TEXT.encode()),
    "two gzips": gzip.compress(TEXT[:4].encode()) + gzip.compress(TEXT[4:].encode()),
    "no last end": TEXT.rstrip().encode(),
}


@pytest.mark.parametrize("wear", WEAR)
def test_lines_and_blocks_are_the_same_in_all_clothes(tmp_path, wear):
    found = source(tmp_path, WEAR[wear])
    assert list(found.lines()) == [(1, "one"), (2, "two ä"), (3, "three")]
    for size in (1, 3, 7, 4096):
        blocks = list(found.blocks(size))
        assert b"".join(b for _, b in blocks).decode().split() == ["one", "two", "ä", "three"]
        for first, block in blocks:
            assert block.endswith(b"\n")
            assert TEXT.split("\n")[first - 1].encode() == block.split(b"\n")[0]
    assert found.repairs == []


@given(
    st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0\r\x85\u2028\u2029\ufeff\ufffd"))
)
def test_any_text_comes_out_as_it_went_in(tmp_path_factory, text):
    folder = tmp_path_factory.mktemp("t")
    if not text.strip():
        return
    for content in (text.encode(), gzip.compress(text.encode())):
        found = source(folder, content)
        if found.encoding not in (None, "utf-16-le", "utf-16-be"):
            assert [line for _, line in found.lines()] == text.removesuffix("\n").split("\n")


def test_a_compressed_copy_has_the_same_hash(tmp_path):
    plain, packed = (source(tmp_path, c, n) for n, c in (("a", TEXT.encode()), ("b", WEAR["gzip"])))
    assert plain.sha256 == packed.sha256


def test_members_of_an_archive_are_sources(tmp_path):
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("in/b.csv", TEXT)
        archive.writestr("a.csv.gz", gzip.compress(TEXT.encode()))
        archive.writestr("__MACOSX/a.csv", b"junk")
    (tmp_path / "x.dat").write_bytes(packed.getvalue())
    found = sources_of(tmp_path / "x.dat")
    assert [s.name for s in found] == ["x.dat::a.csv.gz", "x.dat::in/b.csv"]
    assert [[line for _, line in s.lines()] for s in found] == [TEXT.split("\n")[:-1]] * 2


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"", "empty"),
        (b"\n", "empty"),
        (b"\0" * 4000, "empty"),
        (b"\xef\xbb\xbf\r\n", "empty"),
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:1\n", "Git LFS pointer"),
        (b"/annex/objects/SHA256E-s1--2.csv\n", "git-annex pointer"),
        (b"\x1f\x8bno gzip at all", "cannot be read"),
        (b"x" * 257 + b"ustar", "tar archive"),
    ],
)
def test_what_holds_nothing_says_why(tmp_path, content, why):
    reason, mend = source(tmp_path, content).fault
    assert why in reason
    assert mend


def test_a_missing_file_has_a_fault_and_no_content(tmp_path):
    found = Source(tmp_path / "nowhere")
    assert "cannot be read" in found.fault[0]
    assert (found.start, found.first_lines, found.encoding) == (b"", (), None)


def test_a_cut_off_gzip_gives_what_there_is_and_says_so(tmp_path):
    import random

    noise = "".join(f"{random.Random(n).random()}\n" for n in range(5000))  # noqa: S311  # no secret
    packed = gzip.compress(noise.encode())
    found = source(tmp_path, packed[: len(packed) // 2])
    lines = [line for _, line in found.lines()]
    assert noise.startswith("\n".join(lines[:-1]))
    assert len(lines) > 1000
    assert [f.code for f in found.repairs] == ["CL240"]


def test_padding_is_taken_out_and_said(tmp_path):
    found = source(tmp_path, TEXT.encode() + b"\0" * 100)
    assert [line for _, line in found.lines()][:3] == ["one", "two ä", "three"]
    assert "100 zero bytes" in found.repairs[0].message


def test_a_line_without_an_end_is_refused_before_memory_is(tmp_path):
    found = source(tmp_path, b"x" * (LONGEST_LINE + 1))
    with pytest.raises(InputFileError, match="MiB"):
        list(found.lines())


def test_binary_content_is_no_text(tmp_path):
    found = source(tmp_path, bytes(range(256)) * 4)
    assert found.encoding is None
    with pytest.raises(InputFileError, match="no text"):
        list(found.lines())


@pytest.mark.parametrize(
    ("text", "delimiter", "value"),
    [
        ("1.5", ",", "1.5"),
        ("1,5", ";", "1.5"),
        ("1,234", ";", "1.234"),
        ("1,234.5", ",", "1234.5"),
        ("1.234,5", ";", "1234.5"),
        ("1 234,5", ";", "1234.5"),
        ("-3e-5", ",", "-0.00003"),
        ("[Not Supported]", ",", None),
        ("", ",", None),
        ("N/A", ",", None),
    ],
)
def test_numbers_as_people_write_them(text, delimiter, value):
    found = exact(text, delimiter=delimiter)
    assert (None if found is None else f"{found:f}") == value


@pytest.mark.parametrize("text", ["1,234", "abc", "1_000", "inf", "1e400", "1.2.3", "0x10"])
def test_what_may_be_two_numbers_or_none_is_refused(text):
    with pytest.raises(ValueError, match=r".+"):
        exact(text, delimiter=",")


@given(st.text("0123456789.", max_size=40))
def test_plain_numbers_are_as_those_that_are_looked_at_letter_by_letter(text):
    def told(cell):
        try:
            return exact(cell, delimiter=",")
        except ValueError as error:
            return str(error).replace(repr(cell), "the cell")

    # A blank before it makes it none of the plain ones.
    assert told(text) == told(f" {text}")


ROWS = [(0.01 * n, 60000 + n % 7) for n in range(3000)]
NUMBERS = "Timestamp(ms),Current(uA),D0\n" + "".join(f"{t:.2f},{c},1\n" for t, c in ROWS)


def numbers(folder, text, wanted=("timestamp(ms)", "current(ua)")):
    table = NumberTable(source(folder, text.encode()), wanted)
    blocks = list(table.blocks())
    return table, {n: [v for b in blocks for v in b.columns[n].tolist()] for n in wanted}


def test_number_columns_come_as_arrays(tmp_path):
    table, found = numbers(tmp_path, NUMBERS)
    assert (table.rows, table.rejected) == (3000, 0)
    assert found["current(ua)"] == [c for _, c in ROWS]
    assert found["timestamp(ms)"] == pytest.approx([t for t, _ in ROWS])


@given(
    st.lists(
        st.tuples(
            st.floats(-1e6, 1e6), st.sampled_from(["", "N/A", "nan", "1.5", "x", "1e400", "7,5", "-3"])
        ),
        max_size=30,
    )
)
def test_rows_one_by_one_and_at_once_are_the_same(tmp_path_factory, rows):
    """One odd cell makes a block be parsed line by line: the other rows must not change by that."""
    folder = tmp_path_factory.mktemp("n")
    text = "a,b\n" + "".join(f"{t!r},{cell}\n" for t, cell in rows)
    table, found = numbers(folder, text, ("a", "b")) if rows else (None, None)
    if table is None:
        return
    assert len(found["a"]) + table.rejected == len(rows)
    good = [t for t, cell in rows if cell not in {"x", "1e400", "7,5"}]
    assert found["a"] == pytest.approx(good)


def test_a_torn_last_row_is_left_out_and_said(tmp_path):
    table, found = numbers(tmp_path, NUMBERS + "30.00,600")
    assert (len(found["current(ua)"]), table.rejected) == (3000, 1)
    (said,) = table.findings()
    assert (said.code, said.line) == ("CL202", 3002)


def test_repeated_headers_and_semicolons(tmp_path):
    head, rows = NUMBERS.split("\n", 1)
    table, found = numbers(tmp_path, NUMBERS + head + "\n" + rows)
    assert (table.rows, table.repeated_headers, table.rejected) == (6000, 1, 0)
    swapped = NUMBERS.replace(",", ";").replace(".", ",")
    assert numbers(tmp_path, swapped)[1] == numbers(tmp_path, NUMBERS)[1]
    assert found["current(ua)"][3000:] == [c for _, c in ROWS]


def test_a_member_whose_path_climbs_is_read_in_place_and_hidden_ones_are_not(tmp_path):
    """Nothing of an archive is ever written: a path that leads out of it is as good as any."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for name in ("../../out.csv", "./in.csv", "/top.csv", ".git/x.csv", "__MACOSX/y.csv", "a/.z.csv"):
            archive.writestr(name, TEXT)
    whole = source(tmp_path, packed.getvalue(), "a.zip")
    found = {s.member for s in sources_of(whole.path)}
    assert found == {"../../out.csv", "./in.csv", "/top.csv"}
    assert [p.name for p in tmp_path.parent.parent.glob("out.csv")] == []


def test_bytes_that_are_no_letters_are_counted_in_words(tmp_path):
    found = source(tmp_path, b"one\n\xff\xfetwo\n" + b"three \xff\n")
    assert len(list(found.lines())) == 3
    assert [f.message for f in found.repairs] == ["2 lines hold bytes that are no letters of its encoding"]
