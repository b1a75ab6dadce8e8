"""Market-based emissions: one blend per entity, market and period.

E = sum of kWh x rate over the instruments + what they leave x residual mix (GHG Protocol
Scope 2 Guidance, table 6.3). A grid average stands in for a missing residual mix
only with its disclosure. The blend is the one market-based factor of every kWh in it: no
instrument is given to a run, a step or a team.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from typing import Final

import msgspec

from carbonlens.accounting.conversions import mwh_to_kwh
from carbonlens.accounting.demand import Demand
from carbonlens.accounting.formulas import Quantity
from carbonlens.accounting.instruments import Claim, claims, fault, is_close, not_counted, surplus
from carbonlens.accounting.propagation import exactly, stated, through
from carbonlens.domain.certificate import Certificate
from carbonlens.domain.estimate import Estimate, unknown
from carbonlens.domain.figure import Figure
from carbonlens.domain.finding import Finding

RATE: Final = "kg/kWh"

_ROUNDING: Final = Decimal("1e-9")
"""Part of an instrument that may be left by the rounding of a demand, which is a float."""


class Part(msgspec.Struct, frozen=True, kw_only=True):
    """One source of a blend.

    Attributes:
        source_id: Certificate or factor.
        kind: ``certificate``, ``contract``, ``supplier``, ``residual``, ``average``, or
            ``uncovered`` where no rate is known.
        kwh: What of the demand it covers.
        rate: kg per kWh.
    """

    source_id: str
    kind: str
    kwh: Estimate
    rate: Estimate


class Blend(msgspec.Struct, frozen=True, kw_only=True):
    """The market-based factor of one demand, and all that made it.

    Attributes:
        parts: In the order of the hierarchy; they sum to the demand.
        emissions_kg: Of the whole demand.
        rate: kg per kWh, the same for each of its kWh.
        is_provisional: Whether the period is still open.
    """

    demand: Demand
    parts: tuple[Part, ...]
    emissions_kg: Estimate
    rate: Estimate
    is_provisional: bool
    findings: tuple[Finding, ...] = ()

    @property
    def factor_id(self) -> str:
        """Name under which figures refer to the blend."""
        return f"market:{self.demand.entity}:{self.demand.market}:{self.demand.period.name}"

    def figures(self, prefix: str) -> tuple[Figure, ...]:
        """Return demand, parts, emissions and rate as figures; the rate's id is ``factor_id``."""
        demand = Figure(
            figure_id=f"{prefix}.demand_kwh",
            estimate=self.demand.kwh,
            label=f"electricity of {self.demand.entity} in {self.demand.market}, {self.demand.period.name}",
            formula="sum of its sites",
            inputs=self.demand.input_ids,
        )
        parts = tuple(
            Figure(
                figure_id=f"{prefix}.part_{n}_kwh",
                estimate=part.kwh,
                label=f"{part.kind} {part.source_id}",
                formula=f"covered kWh, at {part.rate.value} {part.rate.unit}",
                inputs=(demand.figure_id, part.source_id),
            )
            for n, part in enumerate(self.parts, start=1)
        )
        emissions = Figure(
            figure_id=f"{prefix}.emissions_kg",
            estimate=self.emissions_kg,
            label="market-based emissions" + (", provisional" if self.is_provisional else ""),
            formula="sum of kWh x rate over the parts",
            inputs=tuple(p.figure_id for p in parts),
        )
        rate = Figure(
            figure_id=self.factor_id,
            estimate=self.rate,
            label="market-based factor of every kWh of the demand",
            formula="rate = emissions_kg / demand_kwh",
            inputs=(emissions.figure_id, demand.figure_id),
        )
        return demand, *parts, emissions, rate


class MarketBased(msgspec.Struct, frozen=True, kw_only=True):
    """The blends of several demands.

    Attributes:
        accepted: Instruments that may count; hourly matching rests on them too.
        left_kwh: What of each accepted instrument covers nothing, by its id.
    """

    blends: tuple[Blend, ...]
    accepted: tuple[Certificate, ...]
    left_kwh: Mapping[str, Decimal]
    findings: tuple[Finding, ...]


def blended_kg(
    kwh: Quantity, amounts: Sequence[Quantity], rates: Sequence[Quantity], last_rate: Quantity
) -> Quantity:
    """Return market-based kg: fixed amounts at their rates, the rest at the last one (6.1, table 6.3)."""
    covered = sum(amounts)
    held = sum(a * r for a, r in zip(amounts, rates, strict=True))
    return held + (kwh - covered) * last_rate


def blended_rate(
    kwh: Quantity, amounts: Sequence[Quantity], rates: Sequence[Quantity], last_rate: Quantity
) -> Quantity:
    """Return market-based kg per kWh of a demand."""
    return blended_kg(kwh, amounts, rates, last_rate) / kwh


def market_based(
    demands: Iterable[Demand],
    certificates: Sequence[Certificate],
) -> MarketBased:
    """Return the blend of each demand; every instrument's energy is used once.

    Demands take from instruments in the order of time, so that a closed period keeps
    what it took when a later one is added.

    Args:
        demands: All of the entity's in the instruments' years, not only the reported one.
        certificates: All instruments of the inventory.
    """
    ordered = sorted(demands, key=lambda d: (d.period.months, d.period.name, d.entity, d.market))
    accepted, findings = _accepted(certificates)
    left = {c.certificate_id: mwh_to_kwh(c.energy_mwh) for c in accepted if c.energy_mwh is not None}
    blends = []
    matched = set[str]()
    for demand in ordered:
        usable = [c for c in accepted if _fits(c, demand)]
        matched.update(c.certificate_id for c in usable)
        blends.append(_blend(demand, usable, left))
    for certificate in accepted:
        name = certificate.certificate_id
        if name not in matched:
            findings.append(not_counted(certificate, "no consumption of its entity, market and year"))
        elif left.get(name, Decimal(0)) > _ROUNDING * mwh_to_kwh(certificate.energy_mwh or Decimal(0)):
            findings.append(surplus(certificate, left[name]))
    return MarketBased(
        blends=tuple(blends), accepted=tuple(accepted), left_kwh=left, findings=tuple(findings)
    )


def _accepted(certificates: Sequence[Certificate]) -> tuple[list[Certificate], list[Finding]]:
    """Return the instruments that may count, each id once, and a Finding for each of the others."""
    accepted: dict[str, Certificate] = {}
    findings = []
    for certificate in certificates:
        name = certificate.certificate_id
        why = "its id stands a second time" if name in accepted else fault(certificate)
        if why:
            findings.append(not_counted(certificate, why))
        else:
            accepted[name] = certificate
    return list(accepted.values()), findings


def _fits(certificate: Certificate, demand: Demand) -> bool:
    same = (certificate.entity, certificate.market) == (demand.entity, demand.market)
    return same and is_close(certificate, demand.period.months)


def _blend(demand: Demand, usable: Sequence[Certificate], left: dict[str, Decimal]) -> Blend:
    value = demand.kwh.value
    taken: tuple[Claim, ...] = ()
    if value is not None:
        taken = claims(Decimal(repr(float(value))), demand.period.months, usable, left)
    fixed = [c for c in taken if not c.is_last]
    rates = [_rate(c.certificate) for c in fixed]
    amounts = [float(c.energy_kwh) for c in fixed]
    last, kind, source, findings = _last(demand, taken)
    rest_kwh = through(lambda kwh: kwh - sum(amounts), demand.kwh, unit="kWh")
    parts = [
        Part(source_id=c.certificate.certificate_id, kind=c.certificate.kind, kwh=exactly(a, "kWh"), rate=r)
        for c, a, r in zip(fixed, amounts, rates, strict=True)
    ]
    parts.append(Part(source_id=source, kind=kind, kwh=rest_kwh, rate=last))
    if demand.period.is_open:
        findings.append(_provisional(demand))
    made = [
        through(lambda k, x, *r, f=formula: f(k, amounts, r, x), demand.kwh, last, *rates, unit=unit)
        for formula, unit in ((blended_kg, "kg"), (blended_rate, RATE))
    ]
    return Blend(
        demand=demand,
        parts=tuple(parts),
        emissions_kg=made[0],
        rate=made[1],
        is_provisional=demand.period.is_open,
        findings=tuple(findings),
    )


def _last(demand: Demand, taken: Sequence[Claim]) -> tuple[Estimate, str, str, list[Finding]]:
    """Return rate, kind and id of what covers the rest of a demand, with what must be said of it."""
    if taken and taken[-1].is_last:
        certificate = taken[-1].certificate
        return _rate(certificate), certificate.kind, certificate.certificate_id, []
    if demand.rest.residual is not None:
        return demand.rest.residual, "residual", demand.rest.residual_id, []
    if demand.rest.average is not None:
        return demand.rest.average, "average", demand.rest.average_id, [_disclosed(demand)]
    return unknown(RATE), "uncovered", demand.rest.residual_id, [_no_residual(demand)]


def _rate(certificate: Certificate) -> Estimate:
    rate = float(certificate.value_kg_per_kwh)
    return stated(rate, certificate.u_relative, certificate.certificate_id, RATE)


def _disclosed(demand: Demand) -> Finding:
    return Finding(
        code="CL392",
        severity="warning",
        message=f"no residual mix of {demand.market} for {demand.period.name}: the rest of the electricity "
        "takes the grid average, which may count contracted electricity twice; this must be disclosed",
        mend="add the market's residual mix where one is published",
        subject=demand.market,
    )


def _no_residual(demand: Demand) -> Finding:
    return Finding(
        code="CL393",
        severity="error",
        message=f"no residual mix and no grid average of {demand.market} for {demand.period.name}: "
        "market-based emissions are unknown",
        mend="add the market's residual mix, or its grid average",
        subject=demand.market,
    )


def _provisional(demand: Demand) -> Finding:
    return Finding(
        code="CL394",
        severity="info",
        message=f"market-based figures of {demand.entity} in {demand.market} are provisional: "
        f"{demand.period.name} is open, and instruments may still be added",
        mend="close the period",
        subject=demand.period.name,
    )
