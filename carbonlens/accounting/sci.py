"""SCI: emissions per functional unit (ISO/IEC 21031), and SCI for AI.

SCI = (O + M) per R with O = E x I and M = TE x TR/EL x RR/ToR. Emissions and units are each
added up over components and times first and divided last, because a mean of rates is no
rate. Energy is that of what was reserved, with the PUE. I is location-based; market-based
factors, offsets and credits are refused. All inputs stay in the result.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from carbonlens.accounting.amortisation import embodied_share_kg
from carbonlens.accounting.conversions import kg_to_g
from carbonlens.accounting.formulas import Quantity, emissions_kg
from carbonlens.accounting.propagation import through
from carbonlens.domain.estimate import Estimate, add, unknown
from carbonlens.domain.factor_row import Averaging, Method
from carbonlens.domain.figure import Figure
from carbonlens.domain.finding import Finding
from carbonlens.errors import IncomparableError, UsageError


class FunctionalUnit(msgspec.Struct, frozen=True, kw_only=True):
    """What a score is per, as it is declared.

    Attributes:
        name: One of it: ``token``.
        plural: Several: ``tokens``.
        per: How many of it the score is per: 1e6 for "per million".
        rationale: Why this unit.
    """

    name: str
    plural: str
    per: float = 1.0
    rationale: str = ""

    @property
    def label(self) -> str:
        """As it is printed: ``token``, ``1000000 tokens``."""
        return self.name if self.per == 1 else f"{self.per:.15g} {self.plural}"


class Intensity(msgspec.Struct, frozen=True, kw_only=True):
    """I of a component: an emission rate and what it counts.

    Attributes:
        rate: kg/kWh.
        method: Only ``location`` is accepted.
        input_ids: Factors that it is the mean of; ``factor_id`` alone when empty.
    """

    factor_id: str
    rate: Estimate
    method: Method = "location"
    averaging: Averaging = "average"
    input_ids: tuple[str, ...] = ()


class EmbodiedShare(msgspec.Struct, frozen=True, kw_only=True):
    """M of one piece of hardware, with what makes it.

    Attributes:
        total_kg: Embodied emissions of the hardware (TE).
        reserved_h: Hours it is reserved (TR); ``life_h`` those of its expected life (EL).
        reserved: Resources reserved (RR) of ``available`` (ToR): cores, GPUs, requests at once.
        input_ids: Factors of ``total_kg``.
        name: Of the hardware.
        how: Where ``total_kg`` comes from, in words.
    """

    total_kg: Estimate
    reserved_h: float
    life_h: float
    reserved: float = 1.0
    available: float = 1.0
    input_ids: tuple[str, ...] = ()
    name: str = ""
    how: str = ""

    @property
    def kg(self) -> Estimate:
        """M in kg."""
        shares = (self.reserved_h, self.life_h, self.reserved, self.available)
        return through(embodied_share_kg, self.total_kg, *shares, unit="kg")


class Component(msgspec.Struct, frozen=True, kw_only=True):
    """One part of the software boundary over one time.

    Attributes:
        name: Of it.
        energy_kwh: Energy of what was reserved for it, with the PUE (E).
        embodied: Its hardware; none at all means that nobody states it, which is unknown.
        stage: Of the life cycle, for SCI for AI.
        input_ids: Figures or runs of ``energy_kwh``.
    """

    name: str
    energy_kwh: Estimate
    intensity: Intensity
    embodied: tuple[EmbodiedShare, ...] = ()
    stage: str | None = None
    input_ids: tuple[str, ...] = ()

    @property
    def operational_kg(self) -> Estimate:
        """O in kg."""
        return through(emissions_kg, self.energy_kwh, self.intensity.rate, unit="kg")

    @property
    def embodied_kg(self) -> Estimate:
        """M in kg, over its hardware."""
        return add((e.kg for e in self.embodied), "kg") if self.embodied else unknown("kg")


class Sci(msgspec.Struct, frozen=True, kw_only=True):
    """A score and all that it is made of.

    Attributes:
        unit: What it is per.
        components: The software boundary.
        count: Functional units served (R), of all components together.
        operational_kg, embodied_kg: Sums of O and of M.
        score: g CO2e per ``unit``.
    """

    unit: FunctionalUnit
    components: tuple[Component, ...]
    count: Estimate
    operational_kg: Estimate
    embodied_kg: Estimate
    score: Estimate
    findings: tuple[Finding, ...] = ()

    @property
    def total_kg(self) -> Estimate:
        """C in kg: O and M together."""
        return add((self.operational_kg, self.embodied_kg), "kg")

    @property
    def missing(self) -> tuple[str, ...]:
        """Inputs that are unknown, or known in part only, and an R of 0; empty where the score is whole."""
        found = []
        for component in self.components:
            held = (component.energy_kwh, component.intensity.rate, component.embodied_kg)
            for symbol, estimate in zip("EIM", held, strict=True):
                if estimate.state != "known":
                    found.append(
                        f"{symbol} of {component.name}{'' if estimate.value is None else ' in part'}"
                    )
        if self.count.state != "known" or not self.count.value:
            found.append("R")
        return tuple(found)

    @property
    def whole(self) -> Estimate:
        """The score where every input is known, else unknown: a part of a score is none."""
        return self.score if not self.missing else unknown(self.score.unit)

    @property
    def at_least(self) -> Estimate | None:
        """What the inputs that are known come to per unit, where others are missing."""
        is_bound = self.missing and self.count.state == "known" and self.score.value is not None
        return self.score if is_bound else None

    def figures(self, prefix: str) -> tuple[Figure, ...]:
        """Return each component's E, O and M, their sums, R, and the score as figures."""
        each = [f for n, c in enumerate(self.components, 1) for f in _figures(c, f"{prefix}.component_{n}")]
        sums = tuple(
            Figure(
                figure_id=f"{prefix}.{name}",
                estimate=getattr(self, name),
                label=label,
                formula=formula,
                inputs=tuple(f.figure_id for f in each if f.figure_id.endswith(f".{name}")),
            )
            for name, label, formula in (
                ("operational_kg", "operational emissions (O)", "sum of E * I over the components"),
                ("embodied_kg", "embodied emissions (M)", "sum of M over the components"),
            )
        )
        count = Figure(
            figure_id=f"{prefix}.count",
            estimate=self.count,
            label=f"functional units (R): {self.unit.plural}",
        )
        score = Figure(
            figure_id=f"{prefix}.score",
            estimate=self.score,
            label=f"SCI, g CO2e per {self.unit.label}",
            formula="score = (O + M) / R" + ("" if self.unit.per == 1 else f" * {self.unit.per:.15g}"),
            inputs=(*(f.figure_id for f in sums), count.figure_id),
        )
        return *each, *sums, count, score


def mean_intensity(kg: Quantity, kwh: Quantity) -> Quantity:
    """Return I of a component over its hours: location-based kg of each hour's factor, per kWh."""
    return kg / kwh


def g_per_units(kg: Quantity, count: Quantity, per: Quantity) -> Quantity:
    """Return g per so many functional units of emissions C and a count R (ISO/IEC 21031)."""
    return kg_to_g(kg) / count * per


def sci(components: Sequence[Component], count: Estimate, unit: FunctionalUnit) -> Sci:
    """Return the score of a software boundary.

    Args:
        components: All of them, over all times counted; at least one.
        count: Functional units that they served together (R).
        unit: What the score is per.

    Raises:
        UsageError: If there is no component, one has a market-based factor, or an energy or
            an embodied figure is negative, which an offset or a credit would be.
    """
    if not components:
        raise UsageError("a score needs a component", mend="name what the software boundary holds")
    for component in components:
        _check(component)
    operational = add((c.operational_kg for c in components), "kg")
    embodied = add((c.embodied_kg for c in components), "kg")
    unstated = [c.name for c in components if c.embodied_kg.value is None]
    # With O or M unknown the other is a lower bound of both.
    total = add((operational, embodied), "kg")
    score = through(g_per_units, total, count, unit.per, unit=f"g per {unit.label}")
    return Sci(
        unit=unit,
        components=tuple(components),
        count=count,
        operational_kg=operational,
        embodied_kg=embodied,
        score=score,
        findings=(_no_embodied(unstated),) if unstated else (),
    )


def combined(scores: Sequence[Sci]) -> Sci:
    """Return one score of several times: emissions and units added up, then divided.

    Args:
        scores: Per the same unit; at least one.

    Raises:
        IncomparableError: If their units differ.
        UsageError: If there is none.
    """
    units = {(s.unit.name, s.unit.per) for s in scores}
    if len(units) > 1:
        raise IncomparableError(
            f"scores are per {' and '.join(sorted(s.unit.label for s in scores))}",
            mend="combine scores per the same functional unit",
        )
    components = [c for s in scores for c in s.components]
    if not components:
        raise UsageError("there is no score to combine", mend="give at least one")
    return sci(components, add((s.count for s in scores), scores[0].count.unit), scores[0].unit)


def _check(component: Component) -> None:
    if component.intensity.method != "location":
        raise UsageError(
            f"{component.intensity.factor_id} is a {component.intensity.method}-based factor",
            where=component.name,
            mend="SCI takes location-based factors alone; give the grid's",
        )
    held = (component.energy_kwh, component.intensity.rate, *(e.total_kg for e in component.embodied))
    if any(e.value is not None and e.value < 0 for e in held):
        raise UsageError(
            "a negative energy, rate or embodied figure is an offset",
            where=component.name,
            mend="leave offsets and credits out; SCI counts emissions alone",
        )


def _figures(component: Component, prefix: str) -> tuple[Figure, ...]:
    energy = Figure(
        figure_id=f"{prefix}.energy_kwh",
        estimate=component.energy_kwh,
        label=f"{component.name}: energy (E)",
        inputs=component.input_ids,
    )
    operational = Figure(
        figure_id=f"{prefix}.operational_kg",
        estimate=component.operational_kg,
        label=f"{component.name}: operational emissions (O)",
        formula="O = E * I",
        inputs=(energy.figure_id, *(component.intensity.input_ids or (component.intensity.factor_id,))),
    )
    shares = " + ".join(
        f"TE * {e.reserved_h:g}/{e.life_h:g} * {e.reserved:g}/{e.available:g}" for e in component.embodied
    )
    embodied = Figure(
        figure_id=f"{prefix}.embodied_kg",
        estimate=component.embodied_kg,
        label=f"{component.name}: embodied emissions (M)",
        formula=f"M = {shares}" if shares else "",
        inputs=tuple(i for e in component.embodied for i in e.input_ids),
    )
    return energy, operational, embodied


def _no_embodied(names: Sequence[str]) -> Finding:
    return Finding(
        code="CL307",
        severity="warning",
        message=f"embodied emissions of {', '.join(names)} are unknown: the score is a lower bound",
        mend="state embodied kg of the hardware with its source, and the share reserved",
    )
