"""Capital goods in the year of purchase, and the amortised share beside them."""

from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from carbonlens.accounting.amortisation import amortised, embodied_share_kg
from carbonlens.accounting.embodied import Piece, capital_goods, piece_by, piece_of, server_share_kg
from carbonlens.accounting.propagation import exactly, stated
from carbonlens.domain.asset import Asset
from carbonlens.domain.estimate import unknown
from carbonlens.domain.factor_row import FactorRow
from carbonlens.errors import SelectionError

ASSET = Asset(asset_id="h100s", hardware="nvidia-h100", count=2, purchased="2025-01-01", life_years=4)
EACH = Piece(kg=stated(876.0, 0.2, "embodied:nvidia-h100", "kg"), how="t", input_ids=("x/nvidia-h100",))
YEAR_H = 8760


def row(source, value, **fields):
    return FactorRow(
        factor_id=f"{source}/nvidia-h100",
        kind="embodied",
        subject="nvidia-h100",
        period="2025",
        value=Decimal(value),
        source=source,
        address="a",
        licence="l",
        vintage="2025",
        **fields,
    )


ROWS = [row("one", "164"), row("two", "575.1")]


def codes(found):
    return [f.code for f in found.findings]


def over(asset, start, end, used, **options):
    return amortised(asset, EACH, start=start, end=end, used_hours=used, **options)


def test_a_piece_is_a_range_over_its_sources_or_one_of_them():
    piece = piece_of(ASSET, ROWS)
    assert (piece.kg.low, piece.kg.high) == (pytest.approx(164), pytest.approx(575.1))
    assert piece.input_ids == ("one/nvidia-h100", "two/nvidia-h100")
    assert piece_of(ASSET, ROWS, "two").kg.value == pytest.approx(575.1)
    with pytest.raises(SelectionError, match="three"):
        piece_of(ASSET, ROWS, "three")


def test_an_assets_own_statement_comes_first():
    own = replace(ASSET, embodied_kg=300.0, embodied_low_kg=200.0, embodied_high_kg=450.0)
    piece = piece_of(own, ROWS)
    assert (piece.kg.value, piece.kg.low, piece.kg.high) == (300.0, 200.0, 450.0)
    assert piece.input_ids == ("asset:h100s",)
    # What is made of it has an interval of the same ratio.
    twice = piece.kg.times(exactly(2.0), "kg")
    assert twice.high / twice.low == pytest.approx(450 / 200)
    alone = piece_of(replace(own, embodied_low_kg=None), ROWS).kg
    assert (alone.low, alone.high, alone.grade) == (pytest.approx(150), pytest.approx(600), "E")
    assert piece_of(own, ROWS, "one").kg.value == pytest.approx(164)


def test_a_source_for_all_is_taken_where_it_has_a_figure_and_said_where_not():
    own = replace(ASSET, asset_id="own", hardware="box", embodied_kg=300.0, embodied_source="maker")
    assert piece_by(ASSET, ROWS, "two").kg.value == pytest.approx(575.1)
    kept = piece_by(own, ROWS, "two")
    assert (kept.kg.value, [f.code for f in kept.findings]) == (300.0, ["CL493"])
    assert piece_by(replace(ASSET, embodied_from="one"), ROWS).kg.value == pytest.approx(164)
    # The choice for all stands before an asset's own.
    assert piece_by(replace(ASSET, embodied_from="one"), ROWS, "two").kg.value == pytest.approx(575.1)


def test_capital_goods_are_whole_in_the_period_of_purchase():
    assets = [ASSET, replace(ASSET, asset_id="next", purchased="2026-01-01")]
    goods = capital_goods(assets, ROWS, start="2025-01-01", end="2026-01-01", source="two")
    assert [p.asset.asset_id for p in goods.purchases] == ["h100s"]
    assert goods.kg.value == pytest.approx(2 * 575.1)
    # Two of a kind share the error of their one figure.
    both = capital_goods(assets, ROWS, start="2025-01-01", end="2027-01-01", source="two")
    assert both.kg.u_total == pytest.approx(2 * goods.kg.u_total)
    figures = {f.figure_id: f for f in goods.figures("y")}
    assert figures["y.capital_goods_kg"].inputs == ("y.h100s.capital_goods_kg",)
    assert figures["y.h100s.capital_goods_kg"].inputs == ("y.h100s.embodied_each_kg", "asset:h100s")
    assert figures["y.h100s.embodied_each_kg"].inputs == ("two/nvidia-h100",)


def test_nothing_bought_is_nothing_and_unknown_hardware_is_unknown():
    nothing = capital_goods([ASSET], ROWS, start="2024-01-01", end="2025-01-01")
    assert (nothing.kg.value, nothing.kg.state) == (0.0, "known")
    odd = replace(ASSET, hardware="odd")
    goods = capital_goods([odd], ROWS, start="2025-01-01", end="2026-01-01")
    assert goods.kg.state == "unknown"
    assert [f.subject for f in goods.findings] == ["h100s"]
    mixed = capital_goods([odd, ASSET], ROWS, start="2025-01-01", end="2026-01-01")
    assert mixed.kg.state == "unbounded"


def test_per_calendar_hour_idle_time_has_its_own_line():
    found = over(ASSET, "2025-01-01", "2026-01-01", used=10_000.0)
    rate = 876 / (4 * YEAR_H)
    assert found.basis == "calendar_hour"
    assert found.rate_kg_per_hour.value == pytest.approx(rate)
    assert found.hours == 2 * YEAR_H
    assert found.used_kg.value == pytest.approx(10_000 * rate)
    assert found.idle_kg.value == pytest.approx((2 * YEAR_H - 10_000) * rate)
    assert found.used_kg.value + found.idle_kg.value == pytest.approx(found.total_kg.value / 4)
    assert found.used_kg.u_by_source == {"embodied:nvidia-h100": pytest.approx(0.2 * 10_000 * rate)}
    assert found.written_off_kg.state == "not_applicable"
    assert codes(found) == []


def test_per_used_hour_there_is_no_idle_line():
    asset = replace(ASSET, used_hours=20_000.0)
    found = over(asset, "2025-01-01", "2026-01-01", used=10_000.0)
    assert (found.basis, found.idle_kg.state) == ("used_hour", "not_applicable")
    assert found.rate_kg_per_hour.value == pytest.approx(876 / 20_000)
    assert found.used_kg.value == pytest.approx(438)
    names = [f.figure_id for f in found.figures("a")]
    assert names == ["a.embodied_each_kg", "a.rate_kg_per_hour", "a.used_kg"]
    assert "used hour" in found.figures("a")[1].label


@given(
    used=st.lists(st.floats(0, 5000), min_size=7, max_size=7),
    retired=st.sampled_from([None, "2026-03-05", "2028-12-31", "2029-06-01"]),
)
def test_over_a_life_all_of_it_is_charged_once(used, retired):
    asset = replace(ASSET, retired=retired, life_years=3.5)
    years = range(2025, 2032)
    kg = 0.0
    for year, hours in zip(years, used, strict=True):
        found = over(asset, f"{year}-01-01", f"{year + 1}-01-01", used=hours)
        kg += found.used_kg.value + found.idle_kg.value + (found.written_off_kg.value or 0.0)
    assert kg == pytest.approx(2 * 876)


@given(st.lists(st.floats(0, 30_000), min_size=4, max_size=4), st.sampled_from([None, "2028-06-01"]))
def test_over_its_expected_use_all_of_it_is_charged_once(used, retired):
    asset = replace(ASSET, used_hours=20_000.0, retired=retired)
    kg, before = 0.0, 0.0
    for year, hours in zip(range(2025, 2029), used, strict=True):
        found = over(asset, f"{year}-01-01", f"{year + 1}-01-01", used=hours, used_before=before)
        kg += found.used_kg.value + (found.written_off_kg.value or 0.0)
        before += hours
    whole = 2 * 876
    assert kg <= whole + 1e-6
    if retired or before >= 40_000:
        assert kg == pytest.approx(whole)


def test_an_unknown_life_is_unknown():
    found = over(replace(ASSET, life_years=None), "2025-01-01", "2026-01-01", used=10.0)
    assert {found.used_kg.state, found.idle_kg.state, found.rate_kg_per_hour.state} == {"unknown"}
    assert codes(found) == ["CL387"]
    made = amortised(
        ASSET, Piece(kg=unknown("kg"), how="no source"), start="2025-01-01", end="2026-01-01", used_hours=1
    )
    assert made.used_kg.state == "unknown"


def test_the_end_of_a_life_is_said():
    last = over(ASSET, "2028-07-01", "2029-07-01", used=100.0)
    assert last.hours == 2 * 24 * 183
    assert codes(last) == ["CL397"]
    assert "2028-12-31" in last.findings[0].message
    after = over(ASSET, "2030-01-01", "2031-01-01", used=100.0)
    assert (after.used_kg.value, codes(after)) == (0.0, ["CL397"])
    assert codes(over(ASSET, "2030-01-01", "2031-01-01", used=0.0)) == []


def test_an_early_end_leaves_a_line_of_its_own():
    found = over(replace(ASSET, retired="2027-01-01"), "2026-07-01", "2027-07-01", used=0.0)
    # Two of four years (730 and 730 days) are left of both.
    assert found.written_off_kg.value == pytest.approx(876, rel=2e-3)
    assert codes(found) == ["CL397"]
    assert "retired on 2027-01-01" in found.findings[0].message
    unsure = over(replace(ASSET, retired="2027-01-01", used_hours=1e4), "2026-07-01", "2027-07-01", used=1.0)
    assert unsure.written_off_kg.state == "unknown"
    assert "unknown amount" in unsure.findings[0].message


def test_more_use_than_there_was_hardware_is_said():
    found = over(ASSET, "2025-01-01", "2025-01-02", used=50.0)
    assert (found.hours, found.used_hours, found.idle_kg.value) == (48.0, 48.0, 0.0)
    assert codes(found) == ["CL382"]


def test_shares():
    assert server_share_kg(1, 8, 5700, 164) == 876.5
    assert embodied_share_kg(1433.12, 1, 35040, 2, 16) == pytest.approx(0.0051124, abs=1e-7)
