"""Selecting: which runs of a ledger a study means, by its selectors.

Runs that a step selects are given its name, so that everything after this sees a
study whose runs carry the names of its steps.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from msgspec.structs import replace

from carbonlens.compare.from_runs import joined, study_from_runs
from carbonlens.domain.counting import with_article
from carbonlens.domain.run import Run
from carbonlens.domain.study import Selector, Study
from carbonlens.errors import SelectionError, UsageError

_FIELDS: Final[Mapping[str, Callable[[Run], frozenset[str | None]]]] = {
    "study": lambda r: frozenset({r.study}),
    "step": lambda r: frozenset({r.step}),
    "job": lambda r: frozenset({r.job_id}),
    "workload": lambda r: frozenset({r.workload}),
    "hardware": lambda r: frozenset({r.hardware}),
    "host": lambda r: frozenset({r.host_id, r.machine_id}),
    "zone": lambda r: frozenset({r.zone}),
    "site": lambda r: frozenset({r.site}),
    "role": lambda r: frozenset({r.role}),
}
_KEYS: Final = (*_FIELDS, "run", "on", "tag.NAME")
_MOST_NAMED: Final = 6


def select_runs(study: Study, runs: Sequence[Run]) -> tuple[Run, ...]:
    """Return the runs of a study, those that a step selects under its name.

    A step's selector looks among the study's runs; one that states a study or run
    ids looks in the whole ledger.

    Args:
        study: With its selectors.
        runs: Runs of the ledger.

    Raises:
        SelectionError: If a selector matches no run, or not all the runs it names, or two steps
            select one run.
    """
    pool = [r for r in runs if (r.study == study.name if study.select is None else matches(study.select, r))]
    if study.select is not None and not pool:
        raise _matches_nothing("the study's selector", study.select, runs, study.name)
    if study.select is not None:
        _refuse_missing("the study's selector", study.select, pool, runs, study.name)
    stated = [(study.baseline, None, study.baseline_select), *((s.name, s.on, s.select) for s in study.steps)]
    picked: dict[str, Run] = {}
    for name, on, selector in stated:
        if selector is None:
            continue
        among = runs if selector.study is not None or selector.run is not None else pool
        found = [r for r in among if matches(selector, r)]
        if not found:
            raise _matches_nothing(f"the selector of step {name!r}", selector, among, study.name)
        _refuse_missing(f"the selector of step {name!r}", selector, found, among, study.name)
        for run in found:
            if run.run_id in picked:
                raise SelectionError(
                    f"run {run.run_id} is selected by step {picked[run.run_id].step!r} and by {name!r}",
                    where=study.name,
                    mend="narrow one of the selectors",
                )
            picked[run.run_id] = replace(run, step=name, on=run.on if on is None else on)
    taken = {name for name, _, selector in stated if selector is not None}
    kept = {r.run_id: r for r in pool if r.step not in taken} | picked
    return tuple(replace(kept[r.run_id], study=study.name) for r in runs if r.run_id in kept)


def matches(selector: Selector, run: Run) -> bool:
    """Return whether a run agrees with everything that a selector states."""
    for field, read in _FIELDS.items():
        wanted = getattr(selector, field)
        if wanted is not None and wanted not in read(run):
            return False
    if selector.run is not None and run.run_id not in selector.run:
        return False
    if selector.on is not None and (run.on is None or set(run.on) != set(selector.on)):
        return False
    return all(run.tags.get(key) == value for key, value in selector.tag.items())


def with_combinations(study: Study, runs: Sequence[Run]) -> Study:
    """Return a study of optimizations with the measured combinations as its steps.

    Args:
        study: Names the optimizations.
        runs: Runs of the study.

    Raises:
        SelectionError: If an optimization is on in no run.
    """
    if not study.optimizations or study.steps:
        return study
    wanted = frozenset(study.optimizations)
    some = [r for r in runs if r.on is not None and wanted >= set(r.on)]
    never = [o for o in study.optimizations if all(o not in (r.on or ()) for r in some)]
    if never:
        raise SelectionError(
            f"no run has {', '.join(never)} on",
            where=study.name,
            mend="measure it with --on, or take it out of [lattice] optimizations",
        )
    found = study_from_runs(some, study.name) if any(r.on == () for r in some) else None
    if found is None:
        raise SelectionError(
            "no run has every optimization off, so there is no baseline",
            where=study.name,
            mend="measure the baseline: a run with every optimization off",
        )
    steps = tuple(s for s in found.steps if s.on and s.name != study.baseline)
    return replace(study, baseline=found.baseline, steps=steps)


def parse_selector(text: str) -> tuple[str, Selector] | None:
    """Return the name and the selector that a text spells; ``None`` for a plain name.

    ``[NAME:]KEY=VALUE[,KEY=VALUE...]``; the name is the text itself where none is
    given. A set of optimizations is joined by ``+``.

    Args:
        text: As given after ``--baseline`` or ``--step``.

    Raises:
        UsageError: If a key is not known.
    """
    if "=" not in text:
        return None
    name, colon, rest = text.partition(":")
    if not colon or "=" in name:
        name, rest = text, text
    plain: dict[str, object] = {}
    tags: dict[str, str] = {}
    for part in rest.split(","):
        key, equals, value = (x.strip() for x in part.partition("="))
        if key.startswith("tag.") and equals and len(key) > len("tag."):
            tags[key.removeprefix("tag.")] = value
        elif equals and key in ("run", "on"):
            plain[key] = tuple(v for v in value.split("+") if v)
        elif equals and key in _FIELDS:
            plain[key] = value
        else:
            raise UsageError(
                f"{part.strip()!r} in the selector {text!r} is none",
                mend=f"write KEY=VALUE with a key of {', '.join(_KEYS)}",
            )
    return name.strip(), Selector(**plain, tag=tags)  # type: ignore[arg-type]  # fields are checked by the record itself


def _refuse_missing(
    who: str, selector: Selector, found: Sequence[Run], among: Sequence[Run], study: str
) -> None:
    """Refuse a selector that names runs which it does not get: a slip in one id is no smaller selection.

    Raises:
        SelectionError: If one of its ids is not there, or its other keys leave it out.
    """
    got = {r.run_id for r in found}
    missing = [i for i in dict.fromkeys(selector.run or ()) if i not in got]
    if not missing:
        return
    shown = ", ".join(missing[:_MOST_NAMED]) + (" ..." if len(missing) > _MOST_NAMED else "")
    if {r.run_id for r in among}.isdisjoint(missing):
        raise SelectionError(
            f"{who} names runs that are not there: {shown}",
            where=study,
            mend="name runs that `carbonlens runs` lists; a corrected run has the id of its correction",
        )
    raise SelectionError(
        f"{who} does not get all runs that it names: {shown}",
        where=study,
        mend="correct the ids, or the keys beside run that leave them out",
    )


def _matches_nothing(who: str, selector: Selector, runs: Sequence[Run], study: str) -> SelectionError:
    """Return the error of an empty selection, with what the ledger holds of the first key without a match."""
    for key, wanted, read in _stated(selector):
        values = {v for r in runs for v in read(r)}
        if wanted not in values:
            held = sorted(v for v in values if v)
            shown = ", ".join(held[:_MOST_NAMED]) + (" ..." if len(held) > _MOST_NAMED else "")
            return SelectionError(
                f"{who} matches no run: none has {key} = {wanted!r}",
                where=study,
                mend=f"choose {with_article(key)} that runs state: {shown or 'none states one'}",
            )
    return SelectionError(
        f"{who} matches no run: each of its keys matches some, all together none",
        where=study,
        mend="state fewer keys",
    )


def _stated(selector: Selector) -> list[tuple[str, str, Callable[[Run], frozenset[str | None]]]]:
    found = [
        (f, str(getattr(selector, f)), read)
        for f, read in _FIELDS.items()
        if getattr(selector, f) is not None
    ]
    found += [("run", i, lambda r: frozenset({r.run_id})) for i in selector.run or ()]
    if selector.on is not None:
        wanted = joined(sorted(selector.on))
        found.append(("on", wanted, lambda r: frozenset({None if r.on is None else joined(sorted(r.on))})))
    found += [(f"tag.{k}", v, lambda r, k=k: frozenset({r.tags.get(k)})) for k, v in selector.tag.items()]  # type: ignore[misc]  # a closure over its loop value
    return found
