"""``TrackedSession``: a drop-in that counts, on real tiny models; and never in the way."""

import copy
import gc
import os
import pickle
import subprocess
import sys
import threading
import time
import weakref
from decimal import Decimal
from pathlib import Path

import numpy as np
import onnxruntime
import pytest

from carbonlens import track
from carbonlens.instrument.onnxruntime import TrackedSession
from carbonlens.instrument.onnxruntime_execution import _kept
from carbonlens.instrument.onnxruntime_meter import SessionMeter
from tests.instrument.onnx_models import mlp, scalar, swapped
from tests.metering.processes import clean_environment, runs

CPU = ["CPUExecutionProvider"]


@pytest.fixture
def ledger(tmp_path):
    return tmp_path / "ledger"


@pytest.fixture
def model(tmp_path):
    return mlp(tmp_path)


def feed(batch=2, wide=16):
    return {"x": np.random.default_rng(1).normal(size=(batch, wide)).astype("f4")}


def codes(run):
    return [f.code for f in run.findings]


def said(run, code):
    (finding,) = [f for f in run.findings if f.code == code]
    return finding.message


def test_results_are_those_of_the_bare_session(model, ledger):
    bare = onnxruntime.InferenceSession(model, providers=CPU)
    with track("s", ledger=ledger) as run:
        session = TrackedSession(model, providers=CPU, run=run)
        for size in (1, 3, 8):
            given = feed(size)
            assert np.array_equal(session.run(None, given)[0], bare.run(None, given)[0])
        assert np.array_equal(session.run(["y"], input_feed=feed())[0], bare.run(["y"], feed())[0])
    (record,) = runs(ledger)
    assert (record.units, record.latency.n) == (Decimal(14), 4)
    assert record.latency.p50_ms > 0
    assert [(t.provider, t.nodes, t.time_s, t.share) for t in record.execution] == [
        ("CPUExecutionProvider", None, None, None)
    ]
    assert codes(record) == codes(run.run)
    assert not {c for c in codes(record) if c >= "CL190"}


def test_ort_values_bindings_vectors_and_callbacks_count_alike(model, ledger):
    bare = onnxruntime.InferenceSession(model, providers=CPU)
    given = feed(3)
    expected = bare.run(None, given)[0]
    with track("s", ledger=ledger) as run:
        session = TrackedSession(model, providers=CPU, run=run)
        value = onnxruntime.OrtValue.ortvalue_from_numpy(given["x"])
        assert np.array_equal(session.run_with_ort_values(None, {"x": value})[0].numpy(), expected)
        binding = session.io_binding()
        binding.bind_cpu_input("x", given["x"])
        binding.bind_output("y")
        session.run_with_iobinding(binding)
        assert np.array_equal(binding.copy_outputs_to_cpu()[0], expected)
        done, answers = threading.Event(), []

        def callback(results, user_data, error):
            answers.append((results[0], user_data, error))
            done.set()

        session.run_async(None, given, callback, "mine")
        assert done.wait(60)
        vector = onnxruntime.capi.onnxruntime_pybind11_state.OrtValueVector
        feeds, fetches = vector(), vector()
        feeds.push_back(value._ortvalue)
        device = onnxruntime.OrtDevice.make("cpu", 0)._get_c_device()
        options = onnxruntime.RunOptions()
        session.run_with_ortvaluevector(options, ["x"], feeds, ["y"], fetches, [device])
    assert np.array_equal(answers[0][0], expected)
    assert answers[0][1:] == ("mine", "")
    assert (run.run.units, run.run.latency.n) == (Decimal(12), 4)


def test_it_passes_for_the_class_it_stands_for(model, ledger):
    with TrackedSession(model, providers=CPU, run=track("s", ledger=ledger)) as session:
        assert isinstance(session, onnxruntime.InferenceSession)
        assert isinstance(session, TrackedSession)
        assert session.get_inputs()[0].name == "x"
        assert session.get_providers() == CPU
        assert session._model_path == os.fspath(model)
        assert session.get_modelmeta().producer_name == ""
        session.mine = 5
        assert session.mine == 5
        assert {"run", "get_outputs", "close", "tracked", "mine"} <= set(dir(session))
        assert "InferenceSession" in repr(session)
        with pytest.raises(AttributeError, match="no attribute 'absent'"):
            session.absent  # noqa: B018  # asking is the test
        assert errors(pickle.dumps, session) == errors(pickle.dumps, session._bare)
        assert errors(copy.deepcopy, session)[0] is TypeError
        assert copy.copy(session) is session
        # ONNX Runtime's own class takes it too.
        binding = onnxruntime.IOBinding(session)
        binding.bind_cpu_input("x", feed()["x"])
        binding.bind_output("y")
        session.run_with_iobinding(binding)
    assert session.tracked.run.units == 2


def test_a_session_that_exists_is_wrapped_and_a_class_of_ones_own_stays(model, ledger):
    class Mine(onnxruntime.InferenceSession):
        def run(self, *args, **kwargs):
            return ["mine", *super().run(*args, **kwargs)]

    bare = Mine(model, providers=CPU)
    with TrackedSession(bare, run=track("s", ledger=ledger)) as session:
        assert isinstance(session, Mine)
        assert session.run(None, feed(4))[0] == "mine"
    assert session.tracked.run.units == 4
    with TrackedSession(bare, None, CPU, run=track("s", ledger=ledger)) as session:
        session.run(None, feed())
    assert "session options was not recorded" in said(session.tracked.run, "CL110")


def test_standing_alone_it_has_a_run_of_its_own(model, ledger, monkeypatch):
    monkeypatch.setenv("CARBONLENS_LEDGER", str(ledger))
    session = TrackedSession(model.read_bytes(), providers=CPU)
    session.run(None, feed())
    session.close()
    session.close()
    # It goes on to work, unmeasured.
    assert session.run(None, feed(7))[0].shape == (7, 4)
    (record,) = runs(ledger)
    assert (record.status, record.units, record.unit) == ("complete", Decimal(2), "inference")
    assert session.tracked.run == record
    assert record.latency.n == 1


def test_one_tracker_serves_several_sessions_that_end_in_any_order(model, ledger):
    tracker = track("s", study="t", ledger=ledger)
    one, two = (TrackedSession(model, providers=CPU, run=tracker) for _ in range(2))
    one.run(None, feed(1))
    two.run(None, feed(5))
    one.close()
    two.run(None, feed(5))
    two.close()
    assert (one.tracked.run.units, two.tracked.run.units) == (1, 10)
    assert [r.study for r in runs(ledger)] == ["t", "t"]


def test_an_exception_in_its_block_makes_its_run_a_failed_one(model, ledger):
    error = ValueError("mine")
    tracker = track("s", ledger=ledger)
    with pytest.raises(ValueError, match="mine") as caught, TrackedSession(model, run=tracker):
        raise error
    assert caught.value is error
    (record,) = runs(ledger)
    assert (record.status, record.error) == ("failed", "ValueError")


def test_two_sessions_of_one_run_add_up(model, tmp_path, ledger):
    with track("s", ledger=ledger) as run:
        encoder = TrackedSession(model, providers=CPU, run=run)
        decoder = TrackedSession(model, providers=CPU, run=run, units=0)
        encoder.run(None, feed(3))
        decoder.run(None, feed(9))
        encoder.close()
        encoder.run(None, feed(3))
    assert (run.run.units, run.run.latency.n) == (3, 2)
    assert [t.provider for t in run.run.execution] == CPU


@pytest.mark.parametrize(
    ("units", "expected"),
    [(5, 10), (0.5, 1), (np.int64(3), 6), (lambda given: given["x"].shape[1], 32), (Decimal("1.5"), 3)],
)
def test_units_as_the_user_says(model, ledger, units, expected):
    with TrackedSession(model, run=track("s", ledger=ledger), units=units) as session:
        session.run(None, feed())
        session.run(None, feed())
    assert session.tracked.run.units == expected


class Mutable:
    """A number that its owner changes."""

    def __init__(self):
        self.value = 0.0

    def fill(self, value):
        self.value = float(value)
        return self

    def __float__(self):
        return self.value


class Refilled(Mutable):
    """The same as an array without dimensions."""

    def __init__(self):
        self.array = np.zeros((), np.int64)

    def fill(self, value):
        self.array[...] = value
        return self.array


@pytest.mark.parametrize("kind", [Mutable, Refilled])
def test_a_rule_may_return_the_same_object_filled_anew(model, ledger, kind):
    one = kind()
    with (
        track("s", ledger=ledger) as run,
        TrackedSession(model, run=run, units=lambda f: one.fill(len(f["x"]))) as session,
    ):
        for size in (1, 2, 3, 10):
            session.run(None, feed(size))
            assert not any(units for _, units in session._meter._pending)
        one.fill(1000)
    assert (run.run.units, run.run.latency.n) == (16, 4)


def test_the_rule_of_a_binding_gets_the_binding(model, ledger):
    seen = []
    with TrackedSession(model, run=track("s", ledger=ledger), units=lambda b: seen.append(b) or 2) as session:
        binding = session.io_binding()
        binding.bind_cpu_input("x", feed()["x"])
        binding.bind_output("y")
        session.run_with_iobinding(binding)
    assert seen == [binding]
    assert session.tracked.run.units == 2


def test_a_rule_that_raises_or_gives_no_number_is_a_finding(model, ledger):
    def broken(given):
        raise KeyError("secret-value")

    with TrackedSession(model, run=track("s", ledger=ledger), units=broken) as session:
        assert session.run(None, feed())[0].shape == (2, 4)
        session.run(None, feed())
    record = session.tracked.run
    assert (record.units, record.latency.n) == (None, 2)
    assert "2 calls of the session not counted as units (KeyError)" in said(record, "CL194")
    assert "secret-value" not in str(record)
    with TrackedSession(model, run=track("s", ledger=ledger), units=lambda given: "many") as session:
        session.run(None, feed())
    assert "units was not recorded" in said(session.tracked.run, "CL110")
    with TrackedSession(model, run=track("s", ledger=ledger), units=lambda given: None) as session:
        session.run(None, feed())
    assert session.tracked.run.units is None
    assert "1 call of the session not counted as units" in said(session.tracked.run, "CL194")
    with TrackedSession(model, run=track("s", ledger=ledger), units=-1) as session:
        session.run(None, feed())
    assert "negative" in said(session.tracked.run, "CL110")


def test_an_input_without_a_batch_is_one_unit(tmp_path, ledger):
    with TrackedSession(scalar(tmp_path), run=track("s", ledger=ledger)) as session:
        session.run(None, {"x": np.array(3, "f4")})
        binding = session.io_binding()
        binding.bind_cpu_input("x", np.array(3, "f4"))
        binding.bind_output("y")
        session.run_with_iobinding(binding)
    assert session.tracked.run.units == 2


def test_the_batch_of_a_binding_is_found_among_its_outputs(tmp_path, ledger):
    """``total`` has no batch and is bound first, last, or alone."""
    given = np.ones((5, 3), "f4")
    with TrackedSession(swapped(tmp_path), run=track("s", ledger=ledger)) as session:
        for names in (("total", "y"), ("y", "total"), ("y",)):
            binding = session.io_binding()
            binding.bind_cpu_input("x", given)
            for name in names:
                binding.bind_output(name)
            session.run_with_iobinding(binding)
        assert session._meter.run._recorder.facts().units == 15
        binding = session.io_binding()
        binding.bind_cpu_input("x", given)
        binding.bind_output("total")
        session.run_with_iobinding(binding)
    assert session.tracked.run.units == 15
    assert "1 call of the session not counted" in said(session.tracked.run, "CL194")


def test_a_fixed_batch_needs_no_look_at_outputs(tmp_path, ledger):
    with TrackedSession(mlp(tmp_path, batch=6), run=track("s", ledger=ledger)) as session:
        binding = session.io_binding()
        binding.bind_cpu_input("x", feed(6)["x"])
        binding.bind_output("y")
        session.run_with_iobinding(binding)
        session.run(None, feed(6))
    assert session.tracked.run.units == 12


def errors(call, session):
    with pytest.raises(Exception) as caught:  # noqa: PT011  # whatever the bare session raises
        call(session)
    return type(caught.value), str(caught.value)


def unbound_output(session):
    binding = session.io_binding()
    binding.bind_cpu_input("x", feed()["x"])
    session.run_with_iobinding(binding)


def foreign_binding(session):
    session.run_with_iobinding(onnxruntime.InferenceSession(session._model_path, providers=CPU).io_binding())


@pytest.mark.parametrize(
    "call",
    [
        lambda s: s.run(None, {}),
        lambda s: s.run(None, {"x": np.ones((2, 99), "f4")}),
        lambda s: s.run(None, {"x": np.ones((2, 16), "i4")}),
        lambda s: s.run(["absent"], feed()),
        lambda s: s.run(None, None),
        lambda s: s.run_with_ort_values(None, {}),
        lambda s: s.run_with_iobinding(None),
        foreign_binding,
        lambda s: s.run_async(None, {}, print, None),
        lambda s: s.run_with_ortvaluevector(None),
    ],
)
def test_errors_of_a_call_are_those_of_the_bare_session(model, ledger, call):
    bare = onnxruntime.InferenceSession(model, providers=CPU)
    with TrackedSession(model, providers=CPU, run=track("s", ledger=ledger)) as session:
        assert errors(call, session) == errors(call, bare)
        session.run(None, feed())
    record = session.tracked.run
    assert (record.status, record.units, record.latency.n) == ("complete", 2, 1)
    assert "1 call of the session failed" in said(record, "CL193")


def test_a_binding_without_outputs_does_what_the_bare_session_does(model, ledger):
    """ONNX Runtime computes nothing that anybody would get; how many units that was is not told."""
    bare = onnxruntime.InferenceSession(model, providers=CPU)
    outcome = None
    try:
        unbound_output(bare)
    except Exception as error:  # noqa: BLE001  # versions differ
        outcome = type(error), str(error)
    with TrackedSession(model, providers=CPU, run=track("s", ledger=ledger)) as session:
        if outcome is None:
            unbound_output(session)
        else:
            assert errors(unbound_output, session) == outcome
    assert session.tracked.run.units is None
    assert {"CL194", "CL193"} & set(codes(session.tracked.run))


def test_a_failing_callback_error_is_counted_as_failed(model, ledger):
    with TrackedSession(model, providers=CPU, run=track("s", ledger=ledger)) as session:
        told, done = [], threading.Event()

        def callback(results, user_data, error):
            told.append(error)
            done.set()

        session.run_async(None, {"x": np.ones((2, 99), "f4")}, callback=callback, user_data=None)
        assert done.wait(60)
    assert told[0]
    assert "1 call of the session failed" in said(session.tracked.run, "CL193")


@pytest.mark.parametrize(
    ("name", "content"), [("absent.onnx", None), ("corrupt.onnx", b"no model"), ("e.onnx", b"")]
)
def test_a_model_that_cannot_be_loaded_raises_as_ever_and_leaves_no_run(tmp_path, ledger, name, content):
    file = tmp_path / name
    if content is not None:
        file.write_bytes(content)
    for profile in (False, True):
        tracker = track("s", ledger=ledger)
        tracked = errors(lambda f: TrackedSession(f, run=tracker, profile=profile), file)  # noqa: B023  # called at once
        assert tracked == errors(onnxruntime.InferenceSession, file)
    assert not ledger.exists() or not runs(ledger)
    assert errors(TrackedSession, 5) == errors(onnxruntime.InferenceSession, 5)


def test_a_session_never_called_says_so(model, ledger):
    with TrackedSession(model, run=track("s", ledger=ledger)) as session:
        pass
    record = session.tracked.run
    assert record.units == 0
    assert record.latency is None
    assert "never called" in said(record, "CL195")


def test_a_run_that_is_none_gives_one_of_its_own(model, ledger, monkeypatch):
    monkeypatch.setenv("CARBONLENS_LEDGER", str(ledger))
    with TrackedSession(model, run="int8") as session:
        session.run(None, feed())
    assert "run was not recorded" in said(session.tracked.run, "CL110")
    assert len(runs(ledger)) == 1


def test_calls_from_several_threads_are_all_counted(model, ledger):
    with track("s", ledger=ledger) as run:
        session = TrackedSession(model, providers=CPU, run=run)
        threads = [
            threading.Thread(target=lambda: [session.run(None, feed()) for _ in range(400)]) for _ in range(4)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert (run.run.units, run.run.latency.n) == (3200, 1600)


def test_what_is_gathered_is_in_every_look_at_what_was_recorded(model, ledger):
    """The journal's rhythm is that of looks: nothing waits for a further call."""
    with track("s", ledger=ledger) as run:
        session = TrackedSession(model, providers=CPU, run=run)
        for k in range(1, 4):
            before = run._recorder.version
            session.run(None, feed())
            assert run._recorder.version > before
            assert run._recorder.facts().units == 2 * k
        for _ in range(600):
            session.run(None, feed())
        assert len(session._meter._pending) < 256
    assert run.run.units == 1206


@pytest.mark.parametrize("profile", [False, True])
def test_sessions_that_are_closed_leave_nothing_behind_but_their_figures(model, ledger, profile):
    def used(run, session=None):
        with session or TrackedSession(model, providers=CPU, run=run, profile=profile) as one:
            one.run(None, feed())

    with track("s", ledger=ledger) as run:
        lasting = TrackedSession(model, providers=CPU, run=run)
        recorder, kept = run._recorder, _kept._runs[run]
        for _ in range(20):
            used(run)
        lasting.run(None, feed())
        assert (len(recorder._before_look), len(recorder._at_end), len(kept.open)) == (1, 1, 1)
    assert (recorder._before_look, recorder._at_end, kept.open) == ([], [], {})
    assert (run.run.units, run.run.latency.n) == (42, 21)
    with track("s", ledger=ledger) as run:
        for _ in range(3):
            used(run)
        with track("apart", ledger=ledger) as other:
            overlapping = [TrackedSession(model, providers=CPU, run=other, profile=profile) for _ in range(3)]
            for session in overlapping:
                used(other, session)
    (one,), (two,) = run.run.execution, other.run.execution
    assert (one.provider, one.nodes, one.share) == (two.provider, two.nodes, two.share)
    assert (one.time_s is None, one.nodes is None) == (not profile, not profile)


def test_a_call_that_ends_while_the_session_is_closed_counts(model, ledger):
    with track("s", ledger=ledger) as run:
        session = TrackedSession(model, run=run, units=lambda given: session.close() or 2)
        session.run(None, feed())
    assert (run.run.units, run.run.latency.n) == (2, 1)


@pytest.mark.slow
def test_a_killed_program_keeps_what_it_counted(model, tmp_path):
    code = f"""
import os, time, numpy as np, carbonlens
from carbonlens.instrument.onnxruntime import TrackedSession
session = TrackedSession({str(model)!r}, run=carbonlens.track("s", ledger="ledger"))
for _ in range(10): session.run(None, {{"x": np.ones((2, 16), "f4")}})
time.sleep(1.5)
os.kill(os.getpid(), 9)
"""
    subprocess.run([sys.executable, "-c", code], cwd=tmp_path, env=clean_environment(tmp_path), check=False)
    subprocess.run(
        [sys.executable, "-m", "carbonlens.cli.main", "runs", "recover", "--ledger", "ledger"],
        cwd=tmp_path,
        env=clean_environment(tmp_path),
        check=True,
        capture_output=True,
    )
    (record,) = runs(tmp_path / "ledger")
    assert (record.status, record.units, record.latency.n) == ("recovered", 20, 10)
    assert [t.provider for t in record.execution]


def test_a_session_left_open_is_sealed_at_the_end_of_the_program(model, tmp_path):
    code = f"""
import numpy as np, carbonlens
from carbonlens.instrument.onnxruntime import TrackedSession
session = TrackedSession({str(model)!r}, run=carbonlens.track("s", ledger="ledger"))
session.run(None, {{"x": np.ones((2, 16), "f4")}})
"""
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        env=clean_environment(tmp_path),
        check=True,
        capture_output=True,
        text=True,
    )
    assert "carbonlens" not in done.stdout + done.stderr
    (record,) = runs(tmp_path / "ledger")
    assert (record.status, record.units) == ("complete", 2)
    assert "not closed" in said(record, "CL196")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_forked_worker_computes_and_counts_nothing_into_its_parents_run(model, tmp_path):
    code = f"""
import os, sys, numpy as np, carbonlens, onnxruntime
from carbonlens.instrument.onnxruntime import TrackedSession
options = onnxruntime.SessionOptions()
options.intra_op_num_threads = 1
given = {{"x": np.ones((2, 16), "f4")}}
session = TrackedSession({str(model)!r}, options, run=carbonlens.track("s", ledger="ledger"), profile=True)
expected = session.run(None, given)[0]
pid = os.fork()
if pid == 0:
    assert np.array_equal(session.run(None, given)[0], expected)
    with TrackedSession({str(model)!r}, options, run=carbonlens.track("child", ledger="ledger")) as own:
        own.run(None, given)
    session.close()
    # As workers of multiprocessing end: at an ordinary exit ONNX Runtime waits for threads of its parent.
    os._exit(7)
assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 7
session.run(None, given)
session.close()
"""
    subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, env=clean_environment(tmp_path), check=True, timeout=60
    )
    by_step = {r.step: r for r in runs(tmp_path / "ledger")}
    assert (by_step["s"].units, by_step["child"].units) == (4, 2)
    assert by_step["s"].execution[0].share == 1.0


def test_a_session_that_the_program_lets_go_of_is_freed(model, ledger):
    with track("s", ledger=ledger) as run:
        session = TrackedSession(model, run=run)
        session.run(None, feed())
        inside = weakref.ref(session._bare)
        del session
        gc.collect()
        assert inside() is None
    assert run.run.units == 2


@pytest.mark.parametrize("in_a_cycle", [False, True])
def test_a_run_ends_when_the_program_lets_go_of_its_session(model, ledger, in_a_cycle):
    def load():
        holder = [TrackedSession(model, run=track("dropped", ledger=ledger))]
        holder[0].run(None, feed())
        if in_a_cycle:
            holder.append(holder)

    with track("outer", ledger=ledger) as outer:
        load()
        gc.collect()
        with track("inner", ledger=ledger):
            pass
    with track("later", ledger=ledger):
        pass
    found = {r.step: r for r in runs(ledger)}
    assert {step: r.parent_run_id for step, r in found.items()} == {
        "dropped": outer.run_id,
        "inner": outer.run_id,
        "outer": None,
        "later": None,
    }
    assert (found["dropped"].status, found["dropped"].units) == ("complete", 2)
    assert "ended when the program let go of it" in said(found["dropped"], "CL196")
    assert not any("CL196" in codes(found[step]) for step in ("inner", "outer", "later"))


def test_a_session_that_was_let_go_of_counts_its_last_callback(model, ledger):
    with track("s", ledger=ledger) as run:
        done = threading.Event()
        session = TrackedSession(model, run=run)
        session.run_async(None, feed(), lambda *_: done.set(), None)
        del session
        assert done.wait(60)
    assert run.run.units == 2


def test_a_session_around_a_session_of_the_same_run_counts_once(model, ledger):
    with track("s", ledger=ledger) as run:
        outer = TrackedSession(TrackedSession(model, run=run), run=run)
        outer.run(None, feed())
    assert (run.run.units, run.run.latency.n) == (2, 1)
    assert "CL195" not in codes(run.run)
    with TrackedSession(model, run=track("other", ledger=ledger)) as inner, track("s", ledger=ledger) as run:
        TrackedSession(inner, run=run).run(None, feed())
    assert (inner.tracked.run.units, run.run.units) == (2, 2)


def test_a_call_costs_the_recorder_nothing_while_it_is_closed(model, ledger):
    with TrackedSession(model, run=track("s", ledger=ledger)) as session:
        assert isinstance(session._meter, SessionMeter)
        session.run(None, feed())
    session.run(None, feed())
    assert not session._meter._pending


def test_the_import_does_not_load_onnxruntime():
    code = (
        "import sys, carbonlens.instrument.onnxruntime\n"
        "print('onnxruntime' in sys.modules, 'numpy' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout.split() == ["False", "False"]


def test_without_onnxruntime_it_says_what_to_install(tmp_path):
    (tmp_path / "onnxruntime.py").write_text("raise ImportError('absent')", "utf-8")
    code = "from carbonlens.instrument.onnxruntime import TrackedSession\nTrackedSession('m.onnx')"
    environment = {**clean_environment(tmp_path), "PYTHONPATH": os.fspath(tmp_path)}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment)
    assert "pip install 'carbonlens[onnx]'" in done.stderr
    assert Path(tmp_path / "onnxruntime.py").exists()


def test_letting_go_of_a_session_waits_for_no_lock_that_the_program_holds(model, ledger):
    """A garbage collection may come anywhere, with any lock held by the same thread."""
    session = TrackedSession(model, run=track("s", ledger=ledger))
    session.run(None, feed())
    recorder = session.tracked._recorder
    with recorder._lock:
        del session
    wait_until = time.monotonic() + 10
    while not (ledger.exists() and runs(ledger)) and time.monotonic() < wait_until:
        time.sleep(0.05)
    assert [r.units for r in runs(ledger)] == [2]


def test_a_session_with_a_run_of_its_own_that_outlives_the_block_around_stands_for_itself(model, ledger):
    with track("block", ledger=ledger):
        session = TrackedSession(model, providers=CPU, run=track("session", ledger=ledger))
    session.run(None, feed())
    session.close()
    found = {r.step: r for r in runs(ledger)}
    assert found["session"].parent_run_id is None
    assert all("CL108" in [f.code for f in r.findings] for r in found.values())
