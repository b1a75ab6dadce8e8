"""``carbonlens calibrate`` as users type it."""

import pytest

from tests.app.test_calibrate_device import traces

GPU = "GPU-0a1b2c3d-1111-2222-3333-444455556666"


def test_without_a_meter_it_says_why_and_what_can_be_done(shell):
    from carbonlens.app.calibrate import POWERCAP

    if POWERCAP.is_dir():
        pytest.skip("this machine may have RAPL")
    said = shell("calibrate", "cpu", code=3).stderr
    assert "virtual machines and most ARM servers show none" in said
    assert "--idle-w and --full-w" in said
    assert said.count("\n") == 1


def test_by_hand_then_list_then_remove(shell):
    found = shell.json(
        "calibrate", "cpu", "--idle-w", 48, "--full-w", 160, "--meter", "plug", "--meter-95", 2
    )
    assert (found["schema"], found["device"], found["boundary"]) == ("carbonlens/calibrate/1", "cpu", "it")
    assert found["full_w"]["value"] == 160.0
    assert found["after"]["full_w_per_thread"] == pytest.approx(160 / found["threads"], rel=1e-5)
    assert found["after"]["measured"]
    listed = shell.json("calibrate", "--list")["calibrations"]
    assert [(c["here"], c["calibration"]["device"]) for c in listed] == [(True, "cpu")]
    assert "plug" in shell("calibrate", "--list").stdout
    assert shell.json("calibrate", "--remove", "cpu")["removed"] == found["file"]
    assert "nothing is calibrated" in shell("calibrate", "--list").stdout


def test_text_names_both_points_and_what_changes(shell):
    done = shell("calibrate", "cpu", "--against", "watts:48,160")
    lines = done.stdout.splitlines()
    heads = [line.split()[0] for line in lines if not line.startswith(" ")]
    assert heads == ["power", "idle", "full", "before", "now", "width", "kept"]
    # What no meter can narrow is said, so that a width of 1.7 after a calibration is understood.
    assert "x/: 1.70 however good" in " ".join(done.stdout.split())
    assert max(len(line) for line in lines if not line.startswith("kept")) <= 80
    assert "160 W (152.2 to 168.2)" in done.stdout
    assert "CL154" in done.stderr


def test_a_device_from_two_files(shell, tmp_path):
    files = traces(tmp_path, seconds=20)
    options = (
        "--device-trace",
        files["device_trace"],
        "--meter-trace",
        files["meter_trace"],
        "--meter-95",
        0.5,
    )
    found = shell.json("calibrate", GPU, *options)
    assert found["gain"]["low"] < 1.05 < found["gain"]["high"]
    assert (found["device"], found["sensor"]) == (GPU, "trace")
    # No GPU is read on this machine, or another one.
    assert [f["code"] for f in found["findings"]] == ["CL154"]
    assert found["range_w"][0] < found["range_w"][1]
    shown = shell("calibrate", "--list").stdout
    assert GPU in shown


@pytest.mark.parametrize(
    ("arguments", "code", "text"),
    [
        ((), 2, "one of DEVICE, --list and --remove"),
        (("cpu", "--list"), 2, "at once"),
        (("--remove", "cpu"), 2, "no calibration of 'cpu'"),
        (("cpu", "--against", "magic"), 2, "no meter 'magic'"),
        (("cpu", "--against", "external"), 2, "declare a meter"),
        (("cpu", "--idle-w", "9", "--full-w", "3"), 3, "tell no curve"),
        (("cpu", "--meter-95", "0"), 2, "accuracy in per cent"),
        (("cpu", "--device-trace", "x"), 2, "not for cpu"),
        ((GPU, "--idle-w", "9"), 2, "are for cpu"),
        ((GPU, "--against", "0192f0a1"), 2, "no run '0192f0a1'"),
        ((GPU, "--against", "latest"), 2, "no run here keeps a trace"),
        ((GPU, "--against", "none.csv"), 3, "is not there"),
        ((GPU, "--against", "ipmi"), 2, "no meter of a device's own supply"),
        (("cpu", "--against", "0192f0a1"), 2, "the CPU time of its own work"),
        ((GPU, "--device-trace", "x", "--meter-trace", "y"), 3, "cannot be read"),
        (("cpu", "--seconds", "0"), 2, "not between"),
    ],
)
def test_refusals_are_one_line_with_a_mend(shell, arguments, code, text):
    said = shell("calibrate", *arguments, code=code).stderr
    assert text in said
    assert said.startswith("carbonlens: ")
    assert said.count("\n") == 1


def test_a_device_that_is_not_here_is_refused(shell, tmp_path):
    sources = tmp_path / "sources.toml"
    sources.write_text(
        '[[external]]\nname = "pmd"\ncommand = ["true"]\ncomponent = "gpu"\nboundary = "device"\n'
    )
    said = shell("calibrate", "GPU-ffffffff", code=2, CARBONLENS_SOURCES=str(sources)).stderr
    assert "no device 'GPU-ffffffff' whose power can be read" in said
