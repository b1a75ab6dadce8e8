"""Steps between rows: of several GPUs that are read one after the other, or of one GPU's loop."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from carbonlens.importers import nvidia_smi
from carbonlens.importers.nvidia_smi import IMPORTER
from carbonlens.importers.nvidia_smi_periods import period_of
from carbonlens.importers.nvidia_smi_rows import are_mixed, bursts_of
from tests.importers.reading import codes, read_text
from tests.importers.test_nvidia_smi_looks import stamp
from tests.importers.test_nvidia_smi_rows import HEAD, UTC, refused, text_of

RNG = np.random.default_rng(7)
TICK_MS = 15.625
STALLS = ("none", "100 ms", "1 s", "a minute", "1 %")
SEEDS = st.integers(0, 2**32 - 1)


def ragged(steps_ms, rng, jitter, stall):
    """Return times whose steps are uneven by a share, and stand still once or in each hundredth."""
    steps_ms = steps_ms * np.maximum(1 + rng.normal(0, jitter, len(steps_ms)), 0.05)
    once_ms = {"100 ms": 100, "1 s": 1_000, "a minute": 60_000}.get(stall)
    if once_ms:
        steps_ms[rng.integers(len(steps_ms))] += once_ms
    elif stall == "1 %":
        steps_ms += (rng.random(len(steps_ms)) < 0.01) * rng.uniform(50, 300, len(steps_ms))
    return np.cumsum(steps_ms)


def told(ms, watts, told_in_us=1000.0):
    """Return what times in whole milliseconds tell."""
    times_us = (np.floor(ms) * 1000.0).tolist()
    rows = [(f"{t:.0f}", f"{w:.2f} W") for t, w in zip(times_us, watts, strict=True)]
    found = bursts_of(times_us, rows, time=0, told_in_us=told_in_us)
    if found is not None:
        return found.told
    return "unclear" if are_mixed(times_us, rows, told_in_us=told_in_us, lasting=[]) else "one"


@settings(max_examples=60, deadline=None)
@given(
    gpus=st.integers(2, 64),
    step_ms=st.sampled_from([4, 5, 10, 15, 20, 50, 100, 200]),
    times=st.floats(1.8, 12),
    unrest=st.tuples(st.floats(0, 0.2), st.sampled_from(STALLS)),
    bursts=st.integers(40, 200),
    seed=SEEDS,
)
def test_gpus_that_are_read_one_after_the_other_are_never_one(gpus, step_ms, times, unrest, bursts, seed):
    """However short the pause, whatever they draw."""
    rng = np.random.default_rng(seed)
    steps_ms = np.full(gpus * bursts, float(step_ms))
    steps_ms[gpus - 1 :: gpus] = step_ms * times
    ms = ragged(steps_ms, rng, *unrest)[:4096]
    assert told(ms, rng.normal(300, 40, len(ms))) != "one"


@settings(max_examples=60, deadline=None)
@given(
    step_ms=st.sampled_from([10, 16, 20, 31, 50, 100, 200, 1000]) | st.floats(16, 400),
    jitter=st.floats(0, 0.25),
    stall=st.sampled_from(STALLS),
    rows=st.integers(150, 4096),
    is_coarse=st.booleans(),
    seed=SEEDS,
)
def test_one_gpu_in_a_steady_loop_is_one(step_ms, jitter, stall, rows, is_coarse, seed):
    """Also by a clock that goes on by ticks: each second, third or fifth step is then longer by one."""
    rng = np.random.default_rng(seed)
    if is_coarse:
        step_ms = max(step_ms, 20)
    ms = ragged(np.full(rows, float(step_ms)), rng, jitter if not is_coarse else jitter / 3, stall)
    if is_coarse:
        ms = np.floor(ms / TICK_MS) * TICK_MS
    assert told(ms, rng.normal(300, 40, rows)) == "one"


@settings(max_examples=60, deadline=None)
@given(
    phases_ms=st.lists(st.floats(10, 200), min_size=2, max_size=8),
    levels_w=st.lists(st.floats(50, 700), min_size=8, max_size=8),
    jitter=st.floats(0, 0.1),
    stall=st.sampled_from(STALLS),
    steps=st.integers(20, 300),
    seed=SEEDS,
)
def test_one_gpu_that_a_script_reads_in_each_phase_of_its_work_is_never_several(
    phases_ms, levels_w, jitter, stall, steps, seed
):
    """Power follows the work, and so do the readings."""
    rng = np.random.default_rng(seed)
    phases_ms = [max(p, max(phases_ms) / 4) for p in phases_ms]
    ms = ragged(np.tile(phases_ms, steps), rng, jitter, stall)
    watts = np.tile(levels_w[: len(phases_ms)], steps) + rng.normal(0, 3, len(ms))
    assert told(ms, watts) != "several"


@settings(max_examples=30, deadline=None)
@given(
    step_ms=st.sampled_from([50, 100, 1000]),
    share=st.floats(0.15, 0.35),
    jitter=st.floats(0, 0.05),
    before=st.integers(0, 3500),
    seed=SEEDS,
)
def test_a_gpu_that_joins_among_rows_leaves_a_period(step_ms, share, jitter, before, seed):
    rng = np.random.default_rng(seed)
    pair = [share * step_ms, (1 - share) * step_ms]
    ms = ragged(np.append(np.full(before, float(step_ms)), np.tile(pair, 300)), rng, jitter, "none")
    assert period_of(np.floor(ms) * 1000.0, 1000.0).size % 2 == 0


@pytest.mark.parametrize(
    ("step_ms", "late_ms"), [(50, 20), (50, 30), (100, 30), (100, 60), (200, 30), (200, 60)]
)
def test_one_gpu_whose_driver_is_late_once_in_each_step_of_the_work_is_one(step_ms, late_ms):
    for seed in range(12):
        rng = np.random.default_rng(seed)
        lasts_ms = rng.uniform(6, 30) * step_ms
        ms, rows = 0.0, []
        while len(rows) < 3000:
            step = step_ms + 4 + rng.exponential(1)
            is_late = (ms + step) // lasts_ms != ms // lasts_ms
            ms += step + late_ms * is_late
            rows.append(ms)
        assert told(np.array(rows), rng.normal(200, 30, len(rows))) == "one", seed


@pytest.mark.parametrize(
    ("rows", "step_ms", "pause_ms"),
    [(5, 1000, 56_000), (10, 1004, 50_000), (10, 104, 60_000), (16, 104, 10_000), (2, 1000, 5_000)],
)
def test_one_gpu_in_short_sessions_of_one_length_is_never_several(rows, step_ms, pause_ms):
    steps_ms = np.full(rows * 40, float(step_ms))
    steps_ms[rows - 1 :: rows] = pause_ms
    ms = np.cumsum(steps_ms)
    assert told(ms, RNG.normal(100, 8, len(ms))) in ("one", "unclear")


@pytest.mark.parametrize("steps_ms", [(3, 20, 3, 20, 3, 100), (0.4, 0.4, 12, 0.4, 0.4, 40), (5, 30, 5, 190)])
def test_gpus_of_which_some_take_longer_are_not_fewer(steps_ms):
    """Bursts of two or three rows come in bursts themselves."""
    ms = np.cumsum(np.tile(steps_ms, 60))
    assert told(ms, np.tile(100.0 * np.arange(len(steps_ms)), 60)) == "unclear"


@pytest.mark.parametrize("step_ms", [4, 5, 7.8125, 8, 10, 12, 15])
def test_one_gpu_in_a_loop_quicker_than_a_clock_is_never_several(step_ms):
    """Two or three rows bear one stamp then."""
    ms = np.floor(step_ms * np.arange(3000) / TICK_MS) * TICK_MS
    assert told(ms, RNG.normal(300, 40, 3000)) != "several"


@pytest.mark.parametrize("apart_ms", [1, 5, 16])
def test_gpus_of_a_coarse_clock_are_told_by_long_pauses(apart_ms):
    ms = np.cumsum(np.tile([apart_ms] * 3 + [1_007], 60))
    ms = np.floor(ms / TICK_MS) * TICK_MS
    assert told(ms, RNG.normal(300, 40, len(ms))) == "several"


def test_a_period_is_told_with_its_size_and_steps():
    steps_ms = np.tile([10.0, 10, 10, 30], 100)
    found = period_of(np.cumsum(steps_ms) * 1000, 1000.0)
    assert (found.size, found.short_us, found.long_us) == (4, 10_000, 30_000)
    assert period_of(np.cumsum(np.tile([2.0, 3], 100)) * 1000, 1000.0) is None, "rounded"
    assert period_of(np.cumsum(np.tile([2_000.0, 3_000], 100)) * 1000, 1000.0) is None, (
        "no driver takes so long"
    )
    assert period_of(np.arange(10.0), 1.0) is None


@pytest.mark.parametrize("stall_ms", [100, 1_000, 60_000])
def test_a_log_that_stood_still_once_hides_no_gpus(tmp_path, stall_ms):
    steps_ms = np.tile([10] * 7 + [30], 100)
    steps_ms[403] += stall_ms
    ms = np.cumsum(steps_ms)
    refused(tmp_path, text_of(zip(ms, RNG.normal(300, 40, len(ms)), strict=True)))


@pytest.mark.parametrize(("step_ms", "rest_ms"), [(60, 100), (100, 190), (50, 150), (16, 31)])
def test_one_gpu_read_before_and_after_each_step_is_refused(tmp_path, step_ms, rest_ms):
    """Nobody can tell it from two."""
    ms = np.cumsum(np.tile([step_ms, rest_ms], 100))
    watts = np.tile([80, 300], 100) + RNG.normal(0, 3, 200)
    assert "steps of two lengths in turn" in refused(tmp_path, text_of(zip(ms, watts, strict=True)))


@pytest.mark.parametrize(("gpus", "apart_ms", "pause_ms"), [(20, 15, 400), (32, 10, 300), (64, 12, 900)])
@pytest.mark.parametrize("own_w", [0, 7])
def test_more_gpus_than_most_machines_have_are_not_one(tmp_path, gpus, apart_ms, pause_ms, own_w):
    ms = np.cumsum(np.tile([apart_ms] * (gpus - 1) + [pause_ms], 40))
    watts = np.tile(100 + own_w * np.arange(gpus), 40) + RNG.normal(0, 1, len(ms))
    refused(tmp_path, text_of(zip(ms, watts, strict=True)))


def days(ms):
    """Return a stamp of a log of hours."""
    minutes, rest = divmod(round(ms), 3_000_000)
    return f"2026/03/{1 + minutes // 20:02} {minutes % 20:02}{stamp(rest)[13:]}"


@pytest.mark.parametrize("form", ["{}, {:.2f} W", '{}, "{:.2f} W"'], ids=["by blocks", "by rows"])
@pytest.mark.parametrize(("before", "after"), [(5_000, 5_000), (5_000, 700), (50_000, 9_000)])
@pytest.mark.parametrize("jitter", [0, 0.1])
def test_a_gpu_that_joins_later_a_little_behind_the_other_is_found(tmp_path, form, before, after, jitter):
    steps_ms = np.append(np.full(before, 100.0), np.tile([30.0, 70.0], after))
    ms = ragged(steps_ms, np.random.default_rng(3), jitter, "none")
    lines = [form.format(days(t), w) for t, w in zip(ms, RNG.normal(200, 5, len(ms)), strict=True)]
    refused(tmp_path, HEAD + "\n".join(lines) + "\n")


@pytest.mark.parametrize("form", ["{}, {:.2f} W", '{}, "{:.2f} W"'], ids=["by blocks", "by rows"])
@pytest.mark.parametrize("is_coarse", [False, True])
@pytest.mark.parametrize("stall", STALLS)
def test_one_gpu_stays_one_over_a_long_log(tmp_path, form, is_coarse, stall):
    ms = ragged(np.full(60_000, 50.0), np.random.default_rng(4), 0 if is_coarse else 0.2, stall)
    if is_coarse:
        ms = np.floor(ms / TICK_MS) * TICK_MS
    lines = [form.format(days(np.floor(t)), 200) for t in ms]
    got = read_text(IMPORTER, tmp_path, HEAD + "\n".join(lines) + "\n", UTC)
    assert len(got.runs[0].energy) == 1


@pytest.mark.parametrize("is_nan", [False, True])
def test_rows_that_are_written_twice_later_are_of_no_other_gpu(tmp_path, monkeypatch, is_nan):
    monkeypatch.setattr(nvidia_smi, "_LOOK_AHEAD", 200)
    cell = "[N/A]" if is_nan else "100.00 W"
    rows = [
        f"{stamp(100 * n)}, {cell if n > 300 else '100.00 W'}"
        for n in range(900)
        for _ in range(1 + (n > 300))
    ]
    got = read_text(IMPORTER, tmp_path, HEAD + "\n".join(rows) + "\n", UTC)
    assert len(got.runs[0].energy) == 1


BOARDS = {
    "name": ["NVIDIA A100", "NVIDIA H100", "Tesla T4", "Tesla V100"],
    "power.limit [W]": ["300.00 W", "350.00 W", "310.00 W", "320.00 W"],
    "memory.total [MiB]": ["24564 MiB", "81559 MiB", "16384 MiB", "81920 MiB"],
}


def of_boards(column, boards, steps_ms, bursts=60):
    """Return a log whose rows state a board each."""
    ms = np.cumsum(np.tile(steps_ms, bursts))
    rows = [f"{stamp(int(t))}, 200.00 W, {boards[n % len(boards)]}\n" for n, t in enumerate(ms)]
    return f"timestamp, power.draw [W], {column}\n" + "".join(rows)


@pytest.mark.parametrize("column", BOARDS)
@pytest.mark.parametrize("steps_ms", [(50, 50, 50, 150), (20, 20, 20, 40), (10, 10, 10, 60)])
def test_each_place_of_a_board_of_its_own_is_a_gpu(tmp_path, column, steps_ms):
    got = read_text(IMPORTER, tmp_path, of_boards(column, BOARDS[column], steps_ms), UTC)
    assert "CL265" in codes(got)
    seconds = 59 * sum(steps_ms) / 1e3
    assert float(got.energy_j) == pytest.approx(4 * 200 * seconds, rel=0.01)


@pytest.mark.parametrize("column", BOARDS)
@pytest.mark.parametrize("boards", [[0, 0, 0, 0], [0, 1, 0, 1]])
def test_boards_that_do_not_differ_tell_no_places(tmp_path, column, boards):
    """Two boards that were read twice before a pause are no four."""
    told = [BOARDS[column][n] for n in boards]
    refused(tmp_path, of_boards(column, told, (50, 50, 50, 150)))


def test_boards_that_come_in_turn_at_even_steps_are_no_one(tmp_path):
    refused(tmp_path, of_boards("name", BOARDS["name"][:2], (500, 500)))
    limited = of_boards("power.limit [W]", BOARDS["power.limit [W]"][:2], (500, 500))
    assert len(read_text(IMPORTER, tmp_path, limited, UTC).runs[0].energy) == 1, "a limit may be set"
