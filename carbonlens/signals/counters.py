"""Counters: what a cumulative energy counter says between readings.

A counter that falls has either wrapped at its range or been reset (a driver
reload, a reboot). A wrap is exact once the range is known; after a reset the
energy between the two readings is not known.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import msgspec

from carbonlens.domain.finding import Finding
from carbonlens.domain.units import US_PER_S


class Differences(msgspec.Struct, frozen=True, kw_only=True):
    """Differences between successive readings of a counter.

    Attributes:
        joules: One a pair of readings; ``None`` across a reset.
        wraps: How often the counter passed its range.
        resets: How often it began anew.
        lost_us: Time between the readings on both sides of a reset.
    """

    joules: tuple[float | None, ...]
    wraps: int = 0
    resets: int = 0
    lost_us: float = 0.0


def difference(old: float, new: float, max_range: float | None) -> float | None:
    """Return the joules from one reading to the next; ``None`` across a reset.

    A fall is a wrap if the implied difference is at most half the range, else a
    reset: readings are taken often enough that no more than half a range passes
    between two of them. Without a range no fall can be told, and it is a reset.

    Args:
        old: Earlier reading in joules.
        new: Later reading in joules.
        max_range: Joules at which the counter returns to zero; ``None`` if unknown.
    """
    if new >= old:
        return new - old
    if max_range is None:
        return None
    # The two ends are joined before the small remainder is added: the sum of a
    # large range and a small reading would round the reading away.
    wrapped = (max_range - old) + new
    return wrapped if 0 <= wrapped <= max_range / 2 else None


def differences(t_us: Sequence[float], joules: Sequence[float], max_range: float | None) -> Differences:
    """Return all differences of a series of readings.

    Args:
        t_us: Times in rising order.
        joules: Readings in joules.
        max_range: Joules at which the counter returns to zero; ``None`` if unknown.
    """
    steps = [difference(a, b, max_range) for a, b in pairwise(joules)]
    lost = [b - a for (a, b), step in zip(pairwise(t_us), steps, strict=True) if step is None]
    falls = sum(b < a for a, b in pairwise(joules))
    return Differences(
        joules=tuple(steps), wraps=falls - len(lost), resets=len(lost), lost_us=float(sum(lost))
    )


def notes(found: Differences) -> list[Finding]:
    """Return what a reader must know about wraps and resets."""
    said = []
    if found.wraps:
        said.append(
            Finding(
                code="CL122",
                severity="info",
                message=f"the counter passed its range {found.wraps} times; the differences are exact",
            )
        )
    if found.resets:
        said.append(
            Finding(
                code="CL123",
                severity="warning",
                message=f"the counter fell back {found.resets} times (reset, or a wrap of unknown range): "
                f"the energy of {found.lost_us / US_PER_S:g} s is not known",
                mend="make the counter's range readable, or read power beside it",
            )
        )
    return said
