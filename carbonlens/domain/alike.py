"""Alike: runs that differ in a few figures only, as columns: a pattern, and what differs.

A file of a million runs of one machine and project says the same of each but its id, times,
energies and emissions. As columns those take a hundredth of the time that as many records take.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from typing import TYPE_CHECKING, Final, TypeAlias

import msgspec

from carbonlens.domain.run import Reading, Run

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Whole: TypeAlias = npt.NDArray[np.int64]
    Real: TypeAlias = npt.NDArray[np.float64]

MOST_UJ: Final = 2**53
"""Microjoules below which a float holds every whole number, so that widths come out as of one run."""

MICRO: Final = 6
"""Digits after the point of a joule."""


class Alike(msgspec.Struct, frozen=True, kw_only=True):
    """Runs of one pattern; all columns are of one length, each run has start, end and energy.

    Attributes:
        pattern: A run of the kind; what has no column here is the same in all of them. Its
            readings have an energy above zero, one source of error each, and no random part.
        run_ids: Their ids.
        start_us, end_us: UTC microseconds.
        duration_s: Seconds.
        energy_uj: Microjoules, a column for each reading of ``pattern.energy``.
        beside_uj: The same of ``pattern.beside``.
        sigmas: One relative sigma of each reading, of ``energy`` and then of ``beside``.
        emissions_kg: What the source states.
        lines: Line of each in the source.
    """

    pattern: Run
    run_ids: list[str]
    start_us: Whole
    end_us: Whole
    duration_s: Real
    energy_uj: tuple[Whole, ...]
    beside_uj: tuple[Whole, ...] = ()
    sigmas: tuple[float, ...]
    emissions_kg: list[Decimal]
    lines: Whole

    def __len__(self) -> int:
        """Return how many runs there are."""
        return len(self.run_ids)

    @property
    def widths_j(self) -> tuple[Real, ...]:
        """One sigma of each reading in joules, as its runs would have it."""
        columns = (*self.energy_uj, *self.beside_uj)
        return tuple(s * (uj / 10**MICRO) for s, uj in zip(self.sigmas, columns, strict=True))

    def run(self, place: int) -> Run:
        """Return one of them as a record of its own."""
        pattern, widths = self.pattern, [float(w[place]) for w in self.widths_j]
        readings = [
            _reading(reading, int(column[place]), width)
            for reading, column, width in zip(
                (*pattern.energy, *pattern.beside), (*self.energy_uj, *self.beside_uj), widths, strict=True
            )
        ]
        parts = len(pattern.energy)
        origin = pattern.origin
        if origin is not None:
            origin = msgspec.structs.replace(origin, source_line=int(self.lines[place]))
        return msgspec.structs.replace(
            pattern,
            run_id=self.run_ids[place],
            start_us=int(self.start_us[place]),
            end_us=int(self.end_us[place]),
            duration_s=float(self.duration_s[place]),
            energy=tuple(readings[:parts]),
            beside=tuple(readings[parts:]),
            emissions_reported_kg=self.emissions_kg[place],
            origin=origin,
        )

    def of(self, places: Sequence[int] | Whole) -> Alike:
        """Return some of them, in the order given."""
        import numpy as np

        chosen = np.asarray(places, dtype=np.int64)
        listed = chosen.tolist()
        return msgspec.structs.replace(
            self,
            run_ids=[self.run_ids[i] for i in listed],
            start_us=self.start_us[chosen],
            end_us=self.end_us[chosen],
            duration_s=self.duration_s[chosen],
            energy_uj=tuple(c[chosen] for c in self.energy_uj),
            beside_uj=tuple(c[chosen] for c in self.beside_uj),
            emissions_kg=[self.emissions_kg[i] for i in listed],
            lines=self.lines[chosen],
        )


def joules(microjoules: int) -> Decimal:
    """Return exact joules, with the six places that records have."""
    return Decimal(microjoules).scaleb(-MICRO)


def _reading(pattern: Reading, microjoules: int, width_j: float) -> Reading:
    (source,) = pattern.u_by_source_j
    return msgspec.structs.replace(pattern, energy_j=joules(microjoules), u_by_source_j={source: width_j})
