"""batterystats: charge of a model at a stated voltage, beside what the battery lost."""

from typing import ClassVar

import pytest

from carbonlens.errors import InputFileError
from carbonlens.importers.batterystats import IMPORTER
from carbonlens.importers.contract import Options
from tests.conformance.importers import ImporterContract
from tests.importers.reading import claimed, codes, read_text

VOLTS = Options(voltage_v=3.85, tz="UTC")
J_PER_MAH = 3.6 * 3.85

# The lines that matter of a checkin of Android 10 that stands in a public test suite (memfault/bort,
# BatteryStatsSummaryParserTest), with its two summaries and its repeated steps.
REAL_CHECKIN = """\
9,0,i,vers,35,186,QQ2A.200405.005,QQ2A.200405.005
9,0,i,uid,1000,android
9,0,i,uid,10042,com.memfault.smartfridge.bort
9,0,i,dsd,672165,68,s-,p-,i-
9,0,i,dsd,199088,70,s-,p-,i-
9,0,i,dsd,199088,70,s-,p-,i-
9,0,i,dsd,89110,75,s-,p-,i-
9,0,i,dtr,15400028000
9,0,l,bt,2,43722106,43722106,47075263,47075263,1661068748155,43699893,43699893,1000,4000000,4000000,0
9,0,l,pws,3900,3243,3237,3354
9,0,l,dc,16,17,0,17,0,0,0,0,0,0
9,0,l,kwl,"ApmAudio",0,0,-1,-1
9,0,l,pws,1000,3.65,160,170
9,0,l,pwi,unacc,156,1,0,0
9,0,l,pwi,cell,1.22,1,0,0
9,0,l,pwi,idle,1.21,1,0,0
9,1001,l,pwi,uid,1.21,1,0,0
9,1001,l,pwi,scrn,0.000856,1,0,0
9,10046,l,pwi,blue,0.00000053,0,0,0.00000001
9,0,l,pwi,uid,0,1,0,0
9,0,l,pr,"logcat",200,150,0,0,0,0
"""

CHECKIN = """\
9,0,i,vers,35,186,A,A
9,0,i,uid,10123,com.example.video
9,0,i,dsd,600000,97,s+,p-,i-
9,0,i,dsd,600000,98,s+,p-,i-
9,0,l,bt,0,3600000,3600000,3600000,3600000,1772445600000,0,0,3000,3000000,3000000,0
9,0,l,dc,2,4,3,0,95,0,0,0,0,0
9,0,l,pws,3000,90,60,120
9,0,l,pwi,scrn,50,1,0,0
9,0,l,pwi,cpu,30,1,0,0
9,10123,l,pwi,uid,40,0,0,0
"""

TEXT = """\
Battery History (0% used, 1000 bytes used of 4096KB, 3 strings using 200):
                    0 (12) RESET:TIME: 2026-03-02-10-00-00

Discharge step durations:
  #0: +10m0s0ms to 97 (screen-on, power-save-off)
  #1: +10m0s0ms to 98 (screen-on, power-save-off)

Daily stats:
  Current start time: 2026-03-01-03-00-00
    Discharge step durations:
      #0: +1h0m0s0ms to 50 (screen-off, power-save-off)

Statistics since last charge:
  System starts: 0, currently on battery: true
  Start clock time: 2026-03-02-10-00-00
  Time on battery: 1h 0m 0s 0ms (100%) realtime, 1h 0m 0s 0ms (100%) uptime
  Time on battery screen off: 0ms (0.0%) realtime, 0ms (0.0%) uptime
  Discharge: 95.0 mAh
  Screen off discharge: 0 mAh

  Estimated power use (mAh):
    Capacity: 3000, Computed drain: 90.0, actual drain: 60.0-120
    Uid u0a123: 40.0 ( cpu=30.0 wifi=0.151 sensor=0.00811 ) Including smearing: 44.0 ( screen=4.0 )
    Screen: 50.0 Excluded from smearing

  All kernel wake locks:
  Kernel Wake lock wlan: 3s 202ms (48 times) realtime
"""

NEWER = """\
Statistics since last charge:
  Start clock time: 2026-03-02-10-00-00
  Time on battery: 1h 0m 0s 0ms (100%) realtime, 1h 0m 0s 0ms (100%) uptime

  Estimated power use (mAh):
    Capacity: 5200, Computed drain: 90.0, actual drain: 104
    Global
      screen: 50.0 apps: 44.0 duration: 1h 0m 0s 0ms
      cpu: 30.0 apps: 28.0
    UID u0a340: 40.0 fg: 14.0 (16m 20s 23ms) bg: 3.51 fgs: 20.4 (2m 34s 725ms)
        screen=14.1 cpu=25.3 cpu:fg=14.0
"""


class TestConformance(ImporterContract):
    """The contract of importers, on a checkin of 90 mAh at 3.85 V."""

    importer = IMPORTER
    files: ClassVar = {"checkin.txt": CHECKIN}
    options: ClassVar = VOLTS
    runs = 1
    energy_j = 90 * J_PER_MAH
    header_lines = 1


class TestConformanceOfText(ImporterContract):
    """The contract on the text form of the same."""

    importer = IMPORTER
    files: ClassVar = {"batterystats.txt": TEXT}
    options: ClassVar = VOLTS
    runs = 1
    energy_j = 90 * J_PER_MAH
    header_lines = 1


@pytest.mark.parametrize("text", [CHECKIN, TEXT])
def test_both_forms_tell_the_same(tmp_path, text):
    got = read_text(IMPORTER, tmp_path, text, VOLTS)
    (run,) = got.runs
    assert (run.start_us, run.duration_s) == (1_772_445_600_000_000, 3600.0)
    (whole,) = run.energy
    assert (whole.component, whole.grade) == ("total", "D")
    assert "3.85 V as given" in whole.method
    methods = [r.method for r in run.beside if not r.devices]
    assert [m.partition(", at")[0] for m in methods] == [
        "battery level, lower bound",
        "battery level, upper bound",
        "coulomb counter",
        "2 discharge steps of 1 % of the capacity",
    ]
    values = [float(r.energy_j) / J_PER_MAH for r in run.beside if not r.devices]
    assert values == pytest.approx([60, 120, 95, 60])
    assert codes(got) == []


def test_parts_stand_beside_and_are_not_summed(tmp_path):
    (run,) = read_text(IMPORTER, tmp_path, CHECKIN, VOLTS).runs
    parts = {r.devices[0]: (r.component, float(r.energy_j) / J_PER_MAH) for r in run.beside if r.devices}
    assert parts == {
        "scrn": ("other", pytest.approx(50)),
        "cpu": ("cpu", pytest.approx(30)),
        "uid 10123": ("other", pytest.approx(40)),
    }


def test_the_newer_text_is_read(tmp_path):
    got = read_text(IMPORTER, tmp_path, NEWER, VOLTS)
    (run,) = got.runs
    parts = {r.devices[0]: float(r.energy_j) / J_PER_MAH for r in run.beside if r.devices}
    assert parts == {"screen": pytest.approx(50), "cpu": pytest.approx(30), "uid u0a340": pytest.approx(40)}
    (said,) = [f for f in got.findings if f.code == "CL282"]
    assert "104 to 104 mAh" in said.message


def test_a_real_checkin_has_its_last_summary_and_says_what_is_wrong(tmp_path):
    got = read_text(IMPORTER, tmp_path, REAL_CHECKIN, VOLTS)
    (run,) = got.runs
    assert float(got.energy_j) == pytest.approx(3.65 * J_PER_MAH, rel=1e-6)
    assert run.start_us == 1_661_068_748_155_000
    assert run.duration_s == pytest.approx(43_722.106)
    told = [f.message for f in got.findings if f.code == "CL282"]
    assert any("not within what the battery lost, 160 to 170 mAh" in m for m in told)
    assert any("2 summaries that differ" in m for m in told)
    assert {r.devices[0] for r in run.beside if r.devices} >= {"unacc", "uid 1001", "uid 1001 scrn"}


def test_without_a_voltage_it_is_refused(tmp_path):
    with pytest.raises(InputFileError, match="without the voltage") as error:
        read_text(IMPORTER, tmp_path, CHECKIN)
    assert "--voltage" in error.value.mend


@pytest.mark.parametrize(("old", "new"), [(",90,", ",0,"), ("3000,90,60,120", "0,0,0,0")])
def test_nothing_estimated_is_unknown(tmp_path, old, new):
    got = read_text(IMPORTER, tmp_path, CHECKIN.replace(old, new), VOLTS)
    assert got.energy_j is None
    assert "CL260" in codes(got)


def test_without_an_estimate_it_is_refused(tmp_path):
    text = "\n".join(line for line in CHECKIN.splitlines() if ",pws," not in line)
    with pytest.raises(InputFileError, match="holds no estimated power use"):
        read_text(IMPORTER, tmp_path, text, VOLTS)


def test_a_drain_that_no_phone_has_is_said(tmp_path):
    got = read_text(IMPORTER, tmp_path, CHECKIN.replace("3000,90,60,120", "3000,90000,60,120"), VOLTS)
    assert "CL248" in codes(got)
    assert float(got.energy_j) == pytest.approx(90_000 * J_PER_MAH), "the value stays as stated"


@pytest.mark.parametrize("torn", ["9,0,l,pws,3000,90", "9,0,l,pws,3000,90,60,x", "9,0,l,pwi,scrn"])
def test_a_torn_line_is_left_out_and_said(tmp_path, torn):
    got = read_text(IMPORTER, tmp_path, CHECKIN + torn + "\n", VOLTS)
    assert float(got.energy_j) == pytest.approx(90 * J_PER_MAH)
    assert (got.rows_rejected, codes(got)) == (1, ["CL202"])


@pytest.mark.parametrize("text", ["9,0,1,2\n3,4,5,6\n", "Capacity: 3\n", "Battery\n", "1,2,i,vers\n"])
def test_other_text_is_not_claimed(tmp_path, text):
    file = tmp_path / "a.txt"
    file.write_text(text)
    assert not claimed(IMPORTER, file)
