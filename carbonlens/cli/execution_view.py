"""How a run's execution providers are printed: a line or two."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from carbonlens.domain.counting import counted
from carbonlens.domain.estimate import Estimate
from carbonlens.domain.execution import ProviderTime
from carbonlens.domain.run import Run
from carbonlens.reporting import format as fmt

_MOST: Final = 4
_PLACES: Final = 1


def execution_lines(run: Run) -> list[str]:
    """Return what each execution provider did; nothing for a run without a runtime that tells.

    Args:
        run: The run as recorded.
    """
    execution = run.execution
    if not execution:
        return []
    shares = [time.share for time in execution]
    known = [share for share in shares if share is not None]
    if len(known) < len(shares):
        # Providers that are registered need not have run anything.
        names = _listed([time.provider for time in execution])
        timed = any(time.time_s is not None for time in execution)
        return [f"{names}; " + ("shares unknown" if timed else "which ran what is unknown (no profile)")]
    printed = fmt.apportion([100 * share for share in known], _PLACES)
    parts = [_part(time, share) for time, share in zip(execution, printed, strict=True)]
    return [f"{_listed(parts, '; ')} (of {_seconds(execution)} in kernels)"]


def _part(time: ProviderTime, percent: float) -> str:
    nodes = "" if time.nodes is None else f", {counted(time.nodes, 'node')}"
    return f"{time.provider} {fmt.fixed(percent, _PLACES)} %{nodes}"


def _seconds(execution: Sequence[ProviderTime]) -> str:
    total = sum(time.time_s or 0.0 for time in execution)
    return fmt.duration(Estimate(value=total, unit="s")).text


def _listed(texts: Sequence[str], between: str = ", ") -> str:
    more = len(texts) - _MOST
    return between.join(texts[:_MOST]) + (f"{between}{more} more" if more > 0 else "")
