"""Figure: a printed number with its id, formula and inputs."""

from __future__ import annotations

import msgspec

from carbonlens.domain.estimate import Estimate


class Figure(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One number that a report prints.

    Attributes:
        figure_id: Stable dotted id, for example ``step.int8.energy_per_unit``.
        estimate: The number with its interval.
        label: What it is, in words.
        formula: How it was made from ``inputs``.
        inputs: Ids of figures, runs, factors or prices it rests on.
    """

    figure_id: str
    estimate: Estimate
    label: str
    formula: str = ""
    inputs: tuple[str, ...] = ()
