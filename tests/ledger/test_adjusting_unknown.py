"""Adjustments of closed periods never count unknown energy as none: a difference of parts is none."""

from decimal import Decimal

import msgspec
import pytest

from carbonlens.app import ledger_care
from carbonlens.app.restatement import prior_periods
from carbonlens.cli.ledger_view import print_close
from carbonlens.cli.restate_view import print_adjustments
from carbonlens.domain.meter_reading import MeterReading
from carbonlens.domain.units import US_PER_HOUR
from carbonlens.ledger import closes
from carbonlens.ledger.activity import READINGS
from carbonlens.ledger.store import Ledger
from tests.app import statement_case as case
from tests.ledger.test_closing import SEP_US, close
from tests.ledger.test_store import make_run

KWH = "3600000"


def redact(folder, name):
    ledger_care.redact(name, ["energy"], why="w", ledger=folder)


def forget(folder, name):
    ledger_care.supersede(name, {"energy_j": None}, ledger=folder)


def correct(folder, name, joules=KWH):
    ledger_care.supersede(name, {"energy_j": joules}, ledger=folder)


def late(folder, name, joules=KWH):
    Ledger(folder).append(make_run(name, KWH, SEP_US + 9))
    if joules is None:
        forget(folder, name)


def joules(kwh):
    return None if kwh is None else kwh * Decimal(KWH)


@pytest.mark.parametrize(
    ("before", "after", "closed", "now", "difference"),
    [
        # Known at the close, unknown since.
        ([], [(redact, "r001")], (3, "known"), (2, "unbounded"), None),
        ([], [(forget, "r001")], (3, "known"), (2, "unbounded"), None),
        ([], [(late, "late", None)], (3, "known"), (3, "unbounded"), None),
        ([], [(redact, r) for r in ("r001", "r002", "r003")], (3, "known"), (None, "unknown"), None),
        # Unknown at the close, known since.
        ([(forget, "r001")], [(correct, "r001")], (2, "unbounded"), (3, "known"), None),
        ([(redact, "r001")], [(correct, "r001", "0")], (2, "unbounded"), (2, "known"), None),
        # Another one unknown now than at the close.
        ([(forget, "r001")], [(correct, "r001"), (forget, "r002")], (2, "unbounded"), (2, "unbounded"), None),
        # What was unknown at the close is so now: it cancels.
        ([(forget, "r001")], [(late, "late")], (2, "unbounded"), (3, "unbounded"), 1),
        ([(forget, "r001")], [(correct, "r002", "0")], (2, "unbounded"), (1, "unbounded"), -1),
        ([], [(late, "late")], (3, "known"), (4, "known"), 1),
    ],
)
def test_a_difference_is_exact_or_unknown(tmp_path, capsys, *, before, after, closed, now, difference):
    for i in range(3):
        Ledger(tmp_path).append(make_run(f"r00{i + 1}", KWH, SEP_US + i))
    for change, *what in before:
        change(tmp_path, *what)
    manifest = close(tmp_path, "2026-09")
    assert [e.is_whole for e in manifest.energy] == [not before]
    print_close(manifest, json=False)
    assert ("at least 2 kWh" in capsys.readouterr().out.replace("\u202f", " ").replace("\xa0", " ")) == bool(
        before
    )
    for change, *what in after:
        change(tmp_path, *what)
    (line,) = prior_periods(ledger=tmp_path)
    assert (line.closed_j, line.closed_state) == (joules(closed[0]), closed[1])
    assert (line.now_j, line.now.state) == (joules(now[0]), now[1])
    assert line.adjustment_j == joules(difference)
    print_adjustments([line], json=False)
    row = capsys.readouterr().out.splitlines()[1]
    assert row.endswith("unknown") == (difference is None)
    assert row.count("at least") == [closed[1], now[1]].count("unbounded")
    print_adjustments([line], json=True)
    assert f'"closed_state": "{closed[1]}"' in capsys.readouterr().out


def test_a_manifest_that_does_not_say_what_is_whole_is_whole_where_nothing_was_unknown(tmp_path):
    Ledger(tmp_path).append(make_run("r001", KWH, SEP_US))
    manifest = close(tmp_path, "2026-09")
    for unknown, partial in ((0, set()), (1, {"it"})):
        energy = [closes.ClosedEnergy(boundary="it", energy_j=Decimal(KWH))]
        plain = {"unknown_energy": unknown, "energy": tuple(energy)}
        assert msgspec.structs.replace(manifest, **plain).partial == partial


def reading(name, kwh, of=None, hours=case.HOURS):
    return MeterReading(
        reading_id=name,
        meter_id="main",
        start_us=case.FIRST_HOUR * US_PER_HOUR,
        end_us=(case.FIRST_HOUR + hours) * US_PER_HOUR,
        energy_j=None if kwh is None else kwh * Decimal(KWH),
        boundary="facility",
        supersedes=of,
    )


@pytest.mark.parametrize(
    ("first", "second", "closed", "now", "difference"),
    [
        (reading("a", 31), reading("b", None, "a"), (31, "known"), (None, "unknown"), None),
        (reading("a", 31), reading("b", 30, "a"), (31, "known"), (30, "known"), -1),
        (reading("a", 31), reading("b", 30, "a", 9), (31, "known"), (30, "unbounded"), None),
        (reading("a", 3, hours=9), reading("b", 31, "a"), (3, "unbounded"), (31, "known"), None),
        # The hours that no reading covers are unknown then and now.
        (reading("a", 3, hours=9), reading("b", 4, "a", 9), (3, "unbounded"), (4, "unbounded"), 1),
        # One that names itself, or a circle of two, counts all the same.
        (reading("a", 31), reading("b", 30, "b", 9), (31, "known"), (31, "known"), 0),
        (reading("a", 31, "b"), reading("b", 30, "a"), (31, "known"), (30, "known"), -1),
    ],
)
def test_metered_energy_goes_by_the_same_rule(
    tmp_path, monkeypatch, *, first, second, closed, now, difference
):
    monkeypatch.delenv("CARBONLENS_FACTORS", raising=False)
    case.write(tmp_path)
    store, inventory = tmp_path / "ledger", tmp_path / "inventory"
    (inventory / "meters.toml").write_text(case.METER)
    Ledger(store).add_rows(READINGS, [first], source_sha256="cd" * 32, importer="test-1")
    ledger_care.close(case.PERIOD, ledger=store, by="tester", inventory=inventory)
    Ledger(store).add_rows(READINGS, [second], source_sha256="ce" * 32, importer="test-1")
    lines = prior_periods(ledger=store, inventory=inventory, now_us=case.NOW_US)
    if difference == 0:
        assert lines == ()
        return
    (line,) = lines
    assert line.records == ("b",)
    assert (line.closed_j, line.closed_state) == (joules(closed[0]), closed[1])
    assert (line.now_j, line.now.state) == (joules(now[0]), now[1])
    assert line.adjustment_j == joules(difference)
