"""What of the objects of ``transformers`` is used here: its trainer, arguments, state and decisions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol


class TrainerArguments(Protocol):
    """``transformers.TrainingArguments``."""

    world_size: int
    process_index: int
    save_strategy: str
    metric_for_best_model: str | None
    greater_is_better: bool | None
    include_num_input_tokens_seen: str | bool


class TrainerState(Protocol):
    """``transformers.TrainerState``: a new one for each ``train()``."""

    global_step: int
    num_input_tokens_seen: int
    best_metric: float | None
    stateful_callbacks: dict[str, Any]


class TrainerControl(Protocol):
    """``transformers.TrainerControl``: what the trainer does next."""

    should_training_stop: bool
    should_save: bool
    should_evaluate: bool


class CallbackHandler(Protocol):
    """Keeps the callbacks of a trainer."""

    callbacks: Sequence[object]


class Trainer(Protocol):
    """``transformers.Trainer``."""

    callback_handler: CallbackHandler
