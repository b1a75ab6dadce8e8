"""What a business case comes to: flows, present values, returns, risk. Frozen records, no arithmetic."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import msgspec

from carbonlens.domain.business import Business, Regime, ScenarioName
from carbonlens.domain.comparison import BreakEven
from carbonlens.domain.estimate import Estimate
from carbonlens.domain.finding import Finding
from carbonlens.domain.money import Money

RateOutcome = Literal["one", "none", "several"]
PriceName = Literal["electricity_price", "machine_price", "own"]
"""Which trajectory a stream follows; ``own`` is its own change a year."""


class InternalRates(msgspec.Struct, frozen=True, kw_only=True):
    """The rates a year at which a flow list is worth nothing.

    Attributes:
        rates: All that were found, ascending.
        reason: Why there is none, or what several mean; empty for one.
    """

    rates: tuple[float, ...]
    outcome: RateOutcome
    reason: str = ""

    @property
    def rate(self) -> float | None:
        """The only one; ``None`` where there is none or several, as none of several is the return."""
        return self.rates[0] if self.outcome == "one" else None


class Stream(msgspec.Struct, frozen=True, kw_only=True):
    """One part of what a unit saves, and from when on it is cash.

    Attributes:
        name: Of its rule.
        what: ``electricity``, ``machine``, ``cost``, ``stated`` or ``customers``.
        regime: Of its rule; ``None`` for what customers pay.
        unit_cost: Value saved per functional unit at today's prices; its unit is the currency.
        price: Trajectory it follows.
        change_per_year: Of ``own``.
        cash_from: First month, from 1, in which it is cash; ``None`` if never.
    """

    name: str
    what: Literal["electricity", "machine", "cost", "stated", "customers"]
    regime: Regime | None
    unit_cost: Estimate
    price: PriceName
    change_per_year: float = 0.0
    cash_from: int | None


class OneOffLine(msgspec.Struct, frozen=True, kw_only=True):
    """One payment before the first month.

    Attributes:
        exact: The exact amount; ``None`` for what was measured.
        low, high: Least and most, where a range is stated.
    """

    name: str
    kind: Literal["stated", "hours", "compute"]
    amount: Estimate
    exact: Money | None = None
    low: float | None = None
    high: float | None = None
    source: str | None = None


class ScenarioResult(msgspec.Struct, frozen=True, kw_only=True):
    """What one volume comes to over the horizon.

    Attributes:
        units: Functional units over the horizon.
        cash: Savings that are cash, not discounted; the one-offs are no part of them.
        cash_value: The same at its worth now.
        non_cash_value: Worth now of what is saved and is not cash.
        npv: Net present value: cash alone.
        flows: What is paid now, then the net cash of each month.
        payback_years, discounted_payback_years: ``None`` if not within the horizon, or unknown.
        energy_j: Saved, at the boundary of the comparison.
        carbon_location, carbon_market, carbon_embodied: Worth now of the emissions at the internal
            price; ``None`` without one. No part of ``npv``.
    """

    name: ScenarioName
    units: float
    cash: Estimate
    cash_value: Estimate
    non_cash_value: Estimate
    npv: Estimate
    flows: tuple[float, ...]
    rates: InternalRates | None
    payback_years: float | None
    discounted_payback_years: float | None
    energy_j: Estimate
    emissions_location_kg: Estimate
    emissions_market_kg: Estimate
    embodied_kg: Estimate
    carbon_location: Estimate | None = None
    carbon_market: Estimate | None = None
    carbon_embodied: Estimate | None = None


class YearEnd(msgspec.Struct, frozen=True, kw_only=True):
    """The expected case with each year's flows at its end, to compare with a spreadsheet."""

    npv: float | None
    rates: InternalRates | None
    payback_years: float | None
    discounted_payback_years: float | None


class TornadoBar(msgspec.Struct, frozen=True, kw_only=True):
    """NPV of the expected case with one input at either end of its range, the others as they are.

    Attributes:
        key: Stable name for ids.
        label: In words.
        at_low, at_high: The ends of the input, in words.
        npv_low, npv_high: NPV there; the input's low end need not be the lower NPV.
    """

    key: str
    label: str
    at_low: str
    at_high: str
    npv_low: float
    npv_high: float

    @property
    def swing(self) -> float:
        """How far apart both are."""
        return abs(self.npv_high - self.npv_low)


class MonteCarlo(msgspec.Struct, frozen=True, kw_only=True):
    """Distribution of the NPV over draws of all inputs that have a range.

    Attributes:
        low, high: Between which the middle 95 % of the draws lie.
        positive: Share of the draws above zero.
        seed, draws, generator: With which the same figures come again.
    """

    low: float
    median: float
    high: float
    positive: float
    seed: int
    draws: int
    generator: str


class DeviceUse(msgspec.Struct, frozen=True, kw_only=True):
    """What one device does a day, one way.

    Attributes:
        name: Of the way.
        energy_per_day_j: For its functional units, idle power of the part in it.
        duty_cycle: Share of the day for which the part computes; ``None`` when unknown.
        battery_days: Days that a full battery lasts; unknown without a battery.
    """

    name: str
    energy_per_day_j: Estimate
    duty_cycle: float | None
    battery_days: Estimate


class EmbeddedResult(msgspec.Struct, frozen=True, kw_only=True):
    """What changes on the customers' devices; emissions are scope 3 category 11.

    Attributes:
        saved_per_device_j: From the grid, over the life of one device.
        battery_gain: Battery days after over before, less 1.
        is_of_part: Battery days are of the compared part alone.
    """

    before: DeviceUse
    after: DeviceUse
    saved_per_day_j: Estimate
    saved_per_device_j: Estimate
    battery_gain: Estimate
    is_of_part: bool


class BusinessResult(msgspec.Struct, frozen=True, kw_only=True):
    """A business case, computed.

    Attributes:
        unit: What the volume counts.
        adopted: Steps whose savings are counted; empty if none is adopted.
        is_at_most: A cost is not known, so NPV, cash and returns are at most what is stated.
        year_end: Of the expected case.
        unranged: Inputs without a stated range: in no interval, in no bar.
        monte_carlo: ``None`` where the saving has no interval.
        cost_of_delay: What starting one month later costs, the end of the horizon kept.
        break_even: Units in the first month at which the NPV of the expected case is zero.
    """

    business: Business
    study: str
    unit: str
    adopted: tuple[str, ...]
    is_at_most: bool
    streams: tuple[Stream, ...]
    one_offs: tuple[OneOffLine, ...]
    one_off: Estimate
    scenarios: Mapping[ScenarioName, ScenarioResult]
    year_end: YearEnd
    tornado: tuple[TornadoBar, ...]
    unranged: tuple[str, ...]
    monte_carlo: MonteCarlo | None
    cost_of_delay: Estimate
    break_even: BreakEven
    embedded: EmbeddedResult | None
    findings: tuple[Finding, ...]

    @property
    def expected(self) -> ScenarioResult:
        """The expected volume."""
        return self.scenarios["expected"]
