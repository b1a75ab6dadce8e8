"""Monthly flows of a business case, and their worth now, for one set of inputs or thousands.

Month ``k`` stands at its end. Volumes and prices of the first month are as stated and change
evenly: ``level * (1 + change a year) ** ((k - 1) / 12)``. A flow of month ``k`` is worth
``flow / (1 + rate) ** (k / 12)`` now, with an effective rate a year.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from carbonlens.compare.business_streams import Flow
from carbonlens.domain.business import MONTHS_PER_YEAR, Business, Scenario, Trajectory
from carbonlens.domain.business_result import Stream
from carbonlens.domain.estimate import Estimate, add
from carbonlens.domain.finding import Finding
from carbonlens.domain.units import KG_PER_TONNE

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Numbers = NDArray[np.float64]


class Inputs(NamedTuple):
    """What may change from case to case: each a number, or a column of them.

    Attributes:
        units: In the first month.
        growth: Of the units a year.
        electricity, machine: Change of the prices a year.
        rate: Discount rate a year.
    """

    units: Any
    growth: Any
    electricity: Any
    machine: Any
    rate: Any


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """What of a case does not change: streams, dated flows and the months.

    Attributes:
        dated: Flows of stated months, whatever the volume.
        running: Paid every month.
    """

    business: Business
    streams: tuple[Stream, ...]
    dated: tuple[Flow, ...] = ()
    running: float = 0.0

    @property
    def months(self) -> int:
        """Months of the horizon."""
        return self.business.horizon_months


class Weights(NamedTuple):
    """What one unit's saving is multiplied by, a stream a column.

    Attributes:
        cash, cash_now: Units over the months in which it is cash, as they come and at their worth now.
        all_now: At their worth now, cash or not.
        fixed_now: Worth now of what does not go with the volume.
    """

    cash: Numbers
    cash_now: Numbers
    all_now: Numbers
    fixed_now: Numbers


def inputs_of(business: Business, scenario: Scenario) -> Inputs:
    """Return the inputs as the case states them, at one volume."""
    return Inputs(
        units=scenario.units_per_month,
        growth=scenario.growth,
        electricity=business.electricity_price.change_per_year,
        machine=business.machine_price.change_per_year,
        rate=business.discount_rate,
    )


def weights(plan: Plan, inputs: Inputs) -> Weights:
    """Return the weights of every stream, a row for each of the inputs.

    Args:
        plan: The case.
        inputs: Numbers, or columns of equal length.
    """
    import numpy as np

    place = np.arange(plan.months, dtype=float)[None, :]
    columns = Inputs(*(np.atleast_1d(np.asarray(i, dtype=float))[:, None] for i in inputs))
    volume = units_at(columns.units, columns.growth, place)
    worth = (1.0 + columns.rate) ** (-(place + 1.0) / MONTHS_PER_YEAR)
    volume, worth = np.broadcast_arrays(volume, worth)
    cash, cash_now, all_now = [], [], []
    for stream in plan.streams:
        used = volume * level_at(plan, stream, columns, place)
        is_cash = np.zeros_like(place) if stream.cash_from is None else place + 1.0 >= stream.cash_from
        cash.append((used * is_cash).sum(axis=1))
        cash_now.append((used * is_cash * worth).sum(axis=1))
        all_now.append((used * worth).sum(axis=1))
    fixed = np.full(plan.months, -plan.running)
    for month, amount in plan.dated:
        fixed[month - 1] += amount
    rows = volume.shape[0]
    return Weights(
        cash=_columns(cash, rows),
        cash_now=_columns(cash_now, rows),
        all_now=_columns(all_now, rows),
        fixed_now=(worth * fixed[None, :]).sum(axis=1),
    )


def units_at(units: Any, growth: Any, place: Any) -> Any:  # noqa: ANN401  # numbers or arrays alike
    """Return the units of months: ``units * (1 + growth) ** (months / 12)``.

    Args:
        units: Of the first month.
        growth: Relative change a year.
        place: Months after the first.
    """
    return units * (1.0 + growth) ** (place / MONTHS_PER_YEAR)


def level_at(plan: Plan, stream: Stream, inputs: Inputs, place: Numbers) -> Any:  # noqa: ANN401  # likewise
    """Return the level of a stream's price in months, 1 at the first of the comparison's."""
    if stream.price == "own":
        return (1.0 + stream.change_per_year) ** (place / MONTHS_PER_YEAR)
    is_power = stream.price == "electricity_price"
    trajectory = plan.business.electricity_price if is_power else plan.business.machine_price
    if trajectory.index:
        return levels(trajectory, plan.business.start, plan.months)[None, :]
    change = inputs.electricity if is_power else inputs.machine
    return (1.0 + change) ** (place / MONTHS_PER_YEAR)


def levels(trajectory: Trajectory, start: str, months: int) -> Numbers:
    """Return the level of a trajectory in each month, the comparison's being 1.

    After the last year of an index its level stays.

    Args:
        trajectory: Change a year, or an index by calendar year.
        start: First month.
        months: How many.
    """
    import numpy as np

    if not trajectory.index:
        change: Numbers = (1.0 + trajectory.change_per_year) ** (np.arange(months) / MONTHS_PER_YEAR)
        return change
    years = sorted(trajectory.index)
    first = int(start[:4]) * MONTHS_PER_YEAR + int(start[5:7]) - 1
    held = []
    for month in range(months):
        year = (first + month) // MONTHS_PER_YEAR
        known = [y for y in years if int(y) <= year] or years[:1]
        held.append(trajectory.index[known[-1]])
    return np.asarray(held)


def about_indices(business: Business) -> tuple[Finding, ...]:
    """Return a Finding for each index that ends before the horizon does: its last level stays."""
    end = (
        int(business.start[:4]) + (int(business.start[5:7]) + business.horizon_months - 2) // MONTHS_PER_YEAR
    )
    named = (
        ("electricity_price", business.electricity_price),
        ("machine_price", business.machine_price),
        ("grid", business.grid),
        ("market", business.market),
    )
    return tuple(
        Finding(
            code="CL849",
            severity="info",
            message=f"the index of {name} ends in {max(t.index)}, the horizon in {end}: its last level stays",
            mend=f"state the later years in [trajectory.{name}] index",
            subject=name,
        )
        for name, t in named
        if t.index and int(max(t.index)) < end
    )


def flows_of(plan: Plan, inputs: Inputs, one_off: float) -> tuple[float, ...]:
    """Return what is paid now, then the net cash of every month, none of it discounted.

    Args:
        plan: The case, with known unit costs.
        inputs: Numbers.
        one_off: Paid before the first month.
    """
    import numpy as np

    place = np.arange(plan.months, dtype=float)[None, :]
    columns = Inputs(*(np.atleast_1d(np.asarray(i, dtype=float))[:, None] for i in inputs))
    net = np.full(plan.months, -plan.running)
    for month, amount in plan.dated:
        net[month - 1] += amount
    volume = units_at(columns.units, columns.growth, place)[0]
    for stream in plan.streams:
        if stream.cash_from is None:
            continue
        level = np.broadcast_to(level_at(plan, stream, columns, place), (1, plan.months))[0]
        net = net + volume * level * (place[0] + 1.0 >= stream.cash_from) * (stream.unit_cost.value or 0.0)
    return (0.0 - one_off, *(float(n) for n in net))


def summed(streams: Sequence[Stream], by: Numbers, currency: str) -> Estimate:
    """Return the sum of unit costs times their weights; unknown where one of them is.

    Args:
        streams: Parts of a unit's saving.
        by: A weight for each.
        currency: Of the sum.
    """
    parts = [s.unit_cost.scale(float(w), currency) for s, w in zip(streams, by, strict=True) if w]
    if not parts:
        return Estimate(value=0.0, unit=currency, signed=True, bounds=(0.0, 0.0))
    return whole(parts, currency)


def whole(parts: Sequence[Estimate], unit: str) -> Estimate:
    """Return a sum of differences: of parts that may be negative no known few bound the rest.

    Args:
        parts: At least one.
        unit: Of the parts.
    """
    if any(p.value is None or p.state == "unknown" for p in parts):
        return Estimate(value=None, unit=unit, state="unknown", signed=True)
    return msgspec.structs.replace(add(parts, unit), signed=True, state="known")


def volume_weights(business: Business, scenario: Scenario) -> Mapping[str, float]:
    """Return what a unit's energy and emissions are multiplied by over the horizon, by amount.

    Args:
        business: With the trajectories of the grid.
        scenario: One volume.
    """
    import numpy as np

    volume = units_at(scenario.units_per_month, scenario.growth, np.arange(business.horizon_months))
    held = {"units": volume.sum()}
    for name, trajectory in (("location", business.grid), ("market", business.market)):
        moved = _moved(business, trajectory)
        held[name] = (volume * moved).sum()
        held[f"{name}_priced"] = _priced(business, volume * moved)
    held["embodied_priced"] = _priced(business, volume)
    return {name: float(value) for name, value in held.items()}


def life_levels(trajectory: Trajectory, start: str, months: int, life_years: float) -> Numbers:
    """Return the mean level over the life of a device that is sold in each month.

    Args:
        trajectory: Of a grid.
        start: First month.
        months: How many months of sale.
        life_years: For which a device is used.
    """
    import numpy as np

    life = max(round(life_years * MONTHS_PER_YEAR), 1)
    level = levels(trajectory, start, months + life - 1)
    means: Numbers = np.convolve(level, np.full(life, 1.0 / life), mode="valid")
    return means


def _moved(business: Business, trajectory: Trajectory) -> Numbers:
    """Return the level of a grid by month; for devices against that of the first which are sold."""
    if business.embedded is None:
        return levels(trajectory, business.start, business.horizon_months)
    # The life of a device of the first month is in what a device saves already.
    means = life_levels(trajectory, business.start, business.horizon_months, business.embedded.life_years)
    moved: Numbers = means / means[0]
    return moved


def _priced(business: Business, amounts: Numbers) -> Any:  # noqa: ANN401  # a number of numpy
    """Return the worth now of monthly kilograms at the internal price, for 1 kg a unit."""
    import numpy as np

    price = business.carbon_price
    if price is None:
        return 0.0
    place = np.arange(business.horizon_months)
    level = (1.0 + price.change_per_year) ** (place / MONTHS_PER_YEAR)
    worth = (1.0 + business.discount_rate) ** (-(place + 1.0) / MONTHS_PER_YEAR)
    return (amounts * level * worth).sum() * float(price.amount_per_tonne) / KG_PER_TONNE


def _columns(of_streams: list[Numbers], rows: int) -> Numbers:
    import numpy as np

    return np.column_stack(of_streams) if of_streams else np.zeros((rows, 0))
