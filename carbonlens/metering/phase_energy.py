"""What each phase of a run used: stretches between looks, and their shares of the run's readings.

Every stretch has a tally of its own, thrown away when it ends, so that a long run with many
switches keeps a few numbers a phase. A phase has the part of each of the run's readings that
the same sensor gained in it: sensors, curves and boundary are those of the run, and no joule
is in two phases. What lies in none is the rest.

A stretch that several phases shared is divided by time. A part of it that took the share q
of the time may have used anything from nothing to ``_POWER_RATIO`` times its share, and not
more than all: the variance of a figure within such bounds is at most mean x (bound - mean).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from decimal import ROUND_FLOOR, Decimal
from typing import Final

import msgspec

from carbonlens.domain.estimate import Estimate, add, unknown
from carbonlens.domain.finding import Finding
from carbonlens.domain.phase import Phase
from carbonlens.domain.run import Reading, Run
from carbonlens.domain.units import US_PER_S
from carbonlens.metering.gained import WHOLE_SHARE
from carbonlens.metering.parts import Part
from carbonlens.metering.phases import PhaseMark, Piece
from carbonlens.metering.sealing import Sample, Sealed
from carbonlens.metering.sensors import SensorInfo
from carbonlens.metering.tally import Tally
from carbonlens.signals.cpu_model import MICROJOULE

BY_TIME: Final = "phases:by-time"
"""Name of the error of energy that was divided by time."""

_POWER_RATIO: Final = 10.0
"""Highest power over the mean, at most: an accelerator at rest draws about a sixth of its limit."""

_DOUBT: Final = 0.5
"""A phase whose energy is less sure than this, as a share of it, by what was divided by time
alone has no figure: the interval would be wider than x/: 2.7."""

_Row = tuple[int, int, tuple[float | None, ...] | None]
"""Place of a sensor, when it was read, and what it told; ``None`` where the reading failed."""


class _Gain:
    """What one channel gained in one phase."""

    __slots__ = ("amount", "by_time", "covered_us", "variance")

    def __init__(self) -> None:
        self.amount = self.by_time = self.covered_us = self.variance = 0.0


class PhaseSum:
    """What all stretches of one phase add up to."""

    def __init__(self) -> None:
        """Start with nothing."""
        self.entries = 0
        self.us = 0
        self.units = Decimal(0)
        self.doubt_us = 0.0
        self.gains: dict[tuple[int, int], _Gain] = {}

    def count(self, piece: Piece) -> None:
        """Take a phase's part of a stretch, its energy aside."""
        self.entries += piece.entries
        self.us += piece.us
        self.units += piece.units


class Stretches:
    """Readings of a run, stretch by stretch of its phases.

    Args:
        infos: The sensors, in the order of each sample's values.
        run: The run's own tally, which takes each look before it is taken here: it tells
            what came before the first phase. Without it every look is tallied here.
    """

    def __init__(self, infos: Sequence[SensorInfo], run: Tally | None = None) -> None:
        """Start where the run does."""
        self.infos = tuple(infos)
        self._run = run
        self.sums: dict[str, PhaseSum] = {}
        self.last: str | None = None
        self._since_us = 0
        self._tally: Tally | None = None
        self._first: list[_Row] = []
        self._latest: dict[int, _Row] = {}
        self._mark: tuple[int, PhaseMark] | None = None

    def take(self, sample: Sample, mark: PhaseMark | None, *, in_use: bool = True) -> None:
        """Take a look in time order.

        Args:
            sample: What it saw.
            mark: How the phases stood with it, where that was noted.
            in_use: Whether there was a phase by now; before the first one the run's own
                tally does for both.
        """
        skew = sample.skew_us or ()
        rows = [
            (place, sample.t_us + (skew[place] if place < len(skew) else 0), told)
            for place, told in enumerate(sample.values)
            if told is None or told
        ]
        # What was begun goes on: a killed run's journal tells no more than marks and looks.
        if in_use or mark is not None or self._run is None:
            self._tallied(rows)
        if mark is not None:
            self._mark = (sample.t_us, mark)
            if mark.ends:
                self._end(sample.t_us, mark)
                self._first = self._beginning(sample.t_us, rows)
        self._latest.update((row[0], row) for row in rows if row[2] is not None)

    def _tallied(self, rows: Sequence[_Row]) -> None:
        run, self._run = self._run, None
        if run is not None:
            # The first stretch begins with the run.
            self._tally = run.twin()
            return
        tally = self._tally
        if tally is None:
            tally = self._tally = Tally(self.infos, age_us=self._since_us)
            rows = [*self._first, *self._latest.values(), *rows]
        for place, t_us, told in rows:
            tally.add(place, t_us - self._since_us, told)

    def _beginning(self, t_us: int, rows: Sequence[_Row]) -> list[_Row]:
        """Return the readings that tell how things stood where a stretch begins."""
        # Of a counter that was read at once, the reading before tells nothing more.
        told = [row for row in rows if row[2] is not None]
        exact = {row[0] for row in told if row[1] <= t_us and self.infos[row[0]].unit != "W"}
        return [*(row for place, row in self._latest.items() if place not in exact), *rows]

    def finish(self, window_us: int, units: Decimal | None) -> None:
        """End the last stretch where no look did.

        Args:
            window_us: End of the run, or as far as it is known.
            units: All that were counted.
        """
        if self._mark is None or (self._mark[1].ends and self._mark[0] >= window_us):
            return
        t_us, mark = self._mark
        more = max((units or Decimal(0)) - (mark.units or Decimal(0)), Decimal(0))
        rest = Piece(mark.now, 0, max(window_us - t_us, 0), more)
        # A mark that ended a stretch tells what the next began with.
        before = () if mark.ends else mark.pieces
        since_us = t_us if mark.ends else mark.since_us
        whole = msgspec.structs.replace(mark, since_us=since_us, pieces=(*before, rest))
        self._end(window_us, whole)

    def _end(self, t_us: int, mark: PhaseMark) -> None:
        length_us = t_us - mark.since_us
        # Where a damaged line hid an end, what the tally holds is of more than this stretch.
        is_whole = self._tally is not None and mark.since_us == self._since_us and length_us > 0
        gained = self._tally.finish(length_us) if self._tally is not None and is_whole else ()
        spans: dict[str | None, int] = {}
        for piece in mark.pieces:
            spans[piece.name] = spans.get(piece.name, 0) + piece.us
            if piece.name is not None:
                self.sums.setdefault(piece.name, PhaseSum()).count(piece)
        for name, us in spans.items():
            if name is None or not us or length_us <= 0:
                continue
            share = min(us / length_us, 1.0)
            phase = self.sums[name]
            phase.doubt_us += length_us * _sigma_by_time(share)
            for place, channels in enumerate(gained):
                for k, gain in enumerate(channels):
                    if gain.amount is not None:
                        mine = phase.gains.setdefault((place, k), _Gain())
                        mine.amount += gain.amount * share
                        mine.variance += (gain.u_random * share) ** 2
                        mine.by_time += gain.amount * _sigma_by_time(share)
                        mine.covered_us += gain.covered_s * US_PER_S * share
        self.last = mark.now
        self._since_us = t_us
        self._tally = None


def _sigma_by_time(share: float) -> float:
    """Return the standard uncertainty of a share of energy that is taken from its share of time."""
    lesser = min(share, 1.0 - share)
    return lesser * math.sqrt(max(min(1.0 / lesser, _POWER_RATIO) - 1.0, 0.0)) if lesser > 0 else 0.0


def replayed(
    infos: Sequence[SensorInfo], samples: Sequence[Sample], marks: Sequence[PhaseMark | None]
) -> Stretches:
    """Return the stretches of a run from its journal.

    Args:
        infos: The sensors.
        samples: In time order.
        marks: How the phases stood, one entry a sample.
    """
    stretches = Stretches(infos)
    for sample, mark in zip(samples, marks, strict=True):
        stretches.take(sample, mark)
    return stretches


def with_phases(
    run: Run,
    stretches: Stretches,
    sealed: Sealed,
    notes: Sequence[Finding] = (),
    *,
    was_killed: bool = False,
) -> Run:
    """Return a sealed run with its phases.

    Args:
        run: Sealed.
        stretches: What its looks told, finished.
        sealed: What the run's readings were made from.
        notes: Findings of how phases were entered and left.
        was_killed: Whether the last phase went on for nobody knows how long.
    """
    energies = _energies(stretches, sealed)
    short = [name for name, s in stretches.sums.items() if not s.us or s.doubt_us > _DOUBT * s.us]
    unread = [name for name, e in energies.items() if e.value is None and name not in short]
    phases = []
    for name, total in stretches.sums.items():
        energy = unknown("J") if name in short else energies[name]
        cut = was_killed and name == stretches.last and energy.state == "known"
        phases.append(
            Phase(
                name=name,
                entries=total.entries,
                duration_s=total.us / US_PER_S,
                energy_j=None if energy.value is None else _exact(energy.value),
                state="unbounded" if cut else energy.state,
                grade=energy.grade,
                u_random_j=energy.u_random,
                u_by_source_j=energy.u_by_source,
                units=total.units or None,
            )
        )
    said = [*notes, *((too_quick(short),) if short else ())]
    if unread and run.total_energy.value is not None:
        said.append(not_read(unread))
    return msgspec.structs.replace(run, phases=tuple(phases), findings=(*run.findings, *said))


def _exact(joules: float) -> Decimal:
    # Downwards, so that the phases of a run never sum to more than the run.
    return Decimal(repr(joules)).quantize(MICROJOULE, ROUND_FLOOR)


def _energies(stretches: Stretches, sealed: Sealed) -> dict[str, Estimate]:
    """Return each phase's energy: its part of every reading of the run."""
    shares: dict[str, list[Estimate]] = {name: [] for name in stretches.sums}
    for part in sealed.parts:
        for name, reading in _shared(part, stretches).items():
            shares[name].append(reading)
    # A reading of which nothing is known is unknown in every phase too.
    missing = [r.estimate for r in sealed.readings[len(sealed.parts) :]]
    mixed = len({r.boundary for r in sealed.readings}) > 1
    return {name: unknown("J") if mixed else _sum([*mine, *missing]) for name, mine in shares.items()}


def _sum(parts: Sequence[Estimate]) -> Estimate:
    return parts[0] if len(parts) == 1 else add(parts, "J")


def _shared(part: Part, stretches: Stretches) -> Mapping[str, Estimate]:
    """Return each phase's share of one reading of the run."""
    key = place_of(part, stretches.infos)
    gains = {name: s.gains.get(key) if key is not None else None for name, s in stretches.sums.items()}
    reading = part.reading
    whole = math.fsum(step[2] for step in part.steps)
    told = math.fsum(g.amount for g in gains.values() if g is not None)
    # The integral of the whole saw more around the edges: no phase gets what the run has not.
    factor = 1.0 / max(whole, told) if max(whole, told) > 0 else 0.0
    return {name: _share(reading, gain, factor, stretches.sums[name].us) for name, gain in gains.items()}


def _share(reading: Reading, gain: _Gain | None, factor: float, phase_us: int) -> Estimate:
    # Nothing gained is not nothing used: it is less than the sensor tells.
    if gain is None or not gain.amount or reading.energy_j is None:
        return unknown("J")
    joules = float(reading.energy_j)
    share = gain.amount * factor
    sources = {name: u * share for name, u in reading.u_by_source_j.items()}
    if gain.by_time and (sources or reading.u_random_j):
        sources[BY_TIME] = gain.by_time * factor * joules
    whole = gain.covered_us >= WHOLE_SHARE * phase_us
    mine = msgspec.structs.replace(
        reading,
        energy_j=Decimal(repr(joules * share)),
        u_random_j=math.sqrt(gain.variance) * factor * joules,
        u_by_source_j=sources,
        low_j=None,
        high_j=None,
        state="known" if whole else "unbounded",
    )
    return mine.estimate


def place_of(part: Part, infos: Sequence[SensorInfo]) -> tuple[int, int] | None:
    """Return where a part's channel stands: its sensor's place and its own; ``None`` if it is not there.

    Args:
        part: One device as one sensor saw it.
        infos: The sensors.
    """
    for place, info in enumerate(infos):
        if info.name == part.info.name:
            for k, channel in enumerate(info.channels):
                if (channel.component, channel.device) == (part.component, part.device):
                    return place, k
    return None


def too_quick(names: Sequence[str]) -> Finding:
    """Phases followed each other more quickly than the sensors can tell apart."""
    return Finding(
        code="CL177",
        severity="warning",
        message=f"too short, or too soon after another phase, for the energy to be known: {_listed(names)}",
        mend="enter a phase around work that takes a second or more, several repeats of it for one",
        subject="phases",
    )


def not_read(names: Sequence[str]) -> Finding:
    """No sensor told anything of phases, while the run as a whole is known."""
    return Finding(
        code="CL178",
        severity="warning",
        message=f"no sensor told the energy of phases that the run's own holds: {_listed(names)}",
        mend="run the work again while the sensors can be read (`carbonlens doctor` says why one fails)",
        subject="phases",
    )


def _listed(names: Sequence[str]) -> str:
    return ", ".join(f"'{n}'" for n in names[:3]) + (" and others" if len(names) > 3 else "")
