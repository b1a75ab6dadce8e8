"""Pruning: whole channels leave, so that the network really gets smaller."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from carbonlens.studies.digits.network import Widths, build_network

if TYPE_CHECKING:
    import torch

CHANNEL_BLOCK = 16
"""Widths stay multiples of it: ONNX Runtime's blocked layouts hold 8 or 16 channels."""


def pruned_widths(widths: Widths, keep: float) -> Widths:
    """Return the widths nearest to a share of the old ones that fill whole blocks.

    Args:
        widths: Channels before.
        keep: Share of the channels to keep, 0 to 1.
    """
    blocks = (max(1, round(width * keep / CHANNEL_BLOCK)) for width in widths)
    return cast("Widths", tuple(min(w, n * CHANNEL_BLOCK) for w, n in zip(widths, blocks, strict=True)))


def prune(network: torch.nn.Sequential, widths: Widths) -> torch.nn.Sequential:
    """Return a narrower network that keeps the most important channels.

    A channel's importance is the sum of its weights' magnitudes times the
    magnitude of its normalisation's scale, by which its output is multiplied
    (Li et al. 2017; Liu et al. 2017).

    Args:
        network: Trained network; it is left as it is.
        widths: Channels to keep of each convolution.
    """
    import torch
    from torch import nn

    narrow = build_network(widths)
    inputs = torch.arange(1)
    kept = inputs
    with torch.no_grad():
        for place, (old, new) in enumerate(zip(network, narrow, strict=True)):
            if isinstance(old, nn.Conv2d):
                inputs, kept = kept, _important(old, network[place + 1], new.out_channels)
                new.weight.copy_(old.weight[kept][:, inputs])
            elif isinstance(old, nn.BatchNorm2d):
                for name in ("weight", "bias", "running_mean", "running_var"):
                    getattr(new, name).copy_(getattr(old, name)[kept])
            elif isinstance(old, nn.Linear):
                new.weight.copy_(old.weight[:, kept])
                new.bias.copy_(old.bias)
    return narrow.eval()


def _important(convolution: torch.nn.Conv2d, scale: torch.nn.BatchNorm2d, count: int) -> torch.Tensor:
    importance = convolution.weight.abs().sum((1, 2, 3)) * scale.weight.abs()
    return importance.argsort(descending=True)[:count].sort().values
