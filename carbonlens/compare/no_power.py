"""No power over time: why an arm that asked for a trace has none."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec

from carbonlens.compare.material import Material
from carbonlens.compare.power import billed_w
from carbonlens.domain.comparison import ArmPower, NoPower
from carbonlens.domain.run import Run
from carbonlens.domain.trace import NO_POWER, NO_POWER_SAID

_CORRECTED: Final = "as corrected"
"""Method of a reading that was corrected by hand (``ledger.correcting_energy``)."""

_ENDED: Final = NoPower(
    step="", why="its runs with a trace failed or were cut short", mend="measure it again, to its end"
)
_SHARED: Final = NoPower(
    step="",
    why="the power of its run is of a device that others used too, not of what it is billed",
    mend="measure it alone on the device",
)
_BY_HAND: Final = NoPower(
    step="",
    why="the energy of its run was corrected by hand, and the power that was read is not of it",
    mend="measure it again with a trace",
)
_UNKNOWN: Final = NoPower(
    step="", why="the energy of its run is not known", mend="see carbonlens doctor, and the run's findings"
)


def without_power(material: Material, drawn: Sequence[ArmPower]) -> tuple[NoPower, ...]:
    """Return the arms that asked for a trace and have no power over time all the same, with the reason.

    Args:
        material: The arms with their runs.
        drawn: The arms that have it.
    """
    have = {p.step for p in drawn if p.power_w.value is not None}
    reasons = ((one.step, _why_none(one.all)) for one in material.groups.values() if one.step not in have)
    return tuple(msgspec.structs.replace(why, step=step) for step, why in reasons if why is not None)


def _why_none(runs: Sequence[Run]) -> NoPower | None:
    """Return why no run has a curve of its own; ``None`` where none was asked for a trace."""
    kept = [r for r in runs if r.power is not None]
    ended = [r for r in kept if r.status == "complete" and r.duration_s]
    if ended:
        return _why_not_its_own(ended[0])
    if kept:
        return _ENDED
    noted = next((f for r in runs for f in r.findings if f.code == NO_POWER), None)
    if noted is None:
        return None
    return NoPower(step="", why=noted.message.removeprefix(NO_POWER_SAID), mend=noted.mend or "")


def _why_not_its_own(run: Run) -> NoPower:
    if any(r.method == _CORRECTED for r in run.energy):
        return _BY_HAND  # of a version that left the curve in such a record
    return _UNKNOWN if billed_w(run) is None else _SHARED
