"""Every fault of a driver, at every moment of a window, for sensors of every kind."""

import statistics
import time

import pytest

from tests.faults.kinds import ERRORS, GPU, KINDS, SHARE, KindWorld
from tests.faults.windows import MOMENTS, OURS_S, Zeroing, check, measure, patiently

FAULTS = tuple(KindWorld("cumulative").faults)
WAITS: list[tuple[float, float]] = []


@pytest.fixture(scope="module", autouse=True)
def waits():
    """Print what the edges took."""
    yield
    if WAITS:
        starts, stops = (statistics.median(column) * 1e3 for column in zip(*WAITS, strict=True))
        print(f"\n{len(WAITS)} windows: start {starts:.1f} ms, stop {stops:.1f} ms (medians)")


def made(kind, **more):
    world = KindWorld(kind, **more)
    sensors = (world.sensor,)
    if kind == "use":
        # Who used a device is said of the energy that another sensor reads.
        sensors = (KindWorld("cumulative").sensor, world.sensor)
    return world, sensors


def check_share(window):
    shares = {r.own_share for r in window.run.energy if r.devices == (GPU,)}
    assert all(s is None or s == pytest.approx(SHARE, abs=0.02) for s in shares), shares


@pytest.mark.parametrize("kind", KINDS)
def test_without_a_fault_the_figure_is_the_truth(tmp_path, kind):
    world, sensors = made(kind)
    window = measure(tmp_path, world, None, "always", sensors=sensors)
    check(window, world, None)
    check_share(window)
    (reading,) = (r for r in window.run.energy if r.devices == (GPU,))
    assert reading.state == "known"
    assert (reading.own_share is not None) == (kind == "use")


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("kind", KINDS)
def test_a_fault_is_never_a_figure(tmp_path, kind, fault):
    for moment in MOMENTS:

        def once(left, moment=moment):
            world, sensors = made(kind, may_block=fault == "hang")
            if fault not in world.faults:
                pytest.skip("power does not fall")
            folder = tmp_path / f"{moment}-{left}"
            folder.mkdir()
            window = measure(folder, world, fault, moment, sensors=sensors)
            world.close()
            check(window, world, fault)
            check_share(window)
            return window

        window = patiently(once)
        WAITS.append((window.start_s, window.stop_s))
        if fault in ERRORS and moment == "always" and kind != "use":
            reading = next(r for r in window.run.energy if r.devices == (GPU,))
            assert (reading.state, reading.energy_j) == ("unknown", None)
            assert (window.run.coverage, window.run.lost_s) == (0.0, window.run.duration_s)
        if fault == "hang":
            assert "CL113" in {f.code for f in window.run.findings}


def wrong_with_zeros(folder, kind, fault, moment):
    """Tell whether the checks catch a sensor that makes 0 of this fault."""
    world, _ = made(kind)
    zeroing = (Zeroing(world.sensor),)
    if kind == "use":
        zeroing = (KindWorld("cumulative").sensor, *zeroing)
    folder.mkdir()
    window = measure(folder, world, fault, moment, sensors=zeroing)
    try:
        check(window, world, fault)
        check_share(window)
    except AssertionError:
        return True
    return False


@pytest.mark.parametrize("kind", KINDS)
def test_a_sensor_that_makes_0_of_an_error_is_caught(tmp_path, kind):
    faults = ("NotSupported", "device vanished", "KeyError", "nothing", "nan")
    for moment in ("start", "inside"):
        for fault in faults:
            assert wrong_with_zeros(tmp_path / f"{moment}-{fault}", kind, fault, moment), (moment, fault)


@pytest.mark.parametrize("count", [1, 3, 6])
def test_however_many_sensors_hang_the_work_waits_once(tmp_path, count):
    def once(left):
        worlds = [KindWorld("instant", may_block=True) for _ in range(count)]
        folder = tmp_path / str(left)
        folder.mkdir()
        for world in worlds:
            world.faults["hang"]()
        sensors = tuple(w.sensor for w in worlds)
        window = measure(folder, worlds[0], "hang", "always", sensors=sensors, looks=1)
        for world in worlds:
            world.close()
        return window

    patiently(once, limit_s=0.1 if count > 1 else OURS_S)


def test_a_sensor_that_hangs_for_5_s_comes_back_in_the_same_run(tmp_path):
    world = KindWorld("cumulative", may_block=True)
    world.look_s = 0.05
    window = measure(tmp_path, world, "hang", "inside")
    check(window, world, "hang")
    (reading,) = (r for r in window.run.energy if r.devices == (GPU,))
    assert reading.state == "known"  # the counter held what nobody read
    world.close()


def test_the_late_answer_of_a_hung_driver_is_not_believed(tmp_path):
    world = KindWorld("instant", may_block=True)
    folder = tmp_path / "one"
    folder.mkdir()
    begin = time.monotonic()
    window = measure(folder, world, "hang", "always")
    world.close()
    assert time.monotonic() - begin < 2
    reading = next(r for r in window.run.energy if r.devices == (GPU,))
    assert (reading.state, reading.energy_j) == ("unknown", None)
