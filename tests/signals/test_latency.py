"""Latency: exact percentiles, a sketch within one percent, merging, and honest P99."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from carbonlens.signals.latency import (
    MIN_N_P99,
    RELATIVE_ERROR,
    LatencyCollector,
    buckets,
    count,
    merge,
    percentile,
    quantile,
    sketch_of,
    summarise,
)
from tests.stalls import unless_stalled

latencies = st.lists(
    st.one_of(st.just(0.0), st.floats(min_value=1e-6, max_value=1e7)), min_size=1, max_size=200
)
quantiles = st.floats(min_value=0, max_value=1)


@given(latencies, quantiles)
def test_a_sketch_is_within_its_error_of_the_value_of_that_rank(values, q):
    exact = sorted(values)[int(q * (len(values) - 1))]
    told = quantile(sketch_of(values), q)
    assert abs(told - exact) <= RELATIVE_ERROR * exact * (1 + 1e-9)


@given(latencies, latencies)
def test_merging_is_sketching_both(one, two):
    assert merge(sketch_of(one), sketch_of(two)) == sketch_of([*one, *two])


@given(latencies, quantiles)
def test_percentiles_agree_with_numpy(values, q):
    assert percentile(sorted(values), q) == pytest.approx(float(np.quantile(values, q)), rel=1e-9, abs=1e-12)


def test_p99_needs_299_calls():
    assert summarise([1.0] * (MIN_N_P99 - 1)).p99_ms is None
    assert summarise([1.0] * MIN_N_P99).p99_ms == 1.0
    # The least n at which the largest of n values is above the 99th percentile in 95 % of cases.
    assert 0.99**MIN_N_P99 <= 0.05 < 0.99 ** (MIN_N_P99 - 1)


def test_sketches_of_other_errors_do_not_merge():
    with pytest.raises(ValueError, match="relative error"):
        merge(sketch_of([1.0]), sketch_of([1.0], relative_error=0.02))


@pytest.mark.parametrize("wrong", [-1.0, math.nan, math.inf])
def test_a_value_that_is_no_latency_is_refused_and_nothing_taken(wrong):
    collector = LatencyCollector()
    with pytest.raises(ValueError, match="latency"):
        collector.add([1.0, wrong])
    assert collector.latency() is None


def test_a_collector_is_the_summary_of_all_calls():
    collector = LatencyCollector()
    collector.add([3.0, 1.0])
    collector.add([2.0])
    assert collector.latency() == summarise([1.0, 2.0, 3.0])


def test_a_collector_beyond_its_memory_keeps_count_mean_and_sketch():
    collector = LatencyCollector(keep_raw=10)
    collector.add([float(v) for v in range(1, 101)])
    told = collector.latency()
    assert (told.n, told.mean_ms, told.p50_ms) == (100, 50.5, None)
    assert count(told.sketch) == 100
    assert quantile(told.sketch, 0.5) == pytest.approx(50, rel=0.011)


def test_the_end_of_a_million_latencies_is_quick():
    import time

    collector = LatencyCollector()
    collector.add(list(np.random.default_rng(1).exponential(5.0, 1_000_000)))

    def once(left):
        begin = time.perf_counter()
        told = collector.latency()
        assert time.perf_counter() - begin < 0.05
        return told

    told = unless_stalled(once)
    assert (told.n, count(told.sketch)) == (1_000_000, 1_000_000)


def test_nothing_collected_is_none():
    assert LatencyCollector().latency() is None
    assert summarise([]) is None
    assert quantile(sketch_of([]), 0.5) is None


@given(latencies)
def test_buckets_hold_every_value_but_zeros_in_rising_order(values):
    sketch = sketch_of(values)
    found = buckets(sketch)
    assert sum(n for _, _, n in found) + sketch.zero_count == len(values)
    assert all(low < high for low, high, _ in found)
    assert [low for low, _, _ in found] == sorted(low for low, _, _ in found)
    for low, high, n in found:
        assert n <= sum(low * (1 - 1e-9) <= v <= high * (1 + 1e-9) for v in values)
