"""Use case part: the figures of a comparison and of its report, each with formula and inputs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from carbonlens.domain.evidence import Evidence
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

    given = prepare(
        study,
        ledger=ledger,
        vector=None if assumptions is None else load_assumptions(assumptions),
        baseline=baseline,
        steps=steps,
        terms=parse_terms(None, [], volume) if volume is not None else None,
    )
    return figures_of_evidence(given)


def figures_of_evidence(evidence: Evidence) -> tuple[Figure, ...]:
    """Return the figures that follow from evidence, those of its business case too.

    Args:
        evidence: Study, runs, factors and outcomes.

    Raises:
        IncomparableError: If its arms, or the case's money, cannot be compared.
    """
    from carbonlens.compare.grouping import group
    from carbonlens.compare.study import compare_study
    from carbonlens.reporting.comparison_figures import every_figure
    from carbonlens.reporting.derivations import ArmRuns, derived

    comparison = compare_study(evidence.study, evidence.runs, evidence.vector, evidence.outcomes)
    groups, _ = group(evidence.study, evidence.runs)
    arms = {
        name: ArmRuns(
            measured=tuple(r.run_id for r in held.variants), effort=tuple(r.run_id for r in held.effort)
        )
        for name, held in groups.items()
    }
    found = derived(every_figure(comparison), comparison, arms)
    if evidence.business is None:
        return found
    from carbonlens.app.business import business_result
    from carbonlens.reporting.business_figures import business_figures

    known = {f.figure_id for f in found}
    return *found, *business_figures(business_result(comparison, evidence.business), known)
