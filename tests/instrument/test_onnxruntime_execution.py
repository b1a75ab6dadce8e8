"""Who executed a session: what is registered, what a profile tells, what fell back to the CPU."""

import json
import shutil
import tempfile
from pathlib import Path

import numpy as np
import onnxruntime
import pytest

from carbonlens import track
from carbonlens.domain.execution import ProviderTime
from carbonlens.importers.ort_profile import parse_profile, read_profile
from carbonlens.instrument import onnxruntime_execution as execution
from carbonlens.instrument.onnxruntime import TrackedSession
from tests.importers.test_ort_profile import SYNTHETIC, kernel, lines, run
from tests.instrument.onnx_models import mlp
from tests.instrument.test_onnxruntime import codes, feed, said
from tests.metering.processes import runs

CPU = "CPUExecutionProvider"
CUDA = "CUDAExecutionProvider"
QNN = "QNNExecutionProvider"


@pytest.fixture
def ledger(tmp_path):
    return tmp_path / "ledger"


@pytest.fixture
def model(tmp_path):
    return mlp(tmp_path)


@pytest.fixture
def own_temporary(tmp_path, monkeypatch):
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


class Synthetic(onnxruntime.InferenceSession):
    """A real session that says it has an accelerator, and gives a synthetic profile of one."""

    def __init__(self, model, providers, profile):
        super().__init__(model, providers=[CPU])
        self._said = [*providers, CPU]
        self._profile = profile

    def get_providers(self):
        return self._said

    def end_profiling(self):
        return str(self._profile)


def profiled(model, ledger, providers, name, warm_up=0):
    bare = Synthetic(model, providers, SYNTHETIC / f"synthetic_{name}.json")
    session = TrackedSession(bare, run=track("s", ledger=ledger), profile=True, warm_up=warm_up)
    session.run(None, feed())
    session.close()
    return session.tracked.run


def test_without_a_profile_no_more_is_claimed_than_what_is_registered(model, ledger):
    bare = Synthetic(model, [QNN], SYNTHETIC / "synthetic_qnn.json")
    with TrackedSession(bare, run=track("s", ledger=ledger)) as session:
        session.run(None, feed())
    record = session.tracked.run
    assert record.execution == (ProviderTime(provider=QNN), ProviderTime(provider=CPU))
    assert not {"CL190", "CL191"} & set(codes(record))


def test_a_real_profile_tells_nodes_and_times(model, ledger, own_temporary):
    with track("s", ledger=ledger) as block:
        session = TrackedSession(model, providers=[CPU], run=block, profile=True, warm_up=1)
        for _ in range(6):
            session.run(None, feed())
    (record,) = runs(ledger)
    (cpu,) = record.execution
    assert (cpu.provider, cpu.share) == (CPU, 1.0)
    assert cpu.time_s == pytest.approx(session.profile.time_s)
    assert cpu.nodes == sum(o.nodes for o in session.profile.operators) >= 3
    assert (session.profile.runs, session.profile.warm_up_runs) == (5, 1)
    assert "CL197" in codes(record)
    assert not {"CL190", "CL191", "CL192"} & set(codes(record))
    # Its file is gone, and nothing came to lie beside the program.
    assert list(own_temporary.iterdir()) == []
    assert not list(Path.cwd().glob("onnxruntime_profile*"))


def test_an_unsupported_operator_is_a_finding_with_its_share(model, ledger):
    record = profiled(model, ledger, [QNN], "qnn")
    message = said(record, "CL191")
    assert "the CPU ran 2 nodes, 60 % of kernel time, of a model meant for QNNExecutionProvider" in message
    assert message.endswith("Sigmoid 50 %, Mul 10 %")
    shares = {t.provider: t.share for t in record.execution}
    assert shares == {CPU: pytest.approx(0.6), QNN: pytest.approx(0.4)}
    (finding,) = [f for f in record.findings if f.code == "CL191"]
    assert finding.severity == "warning"


def test_the_time_of_a_gpu_is_said_to_be_the_hosts(model, ledger):
    record = profiled(model, ledger, [CUDA], "cuda", warm_up=1)
    assert "1 node of 4, 26 % of kernel time" in said(record, "CL191")
    assert "the time of CUDAExecutionProvider is the host's" in said(record, "CL191")


def test_a_small_part_on_the_cpu_is_told_without_alarm(model, ledger):
    record = profiled(model, ledger, ["OpenVINOExecutionProvider"], "openvino")
    (finding,) = [f for f in record.findings if f.code == "CL191"]
    assert finding.severity == "info"
    assert "under 1 % of kernel time" in finding.message
    assert "TopK under 1 %" in finding.message


def test_an_accelerator_that_ran_all_is_no_finding(model, ledger):
    record = profiled(model, ledger, ["CoreMLExecutionProvider"], "coreml")
    assert "CL191" not in codes(record)
    assert record.execution == (
        ProviderTime(provider="CoreMLExecutionProvider", time_s=0.004, share=1.0),
        ProviderTime(provider=CPU, nodes=0, time_s=0.0, share=0.0),
    )


@pytest.mark.filterwarnings("ignore:Specified provider")
def test_a_provider_that_is_not_there_is_a_finding(model, ledger):
    asked = [(CUDA, {"device_id": 0}), CPU]
    with TrackedSession(model, None, asked, run=track("s", ledger=ledger), profile=True) as session:
        assert session.get_providers() == [CPU]
        session.run(None, feed())
    record = session.tracked.run
    assert f"{CUDA} asked for and not available: ONNX Runtime went on with {CPU}" in said(record, "CL190")
    message = said(record, "CL191")
    assert "100 % of kernel time" in message
    assert "the host's" not in message  # nothing ran there
    with TrackedSession(model, None, [CPU], run=track("s", ledger=ledger)) as session:
        session.run(None, feed())
    assert "CL190" not in codes(session.tracked.run)


def test_providers_on_the_cpu_are_no_accelerators(model, ledger):
    profile = parse_profile(lines(kernel("a", 0, 10), run(0, 20)))
    assert execution.fallback(profile, ["XnnpackExecutionProvider"], [CPU], "s") is None
    assert execution.fallback(profile, [CUDA], [CPU], "s").code == "CL191"


def test_a_change_of_providers_is_told(model, ledger):
    class Dropping(Synthetic):
        def run(self, *args, **kwargs):
            self._said = [CPU]
            return super().run(*args, **kwargs)

    bare = Dropping(model, [CUDA], None)
    with TrackedSession(bare, run=track("s", ledger=ledger)) as session:
        session.run(None, feed())
    record = session.tracked.run
    assert f"from {CUDA}, {CPU} to {CPU}" in said(record, "CL199")
    assert [t.provider for t in record.execution] == [CUDA, CPU]


def test_the_users_options_are_as_before(model, ledger, own_temporary, tmp_path):
    options = onnxruntime.SessionOptions()
    with TrackedSession(model, options, run=track("s", ledger=ledger), profile=True) as session:
        assert (options.enable_profiling, options.profile_file_prefix) == (False, "onnxruntime_profile_")
        session.run(None, feed())
    assert session.profile.runs == 1
    # Whoever set a prefix wants the file there.
    options.profile_file_prefix = str(tmp_path / "mine")
    with TrackedSession(model, options, run=track("s", ledger=ledger), profile=True) as session:
        session.run(None, feed())
    assert session.profile.runs == 1
    (kept,) = tmp_path.glob("mine*.json")
    assert read_profile(kept) == session.profile


def test_a_profile_that_the_user_ends_is_theirs_and_read_too(model, ledger, own_temporary):
    with TrackedSession(model, run=track("s", ledger=ledger), profile=True) as session:
        session.run(None, feed())
        file = session.end_profiling()
        assert json.loads(Path(file).read_text("utf-8"))
    assert Path(file).exists()
    assert session.profile.runs == 1
    shutil.rmtree(Path(file).parent)


def test_a_profile_that_cannot_be_had_is_a_finding_and_claims_nothing(model, ledger, tmp_path):
    bare = onnxruntime.InferenceSession(model, providers=[CPU])
    with TrackedSession(bare, run=track("s", ledger=ledger), profile=True) as session:
        session.run(None, feed())
    record = session.tracked.run
    assert "was not written" in said(record, "CL192")
    assert "CL197" not in codes(record)  # it was never on
    assert record.execution == (ProviderTime(provider=CPU),)
    for content, reason in ((None, "cannot be read"), ("nonsense", "is no profile")):
        file = tmp_path / "profile.json"
        if content is not None:
            file.write_text(content, "utf-8")
        tracker = track("s", ledger=ledger)
        with TrackedSession(Synthetic(model, [QNN], file), run=tracker, profile=True) as session:
            session.run(None, feed())
        assert reason in said(session.tracked.run, "CL192")
        assert session.profile is None


def test_gaps_of_a_profile_are_told(model, ledger, tmp_path):
    file = tmp_path / "profile.json"
    whole = lines(kernel("a", 0, 10, provider=QNN), kernel("b", 10, -1), run(0, 20))
    file.write_text(whole.rstrip("]\n"), "utf-8")
    with TrackedSession(
        Synthetic(model, [QNN], file), run=track("s", ledger=ledger), profile=True
    ) as session:
        session.run(None, feed())
    message = said(session.tracked.run, "CL192")
    assert "ends in the middle and holds 1 event that cannot be read" in message


def test_a_session_made_anew_loses_the_profile_of_its_first_calls_and_says_so(model, ledger, own_temporary):
    with TrackedSession(model, providers=[CPU], run=track("s", ledger=ledger), profile=True) as session:
        for _ in range(3):
            session.run(None, feed())
        session.set_providers([CPU])
        session.run(None, feed())
    record = session.tracked.run
    assert (record.units, record.latency.n) == (8, 4)
    assert "CL192" in codes(record)
    assert list(own_temporary.iterdir()) == []


def test_a_session_that_breaks_at_the_end_costs_the_run_nothing(model, ledger):
    class Broken(Synthetic):
        def end_profiling(self):
            raise RuntimeError("driver gone")

    session = TrackedSession(Broken(model, [QNN], None), run=track("s", ledger=ledger), profile=True)
    session.run(None, feed())
    session.close()
    (record,) = runs(ledger)
    assert (record.units, record.status) == (2, "complete")
    assert "execution was not recorded: RuntimeError" in said(record, "CL110")


def test_a_profile_without_a_call_claims_nothing(model, ledger):
    with TrackedSession(model, providers=[CPU], run=track("s", ledger=ledger), profile=True) as session:
        pass
    assert session.tracked.run.execution == (ProviderTime(provider=CPU),)


def test_times_of_several_sessions_add_up_and_are_unknown_where_one_is():
    qnn = (ProviderTime(provider=QNN, nodes=3, time_s=3.0, share=0.75),)
    both = (*qnn, ProviderTime(provider=CPU, nodes=2, time_s=1.0, share=0.25))
    merged = execution.merged([both, both, ()])
    assert merged == (
        ProviderTime(provider=QNN, nodes=6, time_s=6.0, share=0.75),
        ProviderTime(provider=CPU, nodes=4, time_s=2.0, share=0.25),
    )
    fused = (ProviderTime(provider=QNN, nodes=None, time_s=2.0, share=1.0),)
    assert execution.merged([both, fused])[0] == ProviderTime(provider=QNN, time_s=5.0, share=5 / 6)
    assert execution.merged([both, (ProviderTime(provider=CPU),)]) == (
        ProviderTime(provider=QNN),
        ProviderTime(provider=CPU),
    )
    assert execution.merged([both]) == both
    assert execution.merged([(), ()]) == ()


def test_results_are_the_same_with_a_profile(model, ledger):
    bare = onnxruntime.InferenceSession(model, providers=[CPU])
    with TrackedSession(model, providers=[CPU], run=track("s", ledger=ledger), profile=True) as session:
        assert np.array_equal(session.run(None, feed(5))[0], bare.run(None, feed(5))[0])
