"""Instruments: which certificates, contracts and supplier rates count for which consumption.

The hierarchy is that of the GHG Protocol Scope 2 Guidance, table 6.3; the quality criteria
are those of table 7.1. A criterion that nobody answered is not met. A vintage is close if
it lies in a calendar year of the consumption.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from decimal import Decimal
from typing import Final

import msgspec

from carbonlens.accounting.conversions import kwh_to_mwh
from carbonlens.domain.certificate import Certificate, InstrumentKind
from carbonlens.domain.finding import Finding

_RANK: Final[dict[InstrumentKind, int]] = {"certificate": 0, "contract": 1, "supplier": 2}
_YEAR: Final = slice(0, 4)


class Claim(msgspec.Struct, frozen=True, kw_only=True):
    """What of one instrument one consumption takes.

    Attributes:
        certificate: The instrument.
        energy_kwh: Of it.
        is_last: Whether it covers all that was left, so that one kWh more would take more of it.
    """

    certificate: Certificate
    energy_kwh: Decimal
    is_last: bool


def fault(certificate: Certificate) -> str | None:
    """Return why an instrument counts for no consumption; ``None`` where nothing speaks against it.

    Args:
        certificate: A contract or a supplier's rate needs no date of retirement of its own.
    """
    faults = []
    if certificate.unmet:
        faults.append(f"quality criteria are not met or not answered: {', '.join(certificate.unmet)}")
    if certificate.kind == "certificate" and not certificate.retired:
        faults.append("it was not retired")
    if certificate.energy_mwh is None and certificate.kind != "supplier":
        faults.append("its energy is not stated")
    return "; ".join(faults) or None


def is_close(certificate: Certificate, months: Sequence[str]) -> bool:
    """Return whether a vintage is close to a consumption (Scope 2 Guidance, table 7.1, criterion 4).

    Args:
        certificate: Of a year or a month of generation.
        months: Of the consumption, as ``2026-03``.
    """
    return certificate.period[_YEAR] in {m[_YEAR] for m in months}


def claims(
    wanted_kwh: Decimal, months: Sequence[str], instruments: Iterable[Certificate], left: dict[str, Decimal]
) -> tuple[Claim, ...]:
    """Take from instruments what a consumption needs, in the order of the hierarchy.

    Within a kind, vintages of the very months come first, then the earlier ones.

    Args:
        wanted_kwh: Consumption.
        months: Of the consumption.
        instruments: Those that count for it.
        left: kWh left of each instrument by id, none for a rate that covers all that was
            delivered; what is taken is taken off.
    """
    taken = []
    for instrument in sorted(instruments, key=lambda c: _order(c, months)):
        if wanted_kwh <= 0:
            break
        name = instrument.certificate_id
        held = left.get(name)
        amount = wanted_kwh if held is None else min(held, wanted_kwh)
        if amount <= 0:
            continue
        is_last = amount == wanted_kwh
        taken.append(Claim(certificate=instrument, energy_kwh=amount, is_last=is_last))
        wanted_kwh -= amount
        if held is not None:
            left[name] = held - amount
    return tuple(taken)


def not_counted(certificate: Certificate, why: str) -> Finding:
    """Return the Finding of an instrument that covers nothing."""
    return Finding(
        code="CL390",
        severity="warning",
        message=f"{certificate.kind} {certificate.certificate_id} is not counted: {why}",
        file=certificate.source,
        mend="answer the criteria with their evidence, and state retirement, entity, market and vintage",
        subject=certificate.certificate_id,
    )


def surplus(certificate: Certificate, kwh: Decimal) -> Finding:
    """Return the Finding of energy that an instrument holds beyond all consumption."""
    return Finding(
        code="CL391",
        severity="warning",
        message=f"{float(kwh_to_mwh(kwh)):.6g} MWh of {certificate.kind} {certificate.certificate_id} cover "
        "no consumption: a surplus is no negative emission",
        file=certificate.source,
        mend="nothing, or use them for the consumption of other sites in the same market and year",
        subject=certificate.certificate_id,
    )


def _order(certificate: Certificate, months: Sequence[str]) -> tuple[int, bool, str, str]:
    period = certificate.period
    elsewhere = period not in months and period not in {m[_YEAR] for m in months}
    return _RANK[certificate.kind], elsewhere, period, certificate.certificate_id
