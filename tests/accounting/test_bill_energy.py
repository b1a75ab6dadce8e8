"""Energy of bills: each kWh once, in any of six languages, and beside what meters counted."""

from decimal import Decimal

import pytest

from carbonlens.accounting.bill_energy import beside_meter, energy_once
from carbonlens.accounting.electricity_bill import bill_of, part_of, states_energy
from carbonlens.accounting.site_energy import SiteTerms
from carbonlens.accounting.standing import standing
from carbonlens.domain.estimate import Estimate
from carbonlens.domain.units import J_PER_KWH
from tests.accounting.test_electricity_bill import charge, metered

KWH = Decimal(1000) * J_PER_KWH


def line(name, sku=None, **fields):
    return charge(name, **{"energy_j": KWH, "sku": sku, "site": "lab", "invoice_id": "i", **fields})


@pytest.mark.parametrize(
    ("part", "words"),
    [
        ("tax", "Stromsteuer|Taxe|TVA|CSPE|Impuesto|IVA|Energiebelasting|btw|Imposta|accisa"),
        ("levy", "KWKG-Umlage|Konzessionsabgabe|CTA|Recargo|Heffing|Oneri di sistema"),
        ("network", "Netzentgelt|Netznutzung|Acheminement|TURPE|Réseau|Peajes|Netbeheer|Trasporto"),
        ("fixed", "Grundpreis|Grundgebühr|Abonnement|Término de potencia|Vastrecht|Quota fissa"),
        ("credit", "Gutschrift|Descuento|Korting|Sconto"),
        ("energy", "Arbeitspreis|Énergie|Consommation|Energía|Verbruik|Consumo|Red Energy|Netze Strom"),
    ],
)
def test_words_of_six_languages_tell_the_part_of_a_line(part, words):
    assert {word: part_of(line("c", word)) for word in words.split("|")} == dict.fromkeys(
        words.split("|"), part
    )


def test_the_same_kwh_over_one_time_and_invoice_count_once_and_that_is_said():
    lines = [line("b", "ZZ-2"), line("a", "Arbeitspreis"), line("c", "ZZ-1", billed=None)]
    once, said = energy_once(lines)
    assert [c.charge_id for c in once if states_energy(c)] == ["a"]
    assert [part_of(c) for c in once] == ["other", "energy", "other"]
    assert [f.code for f in said] == ["CL457"]
    assert "state again the 1000 kWh of Arbeitspreis" in said[0].message
    bill = bill_of("lab", once, "billed", (0, 100), (0, 100))
    assert bill.energy_kwh == 1000
    # No cost is lost with the energy.
    assert bill.totals()["EUR"].value == 20


@pytest.mark.parametrize(
    "other",
    [
        {"energy_j": KWH + 1},
        {"invoice_id": "j"},
        {"meter_id": "m2"},
        {"end_us": 99},
        {"tags": {"x_BillPart": "energy"}},
    ],
)
def test_other_kwh_times_invoices_or_meters_are_energy_of_their_own(other):
    once, said = energy_once([line("a", "HT"), line("b", "NT", **other)])
    assert (sum(states_energy(c) for c in once), said) == (2, ())


def stands(kwh, covers="site"):
    from msgspec.structs import replace

    one = replace(metered(), covers=covers, energy=Estimate(value=kwh * 3.6e6, unit="J"))
    return standing([one], [], {"lab": SiteTerms(site_id="lab")}, "p")["lab"]


@pytest.mark.parametrize(
    ("kwh", "covers", "severity"),
    [(980, "site", None), (200, "site", "warning"), (200, "ai", "info"), (1300, "ai", "warning")],
)
def test_a_bill_is_held_against_the_meter_of_its_site(kwh, covers, severity):
    bill = bill_of("lab", [line("a", "energy")], "billed", (0, 100), (0, 100))
    found = beside_meter(bill, stands(kwh, covers))
    assert (found and found.severity) == severity
    assert beside_meter(bill, None) is None
