"""Use case: compare the arms of a study that lie in the ledger."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import msgspec

from carbonlens.accounting.allocation import allocate
from carbonlens.domain.comparison import Comparison
from carbonlens.domain.factor import Vector
from carbonlens.domain.finding import Finding
from carbonlens.domain.run import Run
from carbonlens.domain.study import Step, Study
from carbonlens.errors import MissingExtraError, SelectionError
from carbonlens.ledger.location import locate
from carbonlens.ledger.store import Ledger, LedgerView


def compare(
    study: Study | str | Path | None = None,
    *,
    ledger: str | Path | None = None,
    vector: Vector | None = None,
    baseline: str | None = None,
    steps: Sequence[str] = (),
) -> Comparison:
    """Compare the steps of one study.

    Args:
        study: A study, the path of a study file (a text that ends in
            ``.toml``), or the name of a study in the ledger; the ledger's only
            study when ``None``.
        ledger: The ledger's folder; found as the command line finds it when ``None``.
        vector: Factors and prices for all arms; those of the study file when
            ``None``. What is not stated stays unknown.
        baseline: Step to use as the baseline instead of the study's.
        steps: Steps to compare, in order, instead of the study's.

    Raises:
        SelectionError: If the study, a step or the baseline has no runs.
        IncomparableError: If the arms differ in unit, boundary or workload, or
            ran at the same time on a device that nothing measured divides.
        MissingExtraError: If the ``analysis`` extra is not installed.
    """
    _require_analysis()
    store = Ledger(locate(ledger))
    view = store.view()
    view = _current(view)
    chosen, stated, guessed = _resolve(study, view, store)
    if baseline is not None or steps:
        chosen = _reselect(chosen, baseline, steps)
    runs = tuple(r for r in view.runs if r.study == chosen.name)
    if not runs:
        raise _no_runs(chosen.name, view, store)
    from carbonlens.compare.sharing import without_double_billing
    from carbonlens.compare.study import compare_study

    runs, of_sharing = without_double_billing(runs, allocate(view.runs), chosen)
    shared = vector if vector is not None else stated
    result = compare_study(chosen, runs, shared, _outcomes(runs, store), environment=environment_of(runs))
    notes = [*view.findings, *of_sharing, *_unstated_widths(shared)]
    if guessed and baseline is None:
        notes.append(_guessed_baseline(chosen))
    return _with_findings(result, notes)


def study_names(view: LedgerView) -> list[str]:
    """Return the names of all studies with runs, in order of first appearance."""
    return list(dict.fromkeys(r.study for r in view.runs if r.study is not None))


def _current(view: LedgerView) -> LedgerView:
    """Leave out what a later record supersedes, whatever study either belongs to."""
    gone = {r.supersedes for r in view.runs if r.supersedes}
    kept = tuple(r for r in view.runs if r.run_id not in gone)
    return msgspec.structs.replace(view, runs=kept)


def _guessed_baseline(study: Study) -> Finding:
    return Finding(
        code="CL430",
        severity="info",
        message=f"no study file says so: the first step, {study.baseline!r}, is taken as the baseline",
        subject=study.baseline,
        mend="choose another with --baseline",
    )


def _unstated_widths(vector: Vector) -> list[Finding]:
    """Say which factors have no stated uncertainty: their error is in no interval."""
    parts = [p for p in (vector.location, vector.market, vector.embodied) if p is not None]
    return [
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


def _resolve(study: Study | str | Path | None, view: LedgerView, store: Ledger) -> tuple[Study, Vector, bool]:
    """Return the study, its vector, and whether its baseline was only guessed from the runs."""
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
    made = study_from_runs(runs, name)
    stated = made.baseline == "baseline" or any(r.on == () for r in runs)
    return made, Vector(), not stated


def _only_study(view: LedgerView, store: Ledger) -> str:
    names = study_names(view)
    if len(names) == 1:
        return names[0]
    if not names:
        raise SelectionError(
            "holds no study",
            where=str(store.path),
            mend="measure with a study name, import a run table, or give --ledger",
        )
    raise SelectionError(
        f"holds {len(names)} studies: {_listed(names)}", where=str(store.path), mend="choose one with --study"
    )


def _no_runs(name: str, view: LedgerView, store: Ledger) -> SelectionError:
    names = study_names(view)
    known = f"known: {_listed(names)}" if names else "the ledger has no study yet"
    return SelectionError(f"no runs of study {name!r}", where=str(store.path), mend=known)


def _listed(names: Sequence[str], most: int = 8) -> str:
    shown = ", ".join(names[:most])
    return shown if len(names) <= most else f"{shown} and {len(names) - most} more"


def _reselect(study: Study, baseline: str | None, steps: Sequence[str]) -> Study:
    known = {s.name: s for s in study.steps}
    first = baseline if baseline is not None else study.baseline
    names = list(steps) or [s.name for s in study.steps if s.name != first]
    if first in names or len(set(names)) < len(names):
        raise SelectionError(
            f"a step stands twice among {_listed([first, *names])}",
            where=study.name,
            mend="name the baseline and every step once",
        )
    for name in [first, *names]:
        if name not in known and name != study.baseline:
            raise SelectionError(
                f"study {study.name!r} has no step {name!r}",
                mend=f"known: {_listed([study.baseline, *known])}",
            )
    kept = {first, *names}
    chosen = tuple(_rebased(known.get(n) or Step(name=n), kept) for n in names)
    title = study.baseline_title if first == study.baseline else (known[first].title or first)
    return msgspec.structs.replace(study, baseline=first, baseline_title=title, steps=chosen)


def _rebased(step: Step, kept: set[str]) -> Step:
    """Let a step whose reference was left out be measured on its new predecessor."""
    if step.measured_on is None or step.measured_on in kept:
        return step
    return msgspec.structs.replace(step, measured_on=None)


def _outcomes(runs: Sequence[Run], store: Ledger) -> dict[str, tuple[int, ...]]:
    found: dict[str, tuple[int, ...]] = {}
    for sha in {q.outcomes_sha256 for r in runs for q in r.quality if q.outcomes_sha256}:
        outcomes = store.outcomes(sha)
        if outcomes is not None:
            found[sha] = outcomes
    return found


def _require_analysis() -> None:
    """Refuse at once what would fail later, or compare a ledger read in part."""
    from importlib.util import find_spec

    for package in ("numpy", "scipy", "duckdb"):
        if find_spec(package) is None:
            raise MissingExtraError("analysis", package)


def _with_findings(result: Comparison, more: Sequence[Finding]) -> Comparison:
    return msgspec.structs.replace(result, findings=(*result.findings, *more)) if more else result
