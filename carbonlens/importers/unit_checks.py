"""Units are checked, not believed: power, intensity and length that figures imply.

A value is kept in the unit that its source states; a Finding names the reading that would make
sense. No figure is changed here.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Final

import msgspec

from carbonlens.domain.finding import Finding
from carbonlens.domain.units import J_PER_KWH
from carbonlens.importers.records import finding
from carbonlens.importers.sources import Source

MOST_W: Final = {"gpu": 3_000.0, "cpu": 3_000.0, "ram": 3_000.0, "npu": 1_000.0, "soc": 1_000.0}
"""Highest mean power of one device of a kind that is believed: twice what any has in 2026, and more."""

MOST_HOST_W: Final = 50_000.0
"""Of a whole machine: one of eight accelerators draws some 15 kW, a rack-sized one less than this."""

USUAL_W: Final = (0.05, 20_000.0)
"""Mean power that a reading in another unit should come to, to be offered as the right one."""

LEAST_DEVICE_W: Final = 1.0
"""Lowest mean power of a whole graphics card or accelerator that is believed; idle ones draw more."""

LEAST_METER_W: Final = 0.5
"""Of what a meter at a wall plug is put before: a single-board computer at rest draws twice that."""

LEAST_SERVER_W: Final = 5.0
"""Of a server, by its own controller: the controller alone draws as much."""

MOST_KG_PER_KWH: Final = 2.0
LEAST_KG_PER_KWH: Final = 0.001
"""Bounds of a grid's intensity: oil in old engines is near 1, the cleanest grids are at 0.003."""

USUAL_KG_PER_KWH: Final = (0.003, 1.3)
MOST_RATIO: Final = 2.0
"""Most by which stated and implied power may differ: tools print unweighted means."""

_ENERGY_UNITS: Final = {
    "MWh": 3.6e9,
    "kWh": 3.6e6,
    "Wh": 3.6e3,
    "mWh": 3.6,
    "MJ": 1e6,
    "kJ": 1e3,
    "J": 1.0,
    "mJ": 1e-3,
    "uJ": 1e-6,
    "nJ": 1e-9,
}
_POWER_UNITS: Final = {"kW": 1e3, "W": 1.0, "mW": 1e-3, "uW": 1e-6}
_LENGTH_UNITS: Final = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9, "min": 60.0, "h": 3600.0}

_FOLDS: Final = {"a thousandfold": 1e3, "a millionfold": 1e6}
"""By which a duration is too short whose header states a smaller unit than its figures are in."""


class Stated(msgspec.Struct, frozen=True, kw_only=True):
    """Figures of one run as a source states them; ``None`` where it does not.

    Attributes:
        energy_j: Joules, by the unit that the source states.
        energy_unit: That unit, such as ``kWh``.
        least_w: Lowest mean power that is believed, where the kind of device tells.
        most_w: Highest.
    """

    energy_j: float | None = None
    energy_unit: str = "J"
    duration_s: float | None = None
    emissions_kg: float | None = None
    least_w: float = 0.0
    most_w: float = MOST_HOST_W


def of_run(stated: Stated, source: Source, line: int) -> Iterator[Finding]:
    """Yield what the figures of a run imply that cannot be."""
    if stated.energy_j and stated.duration_s:
        yield from _power(stated, stated.energy_j, stated.duration_s, source, line)
    if stated.energy_j and stated.emissions_kg:
        yield from _intensity(stated.emissions_kg, stated.energy_j / J_PER_KWH, source, line)


class Power(msgspec.Struct, frozen=True, kw_only=True):
    """Energy and power of one part as a source states both; ``None`` where it does not.

    Attributes:
        part: Name of the part, such as ``cpu``.
        energy_j: Joules.
        stated_w: Watts.
        duration_s: Seconds.
        multiplier: By which the energy may have been raised and the power not, such as a PUE.
    """

    part: str
    energy_j: float | None
    stated_w: float | None
    duration_s: float | None
    multiplier: float = 1.0


def of_power(told: Power, source: Source, line: int) -> Iterator[Finding]:
    """Yield a Finding where a part's energy implies another power than is stated beside it."""
    energy_j, stated_w, duration_s = told.energy_j, told.stated_w, told.duration_s
    if not energy_j or not stated_w or not duration_s or min(energy_j, stated_w, duration_s) <= 0:
        return
    implied_w = energy_j / duration_s
    ratio = implied_w / stated_w
    if any(1 / MOST_RATIO <= r <= MOST_RATIO for r in (ratio, ratio / told.multiplier)):
        return
    times = f"{ratio:.2g}x" if ratio >= 1 else f"1/{1 / ratio:.2g} of"
    part = told.part
    text = f"{part}_energy implies {implied_w:.4g} W, {times} the stated {part}_power of {stated_w:.4g} W"
    mend = "check which of the two the tool measured; the energy is kept as stated"
    yield finding("CL247", "warning", text, source, line=line, mend=mend)


def of_trace(
    part: str, mean_w: float | None, unit: str, source: Source, *, least_w: float = 0.0
) -> Iterator[Finding]:
    """Yield a Finding where a trace's mean power cannot be, in the unit that its file states.

    Args:
        part: Component, such as ``gpu``.
        mean_w: Mean power in watts, by that unit.
        unit: The unit: ``W``, ``mW`` and so on.
        source: The source.
        least_w: Lowest mean power that such a device is believed to draw; 0 where it may sleep.
    """
    most_w = MOST_W.get(part, MOST_HOST_W)
    if mean_w is None or not math.isfinite(mean_w) or least_w <= mean_w <= most_w:
        return
    if mean_w < 0:
        text = f"the mean power of {part} is {mean_w:.4g} W: below zero"
        mend = "check the sign: does the log count charging as positive?"
        yield finding("CL248", "error", text, source, mend=mend)
        return
    size = "more than any has" if mean_w > most_w else "less than any draws"
    text = f"the mean power of {part} is {mean_w:.4g} W, {size}"
    told = None
    for units in (_POWER_UNITS, _ENERGY_UNITS):  # the latter of a counter
        stated = _known(unit, units)
        if stated is not None:
            usual = max(least_w, USUAL_W[0]), min(most_w, USUAL_W[1])
            told = _that_fits(mean_w / units[stated], units, stated, usual)
            text += _offer(told, stated)
            break
    yield finding("CL248", "error", text, source, mend=_mend(told))


def of_length(
    stated_s: float | None, told_s: float | None, source: Source, line: int, *, has_gaps: bool = False
) -> Iterator[Finding]:
    """Yield a Finding where a stated duration and the times beside it differ by a unit.

    Args:
        stated_s: Seconds, by the unit that the source states.
        told_s: Seconds between its times.
        source: The source.
        line: Its line.
        has_gaps: Whether time may pass between the times that no duration tells of.
    """
    if not stated_s or not told_s or stated_s <= 0 or told_s <= 1:
        return
    ratio = stated_s / told_s
    if 1 / MOST_RATIO <= ratio <= MOST_RATIO:
        return
    unit = next((u for u, s in _LENGTH_UNITS.items() if u != "s" and 0.9 <= ratio * s <= 1.1), None)
    fold = next((name for name, times in _FOLDS.items() if 0.9 <= ratio * times <= 1.1), None)
    if has_gaps and ratio < 1 and unit is None and fold is None:
        return
    text = f"a duration of {stated_s:.6g} s stands beside times that are {told_s:.6g} s apart"
    offer = f": {stated_s:.6g} {unit} would fit" if unit else f": {fold} would fit" if fold else ""
    yield finding("CL249", "warning", text + offer, source, line=line, mend="check the unit of the duration")


def _power(
    stated: Stated, energy_j: float, duration_s: float, source: Source, line: int
) -> Iterator[Finding]:
    watts = energy_j / duration_s
    if stated.least_w <= watts <= stated.most_w or duration_s <= 0:
        return
    plain = energy_j / _ENERGY_UNITS[stated.energy_unit]
    per_s = plain / duration_s
    told = _that_fits(per_s, _ENERGY_UNITS, stated.energy_unit, USUAL_W)
    # A duration in another unit than seconds comes to the same power: nothing here tells which it is.
    length = _length_that_fits(energy_j, duration_s, stated)
    size = "more than one machine draws" if watts > stated.most_w else "less than any machine draws"
    text = f"{plain:.6g} {stated.energy_unit} in {duration_s:.6g} s is a mean power of {watts:.4g} W, {size}"
    offer = _offer(told and f"{plain:.6g} {told}", stated.energy_unit)
    if length is not None:
        offer += f"{'; or' if offer else ':'} a duration of {duration_s:.6g} {length} would fit"
    yield finding("CL248", "error", text + offer, source, line=line, mend=_mend(told, length))


def _length_that_fits(energy_j: float, duration_s: float, stated: Stated) -> str | None:
    """Return the unit of a duration that brings the power into the usual range; the nearest to seconds."""
    least_w, most_w = max(stated.least_w, USUAL_W[0]), min(stated.most_w, USUAL_W[1])
    fits = [
        unit
        for unit, size in _LENGTH_UNITS.items()
        if unit != "s" and least_w <= energy_j / (duration_s * size) <= most_w
    ]
    # Tools count in hours or milliseconds; minutes and the finer ones are rare.
    common = [unit for unit in fits if unit in {"h", "ms"}]
    return min(common or fits, key=lambda unit: abs(math.log(_LENGTH_UNITS[unit])), default=None)


def _intensity(kg: float, kwh: float, source: Source, line: int) -> Iterator[Finding]:
    ratio = kg / kwh
    if LEAST_KG_PER_KWH <= ratio <= MOST_KG_PER_KWH:
        return
    low, high = USUAL_KG_PER_KWH
    named = (("g", 1e-3), ("t", 1e3), ("mg", 1e-6))
    told = next((unit for unit, factor in named if low <= ratio * factor <= high), None)
    text = f"{kg:.6g} kg for {kwh:.6g} kWh is {ratio:.4g} kg/kWh, which no grid has"
    offer = f": {kg:.6g} {told} would fit" if told else ""
    mend = "check the unit of emissions and energy; both are kept as stated"
    yield finding("CL250", "warning", text + offer, source, line=line, mend=mend)


def _known(unit: str, units: Mapping[str, float]) -> str | None:
    """Return a unit as it is spelt here: of lower-case letters where that can be one only, else ``None``.

    Sources that are read in lower case tell ``mw`` of a milliwatt; ``mj`` may be two.
    """
    if unit in units:
        return unit
    alike = [name for name in units if name.lower() == unit]
    return alike[0] if len(alike) == 1 else None


def _that_fits(
    plain: float, units: Mapping[str, float], stated: str, usual: tuple[float, float]
) -> str | None:
    """Return the unit that brings a figure into the usual range; the nearest to the stated one."""
    fits = [u for u, size in units.items() if u != stated and usual[0] <= plain * size <= usual[1]]
    common = [u for u in fits if u in {"J", "mJ", "uJ", "Wh", "W", "mW"}]
    return min(common or fits, key=lambda u: abs(math.log(units[u] / units[stated])), default=None)


def _offer(told: str | None, unit: str) -> str:
    return f": {told} would fit, under a header of {unit}" if told else ""


def _mend(told: str | None, length: str | None = None) -> str:
    if length is not None:
        also = f"the energy is in {told} or the duration" if told else "the duration is"
        return f"check whether {also} in {length}: mend that header and import again; both are kept as stated"
    if told is None:
        return "check the unit; the figure is kept as stated"
    return f"if it is {told}, mend the header and import again; the figure is kept as stated"
