"""Trace files: what was read stands in them, and can be read back by us and by others."""

import csv
import gzip
import hashlib
import json
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carbonlens.errors import InputFileError
from carbonlens.metering.sealing import Sample
from carbonlens.metering.sensors import VOID, Channel, SensorInfo
from carbonlens.metering.trace_file import (
    Column,
    columns_of,
    read_run_trace,
    rows_of,
    sha256_of,
    traced_run,
    write_trace,
)
from tests.metering.traces import GPU, RUN_ID, START_US, board, head, meter, put_trace

cells = st.none() | st.floats(allow_nan=False, allow_infinity=False)
names = st.text(min_size=1, max_size=20)


@st.composite
def tables(draw):
    devices = draw(st.lists(names, min_size=1, max_size=4))
    infos = [board(device=device) for device in devices]
    width = len(infos)
    rows = draw(st.lists(st.tuples(st.integers(0, 2**53), st.tuples(*[cells] * width)), max_size=30))
    return infos, sorted(rows, key=lambda row: row[0])


@pytest.mark.parametrize("suffix", [".csv", ".csv.gz"])
@given(table=tables())
def test_what_is_written_is_read(tmp_path_factory, suffix, table):
    infos, rows = table
    file = tmp_path_factory.mktemp("trace") / f"t{suffix}"
    columns = columns_of(infos)
    sha256 = write_trace(file, head(), columns, rows)
    read = read_run_trace(file)
    assert (read.head, read.columns, list(read.rows)) == (head(), columns, rows)
    assert sha256 == sha256_of(file) == hashlib.sha256(file.read_bytes()).hexdigest()
    assert write_trace(file, head(), columns, rows) == sha256


def test_a_failed_reading_is_an_empty_cell_and_the_file_is_plain_csv(tmp_path):
    infos = (board(), meter())
    looks = [
        Sample(t_us=0, values=((61.5,), (100.0,))),
        Sample(t_us=100_000, values=(None, (0.0,))),
        Sample(t_us=200_000, values=((None,), (VOID,))),
        Sample(t_us=250_000, values=((), ())),
        Sample(t_us=300_000, values=(None, None)),
    ]
    file = tmp_path / "t.csv"
    write_trace(file, head(), columns_of(infos), rows_of(looks, infos, START_US))
    lines = file.read_text().splitlines()
    about = [json.loads(line[2:]) for line in lines if line.startswith("# ")]
    assert (about[0]["schema"], about[0]["run_id"], about[0]["start_us"]) == (
        "carbonlens/run-trace/1",
        RUN_ID,
        START_US,
    )
    told = about[1]["sensor"]
    assert (told["name"], told["kind"], told["unit"], told["update_period_s"]) == (
        "nvml_power",
        "instant",
        "W",
        0.1,
    )
    assert told["channels"] == [{"device": GPU, "component": "gpu"}]
    rows = list(csv.DictReader(line for line in lines if not line.startswith("#")))
    names = [c["column"] for c in about[1:]]
    assert names == [f"nvml_power/{GPU}", "external:pmd/pmd"]
    assert [(int(r["t_us"]) - START_US, *(r[n] for n in names)) for r in rows] == [
        (0, "61.5", "100.0"),
        (100_000, "", "0.0"),
        (200_000, "", "-1000000000000000.0"),
        # A look at which nothing was due is no row; one at which all failed is.
        (300_000, "", ""),
    ]


def test_sensors_read_far_apart_have_rows_of_their_own_in_order_of_time():
    infos = (board(), meter(), board(device="GPU-2"))
    looks = [
        Sample(t_us=0, values=((1.0,), (2.0,), (3.0,)), skew_us=(0, 900, 40_000)),
        Sample(t_us=20_000, values=((4.0,), (), ())),
    ]
    assert list(rows_of(looks, infos, 0)) == [
        (0, (1.0, 2.0, None)),
        (20_000, (4.0, None, None)),
        (40_000, (None, None, 3.0)),
    ]


@given(st.lists(st.integers(0, 100_000), max_size=300))
def test_rows_of_looks_at_any_skew_are_in_order(skews):
    infos = (board(),)
    looks = [Sample(t_us=i * 100_000, values=((1.0,),), skew_us=(s,)) for i, s in enumerate(skews)]
    times = [t for t, _ in rows_of(looks, infos, START_US)]
    assert len(times) == len(skews)
    assert all(a <= b for a, b in pairwise(times))


def test_columns_have_names_of_their_own():
    use = SensorInfo(
        name="nvml_use",
        kind="use",
        unit="s",
        scope="board",
        boundary="device",
        grade="D",
        update_period_s=0.0,
        channels=(
            Channel(device="GPU 1,#", component="gpu", who="own"),
            Channel(device="GPU 1,#", component="gpu"),
        ),
        method="use",
    )
    made = columns_of((use, board(), board()))
    assert [c.column for c in made] == [
        "nvml_use/GPU_1_/own",
        "nvml_use/GPU_1_/all",
        f"nvml_power/{GPU}",
        f"nvml_power/{GPU}/2",
    ]
    assert [c.channel.who for c in made[:2]] == ["own", "all"]
    assert all(isinstance(c, Column) and len(c.sensor.channels) == 1 for c in made)


def test_a_file_that_cannot_be_finished_leaves_the_former_one(tmp_path):
    file = tmp_path / "t.csv"
    put_trace(file, board(), seconds=1)
    before = file.read_bytes()

    def rows():
        yield START_US, (1.0,)
        raise OSError("gone")

    with pytest.raises(OSError, match="gone"):
        write_trace(file, head(), columns_of((board(),)), rows())
    assert file.read_bytes() == before
    assert list(tmp_path.iterdir()) == [file]


def test_a_trace_is_known_by_its_head(tmp_path):
    for name in ("t.csv", "t.csv.gz"):
        put_trace(tmp_path / name, board(), seconds=1)
        assert traced_run(tmp_path / name) == RUN_ID
    other = tmp_path / "other.gz"
    for content in (b"", b"text", gzip.compress(b"text"), b'# {"schema":"x/1","run_id":"r","start_us":1}\n'):
        other.write_bytes(content)
        assert traced_run(other) is None
        (tmp_path / "other").write_bytes(content)
        assert traced_run(tmp_path / "other") is None
    assert traced_run(tmp_path) is None


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (lambda lines: [], "is no trace of a run"),
        (lambda lines: ["t_us,watts", "0,1"], "is no trace of a run"),
        (lambda lines: ["# " + lines[0][2:].replace("run-trace/1", "run-trace/9"), *lines[1:]], "schema"),
        (lambda lines: [lines[0], "# {}", *lines[1:]], "t.csv:2: no line of a trace's head"),
        (lambda lines: [lines[0], *lines[2:]], "t.csv:2: the columns are not those"),
        (lambda lines: lines[:2], "the columns are not those"),
        (lambda lines: [*lines[:-1], "12,abc"], "a line that is no reading"),
        (lambda lines: [*lines[:-1], "12,nan"], "not 1 finite value"),
        (lambda lines: [*lines[:-1], "12,1,2"], "not 1 finite value"),
        (lambda lines: [*lines[:-1], "x,1"], "a line that is no reading"),
    ],
)
def test_a_damaged_trace_is_refused_with_its_line(tmp_path, change, text):
    file = tmp_path / "t.csv"
    put_trace(file, board(), seconds=1)
    file.write_text("\n".join(change(file.read_text().splitlines())))
    with pytest.raises(InputFileError, match=text):
        read_run_trace(file)


def test_a_torn_compressed_file_is_refused(tmp_path):
    file = tmp_path / "t.csv.gz"
    put_trace(file, board(), seconds=5)
    file.write_bytes(file.read_bytes()[:-20])
    with pytest.raises(InputFileError, match="no whole compressed file"):
        read_run_trace(file)
    file.write_bytes(b"text")
    with pytest.raises(InputFileError, match="no whole compressed file"):
        read_run_trace(file)
    with pytest.raises(InputFileError, match="is not there"):
        read_run_trace(tmp_path / "none")
    with pytest.raises(InputFileError, match="is no regular file"):
        read_run_trace(tmp_path)
