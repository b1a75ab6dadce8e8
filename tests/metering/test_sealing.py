"""Sealing samples: the right energy, or a lower bound that says so; never a silent zero."""

from decimal import Decimal

import msgspec
import pytest

from carbonlens.domain.run import Run
from carbonlens.domain.units import US_PER_HOUR, US_PER_S
from carbonlens.metering.sealing import Sample, seal
from carbonlens.metering.sensors import Channel, SensorInfo
from carbonlens.signals.cpu_model import CpuCurve

CURVE = CpuCurve(family="test", idle_w_per_thread=0.5, full_w_per_thread=2.0, spread=0.1, n=9, source="here")
MODEL = SensorInfo(
    name="cpu_model",
    kind="utilisation",
    unit="s",
    scope="process",
    boundary="it",
    grade="D",
    update_period_s=0.0,
    channels=(Channel(device="cpu-time", component="cpu"),),
    method="model",
    curve=CURVE,
)


def rapl(*channels, max_range=1000.0):
    return SensorInfo(
        name="rapl",
        kind="cumulative",
        unit="J",
        scope="machine",
        boundary="device",
        grade="B",
        update_period_s=0.001,
        channels=tuple(Channel(device=d, component=c, max_range=max_range) for d, c in channels),
        method="counter",
        gain_sigma=0.025,
    )


PACKAGE = rapl(("package-0", "cpu"))
SERVER = rapl(("package-0", "cpu"), ("package-1", "cpu"), ("dram", "ram"))


def samples(*rows):
    """Rows of seconds and one entry a sensor."""
    return [Sample(t_us=int(t * US_PER_S), values=tuple(values)) for t, *values in rows]


def sealed(sensors, rows, **more):
    taken = samples(*rows)
    window = {"start_us": 0, "window_us": taken[-1].t_us, **more}
    return seal(sensors, taken, **window)


def codes(result):
    return [f.code for f in result.findings]


def total(result):
    return Run(run_id="r", energy=result.readings).total_energy


def test_cpu_time_becomes_energy_at_the_plug():
    result = sealed([MODEL], [(0, (7.0,)), (1, (7.4,)), (2, (8.0,))])
    (cpu,) = result.readings
    assert (cpu.component, cpu.boundary, cpu.grade) == ("cpu", "it", "D")
    assert cpu.energy_j == Decimal("2.000000")
    assert cpu.dynamic_j == Decimal("1.500000")
    assert set(cpu.u_by_source_j) == {"cpu_model:test"}
    estimate = cpu.estimate
    assert estimate.high / estimate.value == pytest.approx(1.8)
    assert result.cpu_s == pytest.approx(1.0)
    assert result.covered_s == 2.0
    assert codes(result) == []


def test_hours_follow_the_samples_and_sum_to_the_reading():
    rows = [(0, (0.0,)), (3600, (10.0,)), (7200, (40.0,))]
    result = sealed([MODEL], rows, start_us=5 * US_PER_HOUR)
    assert [(h.hour_utc, h.energy_j) for h in result.hours] == [
        (5, Decimal("20.000000")),
        (6, Decimal("60.000000")),
    ]


def test_an_accelerator_that_nothing_reads_makes_the_total_a_lower_bound():
    result = sealed([MODEL], [(0, (0.0,)), (1, (1.0,))], unmeasured=("NVIDIA GPU",))
    gpu = result.readings[1]
    assert (gpu.component, gpu.energy_j, gpu.state) == ("gpu", None, "unknown")
    assert codes(result) == ["CL101"]
    assert (total(result).state, total(result).value, total(result).high) == ("unbounded", 2.0, None)


def test_a_counter_outranks_the_model_and_keeps_the_cpu_time():
    result = sealed([MODEL, SERVER], [(0, (0.0,), (1.0, 2.0, 3.0)), (10, (4.0,), (101.0, 52.0, 8.0))])
    one, two, ram = result.readings
    assert (one.energy_j, one.grade, one.boundary) == (Decimal("100.000000"), "B", "device")
    assert (two.component, two.energy_j, two.devices) == ("cpu", Decimal("50.000000"), ("package-1",))
    assert (ram.component, ram.energy_j) == ("ram", Decimal("5.000000"))
    assert one.u_by_source_j == {"sensor:rapl:package-0": pytest.approx(2.5)}
    assert [(r.grade, r.energy_j) for r in result.beside] == [("D", Decimal("8.000000"))]
    assert result.cpu_s == 4.0
    assert set(codes(result)) == {"CL103"}
    assert total(result).state == "known"


def test_packages_without_a_memory_counter_say_that_memory_is_left_out():
    result = sealed([MODEL, PACKAGE], [(0, (0.0,), (1.0,)), (10, (4.0,), (101.0,))])
    assert [(r.component, r.state) for r in result.readings] == [("cpu", "known")]
    assert "CL104" in codes(result)
    assert result.readings[0].boundary == "device"


def test_a_wrap_is_exact():
    result = sealed([MODEL, PACKAGE], [(0, (0.0,), (990.0,)), (10, (1.0,), (15.0,))])
    assert result.readings[0].energy_j == Decimal("25.000000")
    assert result.readings[0].state == "known"


def test_a_reset_is_not_covered_and_bounds_from_below():
    rows = [(0, (0.0,), (900.0,)), (5, (1.0,), (1.0,)), (10, (2.0,), (31.0,))]
    rows = [(t, counter) for t, _, counter in rows]
    result = sealed([rapl(("package-0", "cpu"), max_range=None)], rows)
    cpu = result.readings[0]
    assert (cpu.energy_j, cpu.state, cpu.covered_s) == (Decimal("30.000000"), "unbounded", 5.0)
    assert "CL105" in codes(result)
    assert result.covered_s == 5.0


def test_a_failed_reading_between_good_ones_costs_nothing():
    rows = [(0, (0.0,), (1.0,)), (1, (0.5,), None), (2, (1.0,), (7.0,))]
    result = sealed([MODEL, PACKAGE], rows)
    assert result.readings[0].energy_j == Decimal("6.000000")
    assert result.readings[0].covered_s == 2.0


def test_a_counter_that_dies_is_a_lower_bound_up_to_its_last_reading():
    rows = [(0, (1.0,)), (4, (5.0,)), (10, None)]
    result = sealed([PACKAGE], rows)
    assert (result.readings[0].energy_j, result.readings[0].state) == (Decimal("4.000000"), "unbounded")
    assert result.covered_s == 4.0


def test_without_any_counter_reading_the_model_stands_in():
    result = sealed([MODEL, PACKAGE], [(0, (0.0,), None), (10, (3.0,), None)])
    assert [(r.component, r.grade, r.boundary) for r in result.readings] == [("cpu", "D", "it")]
    assert codes(result) == ["CL114"]
    assert "rapl gave no reading" in result.findings[0].message


def test_memory_alone_is_not_mixed_with_a_whole_server_figure():
    rows = [(0, (0.0,), (None, None, 1.0)), (10, (3.0,), (None, None, 9.0))]
    result = sealed([MODEL, SERVER], rows)
    assert [r.component for r in result.readings] == ["cpu"]
    assert total(result).value == 6.0


def test_one_of_two_packages_is_a_lower_bound():
    rows = [(0, (1.0, 1.0, 1.0)), (10, (11.0, None, 2.0))]
    result = sealed([SERVER], rows)
    assert result.readings[0].energy_j == Decimal("10.000000")
    assert total(result).state == "unbounded"
    assert "package-1" in next(f for f in result.findings if f.code == "CL105").message


def test_no_reading_at_all_is_unknown_and_never_zero():
    result = sealed([MODEL], [(0, None), (10, None)])
    (cpu,) = result.readings
    assert (cpu.energy_j, cpu.state) == (None, "unknown")
    assert (result.cpu_s, result.covered_s, result.hours) == (None, 0.0, ())
    assert total(result).state == "unknown"
    assert codes(result) == ["CL105"]


def test_one_sample_is_unknown_too():
    assert sealed([MODEL], [(0, (1.0,))]).readings[0].state == "unknown"


def test_an_unknown_family_is_said():
    curve = CpuCurve(
        family="all",
        idle_w_per_thread=1.0,
        full_w_per_thread=4.0,
        spread=0.687,
        n=983,
        source="x",
        known=False,
    )
    info = SensorInfo(**{f: getattr(MODEL, f) for f in MODEL.__struct_fields__ if f != "curve"}, curve=curve)
    result = sealed([info], [(0, (0.0,)), (1, (1.0,))], hardware="Strange CPU x8")
    assert codes(result) == ["CL102"]
    assert "Strange CPU" in result.findings[0].message
    assert "3.8" in result.findings[0].message


def test_a_counter_that_covers_little_gives_way_to_the_complete_model():
    rows = [(0, (0.0,), (0.0,)), (1, (0.3,), (100.0,)), (10, (3.0,), None)]
    result = sealed([MODEL, PACKAGE], rows)
    (cpu,) = result.readings
    assert (cpu.grade, cpu.state, cpu.energy_j) == ("D", "known", Decimal("6.000000"))
    assert codes(result) == ["CL114"]
    assert "1 s of 10 s" in result.findings[0].message
    assert result.covered_s == 10.0


def test_a_counter_that_covers_nearly_all_stays_the_better_evidence():
    rows = [(0, (0.0,), (0.0,)), (9.5, (2.9,), (100.0,)), (10, (3.0,), None)]
    result = sealed([MODEL, PACKAGE], rows)
    assert (result.readings[0].grade, result.readings[0].state) == ("B", "unbounded")
    assert "CL114" not in codes(result)


def power(kind="instant", *, device="gpu-0", component="gpu", rated_w=700.0, **more):
    fields = {
        "name": "power",
        "kind": kind,
        "unit": "W",
        "scope": "board",
        "boundary": "device",
        "grade": "C",
        "update_period_s": 0.1,
        "channels": (Channel(device=device, component=component, rated_w=rated_w),),
        "method": "power",
        "gain_sigma": 0.025,
    }
    return SensorInfo(**(fields | more))


def steady(seconds, value, *, pace_s=0.1):
    return [(k * pace_s, value) for k in range(round(seconds / pace_s) + 1)]


def test_watts_become_energy_with_their_interval():
    (gpu,) = sealed([power()], steady(10, (300.0,))).readings
    assert gpu.energy_j == Decimal("3000.000000")
    assert (gpu.grade, gpu.state, gpu.devices) == ("C", "known", ("gpu-0",))
    assert gpu.estimate.low < 3000 < gpu.estimate.high
    assert set(gpu.u_by_source_j) == {"sensor:power:gpu-0"}


def test_a_hole_in_the_power_is_uncovered_and_never_bridged():
    rows = [row for row in steady(10, (300.0,)) if not 4 <= row[0] < 6]
    result = sealed([power()], rows)
    (gpu,) = result.readings
    assert gpu.state == "unbounded"
    assert float(gpu.energy_j) == pytest.approx(300 * 8.2)
    assert result.covered_s == pytest.approx(8.2)
    assert "CL105" in codes(result)


def test_a_failed_power_reading_is_never_zero_watts():
    rows = [(t, v if not 4 <= t < 6 else None) for t, v in steady(10, (300.0,))]
    (gpu,) = sealed([power()], rows).readings
    assert gpu.state == "unbounded"
    assert float(gpu.energy_j) == pytest.approx(300 * 8.2, rel=0.02)


def test_watts_of_a_kind_nobody_knows_are_unknown():
    info = power()
    odd = SensorInfo(**{f: getattr(info, f) for f in info.__struct_fields__ if f != "unit"}, unit="s")
    result = sealed([odd], [(0, (300.0,)), (10, (300.0,))])
    assert total(result).state == "unknown"
    assert "CL115" in codes(result)


def test_more_than_a_device_can_draw_is_not_believed():
    result = sealed([power(rated_w=100.0)], steady(10, (300.0,)))
    assert result.readings[0].energy_j is None
    assert total(result).state == "unknown"
    assert "CL130" in codes(result)


def counter_of_gpu(**more):
    return power("cumulative", name="energy", unit="J", grade="B", **more)


def test_the_counter_is_used_and_power_stands_beside_it():
    rows = [(t, (300.0 * round(t, 1),), (303.0,)) for t, _ in steady(10, ())]
    result = sealed([counter_of_gpu(), power()], rows)
    assert [r.grade for r in result.readings] == ["B"]
    assert [(r.grade, r.energy_j) for r in result.beside] == [("C", Decimal("3030.000000"))]
    assert codes(result) == ["CL104"]


def test_methods_that_exclude_each_other_are_said_to():
    rows = [(t, (300.0 * round(t, 1),), (420.0,)) for t, _ in steady(10, ())]
    assert "CL128" in codes(sealed([counter_of_gpu(), power()], rows))


def test_a_sensor_that_was_not_asked_did_not_fail():
    rows = [(t, (300.0 * t,) if t in {0.0, 10.0} else (), (300.0,)) for t, _ in steady(10, ())]
    result = sealed([counter_of_gpu(), power()], rows)
    assert (result.readings[0].grade, result.readings[0].covered_s) == ("B", 10.0)
    assert codes(result) == ["CL104"]


def test_an_idle_looking_counter_of_a_short_window_gives_way_to_power():
    rows = [(t, (1000.0,), (300.0,)) for t, _ in steady(0.2, (), pace_s=0.05)]
    result = sealed([counter_of_gpu(), power()], rows)
    assert [r.grade for r in result.readings] == ["C"]


DEVICE_CURVE = CpuCurve(
    family="test package", idle_w_per_thread=0.2, full_w_per_thread=1.0, spread=0.3, n=3, source="there"
)


def both_curves():
    return SensorInfo(
        **{f: getattr(MODEL, f) for f in MODEL.__struct_fields__ if f != "device_curve"},
        device_curve=DEVICE_CURVE,
    )


def test_beside_a_gpu_the_cpu_is_modelled_at_the_devices_boundary():
    rows = [(t, (t,), (300.0,)) for t, _ in steady(10, ())]
    result = sealed([both_curves(), power()], rows)
    by = {r.component: r for r in result.readings}
    assert by["cpu"].energy_j == Decimal("10.000000")
    assert {r.boundary for r in result.readings} == {"device"}
    assert total(result).state == "known"
    assert "CL104" in codes(result)


def test_a_model_of_the_whole_server_alone_is_not_added_to_a_device():
    rows = [(t, (t,), (300.0,)) for t, _ in steady(10, ())]
    result = sealed([MODEL, power()], rows)
    assert total(result).state == "unbounded"
    assert "CL116" in codes(result)


def wall(**more):
    fields = {"name": "external:meter", "unit": "J", "grade": "A", "boundary": "it", "scope": "wall"}
    return power("cumulative", device="meter", component="wall", rated_w=None, **(fields | more))


def test_a_meter_at_the_plug_is_the_runs_energy_and_its_parts_stand_beside():
    rows = [(t, (t,), (300.0,), (500.0 * t,)) for t, _ in steady(10, ())]
    result = sealed([both_curves(), power(), wall()], rows)
    assert [(r.component, r.grade, r.energy_j) for r in result.readings] == [
        ("wall", "A", Decimal("5000.000000"))
    ]
    assert {r.component for r in result.beside} == {"cpu", "gpu"}
    assert "CL101" not in codes(sealed([both_curves(), wall()], [(0, (0.0,), (0.0,)), (5, (1.0,), (9.0,))]))


def test_a_meter_that_stopped_gives_way_to_the_parts():
    rows = [(t, (t,), (300.0,), (500.0 * t,) if t < 2 else None) for t, _ in steady(10, ())]
    result = sealed([both_curves(), power(), wall()], rows)
    assert {r.component for r in result.readings} == {"cpu", "gpu"}


DECLARED = ["external:meter", "ipmi", "redfish", "powermetrics", "datasheet:meter"]


@pytest.mark.parametrize("name", DECLARED)
@pytest.mark.parametrize("component", ["wall", "total", "cpu", "ram"])
@pytest.mark.parametrize("from_s", [4.0, 11.0])
def test_a_declared_source_that_is_not_in_the_total_is_named_with_its_coverage(name, component, from_s):
    late = msgspec.structs.replace(wall(name=name), channels=(Channel(device="meter", component=component),))
    rows = [(t, (t,), (500.0 * t,) if t >= from_s else None) for t, _ in steady(10, ())]
    result = sealed([both_curves(), late], rows)
    assert [r.component for r in result.readings] == ["cpu"]
    (said,) = (f for f in result.findings if f.code == "CL114")
    assert said.severity == "warning"
    assert said.message.startswith(name)
    assert ("gave no reading" if from_s > 10 else "read over 6 s of 10 s") in said.message
    assert [r.energy_j for r in result.beside] == ([] if from_s > 10 else [Decimal("3000.000000")])


def test_a_declared_source_that_is_worse_evidence_stands_beside_and_says_so():
    worse = wall(name="ipmi", grade="C")
    rows = [(t, (10.0 * t,), (500.0 * t,)) for t, _ in steady(10, ())]
    result = sealed([PACKAGE, worse], rows)
    assert [r.component for r in result.readings] == ["cpu"]
    assert [f.severity for f in result.findings if f.code == "CL119"] == ["info"]


def test_findings_name_what_they_are_about_and_call_nothing_unknown_a_lower_bound():
    rows = [(t, (500.0 * t,)) for t, _ in steady(10, ())]
    (whole,) = (f for f in sealed([wall(whole_machine=True)], rows).findings if f.code == "CL103")
    assert whole.subject == "energy.wall"
    nothing = sealed([MODEL, power()], [(t, (t,), None) for t, _ in steady(2, ())])
    assert all("lower bound" not in f.message for f in nothing.findings if f.code == "CL105")
    assert any("is unknown" in f.message for f in nothing.findings if f.code == "CL105")


def test_a_divided_device_bills_its_activity_or_its_size():
    part = Channel(device="MIG-1", component="gpu", part=0.25)
    use = SensorInfo(
        name="use",
        kind="use",
        unit="s",
        scope="board",
        boundary="device",
        grade="D",
        update_period_s=0.1,
        channels=(
            Channel(device="MIG-1", component="gpu", who="own"),
            Channel(device="MIG-1", component="gpu", who="all"),
        ),
        method="activity",
    )
    rows = [(t, (300.0,), (t * 0.5, t * 0.8)) for t, _ in steady(10, ())]
    (by_use,) = sealed([power(channels=(part,)), use], rows).readings
    assert float(by_use.energy_j) == pytest.approx(3000 * 0.625)
    assert (by_use.grade, by_use.divided) == ("D", True)
    (by_size,) = sealed([power(channels=(part,))], [(t, v) for t, v, _ in rows]).readings
    assert float(by_size.energy_j) == pytest.approx(750)
    assert "25%" in by_size.method


def test_a_shared_device_is_billed_whole_and_says_so():
    use = SensorInfo(
        name="use",
        kind="use",
        unit="s",
        scope="board",
        boundary="device",
        grade="D",
        update_period_s=0.1,
        channels=(
            Channel(device="gpu-0", component="gpu", who="own"),
            Channel(device="gpu-0", component="gpu", who="all"),
        ),
        method="activity",
    )
    rows = [(t, (300.0,), (t * 0.5, t * 0.8)) for t, _ in steady(10, ())]
    result = sealed([power(), use], rows)
    assert result.readings[0].energy_j == Decimal("3000.000000")
    assert result.readings[0].own_share == pytest.approx(0.625)
    assert "CL117" in codes(result)


def test_a_gpu_whose_sensor_gave_nothing_is_named_and_unknown():
    rows = [(t, (t,), None) for t, _ in steady(10, ())]
    result = sealed([both_curves(), power()], rows)
    gpu = next(r for r in result.readings if r.component == "gpu")
    assert (gpu.energy_j, gpu.state, gpu.devices) == (None, "unknown", ("gpu-0",))
    assert total(result).state == "unbounded"


def test_two_meters_of_one_machine_are_one_whole():
    both = power(
        "cumulative",
        name="external:psu",
        unit="J",
        grade="A",
        boundary="it",
        scope="wall",
        channels=(Channel(device="psu:1", component="wall"), Channel(device="psu:2", component="wall")),
    )
    rows = [(t, (t,), (300.0 * t, 310.0 * t)) for t, _ in steady(10, ())]
    result = sealed([both_curves(), both], rows)
    assert [(r.devices, r.energy_j) for r in result.readings] == [
        (("psu:1",), Decimal("3000.000000")),
        (("psu:2",), Decimal("3100.000000")),
    ]
    assert total(result).value == 6100


def test_one_of_two_meters_that_stopped_is_not_the_whole():
    both = power(
        "cumulative",
        name="external:psu",
        unit="J",
        grade="A",
        boundary="it",
        scope="wall",
        channels=(Channel(device="psu:1", component="wall"), Channel(device="psu:2", component="wall")),
    )
    rows = [(t, (t,), (300.0 * t, 310.0 * t if t < 2 else None)) for t, _ in steady(10, ())]
    result = sealed([both_curves(), both], rows)
    assert {r.component for r in result.readings} == {"cpu"}
    assert {r.devices for r in result.beside} == {("psu:1",), ("psu:2",)}


def test_a_counter_is_not_given_up_for_power_in_a_window_of_a_few_ticks():
    rows = [(t, (300.0 * t,), (300.0,)) for t, _ in steady(0.2, (), pace_s=0.05)]
    assert [r.grade for r in sealed([counter_of_gpu(), power()], rows).readings] == ["B"]


def test_a_declared_meter_of_the_gpu_and_its_own_counter_are_not_added_up():
    declared = power(
        "cumulative", name="external:pcie", unit="J", grade="A", device="pcie", component="gpu", rated_w=None
    )
    rows = [(t, (300.0 * t,), (309.0 * t,)) for t, _ in steady(10, ())]
    result = sealed([counter_of_gpu(), declared], rows)
    assert [(r.grade, r.energy_j) for r in result.readings] == [("A", Decimal("3090.000000"))]
    assert [r.grade for r in result.beside] == ["B"]


@pytest.mark.parametrize("own", [0.0, 0.2, 0.8])
def test_the_instances_of_a_divided_device_sum_to_it_and_none_is_free(own):
    def billed(part, share):
        channel = Channel(device="GPU-1", component="gpu", rated_w=700.0, part=part)
        use = SensorInfo(
            name="use",
            kind="use",
            unit="s",
            scope="board",
            boundary="device",
            grade="D",
            update_period_s=0.1,
            channels=(
                Channel(device="GPU-1", component="gpu", who="own"),
                Channel(device="GPU-1", component="gpu", who="all"),
            ),
            method="activity",
        )
        rows = [(t, (300.0,), (t * share, t * 1.0)) for t, _ in steady(10, ())]
        (reading,) = sealed([power(channels=(channel,)), use], rows).readings
        return reading

    mine, others = billed(0.25, own), billed(0.75, 1 - own)
    assert float(mine.energy_j + others.energy_j) == pytest.approx(3000)
    assert mine.energy_j > 0
    assert mine.estimate.low > 0
