"""Recalculation of a base year, spreads of judged data, and the identities of a bill."""

from __future__ import annotations

import math
from decimal import Decimal

import pytest

from carbonlens.accounting.base_year import Change, recalculation
from carbonlens.accounting.focus_identity import cost_identity, is_covering
from carbonlens.accounting.pedigree import relative_sigma, sd95
from carbonlens.accounting.propagation import exactly, stated
from carbonlens.domain.charge import Charge
from carbonlens.domain.estimate import normal_interval, unknown
from carbonlens.domain.money import Money
from carbonlens.errors import ConfigError, IncomparableError

BASE = stated(100.0, 0.1, "grid:2020", "kg")


def change(new, reason="factor", old=BASE):
    return Change(reason=reason, detail="d", old_kg=old, new_kg=new, input_ids=("grid:2020", "grid:2026"))


def codes(found):
    return [f.code for f in found.findings]


def test_a_change_beyond_the_threshold_recalculates():
    found = recalculation(2024, BASE, [change(exactly(108.0, "kg"))], 0.05)
    assert (found.is_needed, found.change) == (True, pytest.approx(0.08))
    assert found.recalculated_kg.value == pytest.approx(108)
    # The old factor's error goes with the old figure.
    assert found.recalculated_kg.u_by_source == {"grid:2020": pytest.approx(0)}
    assert codes(found) == []
    assert recalculation(2024, BASE, [change(exactly(105.0, "kg"))], 0.05).is_needed


def test_a_change_below_it_keeps_the_base_year():
    found = recalculation(2024, BASE, [change(exactly(104.0, "kg"))], 0.05)
    assert (found.is_needed, found.recalculated_kg) == (False, BASE)


def test_growth_never_recalculates():
    found = recalculation(2024, BASE, [change(exactly(300.0, "kg"), reason="organic")], 0.05)
    assert (found.is_needed, found.recalculated_kg, found.change) == (False, BASE, 0.0)
    assert codes(found) == ["CL386"]
    assert (len(found.left_out), found.counted) == (1, ())


@pytest.mark.parametrize(
    ("news", "needed"), [((103.0, 103.0), True), ((109.0, 91.0), True), ((103.0, 97.0), False)]
)
def test_changes_count_one_by_one_and_together(news, needed):
    changes = [change(exactly(x, "kg"), reason=r) for x, r in zip(news, ("error", "method"), strict=True)]
    assert recalculation(2024, BASE, changes, 0.05).is_needed is needed


def test_without_a_threshold_or_with_an_unknown_change_it_is_open():
    open_ = recalculation(2024, BASE, [change(exactly(108.0, "kg"))], None)
    assert (open_.is_needed, open_.recalculated_kg, codes(open_)) == (None, BASE, ["CL385"])
    unsure = recalculation(2024, BASE, [change(unknown("kg"))], 0.05)
    assert (unsure.is_needed, unsure.change, codes(unsure)) == (None, None, ["CL385"])
    assert recalculation(2024, BASE, [], None).is_needed is False


def test_figures_lead_from_new_to_old():
    figures = {
        f.figure_id: f for f in recalculation(2024, BASE, [change(exactly(108.0, "kg"))], 0.05).figures("b")
    }
    assert figures["b.recalculated_kg"].inputs == ("b.base_kg", "b.change_1_kg")
    assert figures["b.change_1_kg"].inputs == ("grid:2020", "grid:2026")
    kept = recalculation(2024, BASE, [change(exactly(101.0, "kg"))], 0.05).figures("b")
    assert kept[-1].inputs == ("b.base_kg",)
    assert "kept" in kept[-1].label


def test_a_spread_is_the_quadrature_of_logarithms():
    spread = sd95(1.05, {"reliability": 1.05, "technology": 1.2})
    assert math.log(spread) ** 2 == pytest.approx(2 * math.log(1.05) ** 2 + math.log(1.2) ** 2)
    assert sd95(1.0, {}) == 1.0
    low, high = normal_interval(10.0, 10 * relative_sigma(spread), signed=False)
    assert (low, high) == (pytest.approx(10 / spread), pytest.approx(10 * spread))
    with pytest.raises(ConfigError, match=r"0\.9 is below 1"):
        sd95(1.0, {"temporal": 0.9})


def charge(category, billed, effective, listed, currency="USD"):
    money = [None if x is None else Money(Decimal(x), currency) for x in (billed, effective, listed)]
    return Charge(
        charge_id=f"{category}{billed}{effective}{listed}",
        start_us=0,
        end_us=1,
        category=category,
        billed=money[0],
        effective=money[1],
        list_cost=money[2],
        contracted=money[2],
    )


COMMITMENT = [
    charge("purchase", "1000", "0", "1000"),
    charge("usage", "0", "850", "1300"),
    charge("usage", "0", "150", "0"),
]


def test_a_commitment_is_counted_once():
    bill = cost_identity(COMMITMENT)
    sums = (bill.billed, bill.effective, bill.list_cost, bill.covering_billed, bill.effective_of_use)
    assert [m.amount for m in sums] == [1000, 1000, 1300, 1000, 1000]
    assert bill.savings == Money(Decimal(300), "USD")
    assert bill.missing == {}


def test_use_on_demand_and_purchases_of_their_own_are_no_coverage():
    bill = cost_identity([charge("usage", "10", "10", "12"), charge("purchase", "5", "5", "5")])
    assert (bill.list_cost.amount, bill.covering_billed, bill.effective_of_use) == (17, None, None)
    assert not is_covering(charge("purchase", "5", None, "5"))
    assert not is_covering(charge("purchase", "0", "0", "0"))


def test_a_cost_that_a_line_lacks_is_said_and_gives_no_saving():
    bill = cost_identity([*COMMITMENT, charge("usage", "1", "1", None)])
    assert bill.missing == {"list_cost": 1, "contracted": 1}
    assert bill.savings is None
    assert cost_identity([]).savings is None


def test_two_currencies_in_a_bill_are_refused():
    with pytest.raises(IncomparableError, match="USD and EUR"):
        cost_identity([*COMMITMENT, charge("usage", "1", "1", "1", "EUR")])
