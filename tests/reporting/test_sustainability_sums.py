"""The quarter's report adds up as it is printed, and says of each line what is true of that line."""

import math
import re

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from carbonlens.accounting import cost as costs
from carbonlens.accounting.periods_compared import Compared, Series, every_scope_key, scope_key
from carbonlens.accounting.scopes import CAPITAL_GOODS, FUEL_AND_ENERGY, PURCHASED_SERVICES, SCOPE_2
from carbonlens.domain.drivers_savings import Register, SavingFound
from carbonlens.domain.estimate import Estimate, add
from carbonlens.domain.figure import Figure
from carbonlens.domain.finding import Finding
from carbonlens.domain.initiative import Initiative
from carbonlens.reporting import format as fmt
from carbonlens.reporting.columns import column
from carbonlens.reporting.sustainability import build_sustainability
from carbonlens.reporting.sustainability_sums import TOTAL, cost_columns, exact_money, sharing
from tests.accounting.test_periods_compared import WHOLE, of_parts
from tests.reporting import sustainability_case as case

PLACES = (SCOPE_2, PURCHASED_SERVICES, CAPITAL_GOODS, FUEL_AND_ENERGY)
ALIKE = (CAPITAL_GOODS, FUEL_AND_ENERGY)
UNITS = {"kg": 1.0, "t": 1e3}
AMOUNTS = st.lists(st.floats(0, 1e4, allow_subnormal=False), min_size=1, max_size=4)


def number(text):
    """Return the number that a cell begins with; a part below the last place counts as nothing."""
    found = re.match(r"\D*?([−+]?[0-9][0-9\u202f]*(?:\.[0-9]+)?)", text)
    if found is None or text.startswith(("<", ">")):
        return 0.0
    return float(found[1].replace("\u202f", "").replace(fmt.MINUS, "-"))


def kilograms(text):
    unit = next((u for u in UNITS if f"\N{NO-BREAK SPACE}{u}\N{NO-BREAK SPACE}CO₂e" in text), "kg")
    return number(text) * UNITS[unit]


def mass(kg, relative=0.1):
    if kg is None:
        return Estimate(value=None, unit="kg", state="unknown")
    return Estimate(value=kg, unit="kg", u_random=kg * relative)


def of_scopes(location, market, relative=0.1):
    """Return the report of a quarter of such emissions in kg, by place; the last two are alike by both."""
    series = {}
    for method, values in (("location", location), ("market", market)):
        parts = {scope_key(p, method): mass(v, relative) for p, v in zip(PLACES, values, strict=True)}
        parts[every_scope_key(method)] = add(parts.values(), "kg")
        for key, estimate in parts.items():
            name = f"statement.{case.QUARTER}.{key}"
            series[key] = Series(
                key=key, by_period={case.QUARTER: Figure(figure_id=name, estimate=estimate, label=key)}
            )
    held = Compared(period=case.QUARTER, places=PLACES, series=series)
    quarter = case.given({case.QUARTER: of_parts(case.QUARTER, WHOLE)})
    return build_sustainability(msgspec.structs.replace(quarter, compared=held))


def note(view, name):
    (found,) = (b.table for s in view.document.sections for b in s.tables if b.name == name)
    return "".join(p.text for p in found.note)


@pytest.mark.parametrize(
    ("location", "market"),
    [
        ((1796, 81, 4401, 353), (3003, 109, 4401, 353)),  # market: 3.0 + 0.1 + 4.40 + 0.35 was 7.9
        ((1796, 81, 4401, 353), (0, 109, 4401, 353)),
        ((1796, 81, 4401, 353), (0, 0, 4401, 353)),
        ((1796, 81, 4406, 356), (0, 0, 4406, 356)),
        ((18, 81, 14.4, 3.53), (3003, 1090, 14.4, 3.53)),
        ((1.2, 0.3, 44, 353), (3.4, 0.1, 44, 353)),
        ((5e6, 81, 4401, 353), (3003, 109, 4401, 353)),
    ],
)
@pytest.mark.parametrize("relative", [0.1, 0.01, 0.3])
def test_the_lines_of_each_method_add_up_with_those_alike_by_both(location, market, relative):
    view = of_scopes(location, market, relative)
    assert "add up to its total" in note(view, "Statement")
    lines = case.rows(view, "Statement")
    lines.pop("")
    for method, values in (("location", location), ("market", market)):
        own = {k: v[0] for k, v in lines.items() if f"{method}-based" in k or "alike by both methods" in k}
        total = own.pop(f"Every scope, {method}-based")
        assert len(own) == len(PLACES)
        assert math.fsum(map(kilograms, own.values())) == pytest.approx(kilograms(total), rel=1e-9), own
        for text, value in zip(own.values(), values, strict=True):
            assert value or number(text) == 0, "nothing is printed as something"


@pytest.mark.parametrize("unknown", ["location", "market"])
def test_lines_alike_by_both_add_up_to_the_one_total_that_is_known(unknown):
    values = {"location": (1796, 81, 4401, 353), "market": (3003, 109, 4401, 353), unknown: None}
    values[unknown] = (None, 100, 4401, 353)
    lines = case.rows(of_scopes(**values), "Statement")
    (known,) = {"location", "market"} - {unknown}
    own = {k: v[0] for k, v in lines.items() if f"{known}-based" in k or "alike by both methods" in k}
    total = own.pop(f"Every scope, {known}-based")
    assert len(own) == len(PLACES)
    assert math.fsum(map(kilograms, own.values())) == pytest.approx(kilograms(total), rel=1e-9), own


def test_a_line_alike_by_both_methods_is_one_row_where_a_number_suits_both():
    lines = case.rows(of_scopes((1796, 81, 4401, 353), (3003, 109, 4401, 353)), "Statement")
    assert len([k for k in lines if "alike by both methods" in k]) == len(ALIKE)


@given(AMOUNTS, AMOUNTS, AMOUNTS)
def test_shared_parts_suit_both_columns_or_none(first, second, both):
    shared = {f"s{n}": mass(v) for n, v in enumerate(both)}
    parts = [{**shared, **{f"o{n}": mass(v) for n, v in enumerate(own)}} for own in (first, second)]
    totals = [add(p.values(), "kg") for p in parts]
    made = [column(fmt.mass, TOTAL, t, p, least=2) for t, p in zip(totals, parts, strict=True)]
    most = max(c.places for c in made)
    made = [column(fmt.mass, TOTAL, t, p, least=most) for t, p in zip(totals, parts, strict=True)]
    found = sharing(made, parts, shared.keys(), TOTAL)
    if found is None:
        return
    for one, every in zip(found, parts, strict=True):
        grain = 10.0**-one.places
        assert math.fsum(one.numbers[n] for n in every) == pytest.approx(one.numbers[TOTAL], abs=grain / 1e3)
        for name, part in every.items():
            assert abs(one.numbers[name] - part.value * one.scale.factor) <= grain * 1.001
            assert part.value or one.numbers[name] == 0
    assert all(found[0].numbers[n] == found[1].numbers[n] for n in shared)


def of_cost(*lines):
    return costs.total(
        costs.CostLine(name=n, label=label, amount=amount, formula="", input_ids=ids)
        for n, label, amount, ids in lines
    )


def dollars(value, u=0.0, currency="USD"):
    return Estimate(value=value, unit=currency, u_random=u)


def costing(cost):
    """Return the report of a quarter of that cost."""
    made = of_parts(case.QUARTER, WHOLE)
    figures = (*made.figures, *cost.figures(f"statement.{case.QUARTER}.cost"))
    return case.view({case.QUARTER: msgspec.structs.replace(made, cost=cost, figures=figures)})


BILLS = (
    ("cloud", "bills, carried", dollars(90.67), ()),
    ("unallocated", "bills, not carried", dollars(4264.93), ()),
)
OWN = (
    ("electricity", "electricity", dollars(1264.4, 15.0, "EUR"), ()),
    ("hardware", "node, hours used", dollars(7.44, currency="EUR"), ("asset:a-2024",)),
    ("hardware", "node, idle hours", dollars(6616.4, currency="EUR"), ("asset:a-2024",)),
    ("hardware", "node, hours used", dollars(8298.3, currency="EUR"), ("asset:b-2026",)),
)


def test_costs_add_up_as_printed_and_exact_bills_are_printed_to_the_cent():
    view = costing(of_cost(*OWN, *BILLS))
    (found,) = (b.table for s in view.document.sections for b in s.tables if b.name == "Costs")
    amounts = ["".join(p.text for p in row.cells[-1][0]) for row in found.rows]
    for currency in ("EUR", "USD"):
        own = [number(a) for a in amounts if a.startswith(currency)]
        assert math.fsum(own[:-1]) == pytest.approx(own[-1], abs=1e-6), amounts
    assert [a.split("\N{NO-BREAK SPACE}")[1] for a in amounts if "USD" in a] == [
        "90.67",
        "4\u202f264.93",
        "4\u202f355.60",
    ]
    assert "the lines of each currency add up to its total" in note(view, "Costs")
    # The page says the same of the same figure.
    assert case.rows(view, "Statement")["Cost in USD"][0] == amounts[-1]


def test_a_cost_without_a_whole_total_is_not_said_to_add_up():
    unpriced = ("hardware", "node, hours used", Estimate(value=None, unit="XXX", state="unknown"), ())
    unknown = Estimate(value=None, unit="USD", state="unknown")
    view = costing(of_cost(("cloud", "bills", unknown, ()), unpriced))
    assert "add up" not in note(view, "Costs")


def test_hardware_alike_is_told_apart_by_its_asset():
    view = costing(of_cost(*OWN))
    (found,) = (b.table for s in view.document.sections for b in s.tables if b.name == "Costs")
    said = [" ".join(p.text for p in row.cells[0][0]) for row in found.rows]
    assert said[1:4] == ["a-2024: node, hours used", "a-2024: node, idle hours", "b-2026: node, hours used"]


@pytest.mark.parametrize(
    ("value", "text"), [(4264.93, "4\u202f264.93"), (4264.0, "4\u202f264"), (0.5, "0.50"), (-7.1, "−7.10")]
)
def test_an_exact_amount_is_printed_to_the_cent_where_it_has_one(value, text):
    assert exact_money(Estimate(value=value, unit="EUR", signed=True)).number == text


def test_a_cost_of_millions_is_printed_as_any_other_and_adds_up():
    made = cost_columns(of_cost(*((n, t, dollars(a.value * 1e4), i) for n, t, a, i in BILLS)))["USD"]
    assert made.numbers["1"] + made.numbers["2"] == pytest.approx(made.numbers[TOTAL])
    assert made.places <= 4


@pytest.mark.parametrize("size", [1.0, 30.0])
def test_an_exact_bill_beside_what_is_not_sure_is_never_rounded_beyond_a_unit(size):
    unsure = ("electricity", "electricity", dollars(40_000.0 * size, 5_000.0 * size), ())
    bills = [("cloud", f"bill {n}", dollars(v), ()) for n, v in enumerate((1234.56, 249.89, 7.44))]
    made = of_cost(unsure, *bills)
    view = costing(made)
    (found,) = (b.table for s in view.document.sections for b in s.tables if b.name == "Costs")
    amounts = ["".join(p.text for p in row.cells[-1][0]) for row in found.rows]
    assert [number(a) for a in amounts[1:4]] == [1234.56, 249.89, 7.44], amounts
    assert "add up to its total" not in note(view, "Costs")


def test_the_counts_of_findings_are_those_of_the_table_of_findings():
    here, also = (
        Finding(code=code, severity=severity, message=f"{code} here", mend="mend it")
        for code, severity in (("CL300", "error"), ("CL329", "warning"))
    )
    register = Register(period=case.QUARTER, by="model", found=(), findings=(here, also, also))
    view = case.view({case.QUARTER: of_parts(case.QUARTER, WHOLE)}, findings=(here, here), register=register)
    (found,) = (b.table for s in view.document.sections for b in s.tables if b.name == "Findings")
    listed = ["".join(p.text for p in row.cells[0][0]) for row in found.rows]
    quality = case.rows(view, "Quality")
    for severity in ("error", "warning", "info"):
        assert quality[f"Findings: {severity}"] == [str(listed.count(severity))], severity
    assert listed.count("error") == 1


def test_a_quantity_without_a_claim_has_no_verdict_on_one():
    kwh = Estimate(value=10.0, unit="kWh")
    found = SavingFound(
        initiative=Initiative(initiative_id="i", title="Cache", start="2026-01-01"),
        period=case.QUARTER,
        adjusted_kwh=kwh,
        measured_kwh=kwh,
        savings={"energy_kwh": kwh, "money": dollars(2.0)},
        claimed={"energy_kwh": kwh},
        verdict="confirmed",
        reason="the claim is not above what is saved",
    )
    register = Register(period=case.QUARTER, by="model", found=(found,))
    view = case.view({case.QUARTER: of_parts(case.QUARTER, WHOLE)}, register=register)
    (made,) = (b.table for s in view.document.sections for b in s.tables if b.name == "Initiatives")
    said = {r.cells[0][0][0].text: "".join(p.text for p in r.cells[-1][0]) for r in made.rows}
    assert said == {
        "energy": "confirmed: the claim is not above what is saved",
        "money": "nothing claimed",
    }


def test_each_table_by_group_says_that_it_is_rounded_to_add_up():
    whole = of_parts(case.QUARTER, WHOLE)
    group = msgspec.structs.replace(whole.total, key="by.team.one", kind="recorded", site_id="a")
    split = msgspec.structs.replace(whole, groups=(group,))
    view = case.view({case.QUARTER: whole}, splits={"team": split})
    for name in ("Sites", "By team"):
        assert "the lines of each column add up to its total" in note(view, name), name
