"""Use case part: the figures of a business case, each with formula and inputs."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING, Final

from carbonlens.domain.figure import Figure
from carbonlens.errors import UsageError

if TYPE_CHECKING:
    from carbonlens.app.explain_known import Options

OF_BUSINESS: Final = "business."
"""Begin of the ids of a business case."""


def business_case_figures(options: Options, known: Collection[str] = ()) -> dict[str, Figure]:
    """Return the figures of a business case by id.

    Args:
        options: Where to look; they name the case's file.
        known: Ids of the comparison's figures, to which inputs may lead.

    Raises:
        UsageError: If no file is named.
        SelectionError: If there is no such study, or more than one and none is named.
        IncomparableError: If its arms, or the case's money, cannot be compared.
        InputFileError, ConfigError: If a file cannot be read.
    """
    if options.business is None:
        mend = "name its file with --business, as compare was asked with"
        raise UsageError("the figure is of a business case", where="FIGURE", mend=mend)
    from carbonlens.app.assumptions import load_assumptions
    from carbonlens.app.business import BusinessOptions, business_of, business_result
    from carbonlens.app.compare import compare
    from carbonlens.app.terms import parse_terms
    from carbonlens.reporting.business_figures import business_figures

    volume = options.volume
    comparison = compare(
        options.study,
        ledger=options.ledger,
        vector=None if options.assumptions is None else load_assumptions(options.assumptions),
        baseline=options.baseline,
        steps=options.steps,
        terms=parse_terms(None, [], volume) if volume is not None else None,
    )
    result = business_result(comparison, business_of(comparison, BusinessOptions(file=options.business)))
    return {f.figure_id: f for f in business_figures(result, known)}
