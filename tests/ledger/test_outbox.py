"""Runs for a ledger behind an address: kept on this host until they are there, and then once."""

import pytest

from carbonlens.app.runs import list_runs
from carbonlens.ledger import outbox
from carbonlens.ledger.opening import open_ledger
from carbonlens.ledger.records import current
from carbonlens.ledger.store import Ledger
from carbonlens.metering.deposit import deposit, deposit_outcomes, is_recorded
from tests.ledger.test_store import make_run


@pytest.fixture(autouse=True)
def state(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


@pytest.fixture
def shared(tmp_path):
    pytest.importorskip("fsspec", reason="needs the extra remote")
    return f"file://{tmp_path / 'shared'}"


def there(address):
    with open_ledger(address) as ledger:
        return sorted(r.run_id for r in current(ledger.view().runs)[0])


def test_a_run_and_its_outcomes_are_sent_and_nothing_waits(shared, tmp_path):
    sha = deposit_outcomes([1, 0, 1], shared)
    done = deposit(make_run("a"), shared)
    assert (done.fault, str(done.ledger)) == (None, shared)
    assert outbox.waiting(shared) == []
    assert Ledger(tmp_path / "shared").outcomes(sha) == (1, 0, 1)
    assert there(shared) == ["a"]
    assert is_recorded("a", shared)
    assert not is_recorded("b", shared)


def test_what_could_not_be_sent_waits_and_the_next_run_sends_it(shared, tmp_path):
    (tmp_path / "shared").write_text("in the way")
    done = deposit(make_run("a"), shared)
    assert "the next command with this ledger sends it" in done.fault
    assert done.ledger == outbox.folder_of(shared)
    assert is_recorded("a", shared)
    (tmp_path / "shared").unlink()
    assert deposit(make_run("b"), shared).fault is None
    assert sorted(r.run_id for r in Ledger(tmp_path / "shared").view().runs) == ["a", "b"]
    assert outbox.waiting(shared) == []


def test_what_waits_is_sent_by_the_next_command_that_opens_the_ledger(shared, tmp_path):
    (tmp_path / "shared").write_text("in the way")
    deposit(make_run("a"), shared)
    (tmp_path / "shared").unlink()
    listed = list_runs(ledger=shared)
    assert ([r.run_id for r in listed.runs], listed.ledger) == (["a"], shared)
    assert outbox.waiting(shared) == []


def test_a_run_whose_id_is_taken_there_supersedes_the_other(shared):
    """A recovery took it for dead, and stored what it knew."""
    deposit(make_run("a", energy="1"), shared)
    deposit(make_run("a", energy="2"), shared)
    with open_ledger(shared) as ledger:
        (run,) = current(ledger.view().runs)[0]
    assert (str(run.energy[0].energy_j), run.supersedes) == ("2", "a")
    assert outbox.waiting(shared) == []


def test_being_cut_off_between_sending_and_removing_doubles_nothing(shared):
    done = deposit(make_run("a"), shared)
    again = outbox.folder_of(shared)
    Ledger(again).append(done.run)
    assert outbox.send(shared) == 1
    assert there(shared) == ["a"]


def test_marks_of_what_was_sent_long_ago_are_forgotten(shared):
    import os

    deposit(make_run("a"), shared)
    mark = outbox.folder_of(shared) / ".sent" / "a"
    os.utime(mark, (0, 0))
    deposit(make_run("b"), shared)
    assert [f.name for f in mark.parent.iterdir()] == ["b"]


def test_two_ledgers_wait_apart(shared, tmp_path):
    other = f"file://{tmp_path / 'other'}"
    for name, address in (("a", shared), ("b", other)):
        (tmp_path / address.rpartition("/")[2]).write_text("in the way")
        deposit(make_run(name), address)
    (tmp_path / "other").unlink()
    assert there(other) == ["b"]
    assert [f.stem for f in outbox.waiting(shared)] == ["a"]
