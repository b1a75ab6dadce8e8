"""Windows shorter than a GPU counter's step: what is known is told, and no more than can have been drawn."""

import pytest

from carbonlens.domain.units import US_PER_S
from carbonlens.metering.sealing import Sample, seal
from carbonlens.metering.sensors import Channel, SensorInfo

LIMIT_W = 700.0
STEP_S = 0.1


def described(name, kind, unit, grade, component="gpu"):
    return SensorInfo(
        name=name,
        kind=kind,
        unit=unit,
        scope="board",
        boundary="device",
        grade=grade,
        update_period_s=STEP_S,
        channels=(Channel(device="GPU-1", component=component, rated_w=LIMIT_W),),
        method=name,
        gain_sigma=0.025,
        lag_s=0.01,
        lag_sigma_s=0.005,
        duty=0.25 if unit == "W" else None,
    )


COUNTER = described("nvml_energy", "cumulative", "J", "B")
POWER = described("nvml_power", "instant", "W", "C")


def short_run(window_s, watts, *, moves, sensors=(COUNTER, POWER)):
    """Seal a run of a board of constant power whose counter moves within it, by all of its step, or not."""
    rows = ((0, 1000.0), (window_s, 1000.0 + watts * STEP_S * moves))
    samples = [
        Sample(int(t * US_PER_S), tuple((j,) if s.unit == "J" else (watts,) for s in sensors))
        for t, j in rows
    ]
    return seal(sensors, samples, start_us=0, window_us=int(window_s * US_PER_S))


@pytest.mark.parametrize("moves", [False, True])
@pytest.mark.parametrize("watts", [60.0, 75.0, 240.0, 600.0, 700.0])
@pytest.mark.parametrize("window_s", [0.005, 0.02, 0.05, 0.09])
def test_a_short_run_is_power_times_time_within_what_the_board_can_draw(window_s, watts, moves):
    result = short_run(window_s, watts, moves=moves)
    (gpu,) = result.readings
    assert gpu.method == "nvml_power"
    assert float(gpu.energy_j) == pytest.approx(watts * window_s, rel=1e-3)
    estimate = gpu.estimate
    # A reading near the limit is as wide as its own error makes it.
    assert estimate.high <= max(LIMIT_W, 1.3 * watts) * window_s * 1.001
    assert estimate.low > 0
    if watts < LIMIT_W / 3:
        # Between two readings the board may have worked at its limit, or been idle.
        assert estimate.high == pytest.approx(LIMIT_W * window_s, rel=1e-3)
        assert estimate.low <= 0.17 * LIMIT_W * window_s
    (said,) = [f for f in result.findings if f.code == "CL114"]
    assert f"the work took {window_s:.2g} s, less than the 0.1 s from one step of nvml_energy" in said.message
    assert "nvml_power" in said.message


@pytest.mark.parametrize("window_s", [0.02, 0.05, 0.09])
def test_a_counters_step_alone_says_no_more_than_it_knows(window_s):
    # Nothing tells the power: the step of 0.1 s is all there is, and the window saw a part of it.
    (gpu,) = short_run(window_s, 75.0, moves=True, sensors=(COUNTER,)).readings
    assert gpu.estimate.low <= 75.0 * window_s <= gpu.estimate.high
    assert gpu.estimate.high <= 20 * LIMIT_W * window_s


def test_a_counter_that_never_moved_is_no_zero():
    result = short_run(0.05, 75.0, moves=False, sensors=(COUNTER,))
    assert [r.energy_j for r in result.readings if r.component == "gpu"] == [None]


def test_a_window_of_several_steps_is_the_counters():
    rows = [Sample(int(t * 1e5), ((1000.0 + 7.5 * t,), (75.0,))) for t in range(6)]
    result = seal((COUNTER, POWER), rows, start_us=0, window_us=500_000)
    (gpu,) = result.readings
    assert gpu.method == "nvml_energy"
    assert not [f for f in result.findings if f.code == "CL114"]
