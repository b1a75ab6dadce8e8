"""Golden cases of decomposition, verification and waterfalls, through the public functions."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest

from carbonlens.compare.drivers import decompose, log_mean
from carbonlens.compare.drivers_savings import (
    ACCEPTED,
    adjusted_baseline,
    avoided,
    fractional_savings_uncertainty,
    independent_points,
)
from carbonlens.compare.statistics import t_quantile
from carbonlens.domain.drivers_savings import Scatter

GOLDEN = Path(__file__).parents[2] / ".." / "shared" / "golden" / "golden.json"
PREFIXES = ("attr/lmdi-", "mv/")


def cases():
    if not GOLDEN.exists():
        return []
    return [c for c in json.loads(GOLDEN.read_text("utf-8")) if c["id"].startswith(PREFIXES)]


def flat(inputs):
    """Return names of factors, and both periods as tables: one row where no regions are told apart."""
    first = next(iter(inputs["t0"].values()))
    rows = list(inputs["t0"]) if isinstance(first, dict) else [None]
    sides = [[inputs[t] if r is None else inputs[t][r] for r in rows] for t in ("t0", "t1")]
    names = list(sides[0][0])
    return names, [np.array([[row[n] for row in held] for n in names]) for held in sides]


def lmdi(inputs):
    names, (before, after) = flat(inputs)
    split = decompose(before, after)
    assert split.method == "lmdi"
    found = {n: split.effect(k).sum() for k, n in enumerate(names)}
    ends = [t.prod(axis=0).sum() for t in (before, after)]
    return found | {
        "total": sum(found.values()),
        "L": float(log_mean(np.array(ends[1]), np.array(ends[0]))),
    }


def uncertainty(inputs):
    scatter = Scatter(
        days=inputs["n"],
        reporting_days=inputs["m"],
        classes=inputs["p"],
        autocorrelation=inputs["rho"],
        cv=inputs["cv"],
    )
    found = fractional_savings_uncertainty(scatter, inputs["F_"], inputs["alpha"])
    return {
        "n_prime": independent_points(inputs["n"], inputs["rho"]),
        "t": t_quantile((1 + inputs["alpha"]) / 2, inputs["n"] - inputs["p"]),
        "fsu": found,
        "meets_50pct": found < ACCEPTED,
    }


def baseline(inputs):
    fixed, slope = inputs["intercept_kwh"], inputs["slope_kwh_per_request"]
    adjusted = adjusted_baseline(fixed, slope, inputs["reporting_requests"])
    saved = avoided(adjusted, inputs["reporting_kwh"])
    base = 1000
    naive = {
        "baseline_period_requests": base,
        "baseline_kwh": adjusted_baseline(fixed, slope, base),
        "naive_saving": adjusted_baseline(fixed, slope, base) - inputs["reporting_kwh"],
    }
    return {"adjusted_baseline": adjusted, "avoided_kwh": saved, "naive_before_after": naive}


ADAPTORS = {"attr/lmdi-": lmdi, "mv/fsu-": uncertainty, "mv/adjusted-baseline-": baseline}


@pytest.mark.skipif(not GOLDEN.exists(), reason="../shared/golden/golden.json is not here")
@pytest.mark.parametrize("case", cases(), ids=[c["id"] for c in cases()])
def test_golden(case):
    adaptors = [a for begin, a in ADAPTORS.items() if case["id"].startswith(begin)]
    assert len(adaptors) == 1, f"no adaptor for {case['id']}: write one"
    found = adaptors[0](case["inputs"])
    for name, wanted in case["outputs"].items():
        assert found[name] == (
            wanted if isinstance(wanted, bool) else pytest.approx(wanted, abs=case["tolerance"])
        )


@pytest.mark.skipif(not GOLDEN.exists(), reason="../shared/golden/golden.json is not here")
def test_every_adaptor_has_a_case():
    assert all(any(c["id"].startswith(begin) for c in cases()) for begin in ADAPTORS)


def test_four_factors_without_the_cases():
    """attr/lmdi-1 by its own formula: tokens double, energy halves, PUE 1.5 to 1.2, grid 0.4 to 0.3."""
    before, after = np.array([[1e6], [2e-4], [1.5], [0.4]]), np.array([[2e6], [1e-4], [1.2], [0.3]])
    split = decompose(before, after)
    mean = (72 - 120) / math.log(72 / 120)
    wanted = [mean * math.log(r) for r in (2, 0.5, 0.8, 0.75)]
    assert [float(split.effect(k)[0]) for k in range(4)] == pytest.approx(wanted)


def test_guideline_14_by_its_own_formula():
    scatter = Scatter(days=100, reporting_days=100, classes=1, autocorrelation=0.0, cv=0.05)
    found = fractional_savings_uncertainty(scatter, 0.1, 0.9)
    t = t_quantile(0.95, 99)
    assert found == pytest.approx(1.26 * t / 0.1 * 0.05 * math.sqrt((1 + 2 / 100) / 100))


def test_a_naive_comparison_says_worse_where_the_adjusted_one_says_saved():
    adjusted = adjusted_baseline(5.0, 0.02, 1500)
    assert avoided(adjusted, 26.0) == pytest.approx(9.0)
    assert avoided(adjusted, 26.0, -2.0) == pytest.approx(7.0)
    assert adjusted_baseline(5.0, 0.02, 1000) - 26.0 == pytest.approx(-1.0)
