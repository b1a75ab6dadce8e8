"""A tiny BERT is trained by the Hugging Face Trainer, and goes on from its checkpoint.

python docs/examples/train_huggingface.py

``carbonlens runs`` then lists two attempts of one job; ``carbonlens runs show ID`` tells the
phases of one. Weights and data are random: what counts is what is recorded.
"""

import tempfile

import torch
from torch.utils.data import Dataset
from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainingArguments

from carbonlens.instrument.huggingface import TrackingCallback
from carbonlens.reporting import format as fmt

torch.set_num_threads(1)  # threads of so small a model would wait for each other


def said(energy_j):
    """Return energy as printed; a phase that is shorter than the sensors can tell has none."""
    return "unknown" if energy_j is None else f"{energy_j:.3g} J"


class FirstWord(Dataset):
    """Texts of 16 random words; the label tells whether the first is of the upper half."""

    def __init__(self, length):
        """Make the texts, always the same."""
        words = torch.randint(0, 64, (length, 16), generator=torch.Generator().manual_seed(0))
        self.rows = [{"input_ids": w, "labels": int(w[0] >= 32)} for w in words]

    def __len__(self):
        """Return the number of texts."""
        return len(self.rows)

    def __getitem__(self, place):
        """Return one text."""
        return self.rows[place]


def accuracy(prediction):
    """Return the share of right answers."""
    return {"accuracy": float((prediction.predictions.argmax(-1) == prediction.label_ids).mean())}


def trainer(folder, epochs):
    """Return a trainer whose training is one run."""
    config = BertConfig(
        vocab_size=64,
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=64,
    )
    arguments = TrainingArguments(
        output_dir=folder,
        num_train_epochs=epochs,
        per_device_train_batch_size=10,
        eval_strategy="epoch",
        save_strategy="epoch",
        use_cpu=True,
        report_to="none",
        disable_tqdm=True,
    )
    return Trainer(
        model=BertForSequenceClassification(config),
        args=arguments,
        train_dataset=FirstWord(195),
        eval_dataset=FirstWord(50),
        compute_metrics=accuracy,
        callbacks=[TrackingCallback("fp32", study="first word", warmup_steps=5)],
    )


with tempfile.TemporaryDirectory() as folder:
    for epochs in (2, 3):
        training = trainer(folder, epochs)
        training.train(resume_from_checkpoint=epochs == 3)
        callback = next(c for c in training.callback_handler.callbacks if isinstance(c, TrackingCallback))
        run = callback.run.run
        energy = fmt.energy(run.total_energy)
        print(f"attempt {run.attempt}: {run.units} samples, {energy.text} {energy.interval}")
        print(
            "  phases: " + ", ".join(f"{p.name} {p.duration_s:.2f} s {said(p.energy_j)}" for p in run.phases)
        )
        print("  quality: " + ", ".join(f"{q.name} {q.value:.3f} of {q.n}" for q in run.quality))
