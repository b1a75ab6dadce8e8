"""powermetrics: text and property lists, what counts, each sample by its own time."""

from typing import ClassVar

import pytest

from carbonlens.errors import InputFileError
from carbonlens.importers.contract import Chunk, Options
from carbonlens.importers.powermetrics import IMPORTER
from tests.conformance.importers import ImporterContract
from tests.importers.parsed_traces import real_file, right_totals, taken
from tests.importers.reading import codes, read_text


def text_sample(second, parts, elapsed_ms=1000.0, zone="+0100"):
    stamp = f"Mon Mar  2 10:00:{second:02} 2026 {zone}"
    head = f"*** Sampled system activity ({stamp}) ({elapsed_ms:.2f}ms elapsed) ***\n"
    lines = "".join(f"{part} Power: {mw} mW\n" for part, mw in parts.items())
    return (
        f"{head}\n\n**** Processor usage ****\n\nE-Cluster Power: 105 mW\nCPU 0 frequency: 1 MHz\n{lines}\n"
    )


PARTS = {"CPU": 3000, "GPU": 2000, "ANE": 0}
COMBINED = "Combined Power (CPU + GPU + ANE)"
TEXT = "Machine model: Mac14,2\nOS version: 22A1\n\n" + "".join(
    text_sample(i, PARTS).rstrip("\n") + f"\n{COMBINED}: 5000 mW\n\n" for i in range(10)
)

PLIST = (
    '<?xml version="1.0" encoding="UTF-8"?>\n<plist version="1.0">\n<dict>\n'
    "<key>is_delta</key><true/>\n<key>elapsed_ns</key><integer>{ns}</integer>\n"
    "<key>timestamp</key><date>2026-03-02T10:00:{second:02}Z</date>\n"
    "<key>tasks</key>\n<array><dict><key>ane_energy</key><integer>999</integer></dict></array>\n"
    "<key>processor</key>\n<dict>\n{parts}</dict>\n</dict>\n</plist>\n"
)


def plist(second, parts, ns=1_000_000_000):
    told = "".join(f"<key>{key}</key><real>{value}</real>\n" for key, value in parts.items())
    return PLIST.format(ns=ns, second=second, parts=told)


ENERGIES = {
    "cpu_energy": 3000,
    "cpu_power": 3000.0,
    "gpu_energy": 2000,
    "ane_energy": 0,
    "combined_power": 5000.0,
}


class TestText(ImporterContract):
    """The contract of importers, on ten texts of 5 W and 1 s."""

    importer = IMPORTER
    files: ClassVar = {"power.txt": TEXT}
    runs = 1
    energy_j = 50.0
    header_lines = 3
    repeats_count_once = False


class TestPlist(ImporterContract):
    """The contract on ten property lists of 5 J."""

    importer = IMPORTER
    files: ClassVar = {"power.plist": "\0".join(plist(i, ENERGIES) for i in range(10))}
    runs = 1
    energy_j = 50.0
    header_lines = 0
    repeats_count_once = False


def test_a_real_text_comes_to_what_is_told():
    name = "pm01_m1_mock.txt"
    path, told = real_file(name), right_totals(name)
    got = taken(IMPORTER, path)
    (record,) = got.records
    assert record.measured.samples == told["samples"]
    assert float(record.stated_j) == pytest.approx(told["energy_J"], rel=1e-3)
    assert record.run.duration_s == pytest.approx(told["duration_s"], rel=1e-3)
    assert record.measured.covered_s + record.measured.uncovered_s == pytest.approx(
        told["duration_s"], rel=1e-3
    )
    beside = {e.component: float(e.energy_j) for e in record.run.beside}
    for component, part in (("cpu", "CPU"), ("gpu", "GPU"), ("npu", "ANE"), ("ram", "DRAM")):
        assert beside[component] == pytest.approx(told["by_part_J"][part], rel=1e-3, abs=1e-9)
    assert record.run.hardware == "MacBookAir10,1"
    assert not got.findings


def test_the_package_counts_alone_where_it_is_told(tmp_path):
    text = "".join(text_sample(i, PARTS | {"DRAM": 500, "Package": 6000}) for i in range(10))
    got = read_text(IMPORTER, tmp_path, text)
    assert float(got.energy_j) == pytest.approx(60)
    assert [e.component for e in got.runs[0].energy] == ["total"]
    assert {e.grade for e in got.runs[0].energy} == {"D"}


def test_a_mac_with_an_intel_cpu(tmp_path):
    head = text_sample(0, {})
    text = head + "Intel energy model derived package power (CPUs+GT+SA): 3.04W\n"
    got = read_text(IMPORTER, tmp_path, text)
    assert float(got.energy_j) == pytest.approx(3.04)


def test_each_sample_counts_with_its_own_time(tmp_path):
    text = text_sample(0, {"CPU": 1000}, 500) + text_sample(2, {"CPU": 9000}, 2000)
    got = read_text(IMPORTER, tmp_path, text)
    assert float(got.energy_j) == pytest.approx(18.5)
    assert got.records[0].measured.mean_power_w == pytest.approx(7.4)


def test_a_time_that_no_sample_tells_of_is_a_gap(tmp_path):
    text = text_sample(0, PARTS) + text_sample(1, PARTS) + text_sample(30, PARTS)
    got = read_text(IMPORTER, tmp_path, text)
    assert float(got.energy_j) == pytest.approx(15)
    measured = got.records[0].measured
    assert measured.covered_s == pytest.approx(3)
    assert measured.covered_s + measured.uncovered_s == pytest.approx(got.runs[0].duration_s)
    assert got.runs[0].energy[0].state == "unbounded"


def test_a_part_that_a_sample_does_not_tell_is_no_zero(tmp_path):
    text = text_sample(0, PARTS) + text_sample(1, {"CPU": 3000, "ANE": 0}) + text_sample(2, PARTS)
    got = read_text(IMPORTER, tmp_path, text)
    gpu = next(e for e in got.runs[0].energy if e.component == "gpu")
    assert float(gpu.energy_j) == pytest.approx(4)
    assert gpu.state == "unbounded"


def test_local_time_with_its_offset_is_believed(tmp_path):
    got = read_text(IMPORTER, tmp_path, "".join(text_sample(i, PARTS) for i in range(3)))
    assert got.runs[0].end_us == 1_772_442_002_000_000
    assert "CL241" not in codes(got)


def test_energy_by_task_is_not_added(tmp_path):
    got = read_text(IMPORTER, tmp_path, "\0".join(plist(i, ENERGIES) for i in range(10)))
    npu = next(e for e in got.runs[0].energy if e.component == "npu")
    assert float(npu.energy_j) == 0


def test_zero_bytes_part_property_lists_and_are_no_padding(tmp_path):
    got = read_text(IMPORTER, tmp_path, "\0".join(plist(i, ENERGIES) for i in range(3)))
    assert not got.findings


def test_energy_and_power_that_disagree_are_said(tmp_path):
    parts = {"cpu_energy": 1923, "cpu_power": 383.434}
    got = read_text(IMPORTER, tmp_path, "\0".join(plist(i, parts) for i in range(3)))
    assert float(got.energy_j) == pytest.approx(3 * 1.923)
    assert codes(got) == ["CL247"]


def test_power_in_a_property_list_is_taken_where_no_energy_is(tmp_path):
    got = read_text(IMPORTER, tmp_path, plist(0, {"cpu_power": 3000.0}, 2_000_000_000))
    assert float(got.energy_j) == pytest.approx(6)


def test_a_damaged_property_list_is_left_out_and_said(tmp_path):
    lists = [plist(i, ENERGIES) for i in range(4)]
    lists[1] = lists[1].replace("<dict>", "<dct>", 1)
    got = read_text(IMPORTER, tmp_path, "\0".join(lists))
    assert got.rows_rejected == 1
    assert float(got.energy_j) == pytest.approx(15)


def test_a_log_without_power_is_refused(tmp_path):
    with pytest.raises(InputFileError, match="tells no energy"):
        read_text(IMPORTER, tmp_path, text_sample(0, {}))


def test_times_are_those_of_the_ends_of_samples(tmp_path):
    path = tmp_path / "power.txt"
    path.write_text(TEXT)
    from carbonlens.importers.claiming import claims
    from carbonlens.importers.sources import Source

    (claim,), _ = claims([Source(path)], [IMPORTER])
    chunks = [i for i in IMPORTER.read(claim.group, Options()) if isinstance(i, Chunk)]
    assert {len(c.t_us) for c in chunks} == {10}
    assert {float(c.t_us[-1] - c.t_us[0]) for c in chunks} == {9e6}


@pytest.mark.parametrize(("factor", "said"), [(1, False), (1000, True)])
def test_elapsed_times_are_held_against_the_stamps(tmp_path, factor, said):
    """Microseconds under ``ms elapsed``: each energy would be a thousandfold."""
    text = "".join(text_sample(i, PARTS, 1000 * factor) for i in range(10))
    found = [f for f in read_text(IMPORTER, tmp_path, text).findings if f.code == "CL249"]
    assert bool(found) is said
    assert all("ms would fit" in f.message for f in found)


def test_a_pause_between_samples_is_no_wrong_unit(tmp_path):
    later = "".join(text_sample(i, PARTS).replace("10:00:", "11:00:") for i in range(2))
    text = "".join(text_sample(i, PARTS) for i in range(3)) + later
    got = read_text(IMPORTER, tmp_path, text)
    assert "CL249" not in codes(got)
    assert got.runs[0].energy[0].state == "unbounded"
