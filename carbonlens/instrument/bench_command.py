"""A bench's variant that is a command: run from its start to its end, as often as a window needs."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path
from typing import Final

import msgspec

from carbonlens.domain.bench import Bench, Variant
from carbonlens.domain.finding import Finding
from carbonlens.domain.run import Run
from carbonlens.domain.units import Role
from carbonlens.errors import MeasurementError
from carbonlens.instrument import bench_result
from carbonlens.instrument.callers_environment import callers_environ
from carbonlens.instrument.child import LeftBehind, end_adopted, reap_orphans
from carbonlens.instrument.execution import clear, execute, last_line
from carbonlens.instrument.window import Label, Place, Say, Work, measure, steady_s, unsaid
from carbonlens.ledger.location import LEDGER_VARIABLE
from carbonlens.metering.lineage import VARIABLE
from carbonlens.metering.process_time import children
from carbonlens.metering.recorder import Recorder
from carbonlens.metering.wording import plain


def unrecorded(scratch: Path) -> str:
    """Return the ledger of what a variant tracks in work that is done again, and recorded already.

    Args:
        scratch: Folder of the variant, which goes with the bench.
    """
    return str(scratch / "unrecorded")


class CommandArm:
    """Runs a command; one execution starts a fresh process, so that its start-up counts too."""

    shared_from: int | None = None

    def __init__(self, variant: Variant, bench: Bench, place: Place, label: Label, scratch: Path) -> None:
        """Prepare; nothing is run yet.

        Args:
            variant: What to run.
            bench: The series.
            place: Where it is recorded.
            label: What all records of the variant say.
            scratch: Folder of its own for its output.
        """
        self._variant = variant
        self._bench = bench
        self._place = place
        self._label = label
        self._log = scratch / "output.log"
        self._log.touch()
        self._result = self._log.with_suffix(".json")
        self._printed = scratch / "evaluate.out"
        self._unrecorded = unrecorded(scratch)
        self._shortest_s = math.inf
        self._say: Say = unsaid
        self._window_s = bench.pace.window_s

    def prepare(self, *, record: bool) -> Run | None:
        """Run the command that makes the variant."""
        work = self._variant.prepare
        if not isinstance(work, tuple) or not record:
            return None
        return self._measured("effort", lambda recorder, run: self._effort(work, recorder, run))

    def check(self, *, record: bool) -> Run | None:
        """Run the command once or more to warm up."""
        if not record:
            self._warm_up(None, None)
            return None
        return self._measured("evaluation", self._warm_up)

    def evaluate(self) -> Run | None:
        """Run the command that measures the quality, where there is one."""
        if not isinstance(self._variant.evaluate, tuple):
            return None
        return self._measured("evaluation", self._evaluated)

    def measure(self, repeat: int) -> Run:
        """Measure one window: the command, as often as it takes to fill it."""
        return self._measured("variant", self._window, repeat)

    def close(self) -> None:
        """Nothing is left open."""

    def _measured(self, role: Role, work: Work, repeat: int | None = None) -> Run:
        label = msgspec.structs.replace(
            self._label,
            role=role,
            repeat=repeat,
            unit=None if role == "effort" else self._label.unit,
            workload=None if role == "effort" else self._label.workload,
        )
        if role != "variant":
            traced = self._phased if work == self._warm_up else None
            size = None if traced is None else self._lengthen
            return measure(label, self._place, work, of_children=True, size=size, traced=traced).run
        return measure(
            label, self._place, work, of_children=True, settle=self._settle, size=self._lengthen
        ).run

    def _lengthen(self, seconds: float) -> None:
        self._window_s = max(self._bench.pace.window_s, seconds)

    def _settle(self, seconds: float, run: Run) -> None:
        """Repeat the command as its window will; one that fills it alone lets the last one's power fade.

        To run a long command twice would double the time of the series, and its start is
        part of its work.
        """
        # The first execution is often the slowest by far: what is known since counts too.
        if self._shortest_s >= self._window_s:
            time.sleep(seconds)
            return
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            self._timed(run, None)

    def _effort(self, argv: Sequence[str], recorder: Recorder, run: Run) -> None:
        self._once(argv, run, recorder)

    def _evaluated(self, recorder: Recorder, run: Run) -> None:
        said = self._once(self._variant.evaluate or (), run, recorder, printed=self._printed)
        if said.get("quality"):
            return
        # Libraries write to stderr as they end; who prints there alone is understood too.
        printed = last_line(self._printed, whole=True) or last_line(self._log, whole=True)
        where = f"evaluate of {self._variant.name!r}"
        if printed is None:
            raise MeasurementError("told no quality", where=where, mend=_EVALUATE)
        bench_result.record(bench_result.parse(printed, where), recorder, where=where)

    def _phased(self, say: Say) -> None:
        self._say = say

    def _warm_up(self, recorder: Recorder | None, run: Run | None) -> None:
        if run is not None:
            self._say("warm-up")
        for turn in range(max(1, self._bench.pace.warm_up)):
            took_s, _ = self._timed(run, recorder)
            if turn == 0 and recorder is not None:
                recorder.add_latencies([took_s * 1e3])
        # What a round does, once, where the power of all phases is kept; a long command was it already.
        seconds = steady_s(self._window_s)
        if run is not None and self._shortest_s < seconds:
            self._say("steady")
            deadline = time.perf_counter() + seconds
            while time.perf_counter() < deadline:
                self._timed(run, recorder)
        self._say(None)

    def _window(self, recorder: Recorder, run: Run) -> None:
        """Run the command until the window is full; what it does is divided by the units, not the times."""
        deadline = time.perf_counter() + self._window_s
        while True:
            took_s, said = self._timed(run, recorder)
            if not said.get("latencies_ms"):
                recorder.add_latencies([took_s * 1e3])
            if time.perf_counter() >= deadline:
                break
        bench_result.require_units(recorder, where=self._variant.name)

    def _timed(self, run: Run | None, recorder: Recorder | None) -> tuple[float, dict[str, object]]:
        """Run the variant's command; return how long it took and what it said of itself."""
        begin = time.perf_counter()
        said = self._once(self._variant.command, run, recorder, units=self._variant.units)
        took_s = time.perf_counter() - begin
        self._shortest_s = min(self._shortest_s, took_s)
        return took_s, said

    def _once(
        self,
        argv: Sequence[str],
        run: Run | None,
        recorder: Recorder | None,
        units: Decimal | None = None,
        printed: Path | None = None,
    ) -> dict[str, object]:
        """Run a command to its end and take what it says of itself."""
        self._result.unlink(missing_ok=True)
        clear(self._log)  # a series of one that prints megabytes would fill the disk
        others = frozenset(children(os.getpid()))
        try:
            execute(
                argv,
                folder=self._bench.folder,
                environ=self._environ(run),
                log=self._log,
                printed=printed,
                timeout_s=self._bench.pace.timeout_s,
            )
        finally:
            # What it leaves would be billed to the windows of whoever works next.
            left = end_adopted(others, f"{bench_result.VARIABLE}={self._result}")
            reap_orphans(others)
        if (left.ended or left.running) and recorder is not None:
            recorder.note(_left_behind(left))
        said = bench_result.read(self._result)
        if recorder is not None:
            told = bench_result.record(said, recorder, where=self._variant.name)
            if units is not None and not told:
                recorder.add_units(units)
        return said

    def _environ(self, run: Run | None) -> dict[str, str]:
        environ = {**callers_environ(), **self._variant.environment, bench_result.VARIABLE: str(self._result)}
        # What the command tracks itself belongs beside this run, and within it.
        if run is not None:
            return environ | {VARIABLE: run.run_id, LEDGER_VARIABLE: self._place.ledger}
        return environ | {LEDGER_VARIABLE: self._unrecorded}


def _left_behind(left: LeftBehind) -> Finding:
    told = [f"{', '.join(map(plain, left.ended))} running; it was ended"] if left.ended else []
    if left.running:
        told.append(
            f"{', '.join(map(plain, left.running))} running, which could not be ended: its work may be in "
            "the windows of all that is measured from now on"
        )
    else:
        told[-1] += ", so that no other window is billed for it"
    return Finding(
        code="CL163",
        severity="warning",
        message=f"the command ended and left {', and '.join(told)}",
        mend="let the command wait for what it starts",
        subject="processes",
    )


_EVALUATE: Final = 'let it print {"accuracy": 0.97} as its last line'
