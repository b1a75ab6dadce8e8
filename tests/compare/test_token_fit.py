"""The fit of prompt and output energy: against numpy, against known truth, and its refusals."""

from decimal import Decimal

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from carbonlens.compare.student import quantile
from carbonlens.compare.token_fit import TokenPoint, fit_token_points, fit_tokens
from carbonlens.domain.estimate import Estimate
from carbonlens.domain.latency import Latency
from carbonlens.domain.run import Reading, Run
from carbonlens.domain.tokens import Tokens
from carbonlens.errors import IncomparableError, MeasurementError

SHAPES = [(512, 0), (1024, 0), (64, 200), (64, 400), (512, 100)]


def points(energies, shapes=SHAPES, **estimate):
    return [
        TokenPoint(energy=Estimate(value=e, unit="J", grade="B", **estimate), computed=p, decoded=o)
        for e, (p, o) in zip(energies, shapes, strict=True)
    ]


def truth(a, b, shapes=SHAPES):
    return [a * p + b * o for p, o in shapes]


@given(a=st.floats(1e-4, 10), b=st.floats(1e-3, 100))
def test_exact_energies_give_back_what_made_them(a, b):
    fit = fit_token_points(points(truth(a, b)))
    assert (fit.per_prompt.value, fit.per_decoded.value) == (
        pytest.approx(a, rel=1e-6),
        pytest.approx(b, rel=1e-6),
    )
    assert fit.scatter == pytest.approx(0, abs=1e-9)


def test_coefficients_and_intervals_are_those_of_numpy():
    np = pytest.importorskip("numpy", reason="numpy is of an extra that is not installed")
    energies = [e * f for e, f in zip(truth(0.02, 0.3), (1.03, 0.98, 1.01, 0.97, 1.02), strict=True)]
    fit = fit_token_points(points(energies))
    design = np.array(SHAPES) / np.array(energies)[:, None]
    wanted, rss, _, _ = np.linalg.lstsq(design, np.ones(5), rcond=None)
    sigmas = np.sqrt(np.diag(np.linalg.inv(design.T @ design)) * rss[0] / 3)
    t = quantile(0.975, 3)
    for found, value, sigma in zip((fit.per_prompt, fit.per_decoded), wanted, sigmas, strict=True):
        assert found.value == pytest.approx(value, rel=1e-9)
        assert (found.low, found.high) == (
            pytest.approx(value - t * sigma, rel=1e-9),
            pytest.approx(value + t * sigma, rel=1e-9),
        )
    scaled = design / np.linalg.norm(design, axis=0)
    assert fit.condition == pytest.approx(np.linalg.cond(scaled), rel=1e-6)


def test_intervals_hold_the_truth_as_often_as_they_say():
    np = pytest.importorskip("numpy", reason="numpy is of an extra that is not installed")
    chance = np.random.default_rng(5)
    shapes = SHAPES * 2
    held = [0, 0]
    for _ in range(400):
        energies = [e * (1 + 0.03 * chance.standard_normal()) for e in truth(0.02, 0.3, shapes)]
        fit = fit_token_points(points(energies, shapes))
        held[0] += fit.per_prompt.low <= 0.02 <= fit.per_prompt.high
        held[1] += fit.per_decoded.low <= 0.3 <= fit.per_decoded.high
    assert all(360 <= h <= 396 for h in held), held  # 95 % of 400 is 380, sigma 4.4


def test_a_common_gain_moves_both_by_its_part():
    energies = truth(0.02, 0.3)
    gained = [
        TokenPoint(energy=Estimate(value=e, unit="J", u_by_source={"gain": 0.025 * e}), computed=p, decoded=o)
        for e, (p, o) in zip(energies, SHAPES, strict=True)
    ]
    fit = fit_token_points(gained)
    assert fit.per_prompt.u_by_source["gain"] == pytest.approx(0.025 * 0.02)
    assert fit.per_decoded.u_by_source["gain"] == pytest.approx(0.025 * 0.3)


@pytest.mark.parametrize(
    "shapes",
    [
        [(100, 50), (200, 100), (400, 200)],
        [(100, 50), (200, 101), (400, 200)],
        [(100, 0), (200, 0), (400, 0)],
        [(0, 10), (0, 20), (0, 30)],
    ],
)
def test_one_proportion_is_refused(shapes):
    with pytest.raises(MeasurementError, match="max_new_tokens=1"):
        fit_token_points(points(truth(0.02, 0.3, shapes), shapes))


def test_two_measurements_are_refused():
    with pytest.raises(MeasurementError, match="2 measurements"):
        fit_token_points(points(truth(0.02, 0.3)[:2], SHAPES[:2]))


@pytest.mark.parametrize("energy", [None, 0.0, -1.0])
def test_no_energy_is_refused(energy):
    with pytest.raises(IncomparableError, match="unknown or none"):
        fit_token_points(points([energy, *truth(0.02, 0.3)[1:]]))


def test_what_is_not_told_apart_from_none_is_said():
    fit = fit_token_points(points([100, 50, 60, 240, 20]))
    assert "CL460" in {f.code for f in fit.findings}
    assert fit.per_prompt.low < 0


def test_lower_bounds_give_no_known_figure():
    fit = fit_token_points(points(truth(0.02, 0.3), state="unbounded"))
    assert fit.per_prompt.state == "unbounded"


def run_of(energy, prompt, output, *, cached=0, requests=1, calls=1, boundary="it", hardware="m"):
    reading = Reading(
        component="cpu", energy_j=Decimal(str(energy)), boundary=boundary, grade="B", method="counter"
    )
    tokens = Tokens(
        requests=requests, prompt=prompt, cached=cached, output=output, first_token=Latency(n=calls)
    )
    return Run(run_id="abc", energy=(reading,), tokens=tokens, hardware=hardware)


def runs(**first):
    made = [run_of(round(a * 0.02 + b * 0.3, 6), a, b + 1) for a, b in SHAPES[1:]]
    return [run_of(10.24, 600, 1, **{"cached": 88, **first}), *made]


def test_runs_are_fitted_without_cached_and_first_tokens():
    fit = fit_tokens(runs())
    assert (fit.per_prompt.value, fit.per_decoded.value) == (pytest.approx(0.02), pytest.approx(0.3))
    assert fit.findings == ()


@pytest.mark.parametrize(
    ("first", "said"),
    [({"cached": None}, "abc"), ({"boundary": "device"}, "boundary"), ({"hardware": "n"}, "hardware")],
)
def test_runs_that_do_not_fit_together_are_refused(first, said):
    with pytest.raises(IncomparableError, match=said):
        fit_tokens(runs(**first))


def test_runs_of_differing_batches_are_said():
    mixed = runs()
    mixed[1] = run_of(20.48 * 8, 8 * 1024, 8, requests=8)
    assert "CL461" in {f.code for f in fit_tokens(mixed).findings}


def changed(run, **how):
    return msgspec.structs.replace(run, **how)


@pytest.mark.parametrize(
    ("spoilt", "said"),
    [
        (
            lambda run: [changed(run, run_id="x", status=s) for s in ("failed", "running", "recovered")],
            "3 not",
        ),
        (lambda run: [run], "1 given twice"),
        (lambda run: [changed(run, run_id="in"), changed(run, run_id="out", energy=())], None),
    ],
)
def test_runs_that_would_spoil_the_fit_are_left_out_and_said(spoilt, said):
    good = runs()
    more = spoilt(good[1])
    if said is None:  # the one around holds the joules of the one inside
        more[0], said = changed(more[0], parent_run_id="out"), "1 around another"
        good = [good[0], more[0], *good[2:]]
        more = more[1:]
    fit = fit_tokens([*good, *more])
    assert fit.points == len(good)
    assert fit.per_decoded.value == pytest.approx(0.3)
    [finding] = [f for f in fit.findings if f.code == "CL462"]
    assert said in finding.message


def test_runs_of_several_steps_are_refused():
    mixed = runs()
    mixed[1] = changed(mixed[1], step="another model")
    with pytest.raises(IncomparableError, match="step: None, another model"):
        fit_tokens(mixed)
