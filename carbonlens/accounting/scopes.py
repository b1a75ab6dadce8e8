"""Scopes: where a site's emissions are reported, by what kind of site it is and who controls it.

Own sites are scope 2 (GHG Protocol Scope 2 Guidance); a cloud is a purchased
service, scope 3 category 1; devices of customers are category 11; a colocation follows its
declared control (category 8 without it), and no control is ever assumed. Fuel supply and
grid losses of one's own electricity are category 3 (Scope 3 Standard, table 5.4); those of
a service or a product stay inside its own category.
"""

from __future__ import annotations

from typing import Final, Literal

import msgspec

from carbonlens.accounting.formulas import Quantity
from carbonlens.accounting.propagation import exactly, through
from carbonlens.domain.estimate import Estimate, not_applicable, unknown
from carbonlens.domain.factor_row import Span
from carbonlens.domain.figure import Figure
from carbonlens.domain.finding import Finding
from carbonlens.domain.site import Site


class Place(msgspec.Struct, frozen=True, order=True):
    """Scope and category under which an emission is reported; 9 and 0 for "not declared"."""

    scope: Literal[2, 3, 9]
    category: int = 0

    @property
    def key(self) -> str:
        """As figure ids name it: ``scope_2``, ``scope_3_category_1``, ``scope_undeclared``."""
        if self.scope == 9:
            return "scope_undeclared"
        return f"scope_{self.scope}" + (f"_category_{self.category}" if self.category else "")

    @property
    def label(self) -> str:
        """In words."""
        if self.scope == 9:
            return "scope not declared"
        return f"scope {self.scope}" + (f" category {self.category}" if self.category else "")


SCOPE_2: Final = Place(2)
PURCHASED_SERVICES: Final = Place(3, 1)
CAPITAL_GOODS: Final = Place(3, 2)
FUEL_AND_ENERGY: Final = Place(3, 3)
LEASED_ASSETS: Final = Place(3, 8)
USE_OF_SOLD_PRODUCTS: Final = Place(3, 11)
UNDECLARED: Final = Place(9)


def place_of(site: Site) -> tuple[Place, tuple[Finding, ...]]:
    """Return where the emissions of a site's electricity are reported.

    Args:
        site: A colocation without a declared control is undeclared, with a Finding.
    """
    if site.kind == "own":
        return SCOPE_2, ()
    if site.kind == "cloud":
        return PURCHASED_SERVICES, ()
    if site.kind == "customer":
        return USE_OF_SOLD_PRODUCTS, ()
    if site.control is None:
        return UNDECLARED, (_undeclared(site),)
    return (SCOPE_2 if site.control == "operational" else LEASED_ASSETS), ()


def upstream_place(place: Place) -> Place:
    """Return where fuel supply and grid losses of electricity are reported.

    Args:
        place: Where its generation is.
    """
    return FUEL_AND_ENERGY if place == SCOPE_2 else place


def upstream_kg(facility_kwh: Quantity, kg_per_kwh: Quantity) -> Quantity:
    """Return kg of the fuel supply of electricity used (Scope 3 Standard, category 3, b)."""
    return facility_kwh * kg_per_kwh


def lost_kwh(facility_kwh: Quantity, loss_share: Quantity) -> Quantity:
    """Return kWh lost on the way, where the share is of what was sent (category 3, c)."""
    return facility_kwh * loss_share / (1 - loss_share)


def transmission_kg(
    facility_kwh: Quantity, loss_share: Quantity, generation: Quantity, supply: Quantity
) -> Quantity:
    """Return kg of generating, and supplying the fuel of, what was lost (category 3, c)."""
    return lost_kwh(facility_kwh, loss_share) * (generation + supply)


class Upstream(msgspec.Struct, frozen=True, kw_only=True):
    """Fuel supply and grid losses of electricity used, in kg.

    Attributes:
        supply_kg: ``not_applicable`` where the grid factor is life-cycle and holds it.
        transmission_kg: Of what was lost on the way.
        input_ids: Factors used.
    """

    supply_kg: Estimate
    transmission_kg: Estimate
    input_ids: tuple[str, ...] = ()
    findings: tuple[Finding, ...] = ()

    def figures(self, prefix: str, energy: str) -> tuple[Figure, ...]:
        """Return both as figures.

        Args:
            prefix: Of the figures' ids.
            energy: Id of the facility energy's figure.
        """
        inputs = (energy, *self.input_ids)
        return (
            Figure(
                figure_id=f"{prefix}.supply_kg",
                estimate=self.supply_kg,
                label="fuel supply of electricity",
                formula="supply_kg = facility_kwh * supply",
                inputs=inputs,
            ),
            Figure(
                figure_id=f"{prefix}.transmission_kg",
                estimate=self.transmission_kg,
                label="electricity lost on the way",
                formula="transmission_kg = facility_kwh * loss / (1 - loss) * (generation + supply)",
                inputs=inputs,
            ),
        )


def upstream(
    facility_kwh: Estimate,
    generation: Estimate | None,
    supply: Estimate | None,
    loss_share: Estimate | None,
    *,
    span: Span | None,
    input_ids: tuple[str, ...] = (),
) -> Upstream:
    """Return fuel supply and grid losses of electricity used.

    Args:
        facility_kwh: Electricity used.
        generation: Location-based kg/kWh.
        supply: Upstream kg/kWh; left out where ``generation`` is life-cycle, which holds it.
        loss_share: Share of what is sent that is lost.
        span: What ``generation`` counts; one that does not say so is taken as direct.
        input_ids: Ids of the factors.
    """
    findings = []
    holds_supply = span == "life_cycle"
    if holds_supply:
        findings.append(_HOLDS_SUPPLY)
        supply_kg = not_applicable("kg")
    else:
        supply_kg = unknown("kg")
        if supply is not None:
            supply_kg = through(upstream_kg, facility_kwh, supply, unit="kg")
    lost = unknown("kg")
    if loss_share is not None and generation is not None:
        beside = exactly(0.0, "kg/kWh") if holds_supply else supply
        # Without the fuel supply of what was lost, the loss is known as at least its generation.
        rest = beside or Estimate(value=0.0, unit="kg/kWh", state="unbounded")
        lost = through(transmission_kg, facility_kwh, loss_share, generation, rest, unit="kg")
    missing = [
        name
        for name, absent in (
            ("fuel supply", supply is None and not holds_supply),
            ("grid losses", loss_share is None or generation is None),
        )
        if absent
    ]
    if missing:
        findings.append(_no_upstream(missing))
    return Upstream(supply_kg=supply_kg, transmission_kg=lost, input_ids=input_ids, findings=tuple(findings))


def _undeclared(site: Site) -> Finding:
    return Finding(
        code="CL388",
        severity="error",
        message=f"the colocation {site.site_id} declares no control: its scope is open, and it stands on "
        "a line of its own",
        mend="declare control: operational, or none",
        subject=site.site_id,
    )


_HOLDS_SUPPLY: Final = Finding(
    code="CL389",
    severity="info",
    message="the grid factor is life-cycle and holds the fuel supply, so that scope 3 category 3 has no "
    "line of it: counted twice it would be",
    mend="use a direct (combustion) factor to tell the two apart",
)


def _no_upstream(missing: list[str]) -> Finding:
    return Finding(
        code="CL398",
        severity="info",
        message=f"no factor of {' and of '.join(missing)}: scope 3 category 3 is unknown or a lower bound",
        mend="add rows of kind upstream and transmission for the zone",
    )
