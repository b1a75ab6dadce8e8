"""PyTorch's Kineto traces: own time of operators, time of kernels, and what goes wrong with them."""

import gzip
import json
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from carbonlens.errors import InputFileError
from carbonlens.importers import kineto_events
from carbonlens.importers.kineto import IMPORTER
from carbonlens.importers.kineto_times import Spans, busy_us, own_us
from tests.conformance.importers import ImporterContract
from tests.importers.reading import claimed, codes, read_file, read_text

FILES = Path(__file__).parents[2] / ".." / "shared" / "cases" / "files"
A100 = '[\n    {"id": 0, "name": "NVIDIA A100", "computeMajor": 8}\n  ]'


def event(cat, name, ts, dur, *, pid=7, tid=7, **args):
    return {"ph": "X", "cat": cat, "name": name, "pid": pid, "tid": tid, "ts": ts, "dur": dur, "args": args}


def kernel(name, ts, dur, *, device=0, stream=7, cat="kernel"):
    return event(cat, name, ts, dur, pid=device, tid=stream, device=device, stream=stream)


def trace(*events, devices=A100) -> str:
    body = ",\n  ".join(json.dumps(e) for e in events)
    head = f'{{\n  "schemaVersion": 1,\n  "deviceProperties": {devices},\n  "traceEvents": [\n  '
    return head + body + '\n  ],\n  "traceName": "a.json"\n}\n'


EVENTS = (
    event("Trace", "PyTorch Profiler (0)", 1000, 900, pid="Spans", tid="PyTorch Profiler"),
    event("cpu_op", "aten::linear", 1000, 500),
    event("cpu_op", "aten::addmm", 1100, 300),
    event("cuda_runtime", "cudaLaunchKernel", 1150, 20),
    event("cpu_op", "aten::relu", 1600, 40.5),
    kernel("gemm", 1200, 100),
    kernel("gemm", 1250, 100, stream=20),
    kernel("Memcpy HtoD", 1700, 30, cat="gpu_memcpy"),
    kernel("Stream Sync", 1200, 600, cat="cuda_sync"),
    {"ph": "M", "name": "process_name", "pid": 7, "tid": 0, "ts": 1000, "args": {"name": "python"}},
    {"ph": "i", "s": "g", "name": "Record Window End", "pid": "", "tid": "", "ts": 1900},
)


class TestConformance(ImporterContract):
    """What every importer keeps to."""

    importer = IMPORTER
    files: ClassVar = {"trace.json": trace(*EVENTS)}
    runs = 0
    repeats_count_once = False


def times(got):
    (profile,) = got.profiles
    return {(o.provider, o.operator): (o.calls, round(o.time_s * 1e6, 3)) for o in profile.operators}


def test_own_times_by_operator_and_device(tmp_path):
    got = read_text(IMPORTER, tmp_path, trace(*EVENTS))
    assert times(got) == {
        ("CPU", "aten::linear"): (1, 200.0),
        ("CPU", "aten::addmm"): (1, 300.0),
        ("CPU", "aten::relu"): (1, 40.5),
        ("GPU 0", "gemm"): (2, 200.0),
        ("GPU 0", "Memcpy HtoD"): (1, 30.0),
    }
    (profile,) = got.profiles
    assert (profile.events, profile.device, profile.span_s) == (9, "NVIDIA A100", pytest.approx(900e-6))
    assert profile.facts["kernels"] == 2
    assert profile.facts["kernel_time_s"] == pytest.approx(200e-6)
    assert profile.facts["gpu_busy_s"] == pytest.approx(180e-6)
    assert got.records == []
    assert codes(got) == []


@pytest.mark.skipif(not FILES.exists(), reason="../shared/cases is not here")
@pytest.mark.parametrize("name", ["kineto01_simple_add.json.gz", "kineto03_cpu_only.json.gz"])
def test_real_traces_come_to_their_totals(name):
    entries = json.loads((FILES.parent / "files.json").read_text("utf-8"))
    (expected,) = (e["totals"] for e in entries if e["file"] == name)
    got = read_file(IMPORTER, FILES / name)
    (profile,) = got.profiles
    assert (profile.events, profile.device) == (expected["events"], expected["device"])
    assert profile.facts["kernels"] == expected["kernels"]
    assert profile.facts["kernel_time_s"] * 1e6 == pytest.approx(expected["kernel_time_us_sum"])
    assert profile.facts["gpu_busy_s"] * 1e6 == pytest.approx(expected["gpu_busy_us_union"])
    assert profile.span_s * 1e6 == pytest.approx(expected["span_us"])
    assert codes(got) == []


@pytest.mark.parametrize(
    ("old", "new"), [("cpu_op", "Operator"), ("kernel", "Kernel"), ("gpu_memcpy", "Memcpy")]
)
def test_category_names_of_older_releases(tmp_path, old, new):
    renamed = trace(*EVENTS).replace(f'"cat": "{old}"', f'"cat": "{new}"')
    assert times(read_text(IMPORTER, tmp_path, renamed)) == times(
        read_text(IMPORTER, tmp_path, trace(*EVENTS))
    )


def test_a_long_head_and_any_layout_do_not_matter(tmp_path):
    whole = times(read_text(IMPORTER, tmp_path, trace(*EVENTS)))
    value = json.loads(trace(*EVENTS))
    ranks = {"schemaVersion": 1, "distributedInfo": {"ranks": list(range(40_000))}}
    for content in (json.dumps(value), json.dumps(value, indent=4), json.dumps(ranks | value)):
        assert times(read_text(IMPORTER, tmp_path, gzip.compress(content.encode()))) == whole


def test_blocks_may_end_anywhere(tmp_path, monkeypatch):
    text = json.dumps(json.loads(trace(*EVENTS)), indent=1).replace("aten::relu", "C:\\model.py")
    whole = times(read_text(IMPORTER, tmp_path, text))
    for size in (1, 7, 100):
        monkeypatch.setattr(
            kineto_events.Source, "blocks", lambda self, of=size: _small_blocks(text.encode(), of)
        )
        assert times(read_text(IMPORTER, tmp_path, text)) == whole


def _small_blocks(content, of):
    lines = content.splitlines(keepends=True)
    for first in range(0, len(lines), of):
        yield first + 1, b"".join(lines[first : first + of])


def test_a_cut_off_trace_gives_what_is_there_and_says_so(tmp_path):
    text = trace(*EVENTS)
    got = read_text(IMPORTER, tmp_path, text[: text.index("aten::relu")])
    assert ("CPU", "aten::addmm") in times(got)
    assert ("CPU", "aten::relu") not in times(got)
    assert "CL277" in codes(got)


@pytest.mark.parametrize(
    "broken",
    [
        ('"ts": 1600', '"ts": '),
        ('"dur": 40.5', '"dur": "long"'),
        ('"dur": 40.5', '"dur": -4'),
        ('"dur": 40.5', '"dur": NaN'),
        ('"dur": 40.5', '"dur": true'),
        ('"dur": 40.5', '"dur": ' + "9" * 5000),
        ('"aten::relu"', "null"),
        ('"aten::relu",', '"aten::relu'),
        ('"name": "aten::relu"', '"name": ' + "[" * 3000),
    ],
)
def test_a_torn_event_is_said_and_takes_no_other_with_it(tmp_path, broken):
    text = trace(*EVENTS)
    assert broken[0] in text
    got = read_text(IMPORTER, tmp_path, text.replace(*broken, 1))
    whole = times(read_text(IMPORTER, tmp_path, text))
    del whole["CPU", "aten::relu"]
    assert times(got) == whole
    assert codes(got) == ["CL276"]


def test_lone_backslashes_are_taken_literally(tmp_path):
    """Paths of Windows in names, which the tool does not escape, beside what is escaped."""
    raw = trace(*EVENTS).replace("aten::relu", "C:\\users\\model.py\\\\x\\n")
    got = read_text(IMPORTER, tmp_path, raw)
    assert ("CPU", "C:\\users\\model.py\\x\n") in times(got)
    assert len(times(got)) == 5
    assert codes(got) == []


def test_a_trace_without_durations_is_refused(tmp_path):
    with pytest.raises(InputFileError, match="no event with a duration"):
        read_text(IMPORTER, tmp_path, trace(EVENTS[-1]))


def test_other_events_of_the_same_viewer_are_not_claimed(tmp_path):
    others = (
        {"traceEvents": [{"ph": "X", "cat": "Node", "name": "a_kernel_time", "ts": 1, "dur": 1}]},
        {"traceEvents": [{"ph": "X", "cat": "blink", "name": "paint", "ts": 1, "dur": 1}]},
        {"schemaVersion": 1, "rows": []},
        [event("cpu_op", "a", 1, 1)],
    )
    for other in others:
        (tmp_path / "other").write_text(json.dumps(other), "utf-8")
        assert not claimed(IMPORTER, tmp_path / "other")


SPANS = st.lists(st.tuples(st.integers(0, 500), st.integers(0, 200), st.sampled_from("ab")), max_size=40)


@given(SPANS)
def test_busy_time_is_that_of_a_count_by_microseconds(parts):
    spans, clock = Spans(), np.zeros(1000, dtype=bool)
    for start, length, name in parts:
        spans.add("GPU 0", name, "0/7", start, length, kind="kernel")
        clock[start : start + length] = True
    assert sum(busy_us(spans).values()) == pytest.approx(clock.sum())
    assert sum(us for _, us in own_us(spans).values()) == pytest.approx(sum(length for _, length, _ in parts))


def nest(draw, start, end, depth):
    """Draw calls that lie within one another, as one thread makes them."""
    found, at = [], start
    while depth and at < end and draw(st.booleans()):
        begin = draw(st.integers(at, end))
        stop = draw(st.integers(begin, end))
        found.append((begin, stop - begin, draw(st.sampled_from("abc"))))
        found += nest(draw, begin, stop, depth - 1)
        at = stop
    return found


@given(st.data())
def test_own_times_of_nested_calls_sum_to_the_time_of_the_outer_ones(data):
    spans, clock = Spans(), np.zeros(1000, dtype=bool)
    calls = nest(data.draw, 0, 1000, 4)
    for start, length, name in data.draw(st.permutations(calls)):
        spans.add("CPU", name, "1/1", start, length, kind="cpu")
        clock[start : start + length] = True
    assert sum(us for _, us in own_us(spans).values()) == pytest.approx(clock.sum())
    assert sum(n for n, _ in own_us(spans).values()) == len(calls)
