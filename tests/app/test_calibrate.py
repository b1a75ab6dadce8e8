"""Calibrating this machine's CPU curve: by RAPL, by a meter in a program of its own, by hand."""

import re
import sys
import time
from contextlib import contextmanager

import msgspec
import pytest

from carbonlens.app.calibrate import (
    CpuRequest,
    calibrate_cpu,
    declared_sources,
    list_calibrations,
    remove_calibration,
)
from carbonlens.domain.sources import ExternalMeter, Sources
from carbonlens.errors import MeasurementError, SelectionError, UsageError
from carbonlens.metering import calibration_files as files
from carbonlens.metering.calibrations import apply
from carbonlens.metering.sensors.cpu_model import CpuModelSensor
from tests.metering.machine import Machine

BY_HAND = CpuRequest(idle_w=48.0, full_w=160.0, meter="plug", meter_95=0.02)


def quiet(text):
    assert text


def calibrated(request, sources=None, **more):
    return calibrate_cpu(request, sources or Sources(), progress=quiet, **more)


def test_against_rapl_the_packages_curve_changes(tmp_path):
    machine = Machine(tmp_path)
    found = calibrated(CpuRequest(), powercap=machine.powercap, setting=machine.setting)
    assert found.measured.meter == "RAPL"
    assert found.measured.full_w.value == pytest.approx(200, rel=1e-3)
    assert (found.before.measured, found.after.measured) == (False, True)
    info = apply(CpuModelSensor().info)
    assert info.device_curve == found.after
    assert info.device_curve.full_w_per_thread == pytest.approx(200 / found.measured.threads, rel=1e-3)
    assert info.curve == CpuModelSensor().info.curve, "RAPL says nothing of the plug"
    assert found.findings == ()


@pytest.mark.slow
def test_against_a_meter_in_a_program_the_whole_machine_s_curve_changes(tmp_path):
    flag = tmp_path / "busy"
    script = tmp_path / "meter.py"
    script.write_text(
        "import os, sys, time\nwhile True:\n"
        f"    watts = 150.0 if os.path.exists({str(flag)!r}) else 50.0\n"
        "    print(f'{time.monotonic() * 1e6:.0f},{watts}', flush=True)\n    time.sleep(0.02)\n"
    )
    machine = Machine(tmp_path)

    @contextmanager
    def load():
        flag.touch()
        with machine.load():
            yield
        flag.unlink()

    def sleep(seconds):
        time.sleep(seconds)
        machine.sleep(seconds)

    setting = msgspec.structs.replace(
        machine.setting, load=load, sleep=sleep, clock=time.monotonic, settle_s=0.5
    )
    meter = ExternalMeter(name="wall", command=(sys.executable, str(script)))
    found = calibrated(
        CpuRequest(against="external", seconds=2.0),
        Sources(external=(meter,)),
        powercap=tmp_path / "none",
        setting=setting,
    )
    assert (found.measured.boundary, found.measured.meter) == ("it", "wall")
    assert found.measured.full_w.value == pytest.approx(150, rel=0.05)
    assert found.measured.idle_w.value == pytest.approx(50 - 100 * 0.02 / 0.68, rel=0.05)
    assert "CL154" in {f.code for f in found.findings}, "the meter's accuracy was not stated"
    assert apply(CpuModelSensor().info).curve == found.after


def test_by_hand():
    found = calibrated(BY_HAND)
    assert found.after.full_w_per_thread == pytest.approx(160 / found.measured.threads)
    assert "against plug" in apply(CpuModelSensor().info).method
    again = calibrated(CpuRequest(against="watts:50,170"))
    assert again.before == found.after
    assert again.measured.meter == "watts given by hand"
    assert "CL154" in {f.code for f in again.findings}


def test_without_a_meter_it_says_why_and_what_can_be_done(tmp_path):
    with pytest.raises(MeasurementError) as caught:
        calibrated(CpuRequest(), powercap=tmp_path / "none")
    text = str(caught.value)
    assert "RAPL: virtual machines and most ARM servers show none" in text
    assert "--idle-w and --full-w" in text
    assert list_calibrations() == ()


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ({"against": "magic"}, "no meter 'magic'"),
        ({"against": "external"}, "declared: none"),
        ({"against": "external:a"}, "declared: none"),
        ({"against": "redfish"}, "no Redfish controller"),
        ({"against": "watts:1"}, "two numbers"),
        ({"against": "watts:a,b"}, "two numbers"),
        ({"idle_w": 5.0}, "belong together"),
        ({"idle_w": 5.0, "full_w": 9.0, "against": "rapl"}, "belong together"),
        ({"seconds": 0.0}, "not between"),
        ({"seconds": float("nan")}, "not between"),
    ],
)
def test_requests_that_cannot_be_met_are_refused(tmp_path, given, text):
    with pytest.raises(UsageError, match=text):
        calibrated(CpuRequest(**given), powercap=tmp_path / "none")


def test_a_meter_of_something_else_is_refused(tmp_path):
    script = "import time\nwhile 1: print(f'{time.time() * 1e6:.0f},5', flush=True); time.sleep(.02)"
    meter = ExternalMeter(name="g", command=(sys.executable, "-c", script), component="gpu")
    with pytest.raises(MeasurementError, match="g: "):
        calibrated(CpuRequest(against="external:g"), Sources(external=(meter,)), powercap=tmp_path)


def test_list_and_remove():
    found = calibrated(BY_HAND)
    (listed,) = list_calibrations()
    assert (listed.path, listed.here, listed.stored.device, listed.findings) == (found.path, True, "cpu", ())
    with pytest.raises(SelectionError, match="no calibration of 'GPU-1'"):
        remove_calibration("GPU-1")
    assert remove_calibration("CPU") == found.path
    assert list_calibrations() == ()
    assert apply(CpuModelSensor().info) == CpuModelSensor().info


@pytest.mark.parametrize("damage", ["truncated", "time"])
def test_a_damaged_file_is_listed_and_can_be_removed(damage):
    path = calibrated(BY_HAND).path
    absurd = re.sub(r'"taken_us": *[0-9]+', '"taken_us": 9000000000000000000', path.read_text())
    path.write_text("{" if damage == "truncated" else absurd)
    (listed,) = list_calibrations()
    assert (listed.stored, [f.code for f in listed.findings]) == (None, ["CL153"])
    assert remove_calibration("cpu") == path
    assert list_calibrations() == ()


def test_another_machine_s_calibration_is_not_this_one_s():
    path = calibrated(BY_HAND).path
    path.rename(path.with_name("cpu-ffffffff.json"))
    (listed,) = list_calibrations()
    assert not listed.here
    assert files.read("cpu").stored is None
    with pytest.raises(SelectionError):
        remove_calibration("cpu")


def test_what_is_declared_is_found(tmp_path, monkeypatch):
    file = tmp_path / "sources.toml"
    file.write_text("cpu_tdp_w = 65.0\ncpu_threads = 16\n")
    monkeypatch.setenv("CARBONLENS_SOURCES", str(file))
    assert declared_sources() == Sources(cpu_tdp_w=65.0, cpu_threads=16)
