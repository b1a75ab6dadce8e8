"""Slips: the usual mistakes by which a stated figure differs from what its inputs give."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, Literal

import msgspec

from carbonlens.audit.quantities import Span, agree
from carbonlens.domain.claim import Claim
from carbonlens.domain.units import HOURS_PER_DAY, KG_PER_1E8_LB, S_PER_HOUR

Kind = Literal["pue", "count", "scale", "unit", "time"]

_NEAR: Final = 3.0
"""A slip by less than this must give the figure to its last digit: much else is as near."""

_FAR_SLACK: Final = 0.05
"""A slip by more may differ by this from the figure."""

_LB_IN_KG: Final = KG_PER_1E8_LB / 1e8
_MJ_IN_KWH: Final = S_PER_HOUR / 1000
_DAYS: Final = 365.0
_THOUSANDS: Final = frozenset({-9, -6, -3, 3, 6, 9})


class Slip(msgspec.Struct, frozen=True):
    """A mistake that would explain a figure.

    Attributes:
        kind: Family of the mistake.
        factor: Times the right figure.
        words: The mistake in words.
    """

    kind: Kind
    factor: float
    words: str


def explain(claimed: Span, expected: Span, claim: Claim, *, with_pue: bool) -> Slip | None:
    """Return the first slip that turns what the inputs give into what is stated.

    Args:
        claimed: What is stated.
        expected: What the inputs give, in the same unit.
        claim: For its PUE and its number of devices.
        with_pue: Whether what the inputs give has the PUE in it once.
    """
    if claimed.value <= 0 or expected.value <= 0:
        return None
    return next((s for s in _slips(claim, with_pue=with_pue) if _explains(s, claimed, expected)), None)


def _explains(slip: Slip, claimed: Span, expected: Span) -> bool:
    value = expected.value * slip.factor
    if 1 / _NEAR < slip.factor < _NEAR:
        return claimed.low <= value <= claimed.high
    scaled = Span(expected.low * slip.factor, value, expected.high * slip.factor)
    return agree(claimed, scaled, _FAR_SLACK)


def _slips(claim: Claim, *, with_pue: bool) -> Iterator[Slip]:
    """Yield the slips a claim can hold, the most telling first."""
    if with_pue and claim.pue is not None and claim.pue.value > 0:
        pue = float(claim.pue.value)
        yield Slip("pue", 1 / pue, "PUE applied 0 times")
        yield Slip("pue", pue, "PUE applied 2 times")
    yield from _scales()
    if claim.devices is not None and claim.devices.value > 1:
        count = float(claim.devices.value)
        yield Slip("count", 1 / count, "the number of devices applied 0 times")
        yield Slip("count", count, "the number of devices applied 2 times")
    yield Slip("unit", 1 / _LB_IN_KG, "pounds stated as kilograms")
    yield Slip("unit", _LB_IN_KG, "kilograms stated as pounds")
    yield Slip("unit", _MJ_IN_KWH, "MJ stated as kWh")
    yield Slip("unit", 1 / _MJ_IN_KWH, "kWh stated as MJ")
    yield Slip("time", _DAYS, "the days of a year applied 2 times")
    yield Slip("time", 1 / _DAYS, "the days of a year applied 0 times")
    yield Slip("time", HOURS_PER_DAY, "hours of a day applied 2 times")
    yield Slip("time", 1 / HOURS_PER_DAY, "days taken for hours")


def _scales() -> Iterator[Slip]:
    for power in (1, -1, 3, -3, 2, -2, 6, -6, 4, -4, 5, -5, 7, -7, 8, -8, 9, -9):
        if power in _THOUSANDS:
            yield Slip("scale", 10.0**power, f"a unit slip by {10 ** abs(power)} (g, kg, t; Wh, kWh, MWh)")
        else:
            yield Slip("scale", 10.0**power, f"a power of ten, {10 ** abs(power)}")


def apart(claimed: Span, expected: Span) -> str:
    """Return how far a stated figure is from what its inputs give, in words."""
    if claimed.value <= 0 or expected.value <= 0:
        return "which is no positive figure"
    ratio = claimed.value / expected.value
    if 0.5 < ratio < 2:
        return f"{ratio - 1:+.1%}"
    return f"{ratio:.3g} times as much" if ratio > 1 else f"{1 / ratio:.3g} times too little"
