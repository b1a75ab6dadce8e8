"""A command's windows: how it is repeated, and what goes before them."""

import sys
import time

import pytest

from carbonlens.domain.bench import Variant
from carbonlens.domain.sources import Sources
from carbonlens.instrument.bench_command import CommandArm
from carbonlens.instrument.window import Label, Place
from carbonlens.ledger.store import Ledger
from carbonlens.metering.records import new_run
from tests.instrument.synthetic import bench_of

WRITES = "import sys; open(sys.argv[1], 'a').write('x'); 'x' * 1000"


@pytest.fixture
def arm(tmp_path):
    """A short command that leaves a mark of every execution, checked."""
    command = (sys.executable, "-S", "-c", WRITES, str(tmp_path / "marks"))
    variant = Variant(name="a", kind="command", command=command, units=1)
    label = Label(step="a", study="s", role="variant", unit="call")
    place = Place(ledger=str(tmp_path / "ledger"), sources=Sources())
    made = CommandArm(variant, bench_of(("a", "b"), window_s=0.3), place, label, tmp_path)
    made.check(record=False)
    return made


def marks(tmp_path):
    return len((tmp_path / "marks").read_text())


def test_a_short_command_is_going_already_when_its_window_begins(arm, tmp_path):
    assert arm._times > 1
    before = marks(tmp_path)
    arm._settle(0.2, new_run("test"))
    assert marks(tmp_path) > before
    assert Ledger(tmp_path / "ledger").view().runs == ()


def test_a_long_command_is_not_run_twice_but_lets_the_others_power_fade(arm, tmp_path):
    arm._times = 1
    before, begin = marks(tmp_path), time.monotonic()
    arm._settle(0.2, new_run("test"))
    assert marks(tmp_path) == before
    assert time.monotonic() - begin >= 0.2


def test_a_window_holds_as_many_executions_as_fill_it(arm, tmp_path):
    before = marks(tmp_path)
    run = arm.measure(3)
    assert marks(tmp_path) - before == arm._times == run.units
    assert (run.repeat, run.role) == (3, "variant")
