"""Business case as its owner states it: volumes, money, regimes of the savings, horizon, rate.

Nothing in it is measured; what a step saves comes from a comparison. Rates are effective a year,
in real terms (without inflation) and before tax. Dates are ISO texts, months ``2026-01``.
"""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import Final, Literal

import msgspec

Regime = Literal["on_demand", "committed", "reserved", "owned"]
"""How what is saved was bought, which decides whether less use means less money out."""

Part = Literal["cost", "electricity", "machine", "stated"]
"""What of a comparison's saving a rule is about: all of its cost, electricity or machine hours in
it, or an amount per unit that the user states."""

ScenarioName = Literal["low", "expected", "high"]
SCENARIOS: Final[tuple[ScenarioName, ...]] = ("low", "expected", "high")

MONTHS_PER_YEAR: Final = 12
MOST_MONTHS: Final = 600
"""Longest horizon, 50 years: more is a slip of the pen."""


class Scenario(msgspec.Struct, frozen=True, kw_only=True):
    """How many functional units are expected.

    Attributes:
        units_per_month: In the first month.
        growth: Relative change a year, effective, spread evenly over its months.
    """

    units_per_month: float
    growth: float = 0.0


class Trajectory(msgspec.Struct, frozen=True, kw_only=True):
    """How a price or a grid changes against that of the comparison.

    Attributes:
        change_per_year: Relative change a year, effective, spread evenly over its months.
        low, high: Least and most change a year; ``None`` where no range is stated.
        index: Level by calendar year, the comparison's being 1, instead of a change.
    """

    change_per_year: float = 0.0
    low: float | None = None
    high: float | None = None
    index: Mapping[str, float] = {}  # a frozen record's default is never mutated


class SavingRule(msgspec.Struct, frozen=True, kw_only=True):
    """What part of a saving becomes cash, and when.

    Attributes:
        of: Part of the comparison's saving.
        until: Last day of a commitment or reservation; from the month after its month on, less use is
            less money.
        unit_cost: Amount saved per functional unit, for ``of = "stated"``.
        electricity_cost: Electricity in it, which is the cash of owned hardware.
        change_per_year: Relative change of a stated amount a year.
        u_relative: One relative sigma of a stated amount.
        purchase_amount: Money of a purchase that is no longer made on ``purchase_date``.
        deferred_to: Day on which it is made after all; never, if ``None``.
    """

    name: str
    of: Part = "cost"
    regime: Regime
    until: str | None = None
    unit_cost: Decimal | None = None
    electricity_cost: Decimal | None = None
    change_per_year: float = 0.0
    u_relative: float = 0.0
    purchase_amount: Decimal | None = None
    purchase_date: str | None = None
    deferred_to: str | None = None
    currency: str | None = None
    source: str | None = None


class OneOff(msgspec.Struct, frozen=True, kw_only=True):
    """Money spent once, before the first month: an amount, or hours at a rate.

    Attributes:
        hours_low, hours_high: Least and most hours; ``None`` where no range is stated.
        rate: Of an hour.
        u_relative: One relative sigma of an amount.
    """

    name: str
    amount: Decimal | None = None
    hours: Decimal | None = None
    hours_low: Decimal | None = None
    hours_high: Decimal | None = None
    rate: Decimal | None = None
    u_relative: float = 0.0
    currency: str | None = None
    source: str | None = None

    @property
    def is_of_hours(self) -> bool:
        """Whether it is hours at a rate."""
        return self.hours is not None

    @property
    def total(self) -> Decimal:
        """The exact amount."""
        if self.hours is not None and self.rate is not None:
            return self.hours * self.rate
        return self.amount or Decimal(0)


class RunningCost(msgspec.Struct, frozen=True, kw_only=True):
    """Money spent every month for what was changed: a licence, a second model to serve."""

    name: str
    amount_per_month: Decimal
    currency: str | None = None
    source: str | None = None


class CarbonPrice(msgspec.Struct, frozen=True, kw_only=True):
    """An internal price of emissions; no cash, and never a part of NPV."""

    amount_per_tonne: Decimal
    change_per_year: float = 0.0
    currency: str | None = None
    source: str | None = None


class Powered(msgspec.Struct, frozen=True, kw_only=True):
    """One way to compute a functional unit on a device.

    Attributes:
        power_w: While it computes.
        seconds_per_unit: Time that one unit takes.
        idle_power_w: Of the same part for the rest of the day.
        u_relative: One relative sigma of both powers.
    """

    name: str
    power_w: float
    seconds_per_unit: float
    idle_power_w: float = 0.0
    u_relative: float = 0.0


class Embedded(msgspec.Struct, frozen=True, kw_only=True):
    """Devices at customers; the volume of the case counts devices that are sold then.

    Attributes:
        units_per_day: Functional units that one device does a day.
        life_years: For which a device is used.
        battery_wh: Of a full battery; ``None`` without one.
        usable_share: Share of it that is used before it is charged.
        rest_power_w: Mean power of the rest of the device; ``None`` when nobody states it.
        charging_efficiency: Energy in the battery per energy from the grid; ``None`` when unknown.
        before, after: Stated powers; what the comparison measured where ``None``.
    """

    units_per_day: float
    life_years: float
    battery_wh: float | None = None
    usable_share: float = 1.0
    rest_power_w: float | None = None
    charging_efficiency: float | None = None
    before: Powered | None = None
    after: Powered | None = None


class Business(msgspec.Struct, frozen=True, kw_only=True):
    """Everything a business case states beside a comparison.

    Attributes:
        currency: ISO 4217 code of all its money.
        horizon_months: Months that are looked at.
        discount_rate: Effective a year, real, before tax; 0.08 is 8 %.
        discount_low, discount_high: Least and most; ``None`` where no range is stated.
        start: First month; the one-offs are paid just before it.
        volume: By scenario; ``expected`` at least.
        compute_effort: ``ledger`` counts what making the steps took as the ledger holds it;
            ``stated`` counts none of it, because the one-offs hold it.
        seed: Of the Monte-Carlo draws.
        draws: How many.
    """

    currency: str
    horizon_months: int
    discount_rate: float
    start: str
    volume: Mapping[ScenarioName, Scenario]
    savings: tuple[SavingRule, ...]
    discount_low: float | None = None
    discount_high: float | None = None
    one_offs: tuple[OneOff, ...] = ()
    running_costs: tuple[RunningCost, ...] = ()
    electricity_price: Trajectory = Trajectory()
    machine_price: Trajectory = Trajectory()
    grid: Trajectory = Trajectory()
    market: Trajectory = Trajectory()
    carbon_price: CarbonPrice | None = None
    embedded: Embedded | None = None
    compute_effort: Literal["ledger", "stated"] = "ledger"
    seed: int = 20261129
    draws: int = 10_000

    @property
    def expected(self) -> Scenario:
        """The expected volume."""
        return self.volume["expected"]
