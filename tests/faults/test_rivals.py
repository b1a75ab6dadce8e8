"""Cases of rival tools that need a whole session: no counter, no permission, no sudo, a board's odd NVML."""

import os
import time

import pytest

from carbonlens.domain.sources import Sources
from carbonlens.metering.process_time import TreeClock
from carbonlens.metering.records import new_run
from carbonlens.metering.sensors.discovery import candidates, watch
from carbonlens.metering.sensors.powermetrics import PowermetricsSensor
from carbonlens.metering.sensors.probing import DriverProbes
from carbonlens.metering.sensors.rapl import RaplSensor
from carbonlens.metering.session import Session
from tests.metering.fake_nvml import FakeGpu
from tests.metering.powercap import Powercap
from tests.metering.processes import burn
from tests.metering.test_discovery import place, with_gpus  # noqa: F401  # a fixture
from tests.metering.trees_jetson import orin_nx
from tests.stalls import unless_stalled

NOTHING = {
    "nvmlDeviceGetTotalEnergyConsumption",
    "nvmlDeviceGetPowerUsage",
    "nvmlDeviceGetFieldValues",
    "nvmlDeviceGetProcessUtilization",
}


def measured(folder, place):  # noqa: F811  # the fixture's value
    """Return a run of a quarter of a second that the machine did not sleep through; it may once or twice."""
    for n in range(3):
        run = measured_once(folder / str(n), place)
        if run.total_energy.state == "known" and len(run.energy) == 1:
            break
    return run


def measured_once(folder, place):  # noqa: F811  # pytest takes the fixture by this name
    seen = watch(place=place, drivers=DriverProbes(20.0))
    session = Session(new_run("test"), seen, folder / "ledger", journal_folder=folder / "journal")
    for note in seen.findings:
        session.note(note)
    session.start()
    for _ in range(5):
        burn(0.01)
        time.sleep(0.05)
        # Looked at from here too: a busy machine may let the sampler wait longer than a sample holds.
        session.sample()
    return session.finish().run


def test_scaphandre_312_397_powerjoular_34_a_virtual_machine_is_modelled_with_a_band(tmp_path, place):  # noqa: F811  # pytest takes the fixture by this name
    run = measured(tmp_path, place)
    total = run.total_energy
    assert total.state == "known"
    assert total.value > 0
    assert total.grade == "D"
    assert total.low * 1.8 <= total.value * 1.001
    assert total.high >= total.value * 1.799


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_codecarbon_244_a_counter_that_is_forbidden_is_named_with_one_mend(tmp_path):
    tree = Powercap(tmp_path / "powercap")
    counter = tree.zone("intel-rapl:0", "package-0")
    counter.chmod(0)
    probe = RaplSensor(tree.root).probe()
    assert (probe.usable, str(counter) in probe.reason) == (False, True)
    assert f"chmod a+r {tree.root}/intel-rapl:*/energy_uj (until the next boot" in probe.mend


def test_codecarbon_915_a_counter_that_can_be_read_is_used(tmp_path, place):  # noqa: F811  # pytest takes the fixture by this name
    tree = Powercap(place.root / "sys" / "class" / "powercap")
    counter = tree.zone("intel-rapl:0", "package-0")

    def once(left):
        begin_s, stop = time.monotonic(), tmp_path / f"stop-{left}"
        pid = os.fork()
        if pid == 0:  # the machine goes on while the run is measured
            while not stop.exists() and time.monotonic() < begin_s + 20:
                with counter.open("r+") as stream:
                    stream.write(f"{int(1e6 * (10 + 50 * (time.monotonic() - begin_s)))}\n")
                time.sleep(0.002)
            os._exit(0)
        try:
            time.sleep(0.05)
            run = measured(tmp_path / str(left), place)
        finally:
            stop.touch()
            os.waitpid(pid, 0)
        cpu = next(r for r in run.energy if r.component == "cpu")
        assert (cpu.grade, cpu.method) == ("B", "RAPL counters of the whole machine (powercap)")
        assert float(cpu.energy_j) == pytest.approx(50 * run.duration_s, rel=0.2)

    unless_stalled(once)


@pytest.mark.parametrize("platform", ["darwin", "linux"])
def test_codecarbon_736_731_mteb_1766_no_sudo_unless_declared(place, platform):  # noqa: F811  # pytest takes the fixture by this name
    where = place._replace(platform=platform)

    def asks(sources):
        return any(isinstance(s, PowermetricsSensor) for s in candidates(sources, TreeClock(), where))

    assert not asks(Sources())
    assert asks(Sources(powermetrics=True))


def test_intelligence_per_watt_40_a_boards_nvml_that_offers_nothing_gives_way_to_its_rails(
    tmp_path,
    place,  # noqa: F811  # pytest takes the fixture by this name
):
    orin_nx(place.root)
    run = measured(tmp_path, with_gpus(place, FakeGpu("GPU-aaaaaaaa-1111", lacks=NOTHING)))
    (module,) = run.energy
    assert (module.component, module.state, module.grade) == ("total", "known", "C")
    assert float(module.energy_j) == pytest.approx(5.3 * run.duration_s, rel=0.05)
    assert run.coverage == 1.0


def test_jetson_stats_51_344_the_total_is_the_input_rail_and_not_the_sum_of_all(tmp_path, place):  # noqa: F811  # pytest takes the fixture by this name
    orin_nx(place.root)
    run = measured(tmp_path, place)
    # 5 V x 1.06 A at the input; its parts stand beside and are not added.
    assert float(run.total_energy.value) == pytest.approx(5.3 * run.duration_s, rel=0.05)
    assert {r.component for r in run.beside} >= {"cpu"}
