"""Which live runs a period needs, told by their folders and names, and by the end of those before it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Final

import msgspec

from carbonlens.domain.decoding import json_decoder
from carbonlens.domain.finding import Finding
from carbonlens.domain.identity import uuid7
from carbonlens.domain.units import S_PER_HOUR, US_PER_HOUR
from carbonlens.errors import UsageError
from carbonlens.ledger import layout
from carbonlens.ledger.calendar import Calendar, Period
from carbonlens.ledger.holdings import each_folder

_SLACK_S: Final = 86_400
"""How much earlier than a run's end its file may seem to be written, for clocks that differ."""

_ID_TIME: Final = len("00000000-0000")
"""Part of a UUID of version 7 that holds its time."""


class _Hour(msgspec.Struct, frozen=True):
    hour_utc: int


class _Times(msgspec.Struct, frozen=True):
    """What of a record tells how late it has energy; whatever else it holds is passed over."""

    start_us: int | None = None
    end_us: int | None = None
    supersedes: str | None = None
    energy_by_hour: list[_Hour] = []

    def may_reach(self, first_hour: int) -> bool:
        """Tell whether the run may have a part from this hour on, or corrects one that has."""
        if self.supersedes is not None or (self.start_us is None and self.end_us is None):
            return True
        if self.end_us is not None and self.end_us > first_hour * US_PER_HOUR:
            return True
        return any(h.hour_utc >= first_hour for h in self.energy_by_hour)


@cache
def _times() -> msgspec.json.Decoder[_Times]:
    return json_decoder(_Times)


def listing(ledger: Path) -> tuple[dict[str, list[Path]], list[Finding]]:
    """Return the live runs by the name of the folder they lie in; none is read.

    A folder that may not be read is a Finding, the others are listed.

    Raises:
        OSError: If the folder of them all cannot be read.
    """
    listed: dict[str, list[Path]] = {}
    findings: list[Finding] = []
    for folder in layout.folders_in(ledger / layout.RUNS):
        listed[folder.name], said = each_folder([folder], ".json")
        findings += said
    return listed, findings


def files_of(listed: Mapping[str, Sequence[Path]], period: Period | None) -> tuple[list[Path], list[Path]]:
    """Return the live runs a period needs, and those without a start.

    A run lies in the month of its start and may reach into later ones. Those of the
    month before the period are needed where their content says that they end within
    it, or does not tell. Of still older months only files written since the period
    began are asked. The system's own time of a file counts too, which no copying can
    set back: only a clock that was days behind then could hide a run.
    Corrections are needed by every period. In an older ledger they lie among the
    others: one may have moved its run out of the period, which its id tells when it
    is of another month than its folder.

    Args:
        listed: As ``listing`` returned it.
        period: Hours asked for; all when ``None``.
    """
    if period is None:
        return [f for files in listed.values() for f in files], []
    first = layout.month_of(period.first_hour * US_PER_HOUR)
    last = layout.month_of((period.end_hour - 1) * US_PER_HOUR)
    before = _month_before(first)
    not_before = period.first_hour * S_PER_HOUR - _SLACK_S
    chosen: dict[str, Sequence[Path]] = {}
    for month, here in listed.items():
        if month == layout.UNDATED:
            continue
        if month == layout.CORRECTIONS or first <= month <= last:
            chosen[month] = here
            continue
        inside = _id_starts(month)
        needed = []
        for file in here:
            asked = month == before or (month < first and _may_be_written_since(file, not_before))
            if not inside(file.stem) or (asked and _may_reach(file, period.first_hour)):
                needed.append(file)
        chosen[month] = needed
    return _with_namesakes(listed, chosen), list(listed.get(layout.UNDATED, ()))


def _with_namesakes(listed: Mapping[str, Sequence[Path]], chosen: Mapping[str, Sequence[Path]]) -> list[Path]:
    """Return the chosen files and those of their names in other folders: of two only the first counts."""
    names = {f.name for files in chosen.values() for f in files}
    files: list[Path] = []
    for month, here in listed.items():
        taken = chosen.get(month, ())
        if len(taken) == len(here) or month == layout.UNDATED:
            files += taken
            continue
        own = set(taken)
        files += [f for f in here if f in own or f.name in names]
    return files


def files_named(ledger: Path, ids: Collection[str]) -> list[Path]:
    """Return the live runs of these ids, in whatever month they lie."""
    # An imported id may be any text; a live run's is the name of a file.
    names = [f"{i}.json" for i in sorted(ids) if "/" not in i and not i.startswith(".")]
    if not names:
        return []
    folders = layout.folders_in(ledger / layout.RUNS)
    return [folder / name for folder in folders for name in names if (folder / name).is_file()]


def _id_starts(month: str) -> Callable[[str], bool]:
    """Return a test whether a run id was given within a month; ids that do not tell pass."""
    try:
        period = Calendar().period(f"{month[:4]}-{month[4:]}")
    except UsageError:
        return lambda _: True
    low, high = (
        uuid7(hour * S_PER_HOUR * 1000, bytes(10))[:_ID_TIME] for hour in (period.first_hour, period.end_hour)
    )
    # As texts: a month may hold very many.
    return lambda run_id: run_id[_ID_TIME : _ID_TIME + 2] != "-7" or low <= run_id[:_ID_TIME] < high


def _month_before(month: str) -> str:
    if not month.isdecimal():
        return ""
    year, place = divmod(int(month[:4]) * 12 + int(month[4:]) - 2, 12)
    return f"{year:04}{place + 1:02}"


def _may_be_written_since(file: Path, time_s: float) -> bool:
    try:
        status = file.stat()
        return max(status.st_mtime, status.st_ctime) >= time_s
    except OSError:
        return True


def _may_reach(file: Path, first_hour: int) -> bool:
    """Tell whether a run may have a part from this hour on; who reads it says what is wrong with it."""
    try:
        # A pipe would never end.
        return not file.is_file() or _times().decode(file.read_bytes()).may_reach(first_hour)
    except (OSError, msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return True
