"""Which family a processor is taken for: by its numbers, then by its name, else by neither."""

import pytest

from carbonlens.metering.cpu_families import Processor, curve_for, parse_cpuinfo, this_processor
from carbonlens.metering.cpu_table import DEFAULT

HIDDEN_MILAN = """\
processor\t: 0
vendor_id\t: AuthenticAMD
cpu family\t: 25
model\t\t: 1
model name\t: AMD EPYC
stepping\t: 1

processor\t: 1
vendor_id\t: AuthenticAMD
cpu family\t: 99
model name\t: something else
"""
ALTRA = (
    "processor\t: 0\nCPU implementer\t: 0x41\nCPU architecture: 8\nCPU variant\t: 0x3\nCPU part\t: 0xd0c\n"
)


def amd(family, model, name="AMD EPYC"):
    return Processor(vendor="AuthenticAMD", family=family, model=model, stepping=1, name=name)


def intel(model, stepping=4, name="Intel Xeon Processor"):
    return Processor(vendor="GenuineIntel", family=6, model=model, stepping=stepping, name=name)


def named(name):
    return Processor(name=name)


@pytest.mark.parametrize(
    ("processor", "family"),
    [
        (amd(23, 1), "AMD EPYC 1st gen"),
        (amd(23, 49), "AMD EPYC 2nd gen"),
        (amd(25, 1), "AMD EPYC 3rd gen"),
        (amd(25, 17), "AMD EPYC 4th gen"),
        (amd(25, 160), "AMD EPYC 4th gen, Zen 4c"),
        (amd(26, 2), "AMD EPYC 5th gen"),
        (intel(85, 4), "Intel Skylake"),
        (intel(85, 7), "Intel Cascade Lake"),
        (intel(85, 11), "Intel Cooper Lake"),
        (intel(106), "Intel Ice Lake"),
        (intel(143), "Intel Sapphire Rapids"),
        (intel(207), "Intel Emerald Rapids"),
        (intel(173), "Intel Granite Rapids"),
        (intel(79), "Intel Broadwell"),
        (intel(63), "Intel Haswell"),
        (intel(158, 10), "Intel Coffee Lake E"),
        (named("AMD EPYC 7763 64-Core Processor"), "AMD EPYC 3rd gen"),
        (named("AMD EPYC 9R14"), "AMD EPYC 4th gen"),
        (named("Intel(R) Xeon(R) Platinum 8375C CPU @ 2.90GHz"), "Intel Ice Lake"),
        (named("Intel(R) Xeon(R) Platinum 8488C"), "Intel Sapphire Rapids"),
        (named("Intel(R) Xeon(R) CPU E5-2680 v4 @ 2.40GHz"), "Intel Broadwell"),
        (named("Intel(R) Xeon(R) Gold 6248 CPU @ 2.50GHz"), "Intel Cascade Lake"),
        (named("Intel(R) Xeon(R) 6787P"), "Intel Granite Rapids"),
    ],
)
def test_known_families(processor, family):
    curve = curve_for(processor)
    assert (curve.family, curve.known) == (family, True)


@pytest.mark.parametrize(
    "processor",
    [
        Processor(),
        named("Intel(R) Xeon(R) CPU @ 2.20GHz"),
        amd(99, 1),
        amd(25, 0x50, "AMD Ryzen 7 5800U"),
        Processor(vendor="0x41", arm_part=0xD40),
    ],
)
def test_unknown_families_get_the_class_default_and_say_so(processor):
    curve = curve_for(processor)
    assert not curve.known
    assert (curve.family, curve.full_w_per_thread) == (DEFAULT.family, DEFAULT.full_w)


def test_a_virtual_machine_that_hides_its_model_is_known_by_numbers():
    processor = parse_cpuinfo(HIDDEN_MILAN)
    assert (processor.family, processor.model, processor.name) == (25, 1, "AMD EPYC")
    assert curve_for(processor).family == "AMD EPYC 3rd gen"


def test_an_arm_processor_is_known_by_its_part():
    assert curve_for(parse_cpuinfo(ALTRA)).family == "Ampere Altra"


def test_the_numbers_outrank_the_name():
    assert curve_for(amd(25, 17, "AMD EPYC 7763 64-Core Processor")).family == "AMD EPYC 4th gen"


@pytest.mark.parametrize("text", ["", "model : many\ncpu family : x", "::::\n\x00\n", "no colon at all"])
def test_odd_text_gives_an_unknown_processor(text):
    assert parse_cpuinfo(text).family is None


def test_a_missing_file_gives_an_unknown_processor(tmp_path):
    assert this_processor(tmp_path / "cpuinfo") == Processor()
