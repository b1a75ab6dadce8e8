# ruff: noqa: ARG002  # a hook has the arguments that the trainer calls it with
"""Hugging Face: a ``TrainerCallback`` that records each ``train()`` as one run.

    from carbonlens.instrument.huggingface import TrackingCallback

    trainer = Trainer(..., callbacks=[TrackingCallback("int8", study="ranker")])

``transformers`` has no event for an exception that leaves ``train()``. So the first
callback puts a wrapper around ``Trainer.train`` that hands such an exception to the
trainer's own callbacks and lets it go on, and one around ``Trainer.get_batch_samples`` that
shows them how large the batches are; trainers without this callback see nothing of either.

Events and their order are those of ``transformers`` 5.24 (trainer.py, trainer_callback.py).
"""

from __future__ import annotations

import functools
import importlib
import json
import weakref
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, ParamSpec, Self, SupportsFloat, TypeVar, cast

import msgspec

from carbonlens.domain.decoding import convert
from carbonlens.domain.phase import CHECKPOINT, EVALUATION, LOAD
from carbonlens.errors import MissingExtraError
from carbonlens.instrument import training_findings
from carbonlens.instrument.huggingface_types import Trainer, TrainerArguments, TrainerControl, TrainerState
from carbonlens.instrument.request import Request
from carbonlens.instrument.tracked import TrackedRun
from carbonlens.instrument.training import (
    WARM_UP_STEPS,
    JobState,
    Training,
    new_of,
    quiet,
)
from carbonlens.instrument.training_units import StepCount, is_token, samples_of

P = ParamSpec("P")
T = TypeVar("T")

_NO_QUALITY: Final = (
    *("_runtime", "_per_second", "_preparation_time", "_compilation_time", "_delta", "epoch"),
    *("num_input_tokens_seen", "total_flos"),
)
"""Ends of names under which the trainer reports its own pace and memory, which is no quality."""

_STATE: Final = "job_state"
_KEPT: Final = ("step", "study", "unit", "warmup_steps", "metrics")
"""What a checkpoint may hold: it is often published, so nothing of this machine and no tags."""

_joined: Final[dict[type[Any], type[Any]]] = {}
_live: Final[weakref.WeakSet[TrackingCallback]] = weakref.WeakSet()


class TrackingCallback:
    """Records each ``train()`` of the trainer it is given to as one run of role ``training``.

    The run's phases are ``load`` (up to the first step), ``warm-up``, ``steady``,
    ``evaluation`` and ``checkpoint``. Under torchrun and its like each rank records its own
    part of one job. A checkpoint carries the job on: resuming it is its next attempt. What
    happens outside of ``train()`` is not recorded: put ``carbonlens.track`` around an
    ``evaluate()`` of its own.

    Args:
        step: Name of the step the run measures.
        unit: What is counted: ``token`` counts input tokens as the trainer does
            (``include_num_input_tokens_seen``), any other name samples.
        warmup_steps: Steps that count as warm-up.
        metrics: Names of evaluation metrics to record, such as ``eval_accuracy``, or one name;
            all by default.
        **track: Further fields as of ``carbonlens.track``: ``study``, ``ledger``, ``tags``, ...
    """

    training: Training

    def __new__(cls, *args: object, **kwargs: object) -> Self:
        """Return one that is a ``TrainerCallback`` too; transformers is imported here.

        Raises:
            MissingExtraError: If it is not installed.
        """
        del args, kwargs
        return cast("Self", object.__new__(_concrete(cls)))

    def __init__(
        self,
        step: str | None = None,
        *,
        unit: str = "sample",
        warmup_steps: int | None = WARM_UP_STEPS,
        metrics: Iterable[str] | str | None = None,
        **track: object,
    ) -> None:
        """Keep what was asked for; nothing is measured yet."""
        request = Request(**cast("dict[str, Any]", {"step": step, "unit": unit, "role": "training", **track}))
        self.training = Training(request, warmup_steps, metrics)
        names = self.training.metrics
        asked = {"step": step, "unit": unit, "warmup_steps": warmup_steps, "metrics": names, **track}
        self._kept = {name: asked[name] for name in _KEPT if _is_json(asked.get(name, object()))}
        self._counts_tokens = is_token(unit)
        self._count: StepCount | None = None
        self._state: object = None
        self._copies = 1
        self._begun = False
        _live.add(self)

    def __reduce__(self) -> tuple[Any, ...]:
        """Return how to make a copy, which has no run."""
        no_run = {"_count": None, "_state": None, "_copies": 1, "_begun": False}
        return new_of, (_public(type(self)),), {**self.__dict__, **no_run}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Become a copy."""
        self.__dict__.update(state)
        _live.add(self)

    @property
    def run(self) -> TrackedRun | None:
        """Handle of the run of the ``train()`` that goes on, or of the last one."""
        return self.training.handle

    def state(self) -> dict[str, dict[str, Any]]:
        """Return what the trainer keeps of the callback in a checkpoint: plain JSON; raises nothing."""
        kept = self.training.job_state
        return {
            "args": self._kept,
            "attributes": {} if kept is None else {_STATE: msgspec.to_builtins(kept)},
        }

    @property
    def job_state(self) -> object:
        """What a checkpoint keeps of the job; ``None`` outside of ``train()``."""
        return self.training.job_state

    @job_state.setter
    def job_state(self, kept: object) -> None:
        # Only the trainer sets it, on a callback that it made anew from a checkpoint to take the
        # place of the user's (restore_callback_states_from_checkpoint): what no checkpoint holds,
        # the ledger for one, is taken from that.
        del kept
        replaced = [c for c in _live if c is not self and c._kept == self._kept and not c.training.is_open]
        if replaced:
            self.training = replaced[0].training

    @quiet
    def on_train_begin(
        self, args: TrainerArguments, state: TrainerState, control: TrainerControl, **kwargs: object
    ) -> None:
        """Open the run."""
        if self.training.is_open and self._state is state:
            self._copies += 1
            self.training.note(training_findings.added_twice())
            return
        for other in _live:
            if other is not self and other._state is state and other.training.is_open:
                other.training.note(training_findings.added_twice())
                return
        # A checkpoint without an entry for this callback would fail the trainer's next save.
        kept = state.stateful_callbacks.setdefault(type(self).__name__, self.state())
        again = self._begun and self.training.is_open
        self._state, self._copies, self._begun = state, 1, True
        self._count = StepCount(args, state, tokens=self._counts_tokens)
        if again:  # within one train(), with smaller batches that fit into memory (auto_find_batch_size)
            self.training.enter(LOAD)
        else:
            self.training.begin(_resumed(kept))
        for finding in self._count.findings:
            self.training.note(finding)

    @quiet
    def on_step_begin(
        self, args: TrainerArguments, state: TrainerState, control: TrainerControl, **kwargs: object
    ) -> None:
        """Train, in warm-up or steady."""
        self.training.train()

    @quiet
    def on_substep_end(
        self, args: TrainerArguments, state: TrainerState, control: TrainerControl, **kwargs: object
    ) -> None:
        """Count a batch whose gradients are accumulated."""
        if self._count is not None:
            self.training.worked(self._count.batch(copies=self._copies))

    @quiet
    def on_step_end(
        self, args: TrainerArguments, state: TrainerState, control: TrainerControl, **kwargs: object
    ) -> None:
        """Count the step; what was decided to follow it begins."""
        if not self.training.is_open or self._count is None or self._count.has(state.global_step):
            return
        self.training.stepped(self._count.step(state))
        for finding in self._count.findings:
            self.training.note(finding)
        self._go_on(control)

    @quiet
    def on_epoch_end(
        self, args: TrainerArguments, state: TrainerState, control: TrainerControl, **kwargs: object
    ) -> None:
        """Begin what was decided to follow the epoch."""
        self._go_on(control)

    @quiet
    def on_prediction_step(
        self, args: TrainerArguments, state: TrainerState, control: TrainerControl, **kwargs: object
    ) -> None:
        """Evaluate, also where no decision of the trainer's came before."""
        self.training.enter(EVALUATION)

    @quiet
    def on_evaluate(
        self,
        args: TrainerArguments,
        state: TrainerState,
        control: TrainerControl,
        metrics: Mapping[str, SupportsFloat] | None = None,
        **kwargs: object,
    ) -> None:
        """Keep the metrics."""
        found = {k: v for k, v in (metrics or {}).items() if not k.endswith(_NO_QUALITY)}
        self.training.record(found, _examples(kwargs.get("eval_dataloader")), _directions(args))
        if _will_save(args, state, control, found):
            self.training.enter(CHECKPOINT)
        else:
            self.training.train(over=control.should_training_stop)

    @quiet
    def on_save(
        self, args: TrainerArguments, state: TrainerState, control: TrainerControl, **kwargs: object
    ) -> None:
        """The checkpoint is written."""
        self.training.train(over=control.should_training_stop)

    @quiet
    def on_train_end(
        self, args: TrainerArguments, state: TrainerState, control: TrainerControl, **kwargs: object
    ) -> None:
        """Seal the run."""
        self._ended(None)

    def _go_on(self, control: TrainerControl) -> None:
        if control.should_evaluate:
            self.training.enter(EVALUATION)
        elif control.should_save:
            self.training.enter(CHECKPOINT)
        elif control.should_training_stop:
            self.training.train(over=True)

    def _ended(self, error: BaseException | None) -> None:
        self._state = self._count = None
        self._begun = False
        self.training.end(error)

    @quiet
    def _fetched(self, batches: Iterable[object]) -> None:
        """Look at the batches that the trainer goes on with."""
        if self._count is None or self._counts_tokens:
            return
        sizes = [(samples_of(batch), batch) for batch in batches]
        self._count.fetched([size for size, _ in sizes])
        for size, batch in sizes:
            if size is None:
                self.training.note(training_findings.batch_size_unknown(type(batch).__name__))


def _concrete(cls: type[Any]) -> type[Any]:
    """Return the class joined with those of transformers."""
    try:
        library = importlib.import_module("transformers.trainer_callback")
    except ImportError:
        raise MissingExtraError("transformers", "transformers") from None
    if issubclass(cls, library.TrainerCallback):
        return cls
    _have_train_tell()
    if cls not in _joined:
        bases = (cls, library.TrainerCallback, library.ExportableState)
        _joined[cls] = type(cls.__name__, bases, {"__doc__": cls.__doc__})
    return _joined[cls]


@functools.cache
def _have_train_tell() -> None:
    trainer = importlib.import_module("transformers").Trainer
    trainer.train = _telling(trainer.train)
    if hasattr(trainer, "get_batch_samples"):
        trainer.get_batch_samples = _showing(trainer.get_batch_samples)


def _telling(train: Callable[P, T]) -> Callable[P, T]:
    """Return ``Trainer.train`` so that it hands the trainer's callbacks what it ends with."""

    @functools.wraps(train)
    def told(*args: P.args, **kwargs: P.kwargs) -> T:
        for callback in _callbacks(args[0]):
            callback._begun = False
        try:
            result = train(*args, **kwargs)
        except BaseException as error:  # put in order, then raised again
            _tell(args[0], error)
            raise
        _tell(args[0], None)
        return result

    return told


def _tell(trainer: object, error: BaseException | None) -> None:
    try:
        for callback in _callbacks(trainer):
            callback._ended(error)
    except Exception:  # noqa: BLE001, S110  # law 8: the run stays open, and the end of the process seals it
        pass


def _showing(get: Callable[P, T]) -> Callable[P, T]:
    """Return ``Trainer.get_batch_samples`` so that it shows the trainer's callbacks what it returns."""

    @functools.wraps(get)
    def shown(*args: P.args, **kwargs: P.kwargs) -> T:
        result = get(*args, **kwargs)
        for callback in _callbacks(args[0]):
            callback._fetched(cast("tuple[list[object], object]", result)[0])
        return result

    return shown


def _callbacks(trainer: object) -> list[TrackingCallback]:
    """Return those of a trainer that are ours; raises nothing."""
    try:
        return [
            c for c in cast("Trainer", trainer).callback_handler.callbacks if isinstance(c, TrackingCallback)
        ]
    except Exception:  # noqa: BLE001  # law 8: a trainer of the user's own may be half built
        return []


def _public(cls: type[Any]) -> type[Any]:
    """Return the class that a program can name, of one that was joined here."""
    return cls.__bases__[0] if cls in _joined.values() else cls


def _resumed(kept: object) -> JobState | None:
    """Return the job that a checkpoint carries on; ``None`` where it has none that can be read."""
    for entry in kept if isinstance(kept, list) else [kept]:
        try:
            return convert(cast("dict[str, Any]", entry)["attributes"][_STATE], JobState)
        except (KeyError, TypeError, ValueError):
            continue
    return None


def _examples(dataloader: object) -> int | None:
    """Return the number of examples of an evaluation; ``None`` where the data has no length."""
    try:
        return len(getattr(dataloader, "dataset"))  # noqa: B009  # a type of its own for one field says no more
    except (AttributeError, TypeError):
        return None


def _best_metric(args: TrainerArguments) -> str | None:
    name = args.metric_for_best_model
    return name if name is None or name.startswith("eval_") else f"eval_{name}"


def _directions(args: TrainerArguments) -> dict[str, bool]:
    """Return what the user said of the metric that chooses the best model."""
    name = _best_metric(args)
    return {} if name is None or args.greater_is_better is None else {name: args.greater_is_better}


def _will_save(
    args: TrainerArguments, state: TrainerState, control: TrainerControl, metrics: Mapping[str, SupportsFloat]
) -> bool:
    """Tell whether a checkpoint follows the evaluation, as the trainer is about to decide."""
    if control.should_save or args.save_strategy != "best":
        return bool(control.should_save)
    found = metrics.get(_best_metric(args) or "")
    if found is None or state.best_metric is None:
        return found is not None
    value = float(found)
    return value > state.best_metric if args.greater_is_better else value < state.best_metric


def _is_json(value: object) -> bool:
    """Tell whether a checkpoint can hold a value: one that it cannot would fail the trainer's save."""
    try:
        json.dumps(value)
    except Exception:  # noqa: BLE001  # law 8: whatever a value of the user's raises, it is left out
        return False
    return True
