"""Figures of a statement beside its lines: scopes, blends, hardware."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from msgspec.structs import replace

from carbonlens.accounting import formulas, scope_totals
from carbonlens.accounting.amortisation import Amortised
from carbonlens.accounting.embodied import CapitalGoods
from carbonlens.accounting.emissions import Rate
from carbonlens.accounting.market_based import Blend
from carbonlens.accounting.propagation import through
from carbonlens.accounting.scopes import CAPITAL_GOODS, UNDECLARED, Place, place_of, upstream_place
from carbonlens.accounting.site_energy import SiteTerms
from carbonlens.accounting.statement_lines import Line
from carbonlens.domain.estimate import Estimate, unknown
from carbonlens.domain.figure import Figure


def emissions_at(rate: Rate | None, kwh: Estimate) -> Estimate:
    """Return kg of facility energy at a factor; unknown without one."""
    if rate is None:
        return unknown("kg")
    return through(formulas.emissions_kg, kwh, rate.kg_per_kwh, unit="kg")


def measured(figures: Iterable[Figure]) -> tuple[Figure, ...]:
    """Return energies with what the one is made of that was measured."""
    return tuple(
        replace(f, formula="sum of the readings of the recorded runs") if f.inputs and not f.formula else f
        for f in figures
    )


def further(
    capital: CapitalGoods | None, amortised: Iterable[Amortised], blends: Sequence[Blend], prefix: str
) -> list[Figure]:
    """Return the figures of market-based blends and of hardware.

    Args:
        capital: Hardware bought in the period.
        amortised: Hardware in use.
        blends: Of the period.
        prefix: ``statement.<period>``.
    """
    figures = [f for b in blends for f in b.figures(f"{prefix}.{b.demand.entity}.{b.demand.market}")]
    figures += () if capital is None else capital.figures(prefix)
    for one in amortised:
        figures += one.figures(f"{prefix}.{one.asset.asset_id}.amortised")
    return figures


def scope_lines(
    lines: Iterable[Line],
    terms: Mapping[str, SiteTerms],
    prefix: str,
    *,
    upstream: bool = False,
    capital: CapitalGoods | None = None,
) -> list[scope_totals.Line]:
    """Return the lines under their scopes and categories.

    Args:
        lines: No two hold the same energy.
        terms: By site.
        prefix: ``statement.<period>``.
        upstream: Whether fuel supply and grid losses are lines too.
        capital: Hardware bought in the period.
    """
    found = []
    for line in lines:
        held = terms[line.site_id]
        place = UNDECLARED if held.site is None else place_of(held.site)[0]
        found.append(_scope_line(line, place, prefix, ("location_kg", "market_kg"), held))
        for name in ("supply_kg", "transmission_kg") if upstream else ():
            if line.estimate(name).state != "not_applicable":
                found.append(_scope_line(line, upstream_place(place), prefix, (name, name), held))
    if capital is not None and capital.purchases:
        kg, name = capital.kg, f"{prefix}.capital_goods_kg"
        found.append(
            scope_totals.Line(
                source_id="capital_goods",
                place=CAPITAL_GOODS,
                location_kg=kg,
                market_kg=kg,
                location_figure=name,
                market_figure=name,
            )
        )
    return found


def _scope_line(
    line: Line, place: Place, prefix: str, names: tuple[str, str], terms: SiteTerms
) -> scope_totals.Line:
    location, market = names
    return scope_totals.Line(
        source_id=line.site_id,
        place=place,
        location_kg=line.estimate(location),
        market_kg=line.estimate(market),
        span=terms.span,
        location_figure=f"{prefix}.{line.key}.{location}",
        market_figure=f"{prefix}.{line.key}.{market}",
    )
