"""What a factor table may not hold, each with its code, file, line and mend."""

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carbonlens.factors.checks import BOUNDS, FAR, check_table, far_from
from tests.factors.rows import row, table

NOW = "2026-11-28T15"


def codes(*rows):
    return [f.code for f in check_table(table(*rows), today=NOW).findings]


@pytest.mark.parametrize(
    ("code", "changes"),
    [
        ("CL340", {"period": ""}),
        ("CL340", {"period": "24"}),
        ("CL340", {"period": "2024-13"}),
        ("CL340", {"period": "2024-01-01"}),
        ("CL340", {"period": "2024-01-01T24"}),
        ("CL341", {"value": 0}),
        ("CL341", {"value": 0, "kind": "embodied"}),
        ("CL341", {"value": 0, "kind": "pue"}),
        ("CL342", {"value": 1}),
        ("CL342", {"value": "1.000"}),
        ("CL343", {"value": 56}),
        ("CL343", {"value": -0.1}),
        ("CL343", {"value": "NaN"}),
        ("CL343", {"value": "Infinity"}),
        ("CL343", {"value": 0.9, "kind": "pue"}),
        ("CL343", {"value": 180, "kind": "wue"}),
        ("CL346", {"period": "2027"}),
        ("CL346", {"period": "2026-12"}),
        ("CL346", {"period": "2026-11-28T16"}),
        ("CL349", {"low": Decimal("0.06")}),
        ("CL349", {"high": Decimal("0.04")}),
        ("CL349", {"low": Decimal("NaN")}),
        ("CL349", {"u_relative": -0.1}),
        ("CL349", {"u_relative": float("nan")}),
    ],
)
def test_a_row_is_refused(code, changes):
    checked = check_table(table(row(source="other"), row(**changes)), today=NOW)
    assert [f.code for f in checked.findings] == [code]
    finding = checked.findings[0]
    assert (finding.severity, finding.file, finding.line) == ("error", "mine.csv", 3)
    assert finding.mend
    assert checked.kept.rows == (row(source="other"),)
    assert checked.kept.places == ("line 2",)


@pytest.mark.parametrize(
    "changes",
    [
        {"period": "2026"},
        {"period": "2026-11"},
        {"period": "2026-11-28T15"},
        {"value": "0.00273"},
        {"value": "1.3063"},
        {"value": "1.001"},
        {"value": 0, "kind": "wue"},
        {"value": 0, "method": "market"},
        {"value": 1, "kind": "pue"},
        {"value": 164, "kind": "embodied"},
        {"low": Decimal("0.04"), "high": Decimal("0.06"), "u_relative": 0.1},
    ],
)
def test_an_unusual_row_stands(changes):
    assert codes(row(**changes)) == []


def test_grams_are_told_from_nonsense():
    findings = check_table(table(row(value=56), row(value=560_000, period="2023")), today=NOW).findings
    assert "divide it by 1000" in findings[0].mend
    assert "divide" not in findings[1].mend


@pytest.mark.parametrize("kind", BOUNDS)
def test_bounds_hold_at_their_ends(kind):
    bound = BOUNDS[kind]
    assert codes(*(row(kind=kind, value=v) for v in {bound.low, bound.high} if v != 0)) in ([], ["CL344"] * 2)
    assert codes(row(kind=kind, value=bound.high * Decimal("1.01"))) == ["CL343"]
    if bound.low > 0:
        assert codes(row(kind=kind, value=bound.low * Decimal("0.99"))) == ["CL343"]


def test_of_two_rows_that_say_the_same_thing_neither_stands():
    twice = row(), row(value="0.06", factor_id="mine/again")
    assert codes(*twice) == ["CL344", "CL344"]
    apart = row(span="direct"), row(span="life_cycle"), row(source="another"), row(period="2024-01")
    assert codes(*apart) == []


def test_an_id_stands_for_one_row():
    assert codes(row(factor_id="a"), row(factor_id="a", subject="DE")) == ["CL345", "CL345"]


def far(value, *bundled, **changes):
    return far_from([row(value=value, **changes)], bundled)


def test_france_at_425_grams_is_far_from_the_bundled_value():
    """Case C27: the override is used, and its distance said."""
    bundled = row(value="0.033", span="life_cycle"), row(value="0.06", period="2021", span="life_cycle")
    finding = far("0.424584", *bundled)
    assert (finding.code, finding.severity) == ("CL347", "warning")
    for words in ("FR 2024", "0.424584", "12.9 times", "0.033", "My source 2024"):
        assert words in finding.message


@given(st.decimals("0.01", "1.4", places=4), st.decimals("0.01", "1.4", places=4))
def test_far_is_three_times_above_or_below(own, theirs):
    ratio = float(own / theirs)
    found = far(own, row(value=theirs)) is not None
    assert found == (ratio >= FAR or ratio <= 1 / FAR)


def test_the_nearest_value_of_the_nearest_year_counts():
    direct, whole = row(value="0.02", span="direct"), row(value="0.09", span="life_cycle")
    assert far("0.2", direct, whole) is None
    assert far("0.2", direct, row(value="0.1", period="2020")) is not None


def test_hours_are_compared_by_their_mean():
    hours = [row(value=v, period=f"2024-06-01T{h:02}") for h, v in enumerate(("0.005", "0.05", "0.1"))]
    assert far_from(hours, [row(value="0.05")]) is None
    assert "mean of 3" in far_from(hours, [row(value="0.5")]).message


@pytest.mark.parametrize("changes", [{"kind": "embodied"}, {"method": "market"}, {"method": "residual"}])
def test_only_grid_averages_are_compared(changes):
    assert far("1.2", row(value="0.01"), **changes) is None
    assert far("1.2") is None
