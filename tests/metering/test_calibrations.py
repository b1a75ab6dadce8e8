"""What is kept of a calibration, and what it does to a sensor's description."""

import json
import math

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from carbonlens.domain.estimate import Estimate
from carbonlens.domain.finding import Finding
from carbonlens.errors import UnwritableError
from carbonlens.metering import calibration_files as files
from carbonlens.metering import calibrations
from carbonlens.metering.calibration_files import MachineCurve, Stored
from carbonlens.metering.sensors import Channel, SensorInfo
from carbonlens.metering.sensors.cpu_model import CpuModelSensor
from carbonlens.signals.calibrate import Calibration
from carbonlens.signals.cpu_curve import TWO_POINTS_SPREAD

GPU = "GPU-0a1b2c3d-1111-2222-3333-444455556666"
DAY_US = 86_400_000_000
NOW_US = 1_795_860_000 * 1_000_000  # 2026-11-28
LINE = Calibration(
    source=f"nvml_power:{GPU}",
    gain=Estimate(value=0.96, unit="1", u_random=0.002, signed=True),
    offset_w=Estimate(value=8.0, unit="W", u_random=0.5, signed=True),
    lag_us=Estimate(value=100_000, unit="us", u_random=30_000, signed=True),
    level_w=Estimate(value=200.0, unit="W", u_random=0.2),
    pivot_w=200.0,
    read_w=(60.0, 340.0),
    residual_w=1.0,
    explained=0.999,
    n=600,
    meter_u=0.002,
)


def info(name="nvml_power", kind="instant", unit="W", device=GPU, **more):
    return SensorInfo(
        name=name,
        kind=kind,
        unit=unit,
        scope="board",
        boundary="device",
        grade="C",
        update_period_s=0.1,
        channels=(Channel(device=device, component="gpu", rated_w=350.0),),
        method="power of the board",
        **more,
    )


def stored(device=GPU, calibration=LINE, **more):
    return Stored(
        device=device,
        machine="m" * 32,
        meter="PMD",
        taken_us=NOW_US,
        sensor="nvml_power",
        calibration=calibration,
        **more,
    )


def curve(boundary="it", idle_w=50.0, full_w=180.0, taken_us=NOW_US):
    return MachineCurve(
        boundary=boundary,
        idle_w=Estimate(value=idle_w, unit="W", u_random=0.1),
        full_w=Estimate(value=full_w, unit="W", u_random=0.1, u_by_source={"meter:x": 1.8}),
        threads=16,
        meter="wall meter",
        taken_us=taken_us,
        loads=(0.01, 0.99),
    )


def of_cpu(*curves):
    return Stored(device="cpu", machine="m" * 32, meter="wall meter", taken_us=NOW_US, curves=curves)


def test_without_a_folder_nothing_changes_and_none_is_made(tmp_path):
    place = tmp_path / "calibrations"
    assert calibrations.apply(info(), folder=place) == info()
    assert calibrations.load(GPU, folder=place) is None
    assert not place.exists()


def test_a_kept_calibration_is_put_on_the_device_s_power_and_named(tmp_path):
    files.store(stored(), folder=tmp_path)
    got = calibrations.applied(info(), folder=tmp_path, now_us=NOW_US)
    assert got.info.channels[0].calibration == LINE
    assert got.info.channels[0].rated_w == 350.0
    assert got.info.method == "power of the board; calibrated 2026-11-28 against PMD"
    assert got.findings == ()
    assert calibrations.load(GPU, folder=tmp_path) == LINE


def test_other_devices_stay_as_they_are(tmp_path):
    files.store(stored(), folder=tmp_path)
    other = info(device="GPU-ffffffff-1111-2222-3333-444455556666")
    assert calibrations.apply(other, folder=tmp_path) == other
    two = msgspec.structs.replace(info(), channels=info().channels + other.channels)
    got = calibrations.apply(two, folder=tmp_path)
    assert [c.calibration is not None for c in got.channels] == [True, False]
    assert f"{GPU} calibrated" in got.method


def test_another_sensor_of_the_device_keeps_its_own_lag(tmp_path):
    files.store(stored(), folder=tmp_path)
    average = info(name="nvml_average", kind="average", window_s=1.0, lag_s=0.02)
    line = calibrations.apply(average, folder=tmp_path).channels[0].calibration
    assert (line.gain, line.level_w, line.pivot_w) == (LINE.gain, LINE.level_w, LINE.pivot_w)
    assert (line.lag_us.value, line.lag_us.u_random) == (20_000, 100_000)


def test_a_counter_gets_a_gain_that_is_true_at_the_mean_and_holds_the_line_at_both_ends(tmp_path):
    files.store(stored(), folder=tmp_path)
    counter = info(name="nvml_energy", kind="cumulative", unit="J")
    line = calibrations.apply(counter, folder=tmp_path).channels[0].calibration
    assert line.gain.value == pytest.approx(1.0)
    assert line.correct([0.0, 200.0]) == pytest.approx([0.0, 200.0])
    for told in LINE.read_w:
        true = LINE.correct([told])[0]
        assert abs(line.correct([told])[0] - true) / told <= math.sqrt(3) * line.gain.u_random


@given(st.floats(0.8, 1.2), st.floats(100, 300), st.floats(1, 50), st.floats(1, 100))
def test_the_counter_s_factor_lies_within_its_uncertainty_over_the_range(gain, pivot, below, above):
    line = msgspec.structs.replace(
        LINE,
        gain=Estimate(value=gain, unit="1", u_random=0.001, signed=True),
        level_w=Estimate(value=pivot * 1.02, unit="W", u_random=0.1),
        pivot_w=pivot,
        read_w=(pivot - below, pivot + above),
    )
    alone = calibrations.gain_alone(line)
    for told in (pivot - below, pivot, pivot + above):
        miss = abs(alone.correct([told])[0] - line.correct([told])[0]) / told
        assert miss <= math.sqrt(3) * alone.gain.u_random + 1e-9


def test_seconds_of_use_are_not_calibrated(tmp_path):
    files.store(stored(), folder=tmp_path)
    use = info(name="nvml_use", kind="use", unit="s")
    assert calibrations.apply(use, folder=tmp_path) == use


def test_a_calibration_that_must_not_be_used_is_not(tmp_path):
    bad = msgspec.structs.replace(LINE, findings=(Finding(code="CL129", severity="error", message="no"),))
    files.store(stored(calibration=bad), folder=tmp_path)
    assert calibrations.apply(info(), folder=tmp_path) == info()
    assert calibrations.load(GPU, folder=tmp_path) is None


def test_the_machine_s_curves_override_the_family_s(tmp_path):
    files.store(of_cpu(curve()), folder=tmp_path)
    before = CpuModelSensor().info
    got = calibrations.apply(before, folder=tmp_path)
    assert got.curve.full_w_per_thread == pytest.approx(180 / 16)
    assert got.curve.idle_w_per_thread == pytest.approx(50 / 16)
    assert got.curve.known
    assert got.curve.relative_sigma == pytest.approx(
        math.hypot(TWO_POINTS_SPREAD, math.hypot(0.1, 1.8) / 180)
    )
    assert got.curve.relative_sigma < before.curve.relative_sigma
    assert "calibrated 2026-11-28 against wall meter" in got.method
    assert got.device_curve == before.device_curve


def test_the_packages_curve_is_another_and_both_are_kept(tmp_path):
    files.store(of_cpu(curve()), folder=tmp_path)
    files.store(of_cpu(curve("device", 10.0, 90.0)), folder=tmp_path)
    got = calibrations.apply(CpuModelSensor().info, folder=tmp_path)
    assert got.curve.full_w_per_thread == pytest.approx(180 / 16)
    assert got.device_curve.full_w_per_thread == pytest.approx(90 / 16)
    assert got.curve.source_id != got.device_curve.source_id
    files.store(of_cpu(curve(full_w=200.0)), folder=tmp_path)
    got = calibrations.apply(CpuModelSensor().info, folder=tmp_path)
    assert got.curve.full_w_per_thread == pytest.approx(200 / 16)
    assert got.device_curve.full_w_per_thread == pytest.approx(90 / 16)


def test_an_old_calibration_is_applied_and_said_to_be_old(tmp_path):
    files.store(stored(), folder=tmp_path)
    for days, codes in ((364, []), (366, ["CL151"])):
        got = calibrations.applied(info(), folder=tmp_path, now_us=NOW_US + days * DAY_US)
        assert [f.code for f in got.findings] == codes
        assert got.info.channels[0].calibration == LINE


def test_the_older_of_two_curves_tells_the_age(tmp_path):
    files.store(of_cpu(curve(taken_us=NOW_US - 400 * DAY_US)), folder=tmp_path)
    files.store(of_cpu(curve("device", 10.0, 90.0)), folder=tmp_path)
    got = calibrations.applied(CpuModelSensor().info, folder=tmp_path, now_us=NOW_US)
    assert [f.code for f in got.findings] == ["CL151"]


def test_another_driver_is_said(tmp_path):
    version = tmp_path / "version"
    version.write_text(
        "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.159.04  Release Build\nGCC 13.1\n"
    )
    assert calibrations.driver_version(GPU, version) == "580.159.04"
    place = tmp_path / "kept"
    files.store(stored(driver="580.159.04"), folder=place)
    same = calibrations.applied(info(), folder=place, now_us=NOW_US, driver=version)
    assert same.findings == ()
    version.write_text("NVRM version: NVIDIA UNIX x86_64 Kernel Module  590.10  Mon\n")
    other = calibrations.applied(info(), folder=place, now_us=NOW_US, driver=version)
    assert [f.code for f in other.findings] == ["CL152"]
    assert "590.10" in other.findings[0].message


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"\xff\xfe",
        b"[]",
        b'{"device": "cpu"}',
        msgspec.json.encode(of_cpu(curve(idle_w=200.0))),
        msgspec.json.encode(msgspec.structs.replace(of_cpu(curve()), schema="carbonlens/calibration/9")),
        *(
            msgspec.json.encode(msgspec.structs.replace(record, taken_us=taken_us))
            for taken_us in (-1, 2**62, -(2**62), 4_102_444_800_000_000)
            for record in (of_cpu(curve()), of_cpu(curve(taken_us=taken_us)))
        ),
        msgspec.json.encode(of_cpu(curve())).replace(b'"taken_us":', b'"taken_us":' + b"9" * 30),
    ],
)
def test_a_damaged_file_is_a_finding_and_nothing_more(tmp_path, content):
    files.path_of("cpu", folder=tmp_path).write_bytes(content)
    before = CpuModelSensor().info
    got = calibrations.applied(before, folder=tmp_path)
    assert got.info == before
    assert [f.code for f in got.findings] == ["CL153"]
    assert got.findings[0].file == str(files.path_of("cpu", folder=tmp_path))


def test_a_file_is_one_device_s_wherever_it_is_or_of_this_machine(tmp_path):
    assert files.path_of(GPU, folder=tmp_path).name == f"{GPU}.json"
    names = {files.path_of(d, folder=tmp_path).name for d in ("a/b", "a_b", "a b", "../x", ".x", "cpu")}
    assert len(names) == 6
    assert all(files.path_of(d, folder=tmp_path).parent == tmp_path for d in ("../x", "/etc/x", ".."))


def test_storing_leaves_one_whole_file(tmp_path):
    path = files.store(stored(), folder=tmp_path)
    files.store(stored(), folder=tmp_path)
    assert list(tmp_path.iterdir()) == [path]
    kept = json.loads(path.read_text())
    assert (kept["meter"], kept["calibration"]["read_w"]) == ("PMD", [60.0, 340.0])
    assert [found.stored for _, found in files.kept(folder=tmp_path)] == [stored()]
    files.remove(path)
    assert list(files.kept(folder=tmp_path)) == []
    with pytest.raises(UnwritableError):
        files.remove(path)


def test_a_place_that_cannot_be_written_is_said(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(UnwritableError, match="cannot be written"):
        files.store(stored(), folder=tmp_path / "file" / "calibrations")
