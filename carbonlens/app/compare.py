"""Use case: compare the arms of a study that lie in the ledger."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import msgspec

from carbonlens.accounting.allocation import allocate
from carbonlens.app.assumptions import filled, mixed_spans
from carbonlens.app.chosen_steps import UNIT_OF_THE_RUNS, listed, of_selectors, reselected
from carbonlens.app.terms import Terms, unmeasured_gates, with_terms
from carbonlens.compare.from_runs import unit_of
from carbonlens.compare.nested import with_near_parents
from carbonlens.compare.selecting import select_runs, with_combinations
from carbonlens.domain.comparison import Comparison
from carbonlens.domain.evidence import Evidence
from carbonlens.domain.factor import Vector
from carbonlens.domain.finding import Finding
from carbonlens.domain.run import Run
from carbonlens.domain.study import Study
from carbonlens.errors import MissingExtraError, SelectionError
from carbonlens.ledger.opening import open_ledger
from carbonlens.ledger.records import current, heirs
from carbonlens.ledger.store import Ledger, LedgerView


class Compared(msgspec.Struct, frozen=True, kw_only=True):
    """A comparison, and what it was computed from."""

    comparison: Comparison
    evidence: Evidence

    def noting(self, findings: Sequence[Finding]) -> Compared:
        """Return the same with more findings, said in both."""
        return Compared(
            comparison=_with_findings(self.comparison, findings),
            evidence=self.evidence.noting(tuple(findings)),
        )


def compare(
    study: Study | str | Path | None = None,
    *,
    ledger: str | Path | None = None,
    vector: Vector | None = None,
    baseline: str | None = None,
    steps: Sequence[str] = (),
    terms: Terms | None = None,
) -> Comparison:
    """Compare the steps of one study.

    Args:
        study: A study, the path of a study file (a text that ends in
            ``.toml``), or the name of a study in the ledger; the ledger's only
            study when ``None``.
        ledger: The ledger's folder or address; found as the command line finds it when ``None``.
        vector: Factors and prices for all arms; those of the study file when
            ``None``. What is not stated stays unknown.
        baseline: Step to use as the baseline instead of the study's, which is a step then; or a
            selector of its runs (``fp32:tag.precision=fp32``).
        steps: Steps to compare, in order, instead of the study's, or selectors.
        terms: Margin, gates and volume instead of the study's.

    Raises:
        SelectionError: If the study, a step or the baseline has no runs.
        IncomparableError: If the arms differ in unit, boundary or workload, or
            ran at the same time on a device that nothing measured divides.
        MissingExtraError: If the ``analysis`` extra is not installed.
    """
    return compared(
        study, ledger=ledger, vector=vector, baseline=baseline, steps=steps, terms=terms
    ).comparison


def compared(
    study: Study | str | Path | None = None,
    *,
    ledger: str | Path | None = None,
    vector: Vector | None = None,
    baseline: str | None = None,
    steps: Sequence[str] = (),
    terms: Terms | None = None,
) -> Compared:
    """Compare as ``compare`` does, and keep what it was computed from, for a report.

    Args:
        study: As in ``compare``.
        ledger: As in ``compare``.
        vector: As in ``compare``.
        baseline: As in ``compare``.
        steps: As in ``compare``.
        terms: As in ``compare``.

    Raises:
        SelectionError: If the study, a step or the baseline has no runs.
        IncomparableError: As in ``compare``.
        MissingExtraError: If the ``analysis`` extra is not installed.
    """
    given = prepare(study, ledger=ledger, vector=vector, baseline=baseline, steps=steps, terms=terms)
    return Compared(comparison=computed(given), evidence=given)


def computed(evidence: Evidence) -> Comparison:
    """Return the comparison that follows from its evidence: nothing else is read.

    Args:
        evidence: Study, runs, factors and outcomes.

    Raises:
        IncomparableError: As in ``compare``.
    """
    from carbonlens.compare.study import compare_study

    result = compare_study(
        evidence.study,
        evidence.runs,
        evidence.vector,
        evidence.outcomes,
        environment=environment_of(evidence.runs),
    )
    return _with_findings(result, evidence.notes)


def prepare(
    study: Study | str | Path | None = None,
    *,
    ledger: str | Path | None = None,
    vector: Vector | None = None,
    baseline: str | None = None,
    steps: Sequence[str] = (),
    terms: Terms | None = None,
) -> Evidence:
    """Return study, runs, factors and outcomes that a comparison or a check is made of.

    Args:
        study: As in ``compare``.
        ledger: As in ``compare``.
        vector: As in ``compare``.
        baseline: As in ``compare``.
        steps: As in ``compare``.
        terms: As in ``compare``.

    Raises:
        SelectionError: If the study, a step or the baseline has no runs.
        MissingExtraError: If the ``analysis`` extra is not installed.
    """
    require_analysis()
    with open_ledger(ledger) as store:
        return _prepared(store, study, vector=vector, baseline=baseline, steps=steps, terms=terms)


def _prepared(
    store: Ledger,
    study: Study | str | Path | None,
    *,
    vector: Vector | None,
    baseline: str | None,
    steps: Sequence[str],
    terms: Terms | None,
) -> Evidence:
    recorded = store.view()
    corrected = heirs(recorded.runs)
    view = _current(recorded)
    names = {r.step for r in view.runs}
    if study is None and baseline and steps and all("=" in t and t not in names for t in (baseline, *steps)):
        chosen, stated, guessed = of_selectors(baseline, steps), Vector(), False
    else:
        chosen, stated, guessed = _resolve(
            study, view, store, partial(with_near_parents, everything=recorded.runs, heirs=corrected)
        )
        if baseline is not None or steps:
            if chosen.optimizations and not chosen.steps:
                # The steps of a lattice are its measured combinations, known from the runs alone.
                chosen = with_combinations(chosen, select_runs(chosen, view.runs))
            chosen = reselected(chosen, baseline, steps, view.runs)
    runs = with_near_parents(select_runs(chosen, view.runs), recorded.runs, corrected)
    if not runs:
        raise _no_runs(chosen.name, view, store)
    chosen = with_terms(with_combinations(_with_unit(chosen, runs), runs), terms)
    if not chosen.steps:
        raise SelectionError(
            f"only the baseline {chosen.baseline!r} is there: nothing to compare it with",
            where=chosen.name,
            mend="measure a step, or name one in the study file",
        )
    from carbonlens.compare.sharing import without_double_billing

    renamed = {r.run_id: r for r in runs}
    allocation = allocate([renamed.get(r.run_id, r) for r in view.runs], corrected)
    runs, of_sharing = without_double_billing(runs, allocation, chosen)
    shared = filled(vector if vector is not None else stated)
    chosen = _with_filled_places(chosen)
    vectors = (shared, *(p.vector for p in chosen.effort_places))
    of_factors = (*(f for v in vectors for f in v.findings), *mixed_spans(vectors))
    notes = [*view.findings, *of_sharing, *of_factors, *_unstated_widths(shared, runs)]
    notes += unmeasured_gates(chosen, runs)
    if guessed and baseline is None:
        notes.append(_guessed_baseline(chosen))
    told = msgspec.structs.replace(shared, findings=())
    return Evidence(study=chosen, runs=runs, vector=told, outcomes=_outcomes(runs, store), notes=tuple(notes))


def study_names(view: LedgerView) -> list[str]:
    """Return the names of all studies with runs, in order of first appearance."""
    return list(dict.fromkeys(r.study for r in view.runs if r.study is not None))


def _current(view: LedgerView) -> LedgerView:
    """Leave out what a later record supersedes, whatever study either belongs to."""
    kept, findings = current(view.runs)
    return msgspec.structs.replace(view, runs=kept, findings=(*view.findings, *findings))


def _with_filled_places(study: Study) -> Study:
    """Return a study whose effort places have the factors of the places they name."""
    places = tuple(
        msgspec.structs.replace(place, vector=filled(place.vector)) for place in study.effort_places
    )
    return msgspec.structs.replace(study, effort_places=places)


def _guessed_baseline(study: Study) -> Finding:
    return Finding(
        code="CL430",
        severity="info",
        message=f"no study file says so: the first step, {study.baseline!r}, is taken as the baseline",
        subject=study.baseline,
        mend="choose another with --baseline",
    )


def _unstated_widths(vector: Vector, runs: Sequence[Run]) -> list[Finding]:
    """Say which factors have no stated uncertainty: their error is in no interval."""
    found = []
    is_unsure = vector.host_overhead is not None and vector.host_overhead_u_relative is None
    if is_unsure and any(r.boundary == "device" for r in runs):
        found.append(_no_interval())
    parts = [p for p in (vector.location, vector.market, vector.embodied) if p is not None]
    return found + [
        Finding(
            code="CL310",
            severity="info",
            message=f"the uncertainty of {p.factor_id} is not stated: carbon intervals leave it out",
            subject=p.factor_id,
            mend="state its u_relative in the assumptions",
        )
        for p in parts
        if p.u_relative == 0
    ]


def _no_interval() -> Finding:
    """Say why carbon has no interval: how sure an overhead is that nobody states stays unknown."""
    return Finding(
        code="CL310",
        severity="warning",
        message="the uncertainty of host_overhead is not stated: carbon and the cost of electricity have "
        "no interval",
        subject="host_overhead",
        mend="state host_overhead_u_relative in [facility], one relative sigma of it",
    )


def environment_of(runs: Sequence[Run]) -> tuple[tuple[str, str], ...]:
    """Return what the runs say of hardware, software and instrument, each once."""
    origins = [r.origin for r in runs if r.origin is not None]
    facts: dict[str, list[str | None]] = {
        "hardware": [r.hardware for r in runs],
        "platform": [o.platform for o in origins],
        "Python": [o.python for o in origins],
        "instrument": [o.instrument for o in origins],
        "energy method": [reading.method for r in runs for reading in r.energy],
        "workload": [r.workload for r in runs],
    }
    stated = {name: list(dict.fromkeys(v for v in values if v)) for name, values in facts.items()}
    return tuple((name, "; ".join(values)) for name, values in stated.items() if values)


def _resolve(
    study: Study | str | Path | None,
    view: LedgerView,
    store: Ledger,
    near: Callable[[Sequence[Run]], Sequence[Run]],
) -> tuple[Study, Vector, bool]:
    """Return the study, its vector, and whether its baseline was only guessed from the runs.

    Args:
        study: As in ``compare``.
        view: Runs that count.
        store: The ledger.
        near: Gives runs their nearest parents among themselves.
    """
    from carbonlens.inventory import study_file

    if isinstance(study, Study):
        return study, Vector(), False
    if study is not None and str(study).endswith(".toml"):
        return *study_file.load(Path(study)), False
    name = str(study) if study is not None else _only_study(view, store)
    kept = store.study_file(name)
    if kept.is_file():
        return *study_file.load(kept), False
    from carbonlens.compare.from_runs import study_from_runs

    runs = [r for r in view.runs if r.study == name]
    if not runs:
        raise _no_runs(name, view, store)
    made = study_from_runs(near(runs), name)
    stated = made.baseline == "baseline" or any(r.on == () for r in runs)
    return made, Vector(), not stated


def _only_study(view: LedgerView, store: Ledger) -> str:
    names = study_names(view)
    if len(names) == 1:
        return names[0]
    if not names:
        raise SelectionError(
            "holds no study",
            where=store.shown,
            mend="measure or import with --study NAME --step STEP, import a run table, or give --ledger",
        )
    raise SelectionError(
        f"holds {len(names)} studies: {listed(names)}", where=store.shown, mend="choose one with --study"
    )


def _no_runs(name: str, view: LedgerView, store: Ledger) -> SelectionError:
    names = study_names(view)
    known = f"known: {listed(names)}" if names else "the ledger has no study yet"
    return SelectionError(f"no runs of study {name!r}", where=store.shown, mend=known)


def _with_unit(study: Study, runs: Sequence[Run]) -> Study:
    """Return the study with the functional unit of its runs, where it has none of its own."""
    if study.unit != UNIT_OF_THE_RUNS:
        return study
    steps = {study.baseline, *(s.name for s in study.steps)}
    return msgspec.structs.replace(study, unit=unit_of(r for r in runs if r.step in steps))


def _outcomes(runs: Sequence[Run], store: Ledger) -> dict[str, tuple[int, ...]]:
    found: dict[str, tuple[int, ...]] = {}
    for sha in sorted({q.outcomes_sha256 for r in runs for q in r.quality if q.outcomes_sha256}):
        outcomes = store.outcomes(sha)
        if outcomes is not None:
            found[sha] = outcomes
    return found


def require_analysis() -> None:
    """Refuse at once what would fail later, or compare a ledger read in part."""
    from importlib.util import find_spec

    for package in ("numpy", "duckdb"):
        if find_spec(package) is None:
            raise MissingExtraError("analysis", package)


def _with_findings(result: Comparison, more: Sequence[Finding]) -> Comparison:
    return msgspec.structs.replace(result, findings=(*result.findings, *more)) if more else result
