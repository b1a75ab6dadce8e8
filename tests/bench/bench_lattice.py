"""A real 2^3 lattice: on a GPU bfloat16, compile and channels-last; on a CPU the like.

Run with ``python -m tests.bench.bench_lattice LEDGER [cpu]``; records one run a cell and
round in LEDGER, for ``carbonlens compare --ledger LEDGER``. With an NVIDIA GPU, PyTorch
and torchvision it measures ResNet-50 (about five minutes); with ``cpu`` a small
classifier under ONNX Runtime with int8, pruning by a third and larger batches, each
alone and together (about three minutes of one core). Accuracy is recorded in both
ways where there is any: weights of the GPU's model are random.
"""

from __future__ import annotations

import itertools
import random
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from itertools import cycle
from pathlib import Path
from typing import Any, NamedTuple

GPU = ("bf16", "compile", "channels-last")
CPU = ("int8", "pruned", "batch-32")
ROUNDS = 6
WINDOW_S = {"gpu": 1.5, "cpu": 2.5}
BATCH = 64
SEED = 20261128


class Cell(NamedTuple):
    """One combination: its work, and what is known of its model.

    Attributes:
        work: Does one call and returns the images done.
        outcomes: Per-example outcomes of the test half; none where nothing is trained.
    """

    work: Callable[[], int]
    outcomes: tuple[int, ...] = ()
    model_bytes: int | None = None


def on_gpu(on: tuple[str, ...]) -> Cell:
    """Return one batch of ResNet-50 with the optimizations given."""
    import torch
    import torchvision

    torch.manual_seed(SEED)
    layout: Any = torch.channels_last if "channels-last" in on else torch.contiguous_format
    kind = torch.bfloat16 if "bf16" in on else torch.float32
    model = torchvision.models.resnet50(weights=None).eval().cuda().to(dtype=kind, memory_format=layout)
    batch = torch.randn(BATCH, 3, 224, 224, device="cuda", dtype=kind).contiguous(memory_format=layout)
    run: Any = torch.compile(model) if "compile" in on else model

    def work() -> int:
        with torch.inference_mode():
            run(batch)
        torch.cuda.synchronize()
        return BATCH

    return Cell(work)


def on_cpu(folder: Path) -> Callable[[tuple[str, ...]], Cell]:
    """Train and export the models of the demo once; return what makes a cell of them."""
    import numpy as np
    import torch

    from carbonlens.studies.digits import onnx_models
    from carbonlens.studies.digits.data import load_digits
    from carbonlens.studies.digits.network import WIDTHS, build_network
    from carbonlens.studies.digits.pruning import prune, pruned_widths
    from carbonlens.studies.digits.training import Schedule, train

    torch.set_num_threads(1)
    torch.manual_seed(SEED)
    digits = load_digits(0)
    dense = build_network(WIDTHS)
    train(dense, digits.train_images, digits.train_labels, Schedule(epochs=4, learning_rate=3e-3), seed=0)
    pruned = prune(dense, pruned_widths(WIDTHS, 2 / 3))
    tuning = Schedule(epochs=4, learning_rate=2e-3)
    train(pruned, digits.train_images, digits.train_labels, tuning, seed=0, teacher=dense)
    files: dict[tuple[bool, bool], Path] = {}
    for is_pruned, network in ((False, dense), (True, pruned)):
        plain, folded, int8 = (folder / f"{is_pruned}-{name}.onnx" for name in ("fp32", "folded", "int8"))
        onnx_models.export(network, plain)
        onnx_models.preprocess(plain, folded)
        onnx_models.quantize_static(folded, int8, digits.train_images[::4])
        files |= {(is_pruned, False): plain, (is_pruned, True): int8}

    def cell(on: tuple[str, ...]) -> Cell:
        path = files["pruned" in on, "int8" in on]
        session = onnx_models.open_session(path)
        size = 32 if "batch-32" in on else 1
        images = digits.test_images
        batches = cycle([images[i : i + size] for i in range(0, len(images) - size + 1, size)])

        def work() -> int:
            batch = next(batches)
            onnx_models.run_session(session, batch)
            return len(batch)

        right = onnx_models.predict(session, images).argmax(axis=1) == digits.test_labels
        return Cell(work, tuple(int(r) for r in np.asarray(right)), path.stat().st_size)

    return cell


def measure(cells: Mapping[tuple[str, ...], Cell], ledger: str, *, kind: str, workload: str) -> None:
    """Measure every cell in each round, in random order."""
    from carbonlens import track

    chance = random.Random(SEED)  # noqa: S311  # chance for a test load, no secret
    for number in range(1, ROUNDS + 1):
        for on in chance.sample(list(cells), len(cells)):
            cell = cells[on]
            with track(
                "+".join(on) or "baseline",
                study=f"lattice-{kind}",
                on=on,
                unit="image",
                repeat=number,
                ledger=ledger,
                workload=workload,
            ) as run:
                run.describe_model(bytes=cell.model_bytes)
                end = time.perf_counter() + WINDOW_S[kind]
                while time.perf_counter() < end:
                    run.add_units(cell.work())
                if cell.outcomes:
                    share = sum(cell.outcomes) / len(cell.outcomes)
                    run.record_quality("accuracy", share, n=len(cell.outcomes), outcomes=cell.outcomes)


def main() -> None:
    """Prepare, warm up and measure all cells."""
    ledger, kind = sys.argv[1], "cpu" if "cpu" in sys.argv[2:] else "gpu"
    options = CPU if kind == "cpu" else GPU
    sets = [on for n in range(4) for on in itertools.combinations(options, n)]
    with tempfile.TemporaryDirectory() as folder:
        make = on_cpu(Path(folder)) if kind == "cpu" else on_gpu
        cells = {}
        for on in sets:
            begin = time.perf_counter()
            cells[on] = make(on)
            for _ in range(5):
                cells[on].work()
            print(
                f"{'+'.join(on) or 'baseline':32} ready in {time.perf_counter() - begin:6.1f} s", flush=True
            )
        for cell in cells.values():
            end = time.perf_counter() + (0.2 if kind == "cpu" else 1)
            while time.perf_counter() < end:
                cell.work()
        workload = "digits classifier, one thread" if kind == "cpu" else "ResNet-50, batch 64, 224 px"
        measure(cells, ledger, kind=kind, workload=workload)


if __name__ == "__main__":
    main()
