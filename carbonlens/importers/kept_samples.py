"""Which samples of a trace count, where others tell of the rest of its time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from carbonlens.importers.contract import Array, SampleKind

_HALF_US: Final = 0.5
"""Half of the microsecond that times of runs are told in."""


def are_kept(t_us: Array, kept_us: tuple[float, float], kind: SampleKind) -> npt.NDArray[np.bool_]:
    """Return which samples stand in the time that counts.

    Args:
        t_us: Their times, UTC microseconds.
        kept_us: First and last time that counts.
        kind: What they tell. An energy is of the time before its sample: at the first time, another one's.
    """
    half_us = -_HALF_US if kind == "delta" else _HALF_US
    found: npt.NDArray[np.bool_] = (t_us > kept_us[0] - half_us) & (t_us <= kept_us[1] + _HALF_US)
    return found
