"""Training: from scratch, and fine-tuning under a teacher's guidance."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from carbonlens.studies.digits.network import predict

if TYPE_CHECKING:
    import numpy as np
    import torch
    from numpy.typing import NDArray

_BATCH = 32
_TEMPERATURE = 2.0
_TEACHER_SHARE = 0.7


@dataclass(frozen=True)
class Schedule:
    """How long and how fast to train.

    Attributes:
        epochs: Passes over the training half.
        learning_rate: Peak of the one-cycle schedule.
    """

    epochs: int
    learning_rate: float


def load_trainer() -> None:
    """Load what the first optimizer of a process loads, so that no training is charged with it.

    torch brings its compiler in with the first optimizer, which takes seconds.
    """
    import torch

    torch.optim.AdamW([torch.nn.Parameter(torch.zeros(1))])


def train(
    network: torch.nn.Module,
    images: NDArray[np.float32],
    labels: NDArray[np.int64],
    schedule: Schedule,
    *,
    seed: int,
    teacher: torch.nn.Module | None = None,
) -> None:
    """Train a network in place and leave it in evaluation mode.

    With a teacher the loss is 0.3 of the cross entropy and 0.7 of the
    divergence from the teacher's softened scores (Hinton et al. 2015).

    Args:
        network: Network to train.
        images: Training half.
        labels: Its classes.
        schedule: Length and speed.
        seed: Decides the order of the examples.
        teacher: Network whose scores the trained one imitates.
    """
    import torch

    # Channels last takes about two thirds of the time of the default layout in training.
    network.to(memory_format=torch.channels_last)
    inputs = torch.from_numpy(images).contiguous(memory_format=torch.channels_last)
    targets = torch.from_numpy(labels)
    # The images never change, so the teacher need score them only once.
    guide = None if teacher is None else torch.from_numpy(predict(teacher, images))
    order = torch.Generator().manual_seed(seed)
    steps = schedule.epochs * -(-len(inputs) // _BATCH)
    optimizer = torch.optim.AdamW(network.parameters(), lr=schedule.learning_rate)
    pace = torch.optim.lr_scheduler.OneCycleLR(optimizer, schedule.learning_rate, total_steps=steps)
    network.train()
    for _ in range(schedule.epochs):
        for part in torch.randperm(len(inputs), generator=order).split(_BATCH):
            scores = network(inputs[part])
            loss = _loss(scores, targets[part], None if guide is None else guide[part])
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            optimizer.step()
            pace.step()
    network.eval()
    network.to(memory_format=torch.contiguous_format)


def _loss(scores: torch.Tensor, targets: torch.Tensor, guide: torch.Tensor | None) -> torch.Tensor:
    from torch.nn import functional

    plain = functional.cross_entropy(scores, targets)
    if guide is None:
        return plain
    divergence = functional.kl_div(
        (scores / _TEMPERATURE).log_softmax(1), (guide / _TEMPERATURE).softmax(1), reduction="batchmean"
    )
    # Softened gradients shrink with the temperature squared; the factor makes up for it.
    return (1 - _TEACHER_SHARE) * plain + _TEACHER_SHARE * _TEMPERATURE**2 * divergence
