"""Bench: measure variants in interleaved rounds until their intervals are narrow enough.

A variant is made ready once (its effort), checked once (first call, warm-up, quality),
and then measured in every round. One that fails is recorded and leaves; the others go
on. When to stop is decided by the scatter alone, never by what the rounds say of a
saving (``compare.stopping``).
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from itertools import count, islice
from pathlib import Path
from typing import Literal

import msgspec

from carbonlens.compare.rounds import log_ratios, round_orders
from carbonlens.compare.stopping import NextRounds, StopRule, next_rounds
from carbonlens.domain.bench import Bench, Variant
from carbonlens.domain.counting import counted
from carbonlens.domain.run import Run
from carbonlens.errors import MeasurementError
from carbonlens.instrument.bench_arm import ArmRunner
from carbonlens.instrument.bench_command import CommandArm
from carbonlens.instrument.bench_process import ProcessArm
from carbonlens.instrument.child import subreaper
from carbonlens.instrument.interrupt import interrupt_noted
from carbonlens.instrument.progress import Progress
from carbonlens.instrument.window import Label, Place

TAG = "bench"
"""Tag of every run of a series: the hash of what says how it was measured."""

OpenArm = Callable[[Variant, Bench, Place, Label, Path], ArmRunner]
_Work = Callable[[], Run | None]

Ended = Literal["narrow_enough", "most_rounds", "budget", "interrupted", "nothing_left"]


class BenchResult(msgspec.Struct, frozen=True, kw_only=True):
    """What a series came to.

    Attributes:
        rounds: Rounds measured, those of earlier sittings included.
        ended: Why it ended.
        half_width: Widest half width of a step at the end, as a relative change.
        needed: Rounds in all that its scatter asks for to be as narrow as wanted.
        round_s: Seconds that a round of this sitting took, in the mean; ``None`` where none was measured.
        failed: What each variant that failed says.
        in_one_process: First of the rounds that shared a process, by variant (1 if each sitting had one).
    """

    rounds: int
    ended: Ended
    half_width: float | None = None
    needed: int | None = None
    round_s: float | None = None
    failed: Mapping[str, str] = msgspec.field(default_factory=dict)
    in_one_process: Mapping[str, int] = msgspec.field(default_factory=dict)


def run_bench(  # noqa: PLR0913  # optional and by name
    bench: Bench,
    place: Place,
    *,
    scratch: Path,
    progress: Progress,
    done: Sequence[Run] = (),
    open_arm: OpenArm | None = None,
    checked: Callable[[], None] | None = None,
) -> BenchResult:
    """Measure a series and record every run.

    The first Ctrl-C ends it after the window being measured, so that no half window is
    recorded; a second one aborts.

    Args:
        bench: What to measure.
        place: Where it is recorded.
        scratch: Empty folder for the variants' output.
        progress: Whom to tell.
        done: Runs of the series from an earlier sitting, which is gone on with.
        open_arm: Makes what does a variant's work; by its kind when ``None``.
        checked: Called when every variant was checked, before the first round.

    Raises:
        MeasurementError: If the baseline fails, or nothing tells the energy of its work.
    """
    with ExitStack() as stack:
        stack.enter_context(subreaper())
        series = _Series(bench, progress, done, _Opener(open_arm or arm_of, bench, place, scratch, stack))
        series.make_ready()
        if checked is not None:
            checked()
        return series.measure()


def arm_of(variant: Variant, bench: Bench, place: Place, label: Label, scratch: Path) -> ArmRunner:
    """Return what does a variant's work, by its kind.

    Args:
        variant: What to run.
        bench: The series.
        place: Where it is recorded.
        label: What all its records say.
        scratch: Folder of its own.

    Raises:
        MeasurementError: If its process cannot be started.
    """
    kind = CommandArm if variant.kind == "command" else ProcessArm
    return kind(variant, bench, place, label, scratch)


class _Opener:
    """Makes the arms of a series, and sees that they are closed."""

    def __init__(
        self, open_arm: OpenArm, bench: Bench, place: Place, scratch: Path, stack: ExitStack
    ) -> None:
        self._open_arm = open_arm
        self._bench = bench
        self._place = place
        self._scratch = scratch
        self._stack = stack

    def open(self, variant: Variant) -> ArmRunner:
        folder = Path(tempfile.mkdtemp(dir=self._scratch))
        label = Label(
            step=variant.name,
            study=self._bench.study.name,
            role="variant",
            unit=self._bench.study.unit,
            workload=self._bench.workload,
            tags={TAG: self._bench.spec_sha256[:16]},
        )
        arm = self._open_arm(variant, self._bench, self._place, label, folder)
        self._stack.callback(arm.close)
        return arm


class _Series:
    """One sitting of a series."""

    def __init__(self, bench: Bench, progress: Progress, done: Sequence[Run], opener: _Opener) -> None:
        self._bench = bench
        self._progress = progress
        self._opener = opener
        self._runs = list(done)
        self._arms: dict[str, ArmRunner] = {}
        self._failed: dict[str, str] = {}
        self._begun_s = 0.0
        self._rounds_before = 0
        self._rule = StopRule(half_width=bench.pace.half_width, least=bench.pace.least, most=bench.pace.most)

    def make_ready(self) -> None:
        """Prepare and check every variant; what an earlier sitting recorded is not recorded twice."""
        variants = self._bench.variants
        self._tell_failed()
        self._progress.start(2 * len(variants), "Preparing")
        for variant in variants:
            self._attempt(variant.name, partial(self._prepared, variant))
            self._progress.advance()
        for name in tuple(self._arms):
            arm, is_new = self._arms[name], not self._has(name, "evaluation")
            self._attempt(name, partial(arm.check, record=is_new))
            if name in self._arms and not self._is_evaluated(name):
                self._attempt(name, arm.evaluate)
            self._progress.advance()

    def _tell_failed(self) -> None:
        """Say before the work whose further rounds are in vain: one failed round fails a step."""
        failed = {r.step: r for r in self._runs if r.role == "variant" and r.status == "failed"}
        for name, run in failed.items():
            what = "stays failed in this series: once that is mended, begin a new one without --resume"
            if name == self._bench.study.baseline:
                what = "that round is left out"
            self._progress.note(f"{name} failed in an earlier sitting ({run.error}): {what}")

    def _prepared(self, variant: Variant) -> Run | None:
        arm = self._arms[variant.name] = self._opener.open(variant)
        return arm.prepare(record=not self._has(variant.name, "effort"))

    def _has(self, name: str, role: str) -> bool:
        return any(r.step == name and r.role == role and r.status == "complete" for r in self._runs)

    def _is_evaluated(self, name: str) -> bool:
        """Tell whether a command that measures the quality has ended, whatever it told.

        The first complete record of a variant is that of its check, whose command may tell
        qualities too; the second is that of ``evaluate``. What these track themselves has no tag.
        """
        mine = (r for r in self._runs if r.step == name and r.role == "evaluation" and TAG in r.tags)
        return sum(r.status == "complete" for r in mine) > 1

    def measure(self) -> BenchResult:
        """Measure rounds until the stop rule, the budget or the user ends them."""
        begun = self._begun_s = time.monotonic()
        self._rounds_before = self._rounds()
        # One that was cut short has its number, and is no round.
        before = max((r.repeat or 0 for r in self._runs if r.role == "variant"), default=0)
        said = self._said()
        self._progress.start(max(self._bench.pace.most - self._rounds(), 0), "Measuring")
        orders = islice(round_orders([v.name for v in self._bench.variants]), before, None)
        with interrupt_noted() as interrupt:
            for number in count(before + 1):
                ended = self._ended(number - 1 - before, said, begun)
                if ended is not None:
                    return self._result(ended, said)
                for name in next(orders):
                    if interrupt.is_set():
                        return self._result("interrupted", said)
                    if name in self._arms:
                        self._attempt(name, partial(self._arms[name].measure, number))
                self._progress.advance()
                said = self._said()
        raise AssertionError("counting does not end")

    def _rounds(self) -> int:
        """Return how many rounds are complete: every variant that is left was measured to the end."""
        done: dict[int | None, set[str | None]] = {}
        for run in self._runs:
            if run.role == "variant" and run.status == "complete":
                done.setdefault(run.repeat, set()).add(run.step)
        return sum(steps >= self._arms.keys() for steps in done.values())

    def _ended(self, begun_rounds: int, said: NextRounds | None, begun: float) -> Ended | None:
        """Return why the series ends here; ``None`` while it goes on.

        Args:
            begun_rounds: Of this sitting.
            said: What the stop rule says.
            begun: When the sitting began to measure.
        """
        if len(self._arms) < 2:
            return "nothing_left"
        if said is not None and said.more == 0 and said.outcome != "continue":
            return said.outcome
        rounds = self._rounds()
        if max(rounds, begun_rounds) >= self._bench.pace.most:
            return "most_rounds"
        budget_s = self._bench.pace.budget_s
        spent = budget_s is not None and time.monotonic() - begun > budget_s
        return "budget" if spent and rounds >= self._bench.pace.least else None

    def _said(self) -> NextRounds | None:
        """Return what the stop rule says of the rounds so far; ``None`` before anything is known."""
        # A round that the baseline failed in is left out of a comparison too.
        lost = {id(r) for r in self._runs if r.step == self._bench.study.baseline and r.status == "failed"}
        mine = [r for r in self._runs if r.role == "variant" and r.step in self._arms]
        runs = [r for r in mine if id(r) not in lost]
        if {r.step for r in runs} != set(self._arms) or len(self._arms) < 2:
            return None
        steps = tuple(s for s in self._bench.study.steps if s.name in self._arms)
        ratios = log_ratios(msgspec.structs.replace(self._bench.study, steps=steps), runs)
        return next_rounds(ratios, self._rule) if ratios else None

    def _result(self, ended: Ended, said: NextRounds | None) -> BenchResult:
        now = self._rounds() - self._rounds_before
        return BenchResult(
            rounds=self._rounds(),
            ended=ended,
            half_width=None if said is None else said.half_width,
            needed=None if said is None else said.needed,
            round_s=(time.monotonic() - self._begun_s) / now if now else None,
            failed=self._failed,
            in_one_process={n: a.shared_from for n, a in self._arms.items() if a.shared_from is not None},
        )

    def _attempt(self, name: str, work: _Work) -> None:
        """Do one piece of work; a variant that fails leaves the series.

        Raises:
            MeasurementError: If it is the baseline's, or its energy is not told here.
        """
        is_baseline = name == self._bench.study.baseline
        try:
            run = work()
        except MeasurementError as error:
            if is_baseline:
                raise self._with_resuming(error) from error
            arm = self._arms.pop(name, None)
            if arm is not None:
                arm.close()  # its server or threads would work beside the others
            where = f"{error.where}: " if error.where and error.where != name else ""
            self._failed[name] = f"{where}{error.what}"
            self._progress.note(f"{name} failed: {self._failed[name]}")
        else:
            if run is not None:
                self._runs.append(run)
                if is_baseline:
                    self._require_energy(run)

    def _with_resuming(self, error: MeasurementError) -> MeasurementError:
        """Return the baseline's error; where rounds are finished it says how to go on with them."""
        rounds = self._rounds()
        if not rounds:
            return error
        kept = f"{counted(rounds, 'finished round')} {'is' if rounds == 1 else 'are'} kept"
        on = "--resume goes on with them if no measured file was changed for it; otherwise begin anew"
        return MeasurementError(error.what, where=error.where, mend=f"{error.mend}; {kept}: {on}")

    def _require_energy(self, run: Run) -> None:
        """Refuse to go on where nothing tells the energy of the work: there would be nothing to compare.

        A first call may be too short for a sensor that is there, and then a whole window tells.

        Raises:
            MeasurementError: If nothing does.
        """
        is_short = run.role != "variant" and any(r.devices for r in run.energy)
        if is_short or any(r.estimate.value is not None for r in run.energy):
            return
        if any(r.role == "variant" and r.total_energy.value is not None for r in self._runs):
            return
        raise MeasurementError(
            "nothing here tells the energy of the work",
            where=run.step,
            mend="`carbonlens doctor` says why, and what would; a bench compares energy",
        )
