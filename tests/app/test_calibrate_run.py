"""Calibrating a device against a meter that was read in the same run."""

import msgspec
import pytest

from carbonlens.app.calibrate_device import calibrate_device
from carbonlens.app.calibrate_fit import DeviceRequest
from carbonlens.domain.finding import Finding
from carbonlens.domain.run import Run
from carbonlens.domain.sources import Sources
from carbonlens.domain.trace import Trace
from carbonlens.errors import InputFileError, MeasurementError, SelectionError, UsageError
from carbonlens.ledger.store import Ledger
from carbonlens.metering.calibrations import applied, load
from carbonlens.metering.sensors import VOID
from carbonlens.metering.trace_sealing import not_traced
from tests.metering.traces import (
    GAIN,
    GPU,
    LAG_S,
    OFFSET_W,
    RUN_ID,
    START_US,
    board,
    head,
    meter,
    put_trace,
)

OTHER = "GPU-0a1bffff-1111-2222-3333-444455556666"


@pytest.fixture
def ledger(tmp_path):
    return tmp_path / "ledger"


def calibrated(against, ledger=None, device=GPU, **more):
    request = DeviceRequest(device=device, against=str(against), ledger=ledger, **more)
    return calibrate_device(request, Sources(), progress=lambda text: None)


def put_run(ledger, file, *infos, **more):
    """A run in the ledger whose trace is a minute of load."""
    sha256 = put_trace(file, *(infos or (board(), meter())), **more)
    Ledger(ledger).append(Run(run_id=RUN_ID, start_us=START_US, trace=Trace(file=str(file), sha256=sha256)))


@pytest.mark.parametrize("name", ["t.csv", "t.csv.gz"])
@pytest.mark.parametrize("against", [RUN_ID, RUN_ID[-12:], RUN_ID[:10], "latest", None])
def test_a_run_gives_gain_offset_and_lag(tmp_path, ledger, name, against):
    put_run(ledger, tmp_path / name)
    found = calibrated(against or tmp_path / name, ledger)
    line = found.calibration
    assert line.gain.value == pytest.approx(GAIN, abs=0.01)
    assert line.gain.low < GAIN < line.gain.high
    assert line.offset_w.value == pytest.approx(OFFSET_W, abs=3)
    # A reading stands for the tenth of a second until the next one: half of it is lag.
    assert line.lag_us.low < (LAG_S + 0.05) * 1e6 < line.lag_us.high < 300_000
    assert line.read_w == pytest.approx(((60 - OFFSET_W) / GAIN, (320 - OFFSET_W) / GAIN))
    assert line.meter_u == 0.005
    stored = found.stored
    assert (stored.device, stored.sensor, stored.meter, stored.run_id, stored.taken_us) == (
        GPU,
        "nvml_power",
        "pmd",
        RUN_ID,
        START_US,
    )
    assert (found.findings, found.is_here) == ((), True)
    info = applied(board(), now_us=START_US).info
    assert info.channels[0].calibration == load(GPU) == line
    assert info.method == "power of the board; calibrated 2026-09-21 against pmd in run 00000000abcd"


def test_a_device_with_readings_seldom_new_is_taken_at_its_own_pace(tmp_path):
    put_trace(tmp_path / "t.csv", board(update_period_s=0.5), meter(), seconds=90)
    found = calibrated(tmp_path / "t.csv")
    assert found.calibration.gain.value == pytest.approx(GAIN, abs=0.03)
    # What it held steady is in it, not its moves alone.
    assert found.calibration.n == pytest.approx(90, abs=3)


@pytest.mark.parametrize("step_s", [2.0, 5.0, 7.3])
def test_steps_that_fall_between_two_looks_make_the_line_no_flatter(tmp_path, step_s):
    put_trace(tmp_path / "t.csv", board(), meter(), step_s=step_s, seconds=90)
    line = calibrated(tmp_path / "t.csv").calibration
    assert line.gain.value == pytest.approx(GAIN, abs=0.004)


def test_failed_readings_and_gaps_of_the_meter_are_left_out(tmp_path):
    def failed(info, t_s):
        return 10 < t_s < 17 if info.unit == "J" else int(t_s * 10) % 7 == 0

    put_trace(tmp_path / "t.csv", board(), meter(), failed=failed)
    found = calibrated(tmp_path / "t.csv")
    assert found.calibration.gain.value == pytest.approx(GAIN, abs=0.02)
    assert 45 <= found.calibration.n <= 55


def test_rails_of_a_meter_are_summed_or_taken_alone(tmp_path):
    infos = (board(), meter(rails=("slot", "plug")))
    put_trace(tmp_path / "t.csv", *infos)
    assert calibrated(tmp_path / "t.csv").calibration.gain.value == pytest.approx(GAIN, abs=0.01)
    with pytest.raises(MeasurementError, match="no calibration comes of it"):
        calibrated(tmp_path / "t.csv", meter="pmd:slot")  # half of the power


def test_one_of_several_meters_is_named(tmp_path):
    file = tmp_path / "t.csv"
    put_trace(file, board(), meter("one"), meter("two"), seconds=30)
    with pytest.raises(SelectionError, match=r"2 meters were read in the run: one, two.*--meter NAME"):
        calibrated(file)
    for name in ("two", "external:two"):
        assert calibrated(file, meter=name).stored.meter == "two"
    with pytest.raises(SelectionError, match=r"no meter 'three' was read in the run .there: one, two."):
        calibrated(file, meter="three")
    put_trace(file, board(), meter("plug", component="wall"), meter("pmd"), seconds=30)
    assert calibrated(file).stored.meter == "pmd"


def test_an_unstated_accuracy_is_said_unless_it_is_given(tmp_path):
    file = tmp_path / "t.csv"
    put_trace(file, board(), meter(width_known=False, gain_sigma=0.0), seconds=30)
    assert [f.code for f in calibrated(file).findings] == ["CL154"]
    given = calibrated(file, meter_95=0.0196)
    assert given.findings == ()
    assert given.calibration.meter_u == pytest.approx(0.01, rel=1e-3)


@pytest.mark.parametrize("device", ["0", "GPU-0a1b2", "0A1B2C", GPU])
def test_a_device_is_known_by_id_beginning_or_number(tmp_path, device):
    put_trace(tmp_path / "t.csv", board(), board(device=OTHER), meter(), seconds=30)
    assert calibrated(tmp_path / "t.csv", device=device).stored.device == GPU


@pytest.mark.parametrize("device", ["7", "GPU-0a1b", "GPU-ffff", "pmd", "cpu-time"])
def test_a_device_that_is_not_in_the_run_or_not_one_is_refused(tmp_path, device):
    put_trace(tmp_path / "t.csv", board(), board(device=OTHER), meter(), seconds=5)
    with pytest.raises(SelectionError, match=f"whose power was read in the run .there: {GPU}, {OTHER}."):
        calibrated(tmp_path / "t.csv", device=device)


@pytest.mark.parametrize(
    ("infos", "more", "error", "text"),
    [
        ((board(),), {}, SelectionError, "no external meter was read in the run"),
        ((board(), meter(component="wall")), {}, UsageError, f"not that of {GPU} alone"),
        ((board(), meter()), {"levels": (200.0, 210.0, 205.0)}, MeasurementError, "moved the device only"),
        ((board(), meter()), {"levels": (200.0,)}, MeasurementError, "moved the device only|never changed"),
        ((board(), meter()), {"gain": 3.0}, MeasurementError, "no calibration comes of it"),
        (
            (board(), meter()),
            {"failed": lambda info, t_s: info.unit == "J" and t_s > 1},
            MeasurementError,
            "no calibration comes of it",
        ),
    ],
)
def test_what_gives_no_calibration_is_refused_and_not_kept(tmp_path, infos, more, error, text):
    put_trace(tmp_path / "t.csv", *infos, **more)
    with pytest.raises(error, match=text):
        calibrated(tmp_path / "t.csv")
    assert load(GPU) is None


def test_a_meter_whose_clock_was_at_fault_is_refused(tmp_path):
    file = tmp_path / "t.csv"
    put_trace(file, board(), meter(), seconds=30)
    lines = file.read_text().splitlines()
    cells = lines[-1].split(",")
    file.write_text("\n".join((*lines[:-1], f"{cells[0]},{cells[1]},{VOID!r}")))
    with pytest.raises(MeasurementError, match="the clock of the meter was at fault"):
        calibrated(file)


def test_a_device_known_by_its_name_is_of_its_machine(tmp_path):
    file = tmp_path / "t.csv"
    infos = (board(device="input-rail", component="total"), meter(component="total"))
    put_trace(file, *infos, seconds=30)
    assert calibrated(file, device="input-rail").is_here
    put_trace(file, *infos, seconds=30, of=head(machine_id="another", host_id="another"))
    with pytest.raises(UsageError, match="the run is of another machine"):
        calibrated(file, device="input-rail")
    put_trace(file, board(), meter(), seconds=30, of=head(machine_id="another", host_id="another"))
    moved = calibrated(file)
    assert (moved.is_here, moved.stored.machine) == (False, "another")


def test_a_run_that_is_not_there_or_keeps_no_trace_is_refused(tmp_path, ledger):
    Ledger(ledger).append(Run(run_id=RUN_ID, start_us=START_US))
    with pytest.raises(SelectionError, match="no run '9999'"):
        calibrated("9999", ledger)
    with pytest.raises(SelectionError, match=r"keeps no trace: its record.*run --trace FILE"):
        calibrated(RUN_ID, ledger)
    with pytest.raises(SelectionError, match="no run here keeps a trace"):
        calibrated("latest", ledger)


def test_why_a_run_has_no_trace_is_said(ledger):
    notes: tuple[Finding, ...] = (not_traced("the disk is full"),)
    Ledger(ledger).append(Run(run_id=RUN_ID, start_us=START_US, findings=notes))
    with pytest.raises(SelectionError, match=r"keeps no trace \(no trace was written: the disk is full\)"):
        calibrated(RUN_ID, ledger)


def test_a_trace_that_was_moved_or_changed_is_refused(tmp_path, ledger):
    file = tmp_path / "t.csv"
    put_run(ledger, file, seconds=30)
    content = file.read_bytes()
    file.write_bytes(content.replace(b"\n1", b"\n2", 1))
    with pytest.raises(InputFileError, match="has changed since: its SHA-256 begins with"):
        calibrated(RUN_ID, ledger)
    file.rename(tmp_path / "moved.csv")
    with pytest.raises(InputFileError, match=r"t.csv: the trace of the run .* cannot be read"):
        calibrated("latest", ledger)
    assert load(GPU) is None


def test_the_latest_run_is_the_latest_that_kept_a_trace(tmp_path, ledger):
    put_run(ledger, tmp_path / "t.csv", seconds=30)
    later = msgspec.structs.replace(Run(run_id="later"), start_us=START_US + 1_000_000)
    Ledger(ledger).append(later)
    assert calibrated("latest", ledger).stored.run_id == RUN_ID
