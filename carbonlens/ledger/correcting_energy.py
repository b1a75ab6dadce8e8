"""Corrections of a run's energy in the words of the run table: ``energy_j`` instead of a reading's JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal, InvalidOperation
from typing import Any, Final

import msgspec

from carbonlens.domain.counting import counted
from carbonlens.domain.finding import Finding
from carbonlens.domain.grades import default_relative_sigma
from carbonlens.domain.run import Reading, Run
from carbonlens.domain.trace import NO_POWER, NO_POWER_SAID
from carbonlens.errors import UsageError

COLUMNS: Final[Mapping[str, str]] = {
    "energy_j": "energy_j",
    "energy_low_j": "low_j",
    "energy_high_j": "high_j",
    "energy_grade": "grade",
    "boundary": "boundary",
}
"""Column of the run table to the field of the reading that it states."""

_ENERGY: Final = "energy"
_POWER: Final = "power"
_DURATION: Final = "duration_s"
_START: Final = "start_us"
_END: Final = "end_us"
_TIMES: Final = (_DURATION, _START, _END)
_CORRECTED: Final = {
    (True, False): "the energy was",
    (False, True): "the run's length was",
    (True, True): "the run's energy and length were",
    (False, False): "it was",
}
"""What a correction without power over time changed: whether the energy, and whether the times."""

_FORM: Final = "give all readings as runs show --json has them: --by FILE.json, or energy=[...]"


def as_fields(run: Run, changes: Mapping[str, Any]) -> dict[str, Any]:
    """Return changes with the run table's columns of energy as the run's field ``energy``.

    What is known of the error goes with the figure: errors that are relative keep their size
    relative to it, an interval that was stated goes unless the correction states one too. Power
    over time goes where the figure changes, or what it covers, or how long the run was: the area
    under it would be another energy. It begins with the run, and stays where that moves as a whole.

    Args:
        run: The record that was wrong.
        changes: Field, or column of the run table, to its value as JSON has it.

    Raises:
        UsageError: If the run has several readings, so that no column says which is meant, or
            both forms are given.
    """
    return _without_curve(run, _as_readings(run, changes))


def _without_curve(run: Run, changes: Mapping[str, Any]) -> dict[str, Any]:
    """Return changes that take the run's power over time out where it no longer holds the energy."""
    made = dict(changes)
    if run.power is not None and (_is_other_energy(run, made) or _is_other_window(run, made)):
        made.setdefault(_POWER, None)
    return made


def _is_other_energy(run: Run, changes: Mapping[str, Any]) -> bool:
    readings = [(r.energy_j, None if r.covered_s is None else _number(r.covered_s)) for r in run.energy]
    return _ENERGY in changes and _figures(changes[_ENERGY]) != readings


def _is_other_window(run: Run, changes: Mapping[str, Any]) -> bool:
    """Tell whether a correction says that the run lasted otherwise, by one clock or the other."""
    before = {name: getattr(run, name) for name in _TIMES}
    now = {name: changes.get(name, value) for name, value in before.items()}
    if _number(now[_DURATION]) != _number(before[_DURATION]):
        return True
    lengths = (_between(before), _between(now))
    return None not in lengths and lengths[0] != lengths[1]


def _between(times: Mapping[str, Any]) -> Decimal | None:
    start, end = _number(times[_START]), _number(times[_END])
    return None if start is None or end is None else end - start


def curve_taken_out(run: Run, changes: Mapping[str, Any]) -> tuple[Finding, ...]:
    """Return what must be said where a correction takes power over time out; else nothing.

    Args:
        run: The record that was wrong.
        changes: The fields that differ, as ``as_fields`` made them.
    """
    if changes.get(_POWER, _ENERGY) is not None:
        return ()
    what = _CORRECTED[_is_other_energy(run, changes), _is_other_window(run, changes)]
    return (
        Finding(
            code=NO_POWER,
            severity="info",
            message=f"{NO_POWER_SAID}{what} corrected by hand, and what was read is not of it",
            mend="measure it again with a trace",
            subject=_POWER,
        ),
    )


def _figures(readings: object) -> list[tuple[Decimal | None, Decimal | None]] | None:
    """Return joules and covered seconds of readings as JSON has them; ``None`` of what is refused later."""
    if not isinstance(readings, Sequence) or not all(isinstance(r, Mapping) for r in readings):
        return None
    return [(_number(r.get("energy_j")), _number(r.get("covered_s"))) for r in readings]


def _as_readings(run: Run, changes: Mapping[str, Any]) -> dict[str, Any]:
    told = {COLUMNS[name]: value for name, value in changes.items() if name in COLUMNS}
    left = {name: value for name, value in changes.items() if name not in COLUMNS}
    if not told:
        return left
    if _ENERGY in left:
        raise UsageError("energy is given twice, whole and by column", where=run.run_id, mend=_FORM)
    if len(run.energy) > 1:
        names = ", ".join(dict.fromkeys(r.component for r in run.energy))
        raise UsageError(
            f"the run has {counted(len(run.energy), 'reading')} ({names}), and"
            f" {next(n for n in COLUMNS if n in changes)} does not say of which it is",
            where=run.run_id,
            mend=_FORM,
        )
    made = _corrected(run, told)
    if run.energy and made == msgspec.to_builtins(run.energy[0]):
        return left
    return {**left, _ENERGY: [made]}


def _corrected(run: Run, told: Mapping[str, Any]) -> dict[str, Any]:
    """Return the run's one reading as JSON has it, with what is told of it."""
    none = Reading(component="total", energy_j=None, boundary=None, grade=None, method="", state="unknown")
    before = run.energy[0] if run.energy else none
    old = msgspec.to_builtins(before)
    plain: dict[str, Any] = {**old, **told}
    if plain["energy_j"] != old["energy_j"]:
        unknown = plain["energy_j"] is None
        # The part above idle power was a part of the old figure.
        plain |= {"state": "unknown" if unknown else "known", "method": "as corrected", "dynamic_j": None}
    elif plain["grade"] == old["grade"]:
        has_ends = "low_j" in told or "high_j" in told
        return plain | ({"u_random_j": 0.0, "u_by_source_j": {}} if has_ends else {})
    ends = {"low_j": told.get("low_j"), "high_j": told.get("high_j")}
    has_interval = any(end is not None for end in ends.values())
    joules = None if has_interval else _number(plain["energy_j"])
    return plain | ends | {"u_random_j": 0.0, "u_by_source_j": {}} | _errors(run, before, plain, joules)


def _errors(run: Run, before: Reading, plain: Mapping[str, Any], joules: Decimal | None) -> dict[str, Any]:
    """Return the errors of a corrected figure: the old ones in proportion, else the grade's usual one."""
    if joules is None:
        return {}
    if before.energy_j and plain["grade"] == before.grade and (before.u_by_source_j or before.u_random_j):
        ratio = float(joules / before.energy_j)
        scaled = {name: u * ratio for name, u in before.u_by_source_j.items()}
        return {"u_random_j": before.u_random_j * ratio, "u_by_source_j": scaled}
    relative = default_relative_sigma(plain["grade"])
    # As of the run table: runs of one machine share the error of its meter.
    place = run.host_id or run.hardware or run.study or run.run_id
    return (
        {}
        if relative is None
        else {"u_by_source_j": {f"grade_{plain['grade']}:{place}": relative * float(joules)}}
    )


def _number(value: object) -> Decimal | None:
    """Return what is a finite number; what is none is refused where the record is made."""
    try:
        number = Decimal(str(value))
    except InvalidOperation:
        return None
    return number if number.is_finite() else None
