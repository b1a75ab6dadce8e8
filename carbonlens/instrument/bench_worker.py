"""The process in which a bench's function, model or URL does its work.

Started as ``python -m carbonlens.instrument.bench_worker READ WRITE`` with two open
files: it takes one JSON order a line from the first and answers each with one line on
the second. Its own output goes where its parent sends it. It ends with its parent, also
where that is killed in the middle of an order, and ends what it started.
"""

from __future__ import annotations

import os
import select
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import BinaryIO, Final, Literal

import msgspec

from carbonlens.domain.bench import Pace, Variant
from carbonlens.domain.decoding import decode_json
from carbonlens.domain.run import Run
from carbonlens.instrument import bench_result
from carbonlens.instrument.bench_work import Call, FunctionWork, Loaded, calls, settled, told
from carbonlens.instrument.interrupt import Terminated
from carbonlens.instrument.window import Label, Place, Say, measure, steady_s, unsaid
from carbonlens.ledger.location import LEDGER_VARIABLE
from carbonlens.metering.ending import SIGNAL_BASE
from carbonlens.metering.recorder import Recorder
from carbonlens.metering.wording import error_kind

_END_S: Final = 2.0
"""Time that work in hand has to end by itself when the parent is gone."""


class Order(msgspec.Struct, frozen=True, kw_only=True):
    """What the worker is to do next.

    Attributes:
        do: Make ready, check, or measure.
        label: What the record says; nothing is recorded when ``None``.
    """

    do: Literal["prepare", "check", "measure"]
    label: Label | None = None


class Setting(msgspec.Struct, frozen=True, kw_only=True):
    """What the worker is told first.

    Attributes:
        unrecorded: Ledger of what the work tracks itself where it is not to be recorded.
    """

    variant: Variant
    pace: Pace
    place: Place
    folder: str
    unrecorded: str


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """What came of an order: the record, or what went wrong and what of that a record keeps."""

    run: Run | None = None
    error: str | None = None
    kind: str | None = None


def loaded(variant: Variant, timeout_s: float | None = None) -> Loaded:
    """Return the work of a variant.

    Args:
        variant: One that is no command.
        timeout_s: Longest that a request may take.
    """
    if variant.kind == "onnx":
        from carbonlens.instrument.bench_onnx import OnnxWork

        return OnnxWork(variant)
    if variant.kind == "url":
        from carbonlens.instrument.bench_server import UrlWork

        return UrlWork(variant, timeout_s)
    return FunctionWork(variant)


class _Worker:
    def __init__(self, setting: Setting) -> None:
        self._pace = setting.pace
        self._place = setting.place
        self._unrecorded = setting.unrecorded
        self._variant = setting.variant
        self._window_s = setting.pace.window_s
        self._work: Loaded = loaded(setting.variant, setting.pace.timeout_s)
        self._call: Call | None = None
        self._say: Say = unsaid

    def obey(self, order: Order) -> Answer:
        work = {"prepare": self._prepare, "check": self._check, "measure": self._measure}[order.do]
        try:
            with _tracking_to(self._unrecorded if order.label is None else self._place.ledger):
                if order.label is None:
                    work(Recorder(), None)
                    return Answer()
                if order.do == "check":
                    traced = measure(order.label, self._place, work, size=self._lengthen, traced=self._phased)
                    return Answer(run=traced.run)
                if order.do != "measure":
                    return Answer(run=measure(order.label, self._place, work).run)
                of_rounds = measure(order.label, self._place, work, settle=self._settle, size=self._lengthen)
                return Answer(run=of_rounds.run)
        except (Exception, SystemExit) as error:  # noqa: BLE001  # anybody's code; the parent tells the user
            return Answer(error=told(error), kind=error_kind(error))

    def close(self) -> None:
        self._work.close()

    def _prepare(self, recorder: Recorder, run: Run | None) -> None:  # noqa: ARG002  # all orders are alike
        self._work.prepare()

    def _phased(self, say: Say) -> None:
        self._say = say

    def _check(self, recorder: Recorder, run: Run | None) -> None:
        self._say("load")
        call = self._call = self._work.load()
        self._say("warm-up")
        # The only latency of this run is that of the first call; the warm-up's count nowhere.
        units, latencies = calls(call, self._variant.units, 0)
        recorder.add_units(units)
        recorder.add_latencies(latencies)
        for _ in range(self._pace.warm_up):
            recorder.add_units(calls(call, self._variant.units, 0)[0])
        if run is not None:
            # What a round does, once, where the power of all phases is kept: no round is read more often.
            if (seconds := steady_s(self._window_s)) > 0:
                self._say("steady")
                recorder.add_units(calls(call, self._variant.units, seconds)[0])
            self._say("evaluation" if isinstance(self._variant.evaluate, str) else None)
            found = self._work.evaluate()
            if found is not None:
                where = str(self._variant.evaluate)
                bench_result.record({"quality": dict(found)}, recorder, where=where)
            self._say = unsaid

    def _lengthen(self, seconds: float) -> None:
        self._window_s = max(self._pace.window_s, seconds)

    def _settle(self, seconds: float, run: Run) -> None:  # noqa: ARG002  # commands need it
        calls(self._checked_call(), self._variant.units, seconds)

    def _measure(self, recorder: Recorder, run: Run | None) -> None:  # noqa: ARG002  # all orders are alike
        settled()
        units, latencies = calls(self._checked_call(), self._variant.units, self._window_s)
        recorder.add_units(units)
        recorder.add_latencies(latencies)
        bench_result.require_units(recorder, where=self._variant.name)

    def _checked_call(self) -> Call:
        if self._call is None:
            raise RuntimeError("an arm is checked before it is measured")
        return self._call


@contextmanager
def _tracking_to(ledger: str) -> Iterator[None]:
    """Have what the work tracks itself within the block go to a ledger."""
    before = os.environ.get(LEDGER_VARIABLE)
    os.environ[LEDGER_VARIABLE] = ledger
    try:
        yield
    finally:
        if before is None:
            os.environ.pop(LEDGER_VARIABLE, None)  # the work may have taken it away itself
        else:
            os.environ[LEDGER_VARIABLE] = before


def serve(orders: BinaryIO, answers: BinaryIO) -> None:
    """Obey orders until there are no more.

    Args:
        orders: The setting, then orders, one JSON object a line.
        answers: Gets one line for each order.
    """
    setting = decode_json(orders.readline(), Setting)
    sys.path.insert(0, setting.folder)
    os.chdir(setting.folder)
    worker = _Worker(setting)
    threading.Thread(target=_end_with_parent, args=(orders.fileno(), worker), daemon=True).start()
    try:
        for line in orders:
            answer = worker.obey(decode_json(line, Order))
            answers.write(msgspec.json.encode(answer) + b"\n")
            answers.flush()
    finally:
        worker.close()


def _end_with_parent(orders: int, worker: _Worker) -> None:
    """End this process when nobody is left to give orders, whatever it is doing then.

    The system wakes this thread up at that moment; until then it costs nothing.
    """
    poll = select.poll()
    poll.register(orders, 0)  # a hang-up is told in any case
    poll.poll()
    # The parent has closed the orders, and there is no work: the loop ends by itself.
    time.sleep(_END_S)
    with suppress(Exception):  # nobody is there to be told
        worker.close()
    os._exit(1)


def _end_in_order() -> None:
    """Have SIGTERM end this process so that no server is left behind."""
    mine = os.getpid()

    def terminated(number: int, frame: FrameType | None) -> None:
        del frame
        if os.getpid() == mine:
            # The window did not end, which is no failure of the work.
            raise Terminated(number)
        # What a function forked off has no server to end.
        signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)

    signal.signal(signal.SIGTERM, terminated)


def main() -> None:
    """Serve the two open files named on the command line."""
    _end_in_order()
    read, write = map(int, sys.argv[1:3])
    try:
        with os.fdopen(read, "rb") as orders, os.fdopen(write, "wb") as answers:
            serve(orders, answers)
    except Terminated as end:
        sys.exit(SIGNAL_BASE + end.number)


if __name__ == "__main__":
    main()
