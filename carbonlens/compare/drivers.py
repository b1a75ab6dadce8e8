"""Decomposition: the change of a product split into what each of its factors did.

LMDI-I, additive (Ang 2005, Energy Policy 33, 867-871): ``dV_k = sum over rows of
L(V1, V0) ln(x_k1 / x_k0)`` with the logarithmic mean ``L``. Zeros by their analytic limits
(Ang & Liu 2007, Energy Policy 35, 238-246): a row whose product is zero in one period gives
all of it to the factors that are zero there, in equal shares. A factor that does not exist
where there is no work (energy per unit of no units) is taken as unchanged. With a negative value
there is no logarithm: the change is then split by Shapley values over the factors.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final, Protocol

from carbonlens.compare.lattice import shapley_weights
from carbonlens.domain.drivers import Method

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray[Any, Any]

_SMALL: Final = 1e-4
"""Log ratios from here down are taken by the series of the limit, which loses no digits."""


class Split(Protocol):
    """A change split by factor, for each row."""

    @property
    def method(self) -> Method:
        """How it was split."""
        ...

    def effect(self, k: int) -> Array:
        """Return what factor ``k`` changed, a number a row."""
        ...

    def slopes(self, j: int, t: int, weights: Array, rows: Array | None = None) -> Iterator[Array]:
        """Yield how each effect moves with ``ln`` of factor ``j`` in period ``t``, times weights.

        An array holds until the next one is asked for.

        Args:
            j: Factor that moves.
            t: Period in which it does: 0 before, 1 after.
            weights: A number for each of the rows.
            rows: Which; all in their order when ``None``.
        """
        ...


def log_mean(a: Array, b: Array) -> Array:
    """Return the logarithmic mean of two positive arrays: ``(a - b) / (ln a - ln b)``, ``a`` where equal."""
    import numpy as np

    d = np.log(a) - np.log(b)
    with np.errstate(divide="ignore", invalid="ignore"):
        grown = np.expm1(d) / d
    # Of the limit at 0, whose second term is below the last digit.
    return np.asarray(b * np.where(d == 0, 1.0, grown))


def decompose(before: Array, after: Array, method: Method | None = None) -> Split:
    """Split the change of a product over its factors, row by row.

    Args:
        before: Factors by rows, ``(K, n)``; NaN where a factor does not exist as there is no work.
        after: The same in the later period.
        method: How; by the values themselves when ``None``.
    """
    import numpy as np

    x0, x1 = before, after
    gone = np.isnan(before), np.isnan(after)
    if gone[0].any() or gone[1].any():
        x0, x1 = np.where(gone[0], after, before), np.where(gone[1], before, after)
        # What is in neither period, beside a factor that is zero in one, moves nothing.
        x0, x1 = np.where(np.isnan(x0), 1.0, x0), np.where(np.isnan(x1), 1.0, x1)
    return _Shapley(x0, x1) if (method or method_of(before, after)) == "shapley" else _Lmdi(x0, x1)


def method_of(before: Array, after: Array) -> Method:
    """Return how a change must be split: with a negative value anywhere there is no logarithm.

    Args:
        before: Factors by rows.
        after: The same in the later period.
    """
    # Factor by factor, whose answers stay in a processor's cache.
    return "shapley" if any((row < 0).any() for row in (*before, *after)) else "lmdi"


class _Lmdi:
    """``effect = r_k (A + B)``; its slope is ``r_k A - [k = j] L`` before, ``r_k B + [k = j] L`` after."""

    method: Final[Method] = "lmdi"

    def __init__(self, x0: Array, x1: Array) -> None:
        import numpy as np

        v0, v1 = x0.prod(axis=0), x1.prod(axis=0)
        none = np.flatnonzero(~((v0 > 0) & (v1 > 0)))
        with np.errstate(divide="ignore", invalid="ignore"):
            self._r = np.log(x1 / x0)
        # Few rows are zero in a period: these alone are put right, not all of them chosen anew.
        self._r[:, none] = 0.0
        # Not of the products: the effects of a row sum to its change by the same logarithms.
        d = self._r.sum(axis=0)
        with np.errstate(divide="ignore", invalid="ignore"):
            grown = np.where(d == 0, 1.0, np.expm1(d) / d)
        mean, begun = v0 * grown, v0 * _begin(d, grown)
        mean[none] = begun[none] = 0.0
        self._l, self._at = mean, [begun, mean - begun]
        for t, (gone, held, sign) in enumerate(((v1, v0, -1.0), (v0, v1, 1.0))):
            rows = none[(gone[none] == 0) & (held[none] > 0)]
            if len(rows):
                zero = (x0, x1)[1 - t][:, rows] == 0
                self._r[:, rows] = sign * held[rows] * zero / zero.sum(axis=0)
                self._at[t][rows] = 1.0

    def effect(self, k: int) -> Array:
        effect: Array = self._r[k] * (self._at[0] + self._at[1])
        return effect

    def slopes(self, j: int, t: int, weights: Array, rows: Array | None = None) -> Iterator[Array]:
        import numpy as np

        at, mean = (x if rows is None else x[rows] for x in (self._at[t], self._l))
        by, held = at * weights, np.empty_like(weights)
        for k, ratio in enumerate(self._r):
            np.multiply(ratio if rows is None else ratio[rows], by, out=held)
            if k == j:
                held += mean * weights if t else -mean * weights
            yield held


def _begin(d: Array, grown: Array) -> Array:
    """Return how ``L(b e^d, b) / b`` moves with ``ln b``: ``((e^d - 1) / d - 1) / d``.

    Args:
        d: Log ratio.
        grown: ``(e^d - 1) / d``.
    """
    import numpy as np

    with np.errstate(divide="ignore", invalid="ignore"):
        plain = (grown - 1.0) / d
    return np.where(np.abs(d) < _SMALL, 0.5 + d / 6 + d * d / 24, plain)


class _Shapley:
    """``effect = sum over sets S of c_k(S) V(S)``, where ``S`` is what has its later value."""

    method: Final[Method] = "shapley"

    def __init__(self, x0: Array, x1: Array) -> None:
        self._x = (x0, x1)
        names = [str(k) for k in range(len(x0))]
        # Shapley weights of a lattice are of savings: off less on.
        self._weights = [
            [(-w, frozenset(map(int, cell))) for w, cell in shapley_weights(name, names)] for name in names
        ]

    def effect(self, k: int) -> Array:
        return self._sum(self._weights[k])

    def slopes(self, j: int, t: int, weights: Array, rows: Array | None = None) -> Iterator[Array]:
        for of_effect in self._weights:
            slope = self._sum([(w, cell) for w, cell in of_effect if (j in cell) == (t == 1)])
            yield (slope if rows is None else slope[rows]) * weights

    def _sum(self, weights: Sequence[tuple[float, frozenset[int]]]) -> Array:
        import numpy as np

        total = np.zeros(self._x[0].shape[1])
        for weight, product in self._products(weights):
            total += weight * product
        return total

    def _products(self, weights: Sequence[tuple[float, frozenset[int]]]) -> Iterator[tuple[float, Array]]:
        for weight, cell in weights:
            product = self._x[0][0] * 0 + 1.0
            for k in range(len(self._x[0])):
                product = product * self._x[k in cell][k]
            yield weight, product
