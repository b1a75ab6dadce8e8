"""Spreading: over which UTC hours a run's energy and units lie, and what of them in each."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal, localcontext
from itertools import pairwise
from typing import Final

from carbonlens.domain.limits import is_overlong
from carbonlens.domain.run import Run
from carbonlens.domain.units import US_PER_HOUR

VERSION: Final = 3
"""Of the columns; stands in ``row_schema``. Batches without that column are of version 1.

Version 2 had what is unknown in a run's first hour only, and split a run over all of its hours,
however many.
"""

_UNKNOWN_IN_EACH_HOUR: Final = 3
"""Version from which a part of unknown energy stands in every hour of its run."""

_MICRO: Final = Decimal("0.000001")

Weights = Sequence[tuple[int | None, Decimal]]
"""Hours and what of a run's energy fell into each, in any unit."""


def spread(amount: Decimal, weights: Weights) -> list[Decimal]:
    """Split an amount by weights, to a millionth; the parts sum to it exactly.

    Running sums are rounded, not the parts. Without any weight the first takes all.
    """
    amount = amount.quantize(_MICRO)
    if len(weights) == 1:
        return [amount]
    whole = sum((weight for _, weight in weights), Decimal(0))
    parts: list[Decimal] = []
    given = seen = Decimal(0)
    with localcontext(prec=80):
        for place, (_, weight) in enumerate(weights):
            seen += weight
            last = place == len(weights) - 1 or not whole
            upto = amount if last else (amount * seen / whole).quantize(_MICRO)
            parts.append(upto - given)
            given = upto
    return parts


def hours_of(run: Run, component: str | None) -> Weights:
    """Return the hours a component's energy fell into, and what of it fell into each.

    As recorded; where the source gives no hours, in proportion to the time the
    run spent in each; without an end, or with one more than ``MOST_HOURS`` away, all
    of it in the hour of the start.
    """
    return hours_in(run, component, VERSION)


def hours_in(run: Run, component: str | None, version: int) -> Weights:
    """Return the same as a version of the columns has it."""
    recorded = [(h.hour_utc, h.energy_j) for h in run.energy_by_hour if h.component == component]
    if recorded and (len(recorded) == 1 or any(weight for _, weight in recorded)):
        return sorted(recorded)
    if run.start_us is None:
        return [(None, Decimal(1))]
    first = run.start_us // US_PER_HOUR
    whole = version >= _UNKNOWN_IN_EACH_HOUR and is_overlong(run)
    if run.end_us is None or run.end_us <= run.start_us or whole:
        return [(first, Decimal(1))]
    last = (run.end_us - 1) // US_PER_HOUR
    edges = [run.start_us, *(h * US_PER_HOUR for h in range(first + 1, last + 1)), run.end_us]
    return [(first + i, Decimal(b - a)) for i, (a, b) in enumerate(pairwise(edges))]


def hours_unknown(run: Run, component: str | None, version: int) -> Weights:
    """Return the hours in which a part of unknown energy stands: each would have had some of it."""
    hours = hours_in(run, component, version)
    return hours if version >= _UNKNOWN_IN_EACH_HOUR else hours[:1]


def shares_of(weights: Weights) -> list[float]:
    """Return each hour's share of the whole; without any weight the first has all."""
    whole = sum((weight for _, weight in weights), Decimal(0))
    if len(weights) == 1 or not whole:
        return [1.0] + [0.0] * (len(weights) - 1)
    return [float(weight / whole) for _, weight in weights]
