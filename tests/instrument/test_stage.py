"""``stage`` as users write it: what went in and came out, never in the window, never in the way."""

import asyncio
import inspect
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping

import numpy as np
import pytest

import carbonlens
from carbonlens import stage, track
from carbonlens.instrument.stage import StageRun
from tests.metering.processes import burn, clean_environment, python, runs

WEIGHTS = np.arange(10.0)
SMALL = np.array([0.0, 1.0])


@pytest.fixture
def ledger(tmp_path):
    return tmp_path / "ledger"


def figures(record):
    return {(a.direction, a.name): (a.parameters, a.nonzeros, a.bytes) for a in record.artefacts}


def codes(record):
    return [f.code for f in record.findings if f.code.startswith(("CL11", "CL14"))]


def test_a_block_is_the_effort_of_its_step(ledger):
    with stage("int8", inputs={"model": WEIGHTS}, study="demo", tags={"k": "v"}, ledger=ledger) as s:
        assert isinstance(s, StageRun)
        burn(0.1)
        s.output("model", SMALL)
        s.record_quality("accuracy", 0.9)
    (record,) = runs(ledger)
    assert record == s.run
    assert (record.role, record.step, record.study, record.status) == ("effort", "int8", "demo", "complete")
    assert figures(record) == {("in", "model"): (10, 9, 80), ("out", "model"): (2, 1, 16)}
    assert (record.tags, record.quality[0].value) == ({"k": "v"}, 0.9)
    assert record.total_energy.value > 0
    assert codes(record) == []


class Slow(Mapping):
    """A state dict that notes when it is looked at."""

    def __init__(self):
        self.seen_us = []

    def __getitem__(self, key):
        self.seen_us.append(time.time_ns() // 1000)
        time.sleep(0.02)
        return WEIGHTS

    def __iter__(self):
        return iter(("w",))

    def __len__(self):
        return 1


def test_looking_lies_outside_the_window(ledger):
    before, after = Slow(), Slow()
    with stage("s", inputs={"model": before}, ledger=ledger) as s:
        s.output("model", after)
    record = s.run
    assert before.seen_us
    assert after.seen_us
    assert max(before.seen_us) < record.start_us
    assert min(after.seen_us) >= record.end_us - 1000
    assert figures(record)["out", "model"] == (10, 9, 80)


def test_a_function_takes_an_argument_in_and_gives_its_value_out(ledger):
    @stage("half", inputs="model", ledger=ledger)
    def halve(model, /, factor=2):
        """Say what it does."""
        return model[: len(model) // factor]

    assert halve(WEIGHTS) is not None
    assert len(halve(WEIGHTS, factor=5)) == 2
    assert (halve.__name__, halve.__doc__) == ("halve", "Say what it does.")
    first, second = runs(ledger)
    assert figures(first) == {("in", "model"): (10, 9, 80), ("out", "model"): (5, 4, 40)}
    assert figures(second)["out", "model"] == (2, 1, 16)


def test_a_bare_decorator_takes_the_functions_name(tmp_path, monkeypatch):
    monkeypatch.setenv("CARBONLENS_LEDGER", str(tmp_path / "ledger"))

    @stage
    def prune():
        return SMALL

    prune()
    (record,) = runs(tmp_path / "ledger")
    assert (record.step, record.role) == ("prune", "effort")
    assert figures(record) == {("out", "model"): (2, 1, 16)}


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ({"student": SMALL, "log": 3, "table": WEIGHTS}, {"student", "table"}),
        ((SMALL, WEIGHTS), {"student", "table"}),
    ],
)
def test_what_is_returned_may_hold_several_outputs(ledger, value, expected):
    @stage("d", outputs=["student", "table"], ledger=ledger)
    def distill():
        return value

    assert distill() is value
    (record,) = runs(ledger)
    assert {a.name for a in record.artefacts} == expected
    assert codes(record) == []


def test_what_is_not_returned_is_said(ledger):
    @stage("d", outputs=["student", "table"], ledger=ledger)
    def distill():
        return {"student": SMALL}

    distill()
    (record,) = runs(ledger)
    assert {a.name for a in record.artefacts} == {"student"}
    assert [f.subject for f in record.findings if f.code == "CL110"] == ["output table"]


def test_an_argument_may_be_changed_in_place(ledger):
    weights = np.ones(4)

    @stage("prune", inputs="model", outputs="model", ledger=ledger)
    def prune(model):
        model[:3] = 0

    prune(weights)
    (record,) = runs(ledger)
    assert figures(record) == {("in", "model"): (4, 4, 32), ("out", "model"): (4, 1, 32)}


def test_a_file_that_the_work_writes(ledger, tmp_path):
    file = tmp_path / "model.bin"
    with stage("export", inputs={"old": file}, outputs={"model": file}, ledger=ledger) as s:
        file.write_bytes(b"12345")
    old, new = s.run.artefacts
    assert (old.bytes, old.sha256) == (None, None)
    assert (new.direction, new.bytes) == ("out", 5)
    assert codes(s.run) == ["CL140"]


def test_an_output_that_is_never_given_is_said(ledger):
    with stage("s", inputs={"model": WEIGHTS}, ledger=ledger) as s:
        pass

    @stage("f", inputs="model", ledger=ledger)
    def forget(model):
        pass

    forget(WEIGHTS)
    for record in runs(ledger):
        assert (codes(record), record.status) == (["CL141"], "complete")
        assert [a.direction for a in record.artefacts] == ["in"]
    assert s.run.findings


def test_an_exception_passes_unchanged_and_leaves_no_output(ledger):
    error = ValueError("no")
    measured = stage("s", inputs={"model": WEIGHTS}, outputs={"model": SMALL}, ledger=ledger)
    with pytest.raises(ValueError, match="no") as caught, measured:
        raise error
    assert caught.value is error
    (record,) = runs(ledger)
    assert (record.status, record.error) == ("failed", "ValueError")
    assert [a.direction for a in record.artefacts] == ["in"]
    assert codes(record) == []


def test_ctrl_c_in_the_block(ledger):
    with pytest.raises(KeyboardInterrupt), stage("s", outputs={"model": SMALL}, ledger=ledger):
        raise KeyboardInterrupt
    (record,) = runs(ledger)
    assert (record.status, record.artefacts, codes(record)) == ("failed", (), [])


class Interrupting(Mapping):
    """A state dict during whose look the user presses Ctrl-C."""

    def __getitem__(self, key):
        raise KeyboardInterrupt

    def __iter__(self):
        return iter(("w",))

    def __len__(self):
        return 1


def test_ctrl_c_while_the_outputs_are_looked_at_keeps_the_run(ledger):
    outputs = {"first": SMALL, "model": Interrupting()}
    with pytest.raises(KeyboardInterrupt), stage("s", outputs=outputs, ledger=ledger) as s:
        pass
    (record,) = runs(ledger)
    assert record == s.run
    assert record.status == "complete"
    assert figures(record) == {("out", "first"): (2, 1, 16)}
    assert [f.message for f in record.findings if f.code == "CL140"] == [
        "output model: nothing is known of it (interrupted)"
    ]


def test_ctrl_c_while_the_inputs_are_looked_at_begins_nothing(ledger, tmp_path):
    tracker = stage("s", inputs={"model": Interrupting()}, ledger=ledger)
    entered = []
    with pytest.raises(KeyboardInterrupt), tracker:
        entered.append(1)
    assert entered == []
    assert not ledger.exists()
    with track("after", ledger=ledger) as run:
        pass
    assert run.run.parent_run_id is None


def test_a_signal_leaves_no_time_for_outputs(tmp_path):
    code = (
        "import os, signal, sys, time\nimport numpy as np\nfrom carbonlens import stage\n"
        "with stage('s', inputs={'model': np.ones(3)}, ledger=sys.argv[1]) as s:\n"
        "    s.output('model', np.ones(2))\n    os.kill(os.getpid(), signal.SIGTERM)\n    time.sleep(30)\n"
    )
    done = python(code, tmp_path, str(tmp_path / "ledger"))
    assert done.returncode == -signal.SIGTERM, done.stderr
    (record,) = runs(tmp_path / "ledger")
    assert (record.status, record.error) == ("failed", "killed by signal 15")
    assert [(a.direction, a.parameters) for a in record.artefacts] == [("in", 3)]


@pytest.mark.parametrize("look", ["time.sleep(30)", "hashlib.pbkdf2_hmac('sha256', b'a', b'b', 10**9)"])
def test_a_signal_while_outputs_are_looked_at_keeps_what_is_known(tmp_path, look):
    code = (
        "import hashlib, os, signal, sys, threading, time\nfrom collections.abc import Mapping\n"
        "import numpy as np\nfrom carbonlens import stage\n"
        "class Slow(Mapping):\n"
        "    def __iter__(self): return iter('w')\n"
        "    def __len__(self): return 1\n"
        "    def __getitem__(self, key):\n"
        "        threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGTERM)).start()\n"
        f"        {look}\n"
        "with stage('s', ledger=sys.argv[1]) as s:\n"
        "    s.output('first', np.ones(2))\n    s.output('model', Slow())\n"
    )
    done = python(code, tmp_path, str(tmp_path / "ledger"))
    assert done.returncode == -signal.SIGTERM, done.stderr
    (record,) = runs(tmp_path / "ledger")
    assert (record.status, record.error, record.exit_code) == ("complete", None, None)
    assert figures(record) == {("out", "first"): (2, 2, 16)}
    assert [f.message for f in record.findings if f.code == "CL140"] == [
        "output model: nothing is known of it (interrupted)"
    ]


def test_coroutines_are_measured_to_their_end(ledger):
    @stage("a", inputs="model", ledger=ledger)
    async def shrink(model):
        await asyncio.sleep(0.01)
        return model[:2]

    assert len(asyncio.run(shrink(WEIGHTS))) == 2
    (record,) = runs(ledger)
    assert figures(record) == {("in", "model"): (10, 9, 80), ("out", "model"): (2, 1, 16)}


def test_generators_are_measured_to_their_end_and_give_out_what_they_return(ledger):
    @stage("g", inputs="model", ledger=ledger)
    def shrink(model):
        yield "half"
        return model[:2]

    assert list(shrink(WEIGHTS)) == ["half"]
    (record,) = runs(ledger)
    assert figures(record)["out", "model"] == (2, 1, 16)


def test_an_asynchronous_generator_returns_nothing_and_that_is_said(ledger):
    @stage("g", inputs="model", ledger=ledger)
    async def shrink(model):
        yield model[:2]

    async def main():
        return [part async for part in shrink(WEIGHTS)]

    assert len(asyncio.run(main())) == 1
    (record,) = runs(ledger)
    assert (codes(record), record.status) == (["CL141"], "complete")


def test_a_wrong_call_raises_what_it_would_raise_without_us(ledger):
    @stage("s", inputs="model", ledger=ledger)
    def work(model):
        return model

    with pytest.raises(TypeError, match="missing 1 required positional argument: 'model'"):
        work()


@pytest.mark.parametrize(
    ("given", "subject"),
    [
        ({"inputs": 3}, "inputs"),
        ({"inputs": ["model"]}, "inputs"),
        ({"outputs": SMALL}, "outputs"),
        ({"role": "bogus"}, "role"),
        ({"inputs": {"model": object()}}, "artefact.in.model"),
    ],
)
def test_wrong_arguments_do_not_stop_the_work(ledger, given, subject):
    with stage("s", ledger=ledger, **given) as s:
        s.output("model", SMALL)
    assert s.run.status == "complete"
    assert figures(s.run)["out", "model"] == (2, 1, 16)
    assert subject in [f.subject for f in s.run.findings]


class Unsayable:
    """A name that raises when it is written."""

    def __str__(self):
        raise RuntimeError("never")


def test_names_that_are_no_texts(ledger):
    with stage("s", inputs={Unsayable(): WEIGHTS}, ledger=ledger) as s:
        s.output(Unsayable(), SMALL)
        s.output(7, SMALL)
    assert [a.name for a in s.run.artefacts] == ["7"]
    assert codes(s.run).count("CL110") == 2


def test_an_argument_that_the_function_has_not_is_said(ledger):
    @stage("s", inputs=["model", "teacher"], ledger=ledger)
    def work(model):
        return model

    work(SMALL)
    (record,) = runs(ledger)
    assert "no argument teacher" in next(f.message for f in record.findings if f.code == "CL110")


def test_a_stage_within_a_block_is_its_part(ledger):
    with track("whole", ledger=ledger) as whole, stage("part", ledger=ledger) as part:
        part.output("model", SMALL)
    assert part.run.parent_run_id == whole.run_id


def test_a_forked_child_records_nothing(ledger):
    with stage("s", ledger=ledger) as s:
        s.output("model", SMALL)
        child = os.fork()
        if child == 0:
            code = 1
            try:
                s._stop(None)
                code = 0 if not s._recorder.facts().artefacts else 2
            finally:
                os._exit(code)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert len(runs(ledger)) == 1


def test_nothing_is_printed_and_nothing_heavy_is_imported(tmp_path):
    code = (
        "import sys\nimport carbonlens\n"
        "with carbonlens.stage('s', inputs={'model': 'nothing.onnx'}, ledger=sys.argv[1]) as s:\n"
        "    s.output('model', b'abc')\n"
        "assert not {'torch', 'numpy', 'onnx', 'pandas'} & set(sys.modules), sorted(sys.modules)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "ledger")],
        env=clean_environment(tmp_path),
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_it_is_public():
    assert "stage" in carbonlens.__all__
    assert carbonlens.stage is stage


def test_static_and_class_methods_are_measured_with_their_arguments(ledger, monkeypatch):
    monkeypatch.setenv("CARBONLENS_LEDGER", str(ledger))

    class Work:
        @stage("static", inputs="model", ledger=ledger)
        @staticmethod
        def prune(model):
            return model[:2]

        @stage
        @classmethod
        def quantize(cls, model):
            return cls, model

    given = np.ones(5, np.float32)
    assert len(Work().prune(given)) == 2
    assert Work.quantize(given) == (Work, given)
    found = {r.step: r for r in runs(ledger)}
    assert [a.parameters for a in found["static"].artefacts] == [5, 2]
    assert set(found) == {"static", "quantize"}


def test_it_takes_all_that_track_takes(tmp_path):
    """As docs/compressing.md says; ``step`` is its name."""
    taken = inspect.signature(carbonlens.stage).parameters
    assert inspect.signature(carbonlens.track).parameters.keys() - {"step"} <= taken.keys()
    with carbonlens.stage("int8", ledger=tmp_path, attempt=2, job_id="job", repeat=3) as s:
        pass
    assert (s.run.attempt, s.run.job_id, s.run.repeat) == (2, "job", 3)
