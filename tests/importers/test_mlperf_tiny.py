"""MLPerf Tiny energy results: microjoules of each measured window."""

from typing import ClassVar

import pytest

from carbonlens.importers.mlperf_tiny import IMPORTER
from tests.conformance.importers import ImporterContract
from tests.importers.parsed_traces import real_file, right_totals
from tests.importers.reading import codes, read_file, read_text


def window(number, microjoules, seconds=10.0, unit="u"):
    watts = microjoules / seconds
    return (
        f"00100.000 ulp-ml: Energy data for window {number} at time {number}.50 for {seconds:.2f} sec.:\n"
        f"00100.000 ulp-ml:   Energy       :  {microjoules:.3f} {unit}J\n"
        f"00100.000 ulp-ml:   Power        :  {watts:.3f} {unit}W\n"
        f"00100.000 ulp-ml:   Energy/Inf.  :  {microjoules / 200:.3f} {unit}J/inf.\n"
    )


def performance(number, inferences=200):
    return (
        f"00101.000 ulp-ml: Performance results for window {number}:\n"
        f"00101.000 ulp-ml:   # Inferences :          {inferences}\n"
        "00101.000 ulp-ml:   Runtime      :       10.001 sec.\n"
        "00101.000 ulp-ml:   Throughput   :       20.000 inf./sec.\n"
        "00101.000 ulp-ml: Runtime requirements have been met.\n"
    )


def median(microjoules):
    return f"00100.100 ulp-ml: Median energy cost is {microjoules:.3f} uJ/inf.\n"


ENERGIES = {2: 1_500_000.0, 4: 1_510_000.0, 6: 1_490_000.0}
SAMPLE = (
    "".join(window(n, e) for n, e in ENERGIES.items())
    + median(7500.0)
    + "".join(performance(n) for n in ENERGIES)
)


class TestConformance(ImporterContract):
    """The contract of importers, on three windows."""

    importer = IMPORTER
    files: ClassVar = {"results.txt": SAMPLE}
    runs = 3
    energy_j = 4.5
    header_lines = 0


def test_a_window_is_a_run_of_inferences(tmp_path):
    got = read_text(IMPORTER, tmp_path, SAMPLE)
    run = got.runs[1]
    assert (run.units, run.unit, run.duration_s, run.repeat) == (200, "inference", 10.0, 1)
    assert float(run.energy[0].energy_j) == pytest.approx(1.51)
    assert (run.energy[0].grade, run.energy[0].boundary) == ("A", "device")
    assert run.energy[0].estimate.low is None, "the monitor's accuracy is not told"
    assert codes(got) == ["CL245"]


def test_units_are_those_of_each_line(tmp_path):
    got = read_text(IMPORTER, tmp_path, window(2, 1500.0, unit="m"))
    assert float(got.energy_j) == pytest.approx(1.5)
    assert got.runs[0].units == 200, "by the energy of one"


def test_an_unknown_unit_is_no_energy(tmp_path):
    got = read_text(IMPORTER, tmp_path, window(2, 1500.0, unit="x") + window(4, 1.0))
    assert (len(got.runs), got.rows_rejected) == (1, 1)


def test_an_energy_in_another_unit_than_its_power_is_said(tmp_path):
    lying = window(2, 1_500_000.0).replace("1500000.000 uJ", "1500.000 uJ")
    assert {"CL247", "CL282"} <= set(codes(read_text(IMPORTER, tmp_path, lying + performance(2))))


def test_a_median_that_is_not_of_the_windows_is_said(tmp_path):
    cut = SAMPLE.replace(window(2, ENERGIES[2]), "").replace(window(4, ENERGIES[4]), "")
    assert "CL282" in codes(read_text(IMPORTER, tmp_path, cut))


def test_rules_that_were_not_met_are_said(tmp_path):
    got = read_text(IMPORTER, tmp_path, SAMPLE.replace("have been met", "have not been met"))
    assert len(got.runs) == 3
    assert "CL280" in codes(got)


def test_a_log_joined_to_itself_counts_once(tmp_path):
    got = read_text(IMPORTER, tmp_path, SAMPLE + SAMPLE)
    assert float(got.energy_j) == pytest.approx(4.5)
    assert got.rows_repeated == 3


@pytest.mark.parametrize("name", ["tiny_kws_h7_v80.txt", "tiny_kws_h7_v73.txt", "tiny_ic_h7_v80.txt"])
def test_real_results_come_to_their_totals(name):
    got, expected = read_file(IMPORTER, real_file(name)), right_totals(name)
    assert len(got.runs) == expected["windows"]
    # Energies are stored to a microjoule.
    assert float(got.energy_j) * 1e6 == pytest.approx(expected["energy_uJ_sum"], abs=2.5)
    assert sum(r.duration_s for r in got.runs) == pytest.approx(expected["window_s_sum"], rel=1e-9)
    assert sum(r.units for r in got.runs) == expected["inferences"]
    each = sorted(float(r.energy[0].energy_j / r.units) for r in got.runs)
    assert each[2] * 1e6 == pytest.approx(expected["median_uJ_per_inference"], rel=1e-5)
    assert codes(got) == ["CL245"]
