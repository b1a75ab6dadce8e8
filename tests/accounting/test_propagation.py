"""Estimates through formulas, with the ``uncertainties`` package as the oracle."""

from __future__ import annotations

from decimal import Decimal

import pytest
import uncertainties as oracle
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from carbonlens.accounting import formulas, power
from carbonlens.accounting.amortisation import embodied_share_kg
from carbonlens.accounting.embodied import server_share_kg
from carbonlens.accounting.hourly_matching import hourly_score
from carbonlens.accounting.market_based import blended_kg, blended_rate
from carbonlens.accounting.propagation import exactly, stated, through
from carbonlens.accounting.sci import g_per_units
from carbonlens.accounting.scopes import transmission_kg
from carbonlens.domain.estimate import Estimate, not_applicable, unknown

NAMES = ("gain", "model", "factor")
shares = st.one_of(st.just(0.0), st.floats(1e-6, 0.5))


@st.composite
def estimates(draw, low=1e-2, high=1e3):
    value = draw(st.floats(low, high))
    sources = draw(st.dictionaries(st.sampled_from(NAMES), shares, max_size=3))
    return Estimate(
        value=value,
        unit="1",
        grade=draw(st.sampled_from("ABCDE")),
        u_random=value * draw(shares),
        u_by_source={k: v * value for k, v in sources.items()},
    )


def as_oracle(items):
    """Return the same numbers with one shared variable a source; exact ones are the oracle's too."""
    common = {name: oracle.ufloat(0, 1) for name in NAMES}
    return [
        (oracle.ufloat(e.value, e.u_random) if e.u_random else e.value)
        + sum((common[k] * u for k, u in e.u_by_source.items()), start=oracle.ufloat(0, 1e-300))
        for e in items
    ]


def blend(kwh, last, first, second):
    return blended_kg(kwh, (1.5, 2.5), (first, second), last)


def blend_rate(kwh, last, first, second):
    return blended_rate(kwh, (1.5, 2.5), (first, second), last)


FORMULAS = [
    (formulas.facility_kwh, 2),
    (formulas.it_of_facility_kwh, 2),
    (power.power_at_utilisation_w, 3),
    (power.cost_of_pieces, 3),
    (power.loss_share, 2),
    (hourly_score, 3),
    (server_share_kg, 4),
    (embodied_share_kg, 5),
    (g_per_units, 3),
    (blend, 4),
    (blend_rate, 4),
    # Any arithmetic, with numbers on either side and an input that stands twice.
    (lambda a, b: 3 - a * (b + a) / (2 + b) - 1 / a, 2),
]


@pytest.mark.parametrize(("formula", "count"), FORMULAS)
@given(data=st.data())
def test_a_formula_has_the_oracles_uncertainty(formula, count, data):
    items = [data.draw(estimates()) for _ in range(count)]
    got = through(formula, *items, unit="x", signed=True)
    expected = formula(*as_oracle(items))
    assert got.value == pytest.approx(expected.nominal_value, rel=1e-12, abs=1e-12)
    size = sum(abs(e.u_total) for e in items) * 1e-9
    assert got.u_total == pytest.approx(expected.std_dev, rel=1e-6, abs=size)


@given(share=st.floats(0, 0.4), items=st.lists(estimates(), min_size=3, max_size=3))
def test_a_loss_has_the_oracles_uncertainty(share, items):
    kwh, generation, supply = items
    loss = Estimate(value=share, unit="1", u_random=share / 10, u_by_source={"factor": share / 20})
    given_ = [kwh, loss, generation, supply]
    expected = transmission_kg(*as_oracle(given_))
    got = through(transmission_kg, *given_, unit="kg")
    assert got.u_total == pytest.approx(expected.std_dev, rel=1e-6, abs=1e-9)


@given(st.lists(estimates(), min_size=2, max_size=5))
def test_a_chain_of_formulas_is_the_formula_of_the_chain_for_named_sources(items):
    items = [replace(e, u_random=0.0) for e in items]
    step = items[0]
    for item in items[1:]:
        step = through(formulas.facility_kwh, step, item, unit="x")

    def product(*factors):
        made = 1.0
        for factor in factors:
            made = made * factor
        return made

    whole = through(product, *items, unit="x")
    assert step.value == pytest.approx(whole.value)
    for name in NAMES:
        assert step.u_by_source.get(name, 0.0) == pytest.approx(whole.u_by_source.get(name, 0.0), rel=1e-9)


def test_exact_numbers_pass_as_they_are():
    assert through(formulas.emissions_kg, 2.0, 0.4, unit="kg") == Estimate(value=0.8, unit="kg")
    mixed = through(formulas.emissions_kg, Decimal("2.5"), exactly(0.4, "kg/kWh"), unit="kg")
    assert (mixed.value, mixed.u_total, mixed.bounds) == (1.0, 0.0, None)


@pytest.mark.parametrize("missing", [unknown("1"), not_applicable("1")])
def test_an_unknown_input_gives_unknown(missing):
    got = through(formulas.emissions_kg, missing, exactly(2.0), unit="kg")
    assert (got.value, got.state, got.unit) == (None, "unknown", "kg")


def test_dividing_by_nothing_gives_unknown():
    assert through(formulas.pue_of, exactly(1.0), exactly(0.0), unit="1").state == "unknown"
    assert through(formulas.pue_of, 1.0, 0.0, unit="1").state == "unknown"


def test_a_lower_bound_stays_one_where_the_result_grows_with_it():
    least = Estimate(value=2.0, unit="kWh", state="unbounded")
    assert through(formulas.emissions_kg, least, exactly(0.4), unit="kg").state == "unbounded"
    # A larger divisor makes the result smaller: nothing is bounded from below any more.
    assert through(formulas.pue_of, exactly(3.0), least, unit="1").state == "unknown"
    assert through(lambda a: 5 - a, least, unit="kWh").state == "unknown"


def test_an_input_without_a_width_leaves_the_result_without_one():
    wide = Estimate(value=2.0, unit="1", bounds=(None, None))
    got = through(formulas.emissions_kg, wide, exactly(3.0), unit="kg")
    assert (got.value, got.low, got.high) == (6.0, None, None)
    nothing = through(formulas.emissions_kg, wide, 0.0, unit="kg")
    assert (nothing.value, nothing.low, nothing.high) == (0.0, 0.0, 0.0)


def test_grades_are_the_worst_of_a_product_and_the_weighted_of_a_sum():
    good = Estimate(value=100.0, unit="1", grade="B", u_random=1.0)
    poor = Estimate(value=1.0, unit="1", grade="E", u_random=0.1)
    assert through(lambda a, b: a * b, good, poor, unit="1").grade == "E"
    assert through(lambda a, b: a + b, good, poor, unit="1").grade == "B"
    assert through(lambda a: a + 40 - 3, good, unit="1").grade == "B"
    assert through(lambda a: 40 - a, good, unit="1").grade == "B"


def test_a_stated_figure_without_a_width_has_none():
    assert stated(2.0, 0.1, "f", "1").u_by_source == {"f": pytest.approx(0.2)}
    assert stated(2.0, 0.0, "f", "1").low == 2.0
    assert stated(2.0, None, "f", "1").low is None
    assert stated(0.0, None, "f", "1").high == 0.0
