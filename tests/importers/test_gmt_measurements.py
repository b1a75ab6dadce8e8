"""Green Metrics Tool measurements: energies of intervals, of which the machine's or the parts' count."""

import json
from typing import ClassVar

import pytest

from carbonlens.errors import InputFileError
from carbonlens.importers.gmt_measurements import IMPORTER
from carbonlens.importers.gmt_metrics import metric_of
from tests.conformance.importers import ImporterContract
from tests.importers.reading import claimed, codes, read_text

T0 = 1_772_445_600_000_000
CPU, RAM = "cpu_energy_rapl_msr_component", "memory_energy_rapl_msr_component"
WALL, MODEL = "psu_energy_ac_mcp_machine", "psu_energy_ac_xgboost_machine"


def rows(metric, detail, value, *, unit="uJ", count=11):
    return [[detail, T0 + i * 1_000_000, metric, value, unit] for i in range(count)]


def answer(*groups):
    lines = ",\n".join(json.dumps(row) for group in groups for row in group)
    return '{"success":true,"data":[\n' + lines + "\n]}\n"


class TestConformance(ImporterContract):
    """The contract of importers: 11 intervals of 10 J and of 2 J."""

    importer = IMPORTER
    files: ClassVar = {
        "measurements.json": answer(rows(CPU, "Package_0", 10_000_000), rows(RAM, "Package_0", 2_000_000))
    }
    runs = 1
    energy_j = 132.0
    clocks = False


def parts(run):
    return {(r.component, r.grade): float(r.energy_j) for r in run.energy}


def test_components_count_and_models_stand_beside(tmp_path):
    text = answer(rows(CPU, "Package_0", 10_000_000), rows(MODEL, "[MACHINE]", 90_000_000))
    (run,) = read_text(IMPORTER, tmp_path, text).runs
    assert parts(run) == {("cpu", "B"): pytest.approx(110)}
    assert [(r.component, r.grade) for r in run.beside] == [("total", "D")]
    # The first row's joules are of the second before it.
    assert (run.start_us, run.duration_s) == (T0 - 1_000_000, pytest.approx(11))


def test_a_meter_at_the_wall_holds_the_components(tmp_path):
    text = answer(rows(CPU, "Package_0", 10_000_000), rows(WALL, "[MACHINE]", 50_000_000))
    (run,) = read_text(IMPORTER, tmp_path, text).runs
    assert parts(run) == {("wall", "A"): pytest.approx(550)}
    assert run.energy[0].boundary == "it"
    assert [r.component for r in run.beside] == ["cpu"]


def test_a_model_alone_counts_as_one(tmp_path):
    (run,) = read_text(IMPORTER, tmp_path, answer(rows(MODEL, "[MACHINE]", 90_000_000))).runs
    assert parts(run) == {("total", "D"): pytest.approx(990)}


def test_cores_are_a_part_of_the_cpu(tmp_path):
    cpu, cores = "cpu_energy_powermetrics_component", "cores_energy_powermetrics_component"
    text = answer(rows(cpu, "[COMPONENT]", 5_000_000), rows(cores, "[COMPONENT]", 4_000_000))
    (run,) = read_text(IMPORTER, tmp_path, text).runs
    assert parts(run) == {("cpu", "C"): pytest.approx(55)}


@pytest.mark.parametrize(("unit", "value"), [("uJ", 10_000_000), ("mJ", 10_000), ("J", 10)])
def test_each_row_is_read_in_its_own_unit(tmp_path, unit, value):
    got = read_text(IMPORTER, tmp_path, answer(rows(CPU, "Package_0", value, unit=unit)))
    assert float(got.energy_j) == pytest.approx(110)
    assert codes(got) == []


def test_power_counts_only_where_no_energy_is(tmp_path):
    power = CPU.replace("energy", "power")
    text = answer(rows(CPU, "Package_0", 10_000_000), rows(power, "Package_0", 9_000, unit="mW"))
    (run,) = read_text(IMPORTER, tmp_path, text).runs
    assert float(run.energy[0].energy_j) == pytest.approx(110)
    assert float(run.beside[0].energy_j) == pytest.approx(90)
    (run,) = read_text(IMPORTER, tmp_path, answer(rows(power, "Package_0", 9_000, unit="mW"))).runs
    assert (float(run.energy[0].energy_j), run.energy[0].grade) == (pytest.approx(90), "C")


@pytest.mark.parametrize("unit", ["kWh", "furlong", None, ""])
def test_a_unit_that_is_not_known_is_no_energy(tmp_path, unit):
    text = answer(rows(CPU, "Package_0", 10), rows(RAM, "Package_0", 2_000_000, unit=unit))
    got = read_text(IMPORTER, tmp_path, text)
    assert float(got.energy_j) == pytest.approx(11 * 10e-6)
    assert got.rows_rejected == 11
    assert "CL202" in codes(got)


def test_shares_and_other_metrics_are_no_energy(tmp_path):
    text = answer(
        rows(CPU, "Package_0", 10_000_000),
        rows("psu_energy_cgroup_container", "web", 3_000_000),
        rows("cpu_utilization_procfs_system", "[SYSTEM]", 5000, unit="Ratio"),
        rows("psu_carbon_ac_mcp_machine", "[MACHINE]", 700, unit="ug"),
    )
    got = read_text(IMPORTER, tmp_path, text)
    assert float(got.energy_j) == pytest.approx(110)
    assert codes(got) == ["CL269"]


def test_rows_that_repeat_count_once(tmp_path):
    got = read_text(
        IMPORTER, tmp_path, answer(rows(CPU, "Package_0", 10_000_000), rows(CPU, "Package_0", 10_000_000))
    )
    assert float(got.energy_j) == pytest.approx(110)
    assert got.rows_repeated == 11
    assert "CL201" in codes(got)


@pytest.mark.parametrize(
    "row",
    [
        ["Package_0", T0 + 99_000_000, CPU, -5, "uJ"],
        ["Package_0", 5, CPU, 5, "uJ"],
        ["Package_0", T0 + 99_000_000, CPU, 5],
        [None, T0, CPU, 5, "uJ"],
    ],
)
def test_a_row_that_cannot_be_is_left_out(tmp_path, row):
    got = read_text(IMPORTER, tmp_path, answer(rows(CPU, "Package_0", 10_000_000), [row]))
    assert float(got.energy_j) == pytest.approx(110)
    assert got.rows_rejected == 1


def test_without_any_energy_it_is_refused(tmp_path):
    text = answer(rows("cpu_utilization_procfs_system", "[SYSTEM]", 5000, unit="Ratio"))
    with pytest.raises(InputFileError, match="holds no energy"):
        read_text(IMPORTER, tmp_path, text)


@pytest.mark.parametrize(
    ("name", "grade"),
    [
        ("psu_energy_ac_gude_machine", "A"),
        ("psu_energy_ac_ipmi_machine", "C"),
        ("gpu_energy_nvidia_nvml_component", "C"),
        ("psu_energy_dc_rapl_msr_machine", "B"),
        ("psu_energy_ac_newprovider_machine", "D"),
        ("psu_energy_ac_sdia_machine", "D"),
    ],
)
def test_grades_follow_the_provider(name, grade):
    assert metric_of(name).grade == grade


def test_other_json_is_not_claimed(tmp_path):
    file = tmp_path / "a.json"
    file.write_text('{"success":true,"data":[["a",1,"b",2,"c"]]}')
    assert not claimed(IMPORTER, file)
