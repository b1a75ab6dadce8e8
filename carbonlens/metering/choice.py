"""Choice: which of several readings of one window is a run's energy, and which stand beside it.

No joule may count twice. Several sensors may read one device; a module's input rail
holds its processors, and a meter at the plug holds all of the machine.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from typing import Final

import msgspec

from carbonlens.domain.estimate import add
from carbonlens.domain.finding import Finding
from carbonlens.domain.units import Boundary
from carbonlens.metering.pace import STEADY_S
from carbonlens.metering.parts import Part
from carbonlens.signals.agreement import disagreement

ENOUGH_SHARE: Final = 0.9
"""Share of the window below which a source gives way to a complete one of lesser grade."""

SHARPER: Final = 1.5
"""A lesser grade is believed if the better one's interval is this many times wider.

A counter that moves every 0.1 s says little of a window of 0.2 s; power read at the
same moments says more.
"""

SHORTEST_TO_COMPARE_S: Final = 0.3
"""Below three ticks of 0.1 s the narrower interval is but the one that saw less."""

WHOLES: Final = ("wall", "total")
"""Components that hold others, the widest first."""

_ALTERNATIVES: Final = frozenset({"cpu", "ram"})
"""Components that each sensor reads as a whole, under device names of its own."""

_DECLARED: Final = ("external:", "datasheet:")
"""Beginnings of the names of sensors that a user declared."""

_PLAIN: Final[frozenset[str]] = frozenset({"cpu", "ram"})


class Choice(msgspec.Struct, frozen=True):
    """Parts by their role; ``boundary`` is that of the run's energy.

    ``missing`` names components that are known at another boundary only.
    """

    energy: tuple[Part, ...]
    beside: tuple[Part, ...]
    missing: tuple[str, ...]
    findings: tuple[Finding, ...]
    boundary: Boundary


def choose(parts: Sequence[Part], window_s: float) -> Choice:
    """Return the parts that are the run's energy, and the others.

    Args:
        parts: All that is known.
        window_s: Length of the window.
    """
    best, others, notes = _one_method_each(parts, window_s)
    wholes: dict[str, list[Part]] = {}
    for name in WHOLES:
        wholes[name], rest, more = _one_meter([p for p in best if p.component == name], window_s)
        others += rest
        notes += more
    inner = [p for p in best if p.component not in WHOLES]
    energy, left_out = _at_one_boundary(inner)
    others += left_out
    for name, whole in wholes.items():
        if not whole:
            continue
        narrower = [] if name == WHOLES[-1] else wholes[WHOLES[-1]]
        inside_j = max(_known_j(energy), _known_j(narrower))
        if all(_holds(p, energy, window_s, enough=_known_j(whole) >= inside_j) for p in whole):
            rest = [p for n, more in wholes.items() for p in more if n != name and p not in others]
            return Choice(tuple(whole), (*energy, *rest, *others), (), tuple(notes), whole[0].info.boundary)
        others += whole
    boundary: Boundary = energy[0].reading.boundary or "it" if energy else "it"
    missing = tuple(dict.fromkeys(p.component for p in left_out if p.component != "ram"))
    return Choice(tuple(energy), tuple(others), missing, tuple(notes), boundary)


def _one_method_each(parts: Sequence[Part], window_s: float) -> tuple[list[Part], list[Part], list[Finding]]:
    """Return the best part of each device, the others, and which of them exclude each other."""
    groups: dict[tuple[str, str], list[Part]] = {}
    # Nobody says which board a declared meter or datasheet is of: it stands for all of them.
    declared = {p.component for p in parts if p.info.name.startswith(_DECLARED)} - set(WHOLES)
    for part in parts:
        device = "" if part.component in _ALTERNATIVES | declared else part.device
        groups.setdefault((part.component, device), []).append(part)
    best: list[Part] = []
    others: list[Part] = []
    notes: list[Finding] = []
    for group in groups.values():
        sensors = list(dict.fromkeys(p.info.name for p in group))
        by_sensor = [[p for p in group if p.info.name == name] for name in sensors]
        winner = by_sensor[0]
        for rival in by_sensor[1:]:
            if _beats(rival, winner, window_s):
                winner = rival
        best += winner
        rest = [p for p in group if p not in winner]
        others += rest
        notes += _disagreements(winner, [p for p in rest if not _is_seldom(p, winner, window_s)])
    return best, others, notes


def _one_meter(parts: Sequence[Part], window_s: float) -> tuple[list[Part], list[Part], list[Finding]]:
    """Return what the best meter of a whole read, the others, and which of them exclude each other.

    A plug, a management controller and an ACPI meter read one machine. Channels of one
    meter (a rail a power supply, a module a GPU) stand side by side and add up.
    """
    meters: dict[str, list[Part]] = {}
    for part in parts:
        meters.setdefault(_meter(part.info.name), []).append(part)
    if len(meters) <= 1:
        return list(parts), [], []
    first, *rivals = meters.values()
    winner = first
    for rival in rivals:
        if _beats(rival, winner, window_s):
            winner = rival
    rest = [m for m in meters.values() if m is not winner]
    notes = [n for other in rest if (n := _excludes(winner, other)) is not None]
    return winner, [p for m in rest for p in m], notes


def _meter(sensor: str) -> str:
    """Return what sensors that read one thing's devices have in common: NVML's read a GPU each."""
    return "nvml" if sensor.startswith("nvml_") else sensor


def _excludes(winner: Sequence[Part], other: Sequence[Part]) -> Finding | None:
    """Return a Finding where two complete meters of one whole cannot both be right."""
    if any(p.reading.state != "known" for p in (*winner, *other)):
        return None
    mine, theirs = (
        (m[0].info.name, m[0].reading.estimate if len(m) == 1 else add([p.reading.estimate for p in m], "J"))
        for m in (winner, other)
    )
    return disagreement(mine, theirs)


def _beats(one: Sequence[Part], other: Sequence[Part], window_s: float) -> bool:
    """Tell whether one sensor's parts are better evidence than another's."""
    covers, covered = _covers(one, window_s), _covers(other, window_s)
    if covers != covered:
        return covers
    steps = _is_within_a_step(one, window_s), _is_within_a_step(other, window_s)
    if steps[0] != steps[1] and {_grade(one), _grade(other)} <= {"B", "C"}:
        return steps[1]
    better = _grade(one) < _grade(other)
    sharp, dull = (one, other) if _grade(one) > _grade(other) else (other, one)
    long = window_s >= SHORTEST_TO_COMPARE_S
    if long and _grade(one) != _grade(other) and {_grade(one), _grade(other)} <= {"B", "C"}:
        a, b = _relative_width(sharp), _relative_width(dull)
        if a is not None and b is not None and b > SHARPER * a:
            return sharp is one
    return better


def _is_within_a_step(parts: Sequence[Part], window_s: float) -> bool:
    """Tell whether a window lies between two moves of a counter: what it gained is of another time."""
    return all(p.info.kind == "cumulative" and window_s < p.info.update_period_s for p in parts)


def _covers(parts: Sequence[Part], window_s: float) -> bool:
    known = [p for p in parts if p.reading.energy_j is not None]
    return len(known) > 0 and min(p.covered_s for p in known) >= ENOUGH_SHARE * window_s


def _grade(parts: Sequence[Part]) -> str:
    return max(p.reading.grade or "Z" for p in parts)


def _relative_width(parts: Sequence[Part]) -> float | None:
    estimates = [p.reading.estimate for p in parts]
    if len(estimates) != 1 or not estimates[0].value:
        return None
    one = estimates[0]
    return None if one.high is None or one.low is None else (one.high - one.low) / estimates[0].value


def _is_seldom(part: Part, winner: Sequence[Part], window_s: float) -> bool:
    """Tell whether power was read once a second since a counter has the energy: it may miss all of a load."""
    beside = part.info.unit == "W" and part.info.slow and all(p.info.unit == "J" for p in winner)
    return beside and window_s > STEADY_S


def _disagreements(winner: Sequence[Part], rest: Sequence[Part]) -> list[Finding]:
    notes = []
    for used in winner:
        for other in rest:
            if other.device == used.device and other.reading.grade in {"A", "B", "C"}:
                note = disagreement(
                    (used.info.name, used.reading.estimate), (other.info.name, other.reading.estimate)
                )
                if note is not None:
                    named = f"{used.device}: {note.message}"
                    notes.append(msgspec.structs.replace(note, message=named))
    return notes


def _at_one_boundary(parts: Sequence[Part]) -> tuple[list[Part], list[Part]]:
    """Return the parts as they can be summed.

    The CPU model's own figure is a whole server's, memory included. Beside devices,
    or where a counter reads the CPU, all is at the devices' boundary.
    """
    devices = any(
        p.component not in _PLAIN or p.info.boundary == "device" for p in parts if p.component != "ram"
    )
    if not devices:
        whole = [p for p in parts if p.component == "cpu"]
        return whole or list(parts), [p for p in parts if p not in whole]
    kept, left = [], []
    for part in parts:
        if part.info.boundary == "device":
            kept.append(part)
        elif part.at_device is not None:
            kept.append(msgspec.structs.replace(part, reading=part.at_device))
        else:
            left.append(part)
    return (kept, left) if kept else (left, [])


def _known_j(parts: Sequence[Part]) -> Decimal:
    return sum((p.reading.energy_j for p in parts if p.reading.energy_j is not None), Decimal(0))


def _holds(whole: Part, inner: Sequence[Part], window_s: float, *, enough: bool) -> bool:
    """Tell whether a reading of the whole is as good as the worst of its parts.

    One of which much is missing is a lower bound, and still better than parts of which
    more is missing, or none known: but never where they are known to hold more.

    Args:
        whole: One meter's reading.
        inner: The parts.
        window_s: Length of the window.
        enough: Whether the whole's joules are at least those of what lies inside.
    """
    if whole.reading.energy_j is None:
        return False
    least_s = min((p.covered_s if p.reading.energy_j is not None else 0.0 for p in inner), default=0.0)
    if whole.covered_s < ENOUGH_SHARE * window_s:
        return enough and least_s < whole.covered_s
    worst = max((p.reading.grade or "Z" for p in inner), default="Z")
    return (whole.reading.grade or "Z") <= worst or least_s < ENOUGH_SHARE * window_s
