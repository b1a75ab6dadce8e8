"""Metrics of the Green Metrics Tool: what their names tell, and which of them count.

A name is ``WHAT_energy_PROVIDER_SCOPE``: ``cpu_energy_rapl_msr_component``,
``psu_energy_ac_mcp_machine``. Scopes of containers, slices and formulas are shares or models of
what others tell, and are no energy of their own.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

import msgspec

from carbonlens.domain.units import Boundary, Grade

_NAME: Final = re.compile(r"^([a-z]+)_(energy|power)_([a-z0-9_]+)_(component|machine)$", re.ASCII)
_COMPONENTS: Final = {"cpu": "cpu", "cores": "cpu", "memory": "ram", "gpu": "gpu", "ane": "npu"}
_METERS: Final = frozenset({"gude", "mcp", "powerspy2"})
_MODELS: Final = frozenset({"sdia", "xgboost", "cloudenergy"})
_POLLED: Final = frozenset({"nvml", "powermetrics", "ipmi"})
_COUNTERS: Final = frozenset({"rapl"})
JOULES: Final = {"uj": 1e-6, "mj": 1e-3, "j": 1.0}
WATTS: Final = {"uw": 1e-6, "mw": 1e-3, "w": 1.0}


class Metric(msgspec.Struct, frozen=True):
    """A metric of energy or power.

    Attributes:
        name: As the tool names it.
        what: ``cpu``, ``cores``, ``memory``, ``gpu``, ``ane`` or ``psu``.
        is_power: Whether it tells power.
        providers: Words of the provider, such as ``ac`` and ``mcp``.
        is_machine: Whether it is of the whole machine.
    """

    name: str
    what: str
    is_power: bool
    providers: frozenset[str]
    is_machine: bool

    @property
    def component(self) -> str:
        """Component of its readings."""
        if self.is_machine:
            return "wall" if "ac" in self.providers and not self.is_model else "total"
        return _COMPONENTS.get(self.what, "other")

    @property
    def is_model(self) -> bool:
        """Whether it was computed from load or hardware, and not measured."""
        return bool(self.providers & _MODELS)

    @property
    def grade(self) -> Grade:
        """Evidence grade, by its provider; D for one that is not known."""
        for providers, grade in _GRADES:
            if self.providers & providers:
                return grade
        return "D"

    @property
    def boundary(self) -> Boundary:
        """What its joules include."""
        return "it" if self.is_machine and "ac" in self.providers else "device"

    @property
    def rank(self) -> int:
        """Which kind counts: the lowest that is there."""
        if self.is_model:
            return 3
        if not self.is_machine:
            return 1
        return 0 if "ac" in self.providers else 2


_GRADES: Final[tuple[tuple[frozenset[str], Grade], ...]] = (
    (_MODELS, "D"),
    (_METERS, "A"),
    (_POLLED, "C"),
    (_COUNTERS, "B"),
)


def metric_of(name: str) -> Metric | None:
    """Return a metric of a component's or machine's energy or power; ``None`` for others."""
    found = _NAME.match(name)
    if found is None or (found[4] == "component" and found[1] not in _COMPONENTS):
        return None
    return Metric(name, found[1], found[2] == "power", frozenset(found[3].split("_")), found[4] == "machine")


def counted_of(metrics: Iterable[Metric]) -> set[str]:
    """Return the names of those that count: a measured wall, else components, else a whole, else a model.

    Cores are a part of the CPU and count only without it; power counts only where no energy is.
    """
    every = list(metrics)
    best = min((m.rank for m in every), default=0)
    chosen = [m for m in every if m.rank == best]
    has_energy = any(not m.is_power for m in chosen)
    chosen = [m for m in chosen if m.is_power != has_energy]
    has_cpu = any(m.what == "cpu" for m in chosen)
    chosen = [m for m in chosen if not (m.what == "cores" and has_cpu)]
    return {chosen[0].name} if best in {0, 2, 3} and chosen else {m.name for m in chosen}
