"""Idle and full power of a machine that the test drives, and what is refused."""

import math

import msgspec
import pytest

from carbonlens.domain.estimate import Estimate
from carbonlens.errors import MeasurementError
from carbonlens.metering.cpu_calibration import Phase, by_hand, curve_of, measure
from carbonlens.metering.sensors.rapl import RaplSensor
from tests.metering.machine import Machine
from tests.metering.powercap import turn

SECONDS = 5.0


def measured(machine):
    said = []
    meter = RaplSensor(machine.powercap)
    try:
        return measure(meter, SECONDS, name="RAPL", setting=machine.setting, progress=said.append), said
    finally:
        meter.close()


def test_two_phases_give_the_machine_s_curve(tmp_path):
    machine = Machine(tmp_path)
    found, said = measured(machine)
    # Both packages, carried from 2 % load to none; power is level above 70 %.
    assert found.full_w.value == pytest.approx(200, rel=1e-3)
    assert found.idle_w.value == pytest.approx(40 - 160 * 0.02 / (0.7 - 0.02), rel=1e-3)
    assert found.boundary == "device"
    assert found.loads == pytest.approx((0.02, 0.98), abs=1e-3)
    assert found.makes_sense
    assert [text.split()[0] for text in said] == ["idle", "full"]
    # RAPL's own +-5 % is in the interval.
    assert found.full_w.high / found.full_w.value == pytest.approx(1.05, abs=0.005)


def test_the_counter_wraps_under_way(tmp_path):
    machine = Machine(tmp_path)
    for counter in machine.counters:
        (counter.parent / "max_energy_range_uj").write_text("700000000\n")
    told = Machine.sleep

    def wrapping(seconds):
        told(machine, seconds)
        for counter in machine.counters:
            turn(counter, int(counter.read_text()) % 700_000_000)

    setting = msgspec.structs.replace(machine.setting, sleep=wrapping)
    found = measure(RaplSensor(machine.powercap), 10.0, name="RAPL", setting=setting)
    assert found.full_w.value == pytest.approx(200, rel=1e-3)


def test_a_busy_machine_is_refused_before_it_is_loaded(tmp_path):
    machine = Machine(tmp_path, idle_load=0.6)
    with pytest.raises(MeasurementError, match="not idle: 60%"):
        measured(machine)
    assert machine.loaded == 0


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ({"full_load": 0.5}, "could be kept busy"),
        ({"full_w": 41.0}, "under full load"),
        ({"idle_load": 0.29, "idle_w": 30.0}, "leave nothing for idle"),
    ],
)
def test_what_makes_no_curve_is_refused(tmp_path, given, text):
    with pytest.raises(MeasurementError, match=text):
        measured(Machine(tmp_path, **given))


def test_unknown_busy_time_is_refused(tmp_path):
    machine = Machine(tmp_path)
    setting = msgspec.structs.replace(machine.setting, stat=tmp_path / "none")
    with pytest.raises(MeasurementError, match="does not tell how busy"):
        measure(RaplSensor(machine.powercap), SECONDS, name="RAPL", setting=setting)


def test_a_meter_that_falls_silent_is_refused(tmp_path):
    machine = Machine(tmp_path)
    meter = RaplSensor(machine.powercap)
    while machine.counters:
        machine.counters.pop().unlink()
    # Busy time goes on, the counters are gone.
    machine.counters.append(tmp_path / "elsewhere")
    machine.counters[0].write_text("0")
    with pytest.raises(MeasurementError, match="told power of 0 s of 5 s"):
        measure(meter, SECONDS, name="RAPL", setting=machine.setting)


def test_points_are_carried_to_no_and_full_load():
    idle = Phase(power_w=Estimate(value=50.0, unit="W", u_random=1.0), load=0.07)
    full = Phase(power_w=Estimate(value=140.0, unit="W", u_random=1.4), load=0.9)
    found = curve_of(idle, full, boundary_of=wall(), name="m", threads=8, now_us=5)
    assert found.idle_w.value == pytest.approx(40.0)
    assert found.idle_w.u_random == pytest.approx(0.8)
    assert found.full_w.value == pytest.approx(140.0)
    assert (found.boundary, found.threads, found.taken_us) == ("it", 8, 5)


def wall():
    from carbonlens.domain.sources import ExternalMeter
    from carbonlens.metering.sensors.external import ExternalSensor

    return ExternalSensor(ExternalMeter(name="m", command=("true",))).info


def test_watts_by_hand_carry_the_meter_s_accuracy():
    found = by_hand(50.0, 180.0, meter="plug", meter_95=0.02, threads=12)
    assert found.full_w.high == pytest.approx(180 * math.exp(0.02))
    assert (found.boundary, found.meter, found.threads, found.loads) == ("it", "plug", 12, None)
    unstated = by_hand(50.0, 180.0, meter="plug", meter_95=None)
    assert unstated.full_w.high == pytest.approx(180 * math.exp(0.05))


@pytest.mark.parametrize(
    "watts", [(0.0, 100.0), (100.0, 100.0), (100.0, 101.0), (math.nan, 5.0), (1.0, math.inf)]
)
def test_watts_by_hand_that_tell_no_curve_are_refused(watts):
    with pytest.raises(MeasurementError, match="tell no curve"):
        by_hand(*watts, meter="plug", meter_95=None)
