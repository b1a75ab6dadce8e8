"""The choice of a factor: by the date of use, on one basis, never later, and said in words."""

import math
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from carbonlens.accounting.factor_choice import (
    DEFAULT_GRID_U_RELATIVE,
    LOCATION,
    MARKET,
    STALE_YEARS,
    Basis,
    as_factor,
    choose,
)
from carbonlens.domain.factor_row import FactorRow
from carbonlens.errors import SelectionError


def row(period="2024", value="0.1", **other):
    given_ = {
        "kind": "grid",
        "subject": "FR",
        "method": "location",
        "averaging": "average",
        "span": "direct",
        "flow": "consumption",
        "source": "a table",
        "address": "a page",
        "licence": "MIT",
        "vintage": "2025",
        **other,
    }
    name = "/".join(str(given_[k]) for k in ("source", "subject", "method", "averaging", "span", "flow"))
    given_.setdefault("factor_id", f"{name}/{period}/{value}")
    return FactorRow(period=period, value=Decimal(value), **given_)


def codes(choice):
    return {f.code for f in choice.findings}


HOUR, MONTH, YEAR = row("2024-03-01T13", "0.01"), row("2024-03", "0.02"), row("2024", "0.03")


@pytest.mark.parametrize(
    ("rows", "when", "expected"),
    [
        ((HOUR, MONTH, YEAR), "2024-03-01T13", HOUR),
        ((HOUR, MONTH, YEAR), "2024-03-01T14", MONTH),
        ((HOUR, MONTH, YEAR), "2024-04-01T14", YEAR),
        ((HOUR, MONTH, YEAR), "2024-03", MONTH),
        ((HOUR, MONTH, YEAR), "2024", YEAR),
        ((HOUR, MONTH, YEAR), "2025-03-01T13", YEAR),
        ((HOUR, MONTH), "2024", None),
        ((HOUR, MONTH), "2025", None),
        ((row("2022"), YEAR, row("2026")), "2025", YEAR),
        ((row("2026"),), "2025", None),
    ],
)
def test_hour_then_month_then_year_then_the_nearest_earlier_year(rows, when, expected):
    assert choose(rows, "grid", "FR", when).row == expected


def test_the_words_say_which_year_stands_for_which():
    rows = (row("2023"), row("2025"))
    assert choose(rows, "grid", "FR", "2025").how.startswith("2025 figure;")
    assert choose(rows, "grid", "FR", "2026").how.startswith("2025 figure used for 2026;")
    assert choose(rows, "grid", "FR", "2025-06").how.startswith("2025 figure;")


def test_nothing_that_fits_is_unknown_with_a_finding():
    choice = choose((row("2026"),), "grid", "FR", "2025")
    assert choice.row is None
    (finding,) = choice.findings
    assert finding.code == "CL358"
    assert "2026" in finding.message
    assert choose((), "grid", "FR", "2025").findings[0].code == "CL358"


@pytest.mark.parametrize("when", ["", "now", "24", "2024-3", "2024-03-01", "2024-03-01T13:00"])
def test_what_is_no_time_of_use_is_refused(when):
    with pytest.raises(SelectionError):
        choose((YEAR,), "grid", "FR", when)


def test_an_old_figure_is_said_to_be_old_from_three_years_on():
    assert STALE_YEARS == 3
    assert "CL353" not in codes(choose((row("2022"),), "grid", "FR", "2024"))
    assert "CL353" in codes(choose((row("2022"),), "grid", "FR", "2025"))


def test_a_declared_parent_stands_in_only_where_the_zone_has_nothing_and_says_so():
    of_country, of_zone = row(subject="SE"), row("2020", subject="SE-SE3")
    choice = choose((of_country, row(subject="NO")), "grid", ("SE-SE3", "SE"), "2024")
    assert choice.row == of_country
    assert "CL351" in codes(choice)
    assert "of SE, because SE-SE3 has none" in choice.how
    assert choose((of_country, of_zone), "grid", ("SE-SE3", "SE"), "2024").row == of_zone
    assert choose((row(subject="NO"),), "grid", ("SE-SE3", "SE"), "2024").row is None


def test_direct_stands_before_life_cycle_and_life_cycle_is_labelled():
    direct, life = row(value="0.04"), row(value="0.06", span="life_cycle")
    unsaid = row(value="0.05", span=None)
    assert choose((life, unsaid, direct), "grid", "FR", "2024").row == direct
    assert "CL354" not in codes(choose((life, direct), "grid", "FR", "2024"))
    alone = choose((life,), "grid", "FR", "2024")
    assert alone.row == life
    assert "CL354" in codes(alone)
    assert "life-cycle" in alone.how
    said = choose((life, unsaid), "grid", "FR", "2024")
    assert said.row == unsaid
    assert "CL355" in codes(said)


def test_a_stated_span_or_flow_is_strict():
    direct, life = row(), row(span="life_cycle", flow="production")
    wanted = choose((direct, life), "grid", "FR", "2024", Basis(span="life_cycle"))
    assert wanted.row == life
    assert "CL354" not in codes(wanted)
    assert choose((direct,), "grid", "FR", "2024", Basis(span="life_cycle")).row is None
    assert choose((direct, life), "grid", "FR", "2024", Basis(flow="production")).row == life


def test_marginal_only_where_it_is_asked_for():
    marginal = row(averaging="marginal")
    assert choose((marginal,), "grid", "FR", "2024").row is None
    assert choose((marginal, YEAR), "grid", "FR", "2024", Basis(averaging="marginal")).row == marginal
    assert choose((YEAR,), "grid", "FR", "2024", Basis(averaging="marginal")).row is None


def test_market_takes_the_suppliers_rate_then_the_residual_mix_then_the_average_disclosed():
    rate = row(method="market", value="0.01")
    residual = row(method="residual", value="0.5")
    assert choose((YEAR, residual, rate), "grid", "FR", "2024", MARKET).row == rate
    chosen = choose((YEAR, residual), "grid", "FR", "2024", MARKET)
    assert chosen.row == residual
    assert "CL356" not in codes(chosen)
    assert as_factor(residual).method == "market"
    disclosed = choose((YEAR,), "grid", "FR", "2024", MARKET)
    assert disclosed.row == YEAR
    assert "CL356" in codes(disclosed)
    assert choose((residual, rate), "grid", "FR", "2024", LOCATION).row is None


def test_of_equal_rows_the_later_publication_is_used_and_the_others_are_named():
    old = row(value="0.09", source="old", vintage="2024")
    new = row(value="0.05", source="new", vintage="2025-06")
    choice = choose((old, new), "grid", "FR", "2024")
    assert choice.row == new
    (finding,) = [f for f in choice.findings if f.code == "CL357"]
    assert "0.09 (old" in finding.message


def test_a_tie_never_goes_to_the_favourable_side():
    low = row(kind="pue", subject="azure", value="1.125", source="designs")
    high = row(kind="pue", subject="azure", value="1.185", source="fleet")
    assert choose((low, high), "pue", "azure", "2024").row == high


def test_a_row_of_the_users_stands_before_all_others_of_its_period():
    own = row(value="0.2", span="life_cycle", vintage="1999")
    assert choose((YEAR, own), "grid", "FR", "2024", own=(own,)).row == own
    newer = row("2025", "0.3")
    assert choose((newer, own), "grid", "FR", "2025", own=(own,)).row == newer


def test_a_row_becomes_the_factor_of_a_comparison():
    factor = as_factor(row(value="0.02118", span="life_cycle"))
    assert factor.value_kg_per_kwh == 0.02118
    assert factor.basis == ("average", "life-cycle", "consumption")
    assert factor.u_relative == DEFAULT_GRID_U_RELATIVE
    assert "a table" in factor.source
    assert "MIT" in factor.source
    assert as_factor(replace(row(), u_relative=0.0)).u_relative == 0.0
    between = as_factor(replace(row(), low=Decimal("0.05"), high=Decimal("0.2")))
    assert between.u_relative == pytest.approx(math.log(4) / (2 * 1.959964), rel=1e-6)
    with pytest.raises(ValueError, match="pue"):
        as_factor(row(kind="pue"))


PERIODS = st.sampled_from(
    [
        "2020",
        "2021",
        "2022",
        "2023",
        "2024",
        "2022-03",
        "2022-07",
        "2024-03",
        "2022-03-01T13",
        "2024-03-01T13",
    ]
)
ROWS = st.lists(
    st.builds(
        row,
        PERIODS,
        st.sampled_from(["0.1", "0.2", "0.3"]),
        kind=st.sampled_from(["grid", "pue"]),
        subject=st.sampled_from(["SE-SE3", "SE", "NO"]),
        method=st.sampled_from(["location", "residual", "market", None]),
        averaging=st.sampled_from(["average", "marginal", None]),
        span=st.sampled_from(["direct", "life_cycle", None]),
        flow=st.sampled_from(["consumption", "production", None]),
        source=st.sampled_from(["a", "b"]),
        vintage=st.sampled_from(["2023", "2024-05"]),
    ),
    max_size=12,
    unique_by=lambda r: r.factor_id,
)
BASES = st.builds(
    Basis,
    method=st.sampled_from(["location", "residual", "market"]),
    averaging=st.sampled_from(["average", "marginal"]),
    span=st.sampled_from([None, "direct", "life_cycle"]),
    flow=st.sampled_from([None, "consumption", "production"]),
)
CHAIN = ("SE-SE3", "SE")


@given(ROWS, PERIODS, BASES)
def test_law_the_choice_never_lies_after_the_use(rows, when, basis):
    chosen = choose(rows, "grid", CHAIN, when, basis).row
    assert chosen is None or chosen.period <= when[: len(chosen.period)]


@given(ROWS, PERIODS, BASES)
def test_law_the_choice_is_of_the_asked_basis_and_place(rows, when, basis):
    choice = choose(rows, "grid", CHAIN, when, basis)
    chosen = choice.row
    if chosen is None:
        return
    assert chosen.kind == "grid"
    assert chosen.subject in CHAIN
    assert chosen.averaging == basis.averaging
    assert basis.span in (None, chosen.span)
    assert basis.flow in (None, chosen.flow)
    if basis.method != "market":
        assert chosen.method == basis.method
    assert (chosen.subject != CHAIN[0]) == ("CL351" in codes(choice))
    assert (basis.method == "market" and chosen.method == "location") == ("CL356" in codes(choice))
    assert (basis.span is None and chosen.span == "life_cycle") == ("CL354" in codes(choice))


@given(ROWS.flatmap(lambda rows: st.tuples(st.just(rows), st.permutations(rows))), PERIODS, BASES)
def test_law_the_choice_is_the_same_in_whatever_order_the_rows_are(orders, when, basis):
    one, other = orders
    assert choose(one, "grid", CHAIN, when, basis) == choose(other, "grid", CHAIN, when, basis)


@given(ROWS, PERIODS, BASES)
def test_law_what_is_not_chosen_has_a_reason(rows, when, basis):
    """A row of the very time, zone and basis is never passed over for another time or zone."""
    chosen = choose(rows, "grid", CHAIN, when, basis).row
    exact = [
        r
        for r in rows
        if (r.kind, r.subject, r.period, r.method, r.averaging)
        == ("grid", CHAIN[0], when, basis.method, basis.averaging)
        and basis.span in (None, r.span)
        and basis.flow in (None, r.flow)
    ]
    assert not exact or chosen in exact
