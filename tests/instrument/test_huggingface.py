"""The Hugging Face callback on a real Trainer with a tiny BERT."""

import copy
import itertools
import json
import pickle

import pytest

from tests.metering.processes import runs

torch = pytest.importorskip("torch", reason="torch is of an extra that is not installed")
transformers = pytest.importorskip("transformers", reason="transformers is of an extra that is not installed")
pytest.importorskip("accelerate", reason="accelerate is of an extra that is not installed")

from carbonlens.instrument.huggingface import TrackingCallback  # noqa: E402  # after what it needs
from carbonlens.instrument.training import TrainingUnfinishedError  # noqa: E402  # after the check that the library is there

pytestmark = pytest.mark.slow
CONFIG = {
    "vocab_size": 20,
    "hidden_size": 8,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "intermediate_size": 8,
}
SHOWN = {"samples": 20, "batch": 8, "words": 6}


class Words(torch.utils.data.Dataset):
    """Random texts; the one at ``fails_at`` raises."""

    def __init__(self, length, fails_at=None, error=RuntimeError):
        self.length, self.fails_at, self.error = length, fails_at, error

    def __len__(self):
        return self.length

    def __getitem__(self, place):
        if place == self.fails_at:
            raise self.error("no such text")
        words = torch.arange(SHOWN["words"]) + place % 10
        return {"input_ids": words, "attention_mask": torch.ones_like(words), "labels": place % 2}


class Stream(torch.utils.data.IterableDataset):
    """Texts without a length."""

    def __iter__(self):
        return (Words(20)[i] for i in range(20))


@pytest.fixture(autouse=True)
def one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture
def ledger(tmp_path):
    return tmp_path / "ledger"


@pytest.fixture
def trainer(tmp_path):
    """Return a function that makes a trainer with callbacks."""

    def make(*callbacks, data=None, metrics=None, kind=transformers.Trainer, **arguments):
        usual = {
            "output_dir": str(tmp_path / "out"),
            "num_train_epochs": 1,
            "per_device_train_batch_size": SHOWN["batch"],
            "save_strategy": "no",
            "use_cpu": True,
            "report_to": "none",
            "disable_tqdm": True,
            "logging_strategy": "no",
        }
        return kind(
            model=transformers.BertForSequenceClassification(transformers.BertConfig(**CONFIG)),
            args=transformers.TrainingArguments(**{**usual, **arguments}),
            train_dataset=Words(SHOWN["samples"]) if data is None else data,
            eval_dataset=Words(10),
            compute_metrics=metrics,
            callbacks=list(callbacks),
        )

    return make


def codes(run):
    return {f.code for f in run.findings} - {"CL177"}


def test_a_training_with_evaluations_and_checkpoints(trainer, ledger):
    callback = TrackingCallback("fp32", study="s", warmup_steps=2, ledger=ledger)
    trainer(
        callback,
        num_train_epochs=2,
        eval_strategy="epoch",
        save_strategy="epoch",
        metrics=lambda p: {"accuracy": 0.5, "odd": 1.0},
    ).train()
    (run,) = runs(ledger)
    assert (run.status, run.role, run.step, run.study) == ("complete", "training", "fp32", "s")
    assert (run.units, run.unit, run.attempt, codes(run)) == (40, "sample", 1, set())
    phases = {p.name: (p.entries, p.units) for p in run.phases}
    assert phases == {
        "load": (1, None),
        "warm-up": (1, 16),
        "steady": (2, 24),
        "evaluation": (2, None),
        "checkpoint": (2, None),
    }
    assert sum(p.duration_s for p in run.phases) <= run.duration_s
    told = {q.name: (q.n, q.higher_is_better) for q in run.quality}
    assert told == {"eval_loss": (10, False), "eval_accuracy": (10, True), "eval_odd": (10, None)}
    assert callback.run.run == run


def test_tokens_and_accumulated_batches(trainer, ledger):
    tokens = TrackingCallback(unit="token", ledger=ledger)
    trainer(tokens, include_num_input_tokens_seen="all", gradient_accumulation_steps=2).train()
    samples = TrackingCallback(ledger=ledger)
    trainer(samples, gradient_accumulation_steps=2).train()
    unknown = TrackingCallback(unit="token", ledger=ledger)
    trainer(unknown, max_steps=1).train()
    assert tokens.run.run.units == 20 * SHOWN["words"]
    assert samples.run.run.units == 20
    assert (unknown.run.run.units, codes(unknown.run.run)) == (None, {"CL182"})


def test_data_without_a_length(trainer, ledger):
    trainer(TrackingCallback(ledger=ledger), data=Stream(), max_steps=6).train()
    (run,) = runs(ledger)
    assert (run.units, codes(run)) == (40, set())


class Own(transformers.Trainer):
    """Has a loader of its own, in batches of three."""

    def get_train_dataloader(self):
        return torch.utils.data.DataLoader(self.train_dataset, batch_size=3, collate_fn=self.data_collator)


class Prepared(Own):
    """Has accelerate prepare that loader."""

    def get_train_dataloader(self):
        return self.accelerator.prepare(super().get_train_dataloader())


class Batches(transformers.Trainer):
    """Has batches of many sizes."""

    def get_train_dataloader(self):
        return torch.utils.data.DataLoader(
            self.train_dataset, batch_sampler=[[0], [1, 2, 3, 4, 5], [6, 7]], collate_fn=self.data_collator
        )


class Drawn(transformers.Trainer):
    """Draws fewer samples than there are."""

    def _get_train_sampler(self, *_):
        return torch.utils.data.WeightedRandomSampler([1.0] * 20, num_samples=11)


class Half(transformers.Trainer):
    """Leaves half of each batch out."""

    def __init__(self, **more):
        super().__init__(**more, data_collator=lambda p: transformers.default_data_collator(p[: len(p) // 2]))


@pytest.mark.parametrize("kind", [Own, Prepared, Batches, Drawn, Half, transformers.Trainer])
@pytest.mark.parametrize("accumulated", [1, 2])
def test_units_are_those_of_the_batches_whoever_makes_them(trainer, ledger, kind, accumulated):
    callback = TrackingCallback(ledger=ledger)
    made = trainer(callback, kind=kind, gradient_accumulation_steps=accumulated)
    seen = samples_seen(made.model)
    made.train()
    assert (callback.run.run.units, codes(callback.run.run)) == (sum(seen), set())


@pytest.mark.parametrize(
    "more",
    [
        {"data": Stream(), "max_steps": 6, "dataloader_drop_last": True},
        {"accelerator_config": {"dispatch_batches": True}},
        {"accelerator_config": {"split_batches": True}},
    ],
)
def test_units_are_those_of_the_batches_however_they_are_shared(trainer, ledger, more):
    callback = TrackingCallback(ledger=ledger)
    made = trainer(callback, **more)
    seen = samples_seen(made.model)
    made.train()
    assert (callback.run.run.units, codes(callback.run.run)) == (sum(seen), set())


def test_batches_that_nobody_sees_are_unknown(trainer, ledger):
    class Unseen(transformers.Trainer):
        def get_batch_samples(self, iterator, number, device):
            return list(itertools.islice(iterator, number)), None

    callback = TrackingCallback(ledger=ledger)
    trainer(callback, kind=Unseen).train()
    assert (callback.run.run.units, codes(callback.run.run)) == (None, {"CL183"})


def test_batches_that_do_not_fit_into_memory_are_tried_within_one_run(trainer, ledger):
    class Small(transformers.Trainer):
        def training_step(self, model, inputs, *more):
            if len(inputs["input_ids"]) > 5:
                raise RuntimeError("CUDA out of memory. Tried")
            return super().training_step(model, inputs, *more)

    callback = TrackingCallback(ledger=ledger)
    made = trainer(callback, kind=Small, auto_find_batch_size=True)
    seen = samples_seen(made.model)
    made.train()
    (run,) = runs(ledger)
    assert (run.status, run.attempt, run.units) == ("complete", 1, sum(seen))
    made.train()
    assert [r.attempt for r in runs(ledger)] == [1, 1]


class Sub(TrackingCallback):
    """A callback of a program's own."""


@pytest.mark.parametrize("kind", [TrackingCallback, Sub])
def test_copies_record_runs_of_their_own(trainer, ledger, kind):
    copies = []

    class Copying(transformers.TrainerCallback):
        def on_step_end(self, args, state, control, **more):
            if not copies:
                copies.append(copy.deepcopy(made))

    callback = kind(ledger=ledger)
    made = trainer(callback, Copying())
    made.train()
    copies.append(copy.deepcopy(made))
    again = pickle.loads(pickle.dumps(callback))  # noqa: S301  # made here
    assert (type(again), again.run) == (type(callback), None)
    for each in copies:
        each.train()
    assert [(r.status, r.units, r.attempt) for r in runs(ledger)] == [("complete", 20, 1)] * 3


def test_a_checkpoint_carries_the_job_on(trainer, ledger, tmp_path):
    first = TrackingCallback("fp32", ledger=ledger)
    trainer(first, save_strategy="epoch", num_train_epochs=2).train()
    kept = json.loads((tmp_path / "out" / "checkpoint-3" / "trainer_state.json").read_text())
    assert str(tmp_path) not in json.dumps(kept["stateful_callbacks"])
    for restore in (False, True):
        second = TrackingCallback("fp32", ledger=ledger)
        made = trainer(
            second, save_strategy="epoch", num_train_epochs=2, restore_callback_states_from_checkpoint=restore
        )
        made.train(resume_from_checkpoint=str(tmp_path / "out" / "checkpoint-3"))
        run = sorted(runs(ledger), key=lambda r: r.start_us)[-1]
        assert (run.job_id, run.attempt, run.step) == (first.run.run.job_id, 2, "fp32")
        assert run.units == 20
    other = trainer(TrackingCallback("fp32", ledger=ledger))
    other.train()
    assert sorted(runs(ledger), key=lambda r: r.start_us)[-1].job_id != first.run.run.job_id


@pytest.mark.parametrize("resumed_at", [1, 3])
@pytest.mark.parametrize("accumulated", [1, 2])
@pytest.mark.parametrize("skip", [True, False])
def test_what_is_resumed_counts_what_the_model_saw(trainer, ledger, tmp_path, resumed_at, accumulated, skip):
    """20 samples in batches of 8: the last one of each epoch is short, wherever training goes on."""
    usual = {"save_strategy": "steps", "save_steps": 1, "num_train_epochs": 2}
    usual |= {"gradient_accumulation_steps": accumulated, "ignore_data_skip": not skip}
    first = trainer(TrackingCallback(ledger=ledger), **usual)
    seen = samples_seen(first.model)
    first.train()
    assert first.state.global_step == 6 // accumulated + (accumulated > 1)
    assert [r.units for r in runs(ledger)] == [sum(seen)] == [40]
    if resumed_at >= first.state.global_step:
        return
    callback = TrackingCallback(ledger=ledger)
    second = trainer(callback, **usual)
    seen = samples_seen(second.model)
    second.train(resume_from_checkpoint=str(tmp_path / "out" / f"checkpoint-{resumed_at}"))
    assert callback.run.run.units == sum(seen) > 0


def samples_seen(model):
    """Return a list that gets the size of each batch that a model is called with."""
    sizes = []
    model.register_forward_pre_hook(
        lambda _, args, kwargs: sizes.append(len(kwargs["input_ids"])), with_kwargs=True
    )
    return sizes


def test_a_checkpoint_that_was_made_without_the_callback(trainer, ledger, tmp_path):
    trainer(save_strategy="epoch").train()
    callback = TrackingCallback(ledger=ledger)
    resumed = trainer(callback, save_strategy="epoch", num_train_epochs=2)
    resumed.train(resume_from_checkpoint=True)
    assert (tmp_path / "out" / "checkpoint-6").is_dir()
    assert (callback.run.run.attempt, callback.run.run.status) == (1, "complete")


@pytest.mark.parametrize("error", [LookupError, KeyboardInterrupt])
def test_an_exception_passes_through_and_fails_the_run(trainer, ledger, error):
    callback = TrackingCallback(ledger=ledger)
    failing = trainer(callback, data=Words(20, fails_at=13, error=error))
    with pytest.raises(error):
        failing.train()
    (run,) = runs(ledger)
    assert (run.status, run.error) == ("failed", error.__name__)
    # What is done with the trainer afterwards is none of it, and the next training is a run of its own.
    failing.evaluate()
    failing.train_dataset = Words(8)
    failing.train()
    one, two = sorted(runs(ledger), key=lambda r: r.start_us)
    assert (one, two.status, two.units, two.job_id == one.job_id) == (run, "complete", 8, False)


def test_a_train_that_tells_nothing_is_sealed_by_the_next(trainer, ledger):
    """As where a subclass's own ``train`` ends the training without the library's."""
    callback = TrackingCallback(ledger=ledger)
    made = trainer(callback)
    args, state, control = made.args, made.state, made.control
    made.callback_handler.on_train_begin(args, state, control)
    made.train()
    first, second = sorted(runs(ledger), key=lambda r: r.start_us)
    assert (first.status, first.error) == ("failed", TrainingUnfinishedError.__name__)
    assert second.status == "complete"


@pytest.mark.parametrize("same", [True, False])
def test_a_callback_that_was_added_twice_counts_once(trainer, ledger, same):
    one = TrackingCallback(ledger=ledger)
    other = one if same else TrackingCallback(ledger=ledger)
    trainer(one, other, gradient_accumulation_steps=2, eval_strategy="epoch").train()
    (run,) = runs(ledger)
    assert (run.units, codes(run)) == (20, {"CL180"})


def test_a_trainer_that_does_not_train_records_nothing(trainer, ledger, capfd):
    idle = trainer(TrackingCallback(ledger=ledger))
    idle.evaluate()
    idle.predict(Words(4))
    assert not ledger.exists()
    assert "carbonlens" not in capfd.readouterr().err


def test_metrics_that_are_missing_or_no_number(trainer, ledger):
    callback = TrackingCallback(ledger=ledger, metrics=["eval_f1", "eval_bad"])
    trainer(callback, eval_strategy="epoch", metrics=lambda p: {"bad": float("nan")}).train()
    (run,) = runs(ledger)
    assert (run.status, run.quality, codes(run)) == ("complete", (), {"CL110", "CL186"})


def test_forked_workers_of_the_data_and_a_ledger_that_cannot_be_written(trainer, tmp_path):
    file = tmp_path / "file"
    file.write_text("no folder")
    callback = TrackingCallback(ledger=file)
    trainer(callback, dataloader_num_workers=2).train()
    run = callback.run.run
    assert (run.status, run.units) == ("complete", 20)
    assert "CL112" in codes(run)


def test_the_class_itself_may_be_given(trainer, monkeypatch, ledger):
    monkeypatch.setenv("CARBONLENS_LEDGER", str(ledger))
    made = trainer(TrackingCallback, max_steps=1)
    made.train()
    assert isinstance(made.pop_callback(TrackingCallback), transformers.TrainerCallback)
    assert len(runs(ledger)) == 1


def test_a_stated_attempt_counts(trainer, ledger):
    trainer(TrackingCallback("fp32", ledger=ledger, attempt=5)).train()
    (run,) = runs(ledger)
    assert (run.attempt, codes(run)) == (5, set())
