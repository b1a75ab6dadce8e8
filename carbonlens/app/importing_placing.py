"""What the user says beside the files of an import."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Final, cast, get_args

import msgspec

from carbonlens.domain.import_map import ImportMap
from carbonlens.domain.in_study import InStudy
from carbonlens.domain.units import US_PER_S, Boundary, Role
from carbonlens.errors import UsageError
from carbonlens.importers.times import zone_of
from carbonlens.inventory import import_map

_MOST_VOLTS: Final = 1000.0
_MOST_INTERVAL_S: Final = 86_400.0


class Placing(msgspec.Struct, frozen=True, kw_only=True):
    """What the user says beside the files.

    Attributes:
        tags: Tags to put on every run.
        site: Site of the runs that state none.
        tz: IANA zone of local times without one.
        boundary: What energies include, where a file does not say.
        voltage_v: Volts, for logs of current alone.
        interval_s: Seconds between samples, for logs without times.
        start_us: When a log of relative times began, UTC microseconds.
        columns: What the columns of a log without a header are called.
        host: Machine of traces whose content names none.
        in_study: Study, step, role and work of the runs that state none.
        map: Rules by path and project, which go before the others here.
    """

    tags: Mapping[str, str] = msgspec.field(default_factory=dict)
    site: str | None = None
    tz: str | None = None
    boundary: Boundary | None = None
    voltage_v: float | None = None
    interval_s: float | None = None
    start_us: int | None = None
    columns: tuple[str, ...] | None = None
    host: str | None = None
    in_study: InStudy = InStudy()
    map: ImportMap = ImportMap()


class Said(msgspec.Struct, frozen=True, kw_only=True):
    """The same as a command line has it: texts and numbers that nobody checked."""

    tags: Mapping[str, str] = msgspec.field(default_factory=dict)
    site: str | None = None
    tz: str | None = None
    boundary: str | None = None
    voltage_v: float | None = None
    interval_s: float | None = None
    start: str | None = None
    columns: str | None = None
    host: str | None = None
    study: str | None = None
    step: str | None = None
    role: str | None = None
    unit: str | None = None
    units: Decimal | None = None
    map_file: Path | None = None


def placing_of(said: Said) -> Placing:
    """Return what was said, checked.

    Raises:
        UsageError: If a zone, boundary, time, voltage, interval, role, name or list of columns makes
            no sense, or a tag is meant for a field that has an option of its own.
        InputFileError: If the map cannot be read.
        ConfigError: If the map is malformed.
    """
    if said.tz is not None:
        zone_of(said.tz)
    if said.boundary is not None and said.boundary not in get_args(Boundary):
        known = ", ".join(get_args(Boundary))
        raise UsageError(f"no boundary is named {said.boundary!r}", where="--boundary", mend=f"give {known}")
    _refuse_fields(said.tags)
    _check("--voltage", said.voltage_v, _MOST_VOLTS)
    _check("--interval", said.interval_s, _MOST_INTERVAL_S)
    return Placing(
        tags=said.tags,
        site=said.site,
        tz=said.tz,
        boundary=cast("Boundary | None", said.boundary),
        voltage_v=said.voltage_v,
        interval_s=said.interval_s,
        start_us=None if said.start is None else _start_us(said.start, said.tz),
        columns=None if said.columns is None else _columns(said.columns),
        host=said.host,
        in_study=_in_study(said),
        map=ImportMap() if said.map_file is None else import_map.load(said.map_file),
    )


def _in_study(said: Said) -> InStudy:
    if said.role is not None and said.role not in get_args(Role):
        known = ", ".join(get_args(Role))
        raise UsageError(f"no role is named {said.role!r}", where="--role", mend=f"give {known}")
    names = {"study": said.study, "step": said.step, "unit": said.unit}
    for name, text in names.items():
        if text is not None and not text.strip():
            raise UsageError("the name is empty", where=f"--{name}", mend="give a name, or leave it out")
    return InStudy(**names, role=cast("Role | None", said.role), units=said.units)


def _refuse_fields(tags: Mapping[str, str]) -> None:
    """Refuse tags that look like a field of a run: who gives one means the field, which it would not set."""
    for name in tags:
        if name in import_map.NO_TAGS:
            raise UsageError(
                f"{name} is a field of a run, and no tag: a tag would not set it",
                where=f"--tag {name}={tags[name]}",
                mend=import_map.NO_TAGS[name],
            )


def _check(option: str, value: float | None, most: float) -> None:
    if value is not None and not 0 < value <= most:
        raise UsageError(f"{value:g} is out of range", where=option, mend=f"give a number up to {most:g}")


def _columns(text: str) -> tuple[str, ...]:
    names = tuple(name.strip().lower() for name in text.split(","))
    if not all(names):
        mend = "give a name a column, such as timestamp,index,power.draw; - for one that is not to be read"
        raise UsageError(f"{text!r} leaves a column without a name", where="--columns", mend=mend)
    return names


def _start_us(text: str, tz: str | None) -> int:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError as error:
        mend = "give it like 2026-03-01T10:00:00Z"
        raise UsageError(f"{text!r} is no ISO 8601 time", where="--start", mend=mend) from error
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=zone_of(tz) if tz else UTC)
    since = moment - datetime(1970, 1, 1, tzinfo=UTC)
    return (since.days * 86_400 + since.seconds) * US_PER_S + since.microseconds
