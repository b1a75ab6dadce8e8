"""Corrections: tags and superseding records. The old record stays; the new one names it."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import msgspec

from carbonlens.domain.decoding import convert
from carbonlens.domain.finding import Finding
from carbonlens.domain.identity import uuid7
from carbonlens.domain.limits import misfits
from carbonlens.domain.run import HourEnergy, Run
from carbonlens.errors import InputFileError, SelectionError, UsageError
from carbonlens.ledger.correcting_energy import as_fields, curve_taken_out
from carbonlens.ledger.forks import FIXED, Fork
from carbonlens.ledger.oddities import hours_fit, unbalanced_hours
from carbonlens.ledger.records import Family, families, family_of, heirs, written_ms

CODE: Final = "CL509"
"""Finding a corrected record carries."""

_SHORTEST_ID: Final = 4


def select(text: str, runs: Sequence[Run], *, where: str, study: str | None = None) -> Run:
    """Return the latest record of the run whose id is, starts or ends with the text.

    A corrected run is found by the id of any of its records. The latest is the one that
    none supersedes, whatever clocks say.

    Args:
        text: Run id, or enough of its start or end.
        runs: All records of the ledger.
        where: The ledger, for messages.
        study: Of the run, where several studies have the id.

    Raises:
        SelectionError: If there is none, or more than one.
    """
    asked = [r for r in runs if study is None or r.study == study]
    found = [r for r in asked if r.run_id == text]
    if not found and len(text) >= _SHORTEST_ID:
        found = [r for r in asked if r.run_id.startswith(text) or r.run_id.endswith(text)]
    related = families(runs) if found else []
    latest = {id(run): run for run in (_latest(r, related) for r in found)}
    if len(latest) == 1:
        return next(iter(latest.values()))
    if latest:
        many = f"{len(latest)} runs match {text!r}"
        several = len({r.study for r in latest.values()}) > 1
        mend = "give the run's study too: --study" if several else "give more of the run id"
        raise SelectionError(many, where=where, mend=mend)
    raise SelectionError(f"no run {text!r}", where=where, mend="list them with: carbonlens runs")


def _latest(run: Run, related: Sequence[Family]) -> Run:
    for family in related:
        if any(r is run for r in family.runs):
            # As records.current: only what ends in several records, or none, is told by the clock.
            return max(family.leaves or family.runs, key=written_ms)
    return run


def tagged(run: Run, tags: Mapping[str, str], *, fork: Fork | None = None) -> Run:
    """Return a record that supersedes the run and has these tags too; an empty value takes a tag out.

    Args:
        run: The record that was the run's latest.
        tags: Names and values.
        fork: Further corrections of the run, which the record settles.

    Raises:
        UsageError: If that changes nothing, or further corrections differ in what is not given.
    """
    fork = fork or Fork()
    fork.refuse_open([f"tags.{k}" for k in tags], run.run_id)
    start = fork.merged or run
    merged = {k: v for k, v in {**start.tags, **tags}.items() if v}
    if merged == run.tags and not fork.also:
        raise UsageError("the run has these tags already", where=run.run_id, mend="give another k=v")
    return msgspec.structs.replace(
        start,
        run_id=_new_id(),
        supersedes=run.run_id,
        supersedes_study=run.study or "",
        supersedes_also=fork.also,
        tags=merged,
    )


def corrected(
    run: Run, changes: Mapping[str, Any], *, why: str | None = None, fork: Fork | None = None
) -> Run:
    """Return a record that supersedes the run and differs in these fields.

    Hours that no longer fit its times or energy are left out, unless the correction gives
    them: its energy is then spread evenly over its time.

    Args:
        run: The record that was wrong.
        changes: Field to its value as JSON has it; ``None`` makes it unknown. ``energy_j`` and
            the run table's other columns of energy stand for that of a run's one reading.
        why: Reason, kept in a Finding of the new record.
        fork: Further corrections of the run, which the record settles.

    Raises:
        UsageError: If a field is none of a run's, has a wrong value, nothing changes, hours
            it gives do not fit, or further corrections differ in what is not given.
    """
    fork = fork or Fork()
    changes = as_fields(fork.merged or run, changes)
    known = {f.name for f in msgspec.structs.fields(Run)}
    strange = sorted(set(changes) - known)
    if strange:
        raise UsageError(
            f"a run has no field {strange[0]!r}",
            where=run.run_id,
            mend="see carbonlens runs show --json; its energy is energy_j",
        )
    fork.refuse_open(list(changes), run.run_id)
    study = run.study or ""
    run = fork.merged or run
    plain = msgspec.to_builtins(run)
    own = {k: v for k, v in changes.items() if k not in FIXED and plain[k] != v}
    if not own and not fork.also:
        raise UsageError("the correction changes nothing", where=run.run_id, mend="give a field=value")
    try:
        changed = convert({**plain, **own}, Run)
    except msgspec.ValidationError as error:
        raise UsageError(
            f"the correction is no run ({error})",
            where=run.run_id,
            mend="write numbers as numbers and exact amounts as text",
        ) from error
    # What an older version took stays correctable, one figure after another.
    as_before = set(misfits(run))
    unfit = next((u for u in misfits(changed) if u not in as_before), None)
    if unfit is not None:
        raise UsageError(
            f"the correction cannot be kept: {unfit}", where=run.run_id, mend="check the figure and its unit"
        )
    hours = _hours(run, changed, given="energy_by_hour" in own)
    if hours != changed.energy_by_hour:
        own["energy_by_hour"] = hours
    return msgspec.structs.replace(
        changed,
        run_id=_new_id(),
        supersedes=run.run_id,
        supersedes_study=study,
        supersedes_also=fork.also,
        energy_by_hour=hours,
        findings=(*run.findings, _note(run, own, why), *curve_taken_out(run, own)),
    )


def refuse_circle(run: Run, corrected_run: Run, runs: Sequence[Run]) -> None:
    """Refuse a new parent that lies inside the run itself, by whichever of their records it is named.

    Args:
        run: The record that was the run's latest.
        corrected_run: The one that is to supersede it.
        runs: All records of the ledger.

    Raises:
        UsageError: If the run would lie in itself.
    """
    here = corrected_run.parent_run_id
    if here is None or here == run.parent_run_id:
        return
    own = {r.run_id for r in family_of(run, runs)}
    last, above = heirs(runs), {r.run_id: r.parent_run_id for r in runs}
    met: set[str] = set()
    while here is not None and here not in met:
        if here in own:
            raise UsageError(
                f"the run would lie in itself: parent {corrected_run.parent_run_id} is a record of it,"
                " or lies inside it",
                where=run.run_id,
                mend="give another parent_run_id, or null for none",
            )
        met.add(here)
        here = above.get(last.get(here, here))


def _hours(run: Run, changed: Run, *, given: bool) -> tuple[HourEnergy, ...]:
    """Return the hours that fit the corrected record.

    Raises:
        UsageError: If the correction gives hours that do not.
    """
    times = (changed.start_us, changed.end_us)
    if given:
        if not hours_fit(changed):
            raise UsageError(
                "the hours do not fit the run's times and energy",
                where=run.run_id,
                mend="give energy_by_hour inside its times and with the sum of its energy, or leave it out",
            )
        return changed.energy_by_hour
    if times != (run.start_us, run.end_us):
        return ()
    if changed.energy == run.energy:
        return changed.energy_by_hour
    named = {r.component for r in changed.energy}
    fitting = [
        hours
        for name in dict.fromkeys(h.component for h in run.energy_by_hour)
        for hours in [tuple(h for h in run.energy_by_hour if h.component == name)]
        if name in named and not unbalanced_hours([msgspec.structs.replace(changed, energy_by_hour=hours)])
    ]
    kept = {id(h) for hours in fitting for h in hours}
    return tuple(h for h in run.energy_by_hour if id(h) in kept)


def changes_from(parts: Sequence[str]) -> dict[str, Any]:
    """Return the changes that ``field=value`` texts and JSON files state; later ones win.

    Raises:
        InputFileError: If a file cannot be read, or is no JSON object.
        UsageError: If a text is neither.
    """
    changes: dict[str, Any] = {}
    for part in parts:
        changes |= (
            parse_changes([part]) if "=" in part and not Path(part).is_file() else changes_in_file(part)
        )
    return changes


def parse_changes(pairs: Sequence[str]) -> dict[str, Any]:
    """Return ``field=value`` texts as a mapping; a value is JSON, else text.

    Exact amounts (joules, units, kilograms) stay text, so that no digit is lost.

    Raises:
        UsageError: If a text has no ``=``.
    """
    changes: dict[str, Any] = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not equals or not name:
            raise UsageError(f"{pair!r} is no field=value", mend="write units=1000, or give a JSON file")
        changes[name] = value if name in _EXACT and value != "null" else _value(value)
    return changes


def changes_in_file(text: str) -> dict[str, Any]:
    """Return the changes that a JSON file states.

    Raises:
        InputFileError: If it cannot be read, or is no JSON object.
    """
    try:
        plain = msgspec.json.decode(Path(text).read_bytes())
    except OSError as error:
        raise InputFileError(
            f"cannot be read ({error.strerror or error})",
            where=text,
            mend="give a JSON file, or field=value",
        ) from error
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise InputFileError(
            f"is no JSON ({error})", where=text, mend="give an object of a run's fields"
        ) from error
    if not isinstance(plain, dict):
        raise InputFileError("is no JSON object", where=text, mend="give an object of a run's fields")
    return plain


_EXACT: Final = frozenset({"units", "emissions_reported_kg", "energy_j"})


def _value(text: str) -> object:
    try:
        value: object = msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeEncodeError):
        return text
    return value


def _note(run: Run, own: Mapping[str, Any], why: str | None) -> Finding:
    reason = f" ({why})" if why else ""
    return Finding(
        code=CODE,
        severity="info",
        message=f"corrected: {', '.join(sorted(own)) or 'what two corrections left open'}{reason}",
        subject=run.run_id,
    )


def _new_id() -> str:
    return uuid7(time.time_ns() // 1_000_000, os.urandom(10))
