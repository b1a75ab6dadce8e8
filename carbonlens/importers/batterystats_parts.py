"""What ``dumpsys batterystats`` says of charge: its text and its ``--checkin`` lines, as one record."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Final

from carbonlens.importers.sources import Source

_MS_PER: Final = {"d": 86_400_000, "h": 3_600_000, "m": 60_000, "s": 1_000, "ms": 1}
_MOST_MAH: Final = Decimal(10_000_000)
_MOST_MS: Final = 10**12
_CHARGE: Final = r"(\d+(?:\.\d+)?(?:[eE]-?\d+)?)"
_HEAD: Final = re.compile(r"^\s*Estimated power use \(mAh\):\s*$")
_SUMMARY: Final = re.compile(
    rf"^\s*Capacity: {_CHARGE}, Computed drain: {_CHARGE}, actual drain: {_CHARGE}(?:-{_CHARGE})?\s*$"
)
_UID: Final = re.compile(rf"^\s*(?:Uid|UID) ([\w-]+): {_CHARGE}(?=\s|$)")
_PART: Final = re.compile(rf"^\s*([A-Za-z][\w /-]*?): {_CHARGE}(?=\s|$)")
_TIME: Final = re.compile(r"^\s*Time on battery: ((?:\d+(?:d|h|ms|m|s) ?)+)\(")
_START: Final = re.compile(r"^\s*Start clock time: (\d{4}-\d\d-\d\d-\d\d-\d\d-\d\d)\s*$")
_STEPS: Final = re.compile(r"^ {0,2}Discharge step durations:\s*$")
_STEP: Final = re.compile(r"^\s+#\d+: \+((?:\d+(?:d|h|ms|m|s))+) to (\d{1,3})\b")
_COUNTED: Final = re.compile(rf"^\s*Discharge: {_CHARGE} mAh\s*$")
_LENGTH: Final = re.compile(r"(\d+)(d|h|ms|m|s)")
_CHECKIN: Final = re.compile(r"^\d+,(?:\d+|hsp|h),")
_NOT_SUMMED: Final = frozenset({"capacity", "global"})


@dataclass(kw_only=True)
class Told:
    """What was found so far; charges are milliampere-hours.

    Attributes:
        line: Line of the summary; 0 without one.
        capacity, computed: Of the battery, and what the model comes to in all.
        actual: Bounds of what the battery lost, by its level.
        counted: What the battery's coulomb counter lost, where it has one.
        parts: Charge by UID or component, as the model shares it out.
        on_battery_ms: How long the device ran on its battery.
        start_ms: When the counting began, since 1970.
        start_text: The same as local time, in the text form.
        steps_ms: How long each step of one percent took.
        summaries: How many different summaries there are.
        torn: Lines of charge that are no whole line.
    """

    line: int = 0
    capacity: Decimal | None = None
    computed: Decimal | None = None
    actual: tuple[Decimal, Decimal] | None = None
    counted: Decimal | None = None
    parts: dict[str, Decimal] = field(default_factory=dict)
    on_battery_ms: int | None = None
    start_ms: int | None = None
    start_text: str | None = None
    steps_ms: list[int] = field(default_factory=list)
    summaries: int = 0
    torn: list[int] = field(default_factory=list)

    def summary(self, line: int, figures: list[Decimal]) -> None:
        """Take a summary; of several the last counts."""
        capacity, computed, low, high = figures
        before = (self.capacity, self.computed, self.actual)
        if before != (capacity, computed, (low, high)):
            self.summaries += 1
            self.parts = {}
        self.line, self.capacity, self.computed, self.actual = line, capacity, computed, (low, high)


def is_checkin(source: Source) -> bool:
    """Whether the first lines are those of ``--checkin``, of the statistics or the history."""
    lines = source.first_lines[:2]
    return bool(lines) and all(map(_CHECKIN.match, lines)) and ",i,vers," in "\n".join(source.head_lines())


def is_text(source: Source) -> bool:
    """Whether the first lines are those of the text form."""
    head = source.head_lines()
    begins = ("Battery History", "Statistics since last charge:", "Discharge step durations:")
    return any(_HEAD.match(line) or line.lstrip().startswith(begins) for line in head) and any(
        word in line for line in head for word in ("Statistics since", "Battery History", "Computed drain")
    )


def of_text(source: Source) -> Told:
    """Return what the text form tells.

    Raises:
        InputFileError: If it cannot be read.
    """
    told = Told()
    where = ""
    for line, text in source.lines():
        if _HEAD.match(text):
            where = "use"
        elif _STEPS.match(text):
            where, told.steps_ms = "steps", []
        elif not text.strip():
            where = ""
        elif where == "use":
            _take_use(told, line, text)
        elif where == "steps" and (step := _STEP.match(text)):
            told.steps_ms.append(_ms(step[1]))
        elif found := _TIME.match(text):
            told.on_battery_ms = _ms(found[1])
        elif found := _START.match(text):
            told.start_text = found[1]
        elif found := _COUNTED.match(text):
            told.counted = _charge_or_torn(told, line, found[1])
    return told


def of_checkin(source: Source) -> Told:
    """Return what the lines of ``--checkin`` tell.

    Raises:
        InputFileError: If it cannot be read.
    """
    told = Told()
    for line, text in source.lines():
        cells = text.strip().split(",")
        if len(cells) < 4 or cells[2] not in {"l", "i"}:
            continue
        uid, kind, values = cells[1], cells[3], cells[4:]
        try:
            _take_line(told, line, uid, kind, values)
        except (ValueError, IndexError):
            told.torn.append(line)
    return told


def _take_use(told: Told, line: int, text: str) -> None:
    summary, uid, part = _SUMMARY.match(text), _UID.match(text), _PART.match(text)
    try:
        if summary is not None:
            low = _charge(summary[3])
            high = _charge(summary[4]) if summary[4] else low
            told.summary(line, [_charge(summary[1]), _charge(summary[2]), low, high])
        elif text.lstrip().startswith("Capacity:"):
            told.torn.append(line)
        elif uid is not None:
            told.parts.setdefault(f"uid {uid[1]}", _charge(uid[2]))
        elif part is not None and part[1].lower() not in _NOT_SUMMED:
            told.parts.setdefault(part[1].lower(), _charge(part[2]))
    except ValueError:
        told.torn.append(line)


def _take_line(told: Told, line: int, uid: str, kind: str, values: list[str]) -> None:
    match kind:
        case "pws":
            if len(values) < 4:
                raise ValueError("has not all of its figures")
            told.summary(line, [_charge(v) for v in values[:4]])
        case "pwi":
            # The device's own components stand under UID 0; "uid" there is the sum of all apps or root.
            name = values[0] if uid == "0" else f"uid {uid}" + ("" if values[0] == "uid" else f" {values[0]}")
            told.parts.setdefault(name, _charge(values[1]))
        case "bt":
            told.on_battery_ms = _whole(values[1])
            told.start_ms = _whole(values[5])
        case "dc":
            counted = _charge(values[4]) if len(values) > 4 else Decimal(0)
            told.counted = counted or None
        case "dsd":
            told.steps_ms.append(_whole(values[0]))


def _charge(text: str) -> Decimal:
    """Return a charge.

    Raises:
        ValueError: If it is none, or more than any battery has.
    """
    if not re.fullmatch(_CHARGE, text, re.ASCII):
        raise ValueError(f"{text!r} is no charge")
    value = Decimal(text)
    if value > _MOST_MAH:
        raise ValueError(f"{text!r} is more than any battery has")
    return value


def _charge_or_torn(told: Told, line: int, text: str) -> Decimal | None:
    try:
        return _charge(text)
    except ValueError:
        told.torn.append(line)
        return None


def _whole(text: str) -> int:
    if not re.fullmatch(r"\d{1,15}", text, re.ASCII):
        raise ValueError(f"{text!r} is no whole number")
    return int(text)


def _ms(text: str) -> int:
    """Return a length such as ``1h 2m 3s 4ms`` in milliseconds."""
    return sum(_lengths(text))


def _lengths(text: str) -> Iterator[int]:
    for number, unit in _LENGTH.findall(text):
        yield min(int(number[:15]), _MOST_MS) * _MS_PER[unit]
