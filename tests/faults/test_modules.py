"""Every sensor module over its fake, with each of its faults at each moment of a window."""

import time

import pytest

from carbonlens.metering.records import new_run
from carbonlens.metering.sensors.discovery import Watch, watch
from carbonlens.metering.sensors.probing import DriverProbes
from carbonlens.metering.session import Session
from tests.faults.windows import MOMENTS, OURS_S, check, measure, patiently
from tests.faults.worlds import WORLDS, NvmlEnergy, NvmlUse, built
from tests.metering.fake_nvml import GPU_IS_LOST, FakeGpu, hanging
from tests.metering.test_discovery import place, with_gpus  # noqa: F401  # a fixture
from tests.stalls import least, waited_s

NAMES = [w.__name__ for w in WORLDS]


def one_window(kind, folder, fault, moment):
    folder.mkdir()
    world = built(kind, folder)
    try:
        sensors = (world.beside(), world.sensor) if isinstance(world, NvmlUse) else None
        window = measure(folder, world, fault, moment, sensors=sensors)
        check(window, world, fault)
    finally:
        world.close()
    return window


@pytest.mark.parametrize(
    "moments", [("inside",), pytest.param([m for m in MOMENTS if m != "inside"], marks=pytest.mark.slow)]
)
@pytest.mark.parametrize("kind", WORLDS, ids=NAMES)
def test_each_module_survives_each_of_its_faults(tmp_path, kind, moments):
    folder = tmp_path / "names"
    folder.mkdir()
    world = built(kind, folder)
    faults = list(world.faults) or [None]
    world.close()
    for fault in faults:
        for moment in moments:

            def once(left, fault=fault, moment=moment):
                return one_window(kind, tmp_path / f"{fault}-{moment}-{left}".replace("/", ""), fault, moment)

            try:
                patiently(once)
            except AssertionError as wrong:
                raise AssertionError(f"{fault} at {moment}: {wrong}") from wrong


def tracked(folder, place, drivers):  # noqa: F811  # the fixture's value
    """Return a sealed run, and how long its start and its stop waited."""
    begin = waited_s()
    seen = watch(place=place, drivers=drivers)
    session = Session(new_run("test"), seen, folder / "ledger", journal_folder=folder / "journal")
    for note in seen.findings:
        session.note(note)
    session.start()
    inside = waited_s()
    time.sleep(0.02)
    end = waited_s()
    run = session.finish().run
    return run, inside - begin, waited_s() - end


def test_a_driver_that_hangs_at_the_probe_holds_nobody_twice(tmp_path, place):  # noqa: F811  # pytest takes the fixture by this name
    runs, edges = [], []

    def once(number):
        gpu = FakeGpu("GPU-aaaaaaaa-1111")
        gpu.hang = hanging()
        drivers = DriverProbes(0.3)
        where = with_gpus(place, gpu)
        first, start_s, stop_s = tracked(tmp_path / f"1-{number}", where, drivers)
        second, again_s, again_stop_s = tracked(tmp_path / f"2-{number}", where, drivers)
        gpu.hang.set()
        assert start_s >= 0.28  # a tick of the kernel less
        runs[:] = first, second
        edges.append((start_s - 0.3, stop_s, again_s, again_stop_s))
        # Each at its best: a busy machine is late at one of them nearly every time.
        return max(map(min, zip(*edges, strict=True)))

    assert least(once, OURS_S) <= OURS_S, edges
    for run in runs:
        assert {"CL101", "CL155"} <= {f.code for f in run.findings}
        gpus = [r for r in run.energy if r.component == "gpu"]
        assert [(r.energy_j, r.state) for r in gpus] == [(None, "unknown")]
        assert run.total_energy.state == "unbounded"


def test_all_that_one_driver_answers_hang_at_once(tmp_path, place):  # noqa: F811  # pytest takes the fixture by this name
    gpu = FakeGpu("GPU-aaaaaaaa-1111")
    where = with_gpus(place, gpu)
    seen = watch(place=where, drivers=DriverProbes(2.0))
    assert [s.info.name for s in seen.sensors][:3] == ["nvml_energy", "nvml_power", "nvml_use"]

    def edges(folder, at_start):
        session = Session(new_run("test"), Watch(seen.sensors), folder / "l", journal_folder=folder / "j")
        gpu.hang = hanging() if at_start else None
        begin = waited_s()
        session.start()
        start_s = waited_s() - begin
        gpu.hang = gpu.hang or hanging()
        begin = waited_s()
        session.end()  # what is stored afterwards waits for the disk
        waited = max(start_s, waited_s() - begin)
        run = session.finish().run
        gpu.hang.set()
        assert "CL113" in {f.code for f in run.findings}
        return waited

    for at_start in (True, False):
        # Three waits of 50 ms one after the other would be 0.15 s.
        assert least(lambda n, at=at_start: edges(tmp_path / f"{at}-{n}", at), 0.1) < 0.1


def test_a_gpu_that_is_lost_and_returns_is_read_again(tmp_path):
    (tmp_path / "world").mkdir()
    world = built(NvmlEnergy, tmp_path / "world")
    world.look_s = 0.3
    window = measure(tmp_path, world, "GpuIsLost", "inside", looks=6)
    world.close()
    check(window, world, "GpuIsLost")
    reading = next(r for r in window.run.energy if r.devices == (world.gpu.uuid,))
    # The counter went on while nobody could read it.
    assert (reading.state, window.run.coverage) == ("known", 1.0)
    assert world.gpu.fault != GPU_IS_LOST
