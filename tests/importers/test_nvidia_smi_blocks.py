"""Large logs of nvidia-smi by columns: what comes out is what the row path alone gives."""

from contextlib import ExitStack
from unittest.mock import patch

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from carbonlens.errors import InputFileError
from carbonlens.importers import nvidia_smi, nvidia_smi_blocks
from carbonlens.importers.contract import Group, Options
from carbonlens.importers.harvest import harvest
from carbonlens.importers.nvidia_smi import IMPORTER
from carbonlens.importers.sources import Source

UUIDS = ("GPU-11111111-2222-3333-4444-555555555555", "GPU-aaaaaaaa-2222-3333-4444-555555555556")
HEADS = {
    "timestamp, index, power.draw [W]": "{t}, {i}, {w}",
    "timestamp, uuid, power.draw.instant [W], power.draw [W], name": "{t}, {u}, {w}, {v}, A100",
    "timestamp, power.draw [W], utilization.gpu [%]": "{t}, {w}, 5 %",
    "timestamp,index,uuid,power.draw": "{t},{i},{u},{w}",
}
STRANGE = (
    *("[N/A]", "N/A", "", "-5.00 W", "1e3 W", "5.5", "5.50 mW", "inf W", ".5 W", "5. W", "1.2.3 W", "x"),
    *("00012.50 W", "123456789012345.12 W", "5.5  W", "5.5 W ", "1 234.00 W", '"5.00 W"', "٣ W", "5_0.0 W"),
    *("9.99 w", "1,5 W", "22.8", "4.35 kW", "[Not Supported]", "\ufffd", "0.00 W"),
)
STAMPS = (
    *(
        "2026/10/25 02:30:00.000",
        "2026/03/29 02:30:00.000",
        "2026-01-01 00:00:00.000",
        "1969/01/01 00:00:00.000",
    ),
    *("2026/02/30 00:00:00.000", "2026/01/01 24:00:00.000", "2026/01/01 00:00:00", "2026/13/01 00:00:00.000"),
    *("x", "", "2026/01/01 00:00:00.0001", "9999/01/01 00:00:00.000"),
)
ZONES = (None, "UTC", "Europe/Paris", "Australia/Lord_Howe")


def by(path, options, *, columns):
    """Read a log by columns, or by rows alone."""
    with ExitStack() as stack:
        # What the first rows tell of the others is the same either way.
        stack.enter_context(patch.object(nvidia_smi, "_LOOK_AHEAD", 4))
        stack.enter_context(patch.object(nvidia_smi_blocks, "BLOCK_BYTES", 300))
        if not columns:
            stack.enter_context(patch.object(nvidia_smi._Log, "_may_be_plain", lambda *_: False))
        try:
            return harvest(IMPORTER, Group((Source(path),)), options)
        except InputFileError as error:
            return str(error)


def assert_same(path, options):
    got, plain = by(path, options, columns=True), by(path, options, columns=False)
    if isinstance(plain, str):
        assert got == plain
        return
    assert (got.rows, got.rejected, got.repeated) == (plain.rows, plain.rejected, plain.repeated)
    assert got.findings == plain.findings
    assert [r.run for r in got.records] == [r.run for r in plain.records]
    for one, other in zip(got.records, plain.records, strict=True):
        assert one.measured.samples == other.measured.samples
        assert_same_power(one.measured.mean_power_w, other.measured.mean_power_w)


def assert_same_power(got_w, plain_w):
    """Unknown on both ways, where a GPU told nothing; else the same."""
    assert (got_w is None) == (plain_w is None)
    if plain_w is not None:
        assert got_w == pytest.approx(plain_w, rel=1e-12)


@st.composite
def logs(draw):
    """Draw a log that is mostly plain: a regular begin, by which both ways know it, and what follows."""
    head = draw(st.sampled_from(list(HEADS)))
    lines, gpus = [head], draw(st.sampled_from([1, 2])) if "index" in head or "uuid" in head else 1
    has_units = draw(st.booleans())
    for n in range(draw(st.integers(8, 60))):
        second, milli = draw(st.integers(0, 59)), draw(st.integers(0, 999))
        cells = {
            "t": f"2026/10/25 0{n // 60 % 3}:{n % 60:02}:{second:02}.{milli:03}",
            "i": n % gpus,
            "u": UUIDS[n % gpus],
            "w": f"{draw(st.floats(0, 900)):.2f}" + (" W" if has_units else ""),
            "v": f"{draw(st.integers(0, 90000)) / 100}" + (" W" if has_units else ""),
        }
        if n >= 4 and draw(st.integers(0, 14)) == 0:
            place = draw(st.sampled_from(["t", "i", "u", "w", "v"]))
            cells[place] = draw(st.sampled_from(STAMPS if place == "t" else STRANGE))
        line = HEADS[head].format(**cells)
        kinds = ["whole"] * 20 + ["cut", "longer", "blank", "header", "padded", "twice"]
        kinds += ["other header"] if draw(st.integers(0, 9)) == 0 else []
        kind = draw(st.sampled_from(kinds)) if n >= 4 else "whole"
        lines += {
            "cut": [line[: draw(st.integers(1, len(line)))]],
            "longer": [line + ","],
            "blank": ["", line, "  "],
            "header": [head, line],
            "other header": [", ".join(head.replace(", ", ",").split(",")[::-1]), line],
            "padded": [line + "\0\0"],
            "twice": [line, line],
        }.get(kind, [line])
    end = draw(st.sampled_from(["\n", "\n", "\r\n"]))
    content = end.join(lines).encode()
    if draw(st.integers(0, 9)) == 0:
        content = content[:-9] + b"\xff" + content[-9:]
    return content + (end.encode() if draw(st.booleans()) else b"")


@pytest.mark.parametrize("is_large", [False, True])
def test_two_boards_of_one_index_are_two_gpus(tmp_path, is_large):
    """Logs of two machines joined: each counts index 0, and stands for as long as it was logged."""
    head, rows = "timestamp,index,uuid,power.draw", range(200 if is_large else 3)
    one = [f"2026/10/25 00:{n // 60:02}:{n % 60:02}.000,0,{UUIDS[0]},100.00" for n in rows]
    other = [f"2026/10/25 00:{n // 60:02}:{n % 60:02}.000,0,{UUIDS[1]},300.00" for n in rows]
    path = tmp_path / "gpu.csv"
    path.write_text("\n".join([head, *one, *other]) + "\n")
    (record,) = by(path, Options(tz="UTC"), columns=True).records
    first, second = record.run.energy
    assert first.devices == (UUIDS[0],)
    assert second.devices == (UUIDS[1],)
    assert float(second.energy_j) == pytest.approx(3 * float(first.energy_j))
    assert float(first.energy_j) == pytest.approx(100 * rows[-1], rel=0.01)
    assert_same(path, Options(tz="UTC"))


@pytest.mark.slow
@settings(max_examples=400, deadline=None)
@given(content=logs(), zone=st.sampled_from(ZONES))
def test_whatever_a_log_holds_columns_come_to_the_same(tmp_path_factory, content, zone):
    path = tmp_path_factory.mktemp("columns") / "gpu.csv"
    path.write_bytes(content)
    assert_same(path, Options(tz=zone))


@pytest.mark.parametrize("head", HEADS)
def test_a_plain_log_goes_by_columns(tmp_path, head):
    path = tmp_path / "gpu.csv"
    row = HEADS[head]
    lines = [
        row.format(
            t=f"2026/01/01 00:{n // 60:02}:{n % 60:02}.500", i=0, u=UUIDS[0], w=f"{n}.25 W", v="7.00 W"
        )
        for n in range(200)
    ]
    path.write_text("\n".join([head, *lines]) + "\n")
    assert_same(path, Options(tz="UTC"))
    met = []
    plain = nvidia_smi_blocks.plain
    with patch.object(nvidia_smi_blocks, "plain", lambda *a: met.append(plain(*a)) or met[-1]):
        by(path, Options(tz="UTC"), columns=True)
    assert len(met) > 5
    assert None not in met
