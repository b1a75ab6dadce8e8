"""eco2ai's emission.csv: two eras, epochs, and each of its traps."""

from typing import ClassVar

import pytest

from carbonlens.importers.contract import Options
from carbonlens.importers.eco2ai import IMPORTER
from tests.conformance.importers import ImporterContract
from tests.importers.reading import codes, read_text

HEADER = (
    "id,project_name,experiment_description,epoch,start_time,duration(s),power_consumption(kWh),"
    "CO2_emissions(kg),CPU_name,GPU_name,OS,region/country,cost"
)
ROW_1 = (
    "run-a,digits,small net,N/A,2026-03-02 10:00:00,100.5,0.005,0.0031,"
    "Some CPU/1 device(s),,Linux,IN/Kerala,0"
)
ROW_2 = ROW_1.replace("run-a", "run-b").replace("10:00:00", "11:00:00")


def of(*rows):
    return "\n".join([HEADER, *rows, ""])


class TestConformance(ImporterContract):
    """The contract of importers, on two runs."""

    importer = IMPORTER
    files: ClassVar = {"emission.csv": of(ROW_1, ROW_2)}
    runs = 2
    energy_j = 36_000.0
    delimiter = ","
    essential = ("power_consumption(kwh)",)
    clocks = False


def test_a_row_becomes_a_run_with_its_place_and_time(tmp_path):
    got = read_text(IMPORTER, tmp_path, of(ROW_1), Options(tz="Asia/Kolkata"))
    (record,) = got.records
    run = record.run
    assert (run.run_id, run.duration_s) == ("run-a", 100.5)
    assert run.end_us - run.start_us == 100_500_000
    assert run.start_us == 1_772_425_800_000_000  # 10:00 in India is 04:30 UTC
    assert (record.place.country, record.place.region) == ("IN", "Kerala")
    assert float(run.emissions_reported_kg) == 0.0031
    (energy,) = run.energy
    assert (energy.grade, energy.boundary, float(energy.energy_j)) == ("D", "device", 18_000.0)
    assert codes(got) == ["CL263"]


def test_the_boundary_that_the_user_gives_is_taken(tmp_path):
    got = read_text(IMPORTER, tmp_path, of(ROW_1), Options(tz="UTC", boundary="facility"))
    assert got.runs[0].energy[0].boundary == "facility"
    assert codes(got) == []


def test_a_quoted_name_of_a_processor_may_hold_commas(tmp_path):
    row = ROW_1.replace("Some CPU/1 device(s)", '"Some CPU @ 2.40GHz/1 device(s), TDP:28.0"')
    got = read_text(IMPORTER, tmp_path, of(row, ROW_2))
    assert float(got.energy_j) == 36_000
    assert "TDP:28.0" in got.runs[0].hardware


def test_epochs_of_one_training_all_count(tmp_path):
    rows = [ROW_1.replace("N/A", f"epoch: {n} loss: 0.{n}").replace("10:00", f"10:0{n}") for n in (1, 2, 3)]
    got = read_text(IMPORTER, tmp_path, of(*rows))
    assert float(got.energy_j) == 3 * 18_000
    assert len({r.run_id for r in got.runs}) == 3
    assert {r.job_id for r in got.runs} == {"run-a"}
    assert not any(r.cumulative for r in got.records)


def test_an_equal_row_counts_once(tmp_path):
    got = read_text(IMPORTER, tmp_path, of(ROW_1, ROW_1))
    assert (len(got.runs), got.rows_repeated) == (1, 1)
    assert "CL201" in codes(got)


def test_the_oldest_era_is_read(tmp_path):
    header = (
        "project_name,experiment_description,start_time,duration(s),power_consumption(kWTh),"
        "CO2_emissions(kg),CPU_name,GPU_name,OS,country"
    )
    row = "digits,small,2022-06-14 13:02:37,60,0.001,0.0004,Some CPU,Some GPU 1 device(s),Linux,Russia"
    got = read_text(IMPORTER, tmp_path, f"{header}\n{row}\n", Options(tz="Europe/Moscow"))
    assert float(got.energy_j) == 3_600
    assert got.records[0].place.country == "Russia"
    assert got.runs[0].run_id.startswith("row-")


def test_an_energy_of_zero_is_unknown(tmp_path):
    got = read_text(IMPORTER, tmp_path, of(ROW_1.replace("0.005,0.0031", "0.0,0.0"), ROW_2))
    assert got.runs[0].energy[0].energy_j is None
    assert got.records[0].stated_j is None
    assert got.runs[0].emissions_reported_kg is None
    assert "CL260" in codes(got)


def test_a_power_that_no_core_draws_is_said_once(tmp_path):
    rows = [ROW_1.replace("0.005,0.0031", "1e-8,6e-9"), ROW_2.replace("0.005,0.0031", "1e-8,6e-9")]
    got = read_text(IMPORTER, tmp_path, of(*rows))
    (said,) = [f for f in got.findings if f.code == "CL248"]
    assert "2 lines" in said.message


@pytest.mark.parametrize(
    ("energy", "fits"), [("18000", "J would fit"), ("18000000", "mJ would fit"), ("5", "Wh would fit")]
)
def test_an_energy_in_another_unit_is_said(tmp_path, energy, fits):
    got = read_text(IMPORTER, tmp_path, of(ROW_1.replace("0.005,", f"{energy},")))
    assert any(f.code == "CL248" and fits in f.message for f in got.findings)


def test_emissions_in_grams_are_said(tmp_path):
    got = read_text(IMPORTER, tmp_path, of(ROW_1.replace("0.0031", "3.1")))
    assert any(f.code == "CL250" and "3.1 g would fit" in f.message for f in got.findings)


def test_an_encoded_file_gives_no_figure(tmp_path):
    got = read_text(IMPORTER, tmp_path, of("!#a,b,c,d,e,xz,kq9,pp,q,r,s,t,u"))
    assert (got.runs, got.rows_rejected) == ((), 1)
    assert "CL202" in codes(got)
