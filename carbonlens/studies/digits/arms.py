"""The arms of the digits study: baseline, export, pruning and two ways to int8."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import cycle
from pathlib import Path
from typing import TYPE_CHECKING, cast

from carbonlens.studies.digits import onnx_models
from carbonlens.studies.digits.data import SIDE, Digits
from carbonlens.studies.digits.network import WIDTHS, build_network, count_macs, predict, saved_bytes
from carbonlens.studies.digits.pruning import prune, pruned_widths
from carbonlens.studies.digits.training import Schedule, train
from carbonlens.studies.ladder import Arm, Check, Prepared

if TYPE_CHECKING:
    import numpy as np
    import torch
    from numpy.typing import NDArray

    Images = NDArray[np.float32]

BATCH = 8
"""Images of one timed call."""

QUALITY = "accuracy"
WORKLOAD = f"digits {SIDE}x{SIDE}, batch {BATCH}, one thread"

_KEPT_SHARE = 2 / 3
_CALIBRATION_IMAGES = 256


@dataclass(frozen=True)
class Recipe:
    """How the study trains.

    Attributes:
        training: Schedule of the baseline.
        tuning: Schedule of the fine-tuning after pruning.
        seed: Decides split, first weights and order of the examples.
    """

    training: Schedule
    tuning: Schedule
    seed: int = 0


@dataclass(frozen=True)
class OnnxModel:
    """A model file with the multiply-accumulates of one image."""

    path: Path
    macs: int


def digits_arms(digits: Digits, folder: Path, recipe: Recipe) -> tuple[Arm, ...]:
    """Return the arms of the study, the baseline first.

    Args:
        digits: Both halves of the data.
        folder: Where model files go; they are needed until the study ends.
        recipe: How to train.
    """
    made = _Makers(digits, folder, recipe)
    return (
        Arm("torch-fp32", "PyTorch eager fp32", made.baseline),
        Arm("ort-fp32", "ONNX Runtime fp32", made.exported, needs=("torch-fp32",)),
        Arm("pruned", "Pruning by a third", made.pruned, needs=("torch-fp32",)),
        Arm(
            "dynamic-int8",
            "Dynamic int8",
            partial(made.quantized, "dynamic-int8", onnx_models.quantize_dynamic),
            measured_on="pruned",
            needs=("pruned",),
        ),
        Arm(
            "static-int8",
            "Static int8",
            partial(made.quantized, "static-int8", made.static),
            measured_on="pruned",
            needs=("pruned",),
        ),
    )


class _Makers:
    """Makes the arms from one set of data in one folder."""

    def __init__(self, digits: Digits, folder: Path, recipe: Recipe) -> None:
        self._digits = digits
        self._folder = folder
        self._recipe = recipe

    def baseline(self, _: Mapping[str, object]) -> Prepared:
        import torch

        # The study's seed must not disturb the random numbers of whoever calls it.
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(self._recipe.seed)
            network = build_network(WIDTHS)
        self._train(network, self._recipe.training)

        def infer(images: Images) -> object:
            with torch.inference_mode():
                return network(torch.from_numpy(images))

        return Prepared(
            call=self._call(infer),
            evaluate=lambda: self._accuracy(predict(network, self._digits.test_images)),
            artefact=network,
            model_bytes=saved_bytes(network),
            macs_per_unit=count_macs(network),
        )

    def exported(self, made: Mapping[str, object]) -> Prepared:
        return self._onnx(self._export(cast("torch.nn.Sequential", made["torch-fp32"]), "ort-fp32"))

    def pruned(self, made: Mapping[str, object]) -> Prepared:
        teacher = cast("torch.nn.Sequential", made["torch-fp32"])
        network = prune(teacher, pruned_widths(WIDTHS, _KEPT_SHARE))
        self._train(network, self._recipe.tuning, teacher)
        return self._onnx(self._export(network, "pruned"))

    def static(self, model: Path, path: Path) -> None:
        # An even sample of the sorted training half, never of the test half.
        images = self._digits.train_images
        onnx_models.quantize_static(model, path, images[:: max(1, len(images) // _CALIBRATION_IMAGES)])

    def quantized(
        self, name: str, quantize: Callable[[Path, Path], None], made: Mapping[str, object]
    ) -> Prepared:
        source = cast("OnnxModel", made["pruned"])
        folded = self._folder / f"{name}-folded.onnx"
        path = self._folder / f"{name}.onnx"
        onnx_models.preprocess(source.path, folded)
        quantize(folded, path)
        return self._onnx(OnnxModel(path, source.macs))

    def _train(
        self, network: torch.nn.Sequential, schedule: Schedule, teacher: torch.nn.Sequential | None = None
    ) -> None:
        digits = self._digits
        train(
            network,
            digits.train_images,
            digits.train_labels,
            schedule,
            seed=self._recipe.seed,
            teacher=teacher,
        )

    def _export(self, network: torch.nn.Sequential, name: str) -> OnnxModel:
        path = self._folder / f"{name}.onnx"
        onnx_models.export(network, path)
        return OnnxModel(path, count_macs(network))

    def _onnx(self, model: OnnxModel) -> Prepared:
        session = onnx_models.open_session(model.path)
        return Prepared(
            call=self._call(partial(onnx_models.run_session, session)),
            evaluate=lambda: self._accuracy(onnx_models.predict(session, self._digits.test_images)),
            artefact=model,
            model_bytes=model.path.stat().st_size,
            macs_per_unit=model.macs,
        )

    def _call(self, infer: Callable[[Images], object]) -> Callable[[], int]:
        """Return a call that infers the next whole batch of test images, around and around."""
        images = self._digits.test_images
        batches = cycle([images[i : i + BATCH] for i in range(0, len(images) - BATCH + 1, BATCH)])

        def call() -> int:
            batch = next(batches)
            infer(batch)
            return len(batch)

        return call

    def _accuracy(self, scores: Images) -> Sequence[Check]:
        right = scores.argmax(axis=1) == self._digits.test_labels
        return (Check(QUALITY, tuple(int(r) for r in right)),)
