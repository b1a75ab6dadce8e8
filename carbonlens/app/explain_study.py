"""Use case part: the figures of a study's report, each with formula and inputs."""

from __future__ import annotations

from pathlib import Path

from carbonlens.domain.figure import Figure


def study_figures(study: str | None = None, *, ledger: str | Path | None = None) -> tuple[Figure, ...]:
    """Return the figures that a report of a study prints, and the leaves they rest on.

    Args:
        study: Study file, or name of a study; the ledger's only one when ``None``.
        ledger: The ledger's folder; found as the command line finds it when ``None``.

    Raises:
        SelectionError: If there is no such study, or more than one and none is named.
        IncomparableError: If its arms cannot be compared.
        MissingExtraError: If the ``analysis`` extra is not installed.
    """
    from carbonlens.app.compare import prepare
    from carbonlens.compare.grouping import group
    from carbonlens.compare.study import compare_study
    from carbonlens.reporting.derivations import ArmRuns, derived
    from carbonlens.reporting.view import build_view

    given = prepare(study, ledger=ledger)
    comparison = compare_study(given.study, given.runs, given.vector, given.outcomes)
    groups, _ = group(given.study, given.runs)
    arms = {
        name: ArmRuns(
            measured=tuple(r.run_id for r in held.variants), effort=tuple(r.run_id for r in held.effort)
        )
        for name, held in groups.items()
    }
    printed = build_view(comparison).figures
    return derived({name: p.figure for name, p in printed.items()}, comparison, arms)
