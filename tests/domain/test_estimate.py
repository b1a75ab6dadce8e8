"""Laws of estimates, with the ``uncertainties`` package as the oracle."""

import math

import pytest
import uncertainties as oracle
from hypothesis import assume, given
from hypothesis import strategies as st

from carbonlens.domain.estimate import Estimate, add, combined_grade, normal_interval, not_applicable, unknown

values = st.floats(1e-6, 1e9)
shares = st.floats(0, 0.5)


@st.composite
def estimates(draw, unit="J"):
    value = draw(values)
    sources = draw(st.dictionaries(st.sampled_from(["gain", "model", "factor"]), shares, max_size=3))
    return Estimate(
        value=value,
        unit=unit,
        grade=draw(st.sampled_from("ABCDE")),
        u_random=value * draw(shares),
        u_by_source={k: v * value for k, v in sources.items()},
    )


def as_oracle(items):
    """Return the same estimates with one shared variable a source."""
    common = {name: oracle.ufloat(0, 1) for name in ("gain", "model", "factor")}
    return [
        oracle.ufloat(e.value, e.u_random) + sum((common[k] * u for k, u in e.u_by_source.items()), start=0)
        for e in items
    ]


@given(st.lists(estimates(), min_size=1, max_size=6))
def test_a_sum_has_the_oracles_uncertainty(items):
    total = add(items, "J")
    expected = sum(as_oracle(items))
    assert total.value == pytest.approx(expected.nominal_value)
    assert total.u_total == pytest.approx(expected.std_dev, rel=1e-6, abs=1e-12 * total.value)


@given(estimates(), estimates())
def test_a_difference_cancels_what_is_common(a, b):
    x, y = as_oracle([a, b])
    difference = a.minus(b)
    assert difference.value == pytest.approx((x - y).nominal_value)
    assert difference.u_total == pytest.approx((x - y).std_dev, rel=1e-6, abs=1e-9 * (a.value + b.value))
    assert difference.signed


@given(estimates(), estimates("kg/J"))
def test_a_product_has_the_oracles_uncertainty(a, b):
    x, y = as_oracle([a, b])
    product = a.times(b, "kg")
    assert product.value == pytest.approx((x * y).nominal_value)
    assert product.u_total == pytest.approx((x * y).std_dev, rel=1e-6, abs=1e-12 * product.value)


@given(estimates(), estimates(), estimates())
def test_differences_telescope(a, b, c):
    through = add([a.minus(b), b.minus(c)], "J")
    direct = a.minus(c)
    assert through.value == pytest.approx(direct.value, abs=1e-9 * (a.value + b.value + c.value))
    for source in set(through.u_by_source) | set(direct.u_by_source):
        left, right = through.u_by_source.get(source, 0), direct.u_by_source.get(source, 0)
        assert left == pytest.approx(right, abs=1e-9 * (a.value + b.value + c.value))


@given(estimates())
def test_a_positive_quantity_stays_positive(a):
    assert 0 < a.low <= a.value <= a.high


@given(estimates(), st.floats(1e-3, 1e3))
def test_scaling_scales_the_interval(a, k):
    scaled = a.scale(k, "x")
    assert scaled.low == pytest.approx(a.low * k)
    assert scaled.high == pytest.approx(a.high * k)


def test_a_model_error_does_not_average_away():
    one = Estimate(value=1.0, unit="J", u_by_source={"model": 0.3})
    total = add([one] * 100_000, "J")
    assert total.u_total / total.value == pytest.approx(0.3)


def test_an_unknown_part_makes_the_sum_a_lower_bound():
    total = add([Estimate(value=2.0, unit="J"), unknown("J")], "J")
    assert (total.value, total.state, total.high) == (2.0, "unbounded", None)


def test_nothing_known_is_unknown_and_not_applicable_is_left_out():
    assert add([unknown("J"), unknown("J")], "J").value is None
    assert add([], "J").value is None
    assert add([Estimate(value=2.0, unit="J"), not_applicable("J")], "J").state == "known"


def test_a_difference_of_lower_bounds_is_no_known_saving():
    bound = add([Estimate(value=2.0, unit="J"), unknown("J")], "J")
    assert bound.minus(Estimate(value=1.0, unit="J")).state == "unknown"


def test_units_do_not_mix():
    with pytest.raises(ValueError, match="kWh"):
        add([Estimate(value=1.0, unit="kWh")], "J")


@pytest.mark.parametrize(
    ("parts", "grade"),
    [
        ([("B", 95.0), ("E", 5.0)], "B"),
        ([("B", 89.0), ("D", 11.0)], "D"),
        ([("B", 90.0), ("E", 10.0)], "E"),
        ([(None, 50.0), ("A", 50.0)], "E"),
        ([], None),
    ],
)
def test_a_total_has_its_worst_grade_of_ten_percent(parts, grade):
    assert combined_grade(parts) == grade


@given(values, st.floats(0, 1e9))
def test_no_interval_is_infinite_or_nan(value, u):
    assume(u / value < 1e6)
    low, high = normal_interval(value, u, signed=False)
    assert math.isfinite(low)
    assert low >= 0
    assert not math.isnan(high)


NO_WIDTH = Estimate(value=10.0, unit="J", bounds=(None, None))
STATED = Estimate(value=10.0, unit="J", bounds=(8.0, 12.5))
SURE = Estimate(value=3.0, unit="J", u_random=0.1)


@pytest.mark.parametrize("part", [NO_WIDTH, STATED])
@pytest.mark.parametrize(
    "made",
    [
        lambda p: add([p, SURE], "J"),
        lambda p: add([SURE, p], "J"),
        lambda p: p.minus(SURE),
        SURE.minus,
        lambda p: p.times(SURE, "J2"),
        lambda p: SURE.times(p, "J2"),
        lambda p: add([p, SURE], "J").scale(2.0, "J"),
    ],
)
def test_an_unknown_width_never_becomes_a_width(part, made):
    result = made(part)
    assert result.value is not None
    assert (result.low, result.high) == (None, None)


def test_an_exact_value_is_no_unknown_width():
    exact = Estimate(value=5.0, unit="J", bounds=(5.0, 5.0))
    assert add([exact, SURE], "J").high == pytest.approx(normal_interval(8.0, 0.1, signed=False)[1])
    assert not Estimate(value=5.0, unit="J").has_unknown_width
    assert not unknown("J").has_unknown_width


def test_a_sum_without_any_grade_has_none():
    plain = Estimate(value=1.0, unit="J")
    assert add([plain, plain], "J").grade is None
    assert combined_grade([(None, 1.0), (None, 0.0)]) is None
