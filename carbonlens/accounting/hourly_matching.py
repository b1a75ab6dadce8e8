"""Hourly matching: how much of a load was covered by clean electricity of the same hour.

The view that the revision of the GHG Protocol Scope 2 Guidance proposed in October 2025;
it stands beside the annual market-based figure and replaces nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from typing import Final

import msgspec

from carbonlens.accounting.conversions import mwh_to_kwh
from carbonlens.accounting.formulas import Quantity
from carbonlens.accounting.propagation import through
from carbonlens.domain.certificate import Certificate
from carbonlens.domain.counting import counted
from carbonlens.domain.estimate import Estimate, add, unknown
from carbonlens.domain.figure import Figure
from carbonlens.domain.finding import Finding


class HourlyMatch(msgspec.Struct, frozen=True, kw_only=True):
    """A load against clean electricity, by the hour and over the whole period.

    Attributes:
        load_kwh, clean_kwh: Sums over the hours.
        matched_kwh: Sum over the hours of the smaller of the two.
        score: Matched over load.
        annual_matched_kwh: The smaller of the two sums.
        hourly_kg, annual_kg: Emissions of what is not matched, by either reckoning.
        input_ids: Figures of the load, and the residual mix.
        clean_ids: Certificates of the clean electricity.
    """

    load_kwh: Estimate
    clean_kwh: Estimate
    matched_kwh: Estimate
    score: Estimate
    annual_matched_kwh: Estimate
    hourly_kg: Estimate
    annual_kg: Estimate
    input_ids: tuple[str, ...] = ()
    clean_ids: tuple[str, ...] = ()
    findings: tuple[Finding, ...] = ()

    def figures(self, prefix: str) -> tuple[Figure, ...]:
        """Return all of it as figures ``<prefix>.score`` and so on."""
        load, clean = f"{prefix}.load_kwh", f"{prefix}.clean_kwh"
        made = {
            "load_kwh": ("electricity used", "sum over the hours", self.input_ids),
            "clean_kwh": ("clean electricity contracted", "sum over the hours", self.clean_ids),
            "matched_kwh": ("matched by the hour", "sum over hours of min(load, clean)", (load, clean)),
            "score": ("hourly matching score", "matched / load", (f"{prefix}.matched_kwh", load)),
            "annual_matched_kwh": ("matched over the period", "min(load, clean)", (load, clean)),
            "hourly_kg": (
                "market-based emissions, matched by the hour",
                "(load - matched) * residual mix",
                (load, f"{prefix}.matched_kwh", *self.input_ids),
            ),
            "annual_kg": (
                "market-based emissions, matched over the period",
                "(load - annual matched) * residual mix",
                (load, f"{prefix}.annual_matched_kwh", *self.input_ids),
            ),
        }
        return tuple(
            Figure(
                figure_id=f"{prefix}.{name}",
                estimate=getattr(self, name),
                label=label,
                formula=formula,
                inputs=inputs,
            )
            for name, (label, formula, inputs) in made.items()
        )


def matched(covered: Quantity, clean_in_short: Quantity) -> Quantity:
    """Return the sum of hourly minima: load of the covered hours, and clean energy of the others."""
    return covered + clean_in_short


def hourly_score(covered: Quantity, short: Quantity, clean_in_short: Quantity) -> Quantity:
    """Return the share of a load that is matched hour by hour.

    Args:
        covered: Load of the hours in which the clean energy suffices.
        short: Load of the hours in which it does not.
        clean_in_short: Clean energy of those.
    """
    return matched(covered, clean_in_short) / (covered + short)


def unmatched_kg(load: Quantity, clean: Quantity, residual: Quantity) -> Quantity:
    """Return kg of a load beyond clean energy, at the residual mix."""
    return (load - clean) * residual


def hourly_kg(kwh: Sequence[Quantity], rates: Sequence[Quantity]) -> Quantity:
    """Return kg of hourly energies, each at its own hour's rate."""
    return sum(e * r for e, r in zip(kwh, rates, strict=True))


def load_weighted_rate(kwh: Sequence[Quantity], rates: Sequence[Quantity]) -> Quantity:
    """Return the one rate that gives the same as the hours' own: weighted by load."""
    return hourly_kg(kwh, rates) / sum(kwh)


def unweighted_kg(kwh: Sequence[Quantity], rates: Sequence[Quantity]) -> Quantity:
    """Return kg at the plain mean of the hours' rates: what an annual average makes of it."""
    return sum(kwh) * (sum(rates) / len(rates))


def clean_by_hour(
    instruments: Iterable[Certificate],
) -> tuple[dict[int, Decimal], tuple[str, ...], tuple[Finding, ...]]:
    """Return clean kWh by UTC hour, the instruments they come from, and what was left out.

    An instrument counts if it conveys no emissions and states its hours.

    Args:
        instruments: Those that may count (``MarketBased.accepted``).
    """
    clean: dict[int, Decimal] = {}
    ids = []
    left_out = []
    for instrument in instruments:
        if instrument.value_kg_per_kwh or not instrument.hourly_mwh:
            left_out.append(instrument.certificate_id)
            continue
        ids.append(instrument.certificate_id)
        for hour, mwh in instrument.hourly_mwh.items():
            clean[hour] = clean.get(hour, Decimal(0)) + mwh_to_kwh(mwh)
    return clean, tuple(ids), (_without_hours(left_out),) if left_out else ()


def hourly_match(
    load: Mapping[int, Estimate],
    clean: Mapping[int, Decimal],
    residual: Estimate | None,
    input_ids: tuple[str, ...] = (),
    clean_ids: tuple[str, ...] = (),
) -> HourlyMatch:
    """Return how a load is matched, by the hour and over the period.

    Args:
        load: Facility kWh by UTC hour; an hour that is unknown leaves the score unknown.
        clean: Clean kWh by UTC hour of the period; an hour that is not there holds none.
        residual: kg/kWh of what is not matched; ``None`` when unknown.
        input_ids: Figures of the load, and the residual mix.
        clean_ids: Certificates of the clean electricity.
    """
    covered, short = [], []
    clean_in_short = 0.0
    for hour, energy in load.items():
        there = float(clean.get(hour, 0))
        if energy.value is None:
            # It may be either, and leaves both sums lower bounds.
            covered.append(energy)
            short.append(energy)
        elif energy.value <= there:
            covered.append(energy)
        else:
            short.append(energy)
            clean_in_short += there
    whole, rest = _sum(covered), _sum(short)
    total = _sum(load.values())
    # Over the period certificates of an hour without load count too.
    supply = float(sum(clean.values(), Decimal(0)))
    rate = unknown("kg/kWh") if residual is None else residual
    suffices = total.value is not None and total.value <= supply
    # Over the period a surplus of one hour serves another; beyond the load it is nothing.
    annual = total if suffices else Estimate(value=supply, unit="kWh")
    annual_kg = _nothing() if suffices else through(unmatched_kg, total, supply, rate, unit="kg")
    return HourlyMatch(
        load_kwh=total,
        clean_kwh=Estimate(value=supply, unit="kWh"),
        matched_kwh=through(matched, whole, clean_in_short, unit="kWh"),
        score=through(hourly_score, whole, rest, clean_in_short, unit="1"),
        annual_matched_kwh=annual,
        hourly_kg=through(unmatched_kg, rest, clean_in_short, rate, unit="kg") if short else _nothing(),
        annual_kg=annual_kg,
        input_ids=input_ids,
        clean_ids=clean_ids,
        findings=_unknown_hours(load),
    )


def _sum(parts: Iterable[Estimate]) -> Estimate:
    held = list(parts)
    return add(held, "kWh") if held else Estimate(value=0.0, unit="kWh")


def _nothing() -> Estimate:
    return Estimate(value=0.0, unit="kg")


def _unknown_hours(load: Mapping[int, Estimate]) -> tuple[Finding, ...]:
    missing = sum(1 for e in load.values() if e.value is None)
    if not missing:
        return ()
    return (
        Finding(
            code="CL384",
            severity="warning",
            message=f"the load of {counted(missing, 'hour')} of {len(load)} is unknown: the matching "
            "score is unknown, and emissions matched by the hour are a lower bound",
            mend="import the missing readings",
        ),
    )


_LISTED: Final = 5


def _without_hours(ids: Sequence[str]) -> Finding:
    more = f" and {len(ids) - _LISTED} more" if len(ids) > _LISTED else ""
    return Finding(
        code="CL396",
        severity="info",
        message=f"{counted(len(ids), 'instrument')} without hours, or not free of emissions, "
        f"{'is' if len(ids) == 1 else 'are'} not matched by the hour: {', '.join(ids[:_LISTED])}{more}",
        mend="state hourly_mwh where the registry gives the hours of generation",
    )
