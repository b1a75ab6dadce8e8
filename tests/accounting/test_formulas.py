"""One formula, any kind of number."""

from __future__ import annotations

from decimal import Decimal

import numpy as np
import pytest

from carbonlens.accounting import formulas


@pytest.mark.parametrize(
    ("formula", "a", "b", "expected"),
    [
        (formulas.facility_kwh, 100.0, 1.2, 120.0),
        (formulas.emissions_kg, 120.0, 0.4, 48.0),
        (formulas.electricity_cost, 120.0, 0.25, 30.0),
        (formulas.machine_cost, 8.0, 0.05, 0.4),
        (formulas.embodied_kg, 8.0, 0.002, 0.016),
    ],
)
def test_products_of_scalars_and_arrays(formula, a, b, expected):
    assert formula(a, b) == pytest.approx(expected)
    assert formula(np.array([a, 2 * a]), b) == pytest.approx(np.array([expected, 2 * expected]))


def test_conversions():
    assert formulas.energy_kwh(3_600_000.0) == 1.0
    assert formulas.core_hours(7200.0) == 2.0


def test_decimals_stay_exact():
    assert formulas.facility_kwh(formulas.energy_kwh(Decimal(3_600_000)), Decimal("1.1")) == Decimal("1.1")


def test_the_same_line_serves_a_column_expression():
    nw = pytest.importorskip("narwhals", reason="narwhals is of an extra that is not installed")
    pd = pytest.importorskip("pandas", reason="pandas is of an extra that is not installed")
    frame = nw.from_native(pd.DataFrame({"energy_j": [3.6e6, 7.2e6]}))
    kwh = formulas.facility_kwh(formulas.energy_kwh(nw.col("energy_j")), 1.5)
    assert frame.select(kwh.alias("kwh"))["kwh"].to_list() == pytest.approx([1.5, 3.0])
