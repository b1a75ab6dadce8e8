"""MeterReading: energy that a meter of a site counted over a time span."""

from __future__ import annotations

from decimal import Decimal
from typing import Literal

import msgspec

from carbonlens.domain.finding import Finding
from carbonlens.domain.run import Origin
from carbonlens.domain.units import Boundary, Grade

MeterMethod = Literal["actual", "estimated", "manual"]
"""How the figure came about: read from the meter, estimated by the supplier, typed in by hand."""


class MeterReading(msgspec.Struct, frozen=True, kw_only=True):
    """One span of one meter; times are integer UTC microseconds.

    Attributes:
        reading_id: The source's own id, or one made from the content by the importer:
            the same reading met twice counts once.
        meter_id: Serial number or name of the meter, as the source gives it.
        site: Site the meter belongs to; ``None`` when the source does not say.
        start_us, end_us: The span, end exclusive.
        energy_j: Exact joules in the span; ``None`` when unknown.
        direction: ``import`` is taken from the grid, ``export`` is fed into it.
        carrier: What was metered; only electricity is energy of a grid.
        boundary: What the meter feeds: a device, the IT load, or the facility.
        method: How the figure came about; ``None`` when the source does not say.
        counter_start_j, counter_end_j: The meter's counts at the ends, where the
            source gives counts rather than differences.
        grade: Evidence grade; A for an external meter.
        accuracy_class: Relative limit of error, for example 0.01 for class 1 of
            IEC 62053-21; ``None`` when unknown.
        supersedes: ``reading_id`` that this one corrects.
        origin: File, hash and line it was read from.
    """

    reading_id: str
    meter_id: str
    start_us: int
    end_us: int
    energy_j: Decimal | None
    site: str | None = None
    direction: Literal["import", "export"] = "import"
    carrier: Literal["electricity", "heat", "cooling", "gas"] = "electricity"
    boundary: Boundary | None = None
    method: MeterMethod | None = None
    counter_start_j: Decimal | None = None
    counter_end_j: Decimal | None = None
    grade: Grade | None = "A"
    accuracy_class: float | None = None
    schema_version: int = 1
    supersedes: str | None = None
    origin: Origin | None = None
    findings: tuple[Finding, ...] = ()
