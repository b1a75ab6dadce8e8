"""Samples of several devices, as logs interleave them: gathered by channel, handed on as arrays."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from carbonlens.domain.units import US_PER_S
from carbonlens.importers.contract import Channel, Chunk, Item

if TYPE_CHECKING:
    from carbonlens.importers.contract import Array

_EARLIEST_S: Final = 31_536_000.0
_LATEST_S: Final = 7_258_118_400.0
"""1971 and 2200: a number beyond is no time, but damage or another unit."""

BATCH: Final = 65_536
"""Samples that are gathered before they are handed on."""


def epoch_us(seconds: float) -> float:
    """Return seconds since 1970 as microseconds.

    Raises:
        ValueError: If they are no time of this age.
    """
    if not _EARLIEST_S <= seconds <= _LATEST_S:
        raise ValueError(f"has the time {seconds:g} s since 1970, outside the years 1971 to 2200")
    return seconds * US_PER_S


def all_epoch_us(seconds: Array) -> list[float] | None:
    """Return rising seconds since 1970 as microseconds; ``None`` where they fall, or one is no such time."""
    import numpy as np

    is_of_age = (seconds >= _EARLIEST_S) & (seconds <= _LATEST_S)
    if not len(seconds) or not is_of_age.all() or (np.diff(seconds) <= 0).any():
        return None
    found: list[float] = (seconds * US_PER_S).tolist()
    return found


class DeviceSamples:
    """Gathers samples by channel.

    Args:
        relative: Whether times count from an unknown begin.
        has_times: Whether the format bears times at all.
    """

    def __init__(self, *, relative: bool = False, has_times: bool = True) -> None:
        """Start without a channel."""
        self.is_known = False
        """Whether any sample held a number."""
        self.count = 0
        self._relative = relative
        self._has_times = has_times
        self._told: set[_Key] = set()
        self._waiting: dict[_Key, tuple[Channel, int, _Columns]] = {}
        self._size = 0

    @property
    def is_full(self) -> bool:
        """Whether it is time to hand on."""
        return self._size >= BATCH

    def add(
        self, channel: Channel, t_us: float | None, value: float, line: int, *, seconds: float | None = None
    ) -> None:
        """Take one sample; NaN for a reading that failed.

        Args:
            channel: Where it belongs.
            t_us: Its time; ``None`` in formats without times.
            value: Watts, or joules as the channel's kind says.
            line: Its line.
            seconds: What it covers, of energies since the sample before.
        """
        place = self._waiting.get(channel.key)
        if place is None:
            place = self._waiting[channel.key] = (channel, line, ([], [], []))
        times, values, lengths = place[2]
        values.append(value)
        if t_us is not None:
            times.append(t_us)
        if seconds is not None:
            lengths.append(seconds)
        self._size += 1
        self.count += 1
        self.is_known = self.is_known or math.isfinite(value)

    def hand_on(self) -> Iterator[Item]:
        """Yield what was gathered; each channel before its first samples."""
        import numpy as np

        for key, (channel, line, (times, values, lengths)) in self._waiting.items():
            if key not in self._told:
                self._told.add(key)
                yield channel
            yield Chunk(
                channel=channel,
                t_us=np.array(times, dtype=np.float64) if self._has_times else None,
                values=np.array(values, dtype=np.float64),
                seconds=np.array(lengths, dtype=np.float64) if lengths else None,
                line=line,
                relative=self._relative,
            )
        self._waiting, self._size = {}, 0


_Columns = tuple[list[float], list[float], list[float]]
_Key = tuple[str | None, str | None, str]
