"""What the first rows of nvidia-smi's CSV tell: columns, GPUs, and which power counts."""

from unittest.mock import patch

import pytest

from carbonlens.errors import InputFileError
from carbonlens.importers import nvidia_smi, nvidia_smi_bare, nvidia_smi_blocks
from carbonlens.importers.claiming import claims, importers
from carbonlens.importers.contract import Options
from carbonlens.importers.nvidia_smi import IMPORTER
from carbonlens.importers.sources import Source
from tests.importers.parsed_traces import taken
from tests.importers.reading import codes, read_any, read_text

UTC = Options(tz="UTC")
UUIDS = [f"GPU-2f4a1c3e-1111-2222-3333-44445555666{n}" for n in range(2)]


def stamp(ms):
    return f"2026/03/02 10:{ms // 60_000:02}:{ms // 1000 % 60:02}.{ms % 1000:03}"


def read_as_an_import_does(tmp_path, text, options):
    """Ask all importers for the log, in their order."""
    path = tmp_path / "log.csv"
    path.write_text(text)
    (claim,), _ = claims([Source(path)], importers())
    return taken(claim.importer, path, options)


def joules(got):
    return sum(float(e.energy_j) for r in got.records for e in r.run.energy)


HEAD = "timestamp, index, power.draw [W], temperature.gpu\n"
ROWS = "".join(f"{stamp(1000 * s)}, 0, 300.00, 60\n" for s in range(6))


@pytest.mark.parametrize(
    "head",
    [
        "timestamp, index, temperature.gpu, power.draw [W]",
        "timestamp, index, power.draw [mW], temperature.gpu",
        "timestamp, index, power.limit [W], temperature.gpu",
        "timestamp, index, power.draw.instant [W], temperature.gpu",
        "index, timestamp, power.draw [W], temperature.gpu",
        "timestamp, index, clocks.max.sm, retired_pages.sbe",
        "clocks.max.sm, retired_pages.sbe, timestamp, encoder.stats",
        # A begin of the first one, but rows stand below it.
        "timestamp, index, power",
        "timestamp",
    ],
)
def test_a_header_that_is_another_is_refused_with_its_line(tmp_path, head):
    with pytest.raises(InputFileError, match="another header on line 8"):
        read_text(IMPORTER, tmp_path, f"{HEAD}{ROWS}{head}\n{ROWS}", UTC)


def test_a_header_that_was_cut_off_at_the_end_is_no_other(tmp_path):
    for end in range(1, len(HEAD)):
        got = read_text(IMPORTER, tmp_path, HEAD + ROWS + HEAD[:end], UTC)
        assert float(got.energy_j) == pytest.approx(1500)


def test_a_header_that_was_cut_off_and_written_anew_is_no_other(tmp_path):
    said = "Failed to initialize NVML: Unknown Error\n"
    for end in range(1, len(HEAD)):
        got = read_text(IMPORTER, tmp_path, f"{HEAD}{ROWS}{HEAD[:end]}\n{said}{HEAD}{ROWS[-44:]}", UTC)
        assert float(got.energy_j) == pytest.approx(1500)


@pytest.mark.parametrize("is_large", [False, True])
def test_a_shorter_name_of_a_column_is_another_one(tmp_path, is_large):
    """``power.draw`` is no ``power.draw.instant`` that was cut off."""
    count = 300 if is_large else 6
    rows = "".join(f"{stamp(1000 * s)}, 0, 300.00 W\n" for s in range(count))
    head = "timestamp, index, power.draw{}\n"
    for unit in ("", " [W]"):
        text = head.format(f".instant{unit}") + rows + head.format(unit) + rows
        with (
            patch.object(nvidia_smi, "_LOOK_AHEAD", 4),
            patch.object(nvidia_smi_blocks, "BLOCK_BYTES", 300),
            pytest.raises(InputFileError, match=f"another header on line {count + 2}"),
        ):
            read_text(IMPORTER, tmp_path, text, UTC)


@pytest.mark.parametrize("word", ["ERR!", "err", "[Unknown Error]", "N/A", ""])
def test_a_column_that_fails_in_any_words_does_not_count(tmp_path, word):
    text = "timestamp, index, power.draw.instant [W], power.draw [W]\n"
    text += "".join(f"{stamp(1000 * s)}, 0, {word}, 100.00 W\n" for s in range(51))
    got = read_text(IMPORTER, tmp_path, text, UTC)
    assert float(got.energy_j) == pytest.approx(5000)
    assert got.runs[0].energy[0].method == "nvidia-smi power.draw"


def test_a_header_below_rows_without_one_is_the_same_or_refused(tmp_path):
    rows = ROWS.replace("300.00", "300.00 W")
    got = read_text(IMPORTER, tmp_path, rows + HEAD, UTC)
    assert (float(got.energy_j), got.rows_rejected) == (pytest.approx(1500), 0)
    with pytest.raises(InputFileError, match="another header on line 7"):
        read_text(
            IMPORTER, tmp_path, rows + "timestamp, index, power.limit [W], temperature.gpu\n" + rows, UTC
        )


def bare(watts="100.00 W", other="{u}"):
    """A log without a header of two GPUs, of which the first drops out for half of the time."""
    return "".join(
        f"{stamp(1000 * s + 3 * g)}, {other.format(u=UUIDS[g], g=g)}, {watts}\n"
        for s in range(101)
        for g in range(2)
        if g or s < 25 or s >= 75
    )


def test_ids_of_a_log_without_a_header_tell_its_gpus_apart(tmp_path):
    with_header = "timestamp, uuid, power.draw [W]\n" + bare()
    there = read_as_an_import_does(tmp_path, with_header, UTC)
    got = read_as_an_import_does(tmp_path, bare(), UTC)
    assert joules(got) == joules(there) == pytest.approx(10_000 + 5_400, rel=0.1)
    assert [e.devices for e in got.records[0].run.energy] == [(uuid,) for uuid in UUIDS]
    assert got.records[0].run.energy[0].state == "unbounded"


def test_columns_are_read_as_they_are_named_where_one_alone_bears_watts(tmp_path):
    text = bare("700.00 W", "{g}")
    with pytest.raises(InputFileError, match="no power column"):
        read_as_an_import_does(tmp_path, text, Options(columns=("timestamp", "index", "power.limit")))
    with pytest.raises(InputFileError, match="has 3 columns, and --columns names 2"):
        read_as_an_import_does(tmp_path, text, Options(columns=("timestamp", "index")))
    names = ("timestamp", "index", "power.draw")
    got = read_as_an_import_does(tmp_path, text, Options(tz="UTC", columns=names))
    assert [e.devices for e in got.records[0].run.energy] == [("0",), ("1",)]


def test_either_importer_reads_a_log_without_a_header_alike(tmp_path):
    path = tmp_path / "log.csv"
    path.write_text(bare().replace(".000,", ".0,").replace("2026/03/02 ", "2026-03-02T"))
    found, other = (read_any(importer, path, UTC) for importer in (IMPORTER, nvidia_smi_bare.IMPORTER))
    assert joules(found) == joules(other) > 10_000


@pytest.mark.parametrize("name", ["index", "uuid", "pci.bus_id", "serial"])
@pytest.mark.parametrize("word", ["[Unknown Error]", "[N/A]", "N/A", ""])
@pytest.mark.parametrize("steps_ms", [(1000,), (200, 1000, 3000)], ids=["regular", "irregular"])
def test_one_row_that_does_not_tell_its_gpu_is_left_out_alone(tmp_path, name, word, steps_ms):
    lines, ms = [], 0
    for n in range(101):
        lines += [f"{stamp(ms)}, id{g}, 100.00 W" for g in range(2)]
        ms += steps_ms[n % len(steps_ms)]
    lines[100] = lines[100].replace("id0", word)
    text = f"timestamp, {name}, power.draw [W]\n" + "\n".join(lines) + "\n"
    got = read_text(IMPORTER, tmp_path, text, UTC)
    assert (got.rows, got.rows_rejected) == (202, 1)
    assert codes(got).count("CL202") == 1
    assert len(got.runs[0].energy) == 2
    held_s = (ms - steps_ms[100 % len(steps_ms)]) / 1000
    assert float(got.energy_j) == pytest.approx(200 * held_s, rel=0.02)


def test_a_column_of_ids_that_tells_all_goes_before_one_that_does_not(tmp_path):
    rows = [
        f"{stamp(1000 * s)}, {g}, {UUIDS[g] if s else '[N/A]'}, 100.00 W" for s in range(9) for g in (0, 1)
    ]
    text = "timestamp, index, uuid, power.draw [W]\n" + "\n".join(rows) + "\n"
    got = read_text(IMPORTER, tmp_path, text, UTC)
    assert got.rows_rejected == 0
    assert float(got.energy_j) == pytest.approx(1600)


@pytest.mark.parametrize("gpus", [2, 3, 8, 11, 16, 64])
@pytest.mark.parametrize("apart_ms", [0, 1, 3])
@pytest.mark.parametrize("steps_ms", [(1000,), (400, 1000, 3000)], ids=["regular", "irregular"])
def test_gpus_of_any_number_are_told_apart_by_their_place(tmp_path, gpus, apart_ms, steps_ms):
    rows, ms = [], 0
    for n in range(30):
        rows += [f"{stamp(ms + apart_ms * g)}, {100 + g}.00 W" for g in range(gpus)]
        ms += steps_ms[n % len(steps_ms)]
    got = read_text(IMPORTER, tmp_path, "timestamp, power.draw [W]\n" + "\n".join(rows) + "\n", UTC)
    assert "CL265" in codes(got)
    assert len(got.runs[0].energy) == gpus
    held_s = (ms - steps_ms[29 % len(steps_ms)]) / 1000
    assert float(got.energy_j) == pytest.approx(held_s * sum(range(100, 100 + gpus)), rel=0.01)


def test_gpus_whose_power_is_equal_differ_in_another_column(tmp_path):
    rows = [f"{stamp(1000 * s)}, 100.00 W, {40 + g}" for s in range(11) for g in range(2)]
    text = "timestamp, power.draw [W], temperature.gpu\n" + "\n".join(rows) + "\n"
    assert float(read_text(IMPORTER, tmp_path, text, UTC).energy_j) == pytest.approx(2000)


@pytest.mark.parametrize("apart_ms", [0, 3])
def test_gpus_that_nothing_tells_apart_give_no_energy(tmp_path, apart_ms):
    """One of three drops out now and then: whose a row is cannot be told."""
    rows = [
        f"{stamp(1000 * s + apart_ms * g)}, {100 + g}.00 W"
        for s in range(60)
        for g in range(3)
        if (s // 7 + g) % 3 or s % 2
    ]
    text = "timestamp, power.draw [W]\n" + "\n".join(rows) + "\n"
    with pytest.raises(InputFileError, match="several GPUs at a time") as error:
        read_text(IMPORTER, tmp_path, text, UTC)
    assert "uuid" in error.value.mend


@pytest.mark.parametrize("step_ms", [20, 50, 300, 1000])
def test_one_gpu_whose_log_pauses_is_one(tmp_path, step_ms):
    rows = [f"{stamp(step_ms * n + 10 * step_ms * (n // 100))}, {100 + n % 7}.00 W" for n in range(1000)]
    got = read_text(IMPORTER, tmp_path, "timestamp, power.draw [W]\n" + "\n".join(rows) + "\n", UTC)
    assert "CL265" not in codes(got)
    assert len(got.runs[0].energy) == 1


@pytest.mark.parametrize("told", [1, 5, 250])
def test_a_column_that_is_told_now_and_then_does_not_count(tmp_path, told):
    """It stands beside, with its failed readings; the one that is told throughout counts."""
    rows = "".join(
        f"{stamp(1000 * s)}, 0, 100.00 W, {'90.00 W' if s in range(3, 3 + told) else '[N/A]'}\n"
        for s in range(600)
    )
    text = "timestamp, index, power.draw [W], power.draw.instant [W]\n" + rows
    got = read_text(IMPORTER, tmp_path, text, UTC)
    assert float(got.energy_j) == pytest.approx(59_900)
    assert got.runs[0].energy[0].method == "nvidia-smi power.draw"


@pytest.mark.parametrize("bursts", [[30, 30], [20, 50, 35, 41, 28, 33, 47, 22]])
@pytest.mark.parametrize("step_ms", [10, 12, 15])
def test_one_gpu_in_a_quick_loop_that_was_started_anew_is_one(tmp_path, bursts, step_ms):
    rows, at = [], 0
    for size in bursts:
        rows += [f"{stamp(at + step_ms * n)}, {100 + n % 7}.00 W" for n in range(size)]
        at += step_ms * size + 5_000
    got = read_text(IMPORTER, tmp_path, "timestamp, power.draw [W]\n" + "\n".join(rows) + "\n", UTC)
    (record,) = got.records
    assert len(record.run.energy) == 1
    assert 100 <= record.measured.mean_power_w <= 106


def test_a_column_that_nobody_reads_may_be_renamed(tmp_path):
    head = "timestamp, index, power.draw [W], {}\n"
    row = "{}, 0, 100.00 W, 0x0000\n"
    first = "".join(row.format(stamp(1000 * n)) for n in range(5))
    later = "".join(row.format(stamp(1000 * n)) for n in range(5, 10))
    text = head.format("clocks_throttle_reasons.active") + first
    text += head.format("clocks_event_reasons.active") + later
    got = read_text(IMPORTER, tmp_path, text, UTC)
    assert (got.rows, got.rows_rejected, len(got.records)) == (10, 0, 1)
