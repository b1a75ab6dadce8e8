"""Limits: the largest figures a run record may hold, so that every room can hold them too.

They are those of the ledger's decimal columns: 18 digits before the point for joules and
units. All bounds are exclusive. A figure beyond them is a wrong unit, not a large run.
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
    """Return which figure of a run no ledger can hold, and its bound; ``None`` where all fit."""
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
