"""The Lightning callback on a real Trainer with one layer."""

import copy
import os
import pickle
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.metering.processes import clean_environment, runs

torch = pytest.importorskip("torch", reason="torch is of an extra that is not installed")
pl = pytest.importorskip("lightning.pytorch", reason="lightning is of an extra that is not installed")

from carbonlens.instrument.lightning import TrackingCallback  # noqa: E402  # after what it needs

pytestmark = pytest.mark.slow


class Layer(pl.LightningModule):
    """One layer; raises at the batch ``fails_at``."""

    def __init__(self, fails_at=None, error=RuntimeError):
        super().__init__()
        self.layer = torch.nn.Linear(4, 2)
        self.fails_at, self.error = fails_at, error

    def training_step(self, batch, batch_idx):
        if batch_idx == self.fails_at:
            raise self.error("no such batch")
        self.log("train_loss", 1.0)
        return self.layer(batch[0]).sum()

    def validation_step(self, batch, batch_idx):
        self.log("val_accuracy", 0.25)
        self.log("val_bad", float("nan"))

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.01)


def batches(length, **more):
    return torch.utils.data.DataLoader(
        torch.utils.data.TensorDataset(torch.ones(length, 4)), batch_size=8, **more
    )


@pytest.fixture(autouse=True)
def interruptible():
    """Lightning ignores SIGINT for good once it was interrupted."""
    before = signal.getsignal(signal.SIGINT)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture
def ledger(tmp_path):
    return tmp_path / "ledger"


@pytest.fixture
def trainer(tmp_path):
    """Return a function that makes a trainer with callbacks."""

    def make(*callbacks, package=pl, **arguments):
        usual = {
            "accelerator": "cpu",
            "devices": 1,
            "max_epochs": 1,
            "logger": False,
            "enable_checkpointing": False,
            "enable_progress_bar": False,
            "enable_model_summary": False,
            "default_root_dir": str(tmp_path),
        }
        return package.Trainer(callbacks=list(callbacks), **{**usual, **arguments})

    return make


def codes(run):
    return {f.code for f in run.findings} - {"CL177"}


def test_a_fit_with_validation_and_checkpoints(trainer, ledger, tmp_path):
    callback = TrackingCallback("fp32", study="s", warmup_steps=2, ledger=ledger)
    saving = pl.callbacks.ModelCheckpoint(dirpath=tmp_path, save_top_k=-1)
    trainer(callback, saving, max_epochs=2, enable_checkpointing=True).fit(Layer(), batches(20), batches(10))
    (run,) = runs(ledger)
    assert (run.status, run.role, run.step, run.study) == ("complete", "training", "fp32", "s")
    assert (run.units, run.unit, run.attempt, run.rank) == (40, "sample", 1, None)
    phases = {p.name: (p.entries, p.units) for p in run.phases}
    assert phases["load"] == (1, None)
    assert phases["warm-up"] == (1, 16)
    assert phases["steady"][1] == 24
    assert (phases["evaluation"], phases["checkpoint"]) == ((2, None), (2, None))
    assert [(q.name, q.value, q.n, q.higher_is_better) for q in run.quality] == [
        ("val_accuracy", 0.25, 10, True)
    ]
    assert codes(run) == {"CL110"}


def test_a_checkpoint_carries_the_job_on(trainer, ledger, tmp_path):
    first = TrackingCallback(ledger=ledger)
    made = trainer(first)
    made.fit(Layer(), batches(20))
    path = str(tmp_path / "one.ckpt")
    made.save_checkpoint(path)
    # Evaluating a checkpoint goes on with no training.
    other = TrackingCallback(ledger=ledger)
    evaluating = trainer(other)
    evaluating.validate(Layer(), batches(10), ckpt_path=path)
    evaluating.fit(Layer(), batches(20))
    second = TrackingCallback(ledger=ledger)
    trainer(second, max_epochs=2).fit(Layer(), batches(20), ckpt_path=path)
    told = [(c.run.run.job_id, c.run.run.attempt, c.run.run.units) for c in (first, other, second)]
    job = told[0][0]
    assert told[0] == (job, 1, 20)
    assert (told[1][0] != job, told[1][1:]) == (True, (1, 20))
    assert told[2] == (job, 2, 20)


@pytest.mark.parametrize(("error", "raised"), [(LookupError, LookupError), (KeyboardInterrupt, SystemExit)])
def test_an_exception_fails_the_run(trainer, ledger, error, raised):
    with pytest.raises(raised):
        trainer(TrackingCallback(ledger=ledger)).fit(Layer(fails_at=1, error=error), batches(20))
    (run,) = runs(ledger)
    assert (run.status, run.error, run.units) == ("failed", error.__name__, 8)


def test_a_sanity_check_alone_is_no_evaluation(trainer, ledger):
    made = trainer(TrackingCallback(ledger=ledger), max_steps=1, num_sanity_val_steps=1)
    made.fit(Layer(), batches(20), batches(10))
    (run,) = runs(ledger)
    assert "evaluation" not in {p.name for p in run.phases}
    assert run.quality == ()


@pytest.mark.parametrize("same", [True, False])
def test_a_callback_that_was_added_twice_counts_once(trainer, ledger, same):
    one = TrackingCallback(ledger=ledger)
    trainer(one, one if same else TrackingCallback(ledger=ledger)).fit(Layer(), batches(20))
    (run,) = runs(ledger)
    assert (run.units, codes(run)) == (20, {"CL180"})


def test_what_is_no_fit_records_nothing(trainer, ledger, capfd):
    made = trainer(TrackingCallback(ledger=ledger))
    made.validate(Layer(), batches(10))
    assert not ledger.exists()
    assert "carbonlens" not in capfd.readouterr().err


def test_metrics_asked_for_by_name(trainer, ledger):
    callback = TrackingCallback(ledger=ledger, metrics=["train_loss", "val_f1"])
    trainer(callback).fit(Layer(), batches(20), batches(10))
    (run,) = runs(ledger)
    assert [q.name for q in run.quality] == ["train_loss"]
    assert codes(run) == {"CL186"}


def test_the_other_package_and_forked_workers(trainer, ledger):
    package = pytest.importorskip(
        "pytorch_lightning", reason="pytorch_lightning is of an extra that is not installed"
    )

    class Theirs(package.LightningModule):
        training_step = Layer.training_step
        configure_optimizers = Layer.configure_optimizers

        def __init__(self):
            super().__init__()
            self.layer, self.fails_at = torch.nn.Linear(4, 2), None

    callback = TrackingCallback(ledger=ledger)
    assert isinstance(callback, package.Callback)
    assert isinstance(callback, pl.Callback)
    trainer(callback, package=package).fit(Theirs(), batches(20, num_workers=2))
    (run,) = runs(ledger)
    assert (run.status, run.units) == ("complete", 20)


def test_each_validation_loader_has_its_own_examples(trainer, ledger):
    class Several(Layer):
        def validation_step(self, batch, batch_idx, dataloader_idx=0):
            self.log("val_loss", 1.0)

    trainer(TrackingCallback(ledger=ledger)).fit(Several(), batches(20), [batches(10), batches(6)])
    (run,) = runs(ledger)
    assert {(q.name, q.n) for q in run.quality} == {
        ("val_loss/dataloader_idx_0", 10),
        ("val_loss/dataloader_idx_1", 6),
    }


def test_batches_that_do_not_tell_their_size_are_steps_all_the_same(trainer, ledger):
    class Ones(Layer):
        def training_step(self, batch, batch_idx):
            return self.layer(torch.ones(2, 4)).sum()

    nested = torch.nested.nested_tensor([torch.ones(2, 4), torch.ones(3, 4)])
    trainer(TrackingCallback(ledger=ledger, warmup_steps=1)).fit(
        Ones(), torch.utils.data.DataLoader(range(2), collate_fn=lambda _: nested)
    )
    (run,) = runs(ledger)
    assert (run.units, codes(run)) == (None, {"CL184"})
    assert {p.name for p in run.phases} >= {"warm-up", "steady"}


def test_a_copy_has_no_run(trainer, ledger):
    callback = TrackingCallback(ledger=ledger)
    made = trainer(callback)
    made.fit(Layer(), batches(20))
    copied = copy.deepcopy(made)
    again = pickle.loads(pickle.dumps(callback))  # noqa: S301  # made here
    assert (type(again), again.run, copied.callbacks[0].run) == (type(callback), None, None)


DDP = """
import sys
import time
import lightning.pytorch as pl
from carbonlens.instrument.lightning import TrackingCallback
from tests.instrument.test_lightning import Layer, batches


def burn(seconds):
    end = time.process_time() + seconds
    while time.process_time() < end:
        pass


class Busy(Layer):
    def training_step(self, batch, batch_idx):
        burn(0.1)
        return super().training_step(batch, batch_idx)


trainer = pl.Trainer(
    accelerator="cpu", devices=2, strategy="ddp", max_epochs=1, logger=False, enable_checkpointing=False,
    enable_progress_bar=False, enable_model_summary=False, callbacks=[TrackingCallback(ledger=sys.argv[1])],
)
trainer.fit(Busy(), batches(160))
"""


def test_ranks_that_lightning_starts_itself_are_counted_once_each(tmp_path, ledger):
    script = tmp_path / "script.py"
    script.write_text(DDP)
    env = clean_environment(tmp_path, PYTHONPATH=str(Path(__file__).parents[2]), OMP_NUM_THREADS="1")
    for name in ("MASTER_ADDR", "MASTER_PORT", "LOCAL_RANK", "NODE_RANK", "WORLD_SIZE", "RANK"):
        env.pop(name, None)
    command = [sys.executable, str(script), str(ledger)]
    before = os.times()
    done = subprocess.run(command, env=env, cwd=tmp_path, capture_output=True, text=True, timeout=580)
    after = os.times()
    assert done.returncode == 0, done.stderr[-2000:]
    first, second = sorted(runs(ledger), key=lambda r: r.rank)
    assert (first.job_id, first.rank, second.rank) == (second.job_id, 0, 1)
    assert (first.units, second.units) == (80, 80)
    # Each rank burnt 1 s; the first is the parent of the second, whose second is not the first's.
    used = after.children_user + after.children_system - before.children_user - before.children_system
    assert first.conditions.cpu_s + second.conditions.cpu_s < used
    assert first.conditions.cpu_s < 1.5 * second.conditions.cpu_s


SPAWN = DDP.replace('strategy="ddp"', 'strategy="ddp_spawn"').replace("trainer = pl", "make = lambda: pl")
SPAWN = SPAWN.replace("trainer.fit(", "if __name__ == '__main__':\n    make().fit(")


def test_ranks_that_are_spawned(tmp_path, ledger):
    script = tmp_path / "script.py"
    script.write_text(SPAWN)
    env = clean_environment(tmp_path, PYTHONPATH=str(Path(__file__).parents[2]), OMP_NUM_THREADS="1")
    for name in ("MASTER_ADDR", "MASTER_PORT", "LOCAL_RANK", "NODE_RANK", "WORLD_SIZE", "RANK"):
        env.pop(name, None)
    command = [sys.executable, str(script), str(ledger)]
    done = subprocess.run(command, env=env, cwd=tmp_path, capture_output=True, text=True, timeout=580)
    assert done.returncode == 0, done.stderr[-2000:]
    first, second = sorted(runs(ledger), key=lambda r: r.rank)
    assert (first.job_id, first.rank, second.rank) == (second.job_id, 0, 1)
    assert (first.units, second.units) == (80, 80)
