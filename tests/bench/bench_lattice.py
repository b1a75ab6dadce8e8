"""A real 2^3 lattice on a GPU: bfloat16, compile and channels-last, alone and together.

Run with ``python -m tests.bench.bench_lattice LEDGER`` on a machine with an NVIDIA GPU,
PyTorch and torchvision (about five minutes); records one run a cell and round in
LEDGER, for ``carbonlens compare --study resnet50-lattice --ledger LEDGER``.
"""

from __future__ import annotations

import itertools
import random
import sys
import time
from collections.abc import Callable
from typing import Any

OPTIONS = ("bf16", "compile", "channels-last")
ROUNDS = 6
WINDOW_S = 1.5
BATCH = 64
SEED = 20261128


def cell(on: tuple[str, ...]) -> Callable[[], None]:
    """Return a function that does one batch with the optimizations given."""
    import torch
    import torchvision

    torch.manual_seed(SEED)
    layout: Any = torch.channels_last if "channels-last" in on else torch.contiguous_format
    kind = torch.bfloat16 if "bf16" in on else torch.float32
    model = torchvision.models.resnet50(weights=None).eval().cuda().to(dtype=kind, memory_format=layout)
    batch = torch.randn(BATCH, 3, 224, 224, device="cuda", dtype=kind).contiguous(memory_format=layout)
    run: Any = torch.compile(model) if "compile" in on else model

    def work() -> None:
        with torch.inference_mode():
            run(batch)
        torch.cuda.synchronize()

    return work


def main() -> None:
    """Measure every cell in each round, in random order."""
    from carbonlens import track

    ledger = sys.argv[1]
    sets = [on for n in range(4) for on in itertools.combinations(OPTIONS, n)]
    cells = {on: cell(on) for on in sets}
    for on, work in cells.items():
        begin = time.perf_counter()
        for _ in range(5):
            work()
        print(f"{'+'.join(on) or 'baseline':32} first calls {time.perf_counter() - begin:6.1f} s", flush=True)
    for work in cells.values():
        end = time.perf_counter() + 1
        while time.perf_counter() < end:
            work()
    chance = random.Random(SEED)  # noqa: S311  # chance for a test load, no secret
    for number in range(1, ROUNDS + 1):
        for on in chance.sample(sets, len(sets)):
            with track(
                "+".join(on) or "baseline",
                study="resnet50-lattice",
                on=on,
                unit="image",
                repeat=number,
                ledger=ledger,
                workload="ResNet-50, batch 64, 224 px",
            ) as run:
                end = time.perf_counter() + WINDOW_S
                while time.perf_counter() < end:
                    cells[on]()
                    run.add_units(BATCH)


if __name__ == "__main__":
    main()
