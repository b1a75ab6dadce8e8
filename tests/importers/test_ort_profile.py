"""ONNX Runtime's profile: real ones of the installed version, synthetic ones of other providers."""

import gzip
import json
import math
from pathlib import Path
from typing import ClassVar

import numpy as np
import onnxruntime
import pytest
from hypothesis import given
from hypothesis import strategies as st

from carbonlens.errors import InputFileError
from carbonlens.importers.ort_profile import IMPORTER, parse_profile, read_profile
from tests.conformance.importers import ImporterContract
from tests.importers.reading import claimed, codes, read_file, read_text
from tests.instrument.onnx_models import branching, mlp

SYNTHETIC = Path(__file__).parent / "ort_profiles"
CPU = "CPUExecutionProvider"


def real(model: Path, feed: dict, runs: int = 5) -> Path:
    """Return the profile of some calls of a model."""
    options = onnxruntime.SessionOptions()
    options.enable_profiling = True
    options.profile_file_prefix = str(model.with_suffix(""))
    session = onnxruntime.InferenceSession(model, options, providers=[CPU])
    for _ in range(runs):
        session.run(None, feed)
    return Path(session.end_profiling())


@pytest.fixture
def plain(tmp_path):
    return real(mlp(tmp_path), {"x": np.ones((2, 16), "f4")})


def event(name, ts, dur, *, op="Conv", provider=CPU, tid=1, pid=1, cat="Node", index=0):
    args = {"op_name": op, "provider": provider, "node_index": str(index)} if cat == "Node" else {}
    return {"cat": cat, "pid": pid, "tid": tid, "dur": dur, "ts": ts, "ph": "X", "name": name, "args": args}


def lines(*events) -> str:
    return "[\n" + ",\n".join(json.dumps(e) for e in events) + "\n]\n"


def kernel(name, ts, dur, **more):
    return event(f"{name}_kernel_time", ts, dur, **more)


def run(ts, dur, **more):
    return event("model_run", ts, dur, cat="Session", **more)


def times(profile):
    return {o.operator: round(o.time_s * 1e6) for o in profile.operators}


def test_a_real_profile_is_read_whole(plain):
    profile = read_profile(plain)
    events = json.loads(plain.read_text("utf-8"))
    kernels = [e for e in events if e["name"].endswith("_kernel_time")]
    assert profile.time_s == pytest.approx(sum(e["dur"] for e in kernels) / 1e6)
    assert {o.operator for o in profile.operators} == {e["args"]["op_name"] for e in kernels}
    assert (profile.sessions, profile.runs, profile.unread) == (1, 5, 0)
    assert (profile.events, profile.complete, profile.is_capped) == (len(events), True, False)
    assert all(o.calls == 5 * o.nodes and not o.fused for o in profile.operators)
    (cpu,) = profile.providers
    assert (cpu.provider, cpu.share, cpu.nodes) == (CPU, 1.0, len({e["name"] for e in kernels}))


def test_warm_up_is_left_out_on_request(plain):
    whole, rest = read_profile(plain), read_profile(plain, warm_up=2)
    assert (rest.runs, rest.warm_up_runs) == (3, 2)
    assert rest.time_s < whole.time_s
    assert all(o.calls == 3 * o.nodes for o in rest.operators)
    with pytest.raises(InputFileError, match="beside the 5 that are left out"):
        read_profile(plain, warm_up=9)


def test_a_subgraph_is_not_counted_twice(tmp_path):
    file = real(branching(tmp_path), {"x": np.ones((64, 64), "f4"), "go": np.array(True)})
    profile = read_profile(file)
    events = json.loads(file.read_text("utf-8"))
    kernels = [e for e in events if e["name"].endswith("_kernel_time")]
    outer = sum(e["dur"] for e in kernels if e["args"]["op_name"] == "If")
    inner = sum(e["dur"] for e in kernels if e["args"]["op_name"] != "If")
    assert inner > 0
    assert outer > inner / 2
    assert profile.time_s * 1e6 == pytest.approx(outer, abs=len(kernels))


def test_the_old_layout_has_fences_that_are_no_kernels():
    profile = read_profile(SYNTHETIC / "synthetic_cuda.json", warm_up=1)
    assert times(profile) == {
        "Conv": 600,
        "NonMaxSuppression": 260,
        "MemcpyToHost": 100,
        "MemcpyFromHost": 40,
    }
    cuda, cpu = profile.providers
    assert (cuda.provider, cuda.nodes, cuda.share) == ("CUDAExecutionProvider", 3, pytest.approx(0.74))
    assert (cpu.provider, cpu.nodes, cpu.share) == (CPU, 1, pytest.approx(0.26))
    assert read_profile(SYNTHETIC / "synthetic_cuda.json").providers[0].share > 0.9


def test_fused_parts_are_named_as_one_and_their_nodes_are_not_told():
    profile = read_profile(SYNTHETIC / "synthetic_qnn.json")
    assert times(profile) == {"Sigmoid": 5000, "QNNExecutionProvider_QNN": 4000, "Mul": 1000}
    assert [o.fused for o in profile.operators] == [False, True, False]
    cpu, qnn = profile.providers
    assert (cpu.provider, cpu.nodes, cpu.share) == (CPU, 2, pytest.approx(0.6))
    assert (qnn.provider, qnn.nodes, qnn.share) == ("QNNExecutionProvider", None, pytest.approx(0.4))


@pytest.mark.parametrize(
    ("name", "provider", "cpu_share"),
    [("openvino", "OpenVINOExecutionProvider", 8 / 4008), ("coreml", "CoreMLExecutionProvider", None)],
)
def test_other_synthetic_providers(name, provider, cpu_share):
    profile = read_profile(SYNTHETIC / f"synthetic_{name}.json")
    shares = {t.provider: t.share for t in profile.providers}
    assert next(iter(shares)) == provider
    assert shares.get(CPU) == (None if cpu_share is None else pytest.approx(cpu_share))


@given(st.permutations(range(9)))
def test_the_order_of_events_does_not_matter(order):
    """Old versions write events by their ends, new ones by their starts."""
    events = [
        run(0, 100),
        kernel("loop", 10, 80, op="Loop"),
        kernel("a", 20, 30, op="Gemm"),
        kernel("b", 50, 30, op="Conv"),
        run(200, 50),
        kernel("loop", 205, 40, op="Loop"),
        kernel("a", 210, 10, op="Gemm"),
        kernel("b", 220, 10, op="Conv"),
        kernel("c", 5, 90, op="Add", tid=2),
    ]
    shuffled = [events[k] for k in order]
    assert times(parse_profile(lines(*shuffled))) == {"Add": 90, "Loop": 40, "Gemm": 40, "Conv": 40}
    assert times(parse_profile(lines(*shuffled), warm_up=1)) == {"Loop": 20, "Gemm": 10, "Conv": 10}


@given(
    st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 10**6)), min_size=1, max_size=30),
    st.integers(0, 3),
)
def test_shares_sum_to_one_and_times_to_the_total(parts, provider):
    names = [CPU, "QNNExecutionProvider", None]
    events, at = [], 0
    for place, (name, length) in enumerate(parts):
        events.append(kernel(name, at, length, op=name, provider=names[(place + provider) % 3]))
        at += length
    profile = parse_profile(lines(*events))
    assert round(profile.time_s * 1e6) == sum(length for _, length in parts)
    shares = [t.share for t in profile.providers]
    if profile.time_s == 0:
        assert set(shares) == {None}
    else:
        assert math.fsum(shares) == pytest.approx(1.0)


def test_several_sessions_in_one_file_have_clocks_of_their_own():
    one, other = lines(kernel("a", 0, 100), run(0, 110)), lines(kernel("b", 5, 50, op="Add"), run(0, 60))
    for text in (one + other, one.rstrip() + other, one.rstrip() + "\n\n" + other):
        profile = parse_profile(text)
        assert (profile.sessions, profile.runs, profile.unread, profile.complete) == (2, 2, 0, True)
        assert times(profile) == {"Conv": 100, "Add": 50}
    merged = lines(kernel("a", 0, 100), kernel("b", 5, 50, op="Add", pid=2), run(0, 110), run(0, 60, pid=2))
    assert times(parse_profile(merged)) == {"Conv": 100, "Add": 50}
    assert parse_profile(merged).sessions == 2


def test_a_file_that_ends_in_the_middle_says_so(plain):
    text = plain.read_text("utf-8")
    whole = parse_profile(text)
    for cut in (len(text) - 3, int(len(text) * 0.7)):
        part = parse_profile(text[:cut])
        assert not part.complete
        assert part.unread <= 1
        assert 0 < part.time_s <= whole.time_s
    # A torn event can end with a bracket of its own.
    torn = lines(kernel("a", 0, 10), run(0, 20)).rstrip("]\n") + ',\n{"cat": "Node", "args": {"s": [1]'
    assert (parse_profile(torn).complete, parse_profile(torn).unread) == (False, 1)


@pytest.mark.parametrize("wrong", [math.nan, math.inf, -5, None, "12", 2**60])
def test_a_kernel_without_a_time_is_told_and_adds_nothing(wrong):
    profile = parse_profile(lines(kernel("a", 0, 10), kernel("b", 20, wrong, op="Add"), run(0, 50)))
    assert times(profile) == {"Conv": 10}
    assert profile.unread == 1


def test_other_writers_layouts(plain):
    events = json.loads(plain.read_text("utf-8"))
    expected = read_profile(plain).operators
    for text in (
        json.dumps(events),
        json.dumps(events, indent=2),
        json.dumps({"traceEvents": events}),
        '{"traceEvents": [\n' + ",\n".join(json.dumps(e) for e in events) + "\n]}\n",
        "\ufeff" + plain.read_text("utf-8").replace("\n", "\r\n"),
    ):
        profile = parse_profile(text)
        assert (profile.operators, profile.unread, profile.complete) == (expected, 0, True)


def test_kernels_of_a_gpu_stand_apart():
    profile = parse_profile(
        lines(kernel("a", 0, 10, provider="CUDAExecutionProvider"), event("ort_add", 3, 33, cat="Kernel"))
    )
    assert profile.device_s == pytest.approx(33e-6)
    assert profile.time_s == pytest.approx(10e-6)


def test_a_session_that_was_never_called_has_no_operators():
    profile = parse_profile(lines(event("session_initialization", 0, 10, cat="Session")))
    assert (profile.operators, profile.providers, profile.runs) == ((), (), 0)


@pytest.mark.parametrize(
    "text", ["", "\n", "hello", "{}", "[]", "[1, 2]", '[{"name": "x"}]', "run_id,study\n1,2\n", "[[[[["]
)
def test_what_is_no_profile_is_refused(text, tmp_path):
    file = tmp_path / "p.json"
    file.write_text(text, "utf-8")
    with pytest.raises(InputFileError, match=r"^p.json: is no profile of ONNX Runtime"):
        read_profile(file)


def test_binary_and_missing_files_are_refused(tmp_path):
    file = tmp_path / "p.json"
    file.write_bytes(bytes(range(256)) * 50)
    with pytest.raises(InputFileError, match="no profile"):
        read_profile(file)
    with pytest.raises(InputFileError, match="No such file"):
        read_profile(tmp_path / "absent.json")
    with pytest.raises(InputFileError, match="directory"):
        read_profile(tmp_path)


def test_a_gigantic_file_is_refused_before_it_is_read(tmp_path):
    file = tmp_path / "p.json"
    with file.open("wb") as stream:
        stream.truncate(3 * 1024**3)
    with pytest.raises(InputFileError, match=r"too large \(3221 MB, at most 2147 MB"):
        read_profile(file)
    small = tmp_path / "s.json"
    small.write_text(lines(kernel("a", 0, 1), run(0, 2)), "utf-8")
    with pytest.raises(InputFileError, match="too large"):
        read_profile(small, most_bytes=10)


class TestConformance(ImporterContract):
    """What every importer keeps to."""

    importer = IMPORTER
    files: ClassVar = {
        "profile.json": lines(
            event("model_loading_uri", 0, 500, cat="Session"),
            run(1000, 400),
            kernel("conv", 1010, 300),
            kernel("add", 1320, 50, op="Add", index=1),
            run(2000, 300),
            kernel("conv", 2010, 200),
            kernel("add", 2220, 40, op="Add", index=1),
        )
    }
    runs = 0
    repeats_count_once = False


def test_an_import_shows_the_times_of_every_profile(plain, tmp_path):
    for file in (plain, *sorted(SYNTHETIC.glob("*.json"))):
        (told,) = read_file(IMPORTER, file).profiles
        profile = read_profile(file)
        assert told.events == profile.events
        assert sum(o.time_s for o in told.operators) == pytest.approx(profile.time_s)
        assert [(o.provider, o.operator, o.calls) for o in told.operators] == [
            (o.provider, o.operator, o.calls) for o in profile.operators
        ]


def test_dress_and_layout_do_not_matter_to_an_import(plain, tmp_path):
    whole = read_file(IMPORTER, plain).profiles
    events = json.loads(plain.read_text("utf-8"))
    for content in (
        gzip.compress(plain.read_bytes()),
        plain.read_text("utf-8").encode("utf-16"),
        json.dumps(events).encode(),
        json.dumps({"traceEvents": events}, indent=1).encode(),
    ):
        assert read_text(IMPORTER, tmp_path, content).profiles == whole


@pytest.mark.parametrize("between", ["", "\n"])
def test_sessions_appended_to_one_another_are_said(tmp_path, between):
    one = lines(event("model_loading_uri", 0, 9, cat="Session"), run(10, 90), kernel("a", 20, 30)).strip()
    got = read_text(IMPORTER, tmp_path, f"{one}{between}{one}\n")
    (profile,) = got.profiles
    assert profile.facts["sessions"] == 2
    assert profile.operators[0].time_s == pytest.approx(60e-6)
    assert codes(got) == ["CL275"]


def test_a_torn_or_cut_off_profile_is_said(tmp_path):
    text = TestConformance.files["profile.json"]
    torn = read_text(IMPORTER, tmp_path, text.replace('"dur": 300, "ts": 1010', '"dur": 30', 1))
    assert codes(torn) == ["CL276"]
    cut = read_text(IMPORTER, tmp_path, "".join(text.splitlines(keepends=True)[:-2]))
    assert codes(cut) == ["CL277"]


@pytest.mark.parametrize(
    "head", [b"", b"[]", b"run_id,study,step,energy_j,units\n", b'{"a": "cat"}', b"\xff\xfe"]
)
def test_other_files_are_not_claimed(tmp_path, head):
    (tmp_path / "any").write_bytes(head)
    assert not claimed(IMPORTER, tmp_path / "any")
