"""Calibrating a device: at once with a meter in a program of its own, or from two files."""

import pytest

from carbonlens.app.calibrate_device import calibrate_device
from carbonlens.app.calibrate_fit import DeviceRequest
from carbonlens.domain.sources import ExternalMeter, Sources
from carbonlens.errors import InputFileError, MeasurementError, SelectionError, UsageError
from carbonlens.metering.calibrations import apply, load
from carbonlens.metering.sensors.external import ExternalSensor
from tests.app.calibrating import GAIN, GPU, LAG_S, LEVELS_W, OFFSET_W, Board, load_w, meter

OTHER = "GPU-0a1bffff-1111-2222-3333-444455556666"


def quiet(text):
    assert text


def calibrated(request, sources=None, boards=()):
    return calibrate_device(request, sources or Sources(), sensors=lambda: iter(boards), progress=quiet)


def traces(folder, *, gain=GAIN, offset_w=OFFSET_W, levels=LEVELS_W, shift_s=0.0, seconds=30):
    """Half a minute before and half a minute of 5 s steps, the meter at 100 and the device at 20 Hz."""
    device, wall = folder / "device.csv", folder / "meter.csv"
    with device.open("w") as stream:
        for i in range(seconds * 20):
            t = 30.013 + i / 20
            stream.write(f"{(t + shift_s) * 1e6:.0f},{(load_w(t - LAG_S, levels, 5.0) - offset_w) / gain}\n")
    with wall.open("w") as stream:
        stream.write("t_us,watts\n")
        for i in range((30 + seconds) * 100):
            stream.write(f"{i * 1e4:.0f},{load_w(i / 100, levels, 5.0)}\n")
    return {"device_trace": device, "meter_trace": wall}


@pytest.mark.slow
def test_device_and_meter_are_read_at_once(tmp_path):
    board, other = Board(), Board(device=OTHER, kind="cumulative")
    found = calibrated(
        DeviceRequest(device="GPU-0a1b", seconds=8.0), Sources(external=(meter(tmp_path),)), (other, board)
    )
    line = found.calibration
    assert line.gain.value == pytest.approx(GAIN, abs=0.06)
    assert line.offset_w.value == pytest.approx(OFFSET_W, abs=12)
    assert line.lag_us.value == pytest.approx(LAG_S * 1e6, abs=60_000)
    assert (found.stored.meter, found.stored.sensor, found.findings) == ("pmd", "nvml_power", ())
    info = apply(board.info)
    assert info.channels[0].calibration == load(GPU) == line
    assert "against pmd" in info.method
    assert (board.closed, other.closed) == (1, 1)


def test_two_files_give_the_line_but_no_sensor_s_lag(tmp_path):
    found = calibrated(
        DeviceRequest(device=GPU, meter="PMD2", meter_95=0.005, **traces(tmp_path)), boards=[Board()]
    )
    assert found.calibration.gain.value == pytest.approx(GAIN, abs=0.01)
    assert found.calibration.lag_us.value == pytest.approx((LAG_S + 0.025) * 1e6, abs=40_000)
    applied = apply(Board().info).channels[0].calibration
    assert applied.gain == found.calibration.gain
    assert applied.lag_us.value == 0.0
    assert found.findings == ()


def test_an_unstated_accuracy_is_said(tmp_path):
    found = calibrated(DeviceRequest(device=GPU, **traces(tmp_path, seconds=20)), boards=[Board()])
    assert [f.code for f in found.findings] == ["CL154"]


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ({"levels": (200.0, 210.0, 205.0, 202.0)}, "moved the device only between"),
        ({"levels": (200.0,)}, "moved the device only|never changed"),
        ({"shift_s": 1000.0}, "no three updates in common"),
        ({"gain": 3.0}, "no calibration comes of it"),
    ],
)
def test_what_gives_no_calibration_is_refused_and_not_kept(tmp_path, given, text):
    with pytest.raises(MeasurementError, match=text):
        calibrated(DeviceRequest(device=GPU, **traces(tmp_path, **given)))
    assert load(GPU) is None


@pytest.mark.parametrize("name", ["gpu-0a1b", "GPU-0A1B2C", "0a1b2", "0", GPU])
def test_a_device_is_known_by_id_beginning_or_number(tmp_path, name):
    # A meter of something else is refused by the device's whole id, without a measurement.
    wall = Sources(external=(meter(tmp_path, component="wall", boundary="it"),))
    with pytest.raises(UsageError, match=f"not that of {GPU} alone"):
        calibrated(DeviceRequest(device=name), wall, (Board(),))


@pytest.mark.parametrize("name", ["1", "GPU-ffff", "0a", "GPU-0a1b"])
def test_a_device_that_is_not_there_or_not_one_is_refused(tmp_path, name):
    boards = (Board(), Board(device=OTHER)) if name == "GPU-0a1b" else (Board(), Board(OTHER, usable=False))
    with pytest.raises(SelectionError, match="whose power can be read"):
        calibrated(DeviceRequest(device=name), Sources(external=(meter(tmp_path),)), boards)
    assert all(board.closed == 1 for board in boards)


def test_looking_for_the_device_starts_no_meter(tmp_path):
    mark = tmp_path / "started"
    declared = ExternalMeter(name="other", command=("touch", str(mark)))
    wall = Sources(external=(meter(tmp_path, component="wall", boundary="it"),))
    with pytest.raises(UsageError, match="all of the machine"):
        calibrated(DeviceRequest(device=GPU), wall, (ExternalSensor(declared, wait_s=1.0), Board()))
    assert not mark.exists()


def test_a_meter_that_cannot_be_started_is_said(tmp_path):
    gone = ExternalMeter(name="gone", command=(str(tmp_path / "none"),), component="gpu", boundary="device")
    with pytest.raises(MeasurementError, match="cannot be started"):
        calibrated(DeviceRequest(device=GPU, seconds=5.0), Sources(external=(gone,)), (Board(),))


@pytest.mark.parametrize(
    ("given", "error", "text"),
    [
        ({"against": "rapl"}, UsageError, "no meter of a device's own supply"),
        ({"against": "external"}, UsageError, "declared: none"),
        ({"seconds": 1.0}, UsageError, "not between"),
        ({"device_trace": "x"}, UsageError, "belong together"),
        ({"device_trace": "x", "meter_trace": "y"}, InputFileError, "cannot be read"),
        ({"device": "0", "device_trace": "x", "meter_trace": "y"}, UsageError, "whole id"),
    ],
)
def test_requests_that_cannot_be_met_are_refused(tmp_path, given, error, text):
    paths = {k: tmp_path / v if k.endswith("trace") else v for k, v in given.items()}
    with pytest.raises(error, match=text):
        calibrated(DeviceRequest(**{"device": GPU, **paths}), boards=(Board(),))


def test_a_device_that_is_not_here_is_said(tmp_path):
    other = "GPU-ffffffff-1111-2222-3333-444455556666"
    given = traces(tmp_path)
    here = calibrated(DeviceRequest(device=GPU, meter_95=0.01, **given), boards=[Board()])
    assert (here.is_here, here.findings) == (True, ())
    gone = calibrated(DeviceRequest(device=other, meter_95=0.01, **given), boards=[Board()])
    assert not gone.is_here
    assert [f.code for f in gone.findings] == ["CL154"]
    assert GPU in gone.findings[0].message
