"""A tiny network is trained by Lightning, and goes on from its checkpoint.

python docs/examples/train_lightning.py

``carbonlens runs`` then lists two attempts of one job; ``carbonlens runs show ID`` tells the
phases of one. The data is random: what counts is what is recorded.
"""

import tempfile

import lightning.pytorch as pl
import torch
from torch.nn.functional import cross_entropy
from torch.utils.data import DataLoader, TensorDataset

from carbonlens.instrument.lightning import TrackingCallback
from carbonlens.reporting import format as fmt

torch.set_num_threads(1)  # threads of so small a model would wait for each other


def said(energy_j):
    """Return energy as printed; a phase that is shorter than the sensors can tell has none."""
    return "unknown" if energy_j is None else f"{energy_j:.3g} J"


class Classifier(pl.LightningModule):
    """Three layers that tell whether the first of 16 numbers is positive."""

    def __init__(self):
        """Make the layers."""
        super().__init__()
        self.layers = torch.nn.Sequential(
            torch.nn.Linear(16, 1024),
            torch.nn.ReLU(),
            torch.nn.Linear(1024, 1024),  # so that a phase lasts long enough for its energy to be told
            torch.nn.ReLU(),
            torch.nn.Linear(1024, 2),
        )

    def training_step(self, batch, batch_idx):
        """Return the loss."""
        numbers, labels = batch
        return cross_entropy(self.layers(numbers), labels)

    def validation_step(self, batch, batch_idx):
        """Log the accuracy."""
        numbers, labels = batch
        self.log("val_accuracy", (self.layers(numbers).argmax(1) == labels).float().mean())

    def configure_optimizers(self):
        """Return what trains the layers."""
        return torch.optim.Adam(self.parameters(), lr=0.001)


def batches(length):
    """Return random numbers, always the same, in batches of ten."""
    numbers = torch.randn(length, 16, generator=torch.Generator().manual_seed(0))
    return DataLoader(TensorDataset(numbers, (numbers[:, 0] > 0).long()), batch_size=10)


with tempfile.TemporaryDirectory() as folder:
    for epochs in (2, 3):
        tracking = TrackingCallback("fp32", study="first number", warmup_steps=5)
        trainer = pl.Trainer(
            accelerator="cpu",
            devices=1,
            max_epochs=epochs,
            callbacks=[tracking],
            default_root_dir=folder,
            logger=False,
            enable_checkpointing=False,
            enable_progress_bar=False,
            enable_model_summary=False,
        )
        resumed = f"{folder}/two.ckpt" if epochs == 3 else None
        trainer.fit(Classifier(), batches(195), batches(50), ckpt_path=resumed)
        trainer.save_checkpoint(f"{folder}/two.ckpt")
        run = tracking.run.run
        energy = fmt.energy(run.total_energy)
        print(f"attempt {run.attempt}: {run.units} samples, {energy.text} {energy.interval}")
        print(
            "  phases: " + ", ".join(f"{p.name} {p.duration_s:.2f} s {said(p.energy_j)}" for p in run.phases)
        )
        print("  quality: " + ", ".join(f"{q.name} {q.value:.3f} of {q.n}" for q in run.quality))
