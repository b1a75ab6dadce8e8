"""Compaction, redaction and sending lose no record, and leave none where it is said to be gone."""

import os
import time
from decimal import Decimal

import msgspec
import pytest

from carbonlens.app.ledger_care import close, compact, redact, supersede, tag, verify
from carbonlens.app.runs import list_runs
from carbonlens.domain.run import HourEnergy
from carbonlens.domain.units import US_PER_HOUR
from carbonlens.errors import RecordError, SelectionError, UsageError
from carbonlens.ledger import layout, remote, retiring
from carbonlens.ledger.store import Ledger
from carbonlens.metering.deposit import deposit
from tests.ledger.test_faults_seen import MONTH, NEGATIVE, START, id_at, negative, run_at, stray_run, totals
from tests.ledger.test_store import make_run


def as_before(folder, run):
    """Write a record that an older version took."""
    (file,) = [Ledger(folder).append(msgspec.structs.replace(run_at(0), run_id=run.run_id))]
    file.write_bytes(msgspec.json.encode(run))


def month_of(folder):
    return folder / "months" / MONTH


def test_a_mark_whose_heir_is_not_there_takes_no_file_from_view(tmp_path):
    Ledger(tmp_path).append(run_at(0))
    compact(ledger=tmp_path, months=[MONTH])
    (file,) = month_of(tmp_path).glob("*.parquet")
    retiring.retire([file], file.with_name("heir.parquet"))
    assert totals(tmp_path)[0] == [(1, 100)]
    retiring.remove_retired(tmp_path, older_than_s=0)
    assert file.exists()
    assert list_runs(ledger=tmp_path).totals.runs == 1


def test_marks_are_sent_after_what_they_name():
    names = ["months/1/a.retired", "months/1/b.json", "months/1/z.parquet", "runs/1/r.json"]
    ordered = sorted(names, key=remote._order)
    assert ordered[0].endswith(".parquet")
    assert ordered[-1].endswith(layout.RETIRED)


def test_a_compaction_behind_an_address_leaves_one_file(tmp_path):
    pytest.importorskip("fsspec", reason="needs the extra remote")
    address = f"file://{tmp_path}"
    for minute in range(3):
        Ledger(tmp_path).append(run_at(minute))
        compact(ledger=address, months=[MONTH])
    assert len(list(month_of(tmp_path).iterdir())) == 2
    assert totals(tmp_path)[0] == [(3, 300)]


@pytest.mark.parametrize("name", NEGATIVE)
def test_a_negative_record_of_an_older_version_is_never_lost(tmp_path, name):
    as_before(tmp_path, negative(name))
    Ledger(tmp_path).append(run_at(1, tags={"owner": "x"}))
    before = totals(tmp_path)
    assert before[0][0][0] == list_runs(ledger=tmp_path).totals.runs == 2
    compact(ledger=tmp_path, months=[MONTH])
    Ledger(tmp_path).append(run_at(2))
    compact(ledger=tmp_path, months=[MONTH])
    retiring.remove_retired(tmp_path, older_than_s=0)
    assert totals(tmp_path)[0][0][0] == list_runs(ledger=tmp_path).totals.runs == 3
    assert "CL529" in {f.code for f in list_runs(ledger=tmp_path).findings}
    close("2026-05", ledger=tmp_path)
    assert verify(ledger=tmp_path).sound
    redact(id_at(1), ["tags.owner"], why="x", ledger=tmp_path)
    tag(id_at(0), {"t": "1"}, ledger=tmp_path)
    with pytest.raises(UsageError, match="negative"):
        supersede(id_at(1), {"units": "-1"}, ledger=tmp_path)
    assert verify(ledger=tmp_path).sound


@pytest.mark.parametrize("name", NEGATIVE)
@pytest.mark.parametrize("form", ["json", "month"])
def test_a_negative_figure_is_said_in_every_form_until_it_is_corrected(tmp_path, name, form):
    def said():
        with Ledger(tmp_path).query() as view, Ledger(tmp_path).query("2026-05") as month:
            every = (view.findings, month.findings, list_runs(ledger=tmp_path).findings)
        newest = Ledger(tmp_path).latest(5).findings
        return [[(f.code, f.subject) for f in findings] for findings in (*every, newest)]

    as_before(tmp_path, negative(name))
    Ledger(tmp_path).append(run_at(1))
    if form == "month":
        compact(ledger=tmp_path, months=[MONTH])
    assert said() == [[("CL529", id_at(0))]] * 4
    right = msgspec.to_builtins(run_at(0))
    supersede(
        id_at(0), {k: right[k] for k in ("units", "duration_s", "energy", "energy_by_hour")}, ledger=tmp_path
    )
    assert said() == [[]] * 4
    compact(ledger=tmp_path, months=[MONTH])
    assert said() == [[]] * 4


def test_redaction_removes_retired_files_whatever_their_clock(tmp_path):
    for minute in range(2):
        Ledger(tmp_path).append(run_at(minute, tags={"owner": "SECRET"}))
        compact(ledger=tmp_path, months=[MONTH])
    (mark,) = month_of(tmp_path).glob("*.retired")
    told = msgspec.json.decode(mark.read_bytes())
    mark.write_bytes(msgspec.json.encode({**told, "retired_s": time.time() + 30}))
    os.utime(mark, (time.time() + 30,) * 2)
    assert redact(id_at(0), ["tags.owner"], why="x", ledger=tmp_path).remaining == ()
    assert len(list(month_of(tmp_path).iterdir())) == 2


def graded(place, **more):
    reading = msgspec.structs.replace(
        make_run().energy[0], energy_j=Decimal(100), u_by_source_j={f"grade_D:{place}": 9.0}
    )
    return msgspec.structs.replace(run_at(0), energy=(reading,), **more)


def test_a_source_named_by_a_host_keeps_its_name(tmp_path):
    Ledger(tmp_path).append(graded("host-1", hardware="H100"))
    redact(id_at(0), ["hardware"], why="x", ledger=tmp_path)
    (run,) = Ledger(tmp_path).view().runs
    assert (list(run.energy[0].u_by_source_j), run.hardware) == (["grade_D:host-1"], None)


def test_no_hardware_is_nothing_to_take_out(tmp_path):
    Ledger(tmp_path).append(graded("host-1"))
    with pytest.raises(SelectionError):
        redact(id_at(0), ["hardware"], why="x", ledger=tmp_path)


def test_a_record_with_stray_hours_can_be_tagged_and_corrected(tmp_path):
    as_before(tmp_path, stray_run())
    tag(id_at(0), {"t": "1"}, ledger=tmp_path)
    supersede(id_at(0), {"energy_by_hour": []}, ledger=tmp_path)
    assert totals(tmp_path, "2026-05")[0] == [(1, 100)]


def test_a_month_that_is_not_there_is_refused(tmp_path):
    Ledger(tmp_path).append(run_at(0))
    with pytest.raises(SelectionError):
        compact(ledger=tmp_path, months=["202001"])


def test_only_hours_that_do_not_fit_are_left_out_and_it_is_said(tmp_path):
    hour = START // US_PER_HOUR
    hours = (
        HourEnergy(hour_utc=hour, component="cpu", energy_j=Decimal(100)),
        HourEnergy(hour_utc=hour + 9, component="gpu", energy_j=Decimal(5)),
    )
    gpu = msgspec.structs.replace(run_at(0).energy[0], component="gpu", energy_j=Decimal(5))
    run = msgspec.structs.replace(run_at(0), energy_by_hour=hours, energy=(*run_at(0).energy, gpu))
    done = deposit(run, tmp_path)
    assert done.run.energy_by_hour == hours[:1]
    assert [f.code for f in done.run.findings] == ["CL530"]
    assert [r.energy_by_hour for r in Ledger(tmp_path).view().runs] == [hours[:1]]


def test_records_of_a_view_whose_file_went_away_end_in_our_own_error(tmp_path):
    Ledger(tmp_path).append(run_at(0))
    compact(ledger=tmp_path, months=[MONTH])
    with Ledger(tmp_path).query("2026-05") as view:
        redact(id_at(0), ["units"], why="x", ledger=tmp_path)
        with pytest.raises(RecordError, match="went away"):
            view.records([id_at(0)])
