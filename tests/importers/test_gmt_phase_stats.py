"""Green Metrics Tool phase statistics: a run a phase, of which the runtime holds the scenario's own."""

import json
from typing import ClassVar

import pytest

from carbonlens.app.importing import import_files
from carbonlens.errors import InputFileError
from carbonlens.importers.gmt_phase_stats import IMPORTER
from tests.conformance.importers import ImporterContract
from tests.importers.reading import claimed, codes, read_text

ID = "7d4bd5c1-0d5e-4d6f-9a1b-000000000001"
CPU, WALL = "cpu_energy_rapl_msr_component", "psu_energy_ac_mcp_machine"


def metric(unit, value, detail="[MACHINE]", kind="TOTAL"):
    told = {"mean": value, "max": None, "min": None, "stddev": None, "ci": None, "values": [value]}
    return {"type": kind, "unit": unit, "data": {detail: {"name": detail, "data": {ID: told}}}}


def phase(energy_uj, seconds, *, hidden=False, **more):
    found = {
        "phase_time_syscall_system": metric("us", seconds * 1_000_000, "[SYSTEM]"),
        WALL: metric("uJ", energy_uj),
        "psu_power_ac_mcp_machine": metric("mW", round(energy_uj / seconds / 1000), kind="MEAN"),
    }
    return {"hidden": hidden, "data": found | more}


def answer(phases, case=None):
    stats = {
        "comparison_case": case,
        "comparison_details": None,
        "comparison_identifiers": [ID],
        "data": phases,
    }
    return json.dumps({"success": True, "data": stats}, indent=1) + "\n"


TWO = {"[BASELINE]": phase(100_000_000, 5), "[RUNTIME]": phase(600_000_000, 10)}


class TestConformance(ImporterContract):
    """The contract of importers: a baseline of 100 J and a runtime of 600 J."""

    importer = IMPORTER
    files: ClassVar = {"phase_stats.json": answer(TWO)}
    runs = 2
    energy_j = 700.0


def by_phase(got):
    return {r.tags["phase"]: r for r in got.runs}


def test_a_phase_is_a_run_with_its_length(tmp_path):
    got = read_text(IMPORTER, tmp_path, answer(TWO))
    run = by_phase(got)["[RUNTIME]"]
    assert (run.run_id, run.job_id, run.duration_s) == (f"{ID}/[RUNTIME]", ID, 10.0)
    (energy,) = run.energy
    assert (energy.component, energy.grade, energy.boundary, float(energy.energy_j)) == (
        "wall",
        "A",
        "it",
        600.0,
    )
    assert codes(got) == ["CL245"]


def test_phases_of_the_scenario_count_within_the_runtime(tmp_path):
    phases = TWO | {
        "Load": phase(400_000_000, 6),
        "Query": phase(200_000_000, 4),
        "Warm-up": phase(50_000_000, 3, hidden=True),
    }
    file = tmp_path / "a.json"
    file.write_text(answer(phases))
    result = import_files([file], ledger=tmp_path / "ledger")
    assert result.totals.runs == 5
    assert result.totals.energy_kwh == pytest.approx((100 + 600 + 50) / 3.6e6)
    runs = by_phase(read_text(IMPORTER, tmp_path, answer(phases)))
    assert runs["Load"].parent_run_id == runs["[RUNTIME]"].run_id
    assert runs["Warm-up"].parent_run_id is None
    assert runs["Warm-up"].tags["hidden"] == "true"


def test_without_a_runtime_phases_stand_alone(tmp_path):
    runs = by_phase(read_text(IMPORTER, tmp_path, answer({"Load": phase(400_000_000, 6)})))
    assert runs["Load"].parent_run_id is None


def test_components_stand_beside_the_wall_and_count_alone(tmp_path):
    more = {CPU: metric("uJ", 200_000_000, "Package_0")}
    run = by_phase(read_text(IMPORTER, tmp_path, answer({"[RUNTIME]": phase(600_000_000, 10, **more)})))[
        "[RUNTIME]"
    ]
    assert [r.component for r in run.beside] == ["cpu"]
    alone = phase(0, 10, **more)
    del alone["data"][WALL], alone["data"]["psu_power_ac_mcp_machine"]
    (run,) = read_text(IMPORTER, tmp_path, answer({"[RUNTIME]": alone})).runs
    assert [(r.component, float(r.energy_j)) for r in run.energy] == [("cpu", 200.0)]


@pytest.mark.parametrize(("unit", "value"), [("ug", 50_000), ("ugCO2e", 50_000)])
def test_the_tools_own_carbon_stands_as_reported(tmp_path, unit, value):
    more = {
        "psu_carbon_ac_mcp_machine": metric(unit, value, "[MACHINE]_carbon_intensity_static_machine_static")
    }
    (run,) = read_text(IMPORTER, tmp_path, answer({"[RUNTIME]": phase(600_000_000, 10, **more)})).runs
    assert float(run.emissions_reported_kg) == pytest.approx(5e-5)


def test_carbon_of_two_grids_is_nobodys(tmp_path):
    carbon = metric("ug", 50_000, "[MACHINE]_a")
    carbon["data"] |= metric("ug", 90_000, "[MACHINE]_b")["data"]
    (run,) = read_text(
        IMPORTER, tmp_path, answer({"[RUNTIME]": phase(600_000_000, 10, psu_carbon_ac_mcp_machine=carbon)})
    ).runs
    assert run.emissions_reported_kg is None


def test_a_comparison_of_means_is_refused(tmp_path):
    with pytest.raises(InputFileError, match="compares means of runs by Commit"):
        read_text(IMPORTER, tmp_path, answer(TWO, case="Commit"))


def test_another_unit_is_left_out_and_said(tmp_path):
    broken = phase(600_000_000, 10)
    broken["data"][WALL]["unit"] = "kWh"
    got = read_text(IMPORTER, tmp_path, answer({"[BASELINE]": TWO["[BASELINE]"], "[RUNTIME]": broken}))
    assert list(by_phase(got)) == ["[BASELINE]"]
    assert (got.rows_rejected, "CL202" in codes(got)) == (1, True)


def test_joules_that_are_labelled_otherwise_are_flagged(tmp_path):
    got = read_text(IMPORTER, tmp_path, answer({"[RUNTIME]": phase(600_000_000 * 1_000_000, 10)}))
    assert "CL248" in codes(got)


def test_energy_and_power_that_disagree_are_said(tmp_path):
    wrong = phase(600_000_000, 10)
    wrong["data"]["psu_power_ac_mcp_machine"] = metric("mW", 6_000, kind="MEAN")
    assert "CL247" in codes(read_text(IMPORTER, tmp_path, answer({"[RUNTIME]": wrong})))


def test_nothing_measured_is_unknown_and_no_zero(tmp_path):
    got = read_text(IMPORTER, tmp_path, answer({"[RUNTIME]": phase(0, 10)}))
    assert got.runs[0].energy[0].energy_j is None
    assert "CL253" in codes(got)
    bare = {"hidden": False, "data": {"phase_time_syscall_system": metric("us", 5_000_000, "[SYSTEM]")}}
    got = read_text(IMPORTER, tmp_path, answer({"[RUNTIME]": bare}))
    assert got.runs[0].energy[0].energy_j is None
    assert "CL260" in codes(got)


def test_other_json_is_not_claimed(tmp_path):
    file = tmp_path / "a.json"
    file.write_text('{"success": true, "data": {}}')
    assert not claimed(IMPORTER, file)
