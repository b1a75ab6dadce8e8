"""Initiatives beside a statement: those in effect, claimed and verified apart, in no sum."""

import pytest

from carbonlens.accounting.initiative_lines import in_effect, initiative_figures, savings
from carbonlens.domain.initiative import Initiative, Saving

ONE = Initiative(
    initiative_id="int8",
    title="Serve in int8",
    start="2026-02-01",
    end="2026-05-31",
    claimed=Saving(energy_kwh=9000, emissions_location_kg=3000),
    verified=Saving(energy_kwh=7600),
    verified_by="an audit",
)


@pytest.mark.parametrize(
    ("start", "end", "is_in"),
    [
        ("2026-01-01", "2026-02-01", False),
        ("2026-01-01", "2026-02-02", True),
        ("2026-05-31", "2026-06-01", True),
        ("2026-06-01", "2026-07-01", False),
    ],
)
def test_an_initiative_is_of_the_periods_of_its_days(start, end, is_in):
    assert bool(in_effect([ONE], start, end)) is is_in


def test_a_planned_one_has_no_effect_and_one_without_an_end_goes_on():
    from msgspec.structs import replace

    assert in_effect([replace(ONE, status="planned")], "2026-03-01", "2026-04-01") == ()
    assert in_effect([replace(ONE, end=None)], "2030-01-01", "2031-01-01")


def test_what_nobody_states_is_no_figure():
    figures = {f.figure_id: f.estimate for f in initiative_figures([ONE], "statement.2026Q1")}
    at = "statement.2026Q1.initiative.int8"
    assert {name: e.value for name, e in figures.items()} == {
        f"{at}.claimed.energy_kwh": 9000,
        f"{at}.claimed.emissions_location_kg": 3000,
        f"{at}.verified.energy_kwh": 7600,
    }
    assert savings(None) == {}
    assert savings(Saving()) == {}
