"""PPK2: microamperes, a voltage that somebody must state, sessions of many samples."""

import json
import zipfile
from typing import ClassVar

import numpy as np
import pytest

from carbonlens.app.importing import Placing, import_files
from carbonlens.errors import InputFileError
from carbonlens.importers.claiming import claims, importers
from carbonlens.importers.contract import Options
from carbonlens.importers.harvest import harvest
from carbonlens.importers.ppk2 import IMPORTER
from carbonlens.importers.sources import sources_of
from tests.conformance.importers import ImporterContract
from tests.importers.reading import Got, codes, read_text

HEAD = "Timestamp(ms),Current(uA),D0,D1,D2,D3,D4,D5,D6,D7\n"
PINS = ",1,0,0,0,0,0,0,0"
VOLTS = Options(voltage_v=3.0)


class TestConformance(ImporterContract):
    """The contract of importers: 10 mA at 3 V over 200 ms."""

    importer = IMPORTER
    files: ClassVar = {"ppk.csv": HEAD + "".join(f"{i * 10},10000.000{PINS}\n" for i in range(21))}
    options: ClassVar = VOLTS
    runs = 1
    energy_j = 0.006
    delimiter = ","
    essential = ("current(ua)",)
    clocks = True


def test_without_a_voltage_it_is_refused(tmp_path):
    with pytest.raises(InputFileError, match="without the voltage"):
        read_text(IMPORTER, tmp_path, HEAD + f"0,10{PINS}\n")


@pytest.mark.parametrize("pins", ["", ",D0-D7"])
def test_every_set_of_columns_is_read(tmp_path, pins):
    rows = "".join(f"{i * 0.01:.2f},2000.000{',00000000' if pins else ''}\n" for i in range(101))
    got = read_text(IMPORTER, tmp_path, f"Timestamp(ms),Current(uA){pins}\n{rows}", VOLTS)
    assert float(got.energy_j) == pytest.approx(2e-3 * 3 * 1e-3, rel=1e-2)
    assert got.records[0].measured.mean_power_w == pytest.approx(6e-3)
    assert codes(got) == ["CL245"]


def test_without_times_the_interval_gives_the_energy(tmp_path):
    text = "Current(uA),D0-D7\n" + "1000000.000,00000000\n" * 1000
    got = read_text(IMPORTER, tmp_path, text, VOLTS)
    assert got.energy_j is None
    assert "CL244" in codes(got)
    got = read_text(IMPORTER, tmp_path, text, Options(voltage_v=3.0, interval_s=1e-3))
    assert float(got.energy_j) == pytest.approx(3.0)


def test_samples_that_were_lost_are_uncovered(tmp_path):
    kept = [i for i in range(1001) if not 400 <= i < 600]
    text = "Timestamp(ms),Current(uA)\n" + "".join(f"{i},1000000\n" for i in kept)
    (record,) = read_text(IMPORTER, tmp_path, text, VOLTS).records
    assert record.measured.uncovered_s == pytest.approx(0.2, abs=0.005)
    assert float(record.stated_j) == pytest.approx(3.0 * 0.8, rel=0.01)


def session(folder, current_ua, *, rate=100_000, start_ms=1_772_445_600_000, version=2, cut=0):
    frames = np.zeros(len(current_ua), dtype=[("ua", "<f4"), ("pins", "<u2")])
    frames["ua"] = current_ua
    path = folder / "session.ppk2"
    told = {"metadata": {"samplesPerSecond": rate, "startSystemTime": start_ms}, "formatVersion": version}
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("session.raw", frames.tobytes()[: -cut or None])
        archive.writestr("metadata.json", json.dumps(told))
        archive.writestr("minimap.raw", json.dumps({"data": []}))
    return path


def read_session(path, options=VOLTS):
    (claim,), left = claims(sources_of(path), importers())
    assert claim.importer is IMPORTER
    assert not left
    return Got(harvest(IMPORTER, claim.group, options))


def test_a_session_is_one_run_with_its_begin(tmp_path):
    got = read_session(session(tmp_path, np.full(200_001, 50_000.0)))
    assert float(got.energy_j) == pytest.approx(0.05 * 3 * 2)
    assert got.runs[0].start_us == 1_772_445_600_000_000
    assert got.records[0].measured.samples == 200_001
    assert got.runs[0].duration_s == pytest.approx(2)
    assert not codes(got)


def test_a_session_without_its_begin_is_relative(tmp_path):
    got = read_session(session(tmp_path, np.full(1001, 50_000.0), rate=1000, start_ms=None))
    assert float(got.energy_j) == pytest.approx(0.15)
    assert codes(got) == ["CL245"]


def test_lost_samples_of_a_session_are_unknown(tmp_path):
    current = np.full(10_001, 50_000.0)
    current[2000:6000] = np.nan
    got = read_session(session(tmp_path, current, rate=10_000))
    assert got.records[0].measured.uncovered_s == pytest.approx(0.4, abs=0.01)
    assert "CL125" in codes(got)


def test_a_session_that_is_cut_off_says_so(tmp_path):
    got = read_session(session(tmp_path, np.full(1001, 50_000.0), rate=1000, cut=4))
    assert got.records[0].measured.samples == 1000
    assert codes(got) == ["CL240"]


def test_a_session_of_another_format_is_refused(tmp_path):
    with pytest.raises(InputFileError, match="session of format 3"):
        read_session(session(tmp_path, np.full(11, 1.0), version=3))


def test_a_session_and_its_copy_count_once(tmp_path):
    path = session(tmp_path, np.full(1001, 50_000.0), rate=1000)
    (tmp_path / "copy.bak").write_bytes(path.read_bytes())
    result = import_files([tmp_path], ledger=tmp_path / "ledger", placing=Placing(voltage_v=3.0))
    assert result.totals.runs == 1
