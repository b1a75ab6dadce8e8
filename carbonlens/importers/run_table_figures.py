"""Figures of a row of the plain run table: its energy, latency, quality and cost."""

from __future__ import annotations

from decimal import Decimal
from typing import Final, cast, get_args

from carbonlens.domain.direction import known_direction
from carbonlens.domain.grades import default_relative_sigma
from carbonlens.domain.latency import Latency
from carbonlens.domain.money import Money
from carbonlens.domain.run import Quality, Reading
from carbonlens.domain.units import Boundary, Grade
from carbonlens.importers.cells import Row, RowError, integer_of, number_of, text_of, word_of

_MICRO: Final = Decimal("0.000001")


def reading_of(row: Row) -> Reading:
    """Return the energy of a row.

    Raises:
        RowError: If its figures contradict each other, or are no figures.
    """
    energy = number_of(row, "energy_j", minimum=Decimal(0))
    if energy and abs(energy.quantize(_MICRO) - energy) > energy / 1000:
        raise RowError(f"has energy_j {energy}, finer than a microjoule: let a run do more units")
    low = number_of(row, "energy_low_j", minimum=Decimal(0))
    high = number_of(row, "energy_high_j", minimum=Decimal(0))
    if energy is not None and ((low is not None and low > energy) or (high is not None and high < energy)):
        raise RowError("has an energy outside its own interval")
    grade = cast("Grade | None", word_of(row, "energy_grade", get_args(Grade)))
    return Reading(
        component="total",
        energy_j=None if energy is None else energy.quantize(_MICRO),
        boundary=cast("Boundary | None", word_of(row, "boundary", get_args(Boundary))),
        grade=grade,
        method="as stated in the table",
        state="unknown" if energy is None else "known",
        u_by_source_j={} if low is not None or high is not None else _default_width(row, grade, energy),
        low_j=None if low is None else float(low),
        high_j=None if high is None else float(high),
    )


def _default_width(row: Row, grade: Grade | None, energy: Decimal | None) -> dict[str, float]:
    """Return the grade's usual error as one source of the meter or model used.

    Rows of one host or kind of hardware share it: it is the same meter, so it
    cancels when they are compared.
    """
    sigma = default_relative_sigma(grade)
    if sigma is None or energy is None:
        return {}
    place = text_of(row, "host") or text_of(row, "hardware") or row["study"].strip()
    return {f"grade_{grade}:{place}": sigma * float(energy)}


def latency_of(row: Row) -> Latency | None:
    """Return the latencies of a row; ``None`` without any.

    Raises:
        RowError: If one is no number.
    """
    p50, p99 = number_of(row, "latency_p50_ms"), number_of(row, "latency_p99_ms")
    if p50 is None and p99 is None:
        return None
    return Latency(p50_ms=None if p50 is None else float(p50), p99_ms=None if p99 is None else float(p99))


def quality_of(row: Row) -> tuple[Quality, ...]:
    """Return the quality of a row; none where it states none.

    Raises:
        RowError: If it is no number, or its direction is none.
    """
    value, count = number_of(row, "quality"), integer_of(row, "quality_n")
    name = text_of(row, "quality_name")
    if value is None and name is None:
        return ()
    name = name or "quality"
    stated = word_of(row, "quality_direction", ("higher", "lower"))
    return (
        Quality(
            name=name,
            value=None if value is None else float(value),
            n=count,
            higher_is_better=known_direction(name) if stated is None else stated == "higher",
        ),
    )


def cost_of(row: Row) -> Money | None:
    """Return the cost of a row; ``None`` without one.

    Raises:
        RowError: If it is no number, or has no currency.
    """
    amount, currency = number_of(row, "cost", minimum=Decimal(0)), text_of(row, "currency")
    if amount is None:
        return None
    if currency is None:
        raise RowError("has a cost without a currency")
    return Money(amount, currency.upper())
