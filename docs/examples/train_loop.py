"""A plain PyTorch loop in phases, with a checkpoint that the next process goes on from.

python docs/examples/train_loop.py --stop-after 5     # ends early, as where a job's time is over
python docs/examples/train_loop.py                    # goes on there: attempt 2 of the same job

``carbonlens runs`` lists both runs, ``carbonlens runs show RUN`` prints where time and energy of
one went. The checkpoint lies in ``train_loop``, or in the folder that is named as an argument; it
takes too short a time for its energy to be known.
"""

from __future__ import annotations

import argparse
import time
import uuid
from pathlib import Path
from typing import NamedTuple

import torch
from sklearn.datasets import load_digits
from torch.nn import Linear, Module, ReLU, Sequential
from torch.nn.functional import cross_entropy

import carbonlens
from carbonlens.instrument.tracked import TrackedRun
from carbonlens.reporting import format as fmt

EPOCHS = 10
BATCH = 32
TRAINED_ON = 1437
WARM_UP_STEPS = 10
"""Steps that fill caches; each process has its own."""


class Digits(NamedTuple):
    """Images with their labels, as many as are asked for."""

    images: torch.Tensor
    labels: torch.Tensor


def load() -> tuple[Digits, Digits]:
    """Return what to train with and what to evaluate with."""
    images, labels = load_digits(return_X_y=True)
    shuffled = torch.randperm(len(images), generator=torch.Generator().manual_seed(0))
    train, test = shuffled[:TRAINED_ON], shuffled[TRAINED_ON:]
    pixels, names = torch.tensor(images, dtype=torch.float32) / 16, torch.tensor(labels)
    return Digits(pixels[train], names[train]), Digits(pixels[test], names[test])


def train_epoch(
    run: TrackedRun, model: Module, optimizer: torch.optim.Optimizer, data: Digits, steps_done: int
) -> int:
    """Train on all images once, and return how many steps this process has done."""
    for batch in torch.randperm(len(data.images)).split(BATCH):
        run.enter_phase("warm-up" if steps_done < WARM_UP_STEPS else "steady")
        optimizer.zero_grad()
        cross_entropy(model(data.images[batch]), data.labels[batch]).backward()
        optimizer.step()
        run.step(units=len(batch))  # in the run and in the phase
        steps_done += 1
    return steps_done


def evaluate(run: TrackedRun, model: Module, data: Digits) -> None:
    """Record which answers are right, and how long one takes when images come one at a time."""
    right = model(data.images).argmax(1) == data.labels
    run.record_quality("accuracy", outcomes=right)
    for image in data.images.repeat(10, 1):
        begin = time.perf_counter()
        model(image)
        run.record_latencies([1000 * (time.perf_counter() - begin)])


def main() -> None:
    """Train, or go on training, until all epochs are done or this process is to stop."""
    parser = argparse.ArgumentParser(description="A plain PyTorch loop in phases.")
    parser.add_argument(
        "folder", type=Path, nargs="?", default=Path("train_loop"), help="where the checkpoint lies"
    )
    parser.add_argument("--stop-after", type=int, default=EPOCHS, help="epochs this process does at most")
    arguments = parser.parse_args()
    arguments.folder.mkdir(parents=True, exist_ok=True)
    checkpoint = arguments.folder / "checkpoint.pt"
    kept = torch.load(checkpoint) if checkpoint.exists() else {}
    torch.set_num_threads(1)
    torch.manual_seed(0)

    # The checkpoint names the job: all processes that work on it record under one id.
    job_id = kept.get("job_id") or f"digits-{uuid.uuid4().hex[:8]}"
    attempt = kept.get("attempt", 0) + 1
    with carbonlens.track("mlp", role="training", unit="sample", job_id=job_id, attempt=attempt) as run:
        with run.phase("load"):
            train, test = load()
            model = Sequential(Linear(64, 512), ReLU(), Linear(512, 512), ReLU(), Linear(512, 10))
            optimizer = torch.optim.Adam(model.parameters())
            if kept:
                model.load_state_dict(kept["model"])
                optimizer.load_state_dict(kept["optimizer"])
        first, steps_done = kept.get("epoch", 0), 0
        for epoch in range(first, min(first + arguments.stop_after, EPOCHS)):
            steps_done = train_epoch(run, model, optimizer, train, steps_done)
            if (epoch + 1) % 5 == 0:
                with run.phase("evaluation"), torch.no_grad():
                    evaluate(run, model, test)
                with run.phase("checkpoint"):
                    state = {"model": model.state_dict(), "optimizer": optimizer.state_dict()}
                    # As recorded: a launcher that counts restarts may know of more attempts.
                    job = {"job_id": run.run.job_id, "attempt": run.run.attempt}
                    torch.save({**state, "epoch": epoch + 1, **job}, checkpoint)
    record = run.run
    energy = fmt.energy(record.total_energy)
    print(f"job {record.job_id}, attempt {record.attempt}: {record.units} samples, {record.duration_s:.1f} s")
    print(f"  {energy.text} {energy.interval}, grade {record.total_energy.grade}")
    for phase in record.phases:
        used = "unknown" if phase.energy_j is None else f"{phase.energy_j:.3g} J"
        print(f"  {phase.name}: {phase.duration_s:.2f} s, {used}, {phase.units or 0} samples")
    for quality in record.quality:
        print(f"  {quality.name} {quality.value:.3f} of {quality.n}")
    if record.latency is not None:
        print(f"  one image at a time: {1000 * record.latency.p50_ms:.0f} µs (median of {record.latency.n})")


if __name__ == "__main__":
    main()
