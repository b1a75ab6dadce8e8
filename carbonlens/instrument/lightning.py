# ruff: noqa: ARG002  # a hook has the arguments that the trainer calls it with
"""Lightning: a ``Callback`` that records each ``fit()`` as one run.

    from carbonlens.instrument.lightning import TrackingCallback

    trainer = Trainer(..., callbacks=[TrackingCallback("int8", study="ranker")])

It serves ``lightning`` and ``pytorch_lightning``, whichever the program has imported.
Events and their order are those of Lightning 2.6 (trainer/call.py, loops/fit_loop.py).
"""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Iterable, Mapping
from typing import Any, Final, Protocol, Self, SupportsFloat, cast

import msgspec

from carbonlens.domain.decoding import convert
from carbonlens.domain.phase import CHECKPOINT, EVALUATION
from carbonlens.errors import MissingExtraError
from carbonlens.instrument import training_findings
from carbonlens.instrument.request import Request
from carbonlens.instrument.tracked import TrackedRun
from carbonlens.instrument.training import (
    WARM_UP_STEPS,
    JobState,
    Training,
    new_of,
    quiet,
)
from carbonlens.instrument.training_units import is_token, samples_of, tokens_of
from carbonlens.metering.job import launched_by
from carbonlens.metering.process_time import leave_out_rank

_PACKAGES: Final[tuple[str, ...]] = ("lightning.pytorch", "pytorch_lightning")
_KEY: Final = "carbonlens"
_OF_DATA: Final = "/dataloader_idx_"
_joined: Final[dict[tuple[type[Any], ...], type[Any]]] = {}


class LightningTrainer(Protocol):
    """What of ``Trainer`` is used here."""

    strategy: Any
    state: Any
    ckpt_path: object
    sanity_checking: bool
    global_rank: int
    world_size: int
    callbacks: list[object]
    callback_metrics: Mapping[str, SupportsFloat]


class TrackingCallback:
    """Records each ``fit()`` of the trainer it is given to as one run of role ``training``.

    The run's phases are ``load`` (up to the first batch, the sanity check included),
    ``warm-up``, ``steady``, ``evaluation`` and ``checkpoint``. Each rank records its own
    part of one job. A checkpoint carries the job on: ``fit(ckpt_path=...)`` is its next
    attempt. ``validate``, ``test`` and ``predict`` are not recorded: put
    ``carbonlens.track`` around them.

    Args:
        step: Name of the step the run measures.
        unit: What is counted: ``token`` counts the ``input_ids`` of a batch, padding
            included, any other name samples.
        warmup_steps: Batches that count as warm-up.
        metrics: Names of logged metrics to record after each validation, or one name; by
            default those whose names begin with ``val``.
        **track: Further fields as of ``carbonlens.track``: ``study``, ``ledger``, ``tags``, ...
    """

    training: Training

    def __new__(cls, *args: object, **kwargs: object) -> Self:
        """Return one that is a Lightning ``Callback`` too.

        Raises:
            MissingExtraError: If no Lightning is installed.
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
        asked = {"step": step, "unit": unit, "role": "training", **track}
        self.training = Training(Request(**cast("dict[str, Any]", asked)), warmup_steps, metrics)
        self._units_of = tokens_of if is_token(unit) else samples_of
        self._resumed: JobState | None = None
        self._batch = -1
        self._validated: dict[int, int | None] = {}

    def __reduce__(self) -> tuple[Any, ...]:
        """Return how to make a copy, as strategies do that spawn their processes: without the run."""
        return new_of, (_public(type(self)),), self.__dict__

    @property
    def run(self) -> TrackedRun | None:
        """Handle of the run of the ``fit()`` that goes on, or of the last one."""
        return self.training.handle

    @quiet
    def on_fit_start(self, trainer: LightningTrainer, pl_module: object) -> None:
        """Open the run, unless the checkpoint that it goes on from is read only later."""
        if not (trainer.ckpt_path and trainer.strategy.restore_checkpoint_after_setup):
            self._begin(trainer)

    @quiet
    def on_sanity_check_start(self, trainer: LightningTrainer, pl_module: object) -> None:
        """Open the run where that had to wait."""
        self._begin(trainer)

    @quiet
    def on_train_start(self, trainer: LightningTrainer, pl_module: object) -> None:
        """Open the run where that had to wait."""
        self._begin(trainer)

    @quiet
    def on_train_batch_start(
        self, trainer: LightningTrainer, pl_module: object, batch: object, batch_idx: int
    ) -> None:
        """Train, in warm-up or steady."""
        self.training.train()

    @quiet
    def on_train_batch_end(
        self, trainer: LightningTrainer, pl_module: object, outputs: object, batch: object, batch_idx: int
    ) -> None:
        """Count the batch; where the callback was added twice, once."""
        if batch_idx == self._batch:
            return
        self._batch = batch_idx
        units = self._units_of(batch)
        if units is None:
            self.training.note(training_findings.batch_size_unknown(type(batch).__name__))
        self.training.stepped(units)

    @quiet
    def on_train_epoch_start(self, trainer: LightningTrainer, pl_module: object) -> None:
        """Count batches anew."""
        self._batch = -1

    @quiet
    def on_validation_start(self, trainer: LightningTrainer, pl_module: object) -> None:
        """Evaluate; the sanity check is no evaluation."""
        if not trainer.sanity_checking:
            self._validated = {}
            self.training.enter(EVALUATION)

    @quiet
    def on_validation_batch_end(
        self,
        trainer: LightningTrainer,
        pl_module: object,
        outputs: object,
        batch: object,
        batch_idx: int,
        dataloader_idx: int = 0,
    ) -> None:
        """Count the examples that metrics rest on."""
        size = samples_of(batch)
        before = self._validated.get(dataloader_idx, 0)
        self._validated[dataloader_idx] = None if size is None or before is None else before + size

    @quiet
    def on_validation_end(self, trainer: LightningTrainer, pl_module: object) -> None:
        """Keep the metrics."""
        if trainer.sanity_checking or not self.training.is_open:
            return
        logged = {
            name: value
            for name, value in trainer.callback_metrics.items()
            if self.training.metrics is not None or name.casefold().startswith("val")
        }
        for name, value in logged.items():
            # Of several ranks each sees a part of the examples.
            self.training.record({name: value}, self._examples(name) if trainer.world_size == 1 else None)
        self.training.train()

    @quiet
    def on_save_checkpoint(
        self, trainer: LightningTrainer, pl_module: object, checkpoint: dict[str, Any]
    ) -> None:
        """Write a checkpoint, which carries the job on."""
        self.training.enter(CHECKPOINT)
        kept = self.training.last_job  # after fit() too, whose outcome it is
        if kept is not None:
            checkpoint[_KEY] = msgspec.to_builtins(kept)

    @quiet
    def on_load_checkpoint(
        self, trainer: LightningTrainer, pl_module: object, checkpoint: dict[str, Any]
    ) -> None:
        """Take the job that a checkpoint carries on, if training goes on from it."""
        if _KEY in checkpoint and str(getattr(trainer.state.fn, "value", "")) == "fit":
            self._resumed = convert(checkpoint[_KEY], JobState)

    @quiet
    def on_train_end(self, trainer: LightningTrainer, pl_module: object) -> None:
        """Training is over; what follows is in no phase."""
        self.training.train(over=True)

    @quiet
    def on_fit_end(self, trainer: LightningTrainer, pl_module: object) -> None:
        """Seal the run."""
        self.training.end()

    @quiet
    def on_exception(self, trainer: LightningTrainer, pl_module: object, exception: BaseException) -> None:
        """Seal the run as failed."""
        self.training.end(exception)

    @quiet
    def teardown(self, trainer: LightningTrainer, pl_module: object, stage: str) -> None:
        """Seal what a tuner left open, which ends fitting early and tells nobody."""
        self.training.end()

    def _examples(self, metric: str) -> int | None:
        """Return the examples that a metric rests on: those of its data, which Lightning puts in the name."""
        _, several, number = metric.rpartition(_OF_DATA)
        if several and number.isdecimal():
            return self._validated.get(int(number))
        return next(iter(self._validated.values())) if len(self._validated) == 1 else None

    def _begin(self, trainer: LightningTrainer) -> None:
        if self.training.is_open:
            return
        first = next((c for c in trainer.callbacks if isinstance(c, TrackingCallback)), self)
        if first is not self:
            first.training.note(training_findings.added_twice())
            return
        resumed, self._resumed = self._resumed, None
        self._batch = -1
        several = trainer.world_size > 1
        self.training.begin(
            resumed,
            job_id=_launcher(trainer) if several else None,
            rank=trainer.global_rank if several else None,
        )
        if trainer.callbacks.count(self) > 1:
            self.training.note(training_findings.added_twice())


def _launcher(trainer: LightningTrainer) -> str | None:
    """Return the job that ranks share which Lightning started itself; ``None`` under another launcher.

    Then the first rank of a node is the parent of the others: their processes are no part
    of its own work.
    """
    if (
        os.environ.get("TORCHELASTIC_RUN_ID")
        or type(trainer.strategy.cluster_environment).__name__ != "LightningEnvironment"
    ):
        return None
    started = [p.pid for p in getattr(trainer.strategy.launcher, "procs", None) or ()]
    for pid in started:
        leave_out_rank(pid)
    return launched_by(os.getpid() if started else os.getppid())


def _concrete(cls: type[Any]) -> type[Any]:
    """Return the class joined with ``Callback`` of each Lightning that is imported, else installed."""
    loaded = [name for name in _PACKAGES if name in sys.modules] or [_installed()]
    bases = tuple(sys.modules[name].Callback for name in loaded)
    if issubclass(cls, bases):
        return cls
    if (cls, *bases) not in _joined:
        _joined[cls, *bases] = type(cls.__name__, (cls, *bases), {"__doc__": cls.__doc__})
    return _joined[cls, *bases]


def _public(cls: type[Any]) -> type[Any]:
    """Return the class that a program can name, of one that was joined here."""
    return cls.__bases__[0] if cls in _joined.values() else cls


def _installed() -> str:
    for name in _PACKAGES:
        try:
            importlib.import_module(name)
        except ImportError:
            continue
        return name
    raise MissingExtraError("lightning", "lightning")
