"""Laws: a consistent claim finds nothing, and no unit is better than another."""

from __future__ import annotations

from decimal import Decimal

from hypothesis import given
from hypothesis import strategies as st

from carbonlens.audit.claims import check_claims
from carbonlens.domain.claim import Claim, Stated, stated
from carbonlens.importers.model_card import claims_of
from tests.audit.examples import codes


def decimals(low: str, high: str, places: int):
    return st.decimals(low, high, places=places, allow_nan=False, allow_infinity=False)


FIGURES = st.fixed_dictionaries(
    {
        "hours": decimals("10", "1000000", 1),
        "watts": decimals("20", "440", 1),
        "pue": decimals("1.00", "2.00", 2),
        "factor": decimals("0.010", "1.400", 3),
        "wue": decimals("0.10", "5.00", 2),
    }
)


def printed(value: Decimal, digits: int = 4) -> str:
    return f"{value:.{digits}g}"


def claim_of(figures: dict[str, Decimal]) -> Claim:
    """Return a claim that is worked out from its figures and rounded as printed ones are."""
    device = figures["hours"] * figures["watts"] / 1000
    facility = device * figures["pue"]
    return Claim(
        what="model",
        hours=stated(figures["hours"]),
        watts=stated(figures["watts"]),
        hardware="A100",
        pue=stated(figures["pue"]),
        energy=stated(printed(facility), "kWh"),
        boundary="facility",
        factor=stated(figures["factor"], "kg/kWh"),
        emissions=stated(printed(facility * figures["factor"]), "kg"),
        wue=stated(figures["wue"]),
        water=stated(printed(device * figures["wue"]), "L"),
        region="DE",
    )


def scaled(number: Stated | None, unit: str, times: str) -> Stated | None:
    if number is None:
        return None
    by = Decimal(times)
    return Stated(value=number.value * by, unit=unit, half=number.half * by)


def in_other_units(claim: Claim) -> Claim:
    """Return the same claim in MWh, t and g/kWh."""
    return Claim(
        **{
            **{name: getattr(claim, name) for name in Claim.__struct_fields__},
            "energy": scaled(claim.energy, "MWh", "0.001"),
            "emissions": scaled(claim.emissions, "t", "0.001"),
            "factor": scaled(claim.factor, "g/kWh", "1000"),
        }
    )


@given(FIGURES)
def test_a_consistent_claim_finds_nothing(figures):
    assert check_claims([claim_of(figures)]) == ()


@given(FIGURES, decimals("0.01", "100", 2), decimals("0.01", "100", 2))
def test_other_units_find_the_same(figures, more_energy, more_emissions):
    right = claim_of(figures)
    wrong = Claim(
        **{
            **{name: getattr(right, name) for name in Claim.__struct_fields__},
            "energy": scaled(right.energy, "kWh", str(more_energy)),
            "emissions": scaled(right.emissions, "kg", str(more_emissions)),
        }
    )
    assert codes(check_claims([in_other_units(wrong)])) == codes(check_claims([wrong]))


CELLS = st.sampled_from(
    ["0", "-5", "1e30", "1,000", "", "k", "0.0", "1.3M", "3 kg", "2 MWh", "≈7", "-", "nan"]
)
HEADER = (
    "model|GPU hours|hours|GPUs|power (W)|energy (kWh)|PUE|WUE|water (L)|kg CO2/kWh|CO2 (kg)|market-based (t)"
)
WIDTH = HEADER.count("|")


@given(st.lists(st.lists(CELLS, min_size=WIDTH, max_size=WIDTH), max_size=4))
def test_no_table_breaks_the_audit(cells):
    rows = [" | ".join([f"row {n}", *row]) for n, row in enumerate(cells)]
    table = "\n".join(
        [HEADER, "|".join(["---"] * (WIDTH + 1)), *rows, "Total | 5 | 3" + " | 1" * (WIDTH - 2)]
    )
    for finding in check_claims(claims_of(table, "t.md")):
        assert finding.line is not None


@given(st.text())
def test_no_text_breaks_the_reader(text):
    check_claims(claims_of(text, "t.md"))


@given(FIGURES, st.sampled_from([10, 100, 1000, 1_000_000]), st.booleans())
def test_a_power_of_ten_is_always_found(figures, times, too_much):
    right = claim_of(figures)
    by = str(times) if too_much else f"{1 / times:.10f}"
    wrong = Claim(
        **{
            **{name: getattr(right, name) for name in Claim.__struct_fields__},
            "emissions": scaled(right.emissions, "kg", by),
        }
    )
    assert "CL702" in codes(check_claims([wrong]))
