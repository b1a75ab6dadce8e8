"""Folders of optimization steps: latency, power and memory of each variant."""

import math
from typing import ClassVar

import pytest

from carbonlens.app.importing import import_files
from carbonlens.importers.step_folder import IMPORTER
from carbonlens.ledger.store import Ledger
from tests.conformance.importers import ImporterContract
from tests.importers.parsed_traces import SHARED, real_file, right_totals

LATENCY = "RUN,DEN_LAT,DEC_LAT,TOTAL_LAT\n"
POWER = "RUN,PWR_IN_MAX,PWR_CPU_MAX,PWR_GPU_MAX,PWR_IN_AVG,PWR_CPU_AVG,PWR_GPU_AVG\n"
MEMORY = "RUN,MEM_MAX,MEM_AVG\n"


def tables(name, *, seconds=100.0, milliwatts=4000.0, runs=4):
    rows = range(runs)
    return {
        f"{name}_latency.csv": LATENCY + "".join(f"{n},-1.0,-1.0,{seconds + n}\n" for n in rows),
        f"{name}_power.csv": POWER
        + "".join(f"{n},4100.0,2000.0,600.0,{milliwatts},1500.0,300.0\n" for n in rows),
        f"{name}_memory.csv": MEMORY + "".join(f"{n},2458.0,2456.5\n" for n in rows),
    }


class TestConformance(ImporterContract):
    """The contract of importers, on four runs of one variant."""

    importer = IMPORTER
    files: ClassVar = tables("net_baseline")
    runs = 4
    energy_j = 4.0 * (100 + 101 + 102 + 103)
    delimiter = ","
    essential = ("total_lat",)


@pytest.fixture
def read(tmp_path):
    def of(files, folder="in"):
        place = tmp_path / folder
        place.mkdir(exist_ok=True)
        for name, text in files.items():
            (place / name).write_text(text)
        return import_files([place], ledger=tmp_path / "ledger")

    of.ledger = tmp_path / "ledger"
    return of


def runs_of(read):
    return list(Ledger(read.ledger).view().runs)


def found(result):
    return [f.code for file in result.files for f in file.findings]


def test_variants_are_steps_of_one_study(read):
    result = read(tables("net_baseline") | tables("net_fp16", seconds=90.0) | tables("net_fp16_jit"))
    assert result.totals.runs == 12
    runs = runs_of(read)
    assert {(r.study, r.step) for r in runs} == {("net", "baseline"), ("net", "fp16"), ("net", "fp16_jit")}
    first = next(r for r in runs if r.step == "baseline" and r.repeat == 0)
    assert float(first.energy[0].energy_j) == 400.0
    assert {e.component: float(e.energy_j) for e in first.beside} == {"cpu": 150.0, "gpu": 30.0}
    assert (first.units, first.unit, first.role) == (1, "run", "variant")
    assert {"CL283", "CL245"} <= set(found(result))


def test_two_studies_of_one_folder_are_told_apart(read):
    other = tables("b_baseline", seconds=50.0) | tables("b_fp16", seconds=40.0)
    read(tables("a_baseline") | tables("a_fp16") | other)
    assert {(r.study, r.step) for r in runs_of(read)} == {
        (study, step) for study in "ab" for step in ("baseline", "fp16")
    }


def test_a_variant_without_rows_was_not_measured(read):
    result = read(tables("net_baseline") | tables("net_int8", runs=0))
    assert {r.step for r in runs_of(read)} == {"baseline"}
    assert "CL260" in found(result)


def test_a_latency_of_minus_one_is_unknown(read):
    files = tables("net_baseline")
    files["net_baseline_latency.csv"] = files["net_baseline_latency.csv"].replace(",102.0\n", ",-1.0\n")
    result = read(files)
    unknown = [r for r in runs_of(read) if r.energy[0].energy_j is None]
    assert [r.repeat for r in unknown] == [2]
    assert unknown[0].duration_s is None
    assert "CL260" in found(result)


def test_power_alone_is_no_energy_and_a_later_import_completes_it(read):
    files = tables("net_baseline")
    power = {"net_baseline_power.csv": files.pop("net_baseline_power.csv")}
    assert read(files).totals.energy_kwh is None
    assert read(power).totals.energy_kwh == pytest.approx(1624.0 / 3.6e6)
    known = [r for r in runs_of(read) if r.energy[0].energy_j is not None]
    assert len(known) == 4


def test_watts_in_place_of_milliwatts_are_said(read):
    assert "CL248" in found(read(tables("net_baseline", milliwatts=4.0)))


def test_names_that_pair_no_tables_are_refused(read):
    files = tables("net_baseline") | tables("net_fp16", seconds=90.0)
    result = read({f"{n}.csv": text for n, text in enumerate(files.values())})
    assert {f.status for f in result.files} == {"refused"}
    assert "both a" in result.files[0].findings[0].message


def test_the_real_folder_comes_to_its_totals(tmp_path):
    real_file("steps_jetson_nano_baseline_latency.csv")
    expected = right_totals("steps_jetson_nano_*.csv")
    paths = sorted((SHARED / "files").glob("steps_jetson_nano_*"))
    result = import_files(paths, ledger=tmp_path / "ledger")
    assert not [f for f in result.files if f.status == "refused"]
    runs = list(Ledger(tmp_path / "ledger").view().runs)
    assert {r.step for r in runs} == set(expected)
    assert {r.study for r in runs} == {"steps_jetson_nano"}
    for step, told in expected.items():
        mine = sorted((r for r in runs if r.step == step), key=lambda r: r.repeat)
        joules = [float(r.energy[0].energy_j) for r in mine]
        assert math.fsum(joules) / len(joules) == pytest.approx(told["all_mean_J"], rel=1e-5)
        assert math.fsum(joules[1:]) / (len(joules) - 1) == pytest.approx(told["warm_mean_J"], rel=1e-5)
        assert mine[0].duration_s == pytest.approx(told["first_latency_s"], rel=1e-5)
        warm_s = math.fsum(r.duration_s for r in mine[1:]) / (len(mine) - 1)
        assert warm_s == pytest.approx(told["warm_latency_s"], rel=1e-5)


@pytest.mark.parametrize(
    ("name", "study", "step"),
    [
        ("net_baseline", "net", "baseline"),
        ("steps_jetson_nano_16bit_jit", "steps_jetson_nano", "16bit_jit"),
        ("bert-base-int8-pruned50", "bert-base", "int8-pruned50"),
        ("resnet_50_fp16", "resnet_50", "fp16"),
        ("net_w4a16", "net", "w4a16"),
        ("net_mytrick", "net", "mytrick"),
        ("baseline", None, "baseline"),
        ("net", None, "net"),
    ],
)
def test_a_variant_has_one_study_whoever_lies_beside_it(read, name, study, step):
    """Imported alone and with its whole folder later, it is one run of one study."""
    assert read(tables(name), "alone").totals.runs == 4
    together = tables(name) | tables("other_original", seconds=70.0) | tables("net_fp32_jit", seconds=50.0)
    assert read(together, "together").totals.runs == 8
    mine = [r for r in runs_of(read) if r.step == step]
    assert {(r.study, r.step) for r in mine} == {(study, step)}
    assert len(mine) == 4


def test_a_name_without_a_word_of_a_step_is_said(read):
    assert "CL257" in found(read(tables("net_mytrick")))
    assert "CL257" not in found(read(tables("net_fp16"), "sure"))
