"""Energy of electricity bills: each kWh once, and beside what meters of the site counted.

A network fee, a tax or a levy per kWh states the energy again. Where words do not tell such a
line, the same kWh over the same time on the same invoice do.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from msgspec.structs import replace

from carbonlens.accounting.bill_words import names_energy
from carbonlens.accounting.electricity_bill import PART_TAG, ElectricityBill, states_energy
from carbonlens.accounting.standing import Standing
from carbonlens.domain.charge import Charge
from carbonlens.domain.counting import counted
from carbonlens.domain.finding import Finding, Severity
from carbonlens.domain.units import J_PER_KWH

_APART: Final = 0.05
"""From which relative difference on a bill and a meter of the whole site disagree."""


def energy_once(charges: Iterable[Charge]) -> tuple[list[Charge], tuple[Finding, ...]]:
    """Return lines without the energy that one of them states again, and what is to be said.

    Lines that state by ``x_BillPart`` what they are for are left as they are.

    Args:
        charges: Lines of bills.
    """
    held = list(charges)
    groups: dict[tuple[object, ...], list[Charge]] = {}
    for charge in held:
        if states_energy(charge) and charge.energy_j and PART_TAG not in charge.tags:
            place = (charge.site, charge.meter_id, charge.invoice_id)
            groups.setdefault((*place, charge.start_us, charge.end_us, charge.energy_j), []).append(charge)
    again: set[str] = set()
    findings = []
    for lines in groups.values():
        if len(lines) > 1:
            first, *others = sorted(lines, key=_is_less_energy)
            again |= {c.charge_id for c in others} - {first.charge_id}
            findings.append(_again(first, others))
    once = [replace(c, energy_j=None) if c.charge_id in again else c for c in held]
    return once, tuple(findings)


def beside_meter(bill: ElectricityBill, stands: Standing | None) -> Finding | None:
    """Return a Finding where a bill and meters of its site do not tell of the same energy.

    Args:
        bill: Of the site in the period.
        stands: What stands for the site; ``None`` where it has no meter.
    """
    if stands is None or stands.whole.is_billed or stands.is_least or not bill.is_whole:
        return None
    kwh, billed = stands.facility_kwh.value, float(bill.energy_kwh or 0)
    if kwh is None or not billed:
        return None
    part = stands.meter.covers == "ai"
    if part and kwh <= billed * (1 + _APART):
        text = (
            f"of the {billed:.6g} kWh of {bill.site_id}'s bill its meters of AI workloads counted {kwh:.6g}: "
            "these carry their part of the bill, and the cost of the period holds the whole bill"
        )
        return _told("info", text, "nothing; the rest of the bill is other electricity of the site", bill)
    if abs(kwh - billed) <= _APART * billed:
        return None
    text = (
        f"the bill of {bill.site_id} is for {billed:.6g} kWh, and its meters counted {kwh:.6g}: the energy "
        "is that of the meters, the cost that of the bill, and a kWh costs what it does on the bill"
    )
    mend = "check what meter and bill cover, their times, and the readings"
    return _told("warning", text, mend, bill)


def _is_less_energy(charge: Charge) -> tuple[bool, float, str]:
    """Return what sorts the line that is the energy itself before those that state it again."""
    costs = [m.amount for m in (charge.effective, charge.billed) if m is not None]
    names = names_energy(f"{charge.sku or ''} {charge.service or ''}")
    return not names, -float(costs[0]) if costs else 0.0, charge.charge_id


def _again(first: Charge, others: Sequence[Charge]) -> Finding:
    kwh = float((first.energy_j or 0) / J_PER_KWH)
    return Finding(
        code="CL457",
        severity="warning",
        message=f"{counted(len(others), 'line')} of a bill of {first.site or first.meter_id} state again the "
        f"{kwh:.6g} kWh of {first.sku or first.service or first.charge_id} over the same time: counted once",
        mend="say what each line is for by x_BillPart: energy, network, levy, tax, fixed, credit",
        subject=first.site,
    )


def _told(severity: Severity, message: str, mend: str, bill: ElectricityBill) -> Finding:
    return Finding(code="CL458", severity=severity, message=message, mend=mend, subject=bill.site_id)
