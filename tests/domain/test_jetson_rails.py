"""Which rail is a Jetson's total: on the figures of tegrastats lines that people published."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carbonlens.domain.jetson_rails import MODULES, is_rail, layout, module_of

NANO = {"POM_5V_IN": 933, "POM_5V_GPU": 0, "POM_5V_CPU": 84}
TX2 = {"VDD_IN": 1038, "VDD_CPU": 153, "VDD_GPU": 153, "VDD_SOC": 384, "VDD_WIFI": 38, "VDD_DDR": 192}
XAVIER_NX = {"VDD_IN": 5542, "VDD_CPU_GPU_CV": 1594, "VDD_SOC": 1234}
AGX_XAVIER = {"GPU": 1155, "CPU": 385, "SOC": 2504, "CV": 0, "VDDRQ": 192, "SYS5V": 2692}
AGX_ORIN = {"VDD_GPU_SOC": 2390, "VDD_CPU_CV": 796, "VIN_SYS_5V0": 3522, "NC": 0, "VDDQ_VDD2_1V8AO": 301}
AGX_ORIN_7 = {"VDD_GPU_SOC": 5139, "VDD_CPU_CV": 3268, "VIN_SYS_5V0": 5500}
THOR = {"VDD_GPU": 1962, "VDD_CPU_SOC_MSS": 5887, "VIN_SYS_5V0": 5635, "VIN": 19780}


def power_mw(line):
    """The module's power as a reader of the layout has it."""
    rails = layout(list(line))
    assert rails.whole
    return line[rails.total.name] if rails.total else sum(line[r.name] for r in rails.parts)


@pytest.mark.parametrize(
    ("line", "mw"),
    [
        (NANO, 933),
        (TX2, 1038),
        (XAVIER_NX, 5542),
        (AGX_XAVIER, 6928),
        (AGX_ORIN, 7009),
        (AGX_ORIN_7, 13907),
        (THOR, 19780),
    ],
)
def test_a_module_draws_its_input_or_the_sum_of_its_rails(line, mw):
    assert power_mw(line) == mw


@pytest.mark.parametrize("line", [AGX_XAVIER, AGX_ORIN, AGX_ORIN_7])
def test_the_five_volt_rail_of_an_agx_is_a_part(line):
    rails = layout(list(line))
    assert rails.total is None
    five = next(r for r in rails.parts if r.name in {"SYS5V", "VIN_SYS_5V0"})
    assert five.component == "io"
    assert "not the module's total" in five.holds


def test_a_rail_that_feeds_several_is_none_of_them():
    shared = next(r for r in layout(list(XAVIER_NX)).parts if r.name == "VDD_CPU_GPU_CV")
    assert shared.component == "cpu+gpu+npu"


def test_what_is_left_out_has_a_reason():
    rails = layout([*AGX_ORIN, "CVB_ATX_12V", "sum of shunt voltages"])
    assert dict(rails.ignored) == {
        "NC": "not connected",
        "CVB_ATX_12V": "of the carrier board or unknown: it may hold other rails",
        "sum of shunt voltages": "a sum of shunt voltages, no rail",
    }


def test_rails_without_the_input_are_not_the_module():
    rails = layout(["VDD_CPU_GPU_CV", "VDD_SOC"])
    assert (rails.whole, rails.missing) == (False, ("VDD_IN",))


@pytest.mark.parametrize("lost", [n for n in AGX_ORIN if n not in {"NC", "VDDQ_VDD2_1V8AO"}])
def test_a_sum_that_skips_a_rail_is_not_the_module(lost):
    rails = layout([n for n in AGX_ORIN if n != lost], module_of("NVIDIA Jetson AGX Orin"))
    assert (rails.whole, rails.missing) == (False, (lost,))


def test_a_thor_on_a_board_without_an_input_monitor_is_the_sum_of_its_rails():
    assert power_mw({n: mw for n, mw in THOR.items() if n != "VIN"}) == 13484


def test_rails_of_an_unknown_machine_are_nothing():
    rails = layout(["A", "B"])
    assert (rails.whole, rails.rails, rails.title) == (False, (), "unknown module")
    assert layout([]).whole is False


@pytest.mark.parametrize(
    ("model", "compatible", "title"),
    [
        ("NVIDIA Jetson Nano Developer Kit", (), "Jetson Nano"),
        ("NVIDIA Jetson Xavier NX Developer Kit", (), "Jetson Xavier NX"),
        ("Jetson-AGX", ("nvidia,p2972-0000", "nvidia,tegra194"), "Jetson AGX Xavier"),
        ("Jetson-AGX", (), "Jetson AGX Xavier"),
        ("quill", ("nvidia,p3310-1000", "nvidia,tegra186"), "Jetson TX2"),
        ("NVIDIA Orin Nano Developer Kit", (), "Jetson Orin NX or Orin Nano"),
        ("a carrier", ("nvidia,p3768-0000+p3767-0005", "nvidia,tegra234"), "Jetson Orin NX or Orin Nano"),
        ("NVIDIA IGX Orin Developer Kit", ("nvidia,p3740-0002+p3701-0008",), "Jetson AGX Orin"),
        ("Jetson AGX Orin as Nano 4GB", ("nvidia,p3737-0000+p3701-0000-as-p3767-0004",), "Jetson AGX Orin"),
        ("NVIDIA Jetson AGX Thor Developer Kit", ("nvidia,tegra264",), "Jetson Thor"),
    ],
)
def test_the_module_is_told_by_its_part_number_or_its_name(model, compatible, title):
    assert module_of(model, compatible).title == title


@pytest.mark.parametrize("model", [None, "", "Raspberry Pi 5", "Nvidia DGX Spark", "QEMU Virtual Machine"])
def test_other_machines_are_no_jetson(model):
    assert module_of(model, ("brcm,bcm2712",)) is None


NAMES = sorted({r.name for m in MODULES for r in m.rails} | {"NC", "CVB_ATX_5V", ""})


@given(st.lists(st.sampled_from(NAMES)), st.sampled_from([None, *MODULES]))
def test_every_label_has_one_place_and_a_total_is_alone(names, module):
    rails = layout(names, module)
    placed = [r.name for r in rails.rails] + [name for name, _ in rails.ignored]
    assert sorted(placed) == sorted(set(names))
    assert all(r.component != "total" for r in rails.parts)
    assert all(is_rail(r.name) for r in rails.rails)
    assert not (rails.whole and rails.missing)
