"""Power over time of a bench and a ladder: one run a variant keeps it, with phases, and no round does."""

import sys

import msgspec
import pytest

import carbonlens
from carbonlens.domain.bench import Variant
from carbonlens.domain.sources import Sources
from carbonlens.instrument.bench_command import CommandArm
from carbonlens.instrument.bench_process import ProcessArm
from carbonlens.instrument.window import Label, Place, steady_s
from carbonlens.ledger.store import Ledger
from carbonlens.studies.ladder import Pace, run_ladder
from tests.instrument.synthetic import bench_of
from tests.studies.arms import arm, setting

WORK = """
import time

def load():
    end = time.process_time() + 0.25
    while time.process_time() < end:
        pass

def call():
    end = time.process_time() + 0.01
    while time.process_time() < end:
        pass

def judged():
    load()
    return {"accuracy": {"value": 0.9, "n": 10}}
"""


def spans(run):
    return [s.name for s in run.power.spans]


def measured(kind, tmp_path, variant, **pace):
    tmp_path.mkdir(exist_ok=True)
    bench = bench_of(("a", "b"), warm_up=1, **pace)
    label = Label(step="a", study="s", role="variant", unit="call")
    place = Place(ledger=str(tmp_path / "ledger"), sources=Sources())
    one = kind(variant, msgspec.structs.replace(bench, folder=str(tmp_path)), place, label, tmp_path)
    try:
        one.check(record=True)
        one.measure(1)
    finally:
        one.close()
    runs = Ledger(tmp_path / "ledger").view().runs
    return {r.role: r for r in runs}


def test_a_functions_check_keeps_its_phases_and_its_rounds_nothing(tmp_path):
    (tmp_path / "power_work.py").write_text(WORK)
    variant = Variant(name="a", kind="callable", callable="power_work:call", evaluate="power_work:judged")
    runs = measured(ProcessArm, tmp_path, variant, window_s=0.5)
    check = runs["evaluation"]
    assert spans(check) == ["load", "warm-up", "steady", "evaluation"]
    told = {p.name: p for p in check.phases}
    assert told["steady"].duration_s == pytest.approx(0.5, abs=0.3)
    assert check.trace is None
    energy = sum(w * check.power.bin_s for w in check.power.power_w if w is not None)
    assert energy == pytest.approx(check.total_energy.value, rel=0.15)
    assert (runs["variant"].power, runs["variant"].phases) == (None, ())


def test_a_window_too_short_for_a_curve_adds_no_call(tmp_path):
    (tmp_path / "power_work.py").write_text(WORK)
    variant = Variant(name="a", kind="callable", callable="power_work:call")
    check = measured(ProcessArm, tmp_path, variant, window_s=0.001)["evaluation"]
    # Nor is there an evaluation where nothing judges the work.
    assert [p.name for p in check.phases] == ["load", "warm-up"]
    assert check.units == 2  # the first call, and one of the warm-up
    assert [steady_s(s) for s in (0.1, 0.2, 3.0, 600.0)] == [0.0, 0.2, 3.0, 5.0]


def test_a_commands_check_does_what_a_round_does_but_not_twice_what_is_long(tmp_path):
    command = (sys.executable, "-S", "-c", "sum(range(2_000_000))")
    short = Variant(name="a", kind="command", command=command, units=1)
    check = measured(CommandArm, tmp_path / "short", short, window_s=1.0)["evaluation"]
    assert spans(check)[-1] == "steady"
    assert check.units > 1
    long = Variant(name="a", kind="command", command=(*command[:-1], "import time; time.sleep(0.4)"), units=1)
    check = measured(CommandArm, tmp_path / "long", long, window_s=0.3)["evaluation"]
    assert check.units == 1
    assert [p.name for p in check.phases] == ["warm-up"]


def test_of_a_ladder_the_run_outside_the_rounds_keeps_its_curve(tmp_path):
    pace = Pace(rounds=5, round_s=0.004, warm_up_s=0.12, steady_s=0.3)
    run_ladder([arm("base")], setting(tmp_path), pace=pace)
    runs = Ledger(tmp_path).view().runs
    (check,) = [r for r in runs if r.role == "evaluation"]
    assert spans(check)[:2] == ["warm-up", "steady"]
    assert {r.role for r in runs if r.power is not None} == {"evaluation"}


def test_a_tracked_block_keeps_its_curve_where_it_asks_for_it(tmp_path):
    with carbonlens.track("a", ledger=tmp_path, trace=True) as run, run.phase("load"):
        exec(WORK + "load()", {})  # noqa: S102  # our own text
    assert run.run.power is not None
    assert spans(run.run) == ["load"]
    assert (run.run.trace, [f.code for f in run.run.findings if f.code in ("CL161", "CL129")]) == (None, [])
    with carbonlens.track("a", ledger=tmp_path, trace=False) as run:
        pass
    assert run.run.power is None
    assert not [f for f in run.run.findings if "trace" in f.message]
