"""Use case part: the figures of a comparison and of its report, each with formula and inputs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from carbonlens.domain.figure import Figure


def study_figures(
    study: str | None = None,
    *,
    ledger: str | Path | None = None,
    baseline: str | None = None,
    steps: Sequence[str] = (),
    assumptions: Path | None = None,
    volume: str | None = None,
) -> tuple[Figure, ...]:
    """Return the figures that a report and ``compare`` print, and the leaves they rest on.

    Args:
        study: Study file, or name of a study; the ledger's only one when ``None``.
        ledger: The ledger's folder; found as the command line finds it when ``None``.
        baseline: As ``compare`` takes it.
        steps: As ``compare`` takes them.
        assumptions: File with factors and prices, instead of the study's.
        volume: Expected units, as ``compare`` takes them.

    Raises:
        SelectionError: If there is no such study, or more than one and none is named.
        IncomparableError: If its arms cannot be compared.
        InputFileError, ConfigError: If the assumptions cannot be read.
        MissingExtraError: If the ``analysis`` extra is not installed.
    """
    from carbonlens.app.assumptions import load_assumptions
    from carbonlens.app.compare import prepare
    from carbonlens.app.terms import parse_terms
    from carbonlens.compare.grouping import group
    from carbonlens.compare.study import compare_study
    from carbonlens.reporting.comparison_figures import every_figure
    from carbonlens.reporting.derivations import ArmRuns, derived

    given = prepare(
        study,
        ledger=ledger,
        vector=None if assumptions is None else load_assumptions(assumptions),
        baseline=baseline,
        steps=steps,
        terms=parse_terms(None, [], volume) if volume is not None else None,
    )
    comparison = compare_study(given.study, given.runs, given.vector, given.outcomes)
    groups, _ = group(given.study, given.runs)
    arms = {
        name: ArmRuns(
            measured=tuple(r.run_id for r in held.variants), effort=tuple(r.run_id for r in held.effort)
        )
        for name, held in groups.items()
    }
    return derived(every_figure(comparison), comparison, arms)
