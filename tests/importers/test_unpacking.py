"""Names of any bytes, archives, and content that unpacks to more than memory holds."""

import contextlib
import gzip
import io
import random
import zipfile
import zlib
from decimal import Decimal

import pytest

from carbonlens.domain.file_names import from_printable, printable
from carbonlens.domain.import_map import TableRule
from carbonlens.errors import InputFileError
from carbonlens.importers import sources
from carbonlens.importers.contract import Options
from carbonlens.importers.focus import IMPORTER as FOCUS
from carbonlens.importers.mapped_table import IMPORTER as MAPPED_TABLE
from carbonlens.importers.run_table import IMPORTER as RUN_TABLE
from carbonlens.importers.sources import Source, sources_of
from carbonlens.importers.unpacking import UNREADABLE
from tests.cli.commands import Shell
from tests.importers.reading import codes, read_any, read_text
from tests.importers.test_focus import line, table

TABLE = "run_id,study,step,energy_j,units,boundary,energy_grade\nr1,s,base,5,10,it,B\n"


def packed(members, method=zipfile.ZIP_DEFLATED):
    whole = io.BytesIO()
    with zipfile.ZipFile(whole, "w", method) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return whole.getvalue()


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("plain.csv", "plain.csv"),
        ("ä\\b", "ä\\b"),
        ("b\udcffok.csv", "b\\xffok.csv"),
        ("b\\xffok.csv", "b\\x5cxffok.csv"),
        ("b\ud800", "b\\ud800"),
        ("b\\ud800", "b\\x5cud800"),
    ],
)
def test_a_name_of_any_bytes_is_text_and_can_be_told_again(name, text):
    assert printable(name) == text
    text.encode()
    assert from_printable(text) == name


def test_names_of_any_bytes_reach_the_ledger_in_files_folders_and_archives(tmp_path):
    shell = Shell(tmp_path)
    folder = tmp_path / "d\udcfe"
    folder.mkdir()
    (folder / "b\udcff.csv").write_text(TABLE)
    (folder / "b\\xff.csv").write_text(TABLE.replace("r1", "r2"))  # the same letters, of another file
    (folder / "c\udcff::d.csv").write_text(TABLE.replace("r1", "r3"))
    (folder / "z\udcff.zip").write_bytes(packed({"in/e.csv": TABLE.replace("r1", "r4")}))
    (folder / "n\udcff.txt").write_text("nothing known")
    printed = shell.json("import", folder)
    assert [file["path"].removeprefix(str(tmp_path)) for file in printed["files"]] == [
        "/d\\xfe/b\\x5cxff.csv",
        "/d\\xfe/b\\xff.csv",
        "/d\\xfe/c\\xff::d.csv",
        "/d\\xfe/n\\xff.txt",
        "/d\\xfe/z\\xff.zip::in/e.csv",
    ]
    assert [file["status"] for file in printed["files"]] == ["imported"] * 3 + ["refused", "imported"]
    assert printed["files"][3]["findings"][0]["file"].endswith("/d\\xfe/n\\xff.txt")
    assert len(shell.json("runs")["runs"]) == 4


def bad_name():
    return packed({"ä.csv": TABLE}).replace("ä".encode(), b"\xff\xfe")


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (bad_name(), "no UTF-8"),
        (packed({"a.csv": TABLE})[:-30], "ZIP archive that cannot be opened"),
        (packed({"__MACOSX/a": TABLE}), "holds no files"),
        (packed({}), "holds no files"),
        (packed({"in.zip": packed({"a.csv": TABLE})}), "ZIP archive within another"),
        (packed({"a.csv": TABLE}, zipfile.ZIP_BZIP2), "another method than deflate"),
        (packed({"a.csv": TABLE}, zipfile.ZIP_LZMA), "another method than deflate"),
        (gzip.compress(gzip.compress(TABLE.encode())), "gzipped twice"),
        (gzip.compress(packed({"a.csv": TABLE})), "ZIP archive that cannot be opened"),
        (b"BZh91AY&SY" + bytes(9), "bzip2"),
        (b"\xfd7zXZ\0" + bytes(9), "xz"),
        (b"\x28\xb5\x2f\xfd" + bytes(9), "zstd"),
    ],
)
def test_an_archive_that_is_not_read_says_so(tmp_path, content, why):
    (tmp_path / "any").write_bytes(content)
    (found,) = sources_of(tmp_path / "any")
    reason, mend = found.fault
    assert why in reason
    assert mend


def test_a_text_that_begins_like_an_archive_is_none(tmp_path):
    (tmp_path / "any").write_text("BZhang,1\n")
    assert Source(tmp_path / "any").fault is None


def test_a_damaged_archive_raises_nothing_but_what_is_caught(tmp_path):
    whole, chance = packed({"ä.csv": TABLE, "b.csv": TABLE * 9}), random.Random(1)  # noqa: S311  # no secret
    for _ in range(300):
        content = bytearray(whole)
        for _ in range(chance.randint(1, 4)):
            content[chance.randrange(4, len(content))] = chance.randrange(256)
        (tmp_path / "any").write_bytes(content)
        for found in sources_of(tmp_path / "any"):
            if found.fault is None:
                with contextlib.suppress(InputFileError):
                    found.text()
    assert issubclass(UnicodeDecodeError, UNREADABLE)


@pytest.mark.parametrize("between", [b"", bytes(200_000)])
def test_lines_appended_to_a_packed_file_are_not_passed_over(tmp_path, between):
    file = tmp_path / "any"
    file.write_bytes(gzip.compress(b"one\n") + between + gzip.compress(b"two\n") + between + b"three\n")
    found = Source(file)
    assert [line for _, line in found.lines()] == ["one", "two"]
    assert [f.code for f in found.repairs] == ["CL240"]
    assert "not compressed itself" in found.repairs[0].message
    with pytest.raises(InputFileError, match="not compressed itself"):
        list(found.csv_lines())


def test_padding_after_a_packed_file_is_no_tail(tmp_path):
    (tmp_path / "any").write_bytes(gzip.compress(b"one\n") + bytes(200_000))
    found = Source(tmp_path / "any")
    assert [line for _, line in found.lines()] == ["one"]
    assert found.repairs == []


def bomb(begin, mib):
    packer = zlib.compressobj(wbits=31)
    filling = b"a" * 1024**2
    return packer.compress(begin) + b"".join(packer.compress(filling) for _ in range(mib)) + packer.flush()


def test_a_bomb_is_refused_and_not_unpacked(tmp_path, monkeypatch):
    monkeypatch.setattr(sources, "LONGEST_TEXT", 2 * 1024**2)
    (tmp_path / "bomb").write_bytes(bomb(TABLE.encode() + b'"', 8))
    with pytest.raises(InputFileError, match="more than 2 MiB"):
        Source(tmp_path / "bomb").text()
    (tmp_path / "small").write_bytes(bomb(b"", 2))
    assert len(Source(tmp_path / "small").text()) == 2 * 1024**2


def test_a_line_of_a_bill_is_bounded_too(tmp_path, monkeypatch):
    monkeypatch.setattr(sources, "LONGEST_LINE", 1024**2)
    (tmp_path / "bomb").write_bytes(bomb(b"BilledCost\n", 2))
    with pytest.raises(InputFileError, match="a line of more than 1 MiB"):
        list(Source(tmp_path / "bomb").csv_lines())


HEAD = "run_id;study;step;energy_j;units;boundary;energy_grade\n"


def semicolons(tmp_path, *cells):
    rows = "".join(f"r{n};s;x;{cell};10;it;B\n" for n, cell in enumerate(cells))
    return read_text(RUN_TABLE, tmp_path, HEAD + rows)


@pytest.mark.parametrize(
    ("cells", "joules", "refused"),
    [
        (["100,5", "1.234,5", "1.234"], ["100.5", "1234.5"], 1),
        (["100.5", "1,234.5", "1,234"], ["100.5", "1234.5"], 1),
        (["100,5", "1,234"], ["100.5", "1.234"], 0),
        (["100.5", "1.234"], ["100.5", "1.234"], 0),
        (["1.234", "1,234"], [], 2),
        (["1.234"], ["1.234"], 0),
        (["0,125", "1.234.567"], ["0.125", "1234567"], 0),
    ],
)
def test_a_number_of_thousands_or_decimals_is_not_guessed(tmp_path, cells, joules, refused):
    got = semicolons(tmp_path, *cells)
    assert [r.energy[0].energy_j for r in got.runs] == [Decimal(j) for j in joules]
    assert codes(got).count("CL202") == got.rows_rejected == refused
    if refused:
        assert "which may be 1.234 or 1234" in next(f.message for f in got.findings if f.code == "CL202")


def test_a_bill_asks_the_same(tmp_path):
    lines = [line(BilledCost=cost, ResourceId=cost) for cost in ("100,5", "1.234,5", "1.234")]
    got = read_text(FOCUS, tmp_path, table(*lines, delimiter=";"))
    assert [c.billed.amount for c in got.charges] == [Decimal("100.5"), Decimal("1234.5")]
    (told,) = [f for f in got.findings if f.code == "CL232"]
    assert "BilledCost '1.234', which may be 1.234 or 1234" in told.message


def test_a_mapped_table_asks_the_same(tmp_path):
    file = tmp_path / "mine.csv"
    file.write_text("id;e\na;100,5\nb;1.234,5\nc;1.234\n")
    options = Options(table=TableRule(columns={"run_id": "id", "energy_j": "e"}))
    got = read_any(MAPPED_TABLE, file, options)
    assert got.energy_j == Decimal(1335)
    assert [f.message for f in got.findings if f.code == "CL202"] == [
        "line 4 has energy_j '1.234', which may be 1.234 or 1234: others have a decimal comma; "
        "the row is left out"
    ]
