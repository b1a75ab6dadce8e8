"""The recorder: what the user says about the work while it runs.

Law 8 holds here too: a value of the wrong kind becomes a Finding on the run. An
evaluation that gave no number after ten hours of training must not end the job.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from contextlib import suppress
from decimal import Decimal
from typing import SupportsFloat, SupportsInt

import msgspec

from carbonlens.domain.artefact import Artefact
from carbonlens.domain.execution import ProviderTime
from carbonlens.domain.finding import Finding
from carbonlens.domain.limits import LEAST_UNITS, MOST
from carbonlens.domain.run import Quality
from carbonlens.domain.tokens import Tokens
from carbonlens.metering import findings
from carbonlens.metering.journal import Facts
from carbonlens.metering.locks import patiently
from carbonlens.metering.wording import UnfitValueError, plain, unfit
from carbonlens.signals.latency import LatencyCollector

StoreOutcomes = Callable[[tuple[int, ...]], str | None]
"""Keeps per-example outcomes and returns their hash; ``None`` when that failed."""

_INT64 = 2**63
_SHORT = 2**32
_MOST_WHOLE = 2**53
_MOST_COUNTS = 1024
"""Whole numbers below the first are laid by, so many of them at most, until their sum passes the
second: it stays far below the most that a record takes."""

_OUTCOMES = "a list of 0 and 1 (a score is a value)"


UNTOUCHED = (0, -1)
"""Version of a recorder that nothing was recorded with."""


class Recorder:
    """Collects units, quality, latencies and the model's size; safe from any thread."""

    def __init__(self) -> None:
        """Start with nothing recorded."""
        self._lock = threading.Lock()
        self._units: Decimal | None = None
        self._counts: list[int] = []
        self._quality: dict[str, Quality] = {}
        self._outcomes: dict[str, tuple[int, ...]] = {}
        self._latencies = LatencyCollector()
        self._model_bytes: int | None = None
        self._macs_per_unit: int | None = None
        self._tokens: Callable[[bool], Tokens] | None = None
        self._artefacts: dict[tuple[str, str], Artefact] = {}
        self._execution: tuple[ProviderTime, ...] = ()
        self._findings: dict[str, Finding] = {}
        self._at_end: list[Callable[[], None]] = []
        self._before_look: list[Callable[[], None]] = []
        self._version = 0

    def renew_lock(self) -> None:
        """Forget who holds the lock: in a forked child its holder may not exist."""
        self._lock = threading.Lock()

    @property
    def units(self) -> Decimal | None:
        """Functional units counted so far; ``None`` where none were."""
        counts = self._counts[:]
        if not counts:
            return self._units
        return (self._units or Decimal(0)) + sum(counts)

    @property
    def version(self) -> tuple[int, int]:
        """What is another one once more was recorded; ``UNTOUCHED`` before anything is."""
        counts = self._counts[:]
        return self._version, sum(counts) if counts else -1

    def add_units(self, units: SupportsFloat = 1) -> None:
        """Count more functional units as done."""
        # Loops call this at every step, after work that put all of this out of the caches: whole
        # numbers are laid by, which touches little, and summed when there are many.
        if type(units) is int and 0 <= units < _SHORT and self._units is None:
            counts = self._counts
            counts.append(units)
            if len(counts) >= _MOST_COUNTS:
                self._sum_up()
            return
        try:
            more = Decimal(units) if type(units) is int else decimal_of(units)
            if more < 0:
                raise UnfitValueError("a negative number was given")
            with self._lock:
                _bounded((self.units or Decimal(0)) + more)
                self._units = (self._units or Decimal(0)) + more
                self._version += 1
        except Exception as error:  # noqa: BLE001  # law 8: whatever the user's number raises is no number
            self._ignored("units", units, error, "a number, 0 or more,")

    def _sum_up(self) -> None:
        """Put the sum of the whole numbers in their place, in one step that nothing can cut in two."""
        if not self._lock.acquire(blocking=False):
            return  # somebody else is at it, or the next one will be
        try:
            counts = self._counts[:]
            self._counts[: len(counts)] = [sum(counts)]
            if self._counts[0] >= _MOST_WHOLE and self._units is None:
                self._units = Decimal(0)  # from here on each number is looked at
        finally:
            self._lock.release()

    def add_quality(
        self,
        name: str,
        value: SupportsFloat | None,
        n: SupportsInt | None,
        outcomes: Iterable[SupportsInt] | None,
        *,
        higher_is_better: bool | None,
    ) -> None:
        """Keep a quality figure; a later one of the same name replaces it.

        Outcomes that are not all 0 or 1 are left out; a value given beside them is kept.
        """
        what, kept = "quality", None
        given: tuple[str, object, str] = ("name", name, "a text")
        try:
            what = f"quality {plain(name)}"
            given = ("outcomes", outcomes, _OUTCOMES)
            if outcomes is not None:
                kept = self._outcomes_of(outcomes, what, alone=value is None)
            if value is None and kept:
                value = sum(kept) / len(kept)
            given = ("value", value, "a finite number")
            figure = None if value is None else float(_bounded(decimal_of(value)))
            given = ("n", n, "a whole number, 1 or more,")
            examples = whole_of(n) if n is not None else (len(kept) if kept else None)
            if examples is not None and examples < 1:
                raise UnfitValueError("a number of examples below 1 was given")
            given = ("higher_is_better", higher_is_better, "True, False or None")
            better = None if higher_is_better is None else bool(higher_is_better)
            quality = Quality(name=plain(name), value=figure, n=examples, higher_is_better=better)
        except Exception as error:  # noqa: BLE001  # law 8: a tensor without data raises RuntimeError, others else
            self._ignored(what, given[1], error, given[2], argument=given[0])
            return
        with self._lock:
            self._quality[quality.name] = quality
            self._outcomes.pop(quality.name, None)
            if kept is not None:
                self._outcomes[quality.name] = kept
            self._version += 1

    def _outcomes_of(
        self, outcomes: Iterable[SupportsInt], what: str, *, alone: bool
    ) -> tuple[int, ...] | None:
        try:
            return tuple(outcome_of(o) for o in outcomes)
        except Exception as error:  # law 8: as for the value itself
            if alone:
                raise
            self._ignored(f"{what} outcomes", outcomes, error, _OUTCOMES)
            return None

    def add_latencies(self, values_ms: Iterable[SupportsFloat]) -> None:
        """Take latencies in milliseconds; one wrong value and none of the call is taken."""
        try:
            values = [float(v) for v in values_ms]
            with self._lock:
                self._latencies.add(values)
                self._version += 1
        except Exception as error:  # noqa: BLE001  # law 8: as for units
            self._ignored("latencies", values_ms, error, "a list of finite milliseconds, 0 or more,")

    def describe_model(self, model_bytes: SupportsInt | None, macs_per_unit: SupportsInt | None) -> None:
        """Keep the model's size and its work per unit."""
        given: tuple[str, object] = ("bytes", model_bytes)
        try:
            size = None if model_bytes is None else whole_of(model_bytes)
            given = ("macs_per_unit", macs_per_unit)
            macs = None if macs_per_unit is None else whole_of(macs_per_unit)
        except Exception as error:  # noqa: BLE001  # law 8: as for units
            self._ignored("model", given[1], error, "a whole number", argument=given[0])
            return
        with self._lock:
            self._model_bytes = self._model_bytes if size is None else size
            self._macs_per_unit = self._macs_per_unit if macs is None else macs
            self._version += 1

    def keep_artefact(self, artefact: Artefact) -> None:
        """Keep what a stage took in or gave out; a later one of the same name and direction replaces it."""
        with self._lock:
            self._artefacts[artefact.direction, artefact.name] = artefact
            self._version += 1

    def keep_execution(self, execution: Iterable[ProviderTime]) -> None:
        """Keep what each execution provider did; it replaces what was told before."""
        kept = tuple(execution)
        with self._lock:
            self._execution = kept
            self._version += 1

    def tokens_from(self, source: Callable[[bool], Tokens]) -> None:
        """Have the tokens told by somebody who counts them.

        Args:
            source: Returns what was counted so far, with exact percentiles if asked for;
                must not call back.
        """
        with self._lock:
            self._tokens = source
            self._version += 1

    def changed(self) -> None:
        """Say that a source of figures counts more than it did."""
        self._version += 1

    def note(self, finding: Finding) -> None:
        """Keep what must be said about what was recorded; a later one of its code and subject replaces it."""
        with self._lock:
            self._findings[f"{finding.code} {finding.subject}"] = finding
            self._version += 1

    def at_end(self, work: Callable[[], None]) -> None:
        """Have work done after the last reading and before the record: it costs the window nothing.

        Args:
            work: May record more; must not raise.
        """
        self._at_end.append(work)

    def before_look(self, work: Callable[[], None]) -> None:
        """Have somebody who gathers figures hand them over whenever what was recorded is read.

        Args:
            work: May record more; must not raise. ``changed`` says that there is some.
        """
        self._before_look.append(work)

    def forget(self, *works: Callable[[], None]) -> None:
        """Take back work given to ``at_end`` or ``before_look``: a program may open much that ends early."""
        for kept in (self._at_end, self._before_look):
            for work in works:
                with suppress(ValueError):
                    kept.remove(work)

    def facts(self) -> Facts:
        """Return what was recorded so far, cheaply: without sorting latencies."""
        for work in tuple(self._before_look):
            work()
        with patiently(self._lock):
            return self._facts(tuple(self._quality.values()), exact=False)

    def final_facts(self, store_outcomes: StoreOutcomes) -> Facts:
        """Return all that was recorded, with exact percentiles and stored outcomes."""
        for work in tuple(self._at_end):
            work()
        with patiently(self._lock):
            quality = tuple(
                msgspec.structs.replace(q, outcomes_sha256=store_outcomes(self._outcomes[q.name]))
                if q.name in self._outcomes
                else q
                for q in self._quality.values()
            )
            return self._facts(quality, exact=True)

    def _facts(self, quality: tuple[Quality, ...], *, exact: bool) -> Facts:
        units, noted = self.units, self._findings
        # Of the sum alone: bytes counted in GB come in parts that are each below it.
        if units is not None and 0 < units < LEAST_UNITS:
            reason = f"all that was counted is below {LEAST_UNITS:f}, the least that a record holds"
            units, noted = None, {**noted, "units": findings.record_ignored("units", reason)}
        return Facts(
            units=units,
            quality=quality,
            latency=self._latencies.latency(exact=exact),
            model_bytes=self._model_bytes,
            macs_per_unit=self._macs_per_unit,
            tokens=None if self._tokens is None else self._tokens(exact),
            artefacts=tuple(self._artefacts.values()),
            execution=self._execution,
            findings=tuple(noted.values()),
        )

    def _ignored(
        self, what: str, value: object, error: Exception, wanted: str, *, argument: str | None = None
    ) -> None:
        reason = unfit(value, error, wanted)
        named = reason if argument is None else f"{argument}: {reason}"
        with self._lock:
            self._findings[what] = findings.record_ignored(what, named)
            self._version += 1


def outcome_of(number: object) -> int:
    """Return the outcome of one example: exactly 0 or 1, a bool included.

    Raises:
        ValueError: If it is anything else, a score between them for one.
    """
    if not (number == 0 or number == 1):  # noqa: PLR1714  # a tensor knows no hash, which a set needs
        raise UnfitValueError("one of them is neither 0 nor 1, as a score is")
    return int(bool(number))


def whole_of(number: SupportsInt) -> int:
    """Return a whole number, whatever type it comes in.

    Raises:
        ValueError: If it has a fraction, or more digits than a record takes.
        TypeError: If it is no number at all.
    """
    whole = int(number)
    if not isinstance(number, str) and whole != number:
        raise UnfitValueError("a number with a fraction was given")
    if not -_INT64 <= whole < _INT64:
        raise UnfitValueError("a number that does not fit into 64 bits was given")
    return whole


def _bounded(value: Decimal) -> Decimal:
    """Return a figure that the ledger can hold.

    Raises:
        ValueError: If it is too large.
    """
    if abs(value) >= MOST:
        raise UnfitValueError("a number with more than 18 digits before the point was given")
    return value


def decimal_of(number: SupportsFloat) -> Decimal:
    """Return a number as a decimal with the digits it is written with.

    Args:
        number: An int, float, Decimal, or anything ``float`` takes.

    Raises:
        ValueError: If it is no finite number.
        TypeError: If it is no number at all.
    """
    value = Decimal(number) if isinstance(number, int | Decimal) else Decimal(repr(float(number)))
    if not value.is_finite():
        raise UnfitValueError("a number that is not finite was given")
    return value
