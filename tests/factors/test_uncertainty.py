"""The default width of a yearly grid average, derived from two sources of one quantity (ADR 11)."""

import math
import statistics

import pytest

from carbonlens.accounting.factor_choice import DEFAULT_GRID_U_RELATIVE
from carbonlens.factors.store import bundled

MAD_TO_SIGMA = 1.4826
"""One sigma of a normal distribution in median absolute deviations."""


def ratios(year=None):
    """Return ln(Electricity Maps / Ember) of each zone and year that both have."""
    by_source = {"electricity-maps": {}, "ember": {}}
    for row in bundled().rows:
        held = by_source.get(row.factor_id.partition("/")[0])
        if held is not None and (year is None or row.period == year):
            held[row.subject, row.period] = float(row.value)
    maps, ember = by_source["electricity-maps"], by_source["ember"]
    return [math.log(maps[key] / ember[key]) for key in sorted(maps.keys() & ember.keys())]


def sigma_about_zero(values):
    return MAD_TO_SIGMA * statistics.median(map(abs, values))


def sigma_about_median(values):
    middle = statistics.median(values)
    return MAD_TO_SIGMA * statistics.median(abs(v - middle) for v in values)


def test_the_default_is_the_robust_spread_of_the_two_sources_in_2024():
    values = ratios("2024")
    assert len(values) == 87
    assert round(sigma_about_zero(values), 2) == DEFAULT_GRID_U_RELATIVE


def test_the_interval_it_gives_holds_nine_of_ten_countries():
    values = ratios("2024")
    inside = sum(abs(v) <= 1.96 * DEFAULT_GRID_U_RELATIVE for v in values) / len(values)
    assert inside == pytest.approx(0.91, abs=0.015)


def test_the_figures_of_the_adr():
    rows = {
        year: (
            len(v),
            *(round(x, 3) for x in (statistics.median(v), sigma_about_median(v), sigma_about_zero(v))),
        )
        for year, v in ((y, ratios(y)) for y in (None, "2022", "2023", "2024"))
    }
    assert rows == {
        None: (195, -0.033, 0.173, 0.170),
        "2022": (31, 0.028, 0.124, 0.127),
        "2023": (77, 0.001, 0.122, 0.123),
        "2024": (87, -0.095, 0.221, 0.243),
    }
