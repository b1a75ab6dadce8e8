"""Business cases for tests: one whose figures are checked by hand, and one of the demo study."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from carbonlens.domain.business import Business, OneOff, SavingRule, Scenario

ON_DEMAND = SavingRule(name="all", regime="on_demand")


def stated(**changes: Any) -> SavingRule:
    """Return a saving of 1 EUR a unit, whatever was measured."""
    fields: dict[str, Any] = {"name": "s", "of": "stated", "regime": "on_demand", "unit_cost": Decimal(1)}
    return SavingRule(**{**fields, **changes})


def golden(**changes: Any) -> Business:
    """Return 30,000 paid now against 14,000 a year for three years, at 8 %."""
    fields: dict[str, Any] = {
        "currency": "EUR",
        "horizon_months": 36,
        "discount_rate": 0.08,
        "start": "2027-01",
        "volume": {"expected": Scenario(units_per_month=14_000 / 12)},
        "savings": (stated(),),
        "one_offs": (OneOff(name="work", amount=Decimal(30_000)),),
        "compute_effort": "stated",
        "draws": 2_000,
    }
    return Business(**{**fields, **changes})


def measured(**changes: Any) -> Business:
    """Return a case of what was measured, at three volumes."""
    fields: dict[str, Any] = {
        "volume": {
            "low": Scenario(units_per_month=5e11),
            "expected": Scenario(units_per_month=1e12, growth=0.1),
            "high": Scenario(units_per_month=2e12, growth=0.2),
        },
        "savings": (ON_DEMAND,),
        "one_offs": (
            OneOff(
                name="work",
                hours=Decimal(60),
                hours_low=Decimal(40),
                hours_high=Decimal(120),
                rate=Decimal(95),
            ),
        ),
        "compute_effort": "ledger",
        "discount_low": 0.05,
        "discount_high": 0.12,
    }
    return golden(**{**fields, **changes})
