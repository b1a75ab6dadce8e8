"""Claims: which readings of a run are of a device that others may share, and in what terms.

A reading of a process's own time or memory is one of a device too where the record says
which process it is of: windows of one process that overlap each read all of it.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable
from decimal import Decimal
from typing import Final, NamedTuple

from msgspec.structs import replace

from carbonlens.accounting.allocation_bounds import apportion
from carbonlens.accounting.allocation_sweep import Claim
from carbonlens.domain.run import Reading, Run
from carbonlens.domain.units import US_PER_S

WHOLES: Final = ("total", "wall")
"""Components that hold others, the inner first; without a named device they are the host's own."""

_LARGEST: Final = Decimal(10) ** 18
_LEAST_COVERAGE: Final = 0.01
_COMPLETE: Final = Decimal("0.99")
"""Share of a window from which on a meter calls its reading whole."""

_BY_CPU_TIME: Final = frozenset({"cpu", "ram"})


class Device(NamedTuple):
    """A device of one host, as far as readings tell devices apart."""

    host_id: str
    component: str
    device: str


class Entry(NamedTuple):
    """A claim with where it came from.

    Attributes:
        device: ``None`` for a reading that is not divided: the work's alone.
        named: Whether the reading names the device; a stated total may not.
    """

    device: Device | None
    run: Run
    reading: int
    named: bool
    claim: Claim


def entries(run: Run, machine: str | None = None) -> Iterable[Entry]:
    """Yield a claim per device or process that the run read whole, and one per reading of its work alone.

    Args:
        run: Without host or times it has none.
        machine: Id under which the host's devices are divided; its own by default.
    """
    start, end, host = run.start_us, run.end_us, machine or run.host_id
    if not host or start is None or end is None or end <= start:
        return
    for place, reading in enumerate(run.energy):
        energy = reading.energy_j
        if energy is None or not is_storable(energy):
            continue
        devices: tuple[str, ...] = () if reading.divided else tuple(dict.fromkeys(reading.devices))
        named = bool(devices) or reading.component == "wall"
        if not devices and not reading.divided and reading.component in WHOLES:
            devices = (reading.component,)
        if not devices and run.process is not None and not reading.divided and _is_of_process(reading):
            # What includes more is another figure than what includes less: they do not divide each other.
            name = f"process {run.process} ({reading.boundary or 'no boundary stated'})"
            process = Device(host, reading.component, name)
            # Each window holds the CPU seconds of the whole process: they divide nothing.
            yield Entry(process, run, place, True, replace(claim_of(run, reading, energy), cpu_per_us=None))
            continue
        if not devices:
            yield Entry(None, run, place, False, claim_of(run, reading, energy))
            continue
        # A reading of several devices does not tell them apart: equal parts.
        parts = [energy] if len(devices) == 1 else apportion([energy / len(devices)] * len(devices), energy)
        for device, part in zip(devices, parts, strict=True):
            yield Entry(
                Device(host, reading.component, device), run, place, named, claim_of(run, reading, part)
            )


def _is_of_process(reading: Reading) -> bool:
    return reading.component in _BY_CPU_TIME


def claim_of(run: Run, reading: Reading, energy: Decimal) -> Claim:
    """Return a claim of some of a reading's energy, over the run's window.

    Args:
        run: With both times.
        reading: One of its own.
        energy: What is claimed, in joules.
    """
    hours = run.energy_by_hour
    return Claim(
        run_id=run.run_id,
        start_us=run.start_us or 0,
        end_us=run.end_us or 0,
        energy_j=energy,
        hours=tuple((h.hour_utc, h.energy_j) for h in hours if h.component == reading.component)
        if len(hours) > 1
        else (),
        coverage=_coverage(run, reading),
        complete=_is_complete(run, reading),
        share=_own_share(run, reading),
        cpu_per_us=_cpu_per_us(run, reading),
        job=run.job_id if run.rank is not None else None,
        label=_label(run),
    )


def is_storable(energy: Decimal) -> bool:
    """Tell whether joules are a number that a ledger can hold; damaged ones are left as they are."""
    return energy.is_finite() and 0 <= energy < _LARGEST


def _coverage(run: Run, reading: Reading) -> Decimal:
    window_s = ((run.end_us or 0) - (run.start_us or 0)) / US_PER_S
    covered_s = window_s if reading.covered_s is None else reading.covered_s
    # A reading of nearly nothing keeps some weight: there may be no other.
    return Decimal(min(max(covered_s / window_s, _LEAST_COVERAGE), 1.0))


def _is_complete(run: Run, reading: Reading) -> bool:
    """Tell whether the device drew no more in the window than was read."""
    if reading.covered_s is None:
        return reading.state == "known"
    return _coverage(run, reading) >= _COMPLETE


def _own_share(run: Run, reading: Reading) -> Decimal | None:
    share = reading.own_share
    if share is not None and math.isfinite(share):
        return Decimal(str(min(max(share, 0.0), 1.0)))
    # An idle run watches: it takes nothing from those that work.
    return Decimal(0) if run.role == "idle" else None


def _cpu_per_us(run: Run, reading: Reading) -> Decimal | None:
    seen = run.conditions
    if reading.component not in _BY_CPU_TIME or seen is None or seen.cpu_s is None:
        return None
    if not (math.isfinite(seen.cpu_s) and seen.cpu_s >= 0):
        return None
    return Decimal(str(seen.cpu_s)) / ((run.end_us or 0) - (run.start_us or 0))


def _label(run: Run) -> Hashable:
    if run.study is not None:
        return run.study, run.step if run.step is not None else run.on
    return ("job", run.job_id) if run.job_id is not None and run.rank is not None else ("run", run.run_id)
