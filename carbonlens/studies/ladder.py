"""Ladder: measure any arms in interleaved rounds and record every run.

An arm is prepared once (its effort), checked once (first call, warm-up and
quality, apart from the rounds) and then measured in every round. An arm that
raises is recorded as failed and leaves; the others go on.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from pathlib import Path

from carbonlens.compare.rounds import round_orders
from carbonlens.domain.units import Role
from carbonlens.errors import MeasurementError
from carbonlens.instrument.interrupt import interrupt_noted
from carbonlens.instrument.progress import Progress, Silent
from carbonlens.instrument.track import track
from carbonlens.instrument.tracked import TrackedRun

MIN_ROUNDS = 5
"""Fewer rounds give no verdict."""

_WALL_PER_CPU = 4.0
"""A round ends after this many times its length, if the work hardly uses the CPU."""


@dataclass(frozen=True)
class Check:
    """A quality figure with the outcome of every example, in a fixed order.

    Attributes:
        name: For example ``accuracy``.
        outcomes: 1 for a right answer, 0 for a wrong one.
    """

    name: str
    outcomes: tuple[int, ...]

    @property
    def value(self) -> float:
        """Share of right answers."""
        return sum(self.outcomes) / len(self.outcomes)


@dataclass(frozen=True)
class Prepared:
    """An arm that is ready to be measured.

    Attributes:
        call: Does one call of the work and returns the functional units done.
        evaluate: Measures the quality, outside the rounds.
        artefact: What later arms build on.
        model_bytes: Size of the model.
        macs_per_unit: Multiply-accumulates of one functional unit.
    """

    call: Callable[[], int]
    evaluate: Callable[[], Sequence[Check]] | None = None
    artefact: object = None
    model_bytes: int | None = None
    macs_per_unit: int | None = None


@dataclass(frozen=True)
class Arm:
    """One step of a ladder.

    Attributes:
        name: Name the runs carry.
        title: Words for a reader.
        prepare: Makes the arm ready, given the artefacts of the arms it needs.
        measured_on: The step it is compared with; ``None`` for the preceding one.
        needs: Arms whose artefacts it builds on.
    """

    name: str
    title: str
    prepare: Callable[[Mapping[str, object]], Prepared]
    measured_on: str | None = None
    needs: tuple[str, ...] = ()


@dataclass(frozen=True)
class Pace:
    """How long to measure.

    Attributes:
        rounds: Rounds, each with every arm once.
        round_s: CPU seconds of one arm in one round.
        warm_up_s: CPU seconds of calls before the rounds, the first one apart.
        steady_s: CPU seconds of calls in the one run of each arm whose power over time is kept:
            a round is too short for a curve. None for 0.
    """

    rounds: int = 20
    round_s: float = 0.12
    warm_up_s: float = 0.1
    steady_s: float = 0.0

    def __post_init__(self) -> None:
        """Refuse a pace that can give no verdict.

        Raises:
            MeasurementError: If there are too few rounds or they have no length.
        """
        if self.rounds < MIN_ROUNDS or not self.round_s > 0:
            raise MeasurementError(
                f"{self.rounds} rounds of {self.round_s} s give no verdict",
                mend=f"measure at least {MIN_ROUNDS} rounds of some length",
            )


@dataclass(frozen=True)
class Setting:
    """What all runs of a ladder share.

    Attributes:
        study: Name of the study.
        unit: Functional unit.
        workload: Words that tell the work, the same for all arms.
        ledger: Folder the runs go to.
    """

    study: str
    unit: str
    workload: str
    ledger: Path


@dataclass(frozen=True)
class LadderResult:
    """What a ladder came to.

    Attributes:
        rounds: Complete rounds, in which every remaining arm was measured.
        failed: Error text per arm that raised.
        quality: The checks of every arm that has some.
        interrupted: Whether Ctrl-C ended the rounds early.
    """

    rounds: int
    failed: Mapping[str, str] = field(default_factory=dict)
    quality: Mapping[str, tuple[Check, ...]] = field(default_factory=dict)
    interrupted: bool = False


def run_ladder(
    arms: Sequence[Arm], setting: Setting, *, pace: Pace | None = None, progress: Progress | None = None
) -> LadderResult:
    """Prepare, check and measure all arms, and record every run.

    The first Ctrl-C during the rounds ends them after the arm that is running,
    so that no half run is recorded; a second one aborts.

    Args:
        arms: The baseline first; an arm's ``needs`` stand before it.
        setting: Study, unit and ledger.
        pace: How long to measure.
        progress: Whom to tell.
    """
    return _Ladder(arms, setting, pace or Pace(), progress or Silent()).run()


class _Ladder:
    """One ladder while it runs."""

    def __init__(self, arms: Sequence[Arm], setting: Setting, pace: Pace, progress: Progress) -> None:
        self._arms = arms
        self._setting = setting
        self._pace = pace
        self._progress = progress
        self._ready: dict[str, Prepared] = {}
        self._failed: dict[str, str] = {}
        self._quality: dict[str, tuple[Check, ...]] = {}

    def run(self) -> LadderResult:
        self._progress.start(len(self._arms), "Preparing")
        for arm in self._arms:
            self._attempt(arm.name, "effort", partial(self._prepare, arm))
            self._progress.advance()
        self._progress.start(len(self._ready), "Checking")
        for name in tuple(self._ready):
            self._attempt(name, "evaluation", partial(self._check, name))
            self._progress.advance()
        rounds, interrupted = self._measure()
        return LadderResult(rounds, self._failed, self._quality, interrupted)

    def _prepare(self, arm: Arm, _run: TrackedRun) -> None:
        lacking = [name for name in arm.needs if name not in self._ready]
        if lacking:
            raise MeasurementError(
                f"builds on {', '.join(lacking)}, which failed", where=arm.name, mend="mend that step first"
            )
        self._ready[arm.name] = arm.prepare({name: self._ready[name].artefact for name in arm.needs})

    def _check(self, name: str, run: TrackedRun) -> None:
        ready = self._ready[name]
        run.enter_phase("warm-up")
        started = time.perf_counter()
        run.add_units(ready.call())
        # The only latency of this run is that of the first call; the warm-up's count nowhere.
        run.record_latencies([(time.perf_counter() - started) * 1e3])
        run.add_units(_calls(ready, self._pace.warm_up_s)[0])
        if self._pace.steady_s:
            run.enter_phase("steady")
            run.add_units(_calls(ready, self._pace.steady_s)[0])
        run.enter_phase(None if ready.evaluate is None else "evaluation")
        checks = tuple(ready.evaluate()) if ready.evaluate is not None else ()
        for check in checks:
            run.record_quality(check.name, check.value, n=len(check.outcomes), outcomes=check.outcomes)
        self._quality[name] = checks

    def _measure(self) -> tuple[int, bool]:
        names = [a.name for a in self._arms if a.name in self._ready]
        if not names:
            return 0, False
        self._progress.start(self._pace.rounds * len(names), "Measuring")
        with interrupt_noted() as interrupt:
            for number, order in enumerate(islice(round_orders(names), self._pace.rounds), start=1):
                for name in order:
                    if interrupt.is_set():
                        self._progress.note(f"stopped after {number - 1} of {self._pace.rounds} rounds")
                        return number - 1, True
                    if name in self._ready:
                        self._attempt(name, "variant", partial(self._round, name), repeat=number)
                    self._progress.advance()
        return self._pace.rounds, False

    def _round(self, name: str, run: TrackedRun) -> None:
        ready = self._ready[name]
        run.describe_model(bytes=ready.model_bytes, macs_per_unit=ready.macs_per_unit)
        units, latencies = _calls(ready, self._pace.round_s)
        run.add_units(units)
        run.record_latencies(latencies)

    def _attempt(
        self, name: str, role: Role, work: Callable[[TrackedRun], None], repeat: int | None = None
    ) -> None:
        """Do one recorded piece of work; an arm that raises leaves the ladder."""
        setting = self._setting
        try:
            with track(
                name,
                study=setting.study,
                role=role,
                unit=setting.unit if role != "effort" else None,
                repeat=repeat,
                ledger=setting.ledger,
                workload=setting.workload if role != "effort" else None,
                # The run outside the rounds alone: in one that is compared nothing is read more often.
                trace=True if role == "evaluation" else None,
            ) as run:
                work(run)
        except Exception as error:  # noqa: BLE001 - an arm is anybody's code, and the others must go on
            self._ready.pop(name, None)
            self._failed[name] = f"{type(error).__name__}: {error}"
            self._progress.note(f"{name} failed: {self._failed[name]}")


def _calls(ready: Prepared, cpu_s: float) -> tuple[int, list[float]]:
    """Call until the CPU time is used; return the units done and each call's milliseconds."""
    units = 0
    latencies: list[float] = []
    now = time.perf_counter()
    deadline = now + cpu_s * _WALL_PER_CPU
    cpu_deadline = time.process_time() + cpu_s
    while time.process_time() < cpu_deadline and now < deadline:
        units += ready.call()
        ended = time.perf_counter()
        latencies.append((ended - now) * 1e3)
        now = ended
    return units, latencies
