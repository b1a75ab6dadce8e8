"""Large files of codecarbon's by columns: what comes out is what the row path alone gives."""

from datetime import UTC, datetime
from itertools import pairwise
from unittest.mock import patch
from zoneinfo import _zoneinfo, available_timezones

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from carbonlens.errors import InputFileError
from carbonlens.importers import codecarbon_blocks
from carbonlens.importers.codecarbon import IMPORTER
from carbonlens.importers.codecarbon_columns import Lines
from carbonlens.importers.contract import Group, Options
from carbonlens.importers.exact_micros import micros_of
from carbonlens.importers.harvest import harvest
from carbonlens.importers.plain_times import PLAIN_LENGTH, seconds_of_letters
from carbonlens.importers.records import exact_j
from carbonlens.importers.sources import Source
from carbonlens.importers.tables import exact
from carbonlens.importers.times import FIRST_YEAR
from tests.importers.test_codecarbon import ERAS, ROW_1, S38

USUAL = dict(zip(S38.split(","), ROW_1.split(","), strict=True))
TASKS = ("task_name", *ERAS["S31"].split(","))
STRANGE = (
    *("", "0", "0.0", "nan", "N/A", "-1", "1e-400", "1e400", "1_0", "1 234", "1,5", "x", "inf", '"', " 5 "),
    *("0.0050000000000000000001", "1e-12", "5e9", "10.0", "700", "FRA", "machine", "\u00a0", "\x1f", "\x85"),
    *(
        "2026-10-25T02:30:00",
        "2026-03-29T02:30:00",
        "2026-03-02 10:00:00",
        "2026-03-02",
        "2026-02-30T10:00:00",
    ),
    *("2026-03-02T10:00:00+01:00", "1,5 x GPU", '"a,b"', "Überbau", "\ufffd", "٣", "-71.2", "46.8"),
)
ZONES = (None, "UTC", "Europe/Paris", "America/New_York", "Australia/Lord_Howe", "Asia/Kathmandu")


def by(path, options, *, columns):
    """Read a file by columns, or by rows alone."""
    worth = 0 if columns else 1 << 60
    with (
        patch.object(codecarbon_blocks, "WORTH_BYTES", worth),
        patch.object(codecarbon_blocks, "FEWEST_ALIKE", 2),
        patch.object(codecarbon_blocks, "BLOCK_BYTES", 4096),
    ):
        return harvest(IMPORTER, Group((Source(path),)), options)


def assert_same(path, options):
    """Assert that both ways come to the same; return what the columns gave."""
    got, plain = by(path, options, columns=True), by(path, options, columns=False)
    assert not plain.alike
    assert got.records == plain.records
    assert got.findings == plain.findings
    assert (got.rows, got.rejected, got.repeated) == (plain.rows, plain.rejected, plain.repeated)
    return got


@st.composite
def rows(draw, names):
    """Draw the cells of rows that are mostly regular."""
    made = []
    for place in range(draw(st.integers(1, 12))):
        kwh = draw(st.sampled_from([0.005, 0.00512345678901234, 1.2345678912345678, 250.0, 4e-6]))
        parts = {p: kwh / draw(st.sampled_from([3, 3, 2])) for p in ("cpu", "gpu", "ram")}
        seconds = draw(st.sampled_from(["100.0", "99.12345678912", "7300.5", "0.5", "400000"]))
        cells = USUAL | {
            "timestamp": f"2026-{draw(st.sampled_from(['03-02', '03-29', '10-25']))}T0{place % 9}:40:00",
            "run_id": f"run-{draw(st.integers(0, 30))}",
            "project_name": draw(st.sampled_from(["alpha", "beta"])),
            "duration": seconds,
            "energy_consumed": repr(kwh),
            "emissions": repr(kwh * draw(st.sampled_from([0.05, 0.3, 5.0]))),
            "pue": draw(st.sampled_from(["1.0", "1.0", "1.2", ""])),
            "gpu_model": draw(st.sampled_from(["1 x Some GPU", "1 x Some GPU", ""])),
            "tracking_mode": draw(st.sampled_from(["machine", "process"])),
        }
        cells |= {f"{p}_energy": repr(v) for p, v in parts.items()}
        cells |= {f"{p}_power": repr(v * 3.6e6 / float(seconds)) for p, v in parts.items()}
        if draw(st.integers(0, 3)) == 0:
            cells[draw(st.sampled_from(names))] = draw(st.sampled_from(STRANGE))
        made.append(cells | {"task_name": draw(st.sampled_from(["fit", ""]))})
    return made


@st.composite
def files(draw):
    """Draw a file: its era, rows, and what became of them on the way."""
    names = draw(st.permutations(draw(st.sampled_from([*(e.split(",") for e in ERAS.values()), TASKS]))))
    lines = []
    for cells in draw(rows(names)):
        line = [cells[n] for n in names]
        kind = draw(st.sampled_from(["whole"] * 12 + ["slid", "twice", "glued", "blank", "header", "longer"]))
        if kind == "slid":
            line = [
                v for n, v in zip(names, line, strict=True) if n not in {"region", "longitude", "latitude"}
            ]
        text = ",".join(line)
        lines += {
            "twice": [text, text],
            "glued": [text + text],
            "blank": ["", text, "  "],
            "header": [",".join(names), text],
            "longer": [text + ","],
        }.get(kind, [text])
    end = draw(st.sampled_from(["\n", "\n", "\r\n"]))
    content = end.join([",".join(names), *lines]).encode()
    if draw(st.integers(0, 9)) == 0:
        content = content.replace(b"Linux", b"Lin\xffux", 1)
    return content + (end.encode() if draw(st.booleans()) else b"")


@pytest.mark.slow
@settings(max_examples=120, deadline=None)
@given(content=files(), zone=st.sampled_from(ZONES), by_project=st.booleans())
def test_whatever_a_file_holds_columns_come_to_the_same(tmp_path_factory, content, zone, by_project):
    path = tmp_path_factory.mktemp("columns") / "emissions.csv"
    path.write_bytes(content)
    zones = {"beta*": "America/New_York"} if by_project else {}
    assert_same(path, Options(tz=zone, tz_by_project=zones))


NEWEST = tuple(S38.split(","))


def many(count, names=NEWEST, **changes):
    """Return a file of regular runs, a minute apart."""
    lines = []
    for i in range(count):
        own = {"timestamp": f"2026-03-02T{i // 60 % 24:02}:{i % 60:02}:00", "run_id": f"run-{i}"}
        cells = USUAL | {"tracking_mode": "process"} | own
        cells |= {name: change(i) if callable(change) else change for name, change in changes.items()}
        lines.append(",".join(cells[n] for n in names))
    return "\n".join([",".join(names), *lines]) + "\n"


def test_regular_rows_go_by_columns(tmp_path):
    path = tmp_path / "emissions.csv"
    path.write_text(many(50))
    got = assert_same(path, Options(tz="Europe/Paris"))
    assert (len(got.singles), sum(map(len, got.alike))) == (0, 50)


@pytest.mark.parametrize("era", ERAS)
def test_regular_rows_of_every_era_go_by_columns(tmp_path, era):
    path = tmp_path / "emissions.csv"
    names = ERAS[era].split(",")
    own = {"experiment_id": lambda i: f"exp-{i}"} if "run_id" not in names else {}
    path.write_text(many(50, names, **own))
    got = assert_same(path, Options(tz="UTC"))
    assert sum(map(len, got.alike)) == 50


@pytest.mark.parametrize(
    "odd",
    [
        {"energy_consumed": "0.5"},
        {"cpu_power": "4500"},
        {"timestamp": "2026-10-25T02:30:00"},
        {"gpu_energy": "0"},
        {"emissions": "5000"},
        {"duration": "nan"},
        {"run_id": ""},
        {"cpu_model": '"a, b"'},
        {"os": "L\x00inux"},
        {"pue": "1_0"},
    ],
    ids=lambda odd: next(iter(odd)),
)
def test_an_odd_row_amid_regular_ones_is_read_as_ever(tmp_path, odd):
    path = tmp_path / "emissions.csv"
    ((name, cell),) = odd.items()
    # After the night in which clocks go back, so that an hour told twice comes after later ones.
    usual = {"run_id": "run-{}", "timestamp": "2026-10-25T04:{:02}:00"}
    own = {n: lambda i, n=n: usual[n].format(i) for n in usual}
    own[name] = lambda i: cell if i in {7, 20} else usual.get(name, USUAL[name]).format(i)
    path.write_text(many(40, **own))
    got = assert_same(path, Options(tz="Europe/Paris"))
    assert sum(map(len, got.alike)) > 30


def test_a_pue_is_taken_out_by_columns_too(tmp_path):
    path = tmp_path / "emissions.csv"
    path.write_text(many(40, pue="1.37"))
    got = assert_same(path, Options(tz="UTC"))
    assert sum(map(len, got.alike)) == 40
    assert got.records[5].run.beside[0].boundary == "facility"


@given(st.lists(st.floats(0, 3000, allow_nan=False), min_size=1), st.sampled_from(["1", "1.2", "1.58"]))
def test_micros_are_those_of_exact_decimals_wherever_they_are_sure(values, pue):
    texts = [repr(v) for v in values]
    found, sure = micros_of(np.array(values), times=3_600_000, over=np.full(len(values), float(pue)))
    for text, micros, is_sure in zip(texts, found.tolist(), sure.tolist(), strict=True):
        exact_micros = exact_j(exact(text) * 3_600_000 / exact(pue)).scaleb(6)
        assert not is_sure or micros == exact_micros


def test_a_half_of_two_micros_is_not_sure():
    found, sure = micros_of(np.array([0.0000005, 0.0000015, 0.25, 1.0]))
    assert sure.tolist() == [False, False, True, True]
    assert found.tolist()[2:] == [250_000, 1_000_000]


@given(
    st.lists(st.one_of(st.datetimes().map(lambda d: d.isoformat()[:19]), st.text(max_size=22)), min_size=1)
)
def test_plain_times_are_those_of_the_calendar(texts):
    told = [text.encode() for text in texts]
    letters = np.array([list(text.ljust(PLAIN_LENGTH)[:PLAIN_LENGTH]) for text in told], dtype=np.uint8).T
    seconds, good = seconds_of_letters(letters, np.array([len(text) == PLAIN_LENGTH for text in told]))
    for text, second, is_good in zip(texts, seconds.tolist(), good.tolist(), strict=True):
        if is_good:
            assert second == datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()
        elif text.isascii() and len(text) == 19 and text[10] in {"T", " "}:
            assert not is_of_this_age(text)


def is_of_this_age(text):
    try:
        return 1971 <= datetime.fromisoformat(text).year <= 2200
    except ValueError:
        return False


def test_no_zone_changes_its_clocks_twice_within_a_day():
    """Rows of a day are read by the offset with which it begins, if it ends by the same."""
    for name in sorted(available_timezones()):
        zone = _zoneinfo.ZoneInfo(name)
        told = [
            (at, info.utcoff)
            for at, info in zip(zone._trans_utc, zone._ttinfos, strict=True)
            if at > datetime(FIRST_YEAR, 1, 1, tzinfo=UTC).timestamp()
        ]
        changes = [at for (_, before), (at, after) in pairwise(told) if before != after]
        assert all(later - at > 2 * 86_400 for at, later in pairwise(changes)), name


@pytest.mark.parametrize("zone", ["Europe/Paris", "Australia/Lord_Howe", "America/New_York"])
def test_rows_of_days_on_which_clocks_change_are_read_as_ever(tmp_path, zone):
    path = tmp_path / "emissions.csv"
    days = ("2026-03-08", "2026-03-29", "2026-04-05", "2026-10-04", "2026-10-25", "2026-11-01")
    stamp = lambda i: f"{days[i // 96]}T{i // 4 % 24:02}:{i % 4 * 15:02}:00"  # noqa: E731  # a column of `many`
    path.write_text(many(96 * len(days), timestamp=stamp))
    got = assert_same(path, Options(tz=zone))
    assert 500 < sum(map(len, got.alike)) < 576


def test_lines_with_quotes_control_characters_or_another_width_are_odd():
    lines = Lines(b'a,b\n"a",b\na\nx\x01,b\na,b,c\n\nc,d\n', 2)
    assert lines.is_regular.tolist() == [True, False, False, False, False, False, True]
    assert lines.regular() == b"a,b\nc,d\n"


def test_cells_are_found_among_lines_that_are_odd():
    lines = Lines(b'ab,c,de\n"a",b,c\n\nf,,ghi\n,jk,\nl\n', 3)
    for column, cells in enumerate(([b"ab", b"f", b""], [b"c", b"", b"jk"], [b"de", b"ghi", b""])):
        for length in (1, 2, 3):
            letters, is_long = lines.letters(column, length)
            assert is_long.tolist() == [len(cell) == length for cell in cells]
            found = [letters[:, i].tobytes() for i in np.flatnonzero(is_long)]
            assert found == [cell for cell in cells if len(cell) == length]


def test_another_header_in_a_large_file_is_refused_as_in_a_small_one(tmp_path):
    """Energies of parts would be read as that of the whole, or the other way round."""
    row = ROW_1.split(",")
    turned = ",".join([*S38.split(",")[1:], S38.split(",")[0]])
    lines = [S38, *[ROW_1] * 60, turned, *[",".join([*row[1:], row[0]])] * 60]
    path = tmp_path / "emissions.csv"
    path.write_text("\n".join(lines) + "\n")
    for columns in (True, False):
        with pytest.raises(InputFileError, match="another header on line 62"):
            by(path, Options(), columns=columns)
