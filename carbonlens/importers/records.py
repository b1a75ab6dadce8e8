"""What importers share when they make records: origins, widths by grade, exact joules."""

from __future__ import annotations

import math
from decimal import Decimal
from typing import Final

from carbonlens.domain.finding import Finding, Severity
from carbonlens.domain.grades import default_relative_sigma
from carbonlens.domain.run import Origin, Reading
from carbonlens.domain.units import Boundary, Grade
from carbonlens.importers.contract import Importer
from carbonlens.importers.sources import Source

MICRO: Final = Decimal("0.000001")
_UNKNOWN_SPEC: Final = "A"


def label_of(importer: Importer) -> str:
    """Return name and version of an importer, as a batch is named by."""
    return f"{importer.name}-{importer.version}"


def instrument_of(importer: Importer) -> str:
    """Return name and version of an importer, as its records have them."""
    return f"{importer.name}/{importer.version}"


def origin_of(importer: Importer, source: Source, line: int | None = None) -> Origin:
    """Return where a record comes from."""
    return Origin(
        instrument=instrument_of(importer),
        source_file=source.name,
        source_sha256=source.sha256,
        source_line=line,
    )


def exact_j(joules: Decimal | float | None) -> Decimal | None:
    """Return joules to a microjoule, as they are stored; ``None`` for what is no finite number."""
    if joules is None:
        return None
    if isinstance(joules, float):
        return Decimal(repr(joules)).quantize(MICRO) if math.isfinite(joules) and abs(joules) < 1e20 else None
    return joules.quantize(MICRO) if joules.is_finite() and joules.adjusted() < 20 else None


def reading(  # noqa: PLR0913  # the fields of a reading by name
    component: str,
    joules: Decimal | float | None,
    *,
    method: str,
    grade: Grade | None,
    meter: str,
    boundary: Boundary | None = "device",
    devices: tuple[str, ...] = (),
    covered_s: float | None = None,
) -> Reading:
    """Return a reading with its grade's usual width; an unknown energy is unknown, not zero.

    Args:
        component: As of ``Reading``.
        joules: Energy; ``None`` when unknown.
        method: How the figure was made, as printed.
        grade: Evidence grade; A has no usual width.
        meter: The meter or model whose error all its readings share, such as a host's name.
        boundary: What the joules include.
        devices: Stable ids of the devices read.
        covered_s: Seconds of the window that the reading covers.
    """
    energy = exact_j(joules)
    sigma = default_relative_sigma(grade)
    shared = {f"grade_{grade}:{meter}": sigma * float(energy)} if sigma is not None and energy else {}
    return Reading(
        component=component,
        energy_j=energy,
        boundary=boundary,
        grade=grade,
        method=method,
        state="unknown" if energy is None else "known",
        u_by_source_j=shared,
        devices=devices,
        covered_s=covered_s,
    )


def finding(
    code: str,
    severity: Severity,
    message: str,
    source: Source,
    *,
    line: int | None = None,
    mend: str | None = None,
) -> Finding:
    """Return a Finding about a place in a source."""
    return Finding(
        code=code, severity=severity, message=message, file=source.shown, line=line or None, mend=mend
    )
