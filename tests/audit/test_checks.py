"""Each check with an example that passes and one that fails."""

from __future__ import annotations

import pytest

from carbonlens.audit.claims import check_claims
from carbonlens.audit.emissions import check_emissions
from carbonlens.audit.totals import check_basis, check_totals
from carbonlens.domain.claim import Claim, Stated, stated
from tests.audit.examples import codes, consistent


def test_figures_that_agree_find_nothing():
    assert check_claims([consistent()]) == ()


@pytest.mark.parametrize(
    ("changes", "code", "words"),
    [
        ({"emissions": stated("1920", "kg"), "per_unit": None}, "CL702", "a power of ten, 10"),
        ({"emissions": stated("192", "t"), "per_unit": None}, "CL702", "a unit slip by 1000"),
        ({"emissions": stated("423", "kg"), "per_unit": None}, "CL702", "pounds stated as kilograms"),
        ({"emissions": stated("300", "kg"), "per_unit": None}, "CL703", "do not give the output"),
        ({"energy": stated("4800", "kWh"), "emissions": None}, "CL704", "a power of ten, 10"),
        ({"energy": stated("600", "kWh"), "emissions": None}, "CL704", "+25.0%"),
        ({"energy": stated("576", "kWh"), "emissions": None, "water": None}, "CL705", "PUE applied 2 times"),
        ({"energy": stated("400", "kWh"), "emissions": None, "water": None}, "CL705", "PUE applied 0 times"),
        ({"watts": stated("700"), "hours": None}, "CL709", "A100, which draws at most 440 W"),
        ({"energy": stated("800", "kWh"), "watts": None, "emissions": None}, "CL709", "A100 draws at most"),
        ({"water": stated("960", "L")}, "CL715", "facility energy"),
        ({"water": stated("8000", "L")}, "CL702", "a power of ten, 10"),
        ({"water": stated("900", "L")}, "CL703", "do not give the output"),
        ({"per_unit": stated("19.2", "kg")}, "CL716", "a power of ten, 10"),
        ({"saving": stated("100")}, "CL716", "share of the figure after"),
        ({"saving": stated("2")}, "CL716", "a ratio, and no percentage"),
        ({"saving": stated("70")}, "CL716", "do not give the output"),
        ({"factor_year": 2019}, "CL718", "2019 for work of 2025"),
        ({"region": None, "factor": None}, "CL710", "neither place nor emission factor"),
        ({"emissions": None, "per_unit": None}, "CL714", "of 0 without"),
        ({"emissions": Stated(value=stated("192").value)}, "CL708", "no unit"),
        ({"energy": stated("480", "PJ")}, "CL708", "the unit 'PJ'"),
    ],
)
def test_a_broken_relation_is_named(changes, code, words):
    found = [f for f in check_claims([consistent(**changes)]) if f.code == code]
    assert len(found) == 1
    assert words in found[0].message
    assert found[0].mend


def test_an_energy_nobody_says_the_boundary_of_is_it_energy_beside_a_pue():
    claim = Claim(
        what="1B",
        energy=stated("30", "MWh"),
        pue=stated("1.2"),
        factor=stated("0.332", "kg/kWh"),
        emissions=stated("10", "t"),
    )
    assert codes(check_emissions(claim)) == ["CL705"]


@pytest.mark.parametrize(("kg", "found"), [("0.1", True), ("1", False), ("149", False), ("160", True)])
def test_implied_factor_is_bounded(kg, found):
    claim = Claim(what="x", energy=stated("100", "kWh"), emissions=stated(kg, "kg"), region="FR")
    assert codes(check_claims([claim])) == (["CL701"] if found else [])


def test_zero_emissions_are_no_figure():
    claim = Claim(what="x", energy=stated("100", "kWh"), emissions=Stated(value=stated("0").value, unit="kg"))
    assert codes(check_emissions(claim)) == ["CL701"]


def rows(*tonnes: str, **changes: object) -> tuple[Claim, ...]:
    return tuple(
        Claim(what=f"row {n}", emissions=stated(t, "t"), region="DE", **changes) for n, t in enumerate(tonnes)
    )


def test_a_total_names_the_row_that_is_missing():
    total = Claim(what="Total", emissions=stated("539.00", "t"), parts=rows("31.22", "62.44", "291.42"))
    (found,) = check_totals(total)
    assert found.code == "CL706"
    assert "a row of 153920 kg is missing" in found.message


def test_a_total_names_the_row_that_is_too_much():
    total = Claim(what="Total", emissions=stated("30", "t"), parts=rows("10", "20", "5"))
    (found,) = check_totals(total)
    assert "which is row row 2" in found.message


def test_a_total_within_the_rounding_of_its_rows_is_right():
    assert check_totals(Claim(what="Total", emissions=stated("31", "t"), parts=rows("10.4", "20.4"))) == ()


def test_a_total_tells_rows_without_the_figure():
    parts = (*rows("10"), Claim(what="small", hours=stated("2")))
    (found,) = check_totals(Claim(what="Total", emissions=stated("30", "t"), parts=parts))
    assert "no emissions stated for small" in found.message


def test_bases_of_one_total_must_be_one():
    parts = (*rows("10", basis="direct"), *rows("20", basis="life_cycle"))
    assert codes(check_basis(Claim(what="Total", parts=parts))) == ["CL713"]
    assert check_basis(Claim(what="Total", parts=rows("10", "20", basis="direct"))) == ()


def test_rows_without_place_must_imply_one_factor():
    def row(what: str, kg: str) -> Claim:
        return Claim(what=what, energy=stated("1000", "kWh"), emissions=stated(kg, "kg"))

    assert check_basis(Claim(what="Total", parts=(row("a", "400"), row("b", "404")))) == ()
    assert codes(check_basis(Claim(what="Total", parts=(row("a", "400"), row("b", "600"))))) == ["CL713"]


def test_rows_stated_twice():
    one = consistent(line=3)
    assert codes(check_claims([one, consistent(line=4)])) == ["CL707"]
    (other,) = check_claims([one, consistent(line=4, devices=stated("8"))])
    assert "other figures" in other.message
    assert check_claims([one, consistent(line=4, what="another")]) == ()
    assert check_claims([one, consistent(line=4, year=2024)]) == ()


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [("2", "3", ["CL717"]), ("2", "2", ["CL707"]), ("3", "1", [])],
)
def test_one_energy_belongs_to_one_scope(first, second, expected):
    claims = [Claim(what="hall", energy=stated("500", "kWh"), scope=s) for s in (first, second)]
    assert codes(check_claims(claims)) == expected


def test_rented_machines_are_no_scope_2():
    claims = [Claim(what="cloud", energy=stated("500", "kWh"), scope="2", cloud=True)]
    assert codes(check_claims(claims)) == ["CL717"]


@pytest.mark.parametrize(
    ("components", "hardware", "words"),
    [
        (("cpu", "ram"), "NVIDIA A100", "leaves out the GPU"),
        (("gpu",), "NVIDIA A100", "memory and the CPU"),
        (("cpu", "gpu", "ram"), "NVIDIA A100", None),
        (("cpu", "ram"), "Xeon", None),
        (("wall",), "NVIDIA A100", None),
        (None, "NVIDIA A100", None),
    ],
)
def test_a_part_that_was_used_must_be_in_the_energy(components, hardware, words):
    claim = Claim(what="run", energy=stated("5", "kWh"), components=components, hardware=hardware)
    found = check_claims([claim])
    assert codes(found) == ([] if words is None else ["CL712"])
    assert words is None or words in found[0].message


def test_grams_and_kilograms_of_a_card():
    def card(grams: str) -> Claim:
        return Claim(what="card", region="FR", emissions=stated(grams, "g"), front_matter=True)

    text = Claim(what="text", region="FR", line=9, emissions=stated("1.87", "kg"))
    assert codes(check_claims([card("1.87"), text])) == ["CL711"]
    assert check_claims([card("1870"), text]) == ()


def test_grams_and_kilograms_of_a_card_that_tells_its_energy():
    def card(grams: str) -> Claim:
        return Claim(
            what="card",
            region="FR",
            emissions=stated(grams, "g"),
            front_matter=True,
            energy=stated("40", "kWh"),
        )

    assert codes(check_claims([card("12.0")])) == ["CL711"]
    assert check_claims([card("12000")]) == ()
