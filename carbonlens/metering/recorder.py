"""The recorder: what the user says about the work while it runs.

Law 8 holds here too: a value of the wrong kind becomes a Finding on the run. An
evaluation that gave no number after ten hours of training must not end the job.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from decimal import Decimal
from typing import SupportsFloat, SupportsInt

import msgspec

from carbonlens.domain.finding import Finding
from carbonlens.domain.run import Quality
from carbonlens.metering import findings
from carbonlens.metering.journal import Facts
from carbonlens.metering.wording import error_text, plain
from carbonlens.signals.latency import LatencyCollector

StoreOutcomes = Callable[[tuple[int, ...]], str | None]
"""Keeps per-example outcomes and returns their hash; ``None`` when that failed."""

_INT64 = 2**63


class Recorder:
    """Collects units, quality, latencies and the model's size; safe from any thread."""

    def __init__(self) -> None:
        """Start with nothing recorded."""
        self._lock = threading.Lock()
        self._units: Decimal | None = None
        self._quality: dict[str, Quality] = {}
        self._outcomes: dict[str, tuple[int, ...]] = {}
        self._latencies = LatencyCollector()
        self._model_bytes: int | None = None
        self._macs_per_unit: int | None = None
        self._findings: dict[str, Finding] = {}
        self.version = 0

    def renew_lock(self) -> None:
        """Forget who holds the lock: in a forked child its holder may not exist."""
        self._lock = threading.Lock()

    def add_units(self, n: SupportsFloat) -> None:
        """Count more functional units as done."""
        try:
            more = decimal_of(n)
            if more < 0:
                raise ValueError(f"{more} is negative")
            with self._lock:
                self._units = (self._units or Decimal(0)) + more
                self.version += 1
        except Exception as error:  # noqa: BLE001  # law 8: whatever the user's number raises is no number
            self._ignored("units", error)

    def add_quality(
        self,
        name: str,
        value: SupportsFloat | None,
        n: SupportsInt | None,
        outcomes: Iterable[SupportsInt] | None,
        *,
        higher_is_better: bool,
    ) -> None:
        """Keep a quality figure; a later one of the same name replaces it.

        Outcomes that are not all 0 or 1 are left out; a value given beside them is kept.
        """
        what, kept = "quality", None
        try:
            what = f"quality {plain(name)}"
            if outcomes is not None:
                kept = self._outcomes_of(outcomes, what, alone=value is None)
            if value is None and kept:
                value = sum(kept) / len(kept)
            quality = Quality(
                name=plain(name),
                value=None if value is None else float(decimal_of(value)),
                n=whole_of(n) if n is not None else (len(kept) if kept is not None else None),
                higher_is_better=bool(higher_is_better),
            )
        except Exception as error:  # noqa: BLE001  # law 8: a tensor without data raises RuntimeError, others else
            self._ignored(what, error)
            return
        with self._lock:
            self._quality[quality.name] = quality
            self._outcomes.pop(quality.name, None)
            if kept is not None:
                self._outcomes[quality.name] = kept
            self.version += 1

    def _outcomes_of(
        self, outcomes: Iterable[SupportsInt], what: str, *, alone: bool
    ) -> tuple[int, ...] | None:
        try:
            return tuple(outcome_of(o) for o in outcomes)
        except Exception as error:  # law 8: as for the value itself
            if alone:
                raise
            self._ignored(f"{what} outcomes", error)
            return None

    def add_latencies(self, values_ms: Iterable[SupportsFloat]) -> None:
        """Take latencies in milliseconds; one wrong value and none of the call is taken."""
        try:
            values = [float(v) for v in values_ms]
            with self._lock:
                self._latencies.add(values)
                self.version += 1
        except Exception as error:  # noqa: BLE001  # law 8: as for units
            self._ignored("latencies", error)

    def describe_model(self, model_bytes: SupportsInt | None, macs_per_unit: SupportsInt | None) -> None:
        """Keep the model's size and its work per unit."""
        try:
            size = None if model_bytes is None else whole_of(model_bytes)
            macs = None if macs_per_unit is None else whole_of(macs_per_unit)
        except Exception as error:  # noqa: BLE001  # law 8: as for units
            self._ignored("model", error)
            return
        with self._lock:
            self._model_bytes = self._model_bytes if size is None else size
            self._macs_per_unit = self._macs_per_unit if macs is None else macs
            self.version += 1

    def facts(self) -> Facts:
        """Return what was recorded so far, cheaply: without sorting latencies."""
        with self._lock:
            return self._facts(tuple(self._quality.values()), exact=False)

    def final_facts(self, store_outcomes: StoreOutcomes) -> Facts:
        """Return all that was recorded, with exact percentiles and stored outcomes."""
        with self._lock:
            quality = tuple(
                msgspec.structs.replace(q, outcomes_sha256=store_outcomes(self._outcomes[q.name]))
                if q.name in self._outcomes
                else q
                for q in self._quality.values()
            )
            return self._facts(quality, exact=True)

    def _facts(self, quality: tuple[Quality, ...], *, exact: bool) -> Facts:
        return Facts(
            units=self._units,
            quality=quality,
            latency=self._latencies.latency(exact=exact),
            model_bytes=self._model_bytes,
            macs_per_unit=self._macs_per_unit,
            findings=tuple(self._findings.values()),
        )

    def _ignored(self, what: str, error: Exception) -> None:
        reason = error_text(error).partition("\n")[0]
        with self._lock:
            self._findings[what] = findings.record_ignored(what, reason[:200])
            self.version += 1


def outcome_of(number: object) -> int:
    """Return the outcome of one example: exactly 0 or 1, a bool included.

    Raises:
        ValueError: If it is anything else, a score between them for one.
    """
    if not (number == 0 or number == 1):  # noqa: PLR1714  # a tensor knows no hash, which a set needs
        raise ValueError("an outcome is 0 or 1; give a score as value")
    return int(bool(number))


def whole_of(number: SupportsInt) -> int:
    """Return a whole number, whatever type it comes in.

    Raises:
        ValueError: If it has a fraction, or more digits than a record takes.
        TypeError: If it is no number at all.
    """
    whole = int(number)
    if not isinstance(number, str) and whole != number:
        raise ValueError(f"{number} is no whole number")
    if not -_INT64 <= whole < _INT64:
        raise ValueError(f"{whole} does not fit into 64 bits")
    return whole


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
        raise ValueError(f"{number} is not a finite number")
    return value
