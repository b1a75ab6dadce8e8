"""ONNX models: export, quantization, and sessions that use one thread."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from carbonlens.studies.digits.data import SIDE

if TYPE_CHECKING:
    import numpy as np
    import onnxruntime
    import torch
    from numpy.typing import NDArray

_INPUT = "image"
_OUTPUT = "scores"
_BATCH = 64


def export(network: torch.nn.Module, path: Path) -> None:
    """Write a network as an ONNX model with a free batch size."""
    import torch

    with warnings.catch_warnings():
        # The older exporter announces its successor, which takes 40 times as long here.
        warnings.simplefilter("ignore")
        torch.onnx.export(
            network,
            (torch.zeros(1, 1, SIDE, SIDE),),
            str(path),
            input_names=[_INPUT],
            output_names=[_OUTPUT],
            dynamic_axes={_INPUT: {0: "n"}, _OUTPUT: {0: "n"}},
            dynamo=False,
        )


def preprocess(model: Path, path: Path) -> None:
    """Write a model prepared for quantization: shapes inferred, normalisation folded."""
    from onnxruntime.quantization.shape_inference import quant_pre_process

    with _root_logger_kept():
        quant_pre_process(str(model), str(path), skip_symbolic_shape=True)


def quantize_static(model: Path, path: Path, calibration: NDArray[np.float32]) -> None:
    """Write a static int8 model with explicit scales (QDQ), one scale a channel.

    The weights use 7 bits: sums of 8-bit products saturate on x86 processors
    without VNNI instructions (10 points of accuracy lost on a Zen 3).

    Args:
        model: Pre-processed float model.
        path: File to write.
        calibration: Images whose activations give the scales; never test images.
    """
    from onnxruntime import quantization

    class Images(quantization.CalibrationDataReader):  # type: ignore[misc]  # the base is untyped
        def __init__(self) -> None:
            self._batches: Iterator[NDArray[np.float32]] = _batches(calibration)

        def get_next(self) -> dict[str, NDArray[np.float32]] | None:
            batch = next(self._batches, None)
            return None if batch is None else {_INPUT: batch}

    with _root_logger_kept():
        quantization.quantize_static(
            str(model),
            str(path),
            Images(),
            quant_format=quantization.QuantFormat.QDQ,
            per_channel=True,
            reduce_range=True,
            activation_type=quantization.QuantType.QUInt8,
            weight_type=quantization.QuantType.QInt8,
        )


def quantize_dynamic(model: Path, path: Path) -> None:
    """Write a model with int8 weights whose activations are scaled anew at each call.

    Args:
        model: Pre-processed float model.
        path: File to write.
    """
    from onnxruntime import quantization

    # Integer convolution with signed weights takes three times as long (ONNX Runtime 1.32, Zen 3).
    with _root_logger_kept():
        quantization.quantize_dynamic(str(model), str(path), weight_type=quantization.QuantType.QUInt8)


def open_session(model: Path) -> onnxruntime.InferenceSession:
    """Open a model for one thread that does not spin while it waits."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.inter_op_num_threads = 1
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    options.log_severity_level = 3  # errors only
    return onnxruntime.InferenceSession(str(model), options, providers=["CPUExecutionProvider"])


def run_session(session: onnxruntime.InferenceSession, images: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return the class scores of one batch."""
    scores: NDArray[np.float32] = session.run(None, {_INPUT: images})[0]
    return scores


def predict(session: onnxruntime.InferenceSession, images: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return the class scores of any number of images, one row an image."""
    import numpy as np

    return np.concatenate([run_session(session, batch) for batch in _batches(images)])


def _batches(images: NDArray[np.float32]) -> Iterator[NDArray[np.float32]]:
    return (images[i : i + _BATCH] for i in range(0, len(images), _BATCH))


@contextmanager
def _root_logger_kept() -> Iterator[None]:
    """Undo the handler that the quantizer gives the root logger.

    With it every later warning of any library would go to the terminal.
    """
    root = logging.getLogger()
    before = root.handlers[:]
    try:
        yield
    finally:
        root.handlers[:] = before
