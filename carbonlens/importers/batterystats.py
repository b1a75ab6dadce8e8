"""Android's ``dumpsys batterystats``: a model's charge by app and component, and the battery's level.

Charge is milliampere-hours; the voltage of the battery is not in it, so who asks must state one.
The sum is the model's computed drain; what the battery lost by its level stands beside, as does
the share of each app. Nothing here is a measurement of power.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from decimal import Decimal
from typing import Final

from carbonlens.domain.counting import counted
from carbonlens.domain.run import Reading, Run
from carbonlens.errors import InputFileError
from carbonlens.importers import unit_checks
from carbonlens.importers.batterystats_parts import Told, is_checkin, is_text, of_checkin, of_text
from carbonlens.importers.claiming import each
from carbonlens.importers.contract import USUAL, Facts, Group, Item, Kind, Options, RunRecord, Tally
from carbonlens.importers.json_files import id_of
from carbonlens.importers.records import exact_j, finding, origin_of, reading
from carbonlens.importers.sources import Source
from carbonlens.importers.times import FIRST_YEAR, LAST_YEAR, Clock

_C_PER_MAH: Final = Decimal("3.6")
_PERCENT: Final = Decimal("0.01")
_MOST_PHONE_W: Final = 100.0
"""Most that a device on a battery of one cell draws over hours, and more than any does."""

_US_PER_MS: Final = 1000
_MS_PER_S: Final = 1000
_CPU: Final = frozenset({"cpu"})


class BatterystatsImporter:
    """Importer of ``dumpsys batterystats``."""

    name = "batterystats"
    version = 1
    kind: Kind = "runs"
    rank = USUAL
    facts = Facts(
        title="Android batterystats (dumpsys batterystats, --checkin)",
        reads="estimated power use by UID and component, in the text of Android 5 to 16 and in checkin "
        "lines; discharge steps; the battery's coulomb counter",
        units="milliampere-hours: times --voltage they are energy; milliseconds",
        grade="D: a model of charge (power profile) at a stated voltage, checked against the battery's level",
        traps=(
            "no voltage in the file: --voltage with the battery's nominal volts, else it is refused",
            "the total is the model's computed drain; unaccounted and smeared parts are not added to it",
            "what the battery lost (actual drain, a range; coulomb counter; steps of one percent) stands "
            "beside, and a drain outside the range is said",
            "UIDs and components share out the same charge: they stand beside and are never summed",
            "a drain of 0 (emulator, power profile without figures) was not estimated: unknown",
            "it counts since the last charge, not over a test: dumpsys batterystats --reset before it",
        ),
        tested_on=(
            "lines of a checkin in a public repository (Android 10), by hand; samples typed here after "
            "printed examples of the text, old and new",
        ),
    )

    def claim(self, sources: Sequence[Source]) -> list[Group]:
        """Return the sources that begin as either form does."""
        return each(sources, lambda s: is_checkin(s) or is_text(s))

    def read(self, group: Group, options: Options) -> Iterator[Item]:
        """Yield the one run.

        Raises:
            InputFileError: If it holds no estimate, or nobody states the voltage.
        """
        source = group.main
        told = of_checkin(source) if is_checkin(source) else of_text(source)
        if told.computed is None:
            raise InputFileError(
                "holds no estimated power use",
                where=source.shown,
                mend="save dumpsys batterystats whole, or with --checkin or --charged",
            )
        if options.voltage_v is None:
            raise InputFileError(
                "tells charge alone (mAh): without the voltage there is no energy",
                where=source.shown,
                mend="give --voltage with the battery's nominal volts, such as 3.85",
            )
        clock = Clock(options.tz, source)
        record = _record(told, source, options, clock)
        yield record
        yield from _said(told, source)
        yield from clock.findings
        if record.stated_j is not None:
            stated = unit_checks.Stated(
                energy_j=float(record.stated_j), duration_s=record.run.duration_s, most_w=_MOST_PHONE_W
            )
            yield from unit_checks.of_run(stated, source, told.line)
        yield Tally(rows=1 + len(told.parts) + len(told.torn), rejected=len(told.torn))


IMPORTER: Final = BatterystatsImporter()


def _record(told: Told, source: Source, options: Options, clock: Clock) -> RunRecord:
    energy_j = _joules(told.computed or None, options)
    start_us = _start_us(told, clock)
    length_ms = told.on_battery_ms or None
    began = told.start_ms or told.start_text
    whole = _reading("total", energy_j, "batterystats, model of charge", source, options)
    run = Run(
        run_id=id_of("batterystats", {"start": began, "drain": told.computed, "ms": length_ms}),
        start_us=start_us,
        end_us=None if start_us is None or length_ms is None else start_us + length_ms * _US_PER_MS,
        duration_s=None if length_ms is None else length_ms / _MS_PER_S,
        energy=(whole,),
        beside=tuple(_beside(told, source, options)),
        origin=origin_of(IMPORTER, source, told.line),
    )
    return RunRecord(run=run, line=told.line, stated_j=exact_j(energy_j))


def _beside(told: Told, source: Source, options: Options) -> Iterator[Reading]:
    """Yield the other views of the same charge: the battery's, and each part's share."""
    low, high = told.actual or (Decimal(0), Decimal(0))
    for name, charge in (("lower", low), ("upper", high)):
        if high:
            method = f"battery level, {name} bound"
            yield _reading("total", _joules(charge, options), method, source, options)
    if told.counted:
        yield _reading("total", _joules(told.counted, options), "coulomb counter", source, options)
    if told.steps_ms and told.capacity:
        charge = told.capacity * len(told.steps_ms) * _PERCENT
        method = f"{counted(len(told.steps_ms), 'discharge step')} of 1 % of the capacity"
        seconds = sum(told.steps_ms) / _MS_PER_S
        yield _reading("total", _joules(charge, options), method, source, options, covered_s=seconds)
    for name, charge in told.parts.items():
        if charge:
            component = "cpu" if name in _CPU else "other"
            method = "batterystats, share of the model"
            yield _reading(component, _joules(charge, options), method, source, options, device=name)


def _reading(  # noqa: PLR0913  # the fields of a reading by name
    component: str,
    joules: Decimal | None,
    method: str,
    source: Source,
    options: Options,
    *,
    device: str | None = None,
    covered_s: float | None = None,
) -> Reading:
    return reading(
        component,
        joules,
        method=f"{method}, at {options.voltage_v:g} V as given",
        grade="D",
        meter=source.name,
        boundary=options.boundary or "device",
        devices=() if device is None else (device,),
        covered_s=covered_s,
    )


def _joules(charge: Decimal | None, options: Options) -> Decimal | None:
    return None if charge is None else charge * _C_PER_MAH * Decimal(repr(options.voltage_v))


def _start_us(told: Told, clock: Clock) -> int | None:
    if told.start_ms is not None:
        year = 1970 + told.start_ms / (_MS_PER_S * 31_556_952)
        return told.start_ms * _US_PER_MS if FIRST_YEAR < year < LAST_YEAR else None
    try:
        moment = datetime.strptime(told.start_text or "", "%Y-%m-%d-%H-%M-%S")  # noqa: DTZ007  # the clock sets its zone
        return clock.us(moment, told.line)
    except ValueError:
        return None


def _said(told: Told, source: Source) -> Iterator[Item]:
    """Yield what a reader of the energy must know."""
    computed, (low, high) = told.computed or Decimal(0), told.actual or (Decimal(0), Decimal(0))
    if not computed:
        text = "the model comes to 0 mAh: nothing was estimated, and the energy is unknown"
        mend = "use a device whose power profile has figures, or a meter"
        yield finding("CL260", "warning", text, source, line=told.line, mend=mend)
    elif high and not low <= computed <= high:
        text = f"the model's drain of {computed} mAh is not within what the battery lost, {low} to {high} mAh"
        mend = "trust the battery's level where many percent were lost, or use a meter"
        yield finding("CL282", "warning", text, source, line=told.line, mend=mend)
    if told.summaries > 1:
        text = f"holds {counted(told.summaries, 'summary', 'summaries')} that differ: the last counts"
        yield finding("CL282", "warning", text, source, line=told.line, mend="keep one dump a file")
    if _start_us_unknown(told):
        text = "when the counting began is not told: the energy is in no hour"
        yield finding("CL245", "warning", text, source, mend="save the dump whole")
    for line in told.torn:
        text = f"line {line} is no whole line of charge; it is left out"
        yield finding("CL202", "error", text, source, line=line, mend="save the dump again")


def _start_us_unknown(told: Told) -> bool:
    return told.start_ms is None and told.start_text is None
