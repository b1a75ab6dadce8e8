"""Execution: which execution provider did how much of a run's work."""

from __future__ import annotations

import msgspec


class ProviderTime(msgspec.Struct, frozen=True, kw_only=True):
    """What one execution provider of a runtime did.

    Attributes:
        provider: As the runtime names it, for example ``CPUExecutionProvider``.
        nodes: Operators (nodes of the graph) it ran; ``None`` when not told.
        time_s: Seconds in its kernels, summed over calls; ``None`` without a profile.
        share: Part of all kernels' time, 0 to 1; ``None`` without a profile.
    """

    provider: str
    nodes: int | None = None
    time_s: float | None = None
    share: float | None = None
