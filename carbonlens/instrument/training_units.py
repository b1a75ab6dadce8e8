"""Units that this process trained on: samples by the trainer's batches, tokens, samples of any batch."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Final, cast

from carbonlens.domain.finding import Finding
from carbonlens.instrument import training_findings
from carbonlens.instrument.huggingface_types import TrainerArguments, TrainerState

_DEEPEST: Final = 4


class StepCount:
    """Counts what each step of a Hugging Face trainer worked on, without looking at a tensor.

    A batch has as many samples as the trainer was told, but the last one of an epoch has
    what is left, where one process reads the data; with several, accelerate fills their
    last batches up (``even_batches``), and what it filled in was trained on too.

    Args:
        args: The trainer's arguments.
        state: Its state as training begins.
        dataloader: What it trains on, prepared by accelerate.
        tokens: Count input tokens instead, as the trainer does over all ranks; this one's
            share of each step is equal, and the shares of all ranks sum to the whole.
    """

    def __init__(
        self, args: TrainerArguments, state: TrainerState, dataloader: object, *, tokens: bool
    ) -> None:
        """Start at the trainer's place."""
        self._args = args
        self._tokens = tokens
        self._dataloader = dataloader
        self._batch: int = state.train_batch_size or args.train_batch_size
        self._batches = 0
        self._step: int = state.global_step
        self._tokens_seen: int = state.num_input_tokens_seen

    @property
    def findings(self) -> tuple[Finding, ...]:
        """What must be said of the count beforehand."""
        if self._tokens:
            counted = str(self._args.include_num_input_tokens_seen).lower() not in {"no", "false"}
            return () if counted else (training_findings.tokens_not_counted(),)
        has_length = _remainder(self._dataloader) is not None or self._args.dataloader_drop_last
        return () if has_length else (training_findings.last_batch_assumed(),)

    def batch(self) -> None:
        """Take a batch that does not end a step."""
        self._batches += 1

    def has(self, step: int) -> bool:
        """Tell whether a step is counted already: a callback that was added twice is told twice."""
        return step <= self._step

    def step(self, state: TrainerState, *, copies: int = 1) -> float | None:
        """Return the units of the step that ends.

        Args:
            state: The trainer's.
            copies: How often each batch was told.

        Returns:
            ``None`` where they are not known.
        """
        self._step = state.global_step
        before, self._batches = self._batches // copies, 0
        if not self._tokens:
            return before * self._batch + self._last()
        seen, self._tokens_seen = state.num_input_tokens_seen - self._tokens_seen, state.num_input_tokens_seen
        if self.findings:
            return None
        ranks = self._args.world_size
        rank = self._args.process_index
        return seen * (rank + 1) // ranks - seen * rank // ranks

    def _last(self) -> int:
        """Return the samples of the batch that ends the step."""
        loader = self._dataloader
        if self._args.dataloader_drop_last or self._args.world_size > 1:
            return self._batch
        left = _remainder(loader)
        at_end = getattr(loader, "end_of_dataloader", False)
        return left if at_end and left else self._batch


def _remainder(dataloader: object) -> int | None:
    """Return the samples that the last batch of an epoch has, 0 if it is a full one.

    ``None`` where the data has no length.
    """
    try:
        loader = cast("Any", dataloader)
        return int(len(loader.dataset) % loader.total_batch_size)
    except (AttributeError, TypeError, ZeroDivisionError):
        return None


def samples_of(batch: object) -> int | None:
    """Return how many samples a batch has: the length of the first tensor in it."""
    shape = _first_shape(batch, _DEEPEST)
    if shape is None:
        return None
    return int(shape[0]) if len(shape) else 1


def tokens_of(batch: object) -> int | None:
    """Return how many input tokens a batch has, padding included; ``None`` where it holds none."""
    tokens = batch.get("input_ids") if isinstance(batch, Mapping) else None
    shape = getattr(tokens, "shape", None)
    return None if shape is None else math.prod(map(int, shape))


def _first_shape(batch: object, depth: int) -> Sequence[int] | None:
    """Return the shape of the first thing in a batch that has one, as tensors and arrays do."""
    shape = getattr(batch, "shape", None)
    if shape is not None:
        return cast("Sequence[int]", shape)
    if depth == 0:
        return None
    parts = batch.values() if isinstance(batch, Mapping) else batch if isinstance(batch, list | tuple) else ()
    found = (_first_shape(part, depth - 1) for part in parts)
    return next((shape for shape in found if shape is not None), None)
