"""Closed periods are chained manifests; what comes later is an adjustment; open ones are drafts."""

import json
from decimal import Decimal

import msgspec
import pytest

from carbonlens.app.ledger_care import span_of
from carbonlens.domain.charge import Charge
from carbonlens.domain.identity import sha256_hex
from carbonlens.errors import RecordError, UsageError
from carbonlens.ledger import activity, closing
from carbonlens.ledger.accounts import account
from carbonlens.ledger.calendar import Calendar
from carbonlens.ledger.store import Ledger
from carbonlens.ledger.verify import verify
from tests.ledger.test_compaction import NOW_US, fill, runs_over
from tests.ledger.test_store import make_run

SEP_US = 1_790_000_000_000_000
HOUR_US = 3_600_000_000


@pytest.fixture
def folder(tmp_path):
    fill(tmp_path, runs_over(60, 12))
    return tmp_path


def close(folder, period, calendar=None):
    held = Ledger(folder).holdings()
    return closing.close(folder, held, span_of(period, calendar), now_us=NOW_US, by="tester")


def status(folder, period):
    return closing.period_status(folder, Ledger(folder).holdings(), span_of(period))


def energy_of(manifest):
    (energy,) = manifest.energy
    return energy.energy_j


def faults(folder):
    return [(f.code, f.severity) for f in verify(folder, now_us=NOW_US).findings]


def test_an_open_period_is_a_draft_and_a_closed_one_is_not(folder):
    assert (status(folder, "2026-09").state, status(folder, "2026-09").label) == ("open", "DRAFT")
    close(folder, "2026-09")
    done = status(folder, "2026-09")
    assert (done.state, done.label, done.closes) == ("closed", "", ("2026-09",))
    assert status(folder, "2026-10").label == "DRAFT"


def test_the_manifest_holds_the_hashes_and_what_counted(folder):
    manifest = close(folder, "2026-09")
    inside = [r for r in Ledger(folder).holdings().records if r.run.start_us < span_of("2026-09").end_us]
    assert manifest.runs == tuple(sorted(r.sha256 for r in inside))
    assert manifest.counting == len(inside) == 2
    assert energy_of(manifest) == sum(r.run.energy[0].energy_j for r in inside)
    assert (manifest.factor_set_sha256, bool(manifest.factor_set_note)) == (None, True)


def test_manifests_form_a_chain_by_hash(folder):
    for period in ("2026-09", "2026-10", "2026Q3"):
        last = close(folder, period)
    files = {p: (folder / "closes" / f"{p}.json").read_bytes() for p in ("2026-09", "2026-10", "2026Q3")}
    assert (last.previous, last.previous_sha256) == ("2026-10", sha256_hex(files["2026-10"]))
    assert json.loads(files["2026-10"])["previous_sha256"] == sha256_hex(files["2026-09"])
    assert json.loads(files["2026-09"])["previous"] is None
    assert faults(folder) == []


@pytest.mark.parametrize("change", ["alter", "remove", "damage", "rename"])
def test_a_broken_chain_is_found(folder, change):
    close(folder, "2026-09")
    close(folder, "2026-10")
    file = folder / "closes" / "2026-09.json"
    if change == "alter":
        file.write_text(file.read_text().replace("tester", "nobody"))
    elif change == "remove":
        file.unlink()
    elif change == "damage":
        file.write_text("{")
    else:
        file.rename(file.with_name("2026-08.json"))
    assert ("CL511", "error") in faults(folder)


def test_a_later_record_is_an_adjustment_and_the_next_close_takes_it_up(folder):
    close(folder, "2026-09")
    Ledger(folder).append(make_run("late", "5", SEP_US + 10))
    assert [a.name for a in status(folder, "2026-09").adjustments] == ["late"]
    assert faults(folder) == [("CL517", "info")]
    manifest = close(folder, "2026-10")
    assert [(a.period, a.name) for a in manifest.adjustments] == [("2026-09", "late")]
    assert [a.taken_up for a in status(folder, "2026-09").adjustments] == ["2026-10"]
    assert faults(folder) == [("CL517", "info")]


def test_bills_belong_to_a_period_too(folder):
    bill = Charge(charge_id="c1", start_us=SEP_US, end_us=SEP_US + HOUR_US)
    Ledger(folder).add_rows(activity.CHARGES, [bill], source_sha256="cd" * 32, importer="t-1")
    assert len(close(folder, "2026-09").charges) == 1
    late = msgspec.structs.replace(bill, charge_id="c2")
    Ledger(folder).add_rows(activity.CHARGES, [late], source_sha256="ef" * 32, importer="t-1")
    assert [a.name for a in status(folder, "2026-09").adjustments] == ["c2"]


def test_a_quarter_is_closed_by_its_months(folder):
    for month in ("2026-07", "2026-08", "2026-09"):
        assert status(folder, "2026Q3").state == "open"
        close(folder, month)
    assert status(folder, "2026Q3").state == "closed"
    with pytest.raises(UsageError, match="closed already"):
        close(folder, "2026Q3")


def test_a_period_that_is_not_over_or_closed_already_is_refused(folder):
    with pytest.raises(UsageError, match="not over"):
        close(folder, "2026-11")
    close(folder, "2026-09")
    with pytest.raises(UsageError, match="closed already"):
        close(folder, "2026-09")
    with pytest.raises(UsageError, match="no period"):
        close(folder, "September")


def test_a_fiscal_year_and_a_time_zone_move_the_edges(folder):
    india = Calendar(reporting_timezone="Asia/Kolkata", fiscal_year_start=4)
    manifest = close(folder, "2026Q3", india)
    assert manifest.start_us == span_of("2025-10", india).start_us
    assert manifest.end_us == span_of("2025-12", india).end_us


def test_a_run_over_the_edge_belongs_to_both_periods(tmp_path):
    edge = span_of("2026-09").end_us
    run = make_run("over", "1", edge - HOUR_US, end_us=edge + HOUR_US)
    fill(tmp_path, [run, make_run("at", "1", edge), make_run("till", "1", edge - HOUR_US, end_us=edge)])
    assert [len(close(tmp_path, p).runs) for p in ("2026-09", "2026-10")] == [2, 2]


def test_compaction_keeps_a_closed_period_whole(folder):
    from carbonlens.app.ledger_care import compact, redact

    close(folder, "2026-09")
    compact(ledger=folder)
    assert faults(folder) == []
    redact("run-0000", ["units"], why="w", ledger=folder)
    assert faults(folder) == [("CL517", "info")]


def test_the_figures_are_those_of_the_period_query(tmp_path):
    edge = span_of("2026-09").end_us
    over = make_run("over", "8", edge - HOUR_US, end_us=edge + 3 * HOUR_US)
    shared = [
        msgspec.structs.replace(
            make_run(name, "6", edge - 9 * HOUR_US, end_us=edge - 8 * HOUR_US, host_id="h"),
            energy=(msgspec.structs.replace(over.energy[0], energy_j=Decimal(6), devices=("cpu0",)),),
        )
        for name in "ab"
    ]
    unknown = make_run("unknown", None, edge - 2 * HOUR_US)
    ledger = fill(tmp_path, [over, *shared, unknown])
    closes = {period: close(tmp_path, period) for period in ("2026-09", "2026-10")}
    for period, manifest in closes.items():
        with ledger.query(period) as view:
            totals = account(view).totals
        assert energy_of(manifest) == sum(t.energy.exact for t in totals)
        assert manifest.counting == sum(t.runs for t in totals)
    september, october = closes.values()
    assert (energy_of(september), energy_of(october)) == (2 + 6, 6)
    assert (september.counting, september.unknown_energy, october.counting) == (4, 1, 0)
    assert len(october.runs) == 1


@pytest.mark.parametrize("torn", ["2026-09", "2026-10"])
@pytest.mark.parametrize("content", [b"", b"{", b"\xff", b"[" * 100_000])
def test_no_period_is_closed_beside_a_torn_manifest(folder, torn, content):
    """It would begin a second chain, or hide that the period was closed already."""
    close(folder, "2026-09")
    close(folder, "2026-10")
    file = folder / "closes" / f"{torn}.json"
    whole = file.read_bytes()
    file.write_bytes(content)
    for period in ("2026-08", torn):
        with pytest.raises(RecordError, match="restore the file from a copy") as caught:
            close(folder, period)
        assert caught.value.where == str(file)
    file.write_bytes(whole)
    close(folder, "2026-08")
    assert faults(folder) == []


def test_two_hosts_that_close_at_once_leave_two_ends_that_the_next_close_joins(folder):
    close(folder, "2026-09")
    close(folder, "2026-10")
    october = folder / "closes" / "2026-10.json"
    content = october.read_bytes()
    october.unlink()
    close(folder, "2026Q3")
    october.write_bytes(content)
    assert faults(folder) == [("CL511", "warning")]
    joined = close(folder, "2026-06")
    assert {joined.previous, *joined.others} == {"2026-10", "2026Q3"}
    assert faults(folder) == []
    for name in ("2026-10", "2026Q3"):
        file = folder / "closes" / f"{name}.json"
        whole = file.read_bytes()
        file.write_bytes(whole.replace(b"tester", b"nobody"))
        assert ("CL511", "error") in faults(folder)
        file.write_bytes(whole)


def test_a_run_sealed_while_a_period_is_closed_is_in_the_manifest_and_in_the_figures(folder):
    before = Ledger(folder).holdings()
    late = make_run("late", "1000", SEP_US)
    Ledger(folder).append(late)
    manifest = closing.close(folder, before, span_of("2026-09"), now_us=NOW_US, by="tester")
    (record,) = [r for r in Ledger(folder).holdings().records if r.run.run_id == "late"]
    assert record.sha256 in manifest.runs
    assert energy_of(manifest) == sum(
        r.run.energy[0].energy_j for r in Ledger(folder).holdings().records if r.sha256 in manifest.runs
    )
    assert manifest.counting == len(manifest.runs) == 3
