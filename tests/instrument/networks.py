"""Networks whose sizes are published, and small ones whose sizes are worked out by hand."""

from __future__ import annotations

import torch
from torch import nn


def mlp() -> nn.Sequential:
    """64-128-10: 64 * 128 + 128 + 128 * 10 + 10 = 9,610 parameters, 9,472 multiply-accumulates."""
    return nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 10)).eval()


def small_convolutions() -> nn.Sequential:
    """8x8 images: 3*8*9 * 64 + 8*9 * 36 (one group a channel) + 8 * 4 = 16,448 multiply-accumulates.

    Parameters: 216 + 8, 16 of the normalisation, 72 + 8, 32 + 4: 356.
    """
    return nn.Sequential(
        nn.Conv2d(3, 8, 3, padding=1),
        nn.BatchNorm2d(8),
        nn.ReLU(),
        nn.Conv2d(8, 8, 3, groups=8),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(8, 4),
    ).eval()


class _Residual(nn.Module):
    def __init__(self, body: nn.Module, shortcut: nn.Module) -> None:
        super().__init__()
        self.body, self.shortcut = body, shortcut

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.body(x) + self.shortcut(x)


def _convolution(inputs: int, outputs: int, size: int, stride: int = 1, groups: int = 1) -> list[nn.Module]:
    layer = nn.Conv2d(inputs, outputs, size, stride, size // 2, groups=groups, bias=False)
    return [layer, nn.BatchNorm2d(outputs)]


def resnet(blocks: tuple[int, ...], *, bottleneck: bool) -> nn.Module:
    """Return a ResNet for 1,000 classes (He et al. 2016), its stride in the 3x3 convolutions."""
    layers = [*_convolution(3, 64, 7, 2), nn.ReLU(), nn.MaxPool2d(3, 2, 1)]
    inputs, wider = 64, 4 if bottleneck else 1
    for stage, count in enumerate(blocks):
        width = 64 * 2**stage
        for number in range(count):
            stride = 2 if stage and not number else 1
            body = (
                [
                    *_convolution(inputs, width, 1),
                    nn.ReLU(),
                    *_convolution(width, width, 3, stride),
                    nn.ReLU(),
                    *_convolution(width, width * 4, 1),
                ]
                if bottleneck
                else [*_convolution(inputs, width, 3, stride), nn.ReLU(), *_convolution(width, width, 3)]
            )
            changes = stride != 1 or inputs != width * wider
            shortcut = _convolution(inputs, width * wider, 1, stride) if changes else [nn.Identity()]
            layers += [_Residual(nn.Sequential(*body), nn.Sequential(*shortcut)), nn.ReLU()]
            inputs = width * wider
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(inputs, 1000))


def mobilenet_v2() -> nn.Module:
    """Return MobileNetV2 of width 1 for 1,000 classes (Sandler et al. 2018, table 2)."""
    layers = [*_convolution(3, 32, 3, 2), nn.ReLU6()]
    inputs = 32
    table = [(1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2)]
    for factor, outputs, count, first_stride in [*table, (6, 320, 1, 1)]:
        for number in range(count):
            stride = first_stride if not number else 1
            wide = inputs * factor
            body = [*_convolution(inputs, wide, 1), nn.ReLU6()] if factor != 1 else []
            body += [*_convolution(wide, wide, 3, stride, wide), nn.ReLU6(), *_convolution(wide, outputs, 1)]
            block = nn.Sequential(*body)
            keeps = stride == 1 and inputs == outputs
            layers.append(_Residual(block, nn.Identity()) if keeps else block)
            inputs = outputs
    layers += [*_convolution(inputs, 1280, 1), nn.ReLU6(), nn.AdaptiveAvgPool2d(1), nn.Flatten()]
    return nn.Sequential(*layers, nn.Linear(1280, 1000))
