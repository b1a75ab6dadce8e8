"""The package's own curve, and what a TDP improves."""

import math

import msgspec
import pytest

from carbonlens.metering.cpu_device import (
    Tdp,
    better_curve,
    family_curve,
    package_threads,
    stated_curve,
    unusable_tdp,
)
from carbonlens.metering.cpu_families import Processor, curve_for, parse_cpuinfo
from carbonlens.metering.cpu_table import DEFAULT, ROWS, WALL_FULL
from carbonlens.metering.sensors.cpu_model import CpuModelSensor
from carbonlens.signals.cpu_curve import TDP_SHARES, TDP_SHARES_SPREAD

MILAN = Processor(vendor="AuthenticAMD", family=25, model=1, name="AMD EPYC 7763 64-Core Processor")
ALTRA = Processor(vendor="0x41", arm_part=0xD0C)
LAPTOP = Processor(name="Intel(R) Core(TM) i7-8650U CPU @ 1.90GHz", siblings=8)
HIDDEN = Processor(name="Intel(R) Xeon(R) Processor", siblings=2, virtual=True)
TDP = Tdp(watts=15.0, source="declared")


def described(processor):
    info = CpuModelSensor(curve=curve_for(processor)).info
    return msgspec.structs.replace(info, device_curve=family_curve(processor))


def test_a_family_draws_its_tdp_times_the_shape_of_public_profiles():
    row = next(r for r in ROWS if r.family == "AMD EPYC 3rd gen")
    curve = family_curve(MILAN)
    assert curve.known
    assert curve.full_w_per_thread == pytest.approx(row.tdp_w * 0.674, rel=1e-5)
    assert curve.idle_w_per_thread == pytest.approx(row.tdp_w * 0.142, rel=1e-5)
    assert curve.spread == pytest.approx(math.hypot(TDP_SHARES_SPREAD, row.tdp_spread))
    assert curve.n == row.tdp_n
    assert curve.full_w_per_thread < curve_for(MILAN).full_w_per_thread, (
        "a package draws less than its server"
    )


@pytest.mark.parametrize("processor", [ALTRA, LAPTOP, Processor()])
def test_a_family_without_a_tdp_gets_the_class_default_and_says_so(processor):
    curve = family_curve(processor)
    assert not curve.known
    assert curve.full_w_per_thread == pytest.approx(DEFAULT.tdp_w * TDP_SHARES.full, rel=1e-5)
    assert curve.spread > family_curve(MILAN).spread


def test_the_error_of_the_package_is_not_the_server_s():
    assert family_curve(MILAN).source_id != curve_for(MILAN).source_id


def test_a_stated_tdp_spreads_over_the_threads_of_the_package():
    curve = stated_curve(TDP, LAPTOP)
    assert curve.full_w_per_thread == pytest.approx(15 / 8 * 0.674, rel=1e-5)
    assert curve.spread == TDP_SHARES_SPREAD
    assert "15 W over 8 threads (declared)" in curve.source


@pytest.mark.parametrize(
    ("processor", "threads"),
    [
        (LAPTOP, 8),
        (HIDDEN, None),
        (msgspec.structs.replace(MILAN, virtual=True, siblings=2), 128),
        (ALTRA, None),
    ],
)
def test_threads_of_a_package(processor, threads):
    assert package_threads(processor) == threads


def test_a_virtual_machine_needs_the_threads_to_be_declared():
    assert stated_curve(TDP, HIDDEN) is None
    found = unusable_tdp(TDP, HIDDEN)
    assert (found.code, "cpu_threads" in found.mend) == ("CL150", True)
    declared = msgspec.structs.replace(TDP, threads=16)
    assert unusable_tdp(declared, HIDDEN) is None
    assert stated_curve(declared, HIDDEN).full_w_per_thread == pytest.approx(15 / 16 * 0.674, rel=1e-5)


def test_a_hypervisor_shows_in_the_flags():
    text = "model name\t: X\nsiblings\t: 4\nflags\t: fpu vme hypervisor sse\n"
    assert parse_cpuinfo(text) == Processor(name="X", siblings=4, virtual=True)
    assert not parse_cpuinfo(text.replace("hypervisor ", "")).virtual


def test_a_tdp_gives_an_unknown_family_both_curves():
    before = described(LAPTOP)
    after = better_curve(before, TDP, LAPTOP)
    assert not before.curve.known
    assert after.curve.known
    assert after.curve.full_w_per_thread == pytest.approx(15 / 8 * WALL_FULL.ratio, rel=1e-5)
    assert after.curve.relative_sigma < before.curve.relative_sigma
    assert "TDP 15 W" in after.method
    assert after.device_curve == stated_curve(TDP, LAPTOP)
    assert 0 < after.curve.idle_w_per_thread < after.curve.full_w_per_thread


def test_a_tdp_leaves_the_server_s_curve_of_a_known_family():
    before = described(MILAN)
    after = better_curve(before, Tdp(watts=280, source="x", threads=128), MILAN)
    assert (after.curve, after.method) == (before.curve, before.method)
    assert after.device_curve.full_w_per_thread == pytest.approx(280 / 128 * 0.674, rel=1e-5)


def test_a_tdp_leaves_what_was_measured():
    measured = msgspec.structs.replace(family_curve(LAPTOP), measured=True)
    before = msgspec.structs.replace(described(LAPTOP), device_curve=measured)
    assert better_curve(before, TDP, LAPTOP).device_curve == measured


def test_a_tdp_of_unknown_threads_changes_nothing():
    before = described(HIDDEN)
    assert better_curve(before, TDP, HIDDEN) == before


@pytest.mark.parametrize(
    ("tdp", "mend"),
    [
        (Tdp(watts=3000, source="declared", threads=16), "2000 at most"),
        (Tdp(watts=0, source="declared", threads=16), "one package"),
    ],
)
def test_a_declared_tdp_that_changes_nothing_is_said(tdp, mend):
    sensor = CpuModelSensor(tdp=tdp)
    (said,) = (f for f in sensor.notes() if f.code == "CL150")
    assert mend in said.mend
    probe = sensor.probe()
    assert (probe.usable, probe.reason, probe.mend) == (True, said.message, said.mend)
    assert sensor.info == CpuModelSensor().info
    usable = CpuModelSensor(tdp=Tdp(watts=65, source="declared", threads=16))
    assert [f.code for f in usable.notes()] == []


def test_the_sensor_carries_both_curves_and_takes_a_declared_tdp():
    assert CpuModelSensor().info.device_curve is not None
    declared = CpuModelSensor(tdp=Tdp(watts=65, source="declared", threads=16)).info
    assert declared.device_curve.full_w_per_thread == pytest.approx(65 / 16 * 0.674, rel=1e-5)
    assert msgspec.json.decode(msgspec.json.encode(declared), type=type(declared)) == declared
