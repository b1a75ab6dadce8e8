"""Names of any bytes, archives, and content that unpacks to more than memory holds."""

import contextlib
import gzip
import io
import random
import shutil
import zipfile
import zlib
from decimal import Decimal

import pytest

from carbonlens.domain.file_names import from_printable, printable
from carbonlens.domain.import_map import TableRule
from carbonlens.errors import InputFileError
from carbonlens.importers import gunzip, plain_files, sources
from carbonlens.importers.columns import NumberTable
from carbonlens.importers.contract import Options
from carbonlens.importers.focus import IMPORTER as FOCUS
from carbonlens.importers.focus_cells import COSTS, NUMBERS
from carbonlens.importers.mapped_table import IMPORTER as MAPPED_TABLE
from carbonlens.importers.plain_files import plain_file
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
        (gzip.compress(packed({"a.csv": TABLE})), "it was gzipped"),
        (packed({"a.csv": TABLE}).replace(b"a.csv", b"\0.csv"), "a file in it has no name"),
        (packed({"b": TABLE, "a.csv": TABLE}).replace(b"a.csv", b"\0.csv"), "a file in it has no name"),
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
            # A zero ends a name.
            content[chance.randrange(4, len(content))] = chance.choice([0, chance.randrange(256)])
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
    with pytest.raises(InputFileError, match="more than 2 MiB") as caught:
        Source(tmp_path / "bomb").text()
    assert "export it in parts that follow one another" in caught.value.mend
    (tmp_path / "small").write_bytes(bomb(b"", 2))
    assert len(Source(tmp_path / "small").text()) == 2 * 1024**2


LOG = "timestamp, index, power.draw [W]\n" + "".join(
    f"2026/01/01 {n // 3600:02}:{n // 60 % 60:02}:{n % 60:02}.000, 0, 61.20 W\n" for n in range(4000)
)


@pytest.mark.parametrize("filling", [b"\n", b"2026/01/01 00:00:00.000, 0, 61.20 W\n", b"\0"])
@pytest.mark.parametrize("where", ["gzip", "zip", "gzip within zip"])
def test_a_bomb_of_lines_is_refused_at_once(tmp_path, monkeypatch, where, filling):
    """Millions of blank lines are read by nobody: what no log unpacks to is refused, with what to do."""
    monkeypatch.setattr(gunzip, "FREE_BYTES", 1024**2)
    content = LOG.encode()[:4096] + filling * (4 * 1024**2 // len(filling))
    made = {
        "gzip": lambda: gzip.compress(content),
        "zip": lambda: packed({"gpu.csv": content}),
        "gzip within zip": lambda: packed({"gpu.csv": gzip.compress(content)}),
    }[where]()
    (tmp_path / "bomb").write_bytes(made)
    (found,) = sources_of(tmp_path / "bomb")
    reason, mend = found.fault
    assert "times its size, as no log does" in reason
    assert "unpack it yourself" in mend
    with pytest.raises(InputFileError, match="times its size, as no log does") as caught:
        assert found.sha256
    assert "unpack it yourself" in caught.value.mend


def test_what_logs_unpack_to_is_read_whatever_its_size(tmp_path, monkeypatch):
    monkeypatch.setattr(gunzip, "FREE_BYTES", 1)
    for name, made in (("a", gzip.compress(LOG.encode())), ("b", packed({"gpu.csv": LOG}))):
        (tmp_path / name).write_bytes(made)
        (found,) = sources_of(tmp_path / name)
        assert len(list(found.lines())) == 4001


def test_a_bomb_does_not_end_an_import(tmp_path):
    (tmp_path / "bomb.csv.gz").write_bytes(gzip.compress(LOG.encode() + b"\n" * 32 * 1024**2))
    (tmp_path / "gpu.csv").write_text(LOG)
    printed = Shell(tmp_path).json("import", "bomb.csv.gz", "gpu.csv", "--tz", "UTC", code=3)
    assert [file["status"] for file in printed["files"]] == ["refused", "imported"]
    assert "times its size" in printed["files"][0]["findings"][0]["message"]


@pytest.mark.parametrize("make", [gzip.compress, lambda content: packed({"a.jls": content})])
def test_a_copy_for_a_library_is_bounded(tmp_path, monkeypatch, make):
    content = random.Random(1).randbytes(3 * 1024**2)  # noqa: S311  # no secret
    (tmp_path / "any").write_bytes(make(content))
    (found,) = sources_of(tmp_path / "any")
    with plain_file(found) as path:
        assert path.read_bytes() == content
    monkeypatch.setattr(plain_files, "LARGEST_COPY", 2 * 1024**2)
    with pytest.raises(InputFileError, match="unpacks to more than 2 MiB") as caught, plain_file(found):
        pass
    assert "unpack it yourself" in caught.value.mend


@pytest.mark.parametrize("count", [1000, 1001])
def test_an_archive_of_very_many_files_is_refused_at_once(tmp_path, count):
    """Each is looked up among all: 3000 of one byte took minutes."""
    with zipfile.ZipFile(tmp_path / "many.zip", "w") as archive:
        for number in range(count):
            archive.writestr(f"{number}.csv", "a")
    found = list(sources_of(tmp_path / "many.zip"))
    if count == 1000:
        assert len(found) == count
        return
    (one,) = found
    assert one.fault == (
        "is a ZIP archive of 1001 files, and no more than 1000 are looked for in one",
        "unpack it yourself, and import the folder",
    )


def test_a_copy_leaves_room_for_temporary_files(tmp_path, monkeypatch):
    (tmp_path / "any").write_bytes(gzip.compress(bytes(range(256)) * 4096))
    left = shutil.disk_usage(tmp_path)._replace(free=1024**2)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: left)
    with pytest.raises(InputFileError, match="half of the room"), plain_file(Source(tmp_path / "any")):
        pass


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


@pytest.mark.parametrize(
    ("cells", "says"),
    [
        (["1.234"], "'1.234' may be 1.234 or 1234"),
        (["7", "1.234", "2.500"], "'1.234' may be 1.234 or 1234"),
        (["1.234", "0.125"], None),
        (["1.234", "100.5"], None),
        (["1.234", "1,234.5"], None),
        (["1,234"], None),
        (["7", "12"], None),
    ],
)
def test_numbers_that_nothing_decides_on_are_said(tmp_path, cells, says):
    """Thousands or decimals: what other numbers tell is no guess, and what none tells is said, not silent."""
    got = semicolons(tmp_path, *cells)
    assert got.rows_rejected == 0
    told = [f for f in got.findings if f.code == "CL218"]
    assert len(told) == (says is not None)
    if says is not None:
        (found,) = told
        assert says in found.message
        assert "read as 1.234" in found.message
        assert (found.severity, found.line) == ("warning", 2 + cells.index("1.234"))
        assert "1234 if not" in found.mend


def test_between_tabs_a_comma_is_not_sure_either(tmp_path):
    text = HEAD.replace(";", "\t") + "r1\ts\tx\t1,234\t10\tit\tB\n"
    got = read_text(RUN_TABLE, tmp_path, text)
    assert [
        "energy_j '1,234' may be 1.234 or 1234" in f.message for f in got.findings if f.code == "CL218"
    ] == [True]


def test_between_commas_a_point_marks_decimals(tmp_path):
    got = read_text(RUN_TABLE, tmp_path, HEAD.replace(";", ",") + "r1,s,x,1.234,10,it,B\n")
    assert "CL218" not in codes(got)


def test_bills_and_mapped_tables_say_it_too(tmp_path):
    whole = dict.fromkeys([*COSTS, *NUMBERS.values()])
    bill = read_text(FOCUS, tmp_path, table(line(**{**whole, "BilledCost": "1.234"}), delimiter=";"))
    assert [c.billed.amount for c in bill.charges] == [Decimal("1.234")]
    (said,) = [f for f in bill.findings if f.code == "CL218"]
    assert "BilledCost '1.234' may be 1.234 or 1234" in said.message
    file = tmp_path / "mine.csv"
    file.write_text("id;e\na;7\nb;1.234\n")
    got = read_any(MAPPED_TABLE, file, Options(table=TableRule(columns={"run_id": "id", "energy_j": "e"})))
    assert [f.line for f in got.findings if f.code == "CL218"] == [3]


def test_a_log_of_decimal_commas_says_which_points_may_be_thousands(tmp_path):
    def said(*cells):
        file = tmp_path / "log.csv"
        file.write_text("t;w\n" + "".join(f"{n};{cell}\n" for n, cell in enumerate(cells)))
        columns = NumberTable(Source(file), ("t", "w"))
        values = [v for block in columns.blocks() for v in block.columns["w"].tolist()]
        return values, [(f.code, f.line) for f in columns.findings()]

    assert said("1,5", "1.234", "2.500") == ([1.5, 1.234, 2.5], [("CL218", 3)])
    assert said("1.5", "1.234") == ([1.5, 1.234], [])
    assert said("1,5", "12,25") == ([1.5, 12.25], [])


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
