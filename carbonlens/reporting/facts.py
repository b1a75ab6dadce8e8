"""Facts: what both sections say of a comparison, with units and ids settled once.

The units, the basis (per million images, a year's volume) and the printed names
are chosen here for the whole report, so that no figure appears in two guises.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

import msgspec

from carbonlens.domain.comparison import (
    Amounts,
    ArmMetrics,
    BreakEven,
    Comparison,
    Effect,
    GateResult,
    StepResult,
)
from carbonlens.domain.estimate import Estimate, unknown
from carbonlens.reporting import format as fmt
from carbonlens.reporting.basis import Basis, per_units
from carbonlens.reporting.content import Phrase, phrase, quoted
from carbonlens.reporting.figures import Entry, FigureBook, change, exact, quotient, reduction
from carbonlens.reporting.metrics import gate_format, is_fraction
from carbonlens.reporting.names import clip, plural, slugs

MODELLED: Final = ("D", "E")
"""Grades whose joules come from a model or a datasheet, not from a sensor."""

_NAME_WIDTH: Final = 40


NO_AMOUNTS: Final = Amounts(
    energy_j=unknown("J"),
    emissions_location_kg=unknown("kg"),
    emissions_market_kg=unknown("kg"),
    embodied_kg=unknown("kg"),
    cost=unknown(""),
)
"""Stands for amounts that are not there."""


class Facts:
    """A comparison with its printed names, scales and figure entries."""

    def __init__(self, comparison: Comparison, book: FigureBook) -> None:
        """Choose units and names for the whole report."""
        self.comparison = comparison
        self.book = book
        study = comparison.study
        self.unit = clip(study.unit, 24)
        self.units = plural(self.unit)
        self.steps = {s.step: s for s in comparison.steps}
        self._slugs = slugs([study.baseline, *self.steps])
        self._names = self._printed_names()
        self.unit_basis = self._unit_basis()
        """Count of units for which amounts per unit are readable."""
        self.basis = self._basis()
        self.energy_scale = fmt.energy_scale(self._largest(lambda m: m.energy_per_unit_j))
        self.cpu_scale = fmt.time_scale(self._largest(lambda m: m.cpu_s_per_unit))
        n = self.basis.multiplier
        self.energy_amount_scale = fmt.energy_scale(self._largest_amount(lambda a: a.energy_j, n))
        currency = next((a.cost.unit for a in self._amounts() if a.cost.value is not None), "")
        self.cost_scale = fmt.money_scale(self._largest_amount(lambda a: a.cost, n), currency)
        masses = (
            self._largest_amount(lambda a: a.emissions_location_kg, n),
            self._largest_amount(lambda a: a.emissions_market_kg, n),
        )
        self.mass_scale = fmt.mass_scale(max((m for m in masses if m is not None), default=None))

    # Names -----------------------------------------------------------------

    def _printed_names(self) -> Mapping[str, str]:
        study = self.comparison.study
        names = {study.baseline: clip(study.baseline_title or study.baseline, _NAME_WIDTH)}
        for step in self.comparison.steps:
            names.setdefault(step.step, clip(step.title or step.step, _NAME_WIDTH))
        return names

    def name(self, step: str) -> str:
        """Return the printed name of a step or of the baseline."""
        return self._names.get(step) or clip(step, _NAME_WIDTH)

    def slug(self, step: str) -> str:
        """Return the id of a step for figure ids."""
        return self._slugs.get(step, "other")

    @property
    def subject(self) -> Phrase:
        """Study and place, as printed in the running head."""
        study = self.comparison.study
        place = self.comparison.vector.place
        words = clip(study.title or study.name, 48)
        return phrase(quoted(words), " · " if place else "", quoted(clip(place, 36) if place else ""))

    # Steps by outcome --------------------------------------------------------

    def with_status(self, *status: str) -> list[StepResult]:
        """Return the steps of a status, in order."""
        return [s for s in self.comparison.steps if s.status in status]

    @property
    def path_steps(self) -> list[StepResult]:
        """Steps whose parts sum to the total: the accepted path, or all players of a lattice."""
        return [self.steps[name] for name in self.comparison.path if name in self.steps]

    @property
    def adopted(self) -> list[StepResult]:
        """Steps to adopt: the accepted path of a ladder, each accepted one of a lattice."""
        return [s for s in self.path_steps if s.status == "accepted"]

    @property
    def alternatives(self) -> list[StepResult]:
        """Accepted steps beside the path, which nobody measured together with it."""
        on_path = set(self.comparison.path)
        return [s for s in self.with_status("accepted") if s.step not in on_path]

    @property
    def is_ladder(self) -> bool:
        """Whether steps stand one on top of another."""
        return self.comparison.mode == "ladder"

    @property
    def has_path(self) -> bool:
        """Whether anything was changed at all, so that there is a before and an after."""
        return bool(self.path_steps) and (self.is_ladder or self.comparison.total is not None)

    @property
    def final(self) -> StepResult | None:
        """Last step of a ladder's accepted path; a lattice has no such step."""
        return self.path_steps[-1] if self.is_ladder and self.path_steps else None

    def reference(self, step: StepResult) -> str:
        """Return the printed name of what a step is compared with."""
        return self.name(step.vs_previous.reference if step.vs_previous else step.measured_on)

    @property
    def has_baseline(self) -> bool:
        """Whether the baseline's energy is known, without which nothing can be saved."""
        base = self.comparison.baseline_amounts
        return base is not None and base.energy_j.value is not None

    @property
    def grade(self) -> str | None:
        """Evidence grade of the baseline's energy."""
        base = self.comparison.baseline_amounts
        return base.energy_j.grade if base else None

    # Basis and scales --------------------------------------------------------

    def _largest(self, pick: Callable[[ArmMetrics], Estimate]) -> float | None:
        arms = [self.comparison.baseline_metrics, *(s.metrics for s in self.comparison.steps)]
        values = [pick(arm).value for arm in arms if arm is not None]
        return max((v for v in values if v is not None), default=None)

    def _amounts(self) -> list[Amounts]:
        """Return the baseline's amounts, else those of the steps."""
        base = self.comparison.baseline_amounts
        if base is not None and base.energy_j.value is not None:
            return [base]
        return [s.amounts for s in self.comparison.steps if s.amounts is not None] or [NO_AMOUNTS]

    @property
    def is_cost_stated(self) -> bool:
        """Whether the money is what the runs themselves state, as no price is given that could make it."""
        c = self.comparison
        amounts = (c.baseline_amounts, c.final_amounts, *(s.amounts for s in c.steps))
        return c.vector.currency is None and any(a is not None and a.cost.value is not None for a in amounts)

    def _largest_amount(self, pick: Callable[[Amounts], Estimate], multiplier: float = 1.0) -> float | None:
        values = [pick(a).value for a in self._amounts()]
        return max((abs(v) * multiplier for v in values if v is not None), default=None)

    def _basis(self) -> Basis:
        study = self.comparison.study
        if self.comparison.basis != "volume" or study.volume_units is None:
            return self.unit_basis
        volume = exact(study.volume_units)
        entry = self.book.enter("study.volume", "volume of the study", volume, fmt.count(volume))
        period = clip(study.volume_period, 24) if study.volume_period else ""
        words = phrase("for ", entry.text, " ", quoted(self.units), " " if period else "", quoted(period))
        return Basis(multiplier=1.0, words=words)

    def _unit_basis(self) -> Basis:
        cost = self._largest_amount(lambda a: a.cost)
        joules = self._largest_amount(lambda a: a.energy_j)
        volume = self.comparison.study.volume_units
        if self.comparison.basis == "volume" and volume:
            # The amounts stand for the whole volume.
            cost, joules = (v and v / volume for v in (cost, joules))
        return per_units(self.unit, cost=cost, joules=joules)

    # Entries -----------------------------------------------------------------

    def amounts(self, prefix: str, amounts: Amounts | None, what: str) -> AmountEntries:
        """Enter all currencies of an amount, on the report's basis.

        Args:
            prefix: Figure id up to the currency, for example ``baseline``.
            amounts: The amounts; unknown ones are entered as unknown.
            what: Words for the labels.
        """
        n = self.basis.multiplier

        def entry(
            name: str, words: str, estimate: Estimate, show: Callable[[Estimate], fmt.Printed]
        ) -> Entry:
            given = estimate.scale(n, estimate.unit)
            return self.book.enter(f"{prefix}.{name}", f"{words} {what}", given, show(given))

        a = amounts or NO_AMOUNTS
        return AmountEntries(
            energy=entry("energy", "energy", a.energy_j, lambda e: fmt.energy(e, self.energy_amount_scale)),
            location=entry(
                "emissions_location", "location-based emissions", a.emissions_location_kg, self._mass
            ),
            market=entry("emissions_market", "market-based emissions", a.emissions_market_kg, self._mass),
            embodied=entry("embodied", "embodied emissions", a.embodied_kg, self._mass),
            cost=entry("cost", "cost", a.cost, self._money),
        )

    def effort(self, prefix: str, amounts: Amounts | None, what: str) -> AmountEntries:
        """Enter the amounts of a piece of work, each in the unit that suits it."""

        def entry(
            name: str, words: str, estimate: Estimate, show: Callable[[Estimate], fmt.Printed]
        ) -> Entry:
            return self.book.enter(f"{prefix}.{name}", f"{words} {what}", estimate, show(estimate))

        a = amounts or NO_AMOUNTS
        return AmountEntries(
            energy=entry("energy", "energy", a.energy_j, fmt.energy),
            location=entry(
                "emissions_location", "location-based emissions", a.emissions_location_kg, fmt.mass
            ),
            market=entry("emissions_market", "market-based emissions", a.emissions_market_kg, fmt.mass),
            embodied=entry("embodied", "embodied emissions", a.embodied_kg, fmt.mass),
            cost=entry("cost", "cost", a.cost, fmt.money),
        )

    def break_even_units(self, row: BreakEven) -> Entry:
        """Enter after how many units an effort is earned back."""
        return self.book.enter(
            f"break_even.{row.measure}.units",
            f"units after which the work is earned back, by {row.measure.replace('_', ' ')}",
            row.units,
            fmt.count(row.units, no_bound="never"),
            formula="effort / saving per unit",
            inputs=(f"break_even.{row.measure}.effort", f"break_even.{row.measure}.saving"),
        )

    def break_even_time(self, row: BreakEven, days: Estimate) -> Entry:
        """Enter after what time at the expected volume an effort is earned back."""
        time = days.scale(fmt.S_PER_DAY, "s")
        return self.book.enter(
            f"break_even.{row.measure}.time",
            f"time after which the work is earned back, by {row.measure.replace('_', ' ')}",
            time,
            fmt.span(time, no_bound="never"),
            formula="units / units a day",
            inputs=(f"break_even.{row.measure}.units",),
        )

    def minimum_detectable(self, step: StepResult) -> Entry:
        """Enter the smallest change that the design would have found."""
        least = step.vs_previous.minimum_detectable if step.vs_previous else None
        # A planning figure, no more exact than its first two digits.
        estimate = exact(None if least is None else float(f"{least:.2g}"))
        return self.book.enter(
            f"step.{self.slug(step.step)}.minimum_detectable",
            f"smallest change of {self.name(step.step)} found with 80 % power",
            estimate,
            fmt.percent(estimate),
        )

    def _money(self, estimate: Estimate) -> fmt.Printed:
        return fmt.money(estimate, self.cost_scale)

    def _mass(self, estimate: Estimate) -> fmt.Printed:
        return fmt.mass(estimate, self.mass_scale)

    def energy_per_unit(self, step: str, estimate: Estimate) -> Entry:
        """Enter the energy of one functional unit on one arm."""
        return self.book.enter(
            f"step.{self.slug(step)}.energy_per_unit",
            f"energy per unit of {self.name(step)}",
            estimate,
            fmt.energy(estimate, self.energy_scale),
        )

    def effect(self, step: StepResult, against: str, effect: Effect | None) -> Entry:
        """Enter the relative change of a step; ``against`` is ``previous`` or ``baseline``."""
        # A ratio of lower bounds bounds nothing.
        known = effect is not None and effect.ratio.state == "known"
        estimate = change(effect.ratio) if effect is not None and known else unknown("1")
        return self.book.enter(
            f"step.{self.slug(step.step)}.change_vs_{against}",
            f"change of energy per unit of {self.name(step.step)} against {against}",
            estimate,
            fmt.percent(estimate, plus=True),
            formula="ratio - 1",
        )

    def reduction(self) -> Entry:
        """Enter the headline: energy the accepted path saves, as a share of the baseline."""
        final, total, base = self.final, self.comparison.total, self.comparison.baseline_amounts
        effect = self.comparison.total_effect
        if effect is None and final is not None:
            effect = final.vs_baseline
        estimate = unknown("1")
        if effect is not None and effect.ratio.state == "known":
            estimate = reduction(effect.ratio)
        elif total is not None and base is not None:
            estimate = quotient(total.energy_j, base.energy_j)
        inputs = () if final is None else (f"step.{self.slug(final.step)}.change_vs_baseline",)
        return self.book.enter(
            "total.reduction_energy",
            "energy saved by the accepted path, as a share of the baseline",
            estimate,
            fmt.percent(estimate),
            formula="1 - ratio",
            inputs=inputs,
        )

    def cost_reduction(self) -> Entry:
        """Enter what is saved of the cost, as a share of the baseline, common errors cancelled."""
        c = self.comparison
        after, before = (a.cost if a else NO_AMOUNTS.cost for a in (c.final_amounts, c.baseline_amounts))
        estimate = reduction(quotient(after, before))
        return self.book.enter(
            "total.reduction_cost",
            "cost saved by the accepted path, as a share of the baseline",
            estimate,
            fmt.percent(estimate),
            formula="1 - final.cost / baseline.cost",
            inputs=("final.cost", "baseline.cost"),
        )

    def carbon_reduction(self) -> Entry:
        """Enter what is saved of the location-based emissions, as a share of the baseline.

        One factor and one PUE hold for all steps, so that it is the share of the
        energy; where they are unknown or a lower bound, so is the share.
        """
        c = self.comparison
        pair = [(a or NO_AMOUNTS).emissions_location_kg for a in (c.final_amounts, c.baseline_amounts)]
        known = all(e.value is not None and e.state == "known" for e in pair)
        estimate = self.reduction().printed.figure.estimate if known else unknown("1")
        return self.book.enter(
            "total.reduction_emissions_location",
            "location-based emissions saved by the accepted path, as a share of the baseline",
            estimate,
            fmt.percent(estimate),
            formula="that of the energy: the same factor on both sides",
            inputs=("total.reduction_energy",),
        )

    def quality(self, step: str, name: str, estimate: Estimate) -> Entry:
        """Enter a quality figure of one arm."""
        return self.book.enter(
            f"step.{self.slug(step)}.quality.{self.metric_slug(name)}",
            f"{clip(name, 24)} of {self.name(step)}",
            estimate,
            fmt.percent(estimate) if self.is_share(name) else fmt.plain(estimate),
        )

    def is_share(self, quality: str) -> bool:
        """Return whether a quality is printed in percent."""
        arms = (self.comparison.baseline_metrics, *(s.metrics for s in self.comparison.steps))
        values = [m.quality[quality].value for m in arms if m is not None and quality in m.quality]
        return is_fraction(quality, values)

    def gate(self, step: str, number: int, gate: GateResult) -> tuple[Entry, Entry]:
        """Enter what a gate observed and its limit."""
        prefix = f"step.{self.slug(step)}.gate{number}"
        limit = exact(gate.limit, gate.observed.unit)
        show = gate_format(gate)
        observed = self.book.enter(
            f"{prefix}.observed",
            f"{clip(gate.name, 40)}: observed on {self.name(step)}",
            gate.observed,
            show(gate.observed),
        )
        return observed, self.book.enter(
            f"{prefix}.limit", f"{clip(gate.name, 40)}: limit", limit, show(limit)
        )

    def metric_slug(self, name: str) -> str:
        """Return the id of a quality name."""
        return slugs([name])[name]


class AmountEntries(msgspec.Struct, frozen=True, kw_only=True):
    """The figure entries of one amount."""

    energy: Entry
    location: Entry
    market: Entry
    embodied: Entry
    cost: Entry
