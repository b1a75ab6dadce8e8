"""The verdict rule and the ratio's interval."""

from __future__ import annotations

import math

import numpy as np
import pytest
from msgspec.structs import replace

from carbonlens.compare.bootstrap import bca, exact
from carbonlens.compare.contrast import log_change
from carbonlens.compare.effects import Change, Rule, effects
from carbonlens.compare.grouping import StepRuns, build_arm
from carbonlens.compare.statistics import t_quantile
from carbonlens.compare.study import compare_study
from carbonlens.domain.factor import Vector
from carbonlens.domain.study import Step, Study
from tests.compare.study_runs import rounds, run

NOISE = (0.01, -0.01, 0.005, -0.005, 0.0)


def arm(name, energies, **fields):
    runs = tuple(rounds(name, energies, **fields))
    group = StepRuns(step=name, on=None, variants=runs, failed=(), effort=(), all=runs)
    return build_arm(group, Vector(), per_run=False)[0]


def effect(step, reference, margin=0.01, **more):
    family = {"s": (step, reference), **more}
    changes = {
        name: Change(reference="r", log=log_change([(1.0, a), (-1.0, b)])) for name, (a, b) in family.items()
    }
    return effects(changes, margin)["s"]


BASE = (100.0, 101.0, 99.0, 102.0, 98.0)


def shifted(ratio, noise=NOISE, base=BASE):
    return [b * ratio * (1 + e) for b, e in zip(base, noise, strict=True)]


@pytest.mark.parametrize(
    ("ratio", "noise", "verdict"),
    [
        (0.5, NOISE, "better"),
        (1.5, NOISE, "worse"),
        (1.001, tuple(e / 10 for e in NOISE), "same"),
        (0.995, NOISE, "inconclusive"),
    ],
)
def test_verdicts(ratio, noise, verdict):
    assert effect(arm("s", shifted(ratio, noise)), arm("r", BASE)).verdict == verdict


def test_the_ratio_is_the_geometric_mean_over_rounds_with_a_t_interval():
    energies = shifted(0.5)
    logs = [math.log(e / b) for e, b in zip(energies, BASE, strict=True)]
    mean = sum(logs) / 5
    se = math.sqrt(sum((x - mean) ** 2 for x in logs) / 4 / 5)
    got = effect(arm("s", energies), arm("r", BASE))
    assert got.ratio.value == pytest.approx(math.exp(mean))
    assert got.ratio.low == pytest.approx(math.exp(mean - t_quantile(0.975, 4) * se))
    assert got.ratio.high == pytest.approx(math.exp(mean + t_quantile(0.975, 4) * se))
    assert got.n_rounds == 5


def test_intervals_are_simultaneous_over_the_steps():
    one = (arm("s", shifted(0.5)), arm("r", BASE))
    alone = effect(*one)
    beside_two = effect(*one, second=one, third=one)
    assert beside_two.ratio.low < alone.ratio.low
    assert beside_two.ratio.high > alone.ratio.high
    assert beside_two.p_value == alone.p_value
    assert beside_two.p_holm == pytest.approx(3 * alone.p_value)


def test_four_rounds_give_no_verdict_however_clear():
    got = effect(arm("s", shifted(0.5)[:4]), arm("r", BASE[:4]))
    assert got.verdict == "inconclusive"
    assert got.n_rounds == 4
    assert got.ratio.high < 0.6


def test_one_run_an_arm_gives_the_signed_change_without_an_interval():
    """cases.json C44: 668.2 J to 1008.8 J is +50.97 %."""
    got = effect(arm("s", [1008.8]), arm("r", [668.2]))
    assert got.ratio.value == pytest.approx(1.5097, abs=1e-4)
    assert (got.ratio.low, got.ratio.high, got.p_value, got.p_holm) == (None, None, None, None)
    assert got.verdict == "inconclusive"


def test_a_common_model_error_cancels_in_the_ratio():
    exact = effect(arm("s", shifted(0.5)), arm("r", BASE))
    modelled = effect(arm("s", shifted(0.5), u_relative=0.3), arm("r", BASE, u_relative=0.3))
    assert modelled.ratio.low == pytest.approx(exact.ratio.low)
    assert modelled.ratio.high == pytest.approx(exact.ratio.high)


def test_errors_that_are_not_common_widen_the_ratio_and_its_verdict():
    step, reference = shifted(0.9), BASE
    clear = effect(arm("s", step), arm("r", reference))
    unsure = effect(
        arm("s", step, u_relative=0.1, source="meter:a"),
        arm("r", reference, u_relative=0.1, source="meter:b"),
    )
    assert clear.verdict == "better"
    assert unsure.verdict == "inconclusive"
    assert unsure.ratio.low < clear.ratio.low


def test_a_stated_interval_of_one_instrument_cancels_and_widens_the_arm():
    def stated(name, energies):
        runs = tuple(run(name, e, repeat=i, energy=(reading(e),)) for i, e in enumerate(energies, start=1))
        group = StepRuns(step=name, on=None, variants=runs, failed=(), effort=(), all=runs)
        return build_arm(group, Vector(), per_run=False)[0]

    def reading(e):
        from decimal import Decimal

        from carbonlens.domain.run import Reading

        return Reading(
            component="total",
            energy_j=Decimal(repr(e)),
            boundary="it",
            grade="B",
            method="table",
            low_j=e / 1.2,
            high_j=e * 1.2,
        )

    got = effect(stated("s", shifted(0.5)), stated("r", BASE))
    assert got.ratio.high == pytest.approx(effect(arm("s", shifted(0.5)), arm("r", BASE)).ratio.high)
    mean = stated("r", BASE).series["energy_j"].mean
    assert mean.high / mean.value > 1.19


def test_without_rounds_arms_are_independent():
    paired = effect(arm("s", shifted(0.9)), arm("r", BASE))
    plain = tuple(run("s", e, repeat=None, run_id=f"s{i}") for i, e in enumerate(shifted(0.9)))
    group = StepRuns(step="s", on=None, variants=plain, failed=(), effort=(), all=plain)
    loose = effect(build_arm(group, Vector(), per_run=False)[0], arm("r", BASE))
    assert loose.ratio.value == pytest.approx(paired.ratio.value)
    assert loose.ratio.low < paired.ratio.low < paired.ratio.high < loose.ratio.high
    assert loose.n_rounds == 5


def test_zero_energy_has_no_ratio():
    got = effect(arm("s", [1.0] * 5), arm("r", [0.0] * 5))
    assert got.ratio.value is None
    assert got.ratio.state == "unknown"
    assert got.verdict == "inconclusive"


def test_a_ratio_beyond_any_float_is_not_infinite():
    got = effect(arm("s", [1e200] * 5), arm("r", [1e-200] * 5))
    assert math.isfinite(got.ratio.value)
    assert got.ratio.high is None


def test_the_minimum_detectable_saving_shrinks_with_the_noise():
    noisy = effect(arm("s", shifted(0.9, [5 * e for e in NOISE])), arm("r", BASE)).minimum_detectable
    quiet = effect(arm("s", shifted(0.9)), arm("r", BASE)).minimum_detectable
    assert 0 < quiet < noisy < 1


def test_the_verdict_the_p_value_and_the_detectable_effect_rest_on_one_error():
    """Where errors do not cancel, the detectable effect holds them too."""
    got = effect(
        arm("s", shifted(0.9), u_relative=0.1, source="meter:a"),
        arm("r", BASE, u_relative=0.1, source="meter:b"),
    )
    assert got.ratio.low < 1 < got.ratio.high
    assert (got.verdict, got.p_value > 0.05) == ("inconclusive", True)
    assert got.minimum_detectable > 1 - got.ratio.value


def long_series(n=24, ratio=0.97):
    """Return skewed rounds: most near the ratio, a few well above it."""
    rng = np.random.default_rng(4)
    base = (100 * np.exp(rng.normal(0, 0.02, n))).tolist()
    noise = (rng.exponential(0.01, n) - 0.01).tolist()
    return [b * ratio * math.exp(e) for b, e in zip(base, noise, strict=True)], base


def change_of(step, reference):
    return {"s": Change(reference="r", log=log_change([(1.0, step), (-1.0, reference)]))}


def test_the_bootstrap_serves_from_twenty_rounds_on_and_is_seeded():
    step, base = long_series()
    changes = change_of(arm("s", step), arm("r", base))
    plain = effects(changes, 0.01)["s"]
    got = effects(changes, 0.01, interval="bca")["s"]
    assert (plain.method, got.method) == ("t", "bca")
    found = bca([v for _, v in changes["s"].log.rounds])
    assert (got.ratio.low, got.ratio.high) == pytest.approx((math.exp(found.low), math.exp(found.high)))
    assert got.ratio.low != plain.ratio.low
    assert got == effects(changes, 0.01, interval="bca")["s"]
    assert got.verdict == "better"
    assert (got.p_value, got.ratio.value) == (plain.p_value, plain.ratio.value)
    few = change_of(arm("s", step[:19]), arm("r", base[:19]))
    assert effects(few, 0.01, interval="bca") == effects(few, 0.01)


@pytest.mark.parametrize("n", [2, 5, 8, 10])
def test_resampling_in_full_is_printed_and_decides_no_verdict(n):
    """It claims 95 % and covers 84 to 87 % at such counts: what is decided is Student's."""
    step, base = long_series(n)
    changes = change_of(arm("s", step), arm("r", base))
    got, plain = (effects(changes, 0.01, interval=how)["s"] for how in ("exact", "t"))
    ends = exact([v for _, v in changes["s"].log.rounds])
    assert got.method == "exact"
    assert (got.ratio.low, got.ratio.high) == pytest.approx((math.exp(ends.low), math.exp(ends.high)))
    assert got.ratio.low > plain.ratio.low
    assert replace(got, method="t", ratio=plain.ratio) == plain


def test_a_verdict_that_the_exact_interval_would_change_stays_students_and_is_said():
    """Every resample lies below no change, Student's interval does not: nothing is claimed."""
    base = [100.0, 103.0, 98.0, 101.0, 99.0]
    step = [b * math.exp(x) for b, x in zip(base, (-0.001, -0.06, -0.001, -0.03, -0.001), strict=True)]
    study = Study(name="t", baseline="r", steps=(Step(name="s"),), unit="image", interval="exact")
    result = compare_study(study, [*rounds("r", base), *rounds("s", step)], Vector(), {})
    effect = result.steps[0].vs_previous
    assert (effect.method, effect.ratio.high < 1, effect.verdict) == ("exact", True, "inconclusive")
    assert [f.severity for f in result.findings if f.code == "CL439"] == ["warning"]


def test_eleven_rounds_are_more_than_are_enumerated():
    step, base = long_series(11)
    changes = change_of(arm("s", step), arm("r", base))
    assert effects(changes, 0.01, interval="exact") == effects(changes, 0.01)


def test_the_detectable_change_is_no_change_that_the_verdict_calls_the_same():
    """A very quiet design: what it finds lies beyond the margin, not just beyond its scatter."""
    changes = change_of(arm("s", shifted(0.995, [e / 100 for e in NOISE])), arm("r", BASE))
    got = {margin: effects(changes, margin)["s"] for margin in (0.01, 0.001)}
    assert (got[0.01].verdict, got[0.001].verdict) == ("same", "better")
    assert got[0.001].minimum_detectable < 0.005 < got[0.01].minimum_detectable < 0.011


def test_a_common_error_widens_the_bootstrap_too():
    step, base = long_series()
    sure = change_of(arm("s", step), arm("r", base))
    unsure = change_of(
        arm("s", step, u_relative=0.05, source="meter:a"), arm("r", base, u_relative=0.05, source="meter:b")
    )
    narrow, wide = (effects(c, 0.01, interval="bca")["s"] for c in (sure, unsure))
    assert wide.ratio.low < narrow.ratio.low * 0.95
    assert (narrow.verdict, wide.verdict) == ("better", "inconclusive")


def test_a_sequential_study_is_judged_at_a_nominal_four_percent():
    changes = change_of(arm("s", shifted(0.9)), arm("r", BASE))
    one, other = effects(changes, 0.01)["s"], effects(changes, 0.01, is_sequential=True)["s"]
    half = math.log(one.ratio.high / one.ratio.value)
    wider = math.log(other.ratio.high / other.ratio.value)
    assert wider / half == pytest.approx(t_quantile(0.98, 4) / t_quantile(0.975, 4))
    assert Rule(tests=2, is_sequential=True).confidence == pytest.approx(0.98)
    assert Rule(is_sequential=True).equivalence == pytest.approx(0.92)


def test_an_arm_that_uses_exactly_nothing_has_the_ratio_zero():
    got = effect(arm("s", [0.0] * 5), arm("r", BASE))
    assert (got.ratio.value, got.ratio.low, got.ratio.high, got.verdict) == (0.0, None, None, "inconclusive")
    assert effect(arm("s", [0.0, *BASE[1:]]), arm("r", BASE)).ratio.value is None
