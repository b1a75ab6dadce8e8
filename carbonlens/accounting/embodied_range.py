"""Embodied emissions of a device: the range that its sources span, or one source of them.

Published figures of one GPU differ by a factor of three and more, because they draw
different boundaries. So the default is the whole range, and a switch names one source.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Final

import msgspec

from carbonlens.domain.estimate import Estimate, unknown
from carbonlens.domain.factor_row import FactorRow
from carbonlens.domain.finding import Finding
from carbonlens.domain.units import Z_95
from carbonlens.errors import SelectionError

SINGLE_SOURCE_FACTOR: Final = 2.0
"""Ends of the 95 % interval of a figure without one, times and divided by (docs/adr/0006, grade E)."""


class EmbodiedRange(msgspec.Struct, frozen=True, kw_only=True):
    """Embodied emissions of one piece.

    Attributes:
        subject: Device or server that the rows are of; the one asked for when there are none.
        rows: The rows the range is made of, from the least.
        kg: Middle of the range on a scale of factors, with the range as its 95 % interval.
        how: Of which sources, in words.
        findings: What a reader must know about it.
    """

    subject: str
    rows: tuple[FactorRow, ...] = ()
    kg: Estimate
    how: str
    findings: tuple[Finding, ...] = ()


def sources_of(rows: Iterable[FactorRow], subjects: str | Sequence[str]) -> tuple[str, ...]:
    """Return the names by which a source can be chosen for a device."""
    chain = (subjects,) if isinstance(subjects, str) else tuple(subjects)
    return tuple(sorted({_source(r) for r in rows if r.kind == "embodied" and r.subject in chain}))


def embodied_range(
    rows: Iterable[FactorRow], subjects: str | Sequence[str], source: str | None = None
) -> EmbodiedRange:
    """Return what making one device emitted.

    Args:
        rows: Rows of factor tables.
        subjects: The device, then what may stand for it (``nvidia-a100``, ``gpu``), which
            is taken only where the device has no row, with a Finding (CL351).
        source: Name of one source (``sources_of``); the range over all of them when ``None``.

    Raises:
        SelectionError: If there is no such source for the device.
    """
    chain = (subjects,) if isinstance(subjects, str) else tuple(subjects)
    asked = [r for r in rows if r.kind == "embodied" and r.subject in chain]
    fitting = [r for r in asked if source in (None, _source(r))]
    if asked and not fitting:
        raise SelectionError(
            f"no source {source!r} of embodied emissions of {chain[0]}",
            mend=f"choose one of {', '.join(sources_of(asked, chain))}",
        )
    for subject in chain:
        found = sorted((r for r in fitting if r.subject == subject), key=lambda r: (r.value, r.factor_id))
        if found:
            return _over(found, chain[0])
    return _unknown(chain[0])


def _over(rows: Sequence[FactorRow], asked: str) -> EmbodiedRange:
    subject = rows[0].subject
    least = min(float(r.low if r.low is not None else r.value) for r in rows)
    greatest = max(float(r.high if r.high is not None else r.value) for r in rows)
    middle = math.sqrt(least * greatest)
    spread = math.log(greatest / least) / 2 if greatest > least else math.log(SINGLE_SOURCE_FACTOR)
    named = ", ".join(f"{r.value:f} kg ({_source(r)})" for r in rows)
    findings = []
    if subject != asked:
        findings.append(
            Finding(
                code="CL351",
                severity="warning",
                message=f"{asked} has no embodied figure: that of {subject} is used",
                subject=asked,
                mend="state the piece's embodied kg with its source, or import a row",
            )
        )
    kg = Estimate(
        value=middle, unit="kg", grade="E", u_by_source={f"embodied:{subject}": middle * spread / Z_95}
    )
    return EmbodiedRange(subject=subject, rows=tuple(rows), kg=kg, how=named, findings=tuple(findings))


def _unknown(subject: str) -> EmbodiedRange:
    finding = Finding(
        code="CL358",
        severity="warning",
        message=f"no embodied figure of {subject}; it stays unknown",
        subject=subject,
        mend="state it with its source, or import a factor table",
    )
    return EmbodiedRange(subject=subject, kg=unknown("kg"), how="no source", findings=(finding,))


def _source(row: FactorRow) -> str:
    """Return the name of a row's source: the first part of its id."""
    return row.factor_id.partition("/")[0]
