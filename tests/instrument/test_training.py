"""What a framework's callback stands on: a run that is opened and sealed by events."""

import copy
import gc
import pickle
import sys
import weakref
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carbonlens.domain.phase import EVALUATION
from carbonlens.instrument.request import Request
from carbonlens.instrument.training import (
    WARM_UP_STEPS,
    JobState,
    Training,
    TrainingUnfinishedError,
    quiet,
)
from carbonlens.instrument.training_units import StepCount, is_token, samples_of, tokens_of
from carbonlens.ledger.store import Ledger
from tests.metering.processes import python, runs


@pytest.fixture
def ledger(tmp_path):
    return tmp_path / "ledger"


def training(ledger, *, warmup_steps=2, metrics=None, **asked):
    return Training(Request(role="training", ledger=ledger, **asked), warmup_steps, metrics)


def only(ledger):
    (run,) = runs(ledger)
    return run


def codes(run):
    """Return the codes of what is said, but for phases too short to have an energy."""
    return [f.code for f in run.findings if f.code != "CL177"]


def test_a_training_in_phases(ledger):
    one = training(ledger, unit="sample")
    one.begin()
    for _ in range(5):
        one.train()
        one.stepped(8)
    one.enter(EVALUATION)
    one.record({"eval_accuracy": 0.5, "eval_loss": 1.5, "eval_odd": 2}, 40)
    one.train(over=True)
    one.end()
    run = only(ledger)
    assert (run.status, run.role, run.units, run.attempt) == ("complete", "training", 40, 1)
    assert {p.name: p.units for p in run.phases} == {
        "load": None,
        "warm-up": 16,
        "steady": 24,
        "evaluation": None,
    }
    assert [(q.name, q.value, q.n, q.higher_is_better) for q in run.quality] == [
        ("eval_accuracy", 0.5, 40, True),
        ("eval_loss", 1.5, 40, False),
        ("eval_odd", 2.0, 40, None),
    ]


def test_the_user_knows_a_direction_better(ledger):
    one = training(ledger)
    one.begin()
    one.record({"eval_odd": 2}, directions={"eval_odd": False})
    one.end()
    assert only(ledger).quality[0].higher_is_better is False


def test_nothing_happens_while_no_run_is_open(ledger):
    one = training(ledger)
    one.train()
    one.stepped(3)
    one.record({"accuracy": 1.0})
    one.end()
    assert one.handle is None
    assert not Ledger(ledger).exists


def test_a_training_that_ended_untold_is_sealed_by_the_next(ledger):
    one = training(ledger)
    one.begin()
    one.begin()
    one.end()
    first, second = sorted(runs(ledger), key=lambda r: r.run_id)
    assert (first.status, first.error) == ("failed", TrainingUnfinishedError.__name__)
    assert (second.status, second.parent_run_id) == ("complete", None)


@pytest.mark.parametrize(
    ("end", "error"),
    [
        ("raise ValueError", "ValueError"),
        ("", "TrainingUnfinishedError"),
        ("raise KeyboardInterrupt", "Keyb"),
    ],
)
def test_a_training_that_the_process_leaves_open_is_sealed_at_its_end(tmp_path, ledger, end, error):
    code = (
        "import sys\nfrom carbonlens.instrument.request import Request\n"
        "from carbonlens.instrument.training import Training\n"
        f"Training(Request(ledger=sys.argv[1]), 2, None).begin()\n{end}\n"
    )
    done = python(code, tmp_path, str(ledger))
    assert "carbonlens" not in done.stderr.replace("instrument/training", "")
    run = only(ledger)
    assert run.status == "failed"
    assert run.error.startswith(error)


def test_an_exception_ends_it_as_failed(ledger):
    one = training(ledger)
    one.begin()
    one.end(KeyboardInterrupt())
    assert (only(ledger).status, only(ledger).error) == ("failed", "KeyboardInterrupt")


def test_a_checkpoint_carries_the_job_on(ledger):
    one = training(ledger)
    one.begin()
    kept = one.job_state
    one.end()
    assert one.job_state is None
    other = training(ledger)
    other.begin(kept)
    assert other.job_state == JobState(job_id=kept.job_id, attempt=2)
    other.end()
    assert {(r.job_id, r.attempt) for r in runs(ledger)} == {(kept.job_id, 1), (kept.job_id, 2)}


def test_another_job_that_was_asked_for_does_not_go_on(ledger):
    one = training(ledger, job_id="mine")
    one.begin(JobState(job_id="other", attempt=4))
    one.end()
    assert (only(ledger).job_id, only(ledger).attempt) == ("mine", 1)


def test_a_launcher_s_restart_counts_too(ledger, monkeypatch):
    monkeypatch.setenv("TORCHELASTIC_RUN_ID", "abc")
    monkeypatch.setenv("TORCHELASTIC_RESTART_COUNT", "3")
    one = training(ledger)
    one.begin(JobState(job_id="abc", attempt=1))
    one.end()
    assert only(ledger).attempt == 4


def test_metrics_that_are_absent_or_no_number(ledger):
    one = training(ledger, metrics=["eval_f1", "eval_loss"])
    one.begin()
    one.record({"eval_loss": float("nan"), "eval_other": 1.0})
    one.end()
    run = only(ledger)
    assert run.quality == ()
    assert codes(run) == ["CL110", "CL186"]
    assert "eval_loss" in run.findings[0].message
    assert "eval_f1" in run.findings[1].message


def test_a_fault_in_a_hook_is_a_finding(ledger):
    class Callback:
        training = training(ledger)

        @quiet
        def on_step(self, number):
            raise LookupError("secret")

    one = Callback()
    one.on_step(1)  # nothing is open: nobody can be told
    one.training.begin()
    one.on_step(1)
    one.training.end()
    run = only(ledger)
    assert (run.status, codes(run)) == ("complete", ["CL181"])
    assert "LookupError" in run.findings[0].message
    assert "secret" not in run.findings[0].message


def test_a_ledger_that_cannot_be_written(tmp_path, capfd):
    file = tmp_path / "file"
    file.write_text("no folder")
    one = training(file)
    one.begin()
    one.stepped(1)
    one.end()
    assert one.handle.run.status == "complete"
    assert "CL112" in codes(one.handle.run)
    assert capfd.readouterr().out == ""


def test_a_forked_worker_feeds_nothing(tmp_path, ledger):
    code = (
        "import os, sys\nfrom carbonlens.instrument.request import Request\n"
        "from carbonlens.instrument.training import Training\n"
        "one = Training(Request(ledger=sys.argv[1]), 2, None)\none.begin()\none.stepped(1)\n"
        "if os.fork() == 0:\n    assert not one.is_open\n"
        "    one.stepped(100)\n    one.enter('x')\n    sys.exit()\n"
        "assert os.wait()[1] == 0\none.end()\n"
    )
    done = python(code, tmp_path, str(ledger))
    assert (done.returncode, done.stderr) == (0, "")
    run = only(ledger)
    assert (run.status, run.units, run.error) == ("complete", 1, None)


def arguments(**more):
    usual = {"world_size": 1, "process_index": 0, "include_num_input_tokens_seen": "no"}
    return SimpleNamespace(**{**usual, **more})


def at(step=0, tokens=0):
    return SimpleNamespace(global_step=step, num_input_tokens_seen=tokens)


def test_a_step_has_the_samples_of_the_batches_that_were_taken_for_it():
    count = StepCount(arguments(), at(), tokens=False)
    count.fetched([8])
    assert count.step(at(1)) == 8
    count.fetched([8, None, 3])
    assert (count.batch(), count.batch(), count.step(at(2))) == (8, None, 3)
    count.fetched([8, 8])  # one of which is left, where the epoch was stopped
    assert count.batch() == 8
    count.fetched([2])
    assert (count.step(at(3)), count.findings) == (2, ())


def test_batches_that_nobody_saw_are_unknown():
    count = StepCount(arguments(), at(), tokens=False)
    assert count.step(at(1)) is None
    assert [f.code for f in count.findings] == ["CL183"]


def test_a_callback_added_twice_counts_once():
    count = StepCount(arguments(), at(4), tokens=False)
    assert count.has(4)
    count.fetched([8, 7])
    assert (count.batch(copies=2), count.batch(copies=2)) == (None, 8)
    assert count.step(at(5)) == 7
    assert count.has(5)


@given(st.lists(st.integers(0, 10**6), min_size=1, max_size=5), st.integers(1, 9))
def test_the_ranks_shares_of_tokens_sum_to_all(steps, ranks):
    given_tokens, counted, seen = 0, 0, 0
    counts = [
        StepCount(
            arguments(world_size=ranks, process_index=r, include_num_input_tokens_seen="all"),
            at(),
            tokens=True,
        )
        for r in range(ranks)
    ]
    for number, tokens in enumerate(steps, 1):
        given_tokens += tokens
        seen += tokens
        counted += sum(c.step(at(number, seen)) for c in counts)
    assert counted == given_tokens


def test_tokens_that_the_trainer_does_not_count_are_unknown():
    count = StepCount(arguments(), at(), tokens=True)
    assert [f.code for f in count.findings] == ["CL182"]
    assert count.step(at(1)) is None


class Shaped:
    """What has a shape, as a tensor."""

    def __init__(self, *shape):
        self.shape = shape


class Nested:
    """What cannot tell its shape, as a nested tensor."""

    @property
    def shape(self):
        raise RuntimeError("no shape")


@pytest.mark.parametrize(
    ("batch", "samples", "tokens"),
    [
        (Shaped(4, 3), 4, None),
        ([Shaped(5, 3), Shaped(5)], 5, None),
        ({"input_ids": Shaped(2, 7), "labels": Shaped(2)}, 2, 14),
        ({"x": ["a", "b"]}, None, None),
        (Shaped(), None, None),
        ({"scale": Shaped(), "x": Shaped(3, 2)}, 3, None),
        ([Shaped(10), Shaped(4, 3), Shaped(4)], None, None),
        ({"input_ids": Nested(), "labels": Shaped(2)}, None, None),
        ({"text": ["a"] * 100_000, "x": Shaped(6, 2)}, 6, None),
        ("text", None, None),
        (None, None, None),
    ],
)
def test_how_much_a_batch_is(batch, samples, tokens):
    assert (samples_of(batch), tokens_of(batch)) == (samples, tokens)


@pytest.mark.parametrize("opened", [False, True])
def test_a_copy_has_no_run(ledger, opened):
    one = training(ledger, unit="sample", metrics=["eval_f1"])
    if opened:
        one.begin()
        one.stepped(4)
    copies = copy.deepcopy(one), pickle.loads(pickle.dumps(one))  # noqa: S301  # made here
    assert [(c.handle, c.is_open, c.metrics) for c in copies] == [(None, False, ("eval_f1",))] * 2
    one.end()
    for each in copies:
        each.begin()
        each.stepped(1)
        each.end()
    assert sorted(r.units for r in runs(ledger)) == [1, 1, *([4] if opened else [])]


def test_an_earlier_error_is_not_kept_alive(ledger, monkeypatch):
    class LookedAtError(Exception):
        pass

    monkeypatch.setattr(sys, "last_value", LookedAtError(), raising=False)
    seen = weakref.ref(sys.last_value)
    one = training(ledger)
    one.begin()
    sys.last_value = None
    gc.collect()
    assert seen() is None
    one.end()


@pytest.mark.parametrize(
    ("warmup_steps", "phases", "said"),
    [
        ("3", {"load", "warm-up", "steady"}, []),
        (None, {"load", "warm-up"}, []),
        (["a"], {"load", "warm-up"}, ["CL110"]),
        (2.5, {"load", "warm-up"}, ["CL110"]),
    ],
)
def test_a_number_of_warm_up_steps_that_is_none(ledger, warmup_steps, phases, said):
    one = training(ledger, warmup_steps=warmup_steps)
    one.begin()
    for _ in range(WARM_UP_STEPS):
        one.train()
        one.stepped(1)
    one.end()
    assert ({p.name for p in only(ledger).phases}, codes(only(ledger))) == (phases, said)


@pytest.mark.parametrize(
    ("metrics", "names", "said"),
    [("eval_loss", ("eval_loss",), []), (iter(["a"]), ("a",), ["CL186"]), (5, None, ["CL110"])],
)
def test_names_of_metrics(ledger, metrics, names, said):
    one = training(ledger, metrics=metrics)
    one.begin()
    one.record({"eval_loss": 1.0})
    one.end()
    assert (one.metrics, codes(only(ledger))) == (names, said)


def test_a_unit_that_is_no_text_is_no_token():
    assert [is_token(unit) for unit in ("token", "sample", ["token"], None)] == [True, False, False, False]


def test_a_checkpoint_keeps_the_attempt_that_was_recorded(ledger, monkeypatch):
    """A restart that loads a checkpoint: the launcher knows of more attempts than that."""
    monkeypatch.setenv("TORCHELASTIC_RESTART_COUNT", "2")
    one = training(ledger)
    one.begin(JobState(job_id="abc", attempt=1))
    kept = one.job_state
    one.end()
    assert kept == JobState(job_id="abc", attempt=3)
    monkeypatch.delenv("TORCHELASTIC_RESTART_COUNT")
    two = training(ledger)
    two.begin(kept)
    two.end()
    assert sorted(r.attempt for r in runs(ledger)) == [3, 4]


def test_an_attempt_that_the_user_states_counts(ledger):
    one = training(ledger, attempt=5)
    one.begin()
    assert one.job_state.attempt == 5
    one.end()
    one.begin(JobState(job_id="abc", attempt=2))
    one.end()
    one.begin(JobState(job_id="abc", attempt=7))
    one.end()
    assert sorted(r.attempt for r in runs(ledger)) == [5, 5, 8]


def test_an_attempt_that_is_no_number_is_said(ledger):
    one = training(ledger, attempt="fifth")
    one.begin()
    one.end()
    run = only(ledger)
    assert run.attempt == 1
    (said,) = [f for f in run.findings if f.code == "CL110"]
    assert said.subject == "attempt"
