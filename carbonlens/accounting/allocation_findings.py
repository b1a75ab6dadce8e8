"""Findings of dividing shared devices, one function a code."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Final

from carbonlens.accounting.allocation_sweep import Basis
from carbonlens.domain.counting import counted
from carbonlens.domain.finding import Finding
from carbonlens.domain.units import J_PER_KWH

WEAKEST_FIRST: Final[tuple[Basis, ...]] = ("equal", "ranks", "cpu_time", "activity")
SPLIT_BY: Final[Mapping[Basis, str]] = {
    "whole": "undivided",
    "activity": "by its activity",
    "cpu_time": "by CPU time",
    "ranks": "equally by rank",
    "equal": "in equal parts",
}
CLOCK_SET_BACK: Final = "CL528"
_MOST_NAMES: Final = 3


def billed_once(
    *, where: str, run_ids: Sequence[str], measured_j: Decimal | int, energy_j: Decimal | int, basis: Basis
) -> Finding:
    """Runs that overlapped read more of a device than it drew; it is billed once.

    Args:
        where: The device.
        run_ids: Runs that overlapped, a run once or more.
        measured_j: Sum of what they read.
        energy_j: What the device drew.
        basis: What divided it; equal heads are a warning, evidence is not.
    """
    ratio = float(energy_j / measured_j) if measured_j else 1.0
    return Finding(
        code="CL320",
        severity="warning" if basis == "equal" else "info",
        message=(
            f"{where} was read by runs that overlap ({named(run_ids)}): together {_kwh(measured_j)}, "
            f"its own {_kwh(energy_j)}; scaled by {ratio:.3g}, {SPLIT_BY[basis]}"
        ),
        mend=(
            "keep the device to one run, or record own shares (NVML process utilisation); "
            "leave host out of a table whose energies are each run's own"
            if basis == "equal"
            else None
        ),
        subject=where,
    )


def parts_of_a_whole(  # noqa: PLR0913  # the facts of one message, all by name
    *,
    component: str,
    host: str,
    wholes: Sequence[str],
    parts: Sequence[str],
    held_j: Decimal | int,
    excess_j: Decimal | int,
    sure: bool,
) -> Finding:
    """Some runs read the whole of a host while others read parts of it; each joule is billed once.

    Args:
        component: ``wall``, ``total`` or a device that was divided (MIG).
        host: Its id.
        wholes: Runs that read the whole.
        parts: Runs that read what lies inside.
        held_j: What these are billed of the whole's energy.
        excess_j: How much more than the whole they read, which contradicts it.
        sure: Whether it is known that the parts lie inside.
    """
    what = {"wall": "whole machine", "total": "whole module"}.get(component, f"whole {component}")
    inside = "devices" if component in {"wall", "total"} else "parts"
    both = (
        f"the {what} of host {host} was read by {named(wholes)}, and {inside} of it by runs that "
        f"overlap ({named(parts)}): {_kwh(held_j)} of the {component} reading is billed to those, "
        "the rest to the former"
    )
    if excess_j:
        return Finding(
            code="CL327",
            severity="warning",
            message=f"{both}; but the parts read {_kwh(excess_j)} more than the whole: a meter is wrong",
            mend="calibrate one meter against the other (`carbonlens calibrate`), or use one for all runs",
            subject=host,
        )
    if not sure:
        return Finding(
            code="CL326",
            severity="warning",
            message=f"{both}; nothing says that the {component} reading includes those devices: its "
            "interval holds both cases",
            mend="measure all runs of a host with the same sensors",
            subject=host,
        )
    return Finding(code="CL325", severity="info", message=both, subject=host)


def whole_beside_parts(host: str, run_ids: Sequence[str]) -> Finding:
    """Runs whose readings include more than those of the whole machine, cooling for one.

    Args:
        host: Its id.
        run_ids: These runs.
    """
    return Finding(
        code="CL324",
        severity="warning",
        message=f"runs whose energy includes more than the machine's own ({named(run_ids)}) overlap others "
        f"that read all of host {host}: their joules stand in both, and a total over them counts them twice",
        mend="measure all runs of a host with the same sensors",
        subject=host,
    )


def one_meter(component: str, meter: str, host: str, run_ids: Sequence[str]) -> Finding:
    """Runs whose energy holds the readings of two meters of one whole; one is billed.

    Args:
        component: ``wall`` or ``total``.
        meter: Device of the readings that are billed nothing.
        host: Its id.
        run_ids: These runs.
    """
    what = "the machine" if component == "wall" else "the module"
    return Finding(
        code="CL328",
        severity="warning",
        message=f"the energy of {named(run_ids)} holds {what} of host {host} twice: {meter} is another meter "
        "of it and is billed nothing",
        mend="measure again: this version keeps one meter of a whole in the energy, and others beside it",
        subject=host,
    )


def clock_set_back(run_ids: Sequence[str]) -> Finding:
    """Runs begin before the ones that they name, which nothing can: a clock was set back meanwhile.

    Args:
        run_ids: These runs.
    """
    count = counted(len(run_ids), "run")
    begin = "begins" if len(run_ids) == 1 else "begin"
    return Finding(
        code=CLOCK_SET_BACK,
        severity="warning",
        message=f"{count} ({named(run_ids)}) {begin} before the run named as the parent, by a clock "
        "that was set back: taken to begin together with it",
        mend="keep the clock of the machine in step (NTP)",
        subject=run_ids[0],
    )


def named(run_ids: Sequence[str]) -> str:
    """Return a few ids and how many more there are.

    Args:
        run_ids: At least one; repeats count once.
    """
    once = list(dict.fromkeys(run_ids))
    shown = ", ".join(once[:_MOST_NAMES])
    return shown if len(once) <= _MOST_NAMES else f"{shown} and {len(once) - _MOST_NAMES} more"


def _kwh(joules: Decimal | int) -> str:
    value = float(joules)
    return f"{value / J_PER_KWH:.3g} kWh" if value >= J_PER_KWH / 1000 else f"{value:.4g} J"
