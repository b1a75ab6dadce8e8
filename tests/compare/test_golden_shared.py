"""Golden cases and problem reports beside the repository, where they are."""

from __future__ import annotations

import json
import math
from decimal import Decimal
from pathlib import Path

import pytest

from carbonlens.accounting import formulas
from carbonlens.accounting.propagation import through
from carbonlens.compare.bootstrap import exact
from carbonlens.compare.contrast import saving
from carbonlens.compare.from_runs import study_from_runs
from carbonlens.compare.grouping import StepRuns, build_arm
from carbonlens.compare.statistics import paired, t_quantile
from carbonlens.compare.study import compare_study
from carbonlens.domain.estimate import Estimate
from carbonlens.domain.factor import Factor, Vector
from carbonlens.domain.money import Money
from carbonlens.domain.run import Quality
from carbonlens.domain.study import Gate, Step, Study
from carbonlens.domain.units import J_PER_KWH
from carbonlens.reporting.comparison_json import comparison_json
from tests.compare.study_runs import rounds, run, vector

SHARED = Path(__file__).parents[2] / ".." / "shared"
GOLDEN = SHARED / "golden" / "golden.json"
CASES = SHARED / "cases" / "cases.json"

pytestmark = pytest.mark.skipif(
    not (GOLDEN.exists() and CASES.exists()), reason="../shared/golden and ../shared/cases are not here"
)


def read(file, prefix=""):
    if not file.exists():
        return []
    return [c for c in json.loads(file.read_text("utf-8")) if c["id"].startswith(prefix)]


def golden(name):
    return next(c for c in read(GOLDEN) if c["id"] == name)


def essence(name):
    return next(c for c in read(CASES) if c["id"] == name)


def estimate(value, u, unit, source=None):
    if source is None:
        return Estimate(value=value, unit=unit, u_random=u)
    return Estimate(value=value, unit=unit, u_by_source={source: u})


def compared(study, runs, with_vector=None):
    return compare_study(study, runs, with_vector or Vector(), {})


def as_json(result):
    """Return what ``compare --json`` prints, read back by a reader that knows no NaN."""

    def refuse(word):
        raise AssertionError(f"{word} in JSON")

    return json.loads(json.dumps(comparison_json(result)), parse_constant=refuse)


def two(before, after, **fields):
    study = Study(name="t", baseline="a", steps=(Step(name="b"),), unit="image")
    return compared(study, [*rounds("a", before, **fields), *rounds("b", after, **fields)]).steps[0]


def test_ab_1_paired_t():
    case = golden("ab/1-paired-t")
    want = case["outputs"]
    over = paired([(1.0, case["inputs"]["baseline_j"]), (-1.0, case["inputs"]["optimized_j"])])
    half = over.half_width(0.95)
    assert over.mean == pytest.approx(want["mean_diff"], rel=case["tolerance"])
    assert over.se * math.sqrt(over.n) == pytest.approx(want["sd"], rel=case["tolerance"])
    assert [over.mean - half, over.mean + half] == pytest.approx(want["ci95"], rel=case["tolerance"])
    assert t_quantile(0.975, 4) == pytest.approx(want["t_crit"], rel=case["tolerance"])
    # The case states no error of the meter: one that is known to be next to none.
    step = two(case["inputs"]["baseline_j"], case["inputs"]["optimized_j"], u_relative=1e-12)
    saved = step.savings.energy_j
    assert [saved.low, saved.high] == pytest.approx(want["ci95"], rel=1e-9)
    assert step.verdict == "better"


def test_ab_2_exhaustive_bca():
    case = golden("ab/2-exhaustive-bca")
    want, got = case["outputs"], exact(case["inputs"]["differences"])
    tolerance = case["tolerance"]
    assert got.mean == pytest.approx(want["theta"], rel=tolerance)
    assert (got.bias, got.acceleration) == pytest.approx((want["z0"], want["a"]), rel=tolerance)
    assert (got.alpha_low, got.alpha_high) == pytest.approx((want["alpha1"], want["alpha2"]), rel=tolerance)
    assert [got.low, got.high] == pytest.approx(want["ci95"], rel=tolerance)
    assert [got.percentile_low, got.percentile_high] == pytest.approx(want["percentile_ci95"], rel=tolerance)


def test_gum_1_product():
    case = golden("gum/1-product")
    given, want = case["inputs"], case["outputs"]
    kwh = estimate(*given["kwh"], "kWh")
    facility = through(formulas.facility_kwh, kwh, estimate(*given["pue"], "1", "pue"), unit="kWh")
    factor = estimate(*given["kg_per_kwh"], "kg/kWh", "grid")
    kg = through(formulas.emissions_kg, facility, factor, unit="kg")
    assert kg.value == pytest.approx(want["kg"], rel=case["tolerance"])
    assert kg.u_total == pytest.approx(want["u"], rel=case["tolerance"])
    assert kg.u_total / kg.value == pytest.approx(want["u_rel"], rel=case["tolerance"])
    assert 2 * kg.u_total == pytest.approx(want["U_k2"], rel=case["tolerance"])


def test_gum_2_difference_with_a_common_factor():
    """One run an arm: the saving's carbon shares the factor, so its error is counted once."""
    case = golden("gum/2-difference-common-factor")
    given, want = case["inputs"], case["outputs"]
    rate, u_rate = given["ci"]
    grid = Factor(
        factor_id="grid",
        zone="XX",
        period="2024",
        method="location",
        value_kg_per_kwh=rate,
        u_relative=u_rate / rate,
        source="golden",
    )
    with_grid = Vector(location=grid, pue=1.0, pue_source="golden")

    def arm(name, kwh, u):
        one = run(name, kwh * J_PER_KWH, u_relative=u / kwh, source=f"meter:{name}")
        group = StepRuns(step=name, on=None, variants=(one,), failed=(), effort=(), all=(one,))
        return build_arm(group, with_grid, per_run=False)[0]

    saved = saving(arm("E0", *given["E0"]), arm("E1", *given["E1"])).emissions_location_kg
    assert saved.value == pytest.approx(want["saved_kg"], rel=case["tolerance"])
    assert saved.u_total == pytest.approx(want["u_correct"], rel=case["tolerance"])
    assert saved.u_total < want["u_if_treated_independent"]


@pytest.mark.parametrize("name", [c["id"] for c in read(GOLDEN, "attr/waterfall-")])
def test_waterfalls(name):
    """Parts of a ladder; a step that lost keeps its negative part against the one before it."""
    case = golden(name)
    levels = case["inputs"]["measured_kwh"]
    names = [f"s{i}" for i in range(len(levels))]
    spread = (1.0, 1.001, 0.999, 1.0005, 0.9995)
    runs = [
        r
        for n, kwh in zip(names, levels, strict=True)
        for r in rounds(n, [kwh * J_PER_KWH * s for s in spread])
    ]
    study = Study(name="t", baseline="s0", steps=tuple(Step(name=n) for n in names[1:]), unit="image")
    result = compared(study, runs)
    parts = [s.would_have.energy_j.value / J_PER_KWH for s in result.steps]
    assert parts == pytest.approx(case["outputs"]["saved"], rel=case["tolerance"])
    assert math.fsum(parts) == pytest.approx(case["outputs"]["total"], rel=case["tolerance"])
    assert result.steps[-1].savings.energy_j.value / J_PER_KWH == pytest.approx(case["outputs"]["total"])
    assert [s.verdict for s in result.steps] == ["better" if p > 0 else "worse" for p in parts]


def lattice_of(energy):
    runs = [run("+".join(c) or "baseline", e, on=tuple(c)) for c, e in energy.items()]
    return compared(study_from_runs(runs), runs)


@pytest.mark.parametrize("name", ["attr/shapley-2-full-lattice-3", "attr/shapley-3-enabler"])
def test_shapley(name):
    case = golden(name)
    want, result = case["outputs"], lattice_of(case["inputs"]["energy"])
    for step in result.steps:
        assert step.attribution.energy_j.value == pytest.approx(want[step.step], rel=case["tolerance"])
        assert step.verdict == "inconclusive"  # one run a cell
    assert result.total.energy_j.value == pytest.approx(want["total"], rel=case["tolerance"])
    if "interaction" in want:
        assert result.interaction_j.value == pytest.approx(want["interaction"], rel=case["tolerance"])


def test_a_partial_lattice_has_no_shapley_value():
    case = golden("attr/shapley-4-partial-lattice")
    result = lattice_of(case["inputs"]["observed"])
    want = case["outputs"]
    assert any(f.code == "CL413" and "5 of 8" in f.message for f in result.findings)
    assert result.total.energy_j.value == pytest.approx(want["total"], rel=case["tolerance"])
    assert result.attribution_method == "order_mean"
    assert f"{result.orders.measured}/{result.orders.possible}" == want["coverage"]
    assert result.orders.measured == len(want["complete_orders"])
    for step in result.steps:
        assert step.attribution.energy_j.value == pytest.approx(
            want["mean"][step.step], rel=case["tolerance"]
        )
        found = [step.order_range.low_j, step.order_range.high_j]
        assert found == pytest.approx(want["range"][step.step], rel=case["tolerance"])
    shape = as_json(result)
    assert {s["attribution"]["shapley_j"] for s in shape["steps"]} == {None}
    assert [s["attribution"]["order_mean_j"]["value"] for s in shape["steps"]] == [
        pytest.approx(want["mean"][s["step"]]) for s in shape["steps"]
    ]


def test_c41_change_against_zero():
    assert "baseline is 0" in essence("C41")["expected"]
    up, down = two([0.0], [12.4]), two([12.4], [0.0])
    assert (up.savings.energy_j.value, up.vs_previous.ratio.value) == (-12.4, None)
    assert (down.savings.energy_j.value, down.vs_previous.ratio.value) == (12.4, 0.0)
    assert {up.verdict, down.verdict} == {"inconclusive"}
    study = Study(name="t", baseline="a", steps=(Step(name="b"),), unit="image")
    shape = as_json(compared(study, [*rounds("a", [0.0]), *rounds("b", [12.4])]))
    (step,) = shape["steps"]
    assert step["vs_previous"]["ratio"]["value"] is None
    assert step["savings"]["energy_j"]["value"] == -12.4
    assert any(f["code"] == "CL403" for f in shape["findings"])


def test_c42_a_run_without_a_price():
    assert "1 of 3 runs has no price" in essence("C42")["expected"]
    costs = ["1.20", None, "0.80"]
    runs = [
        run(
            "a" if i < 2 else "b",
            1.0,
            repeat=None,
            run_id=str(i),
            cost=None if c is None else Money(Decimal(c), "EUR"),
        )
        for i, c in enumerate(costs)
    ]
    study = Study(name="t", baseline="a", steps=(Step(name="b"),), unit="image")
    result = compared(study, runs)
    assert any("1 of 3 runs has no price" in f.message for f in result.findings)
    assert result.baseline_amounts.cost.value + result.steps[0].amounts.cost.value == pytest.approx(2.00)
    assert as_json(result)["baseline_amounts"]["cost"]["value"] == pytest.approx(1.20)
    without = compared(study, [*rounds("a", [1.0]), *rounds("b", [1.0])])
    assert as_json(without)["baseline_amounts"]["cost"]["value"] is None


def test_c44_int8_that_is_slower():
    assert "+50.97 %" in essence("C44")["expected"]
    step = two([10.28 * 65], [15.52 * 65])
    assert step.vs_previous.ratio.value - 1 == pytest.approx(0.5097, abs=5e-5)
    assert step.savings.energy_j.value == pytest.approx(668.2 - 1008.8)
    assert (step.verdict, step.decision) == ("inconclusive", "undetermined")  # one run an arm
    repeated = two([668.2, 668.9, 667.5, 668.3, 668.1], [1008.8, 1009.4, 1008.1, 1008.6, 1009.1])
    assert (repeated.verdict, repeated.decision) == ("worse", "reject")


@pytest.mark.parametrize(
    ("original", "dynamic", "static", "ratios"),
    [(5.42, 45.76, 17.32, (8.44, 3.20)), (3.41, 27.66, 9.30, (8.11, 2.73))],
    ids=["CPU", "GPU"],
)
def test_c45_both_int8_variants_lose(original, dynamic, static, ratios):
    assert "best = original" in essence("C45")["expected"]
    spread = (1.0, 1.002, 0.998, 1.001, 0.999)
    study = Study(
        name="t",
        baseline="original",
        steps=(Step(name="dynamic"), Step(name="static", measured_on="original")),
        unit="image",
    )
    named = {"original": original, "dynamic": dynamic, "static": static}
    result = compared(study, [r for n, ms in named.items() for r in rounds(n, [ms * s for s in spread])])
    got = [s.vs_previous.ratio.value for s in result.steps]
    assert got == pytest.approx(ratios, abs=0.005)
    assert [s.verdict for s in result.steps] == ["worse", "worse"]
    assert result.path == ("original",)
    assert result.total.energy_j.value == 0.0


def test_c47_pruning_that_changes_nothing():
    assert "No measurable change" in essence("C47")["expected"]
    shape = (-1.4, -1.0, -0.7, -0.4, -0.1, 0.1, 0.4, 0.7, 1.0, 1.4)
    dense = [90.0 + 2.0 * z / 0.89 for z in shape]
    pruned = [90.4 + 2.1 * z / 0.89 for z in (shape[3:] + shape[:3])]
    step = two(dense, pruned)
    assert step.vs_previous.ratio.value == pytest.approx(1.004, abs=5e-4)
    assert step.vs_previous.ratio.low < 1 < step.vs_previous.ratio.high
    assert step.verdict in {"inconclusive", "same"}
    assert step.decision != "adopt"
    assert step.attribution is None


def test_c48_less_memory_and_more_energy():
    assert "energy +31 %" in essence("C48")["expected"]
    spread = (1.0, 1.002, 0.998, 1.001, 0.999)
    study = Study(name="t", baseline="fp16", steps=(Step(name="nf4"),), unit="image")
    runs = [
        *rounds("fp16", [100.0 * s for s in spread], model_bytes=5_000_000_000),
        *rounds("nf4", [131.0 * s for s in spread], model_bytes=2_100_000_000),
    ]
    result = compared(study, runs)
    step = result.steps[0]
    assert step.vs_previous.ratio.value == pytest.approx(1.31)
    # The cost follows energy and time, not the memory saved.
    assert (step.savings.energy_j.value < 0, step.savings.cost.value) == (True, None)
    dear = compared(study, runs, vector()).steps[0]
    assert dear.savings.cost.value < 0
    assert step.metrics.model_bytes / result.baseline_metrics.model_bytes == pytest.approx(0.42)
    assert (step.verdict, step.decision) == ("worse", "reject")


def test_c49_an_accuracy_nobody_knows():
    assert "neither pass nor" in essence("C49")["expected"]
    study = Study(
        name="t",
        baseline="a",
        steps=(Step(name="b"),),
        unit="image",
        gates=(Gate(name="accuracy", metric="accuracy", kind="max_loss", limit=0.02),),
    )
    known = Quality(name="accuracy", value=0.91, n=1000)
    unknown = Quality(name="accuracy", value=None, n=0)
    spread = (1.0, 1.002, 0.998, 1.001, 0.999)
    runs = [
        *rounds("a", list(spread), quality=(known,)),
        *rounds("b", [0.5 * s for s in spread], quality=(unknown,)),
    ]
    result = compared(study, runs)
    step = result.steps[0]
    (gate,) = as_json(result)["steps"][0]["gates"]
    assert (gate["observed"]["value"], gate["outcome"]) == (None, "undetermined")
    assert gate["reason"]
    assert step.verdict == "better"
    assert (step.gates[0].outcome, step.gates[0].observed.value) == ("undetermined", None)
    assert step.decision == "undetermined"


def test_every_case_of_these_areas_is_tested():
    """A case that is added beside the repository must not go untested."""
    here = Path(__file__).read_text("utf-8")
    prefixes = ("ab/", "gum/", "attr/shapley-")
    wanted = [c["id"] for p in prefixes for c in read(GOLDEN, p)]
    assert [name for name in wanted if name not in here] == []
    compare = [c["id"].lower() for c in read(CASES) if c["area"] == "compare"]
    assert [name for name in compare if f"test_{name}_" not in here] == []
    assert len(wanted) > 0 < len(compare)
