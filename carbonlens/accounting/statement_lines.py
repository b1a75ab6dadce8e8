"""Lines of a statement: the amounts of one site, one group or the total, each as a figure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from itertools import chain
from typing import Final, Literal

import msgspec
from msgspec.structs import replace

from carbonlens.accounting import formulas, water
from carbonlens.accounting.boundaries import Energies
from carbonlens.accounting.emissions import Rate
from carbonlens.accounting.propagation import through
from carbonlens.accounting.scopes import Upstream, upstream
from carbonlens.accounting.site_energy import Share, SiteTerms
from carbonlens.accounting.water import Water
from carbonlens.domain.estimate import Estimate, add, not_applicable, unknown
from carbonlens.domain.figure import Figure
from carbonlens.domain.finding import Finding

Kind = Literal["recorded", "at_least", "metered", "unattributed"]
"""``at_least`` are energies known as lower bounds, which are never added to true figures."""

KINDS: Final[tuple[Kind, ...]] = ("recorded", "at_least", "metered", "unattributed")
"""In the order of printing."""

NAMES: Final = (
    *("it_kwh", "facility_kwh", "location_kg", "market_kg", "supply_kg", "transmission_kg"),
    *("water_site_l", "water_source_l"),
)
"""Amounts of a line; the cost of electricity is ``electricity.<currency>`` beside them."""

_LABELS: Final = {
    "it_kwh": ("IT energy", "kWh"),
    "facility_kwh": ("facility energy", "kWh"),
    "location_kg": ("location-based emissions", "kg"),
    "market_kg": ("market-based emissions", "kg"),
    "supply_kg": ("fuel supply of electricity", "kg"),
    "transmission_kg": ("electricity lost on the way", "kg"),
    "water_site_l": ("water at the site", "L"),
    "water_source_l": ("water at the power plants", "L"),
}


PAID: Final = "electricity."
"""Begin of the names of what electricity costs; the currency follows."""

_RESERVED: Final = frozenset({"total", "by", "cost", "energy"})
"""Words of figure ids that a site's own name may not take."""


class Amount(msgspec.Struct, frozen=True, gc=False):
    """An amount, and how it was made."""

    estimate: Estimate
    formula: str
    inputs: tuple[str, ...]


class Part(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    """What of a line is under one set of terms.

    Attributes:
        it: IT energy in kWh; ``facility`` the same at the facility.
        location: Location-based kg of it.
    """

    it: Estimate
    facility: Estimate
    location: Estimate
    terms: SiteTerms

    @cached_property
    def drawn(self) -> Water:
        """Its water."""
        energy = Energies(
            boundary=None,
            device_kwh=unknown("kWh"),
            it_kwh=self.it,
            facility_kwh=self.facility,
            overheads=self.terms.overheads,
        )
        return water.water(energy, self.terms.wue, self.terms.grid_water)

    @cached_property
    def further(self) -> Upstream:
        """Its upstream emissions."""
        terms, generation = self.terms, None
        if self.location.value is not None and self.facility.value:
            generation = through(lambda kg, e: kg / e, self.location, self.facility, unit="kg/kWh")
        return upstream(self.facility, generation, terms.supply, terms.loss, span=terms.span)


class Line(msgspec.Struct, frozen=True, kw_only=True):
    """One line.

    Attributes:
        key: In figure ids ``statement.<period>.<key>.<name>``.
        kind: What of the site it is.
        amounts: By name.
        runs: Runs that start in it.
        is_in_cloud: Whether the bill of a cloud holds its electricity, so that it has no cost here.
    """

    key: str
    site_id: str
    kind: Kind
    amounts: Mapping[str, Amount]
    runs: int = 0
    is_in_cloud: bool = False
    findings: tuple[Finding, ...] = ()

    def figures(self, prefix: str) -> tuple[Figure, ...]:
        """Return the amounts as figures."""
        return tuple(
            Figure(
                figure_id=f"{prefix}.{self.key}.{name}",
                estimate=amount.estimate,
                label=f"{label_of(name)} of {self.key}",
                formula=amount.formula,
                inputs=amount.inputs,
            )
            for name, amount in self.amounts.items()
        )

    @property
    def is_lower_bound(self) -> bool:
        """Whether its energy is known as at least only: it is never added to true figures then."""
        metered = self.kind == "metered" and self.estimate("facility_kwh").state != "known"
        return metered or self.kind == "at_least"

    def estimate(self, name: str) -> Estimate:
        """Return an amount; unknown where the line has none of that name."""
        held = self.amounts.get(name)
        return unknown(unit_of(name)) if held is None else held.estimate


def key_of(site_id: str) -> str:
    """Return what a site is called in figure ids."""
    return f"site:{site_id}" if site_id in _RESERVED else site_id


def label_of(name: str) -> str:
    """Return an amount's name in words."""
    if name in _LABELS:
        return _LABELS[name][0]
    return f"electricity in {name.rpartition('.')[2]}"


def unit_of(name: str) -> str:
    """Return an amount's unit."""
    return _LABELS[name][1] if name in _LABELS else name.rpartition(".")[2]


def recorded(
    key: str,
    shares: Sequence[Share],
    terms: SiteTerms,
    market: Rate | None,
    *,
    prefix: str,
    price_ids: Mapping[str, tuple[str, ...]],
) -> Line:
    """Return the line of what runs recorded at a site.

    Args:
        key: Of the line.
        shares: All true figures, or all lower bounds.
        terms: Of the site.
        market: Its market-based factor.
        prefix: ``statement.<period>``.
        price_ids: Prices of its electricity by currency.
    """
    at = f"{prefix}.{key}"
    ids = tuple(s.prefix for s in shares)
    it, facility = (
        Amount(add((getattr(s.energies, n) for s in shares), "kWh"), formula, tuple(f"{i}.{n}" for i in ids))
        for n, formula in (("it_kwh", "sum over the boundaries"), ("facility_kwh", "sum over the boundaries"))
    )
    location = Amount(
        add((s.location for s in shares), "kg"), _of_location(terms), (f"{at}.facility_kwh", *terms.input_ids)
    )
    parts = [
        Part(it=s.energies.it_kwh, facility=s.energies.facility_kwh, location=s.location, terms=s.terms)
        for s in shares
    ]
    amounts = amounts_of(it, facility, location, parts, market, at)
    for currency in sorted({c for s in shares for c in s.costs}):
        # Energy without any price leaves the sum a lower bound, as in the shares themselves.
        paid = [
            s.costs.get(currency, unknown(currency)) for s in shares if currency in s.costs or not s.costs
        ]
        inputs = (f"{at}.facility_kwh", *price_ids.get(currency, ()))
        formula = "cost = sum over hours of facility_kwh * price of the hour"
        amounts[f"electricity.{currency}"] = Amount(add(paid, currency), formula, inputs)
    is_least = any(s.is_lower_bound for s in shares)
    return Line(
        key=key,
        site_id=terms.site_id,
        kind="at_least" if is_least else "recorded",
        amounts=amounts,
        runs=sum(s.runs for s in shares),
        findings=tuple(
            dict.fromkeys(
                (
                    *(f for s in shares for f in _about(s.energies.findings, terms.site_id)),
                    *said_of(parts),
                )
            )
        ),
    )


def said_of(parts: Sequence[Part]) -> list[Finding]:
    """Return what is to be said of the water and the upstream emissions of a line."""
    said: list[Finding] = []
    for part in parts:
        said += _about((*part.drawn.findings, *part.further.findings), part.terms.site_id)
    return list(dict.fromkeys(said))


def amounts_of(
    it: Amount, facility: Amount, location: Amount, parts: Sequence[Part], market: Rate | None, at: str
) -> dict[str, Amount]:
    """Return what rests on the energy of a line.

    Args:
        it: Its IT energy.
        facility: Its facility energy.
        location: Its location-based emissions.
        parts: The same under each set of terms; they sum to the line.
        market: Market-based factor.
        at: Prefix of the line's figures.
    """
    kwh, figure = facility.estimate, f"{at}.facility_kwh"
    market_kg = unknown("kg")
    if market is not None:
        market_kg = through(formulas.emissions_kg, kwh, market.kg_per_kwh, unit="kg")
    drawn = [p.drawn for p in parts]
    further = [p.further for p in parts]
    return {
        "it_kwh": it,
        "facility_kwh": facility,
        "location_kg": location,
        "market_kg": Amount(
            market_kg,
            "kg = facility_kwh * factor" if market else "no factor",
            (figure, *([market.factor_id] if market else [])),
        ),
        "supply_kg": Amount(
            _joined([x.supply_kg for x in further], "kg"),
            "supply_kg = facility_kwh * supply, where the factor of the grid leaves it out",
            (*_known(figure, parts, "supply"), *_grid(parts)),
        ),
        "transmission_kg": Amount(
            _joined([x.transmission_kg for x in further], "kg"),
            "transmission_kg = facility_kwh * loss / (1 - loss) * (location_kg / facility_kwh + supply)",
            (*_known(figure, parts, "loss", "supply"), f"{at}.location_kg"),
        ),
        "water_site_l": Amount(
            _joined([x.site_l for x in drawn], "L"),
            "water_site_l = it_kwh * wue",
            _known(f"{at}.it_kwh", parts, "wue"),
        ),
        "water_source_l": Amount(
            _joined([x.source_l for x in drawn], "L"),
            "water_source_l = facility_kwh * grid_water",
            _known(figure, parts, "grid_water"),
        ),
    }


def total(key: str, lines: Sequence[Line], prefix: str, kind: Kind = "recorded") -> Line:
    """Return the sum of lines; a part that is unknown leaves its sum a lower bound.

    Args:
        key: Of the total.
        lines: No two hold the same energy.
        prefix: ``statement.<period>``.
        kind: What the lines are.
    """
    names = [*NAMES, *sorted({n for line in lines for n in line.amounts if n not in NAMES})]
    amounts = {
        name: Amount(
            _sum(
                [line.estimate(name) for line in lines if name in line.amounts or _lacks(line, name)],
                unit_of(name),
            ),
            "sum of the lines",
            tuple(f"{prefix}.{line.key}.{name}" for line in lines if name in line.amounts),
        )
        for name in names
        if lines
    }
    return Line(key=key, site_id="", kind=kind, amounts=amounts, runs=sum(line.runs for line in lines))


def is_unpriced(line: Line) -> bool:
    """Tell whether a line has energy that nobody prices in any currency."""
    if line.is_in_cloud or line.estimate("facility_kwh").value == 0:
        return False
    return not any(n.startswith(PAID) for n in line.amounts)


def _lacks(line: Line, name: str) -> bool:
    """Tell whether a part of an amount is missing: one priced in another currency has none of it."""
    return is_unpriced(line) if name.startswith(PAID) else True


def rest_of(whole: Line, parts: Sequence[Line], prefix: str) -> Line:
    """Return what of a metered line no recorded run explains; with them it sums to the whole.

    Args:
        whole: As metered.
        parts: Recorded at the same site.
        prefix: ``statement.<period>``.
    """
    key = f"{key_of(whole.site_id)}.unattributed"
    amounts = {}
    for name, amount in whole.amounts.items():
        unit = unit_of(name)
        explained = add((p.estimate(name) for p in parts), unit) if parts else Estimate(value=0.0, unit=unit)
        inputs = (
            f"{prefix}.{whole.key}.{name}",
            *(f"{prefix}.{p.key}.{name}" for p in parts if name in p.amounts),
        )
        left = amount.estimate.minus(explained)
        if amount.estimate.state == "not_applicable":
            left = amount.estimate
        amounts[name] = Amount(left, "metered less recorded", inputs)
    return Line(key=key, site_id=whole.site_id, kind="unattributed", amounts=amounts)


def _sum(parts: Sequence[Estimate], unit: str) -> Estimate:
    """Return a sum; of nothing that applies it does not apply either."""
    return not_applicable(unit) if all(p.state == "not_applicable" for p in parts) else add(parts, unit)


def _joined(parts: Sequence[Estimate], unit: str) -> Estimate:
    return parts[0] if len(parts) == 1 else _sum(parts, unit)


def _known(figure: str, parts: Sequence[Part], *names: str) -> tuple[str, ...]:
    ids = [p.terms.ids[n] for n in names for p in parts if n in p.terms.ids]
    return (figure, *dict.fromkeys(ids))


def _grid(parts: Sequence[Part]) -> tuple[str, ...]:
    """Return the ids of the grid's factors, which tell whether the fuel's supply is in them."""
    # Parts of a site mostly have the same ones, thousands where each hour has its own.
    held = {id(p.terms.input_ids): p.terms for p in parts}
    if len(held) == 1:
        return next(iter(held.values())).each_input_id
    return tuple(dict.fromkeys(chain.from_iterable(terms.input_ids for terms in held.values())))


def _of_location(terms: SiteTerms) -> str:
    if not terms.input_ids:
        return "no factor"
    if len(terms.input_ids) == 1:
        return "kg = facility_kwh * factor"
    return "kg = sum over hours of facility_kwh * factor of the hour"


def _about(findings: Sequence[Finding], site_id: str) -> list[Finding]:
    return [replace(f, message=f"{site_id}: {f.message}", subject=site_id) for f in findings]
