"""Expected deliveries against what came: the gaps, and the share that is there."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Final, Literal, NamedTuple

import msgspec

from carbonlens.domain.counting import counted
from carbonlens.domain.finding import Finding
from carbonlens.domain.initiative import Delivery

What = Literal["runs", "meter", "bill"]

_WORDS: Final[Mapping[What, str]] = {"runs": "runs", "meter": "meter readings", "bill": "bill"}


class Held(NamedTuple):
    """Data of one month.

    Attributes:
        what: What it is.
        of: Team whose runs they are; the site of meter readings and bills.
        month: Local month, ``2026-01``.
    """

    what: What
    of: str
    month: str


class Coverage(msgspec.Struct, frozen=True, kw_only=True):
    """How much of what was expected came.

    Attributes:
        expected: Deliveries expected in months that are over: one a team, month and kind.
        came: Those of them that came.
        findings: A CL379 for each delivery with gaps.
    """

    expected: int
    came: int
    findings: tuple[Finding, ...] = ()

    @property
    def share(self) -> float | None:
        """Share that came; ``None`` where nothing was expected yet."""
        return self.came / self.expected if self.expected else None

    @property
    def line(self) -> str:
        """The coverage in words."""
        if not self.expected:
            return "no delivery was expected yet"
        came = counted(self.expected, "expected delivery", "expected deliveries")
        return f"{self.came} of {came} came ({100 * self.came / self.expected:.0f} %)"


def coverage(
    deliveries: Iterable[Delivery], held: Collection[Held], *, through: str | None = None
) -> Coverage:
    """Return what of the expected deliveries came.

    Args:
        deliveries: As the inventory expects them; one that is expected twice counts once.
        held: What the ledger and the inventory hold.
        through: Last month that is over; a later one is not due. ``None`` takes all as due.
    """
    held = frozenset(held)
    expected: set[tuple[str, Held]] = set()
    findings: list[Finding] = []
    for delivery in deliveries:
        due = {
            (delivery.team, Held(delivery.what, _of(delivery), month))
            for month in delivery.months
            if through is None or month <= through
        }
        missing = sorted(key.month for _, key in due - expected if key not in held)
        expected |= due
        if missing:
            findings.append(_gap(delivery, missing))
    came = sum(key in held for _, key in expected)
    return Coverage(expected=len(expected), came=came, findings=tuple(findings))


def _of(delivery: Delivery) -> str:
    return delivery.team if delivery.what == "runs" or delivery.site is None else delivery.site


def _gap(delivery: Delivery, missing: list[str]) -> Finding:
    place = f" for {delivery.site}" if delivery.site is not None else ""
    months = counted(len(missing), "month")
    return Finding(
        code="CL379",
        severity="warning",
        message=f"{delivery.team} sent no {_WORDS[delivery.what]}{place} in {months}: {_ranges(missing)}",
        file="deliveries.toml",
        subject=delivery.team,
        mend="import what is missing; where there was none, take the month out of the deliveries",
    )


def _ranges(months: list[str]) -> str:
    """Return months in order as text, neighbours as a range."""
    spans: list[list[str]] = []
    for month in months:
        if spans and month == _next(spans[-1][-1]):
            spans[-1].append(month)
        else:
            spans.append([month])
    return ", ".join(span[0] if len(span) == 1 else f"{span[0]} to {span[-1]}" for span in spans)


def _next(month: str) -> str:
    index = int(month[:4]) * 12 + int(month[5:])
    return f"{index // 12:04}-{index % 12 + 1:02}"
