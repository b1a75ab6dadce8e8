"""Rows that no column tells apart: of several GPUs, or of one that is read more often at times."""

import numpy as np
import pytest

from carbonlens.errors import InputFileError
from carbonlens.importers import nvidia_smi
from carbonlens.importers.contract import Options
from carbonlens.importers.nvidia_smi import IMPORTER
from tests.importers.reading import codes, read_text
from tests.importers.test_nvidia_smi_looks import stamp

UTC = Options(tz="UTC")
HEAD = "timestamp, power.draw [W]\n"
RNG = np.random.default_rng(5)
ONE_GPU = {
    "steady": lambda ms: 100 + RNG.integers(0, 2, len(ms)) / 100,
    "noise": lambda ms: RNG.normal(200, 10, len(ms)),
    "wandering": lambda ms: 300 + np.cumsum(RNG.normal(0, 1, len(ms))),
    "rising": lambda ms: 60 + ms * 600 / ms[-1] + RNG.normal(0, 0.05, len(ms)),
    "in waves": lambda ms: 300 + 200 * np.sin(ms / 170),
    "read slowly": lambda ms: np.round(RNG.normal(200, 10, len(ms)))[(ms // 20).astype(int) % 97],
}


def text_of(rows):
    return HEAD + "".join(f"{stamp(round(ms))}, {watts:.2f} W\n" for ms, watts in rows)


def refused(tmp_path, text):
    with pytest.raises(InputFileError, match="several GPUs at a time") as error:
        read_text(IMPORTER, tmp_path, text, UTC)
    assert "index or uuid" in error.value.mend
    return str(error.value)


@pytest.mark.parametrize(("step_ms", "size"), [(1, 40), (2, 50), (5, 37), (5, 20), (8, 30), (5, 8), (30, 6)])
@pytest.mark.parametrize("power", ONE_GPU)
def test_one_gpu_in_a_loop_that_pauses_regularly_is_never_several(tmp_path, step_ms, size, power):
    """As a log does whose writer stands still each time that a buffer is full."""
    n = np.arange(40 * size)
    ms = step_ms * n + 12.0 * step_ms * (n // size)
    refused(tmp_path, text_of(zip(ms, ONE_GPU[power](ms), strict=True)))


@pytest.mark.parametrize("gpus", [2, 4, 8])
@pytest.mark.parametrize("apart_ms", [0.4, 3, 20])
def test_gpus_whose_power_goes_up_and_down_keep_levels_of_their_own(tmp_path, gpus, apart_ms):
    """They work together, so what they have in common is more than what tells them apart."""
    load = np.repeat(RNG.uniform(0, 400, 40), 10)
    own = np.arange(gpus) * 37 % 50
    rows = [
        (1000 * s + apart_ms * g, 100 + load[s] + own[g] + RNG.normal(0, 5))
        for s in range(len(load))
        for g in range(gpus)
    ]
    got = read_text(IMPORTER, tmp_path, text_of(rows), UTC)
    assert "CL265" in codes(got)
    assert float(got.energy_j) == pytest.approx(sum(w for _, w in rows[:-gpus]), rel=0.01)


LOOPS = [
    (gpus, pause_ms, apart_ms)
    for gpus in (2, 4, 8, 16)
    for pause_ms in (100, 200, 1000)
    for apart_ms in (3, 10)
    # A slow driver that is hardly through when it is asked again looks like one GPU in a loop.
    if apart_ms == 3 or apart_ms * (gpus - 1) * 5 <= pause_ms
]


@pytest.mark.parametrize(("gpus", "pause_ms", "apart_ms"), LOOPS)
@pytest.mark.parametrize("spread_w", [0.1, 40])
@pytest.mark.parametrize("bursts", [3, 60])
def test_an_ordinary_loop_over_gpus_is_told_by_its_pauses(
    tmp_path, gpus, pause_ms, apart_ms, spread_w, bursts
):
    """Of alike GPUs: what each draws tells nothing."""
    rows, ms = [], 0.0
    for _ in range(bursts):
        for _ in range(gpus):
            rows.append((round(ms), RNG.normal(250, spread_w)))
            ms += max(RNG.normal(apart_ms, 1), 0)
        ms += pause_ms
    got = read_text(IMPORTER, tmp_path, text_of(rows), UTC)
    assert "CL265" in codes(got)
    seconds = (rows[-1][0] - rows[gpus - 1][0]) / 1e3
    assert float(got.energy_j) == pytest.approx(gpus * 250 * seconds, rel=0.25 if bursts == 3 else 0.05)


@pytest.mark.parametrize(
    ("gpus", "apart_ms", "pause_ms"), [(8, 10, 30), (2, 50, 150), (4, 20, 40), (8, 50, 150)]
)
@pytest.mark.parametrize("spread_w", [1, 40])
def test_gpus_of_a_driver_that_is_hardly_through_are_never_taken_for_one(
    tmp_path, gpus, apart_ms, pause_ms, spread_w
):
    rows, ms = [], 0.0
    for _ in range(100):
        for gpu in range(gpus):
            rows.append((round(ms), 100 * (gpu + 1) * (spread_w == 1) + RNG.normal(300, spread_w)))
            ms += apart_ms if gpu < gpus - 1 else pause_ms
    # Levels of their own tell nothing: one GPU that a script reads twice a step of its work has them, too.
    refused(tmp_path, text_of(rows))


@pytest.mark.parametrize("step_ms", [2.5, 10.5, 100.4])
@pytest.mark.parametrize("jitter_ms", [0, 0.4, 2])
def test_one_gpu_in_a_loop_is_one_gpu(tmp_path, step_ms, jitter_ms):
    """Stamps of milliseconds make its steps differ by one, in turn."""
    ms = np.cumsum(np.maximum(step_ms + RNG.normal(0, jitter_ms, 2000), 1))
    got = read_text(IMPORTER, tmp_path, text_of([(t, 200.0) for t in ms]), UTC)
    assert float(got.energy_j) == pytest.approx(0.2 * (ms[-1] - ms[0]), rel=0.01)


def test_stamps_of_whole_seconds_tell_no_gpus_apart(tmp_path):
    """One GPU twice a second, or two once a second."""
    text = HEAD + "".join(f"{stamp(n // 2 * 1000)[:-4]}, {100 + n % 7}.00 W\n" for n in range(400))
    refused(tmp_path, text)


@pytest.mark.parametrize("form", ["{}, {:.2f} W", '{}, "{:.2f} W"'], ids=["by blocks", "by rows"])
@pytest.mark.parametrize("is_fine", [True, False])
def test_a_gpu_that_joins_after_the_first_rows_is_found(tmp_path, form, is_fine):
    rows = [
        (1000 * s + 3 * g, 100.0 + 200 * g + s % 5)
        for s in range(2 * nvidia_smi._LOOK_AHEAD)
        for g in range(2)
        if not g or s > nvidia_smi._LOOK_AHEAD + 900
    ]
    # Some hours: the stamp of the other tests has minutes alone.
    lines = [
        form.format(
            f"2026/03/0{1 + ms // 3_000_000 // 20} {ms // 3_000_000 % 20:02}{stamp(ms % 3_000_000)[13:]}", w
        )
        for ms, w in rows
    ]
    if not is_fine:
        lines = [line[:19] + line[23:] for line in lines]
    refused(tmp_path, HEAD + "\n".join(lines) + "\n")


def test_a_gpu_that_joins_late_in_the_first_rows_is_found(tmp_path):
    refused(
        tmp_path, text_of((1000 * s + 3 * g, 100.0 + g) for s in range(900) for g in range(1 + (s > 860)))
    )


@pytest.mark.parametrize("left", [1, 3])
def test_a_gpu_that_leaves_after_the_first_rows_is_found(tmp_path, monkeypatch, left):
    monkeypatch.setattr(nvidia_smi, "_LOOK_AHEAD", 200)
    rows = [(1000 * s + g, 100.0 + 50 * g) for s in range(900) for g in range(2 if s < 500 else left)]
    refused(tmp_path, text_of(rows))


@pytest.mark.parametrize(
    "steps_ms", [[1000] * 600 + [20] * 600, [20] * 600 + [1000] * 600, [1000, 990, 2] * 3]
)
def test_a_loop_that_was_started_anew_with_another_step_is_one_gpu(tmp_path, monkeypatch, steps_ms):
    monkeypatch.setattr(nvidia_smi, "_LOOK_AHEAD", 300)
    at = np.cumsum([0, *steps_ms])
    got = read_text(IMPORTER, tmp_path, text_of((ms, 100 + n % 7) for n, ms in enumerate(at)), UTC)
    assert len(got.runs[0].energy) == 1
    assert 100 <= got.records[0].measured.mean_power_w <= 106


def test_equal_rows_may_be_of_several_gpus(tmp_path):
    got = read_text(IMPORTER, tmp_path, text_of((1000 * s, 25.0) for s in range(50) for _ in range(2)), UTC)
    (energy,) = got.runs[0].energy
    assert (float(energy.energy_j), energy.state) == (pytest.approx(25 * 49), "unbounded")
    assert "CL298" in codes(got)


def test_a_column_that_was_asked_for_twice_is_one(tmp_path):
    text = "timestamp, index, power.draw [W], power.draw [W]\n"
    text += "".join(f"{stamp(1000 * s)}, 0, 100.00 W, 100.00 W\n" for s in range(50))
    got = read_text(IMPORTER, tmp_path, text, UTC)
    assert got.records[0].measured.samples == 50
    assert "CL126" not in codes(got)
