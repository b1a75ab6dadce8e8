"""Runs as claims: power, implied factors, components, places, old factors."""

from __future__ import annotations

from decimal import Decimal

from carbonlens.audit.runs import check_runs
from carbonlens.domain.factor import Factor
from carbonlens.domain.run import Reading, Run

YEAR_2025 = 1_750_000_000_000_000


def reading(component: str, joules: int, **more) -> Reading:
    return Reading(
        component=component, energy_j=Decimal(joules), boundary="device", grade="B", method="test", **more
    )


def run(run_id: str = "r1", **changes) -> Run:
    energy = (reading("cpu", 300_000), reading("gpu", 1_200_000, devices=("GPU-1",)), reading("ram", 60_000))
    fields = {
        "energy": energy,
        "duration_s": 3600.0,
        "zone": "FR",
        "hardware": "Xeon, NVIDIA A100",
        "start_us": YEAR_2025,
    }
    return Run(run_id=run_id, **{**fields, **changes})


def factor(period: str, *basis: str) -> Factor:
    return Factor(
        factor_id=f"f-{period}",
        zone="FR",
        period=period,
        method="location",
        basis=basis,
        value_kg_per_kwh=0.05,
        source="test",
    )


def codes(*runs: Run, factors=()) -> list[str]:
    return [f.code for f in check_runs(runs, factors)]


def test_a_plain_run_finds_nothing():
    assert codes(run()) == []


def test_a_gpu_beyond_its_design_power():
    hot = run(energy=(reading("cpu", 1), reading("gpu", 3_600_000, devices=("GPU-1",)), reading("ram", 1)))
    assert codes(hot) == ["CL709"]


def test_two_gpus_may_draw_twice_as_much():
    pair = reading("gpu", 2_700_000, devices=("GPU-1", "GPU-2"))
    assert codes(run(energy=(reading("cpu", 1), pair, reading("ram", 1)))) == []


def test_a_machine_beyond_any_server():
    wall = Reading(component="wall", energy_j=Decimal(360_000_000), boundary="it", grade="A", method="test")
    assert codes(run(energy=(wall,))) == ["CL709"]


def test_emissions_that_the_source_states_imply_a_factor():
    assert codes(run(emissions_reported_kg=Decimal("0.02"))) == []
    assert codes(run(emissions_reported_kg=Decimal("20"))) == ["CL701"]


def test_missing_components_are_told_once_for_all_runs():
    bare = [run(f"r{n}", energy=(reading("cpu", 300_000),)) for n in range(3)]
    (found,) = check_runs(bare)
    assert found.code == "CL712"
    assert "the GPU and memory" in found.message
    assert "2 more runs" in found.message


def test_a_run_without_energy_is_no_claim():
    assert codes(run(energy=())) == []


def test_a_place_must_be_known_unless_the_factor_is():
    assert codes(run(zone=None), run("r2", zone=None)) == ["CL710"]
    assert codes(run(zone=None, site="hq")) == []
    assert codes(run(zone=None), factors=[factor("2025")]) == []


def test_a_factor_that_is_years_older_than_the_run():
    assert codes(run(), factors=[factor("2019")]) == ["CL718"]
    assert codes(run(), factors=[factor("2023")]) == []


def test_factors_of_two_bases():
    assert codes(run(), factors=[factor("2025", "direct"), factor("2024", "life-cycle")]) == ["CL713"]


def of_a_place(number: int, zone: str | None, grams: str, kwh: str = "1.000000") -> Run:
    held = (reading("cpu", int(Decimal(kwh) * 3_600_000)),)
    kg = Decimal(grams) / 1000
    return run(f"r{number}", energy=held, zone=zone, emissions_reported_kg=kg, hardware=None)


def said_of_places(runs: list[Run]) -> list[str]:
    return [f.message for f in check_runs(runs) if f.code == "CL720"]


def test_one_factor_in_three_countries_is_a_default_and_stays_as_stated():
    """The mean of carbontracker: 294.21 g/kWh of the EU-28, wherever it ran (its issues 43 and 92)."""
    runs = [of_a_place(n, zone, "294.21") for n, zone in enumerate(("US", "NL", "TW"))]
    (message,) = said_of_places(runs)
    assert message.startswith("294 g/kWh in 3 countries (NL, TW, US)")
    assert sum(r.emissions_reported_kg for r in runs) == Decimal("0.88263")


def test_sources_round_energy_and_emissions():
    runs = [
        of_a_place(n, zone, grams, kwh)
        for n, (zone, grams, kwh) in enumerate(
            (("US", "294.21", "1"), ("NL", "7.355", "0.025"), ("TW", "883", "3.0"))
        )
    ]
    assert len(said_of_places(runs)) == 1


def test_factors_of_their_places_of_parts_of_a_country_and_of_unknown_places_are_no_default():
    zones = [("US", "369"), ("NL", "268"), ("TW", "502")]
    assert said_of_places([of_a_place(n, *z) for n, z in enumerate(zones)]) == []
    parts = [("US-CA", "369"), ("US-NY", "369"), ("US-TX", "369"), ("CA", "369")]
    assert said_of_places([of_a_place(n, *z) for n, z in enumerate(parts)]) == []
    assert said_of_places([of_a_place(n, None, "294.21") for n in range(5)]) == []
