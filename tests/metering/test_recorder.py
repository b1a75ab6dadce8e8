"""What the user records: kept exactly, or named in a Finding, but never an exception."""

import sys
import threading
from decimal import Decimal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from carbonlens.metering.recorder import UNTOUCHED, Recorder


def final(recorder):
    return recorder.final_facts(lambda outcomes: f"hash of {sum(outcomes)}/{len(outcomes)}")


def test_units_add_up_exactly_also_from_threads():
    recorder = Recorder()

    def count():
        for _ in range(500):
            recorder.add_units(0.1)

    threads = [threading.Thread(target=count) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert final(recorder).units == Decimal("200.0")


@pytest.fixture
def hasty_threads():
    """Threads that take turns at every few lines."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


@pytest.mark.usefixtures("hasty_threads")
def test_whole_units_from_threads_are_all_there_and_never_fewer_than_before():
    recorder = Recorder()
    each = 20_000
    threads = [
        threading.Thread(target=lambda: [recorder.add_units(3) for _ in range(each)]) for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    seen = [Decimal(0)]
    while any(thread.is_alive() for thread in threads):
        seen.append(recorder.units or Decimal(0))
    for thread in threads:
        thread.join()
    assert seen == sorted(seen)
    assert final(recorder).units == 4 * 3 * each


NUMBERS = st.one_of(
    st.integers(0, 300),
    st.integers(0, 10**18),
    st.decimals(0, 1000, places=3).map(float),
    st.booleans(),
)


@given(st.lists(st.tuples(NUMBERS, st.integers(1, 1500)), max_size=6))
def test_units_of_every_kind_add_up_to_what_was_given(given_):
    recorder, expected, ignored = Recorder(), None, False
    assert recorder.version == UNTOUCHED
    for number, times in given_:
        for _ in range(times):
            before = recorder.version
            recorder.add_units(number)
            more = (expected or Decimal(0)) + Decimal(str(number + 0))  # True is 1
            if more < 10**18:
                expected = more
                assert recorder.version != before or (number == 0 and before != UNTOUCHED)
            else:
                ignored = True
    assert recorder.units == expected
    assert (expected is None) == (recorder.units is None)
    assert bool(recorder.facts().findings) == (ignored or (expected is not None and 0 < expected < 1e-6))


def test_sums_beyond_what_whole_numbers_are_laid_by_for_stay_exact_and_bounded():
    recorder = Recorder()
    recorder._counts = [2**53 - 1]  # as after years of steps
    for _ in range(3000):
        recorder.add_units(2**32 - 1)
    assert recorder.units == 2**53 - 1 + 3000 * (2**32 - 1)
    recorder.add_units(10**18 - 1)
    assert recorder.units == 2**53 - 1 + 3000 * (2**32 - 1)
    (finding,) = recorder.facts().findings
    assert "18 digits" in finding.message


def test_quality_takes_numpy_numbers_and_outcomes():
    recorder = Recorder()
    recorder.add_quality("f1", np.float64(0.5), np.int64(8), None, higher_is_better=True)
    recorder.add_quality("accuracy", None, None, np.array([1, 0, 1, 1]), higher_is_better=True)
    f1, accuracy = final(recorder).quality
    assert (f1.value, f1.n, f1.outcomes_sha256) == (0.5, 8, None)
    assert (accuracy.value, accuracy.n, accuracy.outcomes_sha256) == (0.75, 4, "hash of 3/4")


def test_a_later_figure_of_the_same_name_replaces_the_earlier():
    recorder = Recorder()
    recorder.add_quality("accuracy", None, None, [1, 0], higher_is_better=True)
    recorder.add_quality("accuracy", 0.9, 100, None, higher_is_better=True)
    (quality,) = final(recorder).quality
    assert (quality.value, quality.n, quality.outcomes_sha256) == (0.9, 100, None)


def test_an_evaluation_without_a_number_is_kept_as_none():
    recorder = Recorder()
    recorder.add_quality("bleu", None, None, None, higher_is_better=True)
    (quality,) = final(recorder).quality
    assert quality.value is None


@pytest.mark.parametrize(
    ("record", "subject"),
    [
        (lambda r: r.add_units("many"), "units"),
        (lambda r: r.add_units(float("nan")), "units"),
        (lambda r: r.add_units(-1), "units"),
        (lambda r: r.add_units(None), "units"),
        (lambda r: r.add_quality("acc", object(), None, None, higher_is_better=True), "quality acc"),
        (lambda r: r.add_quality("acc", float("nan"), None, None, higher_is_better=True), "quality acc"),
        (lambda r: r.add_quality("acc", None, None, ["right"], higher_is_better=True), "quality acc"),
        (lambda r: r.add_quality("f1", None, None, [0.9, 0.8, 0.95], higher_is_better=True), "quality f1"),
        (lambda r: r.add_quality("f1", None, None, [1, 0, 2], higher_is_better=True), "quality f1"),
        (lambda r: r.add_quality("f1", 0.5, 2.5, None, higher_is_better=True), "quality f1"),
        *(
            (lambda r, n=n: r.add_quality("f1", 0.5, n, None, higher_is_better=True), "quality f1")
            for n in (0, -3)
        ),
        (lambda r: r.add_quality("f1", 1e308, None, None, higher_is_better=True), "quality f1"),
        (lambda r: r.add_units(1e308), "units"),
        (lambda r: r.add_units(10**26), "units"),
        (lambda r: r.describe_model(10.5, None), "model"),
        (lambda r: r.add_latencies([1.0, -2.0]), "latencies"),
        (lambda r: r.add_latencies(3.0), "latencies"),
        (lambda r: r.add_latencies(["slow"]), "latencies"),
        (lambda r: r.describe_model("big", None), "model"),
    ],
)
def test_a_wrong_value_is_a_finding_and_nothing_else(record, subject):
    recorder = Recorder()
    record(recorder)
    facts = final(recorder)
    assert [(f.code, f.subject) for f in facts.findings] == [("CL110", subject)]
    assert (facts.units, facts.quality, facts.latency, facts.model_bytes) == (None, (), None, None)


def test_the_model_is_described_in_parts():
    recorder = Recorder()
    recorder.describe_model(1000, None)
    recorder.describe_model(None, 5)
    facts = final(recorder)
    assert (facts.model_bytes, facts.macs_per_unit) == (1000, 5)


def test_outcomes_are_exactly_0_or_1_in_whatever_type():
    recorder = Recorder()
    recorder.add_quality("a", None, None, [True, 0.0, np.float32(1), Decimal(0)], higher_is_better=True)
    (quality,) = final(recorder).quality
    assert (quality.value, quality.n, quality.outcomes_sha256) == (0.5, 4, "hash of 2/4")


def test_a_value_beside_outcomes_that_are_scores_is_kept_without_them():
    recorder = Recorder()
    recorder.add_quality("f1", 0.88, 3, [0.9, 0.8, 0.95], higher_is_better=True)
    facts = final(recorder)
    (quality,) = facts.quality
    assert (quality.value, quality.n, quality.outcomes_sha256) == (0.88, 3, None)
    assert [(f.code, f.subject) for f in facts.findings] == [("CL110", "quality f1 outcomes")]


class Keyed:
    """An object of the user's that tells a key whenever it is looked at."""

    def __str__(self):
        return "sk-secret-9"

    __repr__ = __str__

    def __float__(self):
        raise RuntimeError("sk-secret-9 is no number")

    __int__ = __iter__ = __float__


SECRETS = ["sk-secret-9", b"sk-secret-9", Keyed(), ["sk-secret-9"], {"sk-secret-9": 1}, 424242.5, -424242]


@pytest.mark.parametrize("secret", SECRETS, ids=lambda s: type(s).__name__)
@pytest.mark.parametrize(
    ("record", "wanted"),
    [
        (lambda r, s: r.add_units(s), "a number, 0 or more, is wanted"),
        (lambda r, s: r.add_quality("acc", s, None, None, higher_is_better=True), "value: "),
        (lambda r, s: r.add_quality("acc", 0.5, s, None, higher_is_better=True), "n: "),
        (lambda r, s: r.add_quality("acc", None, None, s, higher_is_better=True), "outcomes: "),
        (lambda r, s: r.add_quality("acc", 0.5, None, s, higher_is_better=True), "a list of 0 and 1"),
        (lambda r, s: r.add_latencies(s), "a list of finite milliseconds, 0 or more, is wanted"),
        (lambda r, s: r.describe_model(s, None), "bytes: "),
        (lambda r, s: r.describe_model(None, s), "macs_per_unit: "),
    ],
)
def test_a_wrong_value_is_not_repeated_and_what_is_wanted_is_said(record, wanted, secret):
    """Law 11: a key that stands in the wrong place does not reach the ledger."""
    recorder = Recorder()
    record(recorder, secret)
    for finding in final(recorder).findings:
        said = f"{finding.message} {finding.mend} {finding.subject}"
        assert "secret" not in said
        assert "4242" not in said
        assert wanted in finding.message
        assert (
            "of type" in finding.message or "was given" in finding.message or "neither 0" in finding.message
        )
    if isinstance(secret, str | Keyed):
        assert final(recorder).findings


def test_who_gathers_figures_is_asked_for_them_before_they_are_read():
    recorder = Recorder()
    gathered = [1, 2, 3]

    def hand_over():
        while gathered:
            recorder.add_units(gathered.pop())

    recorder.before_look(hand_over)
    before = recorder.version
    recorder.changed()
    assert recorder.version > before
    assert recorder.facts().units == 6
    gathered.append(4)
    assert recorder.facts().units == 10
