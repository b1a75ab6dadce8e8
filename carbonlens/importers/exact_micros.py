"""Whole millionths of many figures at once, as exact decimals would round them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from carbonlens.importers.contract import Array

_MILLION: Final = 10**6
_FROM_TEXT: Final = 2.0**-53
"""Most by which a float that was read from a text misses it, relative."""

_MOST: Final = 2.0**53


def micros_of(
    values: Array, *, times: int = 1, over: Array | None = None
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.bool_]]:
    """Return ``values x times / over`` in whole millionths, half to even, and where that is sure.

    Not sure is what lies so near to the half of two that the float may stand for either.

    Args:
        values: Floats, each the nearest to the text that was read.
        times: An exact factor.
        over: Divisors, likewise read from texts.
    """
    import numpy as np

    # Wider than a double where the machine has it.
    exact: Any = np.longdouble
    scaled: Any = values.astype(exact) * exact(times) * exact(_MILLION)
    # Three operations round, and each of the texts was rounded once.
    relative: Any = 3 * float(np.finfo(exact).eps) + _FROM_TEXT * 1.01
    if over is not None:
        scaled = scaled / over.astype(exact)
        relative = relative + np.where(over == 1, 0.0, _FROM_TEXT * 1.01)
    within = (np.abs(scaled) < _MOST) & np.isfinite(scaled)
    scaled = np.where(within, scaled, exact(0))
    nearest = np.rint(scaled)
    to_half = np.abs(np.abs(scaled - nearest) - exact(0.5))
    return nearest.astype(np.int64), within & (to_half > np.abs(scaled) * relative)
