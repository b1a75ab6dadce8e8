"""carbontracker's logs: each alone, both of one tracker, and every state they are left in."""

from pathlib import Path
from typing import ClassVar

import pytest

from carbonlens.app.importing import import_files
from carbonlens.importers.carbontracker import IMPORTER
from carbonlens.importers.carbontracker_log import sessions
from carbonlens.importers.claiming import claims
from carbonlens.importers.contract import Options
from carbonlens.importers.harvest import harvest
from carbonlens.importers.sources import Source
from tests.conformance.importers import ImporterContract
from tests.importers.parsed_traces import real_file, right_totals, taken
from tests.importers.reading import codes, read_text

FOUND = "The following components were found: GPU with device(s) Some GPU. CPU with device(s) cpu:0."


def consumption(time, kwh, grams, what="Actual consumption for 1 epoch(s):"):
    return f"CarbonTracker: \n{what}\n\tTime:\t{time}\n\tEnergy:\t{kwh} kWh\n\tCO2eq:\t{grams} g\n"


def stamped(second, text):
    return f"2026-03-02 10:0{second // 60}:{second % 60:02d} - {text}\n".replace("\n\n", "\n")


OUTPUT = (
    stamped(0, f"CarbonTracker: {FOUND}")
    + stamped(60, consumption("0:00:50", "0.003000", "0.300000"))
    + stamped(60, consumption("0:03:20", "0.012000", "1.2", "Predicted consumption for 4 epoch(s):"))
    + stamped(120, consumption("0:01:40", "0.006000", "0.600000", "Actual consumption for 2 epoch(s):"))
    + stamped(120, "CarbonTracker: Finished monitoring.")
)


def epoch(number, second, duration, gpu, cpu):
    return (
        stamped(second, f"Epoch {number}:")
        + stamped(second, f"Duration: {duration}")
        + stamped(second, f"Average power usage (W) for gpu: {gpu}")
        + stamped(second, f"Average power usage (W) for cpu: {cpu}")
    )


BEGIN = (
    stamped(0, "carbontracker version 2.4.4")
    + stamped(
        0, "Only predicted and actual consumptions are multiplied by a PUE coefficient of 1.50 (x, 2023)."
    )
    + stamped(0, FOUND)
    + stamped(0, "Monitoring thread started.")
)
END = stamped(
    120,
    "Carbon intensities (gCO2eq/kWh) fetched every 900 s at detected location: "
    "Lyngby, Capital Region, DK: [100.0]",
) + stamped(120, "Monitoring thread ended.")
STANDARD = (
    BEGIN
    + epoch(1, 60, "0:00:50.00", "[134.]", "[10.]")
    + epoch(2, 120, "0:00:50.00", "[134.]", "[10.]")
    + END
)


class TestOutputLog(ImporterContract):
    """The contract of importers, on an output log."""

    importer = IMPORTER
    files: ClassVar = {"1_carbontracker_output.log": OUTPUT}
    runs = 1
    energy_j = 21_600.0


class TestStandardLog(ImporterContract):
    """The contract of importers, on a standard log."""

    importer = IMPORTER
    files: ClassVar = {"1_carbontracker.log": STANDARD}
    runs = 1
    energy_j = 14_400.0


class TestBothLogs(ImporterContract):
    """The contract of importers, on both logs of one tracker."""

    importer = IMPORTER
    files: ClassVar = {"1_carbontracker_output.log": OUTPUT, "1_carbontracker.log": STANDARD}
    runs = 1
    energy_j = 21_600.0


def both(folder, output, standard, options=None):
    sources = []
    for name, text in (("a_output.log", output), ("a.log", standard)):
        (folder / name).write_text(text)
        sources.append(Source(folder / name))
    (claim,), left = claims(sources, [IMPORTER])
    assert not left
    return harvest(IMPORTER, claim.group, options or Options())


def test_the_last_sum_counts_and_no_prediction(tmp_path):
    got = read_text(IMPORTER, tmp_path, OUTPUT, Options(tz="Europe/Copenhagen"))
    (run,) = got.runs
    assert (float(got.energy_j), run.duration_s, float(run.emissions_reported_kg)) == (
        21_600.0,
        100.0,
        0.0006,
    )
    assert run.energy[0].boundary == "facility"
    assert run.energy[0].grade == "D"
    assert run.end_us == 1_772_442_120_000_000
    assert run.end_us - run.start_us == 100_000_000
    assert codes(got) == ["CL262"]


def test_epochs_give_the_devices_energy_and_the_stated_one_stands_beside(tmp_path):
    got = both(tmp_path, OUTPUT, STANDARD, Options(tz="UTC"))
    (record,) = got.records
    run = record.run
    assert [(e.component, float(e.energy_j), e.boundary, e.grade) for e in run.energy] == [
        ("gpu", 13_400.0, "device", "C"),
        ("cpu", 1_000.0, "device", "D"),
    ]
    assert [(e.component, float(e.energy_j), e.boundary) for e in run.beside] == [
        ("total", 21_600.0, "facility")
    ]
    assert float(record.stated_j) == 21_600
    assert (record.place.country, record.place.region) == ("DK", "Capital Region")
    assert float(run.emissions_reported_kg) == 0.0006
    assert [f.code for f in got.findings] == ["CL262"]


def test_a_folder_of_both_logs_holds_one_run(tmp_path):
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "1_carbontracker_output.log").write_text(OUTPUT)
    (tmp_path / "logs" / "1_carbontracker.log").write_text(STANDARD)
    other = {"10:0": "11:0"}
    (tmp_path / "logs" / "2_carbontracker_output.log").write_text(OUTPUT.replace(*other.popitem()))
    result = import_files([tmp_path / "logs"], ledger=tmp_path / "ledger")
    assert result.totals.runs == 2


def test_epochs_that_do_not_come_to_what_is_stated_are_said(tmp_path):
    got = both(tmp_path, OUTPUT, STANDARD.replace("[134.]", "[234.]"))
    assert "CL256" in [f.code for f in got.findings]
    assert [e.component for e in got.records[0].run.energy] == ["total"]


def test_epochs_after_the_stated_ones_are_counted(tmp_path):
    output = OUTPUT[: OUTPUT.index("2026-03-02 10:02:00")] + stamped(
        120, "CarbonTracker: Finished monitoring."
    )
    got = both(tmp_path, output, STANDARD)
    (record,) = got.records
    assert float(sum(e.energy_j for e in record.run.energy)) == 14_400
    assert record.run.emissions_reported_kg is None
    assert record.stated_j is None
    assert any("1 of 2 epochs" in f.message for f in got.findings)


@pytest.mark.parametrize("nothing", ["0.000000000000", "nan"])
def test_a_consumption_of_nothing_was_not_measured(tmp_path, nothing):
    text = stamped(0, f"CarbonTracker: {FOUND}") + stamped(
        1, consumption("0:00:00", nothing, nothing, "Actual consumption:")
    )
    got = read_text(IMPORTER, tmp_path, text + stamped(1, "CarbonTracker: Finished monitoring."))
    (record,) = got.records
    assert record.stated_j is None
    assert record.run.energy[0].energy_j is None
    assert record.run.emissions_reported_kg is None
    assert "CL260" in codes(got)


def test_power_of_none_is_unknown_and_no_zero(tmp_path):
    got = read_text(IMPORTER, tmp_path, BEGIN + epoch(1, 1, "0:00:00.00", "None", "None") + END)
    (run,) = got.runs
    assert [(e.component, e.energy_j) for e in run.energy] == [("gpu", None), ("cpu", None)]
    assert "CL260" in codes(got)


def test_an_epoch_without_power_makes_a_lower_bound(tmp_path):
    text = (
        BEGIN
        + epoch(1, 60, "0:00:50.00", "[134.]", "[10.]")
        + epoch(2, 62, "0:00:02.00", "None", "[10.]")
        + END
    )
    got = read_text(IMPORTER, tmp_path, text)
    gpu, cpu = got.runs[0].energy
    assert (float(gpu.energy_j), gpu.state, gpu.covered_s) == (6_700.0, "unbounded", 50.0)
    assert (float(cpu.energy_j), cpu.state, cpu.covered_s) == (520.0, "known", 52.0)
    assert "CL260" in codes(got)


def test_the_power_of_many_devices_is_added_up_over_lines(tmp_path):
    many = "[100.00000001 100.00000001 100.00000001 100.00000001\n 100.00000001 100.00000001]"
    got = read_text(IMPORTER, tmp_path, BEGIN + epoch(1, 60, "0:00:10.00", many, "[10.]") + END)
    assert float(got.runs[0].energy[0].energy_j) == pytest.approx(6_000, rel=1e-6)


def test_a_log_that_ends_before_any_consumption_makes_no_run(tmp_path):
    got = read_text(IMPORTER, tmp_path, stamped(0, f"CarbonTracker: {FOUND}"))
    assert got.runs == ()
    assert codes(got) == ["CL261"]


def test_a_log_that_is_still_written_counts_until_then(tmp_path):
    got = read_text(IMPORTER, tmp_path, OUTPUT[: OUTPUT.index("2026-03-02 10:02:00")])
    assert float(got.energy_j) == 10_800
    assert "CL261" in codes(got)


def test_emissions_that_are_nan_are_unknown_and_the_energy_stays(tmp_path):
    got = read_text(IMPORTER, tmp_path, OUTPUT.replace("0.600000 g", "nan g"))
    assert float(got.energy_j) == 21_600
    assert got.runs[0].emissions_reported_kg is None


def test_trackers_one_after_another_are_runs_of_their_own(tmp_path):
    got = read_text(IMPORTER, tmp_path, OUTPUT + OUTPUT.replace("10:0", "11:0"))
    assert len(got.runs) == 2
    assert float(got.energy_j) == 43_200


def test_milliwatts_under_watts_and_joules_under_kwh_are_said(tmp_path):
    text = BEGIN + epoch(1, 60, "0:00:50.00", "[134000.]", "[10000.]") + END
    assert any(
        f.code == "CL248" and "mJ would fit" in f.message
        for f in read_text(IMPORTER, tmp_path, text).findings
    )
    got = read_text(IMPORTER, tmp_path, OUTPUT.replace("0.006000 kWh", "21600 kWh"))
    assert any(f.code == "CL248" and "J would fit" in f.message for f in got.findings)


def test_times_that_cannot_be_leave_the_energy_in_no_hour(tmp_path):
    got = read_text(IMPORTER, tmp_path, OUTPUT.replace("2026-03-02", "2026-13-02"))
    assert float(got.energy_j) == 21_600
    assert got.runs[0].start_us is None
    assert "CL245" in codes(got)


def test_the_real_standard_log_tells_its_pue_place_and_no_power():
    path = real_file("ct02_std.log")
    told = right_totals("ct02_std.log")
    (session,) = sessions(Source(path))
    assert float(session.pue) == told["pue"]
    assert [float(e.duration_s) for e in session.epochs] == [told["epoch1_duration_s"]]
    (record,) = taken(IMPORTER, path).records
    assert record.place.country == "DK"
    assert [e.energy_j for e in record.run.energy] == [None, None]


def test_the_real_log_of_actual_and_predicted_counts_the_actual():
    told = right_totals("ct06_actual_and_predicted.log")
    (record,) = taken(IMPORTER, real_file("ct06_actual_and_predicted.log")).records
    assert float(record.stated_j) / 3.6e6 == pytest.approx(told["energy_kwh"], rel=1e-3)
    assert float(record.run.emissions_reported_kg) == pytest.approx(told["emissions_kg"], rel=1e-3)
    assert record.run.duration_s == told["duration_s"]


def test_the_real_log_that_never_finished_makes_no_run():
    got = taken(IMPORTER, real_file("ct04_output_unfinished.log"))
    assert len(got.records) == right_totals("ct04_output_unfinished.log")["runs"]
    assert [f.code for f in got.findings] == ["CL261"]


CASE = Path(__file__).parents[3] / "shared" / "cases" / "inputs" / "c07_carbontracker_output.log"


@pytest.mark.skipif(not CASE.exists(), reason="the shared cases are not here")
def test_case_c07_a_prediction_of_nan_is_ignored():
    got = harvest(IMPORTER, claims([Source(CASE)], [IMPORTER])[0][0].group, Options())
    (record,) = got.records
    assert float(record.stated_j) / 3.6e6 == pytest.approx(0.000263)
    assert (record.run.duration_s, float(record.run.emissions_reported_kg)) == (20.0, 0.000019182)


def test_of_no_damaged_log_more_rows_are_rejected_than_there_are(tmp_path):
    """A tracker may have many messages that are damaged: each is a row that was met."""
    bad = "".join(
        stamped(n, consumption("0:00:10", f"-{n}.5", "1.0", "Actual consumption:")) for n in range(1, 9)
    )
    got = read_text(IMPORTER, tmp_path, stamped(0, f"CarbonTracker: {FOUND}") + bad)
    assert (got.rows, got.rows_rejected) == (9, 8)
    assert len([f for f in got.findings if f.code == "CL202"]) == 8
