"""Derivations: how each figure of a comparison was made, from its id.

A report enters figures where it prints them; what they rest on follows from the id and the
comparison, and is told here once for all of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import msgspec

from carbonlens.domain.comparison import Comparison
from carbonlens.domain.figure import Figure
from carbonlens.reporting.comparison_figures import COUNT, PER_UNIT
from carbonlens.reporting.figures import exact
from carbonlens.reporting.names import slugs

_AMOUNTS: Final = ("energy", "emissions_location", "emissions_market", "embodied", "cost")
_MEASURES: Final = {
    "energy": "energy",
    "carbon_location": "emissions_location",
    "carbon_market": "emissions_market",
    "cost": "cost",
}
"""Measure of a break-even to the amount it is made of."""

_OF_RUNS: Final = {
    "energy_per_unit": "mean over rounds of joules / units",
    "dynamic_per_unit": "mean over rounds of joules above idle power / units",
    "cpu_per_unit": "mean over rounds of CPU seconds / units",
    "throughput": "units / seconds of wall time",
    "power": "joules / seconds of the rounds",
    "latency_p50": "percentile of the calls of all rounds",
    "latency_p95": "percentile of the calls of all rounds",
    "latency_p99": "percentile of the calls of all rounds",
    "load": "highest load average of the rounds",
    "steal": "sum over rounds of CPU time taken by the hypervisor",
    "peak_memory": "mean over rounds of the largest resident memory",
    "rounds": "count of complete rounds",
    "macs": "as the runs record it",
    "model_size": "as the runs record it",
}
"""Figures of one arm to how they are made of its runs."""


class ArmRuns(msgspec.Struct, frozen=True, kw_only=True):
    """Ids of the runs of one arm: those that measure it, and those that made it."""

    measured: tuple[str, ...] = ()
    effort: tuple[str, ...] = ()


def derived(
    figures: Mapping[str, Figure], comparison: Comparison, arms: Mapping[str, ArmRuns]
) -> tuple[Figure, ...]:
    """Return figures with formula and inputs, and the leaves they rest on.

    Args:
        figures: As a view entered them, by id.
        comparison: They are of.
        arms: Runs by step, the baseline's too.
    """
    rules = _Rules(figures, comparison, arms)
    leaves = _leaves(comparison)
    known = {*figures, *(leaf.figure_id for leaf in leaves)}
    found = []
    for figure in figures.values():
        formula, inputs = rules.of(figure.figure_id)
        # What a view names and does not print cannot be looked up.
        held = figure.inputs if figure.inputs and known.issuperset(figure.inputs) else inputs
        if figure.figure_id.startswith("break_even.") and figure.figure_id.endswith(".units"):
            held = rules.of_one_unit(held, only=".saving")
        found.append(msgspec.structs.replace(figure, formula=figure.formula or formula, inputs=held))
    return *found, *leaves


class _Rules:
    """The rules, over the ids that there are."""

    def __init__(
        self, figures: Mapping[str, Figure], comparison: Comparison, arms: Mapping[str, ArmRuns]
    ) -> None:
        self._figures = figures
        self._comparison = comparison
        self._arms = arms
        study = comparison.study
        self._slugs = slugs([study.baseline, *(s.step for s in comparison.steps)])
        self._names = {slug: name for name, slug in self._slugs.items()}
        self._study = f"study:{study.name}"

    def of(self, figure_id: str) -> tuple[str, tuple[str, ...]]:
        """Return formula and inputs of a figure."""
        if figure_id.endswith(PER_UNIT):
            formula, inputs = self.of(figure_id.removesuffix(PER_UNIT))
            words = formula.removesuffix(" * count of units")
            return words, self.of_one_unit(tuple(i for i in inputs if i != COUNT))
        head, _, rest = figure_id.partition(".")
        if figure_id == COUNT:
            return "chosen so that the amounts are readable", (self._study,)
        if head == "assumption":
            return "as the assumptions state it", ()
        if head == "study":
            return "as the study states it", (self._study,)
        if head == "step":
            slug, _, name = rest.partition(".")
            return self._of_step(self._names.get(slug, slug), slug, name)
        if head in ("baseline", "final"):
            return self._of_end(head, rest)
        if head == "effort":
            return self._of_effort(rest)
        if head == "break_even":
            return self._of_break_even(rest)
        if head == "total":
            return self._of_total(rest)
        if head == "waterfall":
            steps = [i for i in self._figures if i.endswith(".change_vs_baseline")]
            return "sum of the steps", tuple(steps)
        if head == "power":
            return self._of_power(rest)
        if head in ("orders", "conditions"):
            return "over the runs of all arms", self._runs(*self._arms)
        return "of the study's runs", (self._study, *self._runs(*self._arms))

    def of_one_unit(self, ids: tuple[str, ...], only: str = "") -> tuple[str, ...]:
        """Return ids with those of amounts replaced by the amounts of one unit, where these differ."""
        ends = [(i, f"{i}{PER_UNIT}") for i in ids]
        return tuple(one if one in self._figures and i.endswith(only) else i for i, one in ends)

    def _of_step(self, step: str, slug: str, name: str) -> tuple[str, tuple[str, ...]]:
        at = f"step.{slug}"
        if name in _AMOUNTS:
            return self._amount(at, name, step)
        kind, _, rest = name.partition(".")
        if kind == "attribution":
            return self._attribution(step, rest)
        if kind in ("savings", "would_have"):
            return self._saving(step, kind, rest)
        if kind == "break_even":
            measure, _, name = rest.partition(".")
            held = self._held(f"{at}.effort.{_MEASURES.get(measure, measure)}") if name == "effort" else ()
            count = self._held(COUNT) if name != "effort" else ()
            words = "effort of the step" if name == "effort" else "saving of the step per unit"
            words += " * count of units" if count else ""
            return words, (*(held or self._energies(step, self._reference(step))), *count)
        if kind == "effort":
            return self._effort(at + ".effort", rest, self._efforts(step))
        if name == "change_vs_previous":
            return "ratio - 1, mean over rounds", self._energies(step, self._reference(step))
        if name in ("change_vs_baseline", "share_of_baseline"):
            return "ratio - 1, mean over rounds", self._energies(step, self._comparison.study.baseline)
        if name in ("p_holm", "minimum_detectable"):
            return "of the scatter of the change over rounds", self._held(f"{at}.change_vs_previous")
        if kind.startswith("gate") and rest == "limit":
            return "as the study states it", (self._study,)
        if kind.startswith("gate"):
            return "of the step's runs and the baseline's", self._runs(step, self._comparison.study.baseline)
        if kind == "quality":
            return "as the runs record it, over their examples", self._runs(step)
        return _OF_RUNS.get(name, "of the step's runs"), self._runs(step)

    def _saving(self, step: str, kind: str, name: str) -> tuple[str, tuple[str, ...]]:
        other = self._comparison.study.baseline if kind == "savings" else self._reference(step)
        ends = self._held(self._amount_id(other, name), self._amount_id(step, name))
        return f"{name} of {other} - {name} of {step}", ends or self._runs(step, other)

    def _of_end(self, head: str, name: str) -> tuple[str, tuple[str, ...]]:
        baseline = self._comparison.study.baseline
        if name == "share":
            return f"{head} / baseline", self._held("baseline.energy")
        if head == "baseline":
            return self._amount(head, name, baseline)
        last = self._comparison.path[-1] if self._comparison.path else baseline
        if self._comparison.mode != "ladder":
            return "of the set of all optimizations", self._runs(*self._arms)
        at = "baseline" if last == baseline else f"step.{self._slugs.get(last, last)}"
        return "that of the last accepted step", self._held(f"{at}.{name}") or self._runs(last)

    def _of_effort(self, rest: str) -> tuple[str, tuple[str, ...]]:
        whose, _, name = rest.partition(".")
        c = self._comparison
        steps = {
            "baseline": [c.study.baseline],
            "accepted": [s for s in c.path if s != c.study.baseline],
            "rejected": [s.step for s in c.steps if s.step not in c.path],
        }.get(whose, [])
        return self._effort(f"effort.{whose}", name, self._efforts(*steps))

    def _effort(self, prefix: str, name: str, runs: tuple[str, ...]) -> tuple[str, tuple[str, ...]]:
        if name == "energy":
            return "sum over the runs that made it", runs or (self._study,)
        formula, inputs = self._priced(prefix, name)
        return formula, (*inputs, *(runs if name in ("cost", "embodied") else ()))

    def _of_break_even(self, rest: str) -> tuple[str, tuple[str, ...]]:
        measure, _, name = rest.partition(".")
        amount = _MEASURES.get(measure, measure)
        if name == "effort":
            runs = self._efforts(*self._comparison.path) or (self._study,)
            return "effort of the accepted path", self._held(f"effort.accepted.{amount}") or runs
        if name == "saving":
            held = self._held(f"total.savings.{amount}")
            if "study.volume" in self._figures and held:
                count = self._held(COUNT)
                words = "saving of the accepted path / volume" + (" * count of units" if count else "")
                return words, (*held, "study.volume", *count)
            return "saving of the accepted path", held
        if name == "time":
            held = self._held(f"break_even.{measure}.units", "study.volume")
            return "units / units a day", (*held, self._study)
        return "effort / saving", self._held(f"break_even.{measure}.effort", f"break_even.{measure}.saving")

    def _of_total(self, rest: str) -> tuple[str, tuple[str, ...]]:
        kind, _, name = rest.partition(".")
        if kind == "savings":
            ends = self._held(f"baseline.{name}", f"final.{name}")
            return f"baseline.{name} - final.{name}", ends or self._runs(*self._arms)
        if kind == "reduction_emissions_location":
            return "that of the energy", self._held("total.reduction_energy") or self._runs(*self._arms)
        if kind == "reduction_cost":
            return "1 - final.cost / baseline.cost", self._held("baseline.cost", "final.cost") or (
                self._study,
            )
        held = self._held("baseline.energy", "final.energy")
        return "1 - final.energy / baseline.energy", held or self._runs(*self._arms)

    def _attribution(self, step: str, name: str) -> tuple[str, tuple[str, ...]]:
        if self._comparison.mode != "ladder":
            return "mean over orders of what the optimization saves when it is added", self._runs(*self._arms)
        path = self._comparison.path
        before = path[path.index(step) - 1] if step in path[1:] else self._reference(step)
        held = self._held(self._amount_id(before, name), self._amount_id(step, name))
        return f"{name} of the preceding accepted step - {name} of this one", held or self._runs(step, before)

    def _amount(self, prefix: str, name: str, step: str) -> tuple[str, tuple[str, ...]]:
        slug = self._slugs.get(step, step)
        if name == "energy":
            volume = self._held("study.volume") or self._held(COUNT)
            words = "energy_per_unit * volume" if "study.volume" in volume else "energy_per_unit"
            words += " * count of units" if COUNT in volume else ""
            per_unit = self._held(f"step.{slug}.energy_per_unit")
            return words, (*(per_unit or self._runs(step)), *volume)
        formula, inputs = self._priced(prefix, name)
        if name in ("cost", "embodied"):
            count = self._held("study.volume") or self._held(COUNT)
            inputs = (*inputs, *self._held(f"step.{slug}.cpu_per_unit"), *count)
        return formula, inputs or self._runs(step)

    def _priced(self, prefix: str, name: str) -> tuple[str, tuple[str, ...]]:
        energy = f"{prefix}.energy"
        around: tuple[str, ...] = ("",)
        kwh = "energy / 3.6e6"
        metrics = self._comparison.baseline_metrics
        if metrics is None or metrics.boundary != "facility":
            around, kwh = ("pue",), "energy / 3.6e6 * pue"
        if metrics is not None and metrics.boundary == "device" and self._held("assumption.host_overhead"):
            around, kwh = ("host_overhead", "pue"), "energy / 3.6e6 * host_overhead * pue"
        if name == "emissions_location":
            return f"kg = {kwh} * factor", self._with(energy, *around, "grid_location")
        if name == "emissions_market":
            return f"kg = {kwh} * factor", self._with(energy, *around, "grid_market")
        if name == "embodied":
            return "kg = core hours * embodied per core hour", self._held("assumption.embodied")
        formula = f"cost = {kwh} * price + core hours * machine price"
        return formula, self._with(energy, *around, "electricity_price", "machine_price")

    def _with(self, energy: str, *names: str) -> tuple[str, ...]:
        return self._held(energy, *(f"assumption.{n}" for n in names))

    def _energies(self, step: str, reference: str) -> tuple[str, ...]:
        ids = (f"step.{self._slugs.get(s, s)}.energy_per_unit" for s in (step, reference))
        return self._held(*ids) or self._runs(step, reference)

    def _amount_id(self, step: str, name: str) -> str:
        is_baseline = step == self._comparison.study.baseline
        return f"baseline.{name}" if is_baseline else f"step.{self._slugs.get(step, step)}.{name}"

    def _reference(self, step: str) -> str:
        found = [s.measured_on for s in self._comparison.steps if s.step == step]
        return found[0] if found else self._comparison.study.baseline

    def _held(self, *ids: str) -> tuple[str, ...]:
        return tuple(dict.fromkeys(i for i in ids if i in self._figures))

    def _of_power(self, rest: str) -> tuple[str, tuple[str, ...]]:
        slug, name = rest.partition(".")[0], rest.rpartition(".")[2]
        step = self._names.get(slug, slug)
        ids = tuple(f"run:{p.run_id}" for p in self._comparison.power if p.step == step)
        words = {
            "mean": "joules / seconds of the run whose trace is drawn",
            "peak": "highest reading of the run whose trace is drawn",
            "duration": "seconds of the run whose trace is drawn",
            "idle": "joules / seconds of the runs without work",
        }
        return words.get(name, words["mean"]), ids or (self._study,)

    def _runs(self, *steps: str) -> tuple[str, ...]:
        ids = [f"run:{r}" for s in dict.fromkeys(steps) for r in self._arms.get(s, ArmRuns()).measured]
        return tuple(ids) or (self._study,)

    def _efforts(self, *steps: str) -> tuple[str, ...]:
        return tuple(f"run:{r}" for s in steps for r in self._arms.get(s, ArmRuns()).effort)


def _leaves(comparison: Comparison) -> tuple[Figure, ...]:
    """Return factors, prices and PUE as the vector states them."""
    vector = comparison.vector
    found = [
        (
            f.factor_id,
            f.value_kg_per_kwh,
            "kg/kWh",
            f"{f.method}-based factor of {f.zone} {f.period}; {f.source}",
        )
        for f in (vector.location, vector.market)
        if f is not None
    ]
    for price in (vector.electricity, vector.machine):
        if price is not None:
            unit = f"{price.currency}/{price.per}"
            found.append((price.price_id, float(price.amount), unit, f"price; {price.source}"))
    if vector.embodied is not None:
        one = vector.embodied
        found.append(
            (one.factor_id, one.value_kg_per_core_hour, "kg/core_hour", f"embodied emissions; {one.source}")
        )
    if vector.pue is not None:
        found.append(("pue", vector.pue, "1", f"PUE; {vector.pue_source or 'source not stated'}"))
    if vector.host_overhead is not None:
        words = f"host overhead; {vector.host_overhead_source or 'source not stated'}"
        found.append(("host_overhead", vector.host_overhead, "1", words))
    return tuple(Figure(figure_id=i, estimate=exact(v, u), label=words) for i, v, u, words in found)
