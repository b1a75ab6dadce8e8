"""The runner: order of the rounds, what it records, failing arms and Ctrl-C."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections import Counter
from itertools import islice
from pathlib import Path

import pytest

from carbonlens.compare.rounds import round_orders
from carbonlens.errors import MeasurementError
from carbonlens.ledger.store import Ledger
from carbonlens.studies.ladder import Pace, run_ladder
from tests.instrument.wrapper import wait_until
from tests.studies.arms import QUICK, SPIN_S, Watcher, arm, setting, spin

ROOT = Path(__file__).parents[2]


@pytest.fixture
def ledger(tmp_path):
    return Ledger(tmp_path / "ledger")


def runs(ledger, **wanted):
    return [r for r in ledger.view().runs if all(getattr(r, k) == v for k, v in wanted.items())]


def test_every_run_is_recorded(ledger):
    watcher = Watcher()
    arms = [arm("base"), arm("small", needs=["base"], outcomes=(1, 0, 0, 1))]
    result = run_ladder(arms, setting(ledger.path), pace=QUICK, progress=watcher)

    assert (result.rounds, result.failed, result.interrupted) == (6, {}, False)
    assert watcher.phases == [["Preparing", 2, 2], ["Checking", 2, 2], ["Measuring", 12, 12]]
    assert {r.study for r in runs(ledger)} == {"quick"}
    assert [r.step for r in runs(ledger, role="effort")] == ["base", "small"]
    for name in ("base", "small"):
        rounds = runs(ledger, role="variant", step=name)
        assert [r.repeat for r in rounds] == [1, 2, 3, 4, 5, 6]
        for run in rounds:
            assert run.status == "complete"
            assert run.unit == "item"
            # Two units a call, and one latency a call.
            assert run.units == 2 * run.latency.n > 0
            assert (run.model_bytes, run.macs_per_unit, run.workload) == (100, 7, "spinning")
            assert run.conditions.cpu_s > 0


def test_a_round_tells_the_cpu_time_of_its_calls(ledger):
    """Long rounds: what a busy machine puts between a reading and the edge of a window is little of them."""
    long = Pace(rounds=5, round_s=0.2, warm_up_s=0.001)
    run_ladder([arm("base")], setting(ledger.path), pace=long)
    for run in runs(ledger, role="variant"):
        called_s = run.latency.n * SPIN_S
        assert 0.9 * called_s <= run.conditions.cpu_s <= 1.2 * called_s


def test_rounds_are_interleaved(ledger):
    run_ladder([arm("a"), arm("b"), arm("c")], setting(ledger.path), pace=QUICK)
    measured = [r.step for r in runs(ledger, role="variant")]
    expected = [name for order in islice(round_orders(["a", "b", "c"]), 6) for name in order]
    assert measured == expected


def test_quality_keeps_the_outcome_of_every_example(ledger):
    result = run_ladder([arm("a", outcomes=(1, 0, 1, 1))], setting(ledger.path), pace=QUICK)
    (checked,) = runs(ledger, role="evaluation")
    (quality,) = checked.quality
    assert (quality.name, quality.value, quality.n) == ("accuracy", 0.75, 4)
    assert ledger.outcomes(quality.outcomes_sha256) == (1, 0, 1, 1)
    assert result.quality["a"][0].value == 0.75
    # The first call stands apart: it is the only latency of this run.
    assert checked.latency.n == 1
    assert not any(r.quality for r in runs(ledger, role="variant"))


def test_later_arms_build_on_earlier_ones(ledger):
    seen = {}

    def remember(name, base):
        def prepare(made):
            seen[name] = dict(made)
            return base.prepare(made)

        return type(base)(base.name, base.title, prepare, needs=base.needs)

    arms = [remember(n, arm(n, needs=needs)) for n, needs in (("a", []), ("b", ["a"]), ("c", ["a", "b"]))]
    run_ladder(arms, setting(ledger.path), pace=QUICK)
    assert seen == {"a": {}, "b": {"a": ["a"]}, "c": {"a": ["a"], "b": [["a"], "b"]}}


def failing_arm(name, **kwargs):
    def prepare(made):
        raise ValueError("no such layer")

    return type(arm("x"))(name, name, prepare, **kwargs)


def test_an_arm_that_cannot_be_prepared_fails_with_those_that_need_it(ledger):
    arms = [arm("base"), failing_arm("bad"), arm("on-bad", needs=["bad"]), arm("good", needs=["base"])]
    watcher = Watcher()
    result = run_ladder(arms, setting(ledger.path), pace=QUICK, progress=watcher)

    assert list(result.failed) == ["bad", "on-bad"]
    assert "no such layer" in result.failed["bad"]
    assert "bad" in result.failed["on-bad"]
    assert result.rounds == 6
    assert len(watcher.notes) == 2
    failed = runs(ledger, status="failed")
    assert [(r.step, r.role) for r in failed] == [("bad", "effort"), ("on-bad", "effort")]
    # The record keeps the error's type alone: its text may hold a secret (law 11).
    assert failed[0].error == "ValueError"
    assert Counter(r.step for r in runs(ledger, role="variant")) == {"base": 6, "good": 6}


def test_an_arm_that_raises_in_a_round_leaves_and_the_others_go_on(ledger):
    calls = Counter()

    def sometimes() -> int:
        spin()
        calls["n"] += 1
        if len(runs(ledger, role="variant", step="shaky")) == 2:
            raise RuntimeError("lost the device")
        return 1

    result = run_ladder([arm("base"), arm("shaky", sometimes)], setting(ledger.path), pace=QUICK)
    assert "lost the device" in result.failed["shaky"]
    shaky = runs(ledger, role="variant", step="shaky")
    assert [(r.repeat, r.status) for r in shaky] == [(1, "complete"), (2, "complete"), (3, "failed")]
    assert len(runs(ledger, role="variant", step="base")) == 6


def test_an_arm_whose_evaluation_raises_is_not_measured(ledger):
    def evaluate():
        raise KeyError("label")

    result = run_ladder([arm("base"), arm("blind", evaluate=evaluate)], setting(ledger.path), pace=QUICK)
    assert list(result.failed) == ["blind"]
    assert not runs(ledger, role="variant", step="blind")
    assert len(runs(ledger, role="variant", step="base")) == 6


def interrupt():
    """Send Ctrl-C and wait for its handler, which puts another in its place.

    Another thread may get it, and the handler runs here a little later: a second one
    must not come before that.
    """
    before = signal.getsignal(signal.SIGINT)
    os.kill(os.getpid(), signal.SIGINT)
    wait_until(lambda: signal.getsignal(signal.SIGINT) != before)


def interrupting(ledger, *, after, times=1):
    """Return a call that is interrupted once that many runs of its arm are recorded."""
    sent = Counter()

    def call() -> int:
        spin()
        # All from one call: a round may well have room for no second one.
        while len(runs(ledger, role="variant", step="b")) >= after and sent["n"] < times:
            sent["n"] += 1
            interrupt()
        return 1

    return call


def test_ctrl_c_keeps_the_finished_rounds(ledger):
    before = signal.getsignal(signal.SIGINT)
    watcher = Watcher()
    arms = [arm("a"), arm("b", interrupting(ledger, after=2)), arm("c")]
    result = run_ladder(arms, setting(ledger.path), pace=QUICK, progress=watcher)

    assert result.interrupted
    assert result.rounds == 2
    assert result.failed == {}
    assert watcher.notes == ["stopped after 2 of 6 rounds"]
    # The arm that was running ended whole; nothing half done is recorded.
    assert {r.status for r in runs(ledger)} == {"complete"}
    assert signal.getsignal(signal.SIGINT) is before


def abort(folder):
    """Interrupt a ladder twice, and print how it ended; for a process of its own."""
    before = signal.getsignal(signal.SIGINT)
    ledger = Ledger(folder)
    arms = [arm("a"), arm("b", interrupting(ledger, after=2, times=2))]
    try:
        print(run_ladder(arms, setting(ledger.path), pace=QUICK))
    except KeyboardInterrupt:
        print("aborted", signal.getsignal(signal.SIGINT) is before)


def test_a_second_ctrl_c_aborts(ledger):
    # In a process of its own: what earlier tests left in this one is none of the matter.
    code = f"from tests.studies.test_ladder import abort\nabort({str(ledger.path)!r})"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.stdout == "aborted True\n", done.stdout + done.stderr


def test_work_that_waits_instead_of_computing_still_ends(ledger):
    import time

    def wait() -> int:
        time.sleep(0.002)
        return 1

    result = run_ladder([arm("waiting", wait)], setting(ledger.path), pace=QUICK)
    assert result.rounds == 6
    assert all(r.conditions.wall_s < 2 for r in runs(ledger, role="variant"))


@pytest.mark.parametrize(("rounds", "length"), [(4, 0.1), (5, 0.0), (5, float("nan"))])
def test_a_pace_that_gives_no_verdict_is_refused(rounds, length):
    with pytest.raises(MeasurementError, match="no verdict"):
        Pace(rounds=rounds, round_s=length)


def test_nothing_to_measure_is_no_error(ledger):
    result = run_ladder([failing_arm("only")], setting(ledger.path), pace=QUICK)
    assert (result.rounds, list(result.failed)) == (0, ["only"])
