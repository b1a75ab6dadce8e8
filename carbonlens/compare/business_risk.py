"""What a business case hangs on: one input at a time (tornado), and all together (Monte Carlo).

Errors of the saving are those of the comparison, by their named sources; a source that stands in
the saving and in the effort moves both. Least and most of a stated range (volume, discount rate,
price trajectories, hours) are its ends; draws between them are triangular with the expected value
as their middle, as likely below as above.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec

from carbonlens.compare.business_flows import Inputs, Plan, inputs_of, weights
from carbonlens.domain.business import Business, Trajectory
from carbonlens.domain.business_result import MonteCarlo, OneOffLine, TornadoBar
from carbonlens.domain.estimate import Estimate
from carbonlens.domain.units import Z_95

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Numbers = NDArray[np.float64]

GENERATOR: Final = "PCG64"
_AT_ONCE: Final = 1_000
"""Draws of which the months are held in memory together."""

_NEGLIGIBLE: Final = 1e-3
"""Share of the one-offs below which nobody asks how sure one of them is."""

_MIDDLE: Final = (0.025, 0.5, 0.975)
SCATTER: Final = "scatter"
"""Key of what the rounds of the measurement leave open."""

_WORDS: Final = {
    "volume": "volume",
    "rate": "discount rate",
    "electricity": "electricity price a year",
    "machine": "machine price a year",
}


class Range(NamedTuple):
    """Ends of an input that the case states.

    Attributes:
        key: Stable name.
        label: In words.
        low, high: All inputs with this one at either end.
    """

    key: str
    label: str
    at_low: str
    at_high: str
    low: Inputs
    high: Inputs


class Case(msgspec.Struct, frozen=True, kw_only=True):
    """A plan with what it costs and what it comes to at its expected inputs."""

    plan: Plan
    one_offs: tuple[OneOffLine, ...]
    one_off: Estimate
    npv: Estimate


def ranges(business: Business) -> tuple[Range, ...]:
    """Return the inputs with a stated range.

    Args:
        business: The case.
    """
    middle = inputs_of(business, business.expected)
    held: list[Range] = []
    low, high = business.volume.get("low"), business.volume.get("high")
    if low is not None and high is not None:
        ends = [middle._replace(units=s.units_per_month, growth=s.growth) for s in (low, high)]
        words = [f"{s.units_per_month:.12g} a month" for s in (low, high)]
        held.append(Range("volume", _WORDS["volume"], words[0], words[1], ends[0], ends[1]))
    if business.discount_low is not None and business.discount_high is not None:
        ends = [middle._replace(rate=r) for r in (business.discount_low, business.discount_high)]
        words = [f"{100 * r:g} %" for r in (business.discount_low, business.discount_high)]
        held.append(Range("rate", _WORDS["rate"], words[0], words[1], ends[0], ends[1]))
    held += _of_trajectory("electricity", business.electricity_price, middle)
    held += _of_trajectory("machine", business.machine_price, middle)
    return tuple(held)


def unranged(business: Business, one_offs: Sequence[OneOffLine]) -> tuple[str, ...]:
    """Return the inputs that nobody gives a range, in words: they are in no interval.

    Args:
        business: The case.
        one_offs: What is paid before the first month.
    """
    held = {r.key for r in ranges(business)}
    names = [words for key, words in _WORDS.items() if key not in held and key in ("volume", "rate")]
    moved = (("electricity", business.electricity_price), ("machine", business.machine_price))
    names += [_WORDS[k] for k, t in moved if k not in held and t != Trajectory()]
    spent = sum(o.amount.value or 0.0 for o in one_offs)
    names += [
        o.name
        for o in one_offs
        if o.low is None and not o.amount.u_total and (o.amount.value or 0.0) > _NEGLIGIBLE * spent
    ]
    return tuple(names)


def tornado(case: Case) -> tuple[TornadoBar, ...]:
    """Return a bar for each input that has a range, the widest first.

    Args:
        case: At its expected inputs, its NPV known.
    """
    bars = [_bar_of_range(case, r) for r in ranges(case.plan.business)]
    bars += _bars_of_hours(case)
    bars += _bars_of_sources(case)
    moving = [b for b in bars if b.swing > 0]
    return tuple(sorted(moving, key=lambda b: (-b.swing, b.key)))


def monte_carlo(case: Case) -> MonteCarlo | None:
    """Return the distribution of the NPV; ``None`` where the saving or an effort has no interval.

    Args:
        case: At its expected inputs.
    """
    import numpy as np

    held = [*(s.unit_cost for s in case.plan.streams if s.cash_from is not None)]
    # What nobody knows of the one-offs is left out of the NPV too, which is at most what is stated.
    held += [o.amount for o in case.one_offs if o.amount.value is not None]
    if any(e.value is None or e.has_unknown_width for e in held):
        return None
    business = case.plan.business
    generator = np.random.Generator(np.random.PCG64(business.seed))
    count = business.draws
    errors = _errors(case, generator, count)
    inputs = _drawn(business, generator, count)
    hours = _hours_drawn(case, generator, count)
    values = np.empty(count)
    for start in range(0, count, _AT_ONCE):
        part = slice(start, min(start + _AT_ONCE, count))
        by = weights(case.plan, Inputs(*(i[part] for i in inputs)))
        values[part] = (by.cash_now * errors.unit_costs[part]).sum(axis=1) + by.fixed_now
    values -= errors.one_off + hours
    low, median, high = (float(q) for q in np.quantile(values, _MIDDLE))
    return MonteCarlo(
        low=low,
        median=median,
        high=high,
        positive=float((values > 0).mean()),
        seed=business.seed,
        draws=count,
        generator=GENERATOR,
    )


class _Errors(NamedTuple):
    unit_costs: Numbers
    one_off: Numbers


def _errors(case: Case, generator: np.random.Generator, count: int) -> _Errors:
    """Draw unit costs and one-offs: each named source once, random parts apart."""
    import numpy as np

    streams = [s.unit_cost for s in case.plan.streams]
    parts = [*streams, *(o.amount for o in case.one_offs)]
    names = sorted({name for e in parts for name in e.u_by_source})
    common = dict(zip(names, generator.standard_normal((len(names), count)), strict=True))
    own = generator.standard_normal((len(parts), count))
    drawn = [
        (e.value or 0.0)
        + own[i] * e.u_random
        + sum((common[n] * u for n, u in e.u_by_source.items()), np.zeros(count))
        for i, e in enumerate(parts)
    ]
    units = drawn[: len(streams)]
    return _Errors(
        unit_costs=np.column_stack(units) if units else np.zeros((count, 0)),
        one_off=sum(drawn[len(streams) :], np.zeros(count)),
    )


def _drawn(business: Business, generator: np.random.Generator, count: int) -> Inputs:
    """Draw the inputs that have a range; each has its own place between its ends."""
    import numpy as np

    middle = inputs_of(business, business.expected)
    columns = {name: np.full(count, float(value)) for name, value in middle._asdict().items()}
    for one in ranges(business):
        place = generator.triangular(-1.0, 0.0, 1.0, count)
        for name in middle._fields:
            at_low, at_middle, at_high = (float(getattr(i, name)) for i in (one.low, middle, one.high))
            if at_low != at_middle or at_high != at_middle:
                columns[name] = between(place, at_low, at_middle, at_high)
    return Inputs(**columns)


def _hours_drawn(case: Case, generator: np.random.Generator, count: int) -> Numbers:
    """Draw how much more than stated the one-offs with a range come to."""
    import numpy as np

    more = np.zeros(count)
    for one in case.one_offs:
        if one.low is not None and one.high is not None and one.amount.value is not None:
            place = generator.triangular(-1.0, 0.0, 1.0, count)
            more += between(place, one.low, one.amount.value, one.high) - one.amount.value
    return more


def between(place: Numbers, low: float, middle: float, high: float) -> Numbers:
    """Return values at places from -1 (low) over 0 (middle) to 1 (high), straight in between.

    Args:
        place: Of each value.
        low: At -1.
        middle: At 0.
        high: At 1.
    """
    import numpy as np

    below: Numbers = np.where(place < 0, place * (middle - low), place * (high - middle))
    return middle + below


def _of_trajectory(key: str, trajectory: Trajectory, middle: Inputs) -> Iterator[Range]:
    if trajectory.low is None or trajectory.high is None:
        return
    ends = [middle._replace(**{key: change}) for change in (trajectory.low, trajectory.high)]
    words = [f"{100 * c:+g} %" for c in (trajectory.low, trajectory.high)]
    yield Range(key, _WORDS[key], words[0], words[1], ends[0], ends[1])


def _bar_of_range(case: Case, one: Range) -> TornadoBar:
    return TornadoBar(
        key=one.key,
        label=one.label,
        at_low=one.at_low,
        at_high=one.at_high,
        npv_low=_npv(case, one.low),
        npv_high=_npv(case, one.high),
    )


def _npv(case: Case, inputs: Inputs) -> float:
    by = weights(case.plan, inputs)
    costs = [s.unit_cost.value or 0.0 for s in case.plan.streams]
    cash = sum(float(w) * c for w, c in zip(by.cash_now[0], costs, strict=True))
    return cash + float(by.fixed_now[0]) - (case.one_off.value or 0.0)


def _bars_of_hours(case: Case) -> Iterator[TornadoBar]:
    value = case.npv.value or 0.0
    for number, one in enumerate(case.one_offs, 1):
        if one.low is None or one.high is None or one.amount.value is None:
            continue
        yield TornadoBar(
            key=f"one_off_{number}",
            label=one.name,
            at_low=f"{one.low:.12g}",
            at_high=f"{one.high:.12g}",
            npv_low=value + one.amount.value - one.low,
            npv_high=value + one.amount.value - one.high,
        )


def _bars_of_sources(case: Case) -> Iterator[TornadoBar]:
    """Yield a bar for each error of the NPV by its named source, and one for the scatter of the rounds."""
    npv = case.npv
    if npv.value is None or npv.has_unknown_width:
        return
    moved: Mapping[str, float] = {SCATTER: npv.u_random, **npv.u_by_source}
    for name, u in moved.items():
        label = "scatter of the rounds" if name == SCATTER else name
        low, high = npv.value - Z_95 * u, npv.value + Z_95 * u
        yield TornadoBar(
            key=f"source_{name}", label=label, at_low="−1.96 σ", at_high="+1.96 σ", npv_low=low, npv_high=high
        )
