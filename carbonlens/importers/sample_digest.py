"""One hash of a channel's samples, however they were encoded and in whatever pieces they came."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import TYPE_CHECKING

from carbonlens.importers.sample_shape import SampleShape

if TYPE_CHECKING:
    from carbonlens.importers.contract import Array


class SampleDigest:
    """Hashes times and values as they come; times that are not told are none.

    Attributes:
        shape: How the samples lie.
    """

    def __init__(self) -> None:
        """Start without a sample."""
        self.shape = SampleShape()
        self._times, self._values = hashlib.sha256(), hashlib.sha256()

    def take(self, t_us: Array | None, values: Array) -> None:
        """Take further samples."""
        import numpy as np

        if t_us is not None:
            self._times.update(np.ascontiguousarray(t_us).data)
        self._values.update(np.ascontiguousarray(values).data)
        self.shape.take(t_us, values)

    def hexdigest(self) -> str:
        """Return the hash of all that was taken."""
        return self._times.hexdigest() + self._values.hexdigest()


def sha256_of(digests: Iterable[tuple[str, SampleDigest]]) -> str:
    """Return one hash of several channels, in whatever order they came.

    Args:
        digests: Each with the name of its channel.
    """
    told = sorted(f"{name}\n{digest.hexdigest()}" for name, digest in digests)
    return hashlib.sha256("\n".join(told).encode()).hexdigest()
