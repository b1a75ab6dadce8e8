"""Trace: the readings of a run, as a file that its record names and as a curve in the record itself."""

from __future__ import annotations

from typing import Final

import msgspec

NO_POWER: Final = "CL100"
"""Code of the finding that a trace was asked for and the record holds no power over time."""

NO_POWER_SAID: Final = "no power over time is kept: "
"""How the message of that finding begins; the reason follows."""


class Trace(msgspec.Struct, frozen=True, kw_only=True):
    """A file of readings.

    Attributes:
        file: Its name as the user gave it; relative to the folder the work was started in.
        sha256: Hash of the file as written, compressed or not.
    """

    file: str
    sha256: str


class PhaseSpan(msgspec.Struct, frozen=True, kw_only=True):
    """One stretch of a phase; times are seconds since the run's start."""

    name: str
    start_s: float
    end_s: float


class PowerTrace(msgspec.Struct, frozen=True, kw_only=True):
    """Power of a run over time: what its readings gained, in stretches of one length.

    It sums the very readings that the run's energy is made of, so that its integral is that
    energy. A stretch of which any of them is not known is ``None``: a gap, never a zero.

    Attributes:
        bin_s: Length of a stretch in seconds; the first begins with the run.
        power_w: Mean power of each stretch in watts.
        low_w, high_w: Least and most that was read in it, so that no peak is lost; of several
            devices the sums of theirs, which bound what they drew together.
        spans: The run's phases, the longest where there are many.
        over_s: Seconds that the least and most of a counter are the mean of, at least: it tells no
            moment. 0 where all of it was read as power, and in records of older versions.
    """

    bin_s: float
    power_w: tuple[float | None, ...]
    low_w: tuple[float | None, ...]
    high_w: tuple[float | None, ...]
    spans: tuple[PhaseSpan, ...] = ()
    over_s: float = 0.0

    @property
    def time_s(self) -> tuple[float, ...]:
        """When each stretch begins."""
        return tuple(self.bin_s * k for k in range(len(self.power_w)))
