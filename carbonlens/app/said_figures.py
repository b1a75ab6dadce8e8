"""Use case part: figures as the data of a report say them."""

from __future__ import annotations

import msgspec

from carbonlens.domain.decoding import convert
from carbonlens.domain.estimate import Estimate
from carbonlens.domain.units import Grade, State
from carbonlens.errors import InputFileError


class SaidFigure(msgspec.Struct, frozen=True, kw_only=True):
    """A figure as a report's JSON holds it."""

    value: float | None = None
    low: float | None = None
    high: float | None = None
    unit: str
    grade: Grade | None = None
    state: State = "known"
    confidence: float = 0.95
    label: str = ""
    printed: str = ""
    printed_number: str = ""
    printed_interval: str = ""
    formula: str = ""
    inputs: tuple[str, ...] = ()

    @property
    def estimate(self) -> Estimate:
        """Its number; the interval is the stated one."""
        bounds = None if self.value is None else (self.low, self.high)
        return Estimate(
            value=self.value,
            unit=self.unit,
            state=self.state,
            grade=self.grade,
            confidence=self.confidence,
            bounds=bounds,
        )


def said_figure(name: str, given: object, where: str) -> SaidFigure:
    """Return a figure of a report.

    Args:
        name: Its id.
        given: What the data say of it.
        where: The report, for the error.

    Raises:
        InputFileError: If that is no figure.
    """
    try:
        return convert(given, SaidFigure, strict=False)
    except msgspec.ValidationError as error:
        raise InputFileError(
            f"says of {name[:60]!r} what is no figure ({error})",
            where=where,
            mend="give a report that carbonlens wrote",
        ) from error
