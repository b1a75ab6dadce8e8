"""Two versions of a model in ONNX Runtime, fp32 and int8, measured call by call.

A network learns handwritten digits, is written as ONNX and quantized. Both versions classify
the same images through ``TrackedSession``, a drop-in for ``onnxruntime.InferenceSession``,
in interleaved rounds; ``carbonlens.compare`` says what int8 saved. A last run of each is
profiled: which provider ran which operator, and how long.

    python docs/examples/onnxruntime_session.py [LEDGER]

It needs carbonlens[analysis,torch,onnx] (of torch only scikit-learn) and takes about 15 seconds.
"""

from __future__ import annotations

import sys
import tempfile
import time
import warnings
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper
from onnxruntime import quantization
from onnxruntime.quantization.shape_inference import quant_pre_process
from sklearn.datasets import load_digits
from sklearn.neural_network import MLPClassifier

import carbonlens
from carbonlens.instrument.onnxruntime import TrackedSession

STUDY, BATCH, ROUNDS, WINDOW_S = "digits-onnx", 32, 6, 0.2
LEDGER = Path(sys.argv[1] if len(sys.argv) > 1 else tempfile.mkdtemp(prefix="onnxruntime-"))
FILES = Path(tempfile.mkdtemp(prefix="onnxruntime-models-"))
CPU = ["CPUExecutionProvider"]

images, labels = load_digits(return_X_y=True)
images = (images / 16).astype(np.float32)
order = np.random.default_rng(0).permutation(len(images))
train, test = order[: len(order) // 2], order[len(order) // 2 :]


def write_fp32(path: Path) -> None:
    """Train a network and write it as ONNX, with a free batch size."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it could be trained for longer
        learned = MLPClassifier((512, 512), max_iter=15, random_state=0).fit(images[train], labels[train])
    nodes, weights, value = [], [], "x"
    for k, (matrix, bias) in enumerate(zip(learned.coefs_, learned.intercepts_, strict=True)):
        weights += [
            numpy_helper.from_array(matrix.astype("f4"), f"w{k}"),
            numpy_helper.from_array(bias.astype("f4"), f"b{k}"),
        ]
        nodes.append(helper.make_node("Gemm", [value, f"w{k}", f"b{k}"], [f"g{k}"], name=f"layer{k}"))
        value = f"g{k}"
        if k < len(learned.coefs_) - 1:
            nodes.append(helper.make_node("Relu", [value], [f"r{k}"], name=f"relu{k}"))
            value = f"r{k}"
    inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", 64])]
    outputs = [helper.make_tensor_value_info(value, TensorProto.FLOAT, ["batch", 10])]
    graph = helper.make_graph(nodes, "digits", inputs, outputs, weights)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9), path)


class Images(quantization.CalibrationDataReader):
    """Shows the quantizer some images."""

    def __init__(self) -> None:
        self._left = [images[train][:256]]

    def get_next(self) -> dict[str, np.ndarray] | None:
        """Return the next batch."""
        return {"x": self._left.pop()} if self._left else None


def write_int8(source: Path, path: Path) -> None:
    """Write the static int8 version of a model."""
    folded = FILES / "folded.onnx"
    quant_pre_process(str(source), str(folded), skip_symbolic_shape=True)
    quantization.quantize_static(str(folded), str(path), Images(), per_channel=True, reduce_range=True)


def options() -> onnxruntime.SessionOptions:
    """Return the options of a session for one thread."""
    chosen = onnxruntime.SessionOptions()
    chosen.intra_op_num_threads = 1
    chosen.log_severity_level = 3
    return chosen


BATCHES = [images[test][i : i + BATCH] for i in range(0, len(test) - BATCH + 1, BATCH)]


def measure(step: str, bare: onnxruntime.InferenceSession, round_: int) -> None:
    """Measure one window of one version: units and latencies count by themselves."""
    with carbonlens.track(step, study=STUDY, unit="image", repeat=round_, ledger=LEDGER) as run:
        session = TrackedSession(bare, run=run)
        end = time.process_time() + WINDOW_S
        while time.process_time() < end:
            for batch in BATCHES:
                session.run(None, {"x": batch})
        right = bare.run(None, {"x": images[test]})[0].argmax(1) == labels[test]
        run.record_quality("accuracy", outcomes=right.tolist())
        run.describe_model(bytes=paths[step].stat().st_size)


paths = {name: FILES / f"{name}.onnx" for name in ("fp32", "int8")}
write_fp32(paths["fp32"])
write_int8(paths["fp32"], paths["int8"])

sessions = {
    name: onnxruntime.InferenceSession(path, options(), providers=CPU) for name, path in paths.items()
}
for round_ in range(1, ROUNDS + 1):
    # Each round in another order: what drifts meanwhile hits both alike.
    for name in list(sessions) if round_ % 2 else list(reversed(sessions)):
        measure(name, sessions[name], round_)

result = carbonlens.compare(STUDY, ledger=LEDGER, baseline="fp32")
(int8,) = result.steps
assert int8.vs_previous is not None  # noqa: S101  # it was measured
ratio = int8.vs_previous.ratio
low, high = (None if end is None else round(100 * (end - 1), 1) for end in (ratio.low, ratio.high))
print(
    f"int8: {100 * (ratio.value - 1):+.0f} % energy an image "
    f"({int8.verdict}), 95 % interval {low} to {high} %, "
    f"{paths['fp32'].stat().st_size:,} -> {paths['int8'].stat().st_size:,} B"
)

# Profiling costs time itself: it gets a run of its own, outside the study.
for name, path in paths.items():
    tracker = carbonlens.track(f"{name}-profile", unit="image", ledger=LEDGER)
    with TrackedSession(path, options(), CPU, run=tracker, profile=True, warm_up=3) as session:
        for batch in BATCHES:
            session.run(None, {"x": batch})
    profile = session.profile
    assert profile is not None  # noqa: S101  # the session was called
    parts = [f"{o.operator} {100 * o.time_s / profile.time_s:.0f} %" for o in profile.operators]
    print(f"{name} on {', '.join(t.provider for t in profile.providers)}: {', '.join(parts)}")
print(f"carbonlens compare --study {STUDY} --baseline fp32 --ledger {LEDGER}")
