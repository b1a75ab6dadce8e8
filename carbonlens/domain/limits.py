"""Limits: the figures a run record may hold, so that every room can hold them and none is nonsense.

They are those of the ledger's decimal columns: 18 digits before the point for joules and
units. All bounds are exclusive. A figure beyond them is a wrong unit, not a large run. Amounts
of work, time, energy and error are not negative; a cost may be, as a credit.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from decimal import Decimal
from typing import Final

from carbonlens.domain.run import Reading, Run
from carbonlens.domain.units import US_PER_HOUR

MOST: Final = Decimal(10) ** 18
"""Joules of a reading, one sigma of it, and functional units of a run."""

LEAST_UNITS: Final = Decimal("1e-6")
"""Fewest units of a run that did some: the last place of their column. Fewer are a slip, and no divisor."""

MOST_S: Final = Decimal(10) ** 12
"""Seconds that a run took."""

MOST_KG: Final = Decimal(10) ** 15
"""Kilograms that a source states."""

MOST_MONEY: Final = Decimal(10) ** 16
"""Of a cost that a source states, in any currency."""

MOST_HOURS: Final = 366 * 24
"""Hours over which a run's energy is spread; that of a longer run stands in the hour of its start."""

_INT64: Final = 2**63

_BELOW: Final = {
    MOST: MOST - Decimal("5e-7"),
    MOST_S: MOST_S - Decimal("5e-7"),
    MOST_KG: MOST_KG - Decimal("5e-10"),
    MOST_MONEY: MOST_MONEY - Decimal("5e-9"),
}
"""Where rounding to the last place of its column takes a figure to the bound."""

_Figure = Decimal | float | int | None


def misfit(run: Run) -> str | None:
    """Return which figure of a run no ledger takes, and its bound; ``None`` where all fit."""
    return next(misfits(run), None)


def misfits(run: Run) -> Iterator[str]:
    """Yield each figure of a run that no ledger takes, and its bound; only that which no column holds."""
    reason = oversize(run)
    if reason is not None:
        yield reason
        return
    for name, value in _never_negative(run):
        if value is not None and value < 0:
            yield f"{name} is {value}: it cannot be negative"
    if has_too_few_units(run):
        yield f"units is {run.units}: a record holds {LEAST_UNITS:f} or more"


def has_too_few_units(run: Run) -> bool:
    """Tell whether a run states fewer units than their column holds, which an older record may."""
    return run.units is not None and math.isfinite(run.units) and 0 < run.units < LEAST_UNITS


def oversize(run: Run) -> str | None:
    """Return which figure of a run no column can hold, and its bound; ``None`` where all fit."""
    for name, value, most in _figures(run):
        if value is not None and not _is_below(value, most):
            return f"{name} is {value}: a finite number below {most:.0e} is needed"
    for name, whole in _wholes(run):
        if whole is not None and not -_INT64 <= whole < _INT64:
            return f"{name} is {whole}: it does not fit into 64 bits"
    return None


def is_overlong(run: Run) -> bool:
    """Tell whether a run's times lie further apart than its energy is spread."""
    if run.start_us is None or run.end_us is None:
        return False
    return run.end_us - run.start_us > MOST_HOURS * US_PER_HOUR


def stands_in_one_hour(run: Run) -> bool:
    """Tell whether an overlong run has energy without recorded hours: all of that is in one hour."""
    recorded = {h.component for h in run.energy_by_hour}
    return is_overlong(run) and (not run.energy or any(r.component not in recorded for r in run.energy))


def _is_below(value: Decimal | float, most: Decimal) -> bool:
    # A comparison of what is no number raises where one side is a Decimal.
    finite = value.is_finite() if isinstance(value, Decimal) else math.isfinite(value)
    return finite and -_BELOW[most] < value < _BELOW[most]


def _figures(run: Run) -> Iterator[tuple[str, _Figure, Decimal]]:
    yield "units", run.units, MOST
    yield "duration_s", run.duration_s, MOST_S
    yield "emissions_reported_kg", run.emissions_reported_kg, MOST_KG
    if run.cost is not None:
        yield "cost", run.cost.amount, MOST_MONEY
    for reading in run.energy:
        yield from _of_reading(reading)
    for hour in run.energy_by_hour:
        yield "energy_by_hour", hour.energy_j, MOST


def _never_negative(run: Run) -> Iterator[tuple[str, _Figure]]:
    yield "units", run.units
    yield "duration_s", run.duration_s
    for reading in run.energy:
        yield from ((name, value) for name, value, _ in _of_reading(reading))
    for hour in run.energy_by_hour:
        yield "energy_by_hour", hour.energy_j


def _of_reading(reading: Reading) -> Iterator[tuple[str, _Figure, Decimal]]:
    name = f"energy of {reading.component}"
    yield name, reading.energy_j, MOST
    yield f"u_random_j of {reading.component}", reading.u_random_j, MOST
    for source, sigma in reading.u_by_source_j.items():
        yield f"u_by_source_j of {source}", sigma, MOST


def _wholes(run: Run) -> Iterator[tuple[str, int | None]]:
    yield "start_us", run.start_us
    yield "end_us", run.end_us
    yield "model_bytes", run.model_bytes
    yield "repeat", run.repeat
    for hour in run.energy_by_hour:
        yield "hour_utc of energy_by_hour", hour.hour_utc
