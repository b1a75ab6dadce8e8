"""Use case: snippets of a study for other documents: card, form, statement, table, comment, badge."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final, get_args

import msgspec

from carbonlens.accounting.footprint import Footprint
from carbonlens.app.assumptions import filled
from carbonlens.domain.factor import Vector
from carbonlens.domain.finding import Finding
from carbonlens.domain.run import Run
from carbonlens.domain.units import Role
from carbonlens.errors import SelectionError, UsageError
from carbonlens.reporting.names import clip
from carbonlens.reporting.snippet_card import CardTerms, gpai_form, model_card

SCHEMA: Final = "carbonlens/export/1"
OF_RUNS: Final = ("model-card", "ai-act")
"""Kinds that are about what runs took."""

OF_STUDIES: Final = ("latex", "pr", "badge")
"""Kinds that are about a comparison."""

KINDS: Final = (*OF_RUNS, "sci", *OF_STUDIES)
_TRAINING: Final[tuple[Role, ...]] = ("training", "effort")
_INFERENCE: Final[tuple[Role, ...]] = ("variant", "serving", "evaluation")
_NAMED: Final = 5


class Exported(msgspec.Struct, frozen=True, kw_only=True):
    """A snippet.

    Attributes:
        kind: Of ``KINDS``.
        text: The snippet.
        findings: What a reader must know of its figures.
    """

    kind: str
    text: str
    findings: tuple[Finding, ...] = ()


def export_runs(  # noqa: PLR0913 - each is an option of the command line
    kind: str,
    *,
    study: str | None = None,
    step: str | None = None,
    roles: Sequence[str] = (),
    vector: Vector | None = None,
    terms: CardTerms = CardTerms(),  # noqa: B008 - frozen
    ledger: str | Path | None = None,
) -> Exported:
    """Return a model card's emissions, or the EU's form, of the runs that made a model.

    Args:
        kind: ``model-card`` or ``ai-act``.
        study: Name of the study in the ledger; may be ``None`` where the runs are of one.
        step: One step of it.
        roles: Roles of the runs; training and effort where none is given.
        vector: Factors of the place they ran in; emissions are unknown without.
        terms: What the runs do not know.
        ledger: The ledger's folder; found as the command line finds it when ``None``.

    Raises:
        SelectionError: If no run is selected, or runs of several studies; what there is is named.
        UsageError: If a role is none.
        MissingExtraError: If the ``analysis`` extra is not installed.
    """
    wrong = [r for r in roles if r not in get_args(Role)]
    if wrong:
        raise UsageError(f"no such role: {wrong[0]!r}", mend=f"known: {', '.join(get_args(Role))}")
    found, units = _footprint(study, step, tuple(roles) or _TRAINING, vector, ledger)
    stated = terms if terms.macs_per_unit is not None else _with_macs(terms, units)
    text = model_card(found, stated) if kind == "model-card" else gpai_form(found, stated)
    return Exported(kind=kind, text=text, findings=found.findings)


def _footprint(
    study: str | None,
    step: str | None,
    roles: tuple[str, ...],
    vector: Vector | None,
    ledger: str | Path | None,
) -> tuple[Footprint, tuple[Run, ...]]:
    """Return what the selected runs took, and all runs of the study and step."""
    from carbonlens.accounting.allocation import allocate
    from carbonlens.accounting.footprint import footprint
    from carbonlens.app.compare import require_analysis
    from carbonlens.ledger.opening import open_ledger
    from carbonlens.ledger.records import current, heirs

    require_analysis()
    with open_ledger(ledger) as store:
        view = store.view()
        runs, findings = current(view.runs)
        named = tuple(
            r for r in runs if (study is None or r.study == study) and (step is None or r.step == step)
        )
        chosen = {r.run_id for r in named if r.role in roles}
        if not chosen:
            there = ", ".join(sorted({r.role for r in named})) or "none"
            raise SelectionError(
                f"no run of role {' or '.join(roles)} is selected (roles of the selected runs: {there})",
                where=store.shown,
                mend="name them with --study, --step and --role",
            )
        _of_one_study([r for r in named if r.run_id in chosen], store.shown)
        allocation = allocate(runs, heirs(view.runs))
    made = footprint(runs, allocation, filled(vector or Vector()), chosen)
    noted = (*made.findings, *view.findings, *findings)
    return msgspec.structs.replace(made, findings=tuple(dict.fromkeys(noted))), named


def _of_one_study(runs: Sequence[Run], where: str) -> None:
    """Refuse runs of several studies: a card is about one model."""
    studies = sorted({r.study for r in runs}, key=lambda name: (name is None, name or ""))
    if len(studies) < 2:
        return
    names = [clip(name, 40) if name is not None else "runs of no study" for name in studies]
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    raise SelectionError(
        f"the selected runs are of several studies ({', '.join(names[:_NAMED])}{more})",
        where=where,
        mend=f"choose one: --study {names[0]!r}",
    )


def _with_macs(terms: CardTerms, runs: Sequence[Run]) -> CardTerms:
    """Return the terms with the multiply-accumulates that runs of inference recorded, if of one model."""
    macs = {(r.macs_per_unit, r.unit) for r in runs if r.macs_per_unit is not None and r.role in _INFERENCE}
    if len(macs) != 1:
        return terms
    ((count, unit),) = macs
    return msgspec.structs.replace(terms, macs_per_unit=count, unit=terms.unit or unit)


def export_study(
    kind: str,
    study: str | Path | None = None,
    *,
    vector: Vector | None = None,
    ledger: str | Path | None = None,
) -> Exported:
    """Return a LaTeX table, a comment on a merge request, or a badge of a comparison.

    Args:
        kind: ``latex``, ``pr`` or ``badge``.
        study: As ``compare`` takes it.
        vector: Factors and prices; those of the study when ``None``.
        ledger: The ledger's folder; found as the command line finds it when ``None``.

    Raises:
        SelectionError, IncomparableError, MissingExtraError: As of ``compare``.
    """
    from carbonlens.app.compare import compare
    from carbonlens.render.markdown import render_comment
    from carbonlens.reporting.content import ReportView
    from carbonlens.reporting.snippet_table import badge, latex_table
    from carbonlens.reporting.view import build_view

    comparison = compare(study, ledger=ledger, vector=vector)
    view = build_view(comparison)
    makers: dict[str, Callable[[ReportView], str]] = {
        "latex": latex_table,
        "badge": badge,
        "pr": lambda v: render_comment(v, comparison.study.name),
    }
    return Exported(kind=kind, text=makers[kind](view), findings=comparison.findings)
