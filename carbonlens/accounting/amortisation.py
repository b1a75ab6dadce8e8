"""Amortised embodied emissions: the share of hardware that a period of use carries.

Two bases, never both. Per calendar hour, an hour without use is charged too and stands on
an idle line of its own. Per expected hour of use, the idle time is inside the rate and has
no line. Which one holds is the asset's: with ``used_hours`` the second, else the first.
Over the whole life the shares, idle and what an early end leaves sum to the embodied total.
"""

from __future__ import annotations

import datetime
from typing import Final, Literal

import msgspec

from carbonlens.accounting.embodied import Piece
from carbonlens.accounting.formulas import Quantity
from carbonlens.accounting.propagation import through
from carbonlens.domain.asset import Asset
from carbonlens.domain.estimate import Estimate, not_applicable, unknown
from carbonlens.domain.figure import Figure
from carbonlens.domain.finding import Finding
from carbonlens.domain.units import HOURS_PER_DAY, HOURS_PER_YEAR

Basis = Literal["calendar_hour", "used_hour"]


class Amortised(msgspec.Struct, frozen=True, kw_only=True):
    """What one asset's embodied emissions amount to in a period, in kg.

    Attributes:
        basis: Which hours the rate is per.
        each_kg: Embodied emissions of one piece; ``how`` of which sources, in words.
        total_kg: Embodied emissions of all pieces.
        rate_kg_per_hour: Of one piece.
        used_kg: Of the hours used; ``idle_kg`` of the others, ``not_applicable`` per used hour.
        written_off_kg: What an early end in the period leaves; ``not_applicable`` without one.
        hours: Piece hours of the period within the life; ``used_hours`` those that are charged.
    """

    asset: Asset
    basis: Basis
    total_kg: Estimate
    rate_kg_per_hour: Estimate
    used_kg: Estimate
    idle_kg: Estimate
    written_off_kg: Estimate
    hours: float
    used_hours: float
    each_kg: Estimate = unknown("kg")
    how: str = ""
    input_ids: tuple[str, ...] = ()
    findings: tuple[Finding, ...] = ()

    def figures(self, prefix: str) -> tuple[Figure, ...]:
        """Return one piece, rate, used, idle and written-off emissions as figures."""
        per = "life_hours" if self.basis == "calendar_hour" else "expected used hours"
        each = Figure(
            figure_id=f"{prefix}.embodied_each_kg",
            estimate=self.each_kg,
            label=f"embodied emissions of one {self.asset.hardware}",
            formula=self.how,
            inputs=self.input_ids,
        )
        rate = Figure(
            figure_id=f"{prefix}.rate_kg_per_hour",
            estimate=self.rate_kg_per_hour,
            label=f"embodied emissions of {self.asset.hardware} per {self.basis.replace('_', ' ')}",
            formula=f"rate = embodied_each_kg / {per}",
            inputs=(each.figure_id, f"asset:{self.asset.asset_id}"),
        )
        lines = (
            ("used_kg", "embodied emissions of hours used", f"rate * {self.used_hours:g} h"),
            ("idle_kg", "embodied emissions of idle hours", f"rate * {self.hours - self.used_hours:g} h"),
            ("written_off_kg", "embodied emissions left by an early end", "rate * hours never used"),
        )
        return (
            each,
            rate,
            *(
                Figure(
                    figure_id=f"{prefix}.{name}",
                    estimate=getattr(self, name),
                    label=label,
                    formula=formula,
                    inputs=(rate.figure_id,),
                )
                for name, label, formula in lines
                if getattr(self, name).state != "not_applicable"
            ),
        )


def rate_per_hour(kg_each: Quantity, hours: Quantity) -> Quantity:
    """Return kg per hour of a piece over its hours: of life, or of expected use."""
    return kg_each / hours


def hours_kg(rate: Quantity, hours: Quantity) -> Quantity:
    """Return kg of hours at a rate."""
    return rate * hours


def embodied_share_kg(
    total: Quantity, reserved_h: Quantity, life_h: Quantity, reserved: Quantity, available: Quantity
) -> Quantity:
    """Return the share of embodied emissions of reserved hardware: M of ISO/IEC 21031.

    Args:
        total: Embodied kg of the hardware (TE).
        reserved_h: Hours it is reserved (TR).
        life_h: Hours of its expected life (EL), in the same unit.
        reserved: Resources reserved (RR).
        available: Resources it has (ToR).
    """
    return total * (reserved_h / life_h) * (reserved / available)


def life_hours(years: Quantity) -> Quantity:
    """Return the hours of a life in years of 365 days."""
    return years * HOURS_PER_YEAR


def amortised(
    asset: Asset,
    each: Piece,
    *,
    start: str,
    end: str,
    used_hours: float,
    used_before: float | None = None,
) -> Amortised:
    """Return what an asset's embodied emissions amount to in a period.

    Args:
        asset: Its life, or its expected hours of use, decides the basis.
        each: Embodied emissions of one piece.
        start: First date of the period.
        end: Date after its last.
        used_hours: Piece hours of use in the period.
        used_before: Piece hours of use before it; without them an end of life by use
            cannot be told.
    """
    make = _per_used_hour if asset.used_hours is not None else _per_calendar_hour
    found = make(asset, each.kg, (_day(start), _day(end)), used_hours, used_before)
    return msgspec.structs.replace(
        found,
        total_kg=each.kg.scale(float(asset.count), "kg"),
        each_kg=each.kg,
        how=each.how,
        input_ids=each.input_ids,
        findings=(*each.findings, *found.findings),
    )


def _per_calendar_hour(
    asset: Asset,
    kg_each: Estimate,
    period: tuple[datetime.date, datetime.date],
    used_hours: float,
    _used_before: float | None,
) -> Amortised:
    bought = _day(asset.purchased)
    if asset.life_years is None:
        return _unknown(asset, kg_each, used_hours)
    ends = bought + datetime.timedelta(days=asset.life_years * 365)
    retired = None if asset.retired is None else _day(asset.retired)
    out = ends if retired is None else min(retired, ends)
    hours = _hours(max(bought, period[0]), min(out, period[1])) * asset.count
    # Over the days that are counted, so that a life's shares sum to the whole.
    rate = through(rate_per_hour, kg_each, _hours(bought, ends), unit="kg/h")
    charged = min(used_hours, hours)
    left = not_applicable("kg")
    findings = []
    if retired is not None and retired < ends and period[0] <= retired < period[1]:
        left = through(hours_kg, rate, _hours(retired, ends) * asset.count, unit="kg")
        findings.append(_retired_early(asset, left))
    if period[0] < ends < period[1] or (ends <= period[0] and used_hours > 0):
        findings.append(_life_over(asset, f"on {ends.isoformat()}"))
    elif used_hours > hours:
        findings.append(_too_many_hours(asset, used_hours, hours))
    return Amortised(
        asset=asset,
        basis="calendar_hour",
        total_kg=kg_each,
        rate_kg_per_hour=rate,
        used_kg=through(hours_kg, rate, charged, unit="kg"),
        idle_kg=through(hours_kg, rate, hours - charged, unit="kg"),
        written_off_kg=left,
        hours=hours,
        used_hours=charged,
        findings=tuple(findings),
    )


def _per_used_hour(
    asset: Asset,
    kg_each: Estimate,
    period: tuple[datetime.date, datetime.date],
    used_hours: float,
    used_before: float | None,
) -> Amortised:
    expected = (asset.used_hours or 0.0) * asset.count
    rate = through(rate_per_hour, kg_each, asset.used_hours or 0.0, unit="kg/h")
    charged = used_hours
    findings = []
    # Without the hours before, those of the period alone may be more than the life has.
    if (used_before or 0.0) + used_hours > expected:
        charged = max(expected - (used_before or 0.0), 0.0)
        findings.append(_life_over(asset, f"after {expected:g} h of use"))
    left = not_applicable("kg")
    retired = None if asset.retired is None else _day(asset.retired)
    if retired is not None and period[0] <= retired < period[1]:
        left = unknown("kg")
        if used_before is not None:
            left = through(hours_kg, rate, expected - min(used_before + charged, expected), unit="kg")
        if left.value != 0:
            findings.append(_retired_early(asset, left))
    return Amortised(
        asset=asset,
        basis="used_hour",
        total_kg=kg_each,
        rate_kg_per_hour=rate,
        used_kg=through(hours_kg, rate, charged, unit="kg"),
        idle_kg=not_applicable("kg"),
        written_off_kg=left,
        hours=charged,
        used_hours=charged,
        findings=tuple(findings),
    )


def _unknown(asset: Asset, kg_each: Estimate, used_hours: float) -> Amortised:
    return Amortised(
        asset=asset,
        basis="calendar_hour",
        total_kg=kg_each,
        rate_kg_per_hour=unknown("kg/h"),
        used_kg=unknown("kg"),
        idle_kg=unknown("kg"),
        written_off_kg=not_applicable("kg"),
        hours=used_hours,
        used_hours=used_hours,
        findings=(_no_life(asset),),
    )


def _day(text: str) -> datetime.date:
    return datetime.date.fromisoformat(text)


def _hours(start: datetime.date, end: datetime.date) -> float:
    return float(max((end - start).days, 0) * HOURS_PER_DAY)


def _no_life(asset: Asset) -> Finding:
    return Finding(
        code="CL387",
        severity="warning",
        message=f"asset {asset.asset_id} states neither a life nor expected hours of use: its amortised "
        "emissions are unknown",
        mend="state life_years, or used_hours",
        subject=asset.asset_id,
    )


def _retired_early(asset: Asset, left: Estimate) -> Finding:
    amount = "an unknown amount" if left.value is None else f"{left.value:.6g} kg"
    return Finding(
        code="CL397",
        severity="info",
        message=f"asset {asset.asset_id} was retired on {asset.retired}, before the end of its life: "
        f"{amount} of its embodied emissions {_CARRIED}",
        mend="nothing; it is the price of retiring early",
        subject=asset.asset_id,
    )


_CARRIED: Final = "was charged to no use, and stands on a line of its own"


def _too_many_hours(asset: Asset, used: float, hours: float) -> Finding:
    return Finding(
        code="CL382",
        severity="warning",
        message=f"{used:g} h of use of asset {asset.asset_id} are more than the {hours:g} h that it was "
        "there in the period: only these carry embodied emissions",
        mend="check count, dates and devices of the asset",
        subject=asset.asset_id,
    )


def _life_over(asset: Asset, when: str) -> Finding:
    return Finding(
        code="CL397",
        severity="info",
        message=f"the expected life of asset {asset.asset_id} ended {when}: use after that carries no "
        "embodied emissions, because all of them were charged before",
        mend="nothing, or restate the life and what was charged with it",
        subject=asset.asset_id,
    )
