"""Totals by scope and category, location-based and market-based side by side.

What rests on a lower bound of facility energy is a line of its own beside the true sum, as
the energies are (see ``boundaries.in_part``); what is unknown leaves its sum a lower
bound.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Final, Literal

import msgspec

from carbonlens.accounting.scopes import Place
from carbonlens.domain.estimate import Estimate, add, not_applicable
from carbonlens.domain.factor_row import Span
from carbonlens.domain.figure import Figure

Method = Literal["location", "market"]
METHODS: Final[tuple[Method, ...]] = ("location", "market")


class Line(msgspec.Struct, frozen=True, kw_only=True):
    """Emissions of one site, or of one purchase, under one scope and category.

    Attributes:
        source_id: Site or asset.
        location_kg, market_kg: By both methods; alike where a category knows one only.
        span: What the location-based factor counts; ``None`` when it does not say.
        location_figure, market_figure: Ids of the figures of both; ``source_id`` stands for one
            that is not made.
    """

    source_id: str
    place: Place
    location_kg: Estimate
    market_kg: Estimate
    span: Span | None = None
    location_figure: str | None = None
    market_figure: str | None = None


def span_shares(lines: Iterable[Line]) -> dict[str, float]:
    """Return which share of location-based emissions rests on which span of factors.

    A total over direct and life-cycle factors is neither; the shares say how much of each.

    Args:
        lines: Of one total; unknown ones have no share.
    """
    sums: dict[str, float] = {}
    for line in lines:
        if line.location_kg.value is not None:
            name = line.span or "not stated"
            sums[name] = sums.get(name, 0.0) + line.location_kg.value
    total = math.fsum(sums.values())
    return {name: kg / total for name, kg in sums.items()} if total else {}


class Total(msgspec.Struct, frozen=True, kw_only=True):
    """Sum under one scope and category by one method, in kg.

    Attributes:
        kg: Of the lines with true figures; a lower bound where one of all is unknown.
        at_least_kg: Of the lines that are lower bounds; ``not_applicable`` where none is.
        lines: All of them.
    """

    place: Place
    method: Method
    kg: Estimate
    at_least_kg: Estimate
    lines: tuple[Line, ...]

    def figures(self, prefix: str) -> tuple[Figure, ...]:
        """Return the sum, and what is known as at least where there is any, as figures."""
        inputs = tuple(getattr(x, f"{self.method}_figure") or x.source_id for x in self.lines)
        name, label = f"{prefix}.{self.place.key}.{self.method}", f"{self.place.label}, {self.method}-based"
        parts = (
            (f"{name}_kg", label, "sum of its true lines", self.kg),
            (f"{name}_at_least_kg", f"{label}, at least", "sum of its lower bounds", self.at_least_kg),
        )
        return tuple(
            Figure(figure_id=i, estimate=e, label=words, formula=formula, inputs=inputs)
            for i, words, formula, e in parts
            if e.state != "not_applicable"
        )


def totals(lines: Iterable[Line]) -> tuple[Total, ...]:
    """Return the sums by scope and category and by method, undeclared last.

    Args:
        lines: In any order; every one is in one of the sums, and none in two.
    """
    grouped: dict[Place, list[Line]] = {}
    for line in lines:
        grouped.setdefault(line.place, []).append(line)
    return tuple(_total(place, method, grouped[place]) for place in sorted(grouped) for method in METHODS)


def _total(place: Place, method: Method, lines: Sequence[Line]) -> Total:
    parts: list[Estimate] = [getattr(x, f"{method}_kg") for x in lines]
    true = [p for p in parts if p.state != "unbounded"]
    least = [p for p in parts if p.state == "unbounded"]
    return Total(
        place=place,
        method=method,
        kg=add(true, "kg") if true else not_applicable("kg"),
        at_least_kg=add(least, "kg") if least else not_applicable("kg"),
        lines=tuple(lines),
    )
