"""Data: scikit-learn's bundled digits, split in halves and upscaled.

1,797 real 8x8 images of hand-written digits (UCI optical recognition of
handwritten digits, test part, as bundled with scikit-learn). They are upscaled
so that a convolution has work to do.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

SIDE = 32
"""Pixels of an upscaled image's edge."""

CLASSES = 10
_SOURCE_SIDE = 8
_LEVELS = 16.0


@dataclass(frozen=True)
class Digits:
    """The two halves; images are ``(n, 1, SIDE, SIDE)`` float32, standardised.

    Attributes:
        train_images, train_labels: The half that training and calibration see.
        test_images, test_labels: The half that only evaluation and timing see.
    """

    train_images: NDArray[np.float32]
    train_labels: NDArray[np.int64]
    test_images: NDArray[np.float32]
    test_labels: NDArray[np.int64]


def load_digits(seed: int) -> Digits:
    """Load the digits and split every class in halves; the odd image is for testing.

    Args:
        seed: Decides which images train.
    """
    import numpy as np
    from sklearn.datasets import load_digits as bundled_digits

    bundle = bundled_digits()
    labels = bundle.target.astype(np.int64)
    train, test = stratified_halves(labels, seed)
    images = upscale((bundle.images / _LEVELS).astype(np.float32))
    # The test half must not leak into the scale either.
    centre, spread = images[train].mean(), images[train].std()
    images = ((images - centre) / spread).astype(np.float32)[:, np.newaxis]
    return Digits(images[train], labels[train], images[test], labels[test])


def stratified_halves(labels: NDArray[np.int64], seed: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the sorted indices of the training and of the testing half.

    Args:
        labels: Class of every example.
        seed: Decides which examples go where.
    """
    import numpy as np

    random = np.random.default_rng(seed)
    train: list[int] = []
    test: list[int] = []
    for label in np.unique(labels):
        members = random.permutation(np.flatnonzero(labels == label))
        half = len(members) // 2
        train.extend(members[:half].tolist())
        test.extend(members[half:].tolist())
    return np.sort(np.array(train, dtype=np.int64)), np.sort(np.array(test, dtype=np.int64))


def upscale(images: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return 8x8 images as SIDE x SIDE ones by bilinear interpolation.

    Pixels are areas: the centre of output pixel ``i`` lies at ``(i + 0.5) / 4 - 0.5``
    in the source, clamped at the edges.

    Args:
        images: ``(n, 8, 8)``.
    """
    import numpy as np

    weights = _bilinear_weights()
    return (weights @ images @ weights.T).astype(np.float32, copy=False)


def _bilinear_weights() -> NDArray[np.float32]:
    import numpy as np

    place = np.clip((np.arange(SIDE) + 0.5) * _SOURCE_SIDE / SIDE - 0.5, 0, _SOURCE_SIDE - 1)
    lower = np.minimum(place.astype(np.int64), _SOURCE_SIDE - 2)
    share = place - lower
    weights = np.zeros((SIDE, _SOURCE_SIDE), dtype=np.float32)
    rows = np.arange(SIDE)
    weights[rows, lower] = 1 - share
    weights[rows, lower + 1] = share
    return weights
