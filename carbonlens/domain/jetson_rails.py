"""Jetson rails: which of a module's power rails is its input, and what the others feed.

An NVIDIA Jetson measures its supply at a few points. On some modules one of them is the
input, which holds all others: summing it with them counts twice (jetson_stats issue 51).
On the AGX modules there is none, and the sum of the rails is the module; their 5 V rail is
one of them and not the total (jetson_stats issue 344). Live sensors and importers of
``tegrastats`` logs both ask here.

Sources: NVIDIA Jetson Linux Developer Guide, "Software-Based Power Consumption Modeling";
the Linux device trees tegra194-p2888, tegra234-p3701 and tegra234-p3767 (labels);
jetson_stats issues 51 and 344 and pull request 900; NVIDIA forum topics 73608, 81016,
200883 and 366461; Jetson AGX Xavier design guide DG-09840, section 5.6.2.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Final

import msgspec


class Rail(msgspec.Struct, frozen=True, kw_only=True):
    """One point of measurement.

    Attributes:
        name: Label, as the kernel and ``tegrastats`` print it.
        component: ``total`` for the module's input; ``cpu``, ``gpu``, ``npu``, ``ram``;
            ``soc`` and ``io`` for the fabric and the interfaces; several joined by
            ``+`` where one rail feeds them and cannot be told apart.
        holds: What it feeds, where its name says less.
    """

    name: str
    component: str
    holds: str = ""


class Module(msgspec.Struct, frozen=True, kw_only=True):
    """One kind of module.

    Attributes:
        title: Its name.
        rails: All it may have.
        needed: Rails without which the sum is not the module, where there is no input rail.
        boards: Part numbers in the device tree's ``compatible``.
        model: Pattern that its device-tree ``model`` matches.
        caveat: What must be said of a figure from it.
    """

    title: str
    rails: tuple[Rail, ...]
    needed: tuple[str, ...] = ()
    boards: tuple[str, ...] = ()
    model: str = ""
    caveat: str = ""


class Layout(msgspec.Struct, frozen=True, kw_only=True):
    """What a set of rails amounts to.

    Attributes:
        title: Of the module; ``unknown module`` when it is not recognised.
        total: The rail that holds all others; ``None`` when their sum is the module.
        parts: The others that are known, in the order given.
        ignored: Rails left out, each with the reason.
        whole: Whether ``total``, or the sum of ``parts``, is the module's power.
        missing: Rails that would be needed for that.
        caveat: What must be said of a figure from it.
    """

    title: str
    total: Rail | None
    parts: tuple[Rail, ...]
    ignored: tuple[tuple[str, str], ...]
    whole: bool
    missing: tuple[str, ...] = ()
    caveat: str = ""

    @property
    def rails(self) -> tuple[Rail, ...]:
        """The rails to read, the total first."""
        return ((self.total,) if self.total is not None else ()) + self.parts


_IN: Final = Rail(name="VDD_IN", component="total", holds="the module's input")

_NX_RAILS: Final = (
    _IN,
    Rail(name="VDD_CPU_GPU_CV", component="cpu+gpu+npu", holds="CPU, GPU and the DLA and PVA accelerators"),
    Rail(name="VDD_CPU_GPU", component="cpu+gpu"),
    Rail(name="VDD_SOC", component="soc"),
)

_TX2_RAILS: Final = (
    _IN,
    Rail(name="VDD_SYS_CPU", component="cpu"),
    Rail(name="VDD_CPU", component="cpu"),
    Rail(name="VDD_SYS_GPU", component="gpu"),
    Rail(name="VDD_GPU", component="gpu"),
    Rail(name="VDD_CPU_GPU", component="cpu+gpu"),
    Rail(name="VDD_SYS_SOC", component="soc"),
    Rail(name="VDD_SOC", component="soc"),
    Rail(name="VDD_SYS_DDR", component="ram"),
    Rail(name="VDD_DDR", component="ram"),
    Rail(name="VDD_4V0_WIFI", component="io"),
    Rail(name="VDD_WIFI", component="io"),
)

_XAVIER_RAILS: Final = (
    Rail(name="GPU", component="gpu"),
    Rail(name="CPU", component="cpu"),
    Rail(name="SOC", component="soc"),
    Rail(name="CV", component="npu", holds="the DLA and PVA accelerators"),
    Rail(name="VDDRQ", component="ram"),
    Rail(name="SYS5V", component="io", holds="the 5 V supply of interfaces, not the module's total"),
)

_ORIN_RAILS: Final = (
    Rail(name="VDD_GPU_SOC", component="gpu", holds="GPU and the SoC's fabric and engines"),
    Rail(name="VDD_CPU_CV", component="cpu", holds="CPU and the DLA and PVA accelerators"),
    Rail(name="VIN_SYS_5V0", component="io", holds="the 5 V supply of interfaces, not the module's total"),
    Rail(name="VDDQ_VDD2_1V8AO", component="ram"),
)

_THOR_RAILS: Final = (
    Rail(name="VIN", component="total", holds="the board's input, carrier board included"),
    Rail(name="VDD_GPU", component="gpu"),
    Rail(name="VDD_CPU_SOC_MSS", component="cpu", holds="CPU, SoC and memory controller"),
    Rail(name="VIN_SYS_5V0", component="io", holds="the 5 V supply of interfaces, not the module's total"),
)

MODULES: Final = (
    Module(
        title="Jetson Nano",
        rails=(
            Rail(name="POM_5V_IN", component="total", holds="the board's 5 V input"),
            Rail(name="POM_5V_GPU", component="gpu"),
            Rail(name="POM_5V_CPU", component="cpu"),
            # The 2 GB board and later releases name the input as the larger modules do.
            _IN,
        ),
        boards=("p3448", "p3450", "p3541", "jetson-nano"),
        model=r"jetson[- ]nano",
    ),
    Module(title="Jetson TX1", rails=_TX2_RAILS, boards=("p2180", "p2371", "jetson-tx1"), model=r"tx1\b"),
    Module(title="Jetson TX2", rails=_TX2_RAILS, boards=("p3310", "p3489", "p3636", "p2771"), model=r"tx2\b"),
    Module(title="Jetson Xavier NX", rails=_NX_RAILS, boards=("p3668",), model=r"xavier nx"),
    Module(
        title="Jetson AGX Xavier",
        rails=_XAVIER_RAILS,
        needed=tuple(r.name for r in _XAVIER_RAILS),
        boards=("p2888", "p2972"),
        model=r"agx xavier|jetson-agx$",
    ),
    Module(
        title="Jetson AGX Orin",
        rails=_ORIN_RAILS,
        needed=("VDD_GPU_SOC", "VDD_CPU_CV", "VIN_SYS_5V0"),
        boards=("p3701",),
        model=r"\b(agx|igx) orin\b",
        caveat="the 5 V rail may hold the memory's (some 5 % of the module): then the sum is that much high",
    ),
    Module(
        title="Jetson Orin NX or Orin Nano",
        rails=_NX_RAILS,
        boards=("p3767",),
        model=r"\borin (nx|nano)\b",
    ),
    Module(
        title="Jetson Thor",
        rails=_THOR_RAILS,
        needed=("VDD_GPU", "VDD_CPU_SOC_MSS", "VIN_SYS_5V0"),
        boards=("p3834", "tegra264"),
        model=r"\bthor\b",
        caveat="VIN is measured on the carrier board and holds what hangs on it",
    ),
)
"""Modules, the AGX before the smaller of its family, which it can play."""

_NOT_CONNECTED: Final = "not connected"
_SUM: Final = "a sum of shunt voltages, no rail"
_CARRIER: Final = "of the carrier board or unknown: it may hold other rails"
_SIGNATURES: Final = (
    ("POM_5V_IN", "Jetson Nano"),
    ("VDD_GPU_SOC", "Jetson AGX Orin"),
    ("VDD_CPU_SOC_MSS", "Jetson Thor"),
    ("SYS5V", "Jetson AGX Xavier"),
    ("VDD_CPU_GPU_CV", "Jetson Orin NX or Orin Nano"),
    ("VDD_SYS_CPU", "Jetson TX2"),
    ("VDD_IN", "Jetson TX2"),
)
"""Rails that only some modules have, where nothing else tells the module (a log has no device tree)."""


def module_of(model: str | None, compatible: Iterable[str] = ()) -> Module | None:
    """Return the module a device tree names; ``None`` for another machine.

    An AGX Orin kit that plays a smaller module keeps its own rails: its ``compatible``
    names its own board before the one it plays.

    Args:
        model: Text of ``/proc/device-tree/model``.
        compatible: Entries of ``/proc/device-tree/compatible``, the most special first.
    """
    for entry in compatible:
        for word in entry.lower().replace("+", ",").replace("-as-", ",").split(","):
            for module in MODULES:
                if any(word == b or word.startswith(f"{b}-") for b in module.boards):
                    return module
    text = (model or "").strip().lower()
    return next((m for m in MODULES if re.search(m.model, text)), None)


def layout(names: Sequence[str], module: Module | None = None) -> Layout:
    """Return which rail is the total, which are parts, and what is left out.

    Args:
        names: Labels as found; one that comes twice counts once.
        module: The module, where it is known; else it is told by its rails.
    """
    present = list(dict.fromkeys(names))
    if module is None or not any(r.name in present for r in module.rails):
        module = _by_rails(present) or module
    known = {} if module is None else {r.name: r for r in module.rails}
    found = [known[n] for n in present if n in known]
    total = next((r for r in found if r.component == "total"), None)
    # The Nano table has two names for one input: a second total is no part.
    parts = tuple(r for r in found if r.component != "total")
    ignored = [(n, _why_ignored(n)) for n in present if n not in known]
    ignored += [
        (r.name, "another name of the input") for r in found if r.component == "total" and r is not total
    ]
    missing = () if total is not None or module is None else _missing(module, present)
    return Layout(
        title="unknown module" if module is None else module.title,
        total=total,
        parts=parts,
        ignored=tuple(ignored),
        whole=total is not None or (bool(parts) and not missing),
        missing=missing,
        caveat="" if module is None else module.caveat,
    )


def is_rail(name: str) -> bool:
    """Tell whether a label names something that is measured."""
    return not _is_unconnected(name) and "sum of shunt" not in name.lower()


def _missing(module: Module, present: Sequence[str]) -> tuple[str, ...]:
    needed = module.needed or tuple(r.name for r in module.rails if r.component == "total")[:1]
    return tuple(n for n in needed if n not in present)


def _by_rails(names: Sequence[str]) -> Module | None:
    for name, title in _SIGNATURES:
        if name in names:
            return next(m for m in MODULES if m.title == title)
    return None


def _is_unconnected(name: str) -> bool:
    return not name.strip() or name.strip().upper() == "NC"


def _why_ignored(name: str) -> str:
    if _is_unconnected(name):
        return _NOT_CONNECTED
    return _CARRIER if is_rail(name) else _SUM
