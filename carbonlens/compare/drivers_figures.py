"""Figures of drivers: each number with its id, its formula and what it rests on."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from carbonlens.domain.drivers import NO_UNIT, Bridge, Drivers, Part
from carbonlens.domain.estimate import Estimate
from carbonlens.domain.figure import Figure

Leads = Mapping[tuple[str, str, int], tuple[str, ...]]
"""What the figures of a class of work rest on, by unit, class and period (0 the earlier)."""

FORMULAS: Final = {
    "lmdi": "sum over sites of L(after, before) * ln({0} after / {0} before), L the logarithmic mean "
    "(LMDI-I)",
    "shapley": "mean over all orders of what changing {0} adds (Shapley value: a value is negative)",
}
WORDS: Final[Mapping[str, str]] = {
    "volume": "volume of work",
    "mix": "mix of work",
    "place": "place of work",
    "energy": "energy per unit of work",
    "pue": "PUE",
    "grid": "grid intensity",
    "price": "price of electricity",
    "uncounted": "runs that count no work",
    "unattributed": "metered beyond runs",
    "basis": "known in one period only",
}
"""Drivers, and what stands beside them, in words."""

_FACTORS: Final = {
    "volume": "volume",
    "mix": "share of the class in the volume",
    "place": "share of the site in the class",
    "energy": "IT energy per unit",
    "pue": "PUE",
    "grid": "kg per kWh",
    "price": "price per kWh",
    "uncounted": "IT energy",
}


def words(name: str) -> str:
    """Return a driver, or a line beside them, in words."""
    return WORDS.get(name) or name.removeprefix("other:").replace("_", " ")


def drivers_figures(
    drivers: Drivers,
    totals: Mapping[str, tuple[tuple[str, ...], tuple[str, ...]]],
    leads: Mapping[str, Leads],
) -> tuple[Figure, ...]:
    """Return all numbers of drivers as figures.

    Args:
        drivers: With their bridges.
        totals: Ids that each bridge's ends rest on, by its key.
        leads: Of the classes of work, by its key.
    """
    return tuple(
        f
        for b in drivers.bridges
        for f in _of_bridge(b, f"{drivers.prefix}.{b.key}", totals[b.key], leads[b.key])
    )


def _of_bridge(
    bridge: Bridge, at: str, totals: tuple[tuple[str, ...], tuple[str, ...]], leads: Leads
) -> Iterator[Figure]:
    what = bridge.measure.replace("-", ", ") + (", lower bounds" if bridge.is_least else "")
    yield _figure(
        f"{at}.before", bridge.before, f"{what} of the earlier period", "of its statement", totals[0]
    )
    yield _figure(f"{at}.after", bridge.after, f"{what} of the later period", "of its statement", totals[1])
    ends = (f"{at}.before", f"{at}.after")
    yield _figure(f"{at}.change", bridge.change, f"change of {what}", "after less before", ends)
    for effect in bridge.effects:
        held = [p for p in bridge.parts if any(e.name == effect.name for e in p.effects)]
        ids = tuple(f"{at}.unit:{p.unit}.{effect.name}" for p in held)
        formula = "sum over the functional units" if ids else "after less before"
        yield _figure(f"{at}.{effect.name}", effect.change, words(effect.name), formula, ids or ends)
    rest = Estimate(value=bridge.remainder, unit=bridge.unit, signed=True)
    every = (f"{at}.change", *(f"{at}.{e.name}" for e in bridge.effects))
    yield _figure(f"{at}.remainder", rest, "remainder, by rounding", "change less all effects", every)
    for part in bridge.parts:
        own = [c for c in bridge.classes if c.unit == part.unit]
        yield from _of_unit(part, f"{at}.unit:{part.unit}", [str(c.name) for c in own])
    for part in bridge.classes:
        yield from _of_class(part, f"{at}.unit:{part.unit}.class:{part.name}", bridge, leads)


def _of_unit(part: Part, at: str, names: list[str]) -> Iterator[Figure]:
    sums = [("before", part.before), ("after", part.after), *((e.name, e.change) for e in part.effects)]
    for name, estimate in sums:
        label = f"{words(name)} of {_work(part)}"
        ids = tuple(f"{at}.class:{n}.{name}" for n in names)
        yield _figure(f"{at}.{name}", estimate, label, "sum over the classes of work", ids)


def _of_class(part: Part, at: str, bridge: Bridge, leads: Leads) -> Iterator[Figure]:
    for t, (name, estimate) in enumerate((("before", part.before), ("after", part.after))):
        inputs = leads.get((part.unit, str(part.name), t), ())
        formula = "energy of its runs" + (
            "" if bridge.measure == "energy" else ", and factors of their hours"
        )
        yield _figure(f"{at}.{name}", estimate, f"{_work(part)}, {name}", formula, inputs)
        volume = part.volumes[t]
        if volume is not None:
            count = Estimate(value=volume, unit=part.unit)
            runs = tuple(i for i in inputs if i.startswith("runs."))
            yield _figure(f"{at}.volume_{name}", count, f"work {name}", "sum of the runs' units", runs)
    ids = [f"{at}.before", f"{at}.after"]
    ids += [
        f"{at}.volume_{n}" for n, v in zip(("before", "after"), part.volumes, strict=True) if v is not None
    ]
    for effect in part.effects:
        formula = FORMULAS[bridge.method].format(_FACTORS[effect.name])
        yield _figure(
            f"{at}.{effect.name}",
            effect.change,
            f"{words(effect.name)} of {_work(part)}",
            formula,
            tuple(ids),
        )


def _work(part: Part) -> str:
    unit = "uncounted work" if part.unit == NO_UNIT else f"work counted in {part.unit}"
    return unit if part.name is None else f"{part.name}, {unit}"


def _figure(figure_id: str, estimate: Estimate, label: str, formula: str, inputs: tuple[str, ...]) -> Figure:
    return Figure(figure_id=figure_id, estimate=estimate, label=label, formula=formula, inputs=inputs)
