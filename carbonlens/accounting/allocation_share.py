"""Share: what one run is billed of one device."""

from __future__ import annotations

from decimal import Decimal

import msgspec

from carbonlens.accounting.allocation_claims import Device
from carbonlens.accounting.allocation_contents import Held
from carbonlens.accounting.allocation_sweep import Basis


class Share(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """What one run is billed of one device it read.

    Attributes:
        reading: Place of the reading in ``Run.energy``.
        measured_j: What the run read of the device.
        billed_j: Its part of the device's own energy.
        split_j: Part of ``billed_j`` that rests on dividing the device.
        guessed_j: Part of ``billed_j`` divided in equal parts between runs of
            different steps: nothing measured tells them apart.
        basis: What divided the device.
        named: Whether the reading names the device; a stated total may not.
        held: Part of what was read that other runs are billed, as that of devices
            inside this one; ``None`` where there are none.
    """

    device: Device
    reading: int
    measured_j: Decimal
    billed_j: Decimal
    split_j: Decimal
    guessed_j: Decimal
    basis: Basis
    named: bool
    held: Held | None = None
