"""Power curve of the CPU packages alone, and how a known TDP sharpens both curves.

SPECpower watts are a whole server's at the plug. A figure to be added to those of
other devices needs the package's own: its thermal design power (TDP) times the shape
that public RAPL profiles have (``signals.cpu_curve``).
"""

from __future__ import annotations

import math
from typing import Final

import msgspec

from carbonlens.domain.finding import Finding
from carbonlens.domain.sources import MOST_TDP_W
from carbonlens.metering.cpu_families import Processor, row_for, this_processor
from carbonlens.metering.cpu_names import cores_in
from carbonlens.metering.cpu_table import DEFAULT, SOURCE, TDP_SOURCE, WALL_FULL, WALL_IDLE, Row
from carbonlens.metering.sensors import SensorInfo
from carbonlens.signals.cpu_curve import TDP_SHARES, TDP_SHARES_SPREAD
from carbonlens.signals.cpu_model import CpuCurve

_SHAPE: Final = f"{TDP_SHARES.idle:.0%} idle to {TDP_SHARES.full:.0%} full by public load profiles"
_THREADS_A_CORE: Final = 2
"""Of EPYC and Threadripper, whose names alone state their cores."""


class Tdp(msgspec.Struct, frozen=True, kw_only=True):
    """Thermal design power of one CPU package.

    Attributes:
        watts: The power.
        source: Who says so, as printed.
        name: The CPU it is of; ``None`` when only the user knows.
        threads: Hardware threads of one package; ``None`` asks the processor.
    """

    watts: float
    source: str
    name: str | None = None
    threads: int | None = None


def family_curve(processor: Processor) -> CpuCurve:
    """Return the package's curve of a processor's family, else of all families (``known=False``).

    Its spread joins that of the family's TDP a thread and that of the shape.
    """
    row = row_for(processor)
    known = row is not None and row.tdp_w is not None
    used: Row = row if row is not None and known else DEFAULT
    return _shaped(
        used.tdp_w or 0.0,
        family=used.family,
        tdp_spread=used.tdp_spread,
        n=used.tdp_n,
        source=f"{TDP_SOURCE}, {_SHAPE}",
        known=known,
    )


def stated_curve(tdp: Tdp, processor: Processor | None = None) -> CpuCurve | None:
    """Return the package's curve from its TDP.

    Args:
        tdp: Of one package.
        processor: Whose threads share it; this machine's by default.

    Returns:
        ``None`` where nobody knows over how many threads the power spreads, or where it
        is no package's power.
    """
    if not 0 < tdp.watts <= MOST_TDP_W:
        return None
    threads = tdp.threads or package_threads(processor or this_processor(), tdp.name)
    if not threads:
        return None
    return _shaped(
        tdp.watts / threads,
        family=_family(tdp, threads),
        tdp_spread=0.0,
        n=1,
        source=f"TDP {tdp.watts:g} W over {threads} threads ({tdp.source}), {_SHAPE}",
        known=True,
    )


def better_curve(info: SensorInfo, tdp: Tdp, processor: Processor | None = None) -> SensorInfo:
    """Return the CPU model's description with what a TDP improves.

    The package's own curve follows the TDP. So does the server's where its family is
    unknown: published servers draw about as much at the plug as their TDP, which says
    more than the average over all of them. What a calibration measured stays.

    Args:
        info: Description of the CPU model, as recorded with a run.
        tdp: Of one package.
        processor: The machine's; this one's by default.
    """
    device = stated_curve(tdp, processor)
    if device is None or info.curve is None:
        return info
    changed = info
    if info.device_curve is None or not info.device_curve.measured:
        changed = msgspec.structs.replace(changed, device_curve=device)
    if not info.curve.known:
        server = _server_curve(tdp, device)
        changed = msgspec.structs.replace(changed, curve=server, method=method_of(server))
    return changed


def unusable_tdp(tdp: Tdp, processor: Processor | None = None) -> Finding | None:
    """Return why a declared TDP changes nothing; ``None`` if it can be used.

    Args:
        tdp: Of one package.
        processor: The machine's; this one's by default.
    """
    if stated_curve(tdp, processor) is not None:
        return None
    if not 0 < tdp.watts <= MOST_TDP_W:
        return Finding(
            code="CL150",
            severity="warning",
            message=f"the TDP of {tdp.watts:g} W ({tdp.source}) is not used: no CPU package has it",
            mend=f"declare the watts of one package as cpu_tdp_w, {MOST_TDP_W:g} at most",
            subject="energy.cpu",
        )
    return Finding(
        code="CL150",
        severity="warning",
        message=f"the TDP of {tdp.watts:g} W ({tdp.source}) is not used: "
        "this machine does not tell over how many hardware threads a package spreads it",
        mend="declare cpu_threads, the hardware threads of one package, beside cpu_tdp_w",
        subject="energy.cpu",
    )


def method_of(curve: CpuCurve) -> str:
    """Return how a figure on a curve of the whole server was made, as printed."""
    return (
        f"CPU time x {curve.full_w_per_thread:.3g} W a thread, "
        f"{curve.idle_w_per_thread:.3g} W of it own share of idle "
        f"({curve.family}, whole server; {curve.source})"
    )


def package_threads(processor: Processor, name: str | None = None) -> int | None:
    """Return the hardware threads of one package; ``None`` where they cannot be known.

    A virtual machine sees its own share of a package, not the package: there only a
    name that states its cores tells.

    Args:
        processor: As the kernel describes it.
        name: The model's full name, where another one is known.
    """
    if not processor.virtual:
        return processor.siblings
    cores = cores_in(processor.name or "") or cores_in(name or "")
    return None if cores is None else cores * _THREADS_A_CORE


def _shaped(tdp_w: float, *, family: str, tdp_spread: float, n: int, source: str, known: bool) -> CpuCurve:
    return CpuCurve(
        family=f"{family} (package)",
        idle_w_per_thread=_rounded(tdp_w * TDP_SHARES.idle),
        full_w_per_thread=_rounded(tdp_w * TDP_SHARES.full),
        spread=math.hypot(TDP_SHARES_SPREAD, tdp_spread),
        n=n,
        source=source,
        known=known,
    )


def _server_curve(tdp: Tdp, device: CpuCurve) -> CpuCurve:
    a_thread = device.full_w_per_thread / TDP_SHARES.full
    return msgspec.structs.replace(
        device,
        family=device.family.removesuffix(" (package)"),
        idle_w_per_thread=_rounded(a_thread * WALL_IDLE.ratio),
        full_w_per_thread=_rounded(a_thread * WALL_FULL.ratio),
        spread=WALL_FULL.spread,
        n=DEFAULT.tdp_n,
        source=f"TDP {tdp.watts:g} W ({tdp.source}) x {WALL_FULL.ratio} at the plug by {SOURCE}",
    )


def _family(tdp: Tdp, threads: int) -> str:
    return tdp.name or f"{tdp.watts:g} W over {threads} threads"


def _rounded(watts: float) -> float:
    # Six digits are plenty for a figure of grade D, and keep the stored record short.
    return float(f"{watts:.6g}")
