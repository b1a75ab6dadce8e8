"""What any engine tells of its tokens: totals, what is missing, what is no number."""

import math
import multiprocessing
import threading

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import carbonlens
from carbonlens.domain.tokens import Tokens, units_of
from carbonlens.instrument.tokens import TokenMeter
from carbonlens.metering.recorder import Recorder

counts = st.integers(0, 10**6)
times = st.lists(st.floats(0, 1e5), max_size=5)


def metered():
    recorder = Recorder()
    return recorder, TokenMeter(recorder)


def said(recorder):
    return {(f.code, f.subject) for f in recorder.facts().findings}


@given(calls=st.lists(st.tuples(counts, counts, times), min_size=1, max_size=6))
def test_totals_are_the_sums_of_the_calls(calls):
    recorder, meter = metered()
    for cached, more, steps in calls:
        output = 1 + len(steps)
        meter.record(
            prompt=cached + more, cached=cached, output=output, first_token_ms=2.5, inter_token_ms=steps
        )
    tokens = recorder.facts().tokens
    assert tokens.requests == len(calls)
    assert tokens.cached == sum(c[0] for c in calls)
    assert tokens.computed == sum(c[1] for c in calls)
    assert tokens.output == sum(1 + len(c[2]) for c in calls)
    assert tokens.decoded == tokens.output - len(calls)
    assert tokens.prefill_s == pytest.approx(0.0025 * len(calls))
    assert tokens.decode_s == pytest.approx(math.fsum(t for c in calls for t in c[2]) / 1000)
    assert (tokens.inter_token.n if tokens.inter_token else 0) == sum(len(c[2]) for c in calls)
    assert said(recorder) == set()


@given(
    mean=st.floats(0, 1e5),
    requests=st.integers(1, 9),
    more=st.integers(0, 10**5),
    kind=st.sampled_from([float, np.float64, np.array]),
)
def test_one_number_is_the_mean_of_all_intervals(mean, requests, more, kind):
    recorder, meter = metered()
    meter.record(requests=requests, output=requests + more, inter_token_ms=kind(mean))
    tokens = recorder.facts().tokens
    assert tokens.decode_s == pytest.approx(mean * more / 1000)
    # One interval is its own mean; of several the mean tells no percentile.
    assert (tokens.inter_token.n if tokens.inter_token else 0) == (1 if more == 1 else 0)
    assert said(recorder) == set()


@given(requests=st.integers(1, 5), output=st.none() | st.integers(0, 12), steps=times)
def test_a_list_of_another_length_leaves_the_time_unknown_and_is_said(requests, output, steps):
    recorder, meter = metered()
    meter.record(requests=requests, output=output, inter_token_ms=steps)
    tokens = recorder.facts().tokens
    if (output is None and steps) or (output is not None and output - requests == len(steps)):
        assert tokens.decode_s == pytest.approx(math.fsum(steps) / 1000)
        assert said(recorder) == set()
    else:
        assert (tokens.decode_s, tokens.inter_token) == (None, None)
        assert said(recorder) == {("CL189", "tokens.inter_token")}


@pytest.mark.parametrize(
    "call",
    [{}, {"output": 9, "requests": None}, {"requests": 1}, {"output": 3, "requests": 4}],
)
def test_a_mean_of_an_unknown_count_leaves_the_time_unknown_and_is_said(call):
    recorder, meter = metered()
    meter.record(inter_token_ms=9, **call)
    assert recorder.facts().tokens.decode_s is None
    assert said(recorder) == {("CL189", "tokens.inter_token")}


def test_what_no_call_tells_is_unknown_and_no_zero():
    recorder, meter = metered()
    meter.record(output=5)
    assert recorder.facts().tokens == Tokens(requests=1, output=5)


def test_what_only_some_calls_tell_is_unknown_and_said():
    recorder, meter = metered()
    meter.record(prompt=3, output=5, cached=0, first_token_ms=4)
    meter.record(prompt=3, output=5)
    tokens = recorder.facts().tokens
    assert (tokens.prompt, tokens.output, tokens.cached, tokens.prefill_s) == (6, 10, None, None)
    assert tokens.first_token.n == 1
    assert said(recorder) == {("CL171", "tokens.cached"), ("CL171", "tokens.prefill_s")}


class Odd:
    """What is no number, as a tensor without data."""

    def __int__(self):
        raise RuntimeError("no data")

    def __float__(self):
        raise RuntimeError("no data")


@pytest.mark.parametrize(
    "wrong",
    [
        {"prompt": -1},
        {"prompt": "many"},
        {"output": 2.5},
        {"output": math.nan},
        {"output": 2**70},
        {"cached": 4, "prompt": 3},
        {"requests": Odd()},
        {"first_token_ms": -1},
        {"first_token_ms": math.inf},
        {"inter_token_ms": [1, None]},
        {"inter_token_ms": "fast"},
        {"inter_token_ms": Odd()},
    ],
)
def test_a_wrong_value_is_a_finding_and_none_of_the_call_counts(wrong):
    recorder, meter = metered()
    meter.record(**{"output": 7, **wrong})
    assert recorder.facts().tokens is None
    assert said(recorder) == {("CL110", "tokens")}
    meter.record(output=7)
    assert recorder.facts().tokens.output == 7


def test_threads_lose_nothing():
    recorder, meter = metered()

    def work():
        for _ in range(500):
            meter.record(prompt=2, output=3, inter_token_ms=[1, 2])

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    tokens = recorder.facts().tokens
    assert (tokens.requests, tokens.prompt, tokens.output) == (2000, 4000, 6000)
    assert tokens.inter_token.n == 4000


def test_telling_does_not_wait_for_a_holder_that_never_lets_go():
    _, meter = metered()
    meter.record(output=7)
    with meter._lock:
        assert meter.tokens(exact=True).output == 7


def test_a_forked_worker_adds_nothing(tmp_path):
    with carbonlens.track(ledger=tmp_path) as run:
        run.record_tokens(output=1)
        worker = multiprocessing.get_context("fork").Process(target=run.record_tokens, kwargs={"output": 5})
        worker.start()
        worker.join(60)
        assert worker.exitcode == 0
    assert run.run.tokens.output == 1


def test_the_handle_records_and_the_ledger_keeps_it(tmp_path):
    with carbonlens.track("vllm", unit="output token", ledger=tmp_path) as run:
        run.record_tokens(prompt=10, cached=4, output=3, first_token_ms=12.5, inter_token_ms=iter([3, 5]))
    [kept] = carbonlens.Ledger(tmp_path).view().runs
    assert kept.tokens == run.run.tokens
    assert (kept.tokens.decode_s, kept.tokens.inter_token.p50_ms) == (0.008, 4)
    assert kept.units == 3


def test_units_that_the_user_counts_win(tmp_path):
    with carbonlens.track(unit="output token", ledger=tmp_path) as run:
        run.record_tokens(output=3)
        run.add_units(2)
    assert run.run.units == 2


@pytest.mark.parametrize(
    ("unit", "units"),
    [
        ("output token", 5),
        ("output tokens", 5),
        ("prompt token", 9),
        ("token", None),
        ("image", None),
        (None, None),
    ],
)
def test_only_a_unit_that_names_the_tokens_is_counted_by_them(unit, units):
    assert units_of(Tokens(prompt=9, output=5), unit) == units
    assert units_of(Tokens(), unit) is None
    assert units_of(None, unit) is None


class Scalar:
    """An array without dimensions: it has the method that iterates, which fails."""

    ndim = 0

    def __iter__(self):
        raise TypeError("iteration over a 0-d array")

    def __float__(self):
        return 250.0


@pytest.mark.parametrize("told", [250, 250.0, "250", b"250", Scalar(), [250], ("250",)])
def test_one_time_is_one_in_whatever_type_it_comes(told):
    recorder, meter = metered()
    meter.record(output=2, first_token_ms=told, inter_token_ms=told)
    tokens = recorder.facts().tokens
    assert (tokens.prefill_s, tokens.first_token.n, tokens.decode_s) == (0.25, 1, 0.25)
    assert said(recorder) == set()


def test_a_tensor_without_dimensions_is_a_time():
    torch = pytest.importorskip("torch", reason="torch is of an extra that is not installed")
    recorder, meter = metered()
    meter.record(output=2, first_token_ms=torch.tensor(250.0), inter_token_ms=torch.tensor(250.0).numpy())
    assert (recorder.facts().tokens.prefill_s, recorder.facts().tokens.decode_s) == (0.25, 0.25)


@pytest.mark.parametrize(
    ("counts", "prefill_s"),
    [
        ({"output": 20, "prompt": 100}, None),
        ({"output": 20}, None),
        ({"prompt": 100}, None),
        ({}, None),
        ({"output": 0, "prompt": 100}, None),
        ({"output": 0, "prompt": 0}, 0),
    ],
)
def test_no_time_in_a_list_is_no_time_of_zero(counts, prefill_s):
    recorder, meter = metered()
    meter.record(**counts, first_token_ms=[])
    assert recorder.facts().tokens.prefill_s == prefill_s


def test_no_step_in_a_list_is_zero_only_where_there_was_none():
    recorder, meter = metered()
    meter.record(inter_token_ms=[])
    assert recorder.facts().tokens.decode_s is None
    assert said(recorder) == {("CL189", "tokens.inter_token")}
    recorder, meter = metered()
    meter.record(output=1, inter_token_ms=[])
    assert recorder.facts().tokens.decode_s == 0
