"""Traces become runs: samples are integrated as part 2 of the measuring chain does, in bounded memory.

A channel's samples are integrated in blocks; the last sample of a block is the first of the
next, so that what it stands for is not cut. Gaps are not bridged: they are uncovered seconds.
A clock that was set back parts a series in two, which are added up; what repeats an earlier
part, sample for sample, counts once (``repeats``).
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Final

import msgspec

from carbonlens.domain.counting import counted
from carbonlens.domain.finding import Finding
from carbonlens.domain.grades import default_relative_sigma
from carbonlens.domain.run import Reading
from carbonlens.domain.units import US_PER_S, Z_95
from carbonlens.importers import hours, repeats
from carbonlens.importers.contract import Channel, Chunk, Options, Window
from carbonlens.importers.deltas import Deltas, NewDeltas, backs_of
from carbonlens.importers.kept_samples import are_kept
from carbonlens.importers.records import exact_j
from carbonlens.importers.repeats import SAME_SHARE, Part, Repeats
from carbonlens.importers.sample_digest import SampleDigest
from carbonlens.signals.integral import Integral
from carbonlens.signals.sensor import GAIN_U, GAP_PERIODS, Sensor

if TYPE_CHECKING:
    from carbonlens.importers.contract import Array

BLOCK: Final = 1 << 20
"""Samples of a channel that are integrated together: 16 MiB of times and values."""

COUNTER_FELL: Final = "CL123"
"""Code of what ``signals`` says of a counter that was reset, or passed a range that is not known."""

_FEWEST_BUCKETS: Final = 4
"""Buckets of samples that tell whether a part repeats an earlier one: a shorter one waits for more."""

_FEWEST_ROWS: Final = 5
"""Readings from which a column that is often empty can be told from one that fails."""

_EVEN_SHARE: Final = 0.25
"""Share by which the rows between two readings of a slower sensor may differ from the usual."""


class Series:
    """The samples of one channel, integrated as they come.

    Args:
        channel: The channel.
        window: The part of time that counts; ``None`` takes first to last sample.
        file: Name for Findings.
        options: Seconds between samples without times, and when relative times began.
    """

    def __init__(self, channel: Channel, window: Window | None, file: str, options: Options) -> None:
        """Start without a sample."""
        self.channel = channel
        self.findings: list[Finding] = []
        self.digest = SampleDigest()
        self.samples = 0
        self.first_us = math.inf
        self.last_us = -math.inf
        self.has_times = True
        self.hours_j: dict[int, float] = {}
        self.is_relative = False
        self._window = window
        self._kept_us = options.kept_us
        self._file = file
        self._sum_w = 0.0
        self._blocks: list[tuple[Array, Array]] = []
        self._waiting = 0
        self._parts: list[Integral] = []
        self._tail_us = 0.0
        self._interval_us = (options.interval_s or 0.0) * US_PER_S
        self._told = 0
        self._said: dict[str, list[Any]] = {}
        self._offset_us = float(options.start_us or 0)
        self._is_placed = options.start_us is not None
        self._deltas = Deltas()
        self._was_reset = False
        self._repeats = Repeats()
        self._new_deltas = NewDeltas(self._repeats)
        self._last_us: float | None = None
        self._is_put_off = False

    def take(self, chunk: Chunk) -> None:
        """Take further samples, in the order of the file.

        Raises:
            ValueError: If there are not as many times as values.
        """
        import numpy as np

        values = np.asarray(chunk.values, dtype=np.float64)
        t_us = self._times_of(chunk, len(values))
        self.digest.take(t_us, values)
        seconds = chunk.seconds
        if t_us is not None and self._kept_us is not None:
            kept = are_kept(t_us, self._kept_us, self.channel.kind)
            t_us, values = t_us[kept], values[kept]
            seconds = None if seconds is None else np.asarray(seconds)[kept]
        if self.channel.kind == "delta":
            self._take_deltas(t_us, values, seconds)
            return
        if t_us is None:
            self._count(values)
            return
        if self._window is not None:
            # A sample that stands before the window's start may reach into it.
            inside = (t_us >= self._window.start_us) & (t_us <= self._window.end_us)
            t_us, values = t_us[inside], values[inside]
        self._count(values)
        self._blocks.append((t_us, values))
        self._waiting += len(t_us)
        if self._waiting >= BLOCK:
            self._flush(is_last=False)

    def _times_of(self, chunk: Chunk, count: int) -> Array | None:
        """Return the times of a chunk; those of a log without any from the interval the user gives."""
        import numpy as np

        if chunk.t_us is not None:
            t_us = np.asarray(chunk.t_us, dtype=np.float64)
            if len(t_us) != count:
                raise ValueError("a chunk has not as many times as values")
            return self._placed(t_us) if chunk.relative else t_us
        if not self._interval_us:
            self.has_times = self.channel.kind == "delta" and chunk.seconds is not None
            return None
        self._tail_us = self._interval_us
        first, self._told = self._told, self._told + count
        return self._placed(np.arange(first, self._told, dtype=np.float64) * self._interval_us)

    def _placed(self, t_us: Array) -> Array:
        """Return times from some begin as UTC, where the user says when that was."""
        self.is_relative = not self._is_placed
        return t_us + self._offset_us

    def _take_deltas(self, t_us: Array | None, joules: Array, seconds: Array | None) -> None:
        """Take energies since the sample before; those with times wait until a block shows repetitions."""
        if t_us is None:
            self._add_deltas(None, joules, seconds)
            return
        self._new_deltas.take(t_us, joules, seconds)
        if self._new_deltas.waiting >= BLOCK:
            self._flush_deltas(is_last=False)

    def _flush_deltas(self, *, is_last: bool) -> None:
        for t_us, joules, seconds in self._new_deltas.parts(is_last=is_last, enough=self._enough):
            self._add_deltas(t_us, joules, seconds)
        while self._new_deltas.backs_us:
            self._say_back(self._new_deltas.backs_us.pop(0) / US_PER_S)

    def _add_deltas(self, t_us: Array | None, joules: Array, seconds: Array | None) -> None:
        """Add energies up, each over its own seconds."""
        import numpy as np

        self._deltas.take(t_us, joules, seconds)
        self.samples = self._deltas.count
        self.first_us, self.last_us = self._deltas.first_us, self._deltas.last_us
        if t_us is not None and len(t_us):
            found = hours.split(t_us, joules, (0.0, 0.0), 0.0, kind="delta")
            hours.add(self.hours_j, found, float(joules[np.isfinite(joules)].sum()))

    def _count(self, values: Array) -> None:
        import numpy as np

        good = values[np.isfinite(values)]
        self.samples += len(good)
        if self.channel.kind != "counter":
            self._sum_w += float(good.sum())

    @property
    def energy_j(self) -> float | None:
        """Joules of all parts; ``None`` where nothing tells them.

        No power at all, of a device that cannot do without, is no reading: unknown, not zero.
        """
        if self.channel.kind == "delta":
            told = self._deltas.energy_j
        else:
            values = [p.estimate.value for p in self._parts if p.estimate.value is not None]
            told = math.fsum(values) if values else None
        return None if not told and self.channel.least_w else told

    @property
    def mean_w(self) -> float | None:
        """Plain mean of the power that was told; of energies, over the seconds that they cover."""
        if self.channel.kind in {"instant", "average"}:
            return self._sum_w / self.samples if self.samples else None
        return self.energy_j / self.covered_s if self.energy_j is not None and self.covered_s else None

    @property
    def covered_s(self) -> float | None:
        """Seconds that samples stand for; ``None`` where nothing tells."""
        if self.channel.kind != "delta":
            return math.fsum(p.covered_s for p in self._parts) if self._parts else None
        return self._deltas.covered_s or None

    @property
    def uncovered_s(self) -> float | None:
        """The other seconds of the span."""
        if self.channel.kind == "delta":
            return self._deltas.lost_s if self.covered_s is not None else None
        return math.fsum(p.uncovered_s for p in self._parts) if self._parts else None

    @property
    def span_s(self) -> float | None:
        """Covered and uncovered seconds."""
        covered_s, uncovered_s = self.covered_s, self.uncovered_s
        return None if covered_s is None or uncovered_s is None else covered_s + uncovered_s

    @property
    def stated_span_s(self) -> tuple[float, float] | None:
        """Seconds that samples of energy state, and those between their times; ``None`` of others."""
        if not self._deltas.is_told or not math.isfinite(self.first_us):
            return None
        return self._deltas.covered_s + self._deltas.lost_s, (self.last_us - self.first_us) / US_PER_S

    def close(self) -> None:
        """Integrate what is left, and say what was found."""
        if self._waiting or self._is_put_off:
            self._flush(is_last=True)
        self._flush_deltas(is_last=True)
        self._say_all()
        self._say_repeats()
        if self.samples and self.has_times and self.energy_j is None:
            text = f"{self.channel.name}: {counted(self.samples, 'sample')} with no time between: no energy"
            mend = "log for longer, or let the log say when each sample was taken"
            self.findings.append(
                Finding(code="CL244", severity="warning", message=text, file=self._file, mend=mend)
            )

    def reading(self, source: str) -> Reading:
        """Return the reading; without a time base it is unknown.

        Args:
            source: Name that the errors of its sensor are kept under.
        """
        channel, energy = self.channel, self.energy_j
        is_cut = self._was_reset or self._deltas.has_lost or self._repeats.unclear > 0
        is_lower = channel.is_least or is_cut or any(p.estimate.state != "known" for p in self._parts)
        random_j, shared = self._sigmas(source, energy) if energy else (0.0, {})
        return Reading(
            component=channel.component,
            energy_j=exact_j(energy),
            boundary=channel.boundary,
            grade=channel.grade or ("C" if channel.kind in {"instant", "average"} else "B"),
            method=channel.method,
            state="unknown" if energy is None else "unbounded" if is_lower else "known",
            u_random_j=random_j,
            u_by_source_j=shared,
            devices=(channel.device or channel.name,),
            covered_s=self.covered_s,
        )

    def _sigmas(self, source: str, energy_j: float) -> tuple[float, dict[str, float]]:
        """Return the random part and the shared ones; none where nobody knows the width."""
        grade, gain_95 = self.channel.grade, self.channel.gain_95
        name = f"{source}:{self.channel.device or self.channel.name}"
        if grade == "A" and gain_95 is None:
            return 0.0, {}
        random_j = math.hypot(*(p.estimate.u_random for p in self._parts))
        if gain_95 is not None:
            return random_j, {f"meter:{name}": gain_95 / Z_95 * energy_j}
        if grade in {"D", "E"} or self.channel.kind == "delta":
            relative = default_relative_sigma(grade or "B") or 0.0
            return random_j, {f"grade_{grade or 'B'}:{name}": relative * energy_j}
        shared: dict[str, float] = {}
        for part in self._parts:
            for cause, sigma_j in part.estimate.u_by_source.items():
                shared[cause] = shared.get(cause, 0.0) + sigma_j
        return random_j, {f"{cause.partition(':')[0]}:{name}": u for cause, u in shared.items()}

    def _flush(self, *, is_last: bool) -> None:
        import numpy as np

        t_us = np.concatenate([t for t, _ in self._blocks])
        values = np.concatenate([v for _, v in self._blocks])
        self._blocks, self._waiting = [], 0
        t_us, values = self._asked_for(t_us, values)
        if not is_last and len(t_us):
            # What the last sample stands for reaches to the next one; failed ones after it wait with it.
            good = np.flatnonzero(np.isfinite(values))
            last = int(good[-1]) if len(good) else len(t_us) - 1
            self._blocks = [(t_us[last:], values[last:])]
            t_us, values = t_us[: last + 1], values[: last + 1]
        pieces = self._pieces(t_us, values, is_last=is_last)
        for place, (t, v) in enumerate(pieces):
            self._integrate(t, v, ends=is_last and place == len(pieces) - 1)

    def _asked_for(self, t_us: Array, values: Array) -> tuple[Array, Array]:
        """Return the samples without the rows that a slower sensor's column is empty in."""
        import numpy as np

        good = np.isfinite(values)
        if good.all() or int(good.sum()) < _FEWEST_ROWS:
            return t_us, values
        steps = np.diff(np.flatnonzero(good))
        every = int(np.median(steps))
        if every < 2 or float((np.abs(steps - every) <= _EVEN_SHARE * every).mean()) < SAME_SHARE:
            return t_us, values
        text = f"one row of {every} holds a reading: taken as of a slower sensor, not as failed ones"
        self._say(Finding(code="CL290", severity="info", message=text))
        return t_us[good], values[good]

    def _integrate(self, t_us: Array, values: Array, *, ends: bool) -> None:
        import numpy as np

        is_told = np.isfinite(t_us)
        finite = t_us if is_told.all() else t_us[is_told]
        if not len(finite):
            return
        start_us, end_us = float(finite.min()), float(finite.max())
        if ends:
            end_us += self._tail_us
        if self._window is not None:
            start_us = start_us if self._parts else self._window.start_us
            end_us = self._window.end_us if ends else end_us
        self.first_us, self.last_us = min(self.first_us, start_us), max(self.last_us, end_us)
        if end_us <= start_us:
            return
        integral = self._integral(t_us, values, start_us, end_us)
        self._parts.append(integral)
        for said in integral.findings:
            self._say(said)
            # What a counter counted between its last reading and a reset is in no difference.
            self._was_reset = self._was_reset or said.code == COUNTER_FELL
        if integral.estimate.value:
            hold_us = GAP_PERIODS * (integral.update_period_us or 0.0)
            found = hours.split(t_us, values, (start_us, end_us), hold_us, kind=self.channel.kind)
            hours.add(self.hours_j, found, integral.estimate.value)

    def _integral(self, t_us: Array, values: Array, start_us: float, end_us: float) -> Integral:
        from carbonlens.signals.integrate import integrate_counter, integrate_power

        channel = self.channel
        assert channel.kind != "delta"  # noqa: S101  # those are added up as they come
        sensor = Sensor(
            kind=channel.kind,
            source=channel.name,
            update_period_us=channel.period_us,
            max_range=channel.max_range_j,
            gain_u=GAIN_U if channel.gain_95 is None else channel.gain_95 / Z_95,
        )
        if channel.kind != "counter":
            return integrate_power(t_us, values, start_us, end_us, sensor)
        pairs = zip(t_us.tolist(), values.tolist(), strict=True)
        readings = [(t, v if math.isfinite(v) else None) for t, v in pairs]
        return integrate_counter(readings, start_us, end_us, sensor)

    def _pieces(self, t_us: Array, values: Array, *, is_last: bool) -> list[Part]:
        """Part a series where its clock was set back; what repeats an earlier part is left out."""
        import numpy as np

        if not len(t_us):
            return []
        back_us, backs = backs_of(t_us)
        pieces = list(zip(np.split(t_us, backs), np.split(values, backs), strict=True))
        is_carried = self._last_us is not None and not self._is_put_off
        self._is_put_off = not is_last and len(pieces) > 1 and len(pieces[-1][0]) < self._enough
        if self._is_put_off:
            late_us, late = pieces.pop()
            # Its last sample is the first of what waits already, with failed ones after it.
            self._blocks.insert(0, (late_us[:-1], late[:-1]))
        kept: dict[int, Part] = {}
        origins = repeats.origins_of(t_us, values, pieces)
        for place, piece in enumerate(pieces):
            near = {n: kept[n] for n in origins[place] if n in kept}
            last_us = self._last_us
            back = 0.0 if last_us is None or not back_us else last_us - float(piece[0][0])
            is_back = back > back_us
            begins = is_carried and place == 0
            new = self._repeats.take(piece, near, is_back=is_back, is_carried=begins, is_last=is_last)
            kept.update(near)
            self._last_us = float(piece[0][-1])
            if new is None:
                continue
            if is_back and new is piece:
                self._say_back(back / US_PER_S)
            kept[place] = new
        return list(kept.values())

    @property
    def _enough(self) -> int:
        """Samples after a clock was set back from which it is told whether they repeat others."""
        return min(_FEWEST_BUCKETS * repeats.BUCKET, BLOCK // 2)

    def _say_back(self, back_s: float) -> None:
        text = f"{self.channel.name}: the clock goes back by {back_s:g} s; both parts are added up"
        mend = "let the tool write UTC, and check that no file was joined to itself"
        self.findings.append(
            Finding(code="CL243", severity="warning", message=text, file=self._file, mend=mend)
        )

    def _say_repeats(self) -> None:
        """Take samples that repeat others out of the figures, and say how many they are."""
        found = self._repeats
        if found.count and self.channel.kind != "delta":
            self.samples -= found.count
            self._sum_w -= found.sum_w if self.channel.kind != "counter" else 0.0
        self.findings += found.findings(self.channel.name, self._file)

    def _say(self, said: Finding) -> None:
        """Keep a Finding of a part; of several of one kind the first, with their number."""
        first = self._said.setdefault(said.code, [said, 0])
        first[1] += 1

    def _say_all(self) -> None:
        for said, count in self._said.values():
            more = f" (the same in {counted(count - 1, 'further part')})" if count > 1 else ""
            text = f"{self.channel.name}: {said.message}{more}"
            self.findings.append(msgspec.structs.replace(said, message=text, file=self._file))
        self._said.clear()
