"""Joulescope's recordings, written here with the maker's own library."""

import builtins

import numpy as np
import pytest

from carbonlens.errors import InputFileError
from carbonlens.importers.contract import Options
from carbonlens.importers.joulescope_jls import IMPORTER
from tests.conformance.binary_importers import BinaryContract
from tests.importers.reading import codes, read_text

START_S = 1_772_445_600.0
UNITS = {"current": "A", "voltage": "V", "power": "W"}


def recording(folder, signals, *, rate=1000, utc=True, devices=("JS220-000123",), units=None, zone_s=0.0):
    """Return the bytes of a recording of each device's signals."""
    pyjls = pytest.importorskip("pyjls", reason="pyjls is of an extra that is not installed")
    file = folder / "made.jls"
    number = 0
    with pyjls.Writer(str(file)) as writer:
        for place, device in enumerate(devices, 1):
            writer.source_def(source_id=place, name=device, vendor="Jetperch", model="JS220")
            for name, values in signals.items():
                number += 1
                writer.signal_def(
                    number,
                    source_id=place,
                    signal_type=pyjls.SignalType.FSR,
                    data_type=pyjls.DataType.F32,
                    sample_rate=rate,
                    name=name,
                    units=(units or UNITS).get(name, ""),
                )
                writer.fsr_f32(number, 0, np.asarray(values, dtype=np.float32))
                if utc:
                    ends = (0, START_S), (len(values) - 1, START_S + (len(values) - 1) / rate)
                    for sample, second in ends:
                        writer.utc(number, sample, pyjls.utc_to_jls(second + zone_s))
    content = file.read_bytes()
    file.unlink()
    return content


def constant(value, count=2001):
    return np.full(count, value)


class TestConformance(BinaryContract):
    """The contract of importers: 33 mW over 2 s, as the maker's library writes it."""

    importer = IMPORTER
    runs = 1
    energy_j = 0.066
    tolerance = 1e-3

    def sample(self):
        parts = {"current": constant(0.01), "voltage": constant(3.3), "power": constant(0.033)}
        return {"a.jls": recording(self._root, parts)}

    def test_no_damage_makes_the_library_write_into_the_file(self):
        """The library repairs what was cut off in place, which no import may do."""
        whole = self.sample()["a.jls"]
        for cut in (len(whole) - 1, len(whole) - 33, len(whole) * 2 // 3, len(whole) // 3, 40):
            (path,) = self.write({"a.jls": whole[:cut]})
            with pytest.raises(InputFileError, match="was not closed"):
                self.read({"a.jls": whole[:cut]})
            self.refusals.clear()
            with pytest.raises(InputFileError, match="was not closed"):
                list(IMPORTER.read(_group(path), self.options))
            assert path.read_bytes() == whole[:cut]

    def test_the_file_stays_as_it_is_whatever_byte_is_broken(self):
        whole = self.sample()["a.jls"]
        for place in range(0, len(whole), len(whole) // 60):
            content = bytearray(whole)
            content[place] ^= 0xFF
            (path,) = self.write({"a.jls": bytes(content)})
            try:
                list(IMPORTER.read(_group(path), self.options))
            except InputFileError as error:
                self.refusals.append(error)
            assert path.read_bytes() == bytes(content)


def _group(path):
    from carbonlens.importers.contract import Group
    from carbonlens.importers.sources import Source

    return Group((Source(path),))


def test_power_counts_where_it_is_and_the_time_is_told(tmp_path):
    got = read_text(IMPORTER, tmp_path, recording(tmp_path, {"power": constant(0.5), "current": constant(9)}))
    (run,) = got.runs
    assert float(run.energy[0].energy_j) == pytest.approx(1.0, rel=1e-3)
    assert run.energy[0].grade == "A"
    assert run.start_us == pytest.approx(START_S * 1e6, abs=2)
    assert run.duration_s == pytest.approx(2, abs=2e-3)
    assert codes(got) == []


def test_current_and_voltage_make_power(tmp_path):
    parts = {"current": constant(0.01), "voltage": constant(3.3)}
    (run,) = read_text(IMPORTER, tmp_path, recording(tmp_path, parts)).runs
    assert float(run.energy[0].energy_j) == pytest.approx(0.066, rel=1e-3)
    assert run.energy[0].method == "Joulescope current x voltage"


def test_without_utc_the_user_says_when_it_began(tmp_path):
    content = recording(tmp_path, {"power": constant(1.0)}, utc=False)
    got = read_text(IMPORTER, tmp_path, content)
    assert (got.runs[0].start_us, codes(got)) == (None, ["CL245"])
    start = 1_772_445_600_000_000
    (run,) = read_text(IMPORTER, tmp_path, content, Options(start_us=start)).runs
    assert run.start_us == start


def test_dropped_samples_are_uncovered(tmp_path):
    values = constant(1.0)
    values[500:1500] = np.nan
    got = read_text(IMPORTER, tmp_path, recording(tmp_path, {"power": values}))
    assert got.records[0].measured.uncovered_s == pytest.approx(1.0, abs=0.02)
    assert "CL125" in codes(got)


def test_two_devices_are_added_up(tmp_path):
    content = recording(tmp_path, {"power": constant(1.0)}, devices=("JS220-1", "JS220-2"))
    (run,) = read_text(IMPORTER, tmp_path, content).runs
    assert {r.devices[0]: float(r.energy_j) for r in run.energy} == {
        "JS220-1": pytest.approx(2.0, rel=1e-3),
        "JS220-2": pytest.approx(2.0, rel=1e-3),
    }


def test_blocks_join_without_a_seam(tmp_path):
    count = (1 << 18) + 5000
    content = recording(tmp_path, {"power": constant(2.0, count)}, rate=100_000)
    got = read_text(IMPORTER, tmp_path, content)
    assert float(got.energy_j) == pytest.approx(2.0 * (count - 1) / 100_000, rel=1e-5)
    assert got.records[0].measured.samples == count


@pytest.mark.parametrize("parts", [{"current": constant(1.0)}, {"voltage": constant(1.0)}])
def test_what_is_no_power_is_refused(tmp_path, parts):
    with pytest.raises(InputFileError, match="holds no power"):
        read_text(IMPORTER, tmp_path, recording(tmp_path, parts))


def test_another_unit_is_refused_and_never_guessed(tmp_path):
    content = recording(tmp_path, {"power": constant(1.0)}, units={"power": "mW"})
    with pytest.raises(InputFileError, match="states power in 'mW'"):
        read_text(IMPORTER, tmp_path, content)


def test_without_the_package_the_way_out_is_named(tmp_path, monkeypatch):
    content = recording(tmp_path, {"power": constant(1.0)})
    real = builtins.__import__

    def missing(name, *args, **kwargs):
        if name.startswith("pyjls"):
            raise ImportError(name)
        return real(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", missing)
    with pytest.raises(InputFileError, match="pyjls is not installed") as error:
        read_text(IMPORTER, tmp_path, content)
    assert "carbonlens[joulescope]" in error.value.mend
