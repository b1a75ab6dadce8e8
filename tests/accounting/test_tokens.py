"""Energy of tokens: conservation, what the split by time assumes, and what is unknown."""

import math
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carbonlens.accounting.tokens import POWER_RATIO, split_by_time, token_figures
from carbonlens.domain.estimate import Estimate, add
from carbonlens.domain.run import Reading, Run
from carbonlens.domain.tokens import Tokens

seconds = st.floats(1e-3, 1e4)


def run_of(tokens, *, energy="100", duration_s=10.0, **reading):
    kept = Reading(
        component="cpu",
        energy_j=None if energy is None else Decimal(energy),
        boundary="it",
        grade="B",
        method="counter",
        **{"u_by_source_j": {"gain": 2.5}, **reading},
    )
    return Run(run_id="a", duration_s=duration_s, energy=(kept,), tokens=tokens)


TOLD = Tokens(requests=4, prompt=1000, cached=200, output=84, prefill_s=2.0, decode_s=8.0)


def test_each_figure_by_hand():
    figures = token_figures(run_of(TOLD))
    assert figures.per_output.value == pytest.approx(100 / 84)
    assert figures.per_thousand_output.value == pytest.approx(100_000 / 84)
    assert figures.per_request.value == 25
    assert (figures.prefill.value, figures.decode.value) == (pytest.approx(20), pytest.approx(80))
    assert figures.per_prompt.value == pytest.approx(20 / 800)
    assert figures.per_decoded.value == pytest.approx(80 / 80)
    assert figures.output_per_s == pytest.approx(8.4)
    assert figures.decoded_per_s == pytest.approx(10)
    assert [f.code for f in figures.findings] == ["CL330"]


def test_prompt_and_output_apart_account_for_every_joule():
    figures = token_figures(run_of(TOLD))
    total = figures.per_prompt.value * TOLD.computed + figures.per_decoded.value * TOLD.decoded
    assert total == pytest.approx(100)


@given(prefill_s=seconds, decode_s=seconds)
def test_the_split_sums_to_the_energy_and_its_interval(prefill_s, decode_s):
    energy = Estimate(value=100.0, unit="J", grade="B", u_by_source={"gain": 2.5})
    parts = split_by_time(energy, prefill_s, decode_s)
    total = add(parts, "J")
    assert total.value == pytest.approx(100)
    assert total.u_total == pytest.approx(energy.u_total)
    assert all(0 < p.low < p.value < p.high for p in parts)
    assert all(p.grade == "E" for p in parts)


def test_the_interval_holds_a_power_ratio_of_two_each_way():
    energy = Estimate(value=100.0, unit="J", bounds=(100.0, 100.0))
    exact = Estimate(value=100.0, unit="J")
    for ratio in (0.5, 1, 2):
        true = 100 * ratio * 1.0 / (ratio * 1.0 + 9.0)
        for whole in (energy, exact):
            prefill, decode = split_by_time(whole, 1.0, 9.0)
            assert prefill.low * 0.999 <= true <= prefill.high * 1.001
            assert decode.low * 0.999 <= 100 - true <= decode.high * 1.001
    assert prefill.u_by_source[POWER_RATIO] == pytest.approx(-decode.u_by_source[POWER_RATIO])


def test_prompts_alone_are_split_without_an_assumption():
    tokens = Tokens(requests=2, prompt=10, cached=0, output=2, prefill_s=10.0, decode_s=0.0)
    figures = token_figures(run_of(tokens))
    assert (figures.prefill.value, figures.prefill.grade, figures.decode.value) == (100, "B", 0)
    assert figures.per_decoded.state == "unknown"
    assert figures.findings == ()


@pytest.mark.parametrize(
    ("left_out", "unknown"),
    [
        ({"prefill_s": None}, {"prefill", "decode", "per_prompt", "per_decoded"}),
        ({"cached": None}, {"per_prompt"}),
        ({"prompt": None}, {"per_prompt"}),
        ({"output": None}, {"per_output", "per_thousand_output", "per_decoded"}),
        ({"requests": None}, {"per_request", "per_decoded"}),
        ({"output": 0}, {"per_output", "per_thousand_output", "per_decoded"}),
        ({"cached": 1000}, {"per_prompt"}),
    ],
)
def test_what_is_not_told_is_unknown_and_no_zero(left_out, unknown):
    told = {n: getattr(TOLD, n) for n in TOLD.__struct_fields__}
    figures = token_figures(run_of(Tokens(**{**told, **left_out})))
    estimates = {n: v for n in figures.__struct_fields__ if isinstance(v := getattr(figures, n), Estimate)}
    assert {n for n, v in estimates.items() if v.value is None} == unknown
    assert all(v.state == "unknown" for n, v in estimates.items() if n in unknown)


def test_without_energy_every_energy_is_unknown():
    figures = token_figures(run_of(TOLD, energy=None, u_by_source_j={}, state="unknown"))
    assert (figures.per_output.state, figures.prefill.state, figures.per_prompt.state) == ("unknown",) * 3
    assert figures.output_per_s == pytest.approx(8.4)


def test_a_lower_bound_stays_one():
    figures = token_figures(run_of(TOLD, state="unbounded"))
    for part in (figures.per_output, figures.per_prompt, figures.per_decoded):
        assert (part.state, part.high) == ("unbounded", None)


def test_an_energy_of_unknown_width_gives_figures_of_unknown_width():
    figures = token_figures(run_of(TOLD, u_by_source_j={}))
    assert (figures.per_prompt.low, figures.per_prompt.high) == (None, None)


@pytest.mark.parametrize(
    ("duration_s", "codes"), [(10.2, {"CL330"}), (20.0, {"CL330", "CL331"}), (5.0, {"CL330", "CL332"})]
)
def test_time_outside_of_calls_and_calls_that_overlap_are_said(duration_s, codes):
    figures = token_figures(run_of(TOLD, duration_s=duration_s))
    assert {f.code for f in figures.findings} == codes


def test_a_run_without_tokens_has_no_figures():
    assert token_figures(run_of(None)) is None


def test_the_width_of_the_ratio_is_that_of_a_datasheet_figure():
    prefill, _ = split_by_time(Estimate(value=1.0, unit="J"), 1.0, 1.0)
    assert (prefill.low, prefill.high) == (pytest.approx(1 / 3), pytest.approx(2 / 3))


def test_the_energys_own_error_widens_the_split_in_quadrature():
    exact, wide = (Estimate(value=100.0, unit="J", u_random=u) for u in (0.0, 10.0))
    ratio, both = (split_by_time(e, 1.0, 4.0)[0] for e in (exact, wide))
    wanted = math.hypot(math.log(ratio.high / 20), 1.959964 * 0.1)
    assert math.log(both.high / 20) == pytest.approx(wanted, rel=1e-6)


@pytest.mark.parametrize(("prompt", "cached"), [(100, 0), (100, None), (None, None), (100, 100)])
def test_prompts_that_took_no_time_cost_an_unknown_energy_unless_a_cache_held_them(prompt, cached):
    tokens = Tokens(requests=1, prompt=prompt, cached=cached, output=20, prefill_s=0.0, decode_s=1.0)
    figures = token_figures(run_of(tokens))
    is_none = prompt == cached == 100
    assert (figures.prefill.value, figures.per_prompt.value) == (0.0 if is_none else None, None)
