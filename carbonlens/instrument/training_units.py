"""Units that this process trained on: samples by the trainer's batches, tokens, samples of any batch."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Final, cast

from carbonlens.domain.finding import Finding
from carbonlens.instrument import training_findings
from carbonlens.instrument.huggingface_types import TrainerArguments, TrainerState

_DEEPEST: Final = 4
_MOST_PARTS: Final = 32
_MOST_TENSORS: Final = 256
_TOKENS: Final = frozenset({"token", "tokens"})


def is_token(unit: object) -> bool:
    """Tell whether a unit is tokens of the input."""
    return isinstance(unit, str) and unit in _TOKENS


class StepCount:
    """Counts what each step of a Hugging Face trainer worked on.

    Samples are those of the batches that the trainer took from its data, whatever loader,
    sampler or collator made them; what accelerate fills the last batches of several
    processes up with (``even_batches``) was trained on too. Tokens are those that the trainer
    counts over all ranks; this one's share of each step is equal, and the shares of all ranks
    sum to the whole.

    Args:
        args: The trainer's arguments.
        state: Its state as training begins.
        tokens: Count input tokens instead.
    """

    def __init__(self, args: TrainerArguments, state: TrainerState, *, tokens: bool) -> None:
        """Start at the trainer's place."""
        self._args = args
        self._tokens = tokens
        self._sizes: Sequence[int | None] = ()
        self._place = 0
        self._told = 0
        self._unseen = False
        self._step: int = state.global_step
        self._tokens_seen: int = state.num_input_tokens_seen

    @property
    def findings(self) -> tuple[Finding, ...]:
        """What must be said of the count so far."""
        if not self._tokens:
            return (training_findings.batches_unseen(),) if self._unseen else ()
        counted = str(self._args.include_num_input_tokens_seen).lower() not in {"no", "false"}
        return () if counted else (training_findings.tokens_not_counted(),)

    def fetched(self, sizes: Sequence[int | None]) -> None:
        """Take the samples of each batch that the trainer goes on with; ``None`` is not known."""
        self._sizes, self._place = sizes, 0

    def batch(self, *, copies: int = 1) -> int | None:
        """Return the samples of a batch that does not end a step; ``None`` where there are none to add.

        Args:
            copies: How often each batch is told.
        """
        self._told += 1
        return None if self._tokens or self._told % copies else self._next()

    def has(self, step: int) -> bool:
        """Tell whether a step is counted already: a callback that was added twice is told twice."""
        return step <= self._step

    def step(self, state: TrainerState) -> int | None:
        """Return the samples of the batch that ends a step, or the tokens of the step.

        Args:
            state: The trainer's.

        Returns:
            ``None`` where they are not known.
        """
        self._step, self._told = state.global_step, 0
        if not self._tokens:
            return self._next()
        seen, self._tokens_seen = state.num_input_tokens_seen - self._tokens_seen, state.num_input_tokens_seen
        if self.findings:
            return None
        ranks = self._args.world_size
        rank = self._args.process_index
        return seen * (rank + 1) // ranks - seen * rank // ranks

    def _next(self) -> int | None:
        if self._place >= len(self._sizes):
            self._unseen = True
            return None
        self._place += 1
        return self._sizes[self._place - 1]


def samples_of(batch: object) -> int | None:
    """Return how many samples a batch has: the first dimension that all its tensors have in common.

    Raises nothing. ``None`` where they differ, as where one of them is class weights, where
    one does not tell (nested tensors), and where there is none; one without dimensions says
    nothing of samples.
    """
    try:
        shapes = (shape for shape in _shapes(batch, _DEEPEST) if len(shape))
        sizes = {int(shape[0]) for shape in islice(shapes, _MOST_TENSORS)}
    except Exception:  # noqa: BLE001  # law 8: a batch is the user's own, whatever its shape raises
        return None
    return sizes.pop() if len(sizes) == 1 else None


def tokens_of(batch: object) -> int | None:
    """Return how many input tokens a batch has, padding included; raises nothing.

    ``None`` where it holds none, or does not tell.
    """
    try:
        tokens = batch.get("input_ids") if isinstance(batch, Mapping) else None
        shape = getattr(tokens, "shape", None)
        return None if shape is None else math.prod(map(int, shape))
    except Exception:  # noqa: BLE001  # law 8: a batch is the user's own, whatever its shape raises
        return None


def _shapes(batch: object, depth: int) -> Iterator[Sequence[int]]:
    """Give the shapes of all in a batch that has one, as tensors and arrays do."""
    shape = getattr(batch, "shape", None)
    if shape is not None:
        yield cast("Sequence[int]", shape)
    elif depth and isinstance(batch, Mapping | list | tuple):
        # Of a long list of texts the first few tell what it is.
        for part in islice(batch.values() if isinstance(batch, Mapping) else batch, _MOST_PARTS):
            yield from _shapes(part, depth - 1)
