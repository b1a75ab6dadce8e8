"""``certificate_hours*.csv``: what was generated in each hour under a certificate."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC
from decimal import Decimal
from typing import Final, NamedTuple

from msgspec.structs import replace

from carbonlens.domain.certificate import Certificate
from carbonlens.domain.units import US_PER_HOUR
from carbonlens.inventory import csv_entries
from carbonlens.inventory.faults import Fault, shown
from carbonlens.inventory.local_time import instant_us, parsed
from carbonlens.inventory.toml_entries import INVALID, Entry
from carbonlens.inventory.values import plain

PREFIX: Final = "certificate_hours"
COLUMNS: Final = ("certificate", "hour_utc", "mwh")
"""Columns of a file, each needed."""

_ALIASES: Final = {"certificate_id": "certificate"}


class Hour(NamedTuple):
    """Energy of one hour under one certificate, with its row."""

    certificate_id: str
    hour_utc: int
    mwh: Decimal
    entry: Entry


def read(text: str, file: str, faults: list[Fault]) -> list[Hour]:
    """Return the hours of one file.

    Args:
        text: Its content.
        file: Its name.
        faults: Takes what is wrong.
    """
    entries = csv_entries.entries(text, file, faults, columns=COLUMNS, numbers=("mwh",), aliases=_ALIASES)
    found = (_hour(entry, faults) for entry in entries)
    return [hour for hour in found if hour is not None]


def _hour(entry: Entry, faults: list[Fault]) -> Hour | None:
    missing = [c for c in COLUMNS if c not in entry.values]
    if missing:
        faults.append(entry.fault(f"lacks {missing[0]!r}", f"add {missing[0]}"))
        return None
    if INVALID in entry.values.values():
        return None
    moment, mwh = parsed(entry.values["hour_utc"]), Decimal(entry.values["mwh"])
    instant = None if moment is None else instant_us(moment, UTC)
    if not isinstance(instant, int) or instant % US_PER_HOUR:
        what = f"hour_utc is {shown(entry.values['hour_utc'])}"
        faults.append(entry.fault(what, "write the begin of a UTC hour: 2026-03-01T13:00Z", "hour_utc"))
        return None
    wrong = plain(mwh)
    if wrong:
        faults.append(entry.fault(f"mwh is {shown(entry.values['mwh'])}", wrong, "mwh"))
        return None
    return Hour(entry.values["certificate"], instant // US_PER_HOUR, mwh, entry)


def joined(
    certificates: Sequence[Certificate], hours: Iterable[Hour], faults: list[Fault]
) -> tuple[Certificate, ...]:
    """Return the certificates with their hours.

    Args:
        certificates: As their own files state them.
        hours: Of all files.
        faults: Takes hours of no certificate, and hours that are stated twice and differ.
    """
    known = {c.certificate_id for c in certificates}
    profiles: dict[str, dict[int, Decimal]] = {}
    for name, hour, mwh, entry in sorted(hours, key=lambda h: h[:3]):
        if name not in known:
            mend = "write its id as certificates.toml or .csv has it"
            faults.append(entry.fault(f"names the certificate {shown(name)}, which is none", mend))
        elif profiles.setdefault(name, {}).setdefault(hour, mwh) != mwh:
            faults.append(entry.fault("states an hour a second time with another figure", "keep one of them"))
    return tuple(replace(c, hourly_mwh=profiles.get(c.certificate_id, {})) for c in certificates)
