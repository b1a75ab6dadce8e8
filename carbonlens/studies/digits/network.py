"""Network: four convolutions with batch normalisation, as plain torch layers."""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from carbonlens.studies.digits.data import CLASSES, SIDE

if TYPE_CHECKING:
    import numpy as np
    import torch
    from numpy.typing import NDArray

Widths = tuple[int, int, int, int]
WIDTHS: Widths = (48, 48, 96, 96)
"""Output channels of the four convolutions of the baseline."""

_EVALUATION_BATCH = 64


def build_network(widths: Widths = WIDTHS) -> torch.nn.Sequential:
    """Return an untrained classifier: conv, conv, pool, conv, conv, mean, linear.

    The first convolution takes steps of two: over a single input channel an
    integer convolution has little to multiply and much to arrange, so it is
    kept small in both worlds.

    Args:
        widths: Output channels of the convolutions, all 3x3.
    """
    from torch import nn

    first, second, third, fourth = widths
    return nn.Sequential(
        *_convolution(1, first, stride=2),
        *_convolution(first, second),
        nn.MaxPool2d(2),
        *_convolution(second, third),
        *_convolution(third, fourth),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(fourth, CLASSES),
    )


def _convolution(inputs: int, outputs: int, *, stride: int = 1) -> tuple[torch.nn.Module, ...]:
    from torch import nn

    # The normalisation brings its own offset, so the convolution has none.
    convolution = nn.Conv2d(inputs, outputs, 3, stride=stride, padding=1, bias=False)
    return convolution, nn.BatchNorm2d(outputs), nn.ReLU()


def predict(network: torch.nn.Module, images: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return the network's class scores, one row an image.

    Args:
        network: In evaluation mode.
        images: ``(n, 1, SIDE, SIDE)``.
    """
    import torch

    with torch.inference_mode():
        parts = [network(part) for part in torch.from_numpy(images).split(_EVALUATION_BATCH)]
        scores: NDArray[np.float32] = torch.cat(parts).numpy()
    return scores


def count_macs(network: torch.nn.Module) -> int:
    """Return the multiply-accumulates of convolutions and linear layers for one image."""
    import torch
    from torch import nn

    counts: list[int] = []

    def count(layer: torch.nn.Module, _: tuple[torch.Tensor, ...], output: torch.Tensor) -> None:
        # Every output value is one dot product as long as one output's weights.
        counts.append(output[0].numel() * layer.weight[0].numel())

    hooks = [
        m.register_forward_hook(count) for m in network.modules() if isinstance(m, nn.Conv2d | nn.Linear)
    ]
    try:
        with torch.inference_mode():
            network(torch.zeros(1, 1, SIDE, SIDE))
    finally:
        for hook in hooks:
            hook.remove()
    return sum(counts)


def saved_bytes(network: torch.nn.Module) -> int:
    """Return the size of the network's saved state in bytes."""
    import torch

    buffer = io.BytesIO()
    torch.save(network.state_dict(), buffer)
    return buffer.getbuffer().nbytes


@contextmanager
def one_thread() -> Iterator[None]:
    """Let torch use one thread, so that no spinning thread burns CPU time beside the work."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
