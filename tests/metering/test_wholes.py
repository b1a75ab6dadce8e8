"""Meters of one whole: one is the run's energy, the others stand beside, none is added to it."""

from decimal import Decimal
from itertools import combinations, permutations

import pytest

from carbonlens.metering.sensors import Channel
from tests.metering.test_sealing import both_curves, codes, power, sealed, steady, total

WATTS = {"external:plug": 120, "ipmi": 130, "redfish": 128, "hwmon:machine": 126}
MODULE_WATTS = {"hwmon:grace": 500, "nvml_energy": 510, "hwmon:input": 505, "external:module": 498}


def meter(name, component, *devices, boundary=None, grade=None):
    counts = name in {"external:plug", "nvml_energy", "external:module"}
    return power(
        "cumulative" if counts else "instant",
        name=name,
        unit="J" if counts else "W",
        grade=grade or ("A" if name.startswith("external") else "B" if name == "nvml_energy" else "C"),
        boundary=boundary or ("it" if component == "wall" else "device"),
        channels=tuple(Channel(device=d, component=component) for d in devices or (name,)),
    )


def reading(info, watts, t):
    return (watts * t if info.unit == "J" else float(watts),) * len(info.channels)


def measured(meters, watts, *more, seconds=10):
    rows = [(t, *(reading(m, watts[m.name], t) for m in meters), *more) for t, _ in steady(seconds, ())]
    return sealed(meters, rows)


@pytest.mark.parametrize(
    ("component", "watts"), [("wall", WATTS), ("total", MODULE_WATTS)], ids=["machine", "module"]
)
@pytest.mark.parametrize("count", [2, 3, 4])
def test_meters_of_one_whole_are_never_added_whatever_their_order(component, watts, count):
    for names in (p for c in combinations(watts, count) for p in permutations(c)):
        result = measured([meter(n, component) for n in names], watts)
        best = min(names, key=lambda n: (meter(n, component).grade, names.index(n)))
        assert [float(r.energy_j) for r in result.readings] == pytest.approx([watts[best] * 10]), names
        assert len(result.beside) == count - 1


def test_rails_of_one_meter_add_up_beside_another_meter():
    feeds = meter("external:plug", "wall", "plug:1", "plug:2")
    result = measured([meter("ipmi", "wall"), feeds], WATTS)
    assert total(result).value == 2 * 1200
    assert [r.energy_j for r in result.beside] == [Decimal("1300.000000")]


def test_modules_that_one_library_reads_by_two_sensors_add_up():
    """NVML's counter works on one superchip of a machine, its power alone on the other."""
    both = [meter("nvml_energy", "total", "GPU-1"), meter("nvml_power", "total", "GPU-2")]
    result = measured([*both, meter("hwmon:grace", "total")], {**MODULE_WATTS, "nvml_power": 490})
    assert sorted(float(r.energy_j) for r in result.readings) == [4900.0, 5100.0]


def test_meters_at_two_boundaries_leave_one_of_them():
    """A facility's meter and a plug: neither is lost for the other."""
    cooled = meter("external:plug", "wall", boundary="facility")
    result = measured([cooled, meter("ipmi", "wall")], WATTS)
    assert [(r.boundary, float(r.energy_j)) for r in result.readings] == [("facility", 1200.0)]


def test_meters_of_one_whole_that_exclude_each_other_are_said_to():
    result = measured([meter("external:plug", "wall"), meter("ipmi", "wall")], {**WATTS, "ipmi": 300})
    assert "CL128" in codes(result)


@pytest.mark.parametrize("component", ["wall", "total"])
@pytest.mark.parametrize("share", [0.05, 0.5, 0.85])
def test_a_whole_that_is_all_there_is_is_a_lower_bound(component, share):
    lone = meter("external:plug", component)
    rows = [(t, (100.0 * t,) if t <= 10 * share else None) for t, _ in steady(10, ())]
    result = sealed([lone], rows)
    (only,) = result.readings
    assert (only.state, float(only.energy_j)) == ("unbounded", pytest.approx(1000 * share))
    assert (total(result).state, total(result).value) == ("unbounded", pytest.approx(1000 * share))
    assert result.covered_s == pytest.approx(10 * share)


def test_a_whole_of_which_less_is_missing_than_of_its_parts_is_the_better_lower_bound():
    plug, gpu = meter("external:plug", "wall"), power()
    rows = [(t, (120.0 * t,) if t <= 8.5 else None, (100.0,) if t < 3 else None) for t, _ in steady(10, ())]
    assert [r.component for r in sealed([plug, gpu], rows).readings] == ["wall"]
    rows = [(t, (120.0 * t,) if t <= 2 else None, (100.0,) if t < 8 else None) for t, _ in steady(10, ())]
    assert [r.component for r in sealed([plug, gpu], rows).readings] == ["gpu"]


def test_a_barely_covered_whole_never_replaces_parts_that_are_known_to_hold_more():
    """A plug told 12 s of 100 and the GPU 10 s, while the processor's counter told all of it."""
    rapl = power("cumulative", name="rapl", unit="J", component="cpu", grade="B", rated_w=None)
    rows = [
        (t, (50.0 * t,), (300.0,) if t < 10 else None, (500.0 * t,) if t <= 12 else None)
        for t, _ in steady(100, ())
    ]
    result = sealed([rapl, power(), meter("external:plug", "wall")], rows)
    assert [r.component for r in result.readings] == ["cpu", "gpu"]
    assert total(result).state == "unbounded"
    assert total(result).value == float(sum(r.energy_j for r in result.readings))
    assert total(result).value > 5000 + 2900


@pytest.mark.parametrize("cpu", [both_curves(), None], ids=["model", "alone"])
def test_one_of_two_rails_that_never_told_is_missing_not_nothing(cpu):
    feeds = meter("external:plug", "wall", "plug:1", "plug:2")
    rows = [(t, *([(t,)] if cpu else []), (300.0 * t, None)) for t, _ in steady(10, ())]
    result = sealed([*([cpu] if cpu else []), feeds], rows)
    assert total(result).state == "unbounded"
    assert total(result).value == 3000


@pytest.mark.parametrize("component", ["wall", "total"])
@pytest.mark.parametrize("kind", ["instant", "average"])
def test_0_w_of_a_machine_or_module_is_unknown_and_a_sleeping_device_is_0(component, kind):
    rows = [(t, (0.0,)) for t, _ in steady(10, ())]
    (lone,) = sealed([power(kind, name="m", component=component, rated_w=None)], rows).readings
    assert (lone.energy_j, lone.state) == (None, "unknown")
    (gpu,) = sealed([power(kind, name="m", component="gpu")], rows).readings
    assert (gpu.energy_j, gpu.state) == (0, "known")


def test_a_meter_that_reads_0_w_gives_way_to_the_parts():
    acpi = power("average", name="hwmon:machine", component="wall", boundary="it", rated_w=None)
    result = sealed([both_curves(), acpi], [(t, (t,), (0.0,)) for t, _ in steady(10, ())])
    assert [(r.component, r.state) for r in result.readings] == [("cpu", "known")]


def test_apples_own_estimate_is_read_before_the_model_of_all_processors():
    apple = meter("powermetrics", "cpu", grade="D", boundary="device")
    model = both_curves()
    result = sealed([apple, model], [(t, (10.0,), (t,)) for t, _ in steady(10, ())])
    assert [(r.component, float(r.energy_j)) for r in result.readings] == [("cpu", pytest.approx(100))]
    assert result.readings[0].method == "power"
