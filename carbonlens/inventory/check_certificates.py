"""Suspicious certificates: where they may not be claimed, or nobody says that they may."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from datetime import date, datetime, timedelta
from decimal import Decimal
from itertools import groupby
from typing import Final

from msgspec.structs import replace

from carbonlens.domain.certificate import CRITERIA, Certificate
from carbonlens.domain.counting import counted
from carbonlens.domain.finding import Finding, Severity
from carbonlens.domain.inventory import Inventory
from carbonlens.domain.units import S_PER_HOUR

_ROUNDING: Final = Decimal("0.001")
"""Registers issue whole MWh, meters count finer: a share by which hours may miss the total."""

_MARGIN_H: Final = 24
"""A period is a local one: its hours may lie up to a day outside the same days in UTC."""


def check(inventory: Inventory) -> Iterator[Finding]:
    """Yield CL370 (market), CL371 (retirement), CL372 (criteria), CL373 (claims), CL374 (hours)."""
    for certificate in inventory.certificates:
        yield from _market(certificate, inventory)
        yield from _retirement(certificate)
        yield from _answers(certificate)
        yield from _hours(certificate)
    by_id = sorted(inventory.certificates, key=lambda c: c.certificate_id)
    for name, group in groupby(by_id, key=lambda c: c.certificate_id):
        claims = list(group)
        if len(claims) > 1:
            yield _claimed_twice(name, claims)


def _market(certificate: Certificate, inventory: Inventory) -> Iterator[Finding]:
    own = [s for s in inventory.sites if s.entity == certificate.entity]
    if any(s.market == certificate.market for s in own):
        return
    where = ", ".join(sorted({s.market for s in own if s.market is not None})) or "none"
    text = f"is of the market {certificate.market}, but {certificate.entity} has no site there (its: {where})"
    mend = "only use in the certificate's own market may be claimed; check market and entity of both"
    yield _found("CL370", "error", certificate, text, mend)


def _retirement(certificate: Certificate) -> Iterator[Finding]:
    says_so = certificate.criteria.get("tracked_and_retired", False)
    if certificate.retired is None and (says_so or certificate.kind == "certificate"):
        text = "has no date of retirement"
        if says_so:
            text += ", although tracked_and_retired is answered yes"
        yield _found("CL371", "warning", certificate, text, "add retired: the date the registry states")


def _answers(certificate: Certificate) -> Iterator[Finding]:
    open_ = [name for name in CRITERIA if name not in certificate.criteria]
    if open_:
        criteria = counted(len(open_), "quality criterion", "quality criteria")
        text = f"leaves {criteria} unanswered, which count as not met: {', '.join(open_)}"
        yield _found("CL372", "warning", certificate, text, "answer each, with evidence")


def _hours(certificate: Certificate) -> Iterator[Finding]:
    hours = certificate.hourly_mwh
    if not hours:
        return
    mend = "check the profile against the registry or the meter"
    total, stated = sum(hours.values(), Decimal(0)), certificate.energy_mwh
    if stated is not None and abs(total - stated) > stated * _ROUNDING:
        text = f"has hours that sum to {total:f} MWh, not to its {stated:f}"
        yield _found("CL374", "error", certificate, text, mend)
    if min(hours.values()) < 0:
        yield _found("CL374", "error", certificate, "has an hour below 0 MWh", mend)
    first, end = _span(certificate.period)
    outside = sum(not first <= hour < end for hour in hours)
    if outside:
        text = f"has {counted(outside, 'hour')} outside its period {certificate.period}"
        yield _found("CL374", "error", certificate, text, mend)


def _span(period: str) -> tuple[int, int]:
    """Return the UTC hours that a local year or month may touch, end exclusive."""
    year, month = int(period[:4]), int(period[5:] or 1)
    months = 1 if period[5:] else 12
    end = date(year + (month - 1 + months) // 12, (month - 1 + months) % 12 + 1, 1)
    return _hour(date(year, month, 1)) - _MARGIN_H, _hour(end) + _MARGIN_H


def _hour(day: date) -> int:
    midnight = datetime(day.year, day.month, day.day)  # noqa: DTZ001  # a count of hours, in no zone
    return (midnight - datetime(1970, 1, 1)) // timedelta(seconds=S_PER_HOUR)  # noqa: DTZ001  # likewise


def uniquely_claimed(certificates: Iterable[Certificate]) -> tuple[Certificate, ...]:
    """Return the certificates, with ``unique_claim`` answered no where an id is claimed twice.

    Which of the claims is right cannot be told here, so that none of them may count.
    """
    every = tuple(certificates)
    times = Counter(c.certificate_id for c in every)
    return tuple(
        c if times[c.certificate_id] == 1 else replace(c, criteria={**c.criteria, "unique_claim": False})
        for c in every
    )


def _claimed_twice(name: str, claims: Sequence[Certificate]) -> Finding:
    entities = ", ".join(sorted({c.entity for c in claims}))
    text = f"is claimed {len(claims)} times (by {entities}): unique_claim is not met, none of them counts"
    return _found("CL373", "error", claims[0], text, "keep one claim of each id", name)


def _found(
    code: str, severity: Severity, of: Certificate, text: str, mend: str, subject: str | None = None
) -> Finding:
    name = subject or of.certificate_id
    return Finding(
        code=code,
        severity=severity,
        message=f"certificate {name} {text}",
        file="certificates.toml",
        subject=name,
        mend=mend,
    )
