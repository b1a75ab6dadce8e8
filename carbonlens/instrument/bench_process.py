"""A bench's variant that works in a process of its own: a function, an ONNX model, a URL.

A process for each keeps what one variant holds (memory, thread pools, a broken state)
away from the others, and a crash costs one variant. All wait while one works.

How fast a process is depends on where its memory came to lie, by some percent and for as
long as it lives (Mytkowicz, Diwan, Hauswirth and Sweeney, ASPLOS 2009, on such bias). Rounds
in one process would all err by the same and call it a difference. Each round therefore has
a fresh one, where that is soon ready.
"""

from __future__ import annotations

import os
import select
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final, Literal

import msgspec

from carbonlens.domain.bench import Bench, Variant
from carbonlens.domain.decoding import decode_json
from carbonlens.domain.run import Run
from carbonlens.errors import MeasurementError
from carbonlens.instrument import bench_result
from carbonlens.instrument.bench_command import CommandArm, unrecorded
from carbonlens.instrument.bench_worker import Answer, Order, Setting
from carbonlens.instrument.callers_environment import callers_environ
from carbonlens.instrument.child import end_adopted
from carbonlens.instrument.execution import clear, end, last_line, start
from carbonlens.instrument.window import Label, Place, record_failure

_READY_S: Final = 1.0
_READY_WINDOWS: Final = 2.0
"""A process that always takes longer to be ready than so many windows and a second more is kept."""

_LATE: Final = 3
"""Latest processes that are looked at, and times that limit that they may take together where all were late.

One may be late by what else runs here, and an early one may have been soon ready by chance.
"""

_LOUD_BYTES: Final = 1 << 20
"""Of output that is kept from one round to the next."""

_LOOK_S: Final = 1.0
_END_S: Final = 1.0
_SERVER_END_S: Final = 12.0
"""A worker has to end within this time; one with a server gives that time to end first."""

_MODULE = "carbonlens.instrument.bench_worker"


def is_late(ready_s: Sequence[float], limit_s: float) -> bool:
    """Tell whether a variant's processes take too long to be ready, so that each round has no fresh one.

    Args:
        ready_s: Seconds that each took so far, in order.
        limit_s: Seconds that one may take.
    """
    latest_s = ready_s[-_LATE:]
    return min(latest_s) > limit_s and sum(latest_s) >= _LATE * limit_s


class ProcessArm:
    """Has a worker do the work of one variant."""

    def __init__(self, variant: Variant, bench: Bench, place: Place, label: Label, scratch: Path) -> None:
        """Start the worker.

        Args:
            variant: What to run; no command.
            bench: The series.
            place: Where it is recorded.
            label: What all records of the variant say.
            scratch: Folder of its own for its output.

        Raises:
            MeasurementError: If no process can be started.
        """
        self._variant = variant
        self._bench = bench
        self._label = label
        self._place = place
        self._commands = CommandArm(variant, bench, place, label, scratch)
        self._log = scratch / "output.log"
        self._unrecorded = unrecorded(scratch)
        # Known by it: what the worker starts has it too.
        self._mark = str(self._log.with_suffix(".json"))
        # A server's address may not be free again so soon.
        self.shared_from: int | None = 1 if variant.kind == "url" else None
        self._is_fresh = True
        self._ready_s: list[float] = []
        self._start()

    def _start(self) -> None:
        variant, bench, place = self._variant, self._bench, self._place
        orders_read, orders = os.pipe()
        answers, answers_write = os.pipe()
        try:
            self._child: subprocess.Popen[bytes] = start(
                [sys.executable, "-m", _MODULE, str(orders_read), str(answers_write)],
                folder=bench.folder,
                environ={**callers_environ(), **variant.environment, bench_result.VARIABLE: self._mark},
                log=self._log,
                pass_fds=(orders_read, answers_write),
            )
        finally:
            os.close(orders_read)
            os.close(answers_write)
        self._orders = os.fdopen(orders, "wb")
        self._answers = os.fdopen(answers, "rb")
        with suppress(BrokenPipeError):  # one that is dead already is told of with the first order
            self._send(
                Setting(
                    variant=variant,
                    pace=bench.pace,
                    place=place,
                    folder=bench.folder,
                    unrecorded=self._unrecorded,
                )
            )

    def prepare(self, *, record: bool) -> Run | None:
        """Have the worker do the effort; also where it is not recorded, for what it makes is needed."""
        if not isinstance(self._variant.prepare, str):
            return self._commands.prepare(record=record)
        label = msgspec.structs.replace(self._label, role="effort", unit=None, workload=None)
        begin = time.monotonic()
        prepared = self._ask("prepare", label if record else None)
        if self._is_repeated and time.monotonic() - begin > self._limit_s:
            # To see it again in a second process would do a long effort twice, unrecorded.
            self.shared_from = 1
        return prepared

    def check(self, *, record: bool) -> Run | None:
        """Have the worker do the first call, warm up and call ``evaluate``."""
        label = msgspec.structs.replace(self._label, role="evaluation")
        return self._ask("check", label if record else None)

    def evaluate(self) -> Run | None:
        """Run the command that measures the quality, where it is one."""
        return self._commands.evaluate()

    def measure(self, repeat: int) -> Run:
        """Have the worker measure one window."""
        label = msgspec.structs.replace(self._label, role="variant", repeat=repeat)
        if self.shared_from is None and not self._is_fresh:
            self._renew(repeat, label)
        self._is_fresh = False
        clear(self._log, beyond=_LOUD_BYTES)
        run = self._ask("measure", label)
        if run is None:
            raise MeasurementError(
                "the worker gave no record", where=self._variant.name, mend="run it again with --resume"
            )
        return run

    def _renew(self, repeat: int, label: Label) -> None:
        """Go on in a fresh process, for the last time if the latest took too long to be ready.

        Rounds in one process are no independent repetitions, so that one late start, on a busy
        machine or from a cold disk, does not decide it. A variant that fails in it has failed in
        the round: nothing else would keep it from being adopted for the rounds before.
        """
        begin = time.monotonic()
        self.close()
        self._start()
        if self._is_repeated:
            self._ask("prepare", None, of_round=label)
        self._ask("check", None, of_round=label)
        self._ready_s.append(time.monotonic() - begin)
        if is_late(self._ready_s, self._limit_s):
            self.shared_from = repeat

    @property
    def _is_repeated(self) -> bool:
        """Whether each process has to prepare: a callable needs what that returns."""
        return self._variant.kind == "callable" and isinstance(self._variant.prepare, str)

    @property
    def _limit_s(self) -> float:
        """How long a process may take to be ready."""
        return _READY_S + _READY_WINDOWS * self._bench.pace.window_s

    def close(self) -> None:
        """Tell the worker that there is no more, and see that it ends."""
        for pipe in (self._orders, self._answers):
            with suppress(BrokenPipeError):
                pipe.close()
        try:
            self._child.wait(_SERVER_END_S if self._variant.kind == "url" else _END_S)
        except subprocess.TimeoutExpired:
            end(self._child)
        # Whatever it started and did not end would be billed to the others.
        end_adopted(frozenset(), f"{bench_result.VARIABLE}={self._mark}")

    def _ask(
        self,
        do: Literal["prepare", "check", "measure"],
        label: Label | None,
        *,
        of_round: Label | None = None,
    ) -> Run | None:
        """Have the worker do something; what its parent has to record of a failure is said by a label."""
        try:
            self._send(Order(do=do, label=label))
            line = self._answer()
        except BrokenPipeError:
            line = b""
        if not line:
            how, said = self._how_it_ended(), last_line(self._log)
            record_failure(label or of_round or self._label, self._place, how)
            raise MeasurementError(
                how if said is None else f"{how}: {said[:160]}",
                where=self._variant.name,
                mend="mend that first",
            )
        answer = decode_json(line, Answer)
        if answer.error is not None:
            if label is None and of_round is not None:
                record_failure(of_round, self._place, answer.kind or "failed")
            raise MeasurementError(answer.error, where=self._variant.name, mend="mend that first")
        return answer.run

    def _answer(self) -> bytes:
        """Return the worker's next line; an empty one where it has ended without.

        What it forked off has the pipe too and may outlive it, so that the pipe's end tells nothing.
        """
        news = select.poll()
        news.register(self._answers, select.POLLIN)
        while not news.poll(_LOOK_S * 1e3):
            if self._child.poll() is not None and not news.poll(0):
                return b""
        return self._answers.readline()

    def _send(self, message: msgspec.Struct) -> None:
        self._orders.write(msgspec.json.encode(message) + b"\n")
        self._orders.flush()

    def _how_it_ended(self) -> str:
        code = self._child.wait()
        return f"its process was ended by signal {-code}" if code < 0 else f"its process ended with {code}"
