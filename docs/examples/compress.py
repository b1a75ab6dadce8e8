"""A compression ladder on real data: handwritten digits, three steps, each with its effort.

A network is pruned, distilled into a smaller one, and that one quantized. Every step is made
under ``carbonlens.stage``, which measures the work and takes down what went in and came
out. Then all versions classify the same images in ONNX Runtime, in interleaved rounds, and
``carbonlens.compare`` says what each step saved and after how many images its effort is
earned back.

    python docs/examples/compress.py [LEDGER]

It needs carbonlens[analysis,torch,onnx], trains on one thread, and takes about 20 seconds.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
import warnings
from itertools import pairwise
from pathlib import Path

os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")  # before torch: no thread burns time waiting

import numpy as np
import onnxruntime
import torch
from onnxruntime import quantization
from onnxruntime.quantization.shape_inference import quant_pre_process
from sklearn.datasets import load_digits
from torch import nn
from torch.nn import functional

import carbonlens
from carbonlens.app.terms import parse_terms
from carbonlens.domain.artefact import Artefact
from carbonlens.domain.estimate import Estimate

STUDY = "digits-compression"
WORKLOAD = "digits 8x8, batch 64, one thread, ONNX Runtime"
ROUNDS, WINDOW_S, BATCH = 6, 0.2, 64
LEDGER = Path(sys.argv[1] if len(sys.argv) > 1 else tempfile.mkdtemp(prefix="compress-"))
FILES = Path(tempfile.mkdtemp(prefix="compress-models-"))
EXAMPLE = torch.zeros(1, 64)

torch.manual_seed(0)
torch.set_num_threads(1)
images, labels = load_digits(return_X_y=True)
images = (images / 16).astype(np.float32)
order = np.random.default_rng(0).permutation(len(images))
train, test = order[: len(order) // 2], order[len(order) // 2 :]
TRAIN_X, TRAIN_Y = torch.from_numpy(images[train]), torch.from_numpy(labels[train])
TEST_X, TEST_Y = images[test], labels[test]


def network(*widths: int) -> nn.Sequential:
    """Return an untrained network with these hidden widths."""
    sizes = (64, *widths, 10)
    layers: list[nn.Module] = []
    for inputs, outputs in pairwise(sizes):
        layers += [nn.Linear(inputs, outputs), nn.ReLU()]
    return nn.Sequential(*layers[:-1])


def fit(model: nn.Sequential, epochs: int, teacher: nn.Module | None = None) -> nn.Sequential:
    """Train a model; with a teacher, on its softened scores too."""
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3, weight_decay=1e-2)
    for _ in range(epochs):
        for part in torch.randperm(len(TRAIN_X)).split(64):
            scores = model(TRAIN_X[part])
            loss = functional.cross_entropy(scores, TRAIN_Y[part])
            if teacher is not None:
                with torch.no_grad():
                    wanted = (teacher(TRAIN_X[part]) / 2).softmax(1)
                loss = 0.3 * loss + 2.8 * functional.kl_div(
                    (scores / 2).log_softmax(1), wanted, reduction="batchmean"
                )
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    return model.eval()


def export(model: nn.Module, path: Path) -> None:
    """Write a model as ONNX with a free batch size."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the older exporter announces its slower successor
        torch.onnx.export(
            model,
            (EXAMPLE,),
            str(path),
            input_names=["x"],
            output_names=["y"],
            dynamic_axes={"x": {0: "n"}, "y": {0: "n"}},
            dynamo=False,
        )


# A function that takes a model and returns one: name the argument, and the value is the output.
@carbonlens.stage("pruned", inputs="model", example=EXAMPLE, study=STUDY, ledger=LEDGER)
def prune(model: nn.Sequential, keep: int) -> nn.Sequential:
    """Return a network with the ``keep`` strongest units of each hidden layer, trained on a little."""
    first, second, last = model[0], model[2], model[4]
    one = first.weight.abs().sum(1).topk(keep).indices
    two = second.weight.abs().sum(1).topk(keep).indices
    small = network(keep, keep)
    with torch.no_grad():
        small[0].weight.copy_(first.weight[one])
        small[0].bias.copy_(first.bias[one])
        small[2].weight.copy_(second.weight[two][:, one])
        small[2].bias.copy_(second.bias[two])
        small[4].weight.copy_(last.weight[:, two])
        small[4].bias.copy_(last.bias)
    return fit(small, epochs=8)


@carbonlens.stage(
    "distilled", inputs="teacher", outputs="student", example=EXAMPLE, study=STUDY, ledger=LEDGER
)
def distill(teacher: nn.Sequential) -> nn.Sequential:
    """Return a network of one hidden layer that imitates the teacher."""
    return fit(network(128), epochs=30, teacher=teacher)


def quantize(source: Path, path: Path) -> Artefact:
    """Write the static int8 version of a model file; return what is told of it."""
    folded = FILES / "folded.onnx"

    class Images(quantization.CalibrationDataReader):
        def __init__(self) -> None:
            self.left = [images[train][:256]]

        def get_next(self) -> dict[str, np.ndarray] | None:
            return {"x": self.left.pop()} if self.left else None

    # The block form: inputs before it, outputs at its end, here a file.
    with carbonlens.stage(
        "int8", inputs={"model": source}, example=EXAMPLE, study=STUDY, ledger=LEDGER
    ) as stage:
        quant_pre_process(str(source), str(folded), skip_symbolic_shape=True)
        quantization.quantize_static(str(folded), str(path), Images(), per_channel=True, reduce_range=True)
        stage.output("model", path)
    return stage.run.artefacts[-1]


def open_session(path: Path) -> onnxruntime.InferenceSession:
    """Open a model for one thread that does not spin."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    options.log_severity_level = 3
    return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])


def measure(step: str, session: onnxruntime.InferenceSession, round_: int) -> None:
    """Measure one window of one version as a run of the study."""
    # Read in once: handling the test images is no part of the work.
    batches = [TEST_X[i : i + BATCH] for i in range(0, len(TEST_X) - BATCH + 1, BATCH)]
    with carbonlens.track(
        step, study=STUDY, unit="image", repeat=round_, workload=WORKLOAD, ledger=LEDGER
    ) as run:
        end = time.process_time() + WINDOW_S
        while time.process_time() < end:
            for batch in batches:
                session.run(None, {"x": batch})
            run.add_units(BATCH * len(batches))
        right = session.run(None, {"x": TEST_X})[0].argmax(1) == TEST_Y
        run.record_quality("accuracy", outcomes=right.tolist())
        run.describe_model(bytes=SIZES[step].bytes, macs_per_unit=SIZES[step].macs)


def interval(ratio: Estimate) -> str:
    """Return the 95 % interval of a change in percent; empty where it is not known."""
    if ratio.low is None or ratio.high is None:
        return ""
    return f"[{100 * (ratio.low - 1):+.1f}, {100 * (ratio.high - 1):+.1f}]"


torch.optim.AdamW([nn.Parameter(torch.zeros(1))])  # loads torch's compiler, which no step should pay for
baseline = fit(network(512, 512), epochs=15)
pruned = prune(baseline, keep=256)
student = distill(pruned)

paths = {name: FILES / f"{name}.onnx" for name in ("fp32", "pruned", "distilled")}
# Of no study: what is measured later is the file, and so is what is told of its size.
with carbonlens.stage("export", outputs=paths, example=EXAMPLE, ledger=LEDGER) as exported:
    for model, path in zip((baseline, pruned, student), paths.values(), strict=True):
        export(model, path)
SIZES = {artefact.name: artefact for artefact in exported.run.artefacts}
paths["int8"] = FILES / "int8.onnx"
SIZES["int8"] = quantize(paths["distilled"], paths["int8"])

sessions = {name: open_session(path) for name, path in paths.items()}
for round_ in range(1, ROUNDS + 1):
    # Each round in another order: what drifts meanwhile hits every version alike.
    for name in list(sessions) if round_ % 2 else list(reversed(sessions)):
        measure(name, sessions[name], round_)

result = carbonlens.compare(
    STUDY, ledger=LEDGER, baseline="fp32", terms=parse_terms(None, ["accuracy:max_loss=0.05"], None)
)
for step in result.steps:
    metrics, change, effort = step.metrics, step.vs_previous, step.effort
    assert metrics is not None and change is not None and effort is not None  # noqa: S101, PT018  # all were measured
    print(
        f"{step.step:10} {SIZES[step.step].bytes:>9,} B  {SIZES[step.step].macs:>8,} MACs  "
        f"{1e6 * metrics.energy_per_unit_j.value:7.2f} µJ an image  "
        f"{100 * (change.ratio.value - 1):+6.1f} % {interval(change.ratio)} on {step.measured_on}  "
        f"accuracy {metrics.quality['accuracy'].value:.3f}  "
        f"effort {effort.energy_j.value:6.2f} J  {step.decision}"
    )
for even in result.break_even:
    if even.measure == "energy" and even.units.value is not None:
        print(f"the effort of the adopted steps is earned back after {even.units.value:,.0f} images")
print(f"carbonlens compare --study {STUDY} --baseline fp32 --ledger {LEDGER}")
