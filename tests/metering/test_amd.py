"""AMD GPUs on a fake library with the faults of the real one: no fault becomes 0, no card counts twice."""

import sys
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carbonlens.metering.patience import PatientSensor
from carbonlens.metering.sensors import Sensor
from carbonlens.metering.sensors.amd import AmdEnergySensor, AmdPowerSensor
from carbonlens.metering.sensors.amd_library import amount
from tests.metering.fake_amdsmi import Clock, FakeAmdsmi, FakeGpu
from tests.stalls import unless_stalled


def mi300x(**more):
    return FakeGpu("AMD Instinct MI300X", 140, average="N/A", **more)


def mi210(**more):
    return FakeGpu("AMD Instinct MI210", 41, average=41, current="N/A", **more)


def mi250x_card(watts=180):
    """Two dies: the first reads the card, the second 0 or nothing."""
    first = FakeGpu("AMD Instinct MI250X", watts, average=watts, current="N/A")
    second = FakeGpu("AMD Instinct MI250X", 0, average=0, current="N/A", counts=0.0)
    return [first, second]


def energy(gpus, environ=None, **more):
    clock = Clock()
    library = FakeAmdsmi(gpus, clock, **more)
    return AmdEnergySensor(library, environ or {}, clock=clock, wait=clock.wait), clock


def power(gpus, environ=None, **more):
    return AmdPowerSensor(FakeAmdsmi(gpus, **more), environ or {})


def devices(sensor):
    sensor.probe()
    return [c.device for c in sensor.info.channels]


@pytest.mark.parametrize("old", [False, True])
def test_a_counter_in_counts_of_15_3_microjoules_is_read_in_joules(old):
    sensor, clock = energy([mi300x()], old=old)
    assert isinstance(sensor, Sensor)
    probe = sensor.probe()
    assert probe.usable
    assert "tested on recordings" in probe.found
    before = sensor.read(edge=True)[0]
    clock.wait(10)
    assert sensor.read(edge=True)[0] - before == pytest.approx(1400, rel=1e-6)
    assert (sensor.info.kind, sensor.info.unit, sensor.info.grade) == ("cumulative", "J", "B")
    assert sensor.info.channels[0].rated_w == 560
    sensor.close()
    sensor.close()


def test_a_good_counter_is_told_within_a_few_ticks():
    sensor, clock = energy([mi300x()])
    sensor.probe()
    assert clock.now < 0.1
    assert sensor.info.update_period_s == pytest.approx(0.01, rel=0.1)


@pytest.mark.parametrize(
    ("counts", "why"),
    [(0.0, "stands still"), (0.003, "issue 38"), (20.0, "issue 38"), (None, "no energy counter")],
)
def test_an_implausible_counter_is_refused(counts, why):
    sensor, _ = energy([FakeGpu("AMD Instinct MI100", 35, average=35, current="N/A", counts=counts)])
    probe = sensor.probe()
    assert not probe.usable
    assert why in probe.reason
    assert "MI100" in probe.reason


def test_a_counter_that_runs_backwards_is_refused():
    gpu = mi300x()
    gpu.backwards = True
    sensor, _ = energy([gpu])
    assert "backwards" in sensor.probe().reason


def test_a_counter_without_power_to_check_it_is_refused():
    sensor, _ = energy([FakeGpu("AMD Radeon", 40, average="N/A", current="N/A")])
    assert "no power" in sensor.probe().reason


@pytest.mark.parametrize(("gpu", "kind", "watts"), [(mi300x(), "instant", 140.0), (mi210(), "average", 41.0)])
def test_power_is_read_by_the_field_that_answers_and_is_of_its_kind(gpu, kind, watts):
    sensor = power([gpu])
    assert isinstance(sensor, Sensor)
    assert sensor.probe().usable
    assert sensor.info.kind == kind
    assert sensor.read(edge=True) == (watts,)


@pytest.mark.parametrize("current", ["N/A", 0, 65535, 4294967295, "", None, float("nan"), True, [1]])
def test_a_field_without_a_value_is_none_and_not_zero(current):
    gpu = mi300x()
    sensor = power([gpu, mi300x()])
    assert sensor.probe().usable
    gpu.current = current
    assert sensor.read(edge=True) == (None, 140.0)


def test_a_card_with_no_power_at_all_is_not_used():
    sensor = power([FakeGpu("AMD Radeon", 40, average="N/A", current="N/A")])
    assert "neither" in sensor.probe().reason
    with pytest.raises(OSError, match="no power"):
        sensor.read(edge=True)


def test_a_card_that_answers_the_other_field_is_named():
    sensor = power([mi300x(), mi300x(), mi210()])
    assert "no current_socket_power from AMD Instinct MI210" in sensor.probe().found
    assert sensor.read(edge=True) == (140.0, 140.0, None)


def test_two_dies_are_one_card():
    sensor = power([*mi250x_card(180), *mi250x_card(200)])
    assert "two dies" in sensor.probe().found
    assert len(sensor.info.channels) == 2
    assert sensor.read(edge=True) == (180.0, 200.0)
    counter, clock = energy([*mi250x_card(180), *mi250x_card(200)])
    assert counter.probe().usable
    begin = counter.read(edge=True)
    clock.wait(1)
    assert [b - a for a, b in zip(begin, counter.read(edge=True), strict=True)] == pytest.approx(
        [180, 200], abs=1e-3
    )


@pytest.mark.parametrize("visible", ["0", "1", "1,0"])
def test_work_on_either_die_is_on_the_card(visible):
    sensor = power(mi250x_card(), {"ROCR_VISIBLE_DEVICES": visible})
    assert devices(sensor) == ["GPU-0000000000000000"]
    assert sensor.read(edge=True) == (180.0,)


def test_a_lone_card_without_power_is_no_second_die():
    silent = FakeGpu("AMD Instinct MI210", 40, average="N/A", current="N/A")
    assert len(devices(power([mi210(), silent]))) == 2


@pytest.mark.parametrize(
    ("environ", "places"),
    [
        ({}, [0, 1, 2, 3]),
        ({"HIP_VISIBLE_DEVICES": "2,0"}, [2, 0]),
        ({"CUDA_VISIBLE_DEVICES": "3"}, [3]),
        ({"ROCR_VISIBLE_DEVICES": "1,2", "HIP_VISIBLE_DEVICES": "1"}, [2]),
        ({"ROCR_VISIBLE_DEVICES": "GPU-0000000000000003"}, [3]),
    ],
)
def test_only_what_the_work_may_use_is_read(environ, places):
    found = devices(power([mi300x() for _ in range(4)], environ))
    assert found == [f"GPU-{place:016x}" for place in places]


@pytest.mark.parametrize("environ", [{"HIP_VISIBLE_DEVICES": ""}, {"HIP_VISIBLE_DEVICES": "-1"}])
def test_hidden_gpus_are_not_read(environ):
    sensor = power([mi300x()], environ)
    assert not sensor.probe().usable
    assert sensor.info.channels == ()


@pytest.mark.parametrize("lacks", [(), ("amdsmi_get_gpu_enumeration_info",)])
def test_indices_count_in_the_order_of_hip_and_not_of_the_bus(lacks):
    gpus = [mi300x(hip_id=3), mi300x(hip_id=0), mi300x(hip_id=2), mi300x(hip_id=1)]
    found = devices(power(gpus, {"HIP_VISIBLE_DEVICES": "0"}, lacks=lacks))
    assert found == ["GPU-0000000000000001"]


def test_a_version_without_any_order_keeps_the_library_s():
    lacks = ("amdsmi_get_gpu_enumeration_info", "amdsmi_get_gpu_kfd_info", "amdsmi_get_gpu_asic_info")
    assert devices(power([mi300x()], lacks=lacks)) == ["00ff74a1-0000-1000-80ff-ffffffffffff"]


def test_a_gpu_that_vanishes_is_none_and_the_last_a_fault():
    gpus = [mi300x(), mi300x()]
    counter, _ = energy(gpus)
    sensor = power(gpus)
    for one in (counter, sensor):
        one.probe()
    gpus[0].gone = True
    assert counter.read(edge=True)[0] is None
    assert sensor.read(edge=False) == (None, 140.0)
    gpus[1].gone = True
    for one in (counter, sensor):
        with pytest.raises(OSError, match="AMD GPU"):
            one.read(edge=True)


@pytest.mark.parametrize("fails", ["amdsmi_init", "amdsmi_get_processor_handles"])
def test_a_library_that_fails_says_so(fails, tmp_path):
    (tmp_path / "dev").mkdir()
    (tmp_path / "dev" / "kfd").touch()
    sensor = AmdPowerSensor(FakeAmdsmi([mi300x()], fails=(fails,)), {}, root=tmp_path)
    probe = sensor.probe()
    assert not probe.usable
    assert "/dev/kfd" in probe.found
    assert "NO_DATA" in probe.reason
    with pytest.raises(OSError, match="NO_DATA"):
        sensor.read(edge=True)


@pytest.mark.skipif("amdsmi" in sys.modules, reason="amdsmi is installed here")
def test_without_the_library_there_is_a_reason_and_nothing_printed(tmp_path, capfd):
    probe = AmdEnergySensor(environ={}, root=tmp_path).probe()
    assert (probe.usable, probe.found, probe.mend) == (False, "no AMD GPU", None)
    assert "amdsmi" in probe.reason
    assert capfd.readouterr() == ("", "")


def test_a_driver_that_hangs_does_not_hold_the_reader():
    class Hanging(FakeAmdsmi):
        def amdsmi_get_power_info(self, gpu):
            time.sleep(0.3)
            return super().amdsmi_get_power_info(gpu)

    def once(left):
        sensor = AmdPowerSensor(Hanging([mi300x()]), {})
        assert sensor.may_block
        patient = PatientSensor(sensor)
        begin = time.monotonic()
        try:
            with pytest.raises(TimeoutError):
                patient.read(edge=True)
            assert time.monotonic() - begin < 0.25
        finally:
            patient.close()

    unless_stalled(once)


@given(st.one_of(st.text(max_size=12), st.floats(), st.integers(), st.booleans(), st.none()))
def test_an_answer_is_a_number_from_zero_or_nothing(value):
    number = amount(value)
    if number is not None:
        assert 0 <= number < float("inf")
        assert float(value) == number


def test_eight_cards_are_checked_side_by_side():
    sensor, clock = energy([mi300x() for _ in range(8)])
    assert sensor.probe().usable
    assert clock.now < 0.1
