"""Traces of runs: written at the end or by a recovery, and never the work's trouble."""

import os
import time

import msgspec
import pytest

from carbonlens.metering import trace_sealing
from carbonlens.metering.journal import samples_of
from carbonlens.metering.process_time import TreeClock
from carbonlens.metering.records import new_run
from carbonlens.metering.recovery import recover
from carbonlens.metering.sensors.cpu_model import CpuModelSensor
from carbonlens.metering.sensors.discovery import Watch
from carbonlens.metering.session import Session
from carbonlens.metering.trace_file import read_run_trace, sha256_of
from carbonlens.metering.trace_target import TraceTarget, target_of
from tests.metering.journals import header, look, orphan, write
from tests.metering.processes import runs
from tests.metering.sensors import CounterSensor
from tests.metering.traces import RUN_ID, board, put_trace


def session(tmp_path, trace, *sensors):
    watch = Watch((CpuModelSensor(TreeClock()), *sensors))
    return Session(
        new_run("test"),
        watch,
        tmp_path / "ledger",
        journal_folder=tmp_path / "journal",
        trace=target_of(trace),
    )


def finished(tmp_path, trace, *sensors, looks=3):
    one = session(tmp_path, trace, *sensors)
    one.start()
    for _ in range(looks):
        time.sleep(0.002)
        one.sample()
    return one.finish().run


def not_written(run):
    return [f.message for f in run.findings if f.code == "CL161"]


@pytest.mark.parametrize("name", ["t.csv", "t.csv.gz"])
def test_every_look_of_every_sensor_is_in_the_trace_that_the_record_names(tmp_path, name):
    file = tmp_path / name
    sensor = CounterSensor(faults={1})
    run = finished(tmp_path, file, sensor)
    assert (run.trace.file, run.trace.sha256) == (str(file), sha256_of(file))
    assert runs(tmp_path / "ledger") == (run,)
    read = read_run_trace(file)
    assert (read.head.run_id, read.head.start_us) == (run.run_id, run.start_us)
    assert (read.head.host_id, read.head.machine_id) == (run.host_id, run.machine_id)
    assert [c.column for c in read.columns] == ["cpu_model/cpu-time", "counter/package-0"]
    # The readings are the counter's own; the failed one is missing and no zero.
    assert [value for _, value in read.readings(1)] == [10.0 * i for i in range(sensor.reads) if i != 1]
    assert abs(read.rows[0][0] - run.start_us) < 50_000
    assert abs(read.rows[-1][0] - run.end_us) < 50_000
    assert list((tmp_path / "journal").iterdir()) == []


def test_a_run_without_a_trace_says_nothing_of_one(tmp_path):
    one = Session(new_run("test"), Watch((CounterSensor(),)), tmp_path / "l", journal_folder=tmp_path / "j")
    one.start()
    run = one.finish().run
    assert run.trace is None
    assert not_written(run) == []


def test_a_trace_gives_way_to_the_next_one_and_other_files_stay(tmp_path):
    file = tmp_path / "t.csv"
    first, second = finished(tmp_path, file), finished(tmp_path, file)
    assert read_run_trace(file).head.run_id == second.run_id
    assert first.trace.sha256 != second.trace.sha256 == sha256_of(file)
    for name in ("model.py", "model.gz"):
        mine = tmp_path / name
        mine.write_text("mine")
        run = finished(tmp_path, mine)
        assert (run.status, run.trace) == ("complete", None)
        assert not_written(run) == ["no trace was written: there is another file of that name, which stays"]
        assert mine.read_text() == "mine"


def test_a_trace_that_cannot_be_written_is_a_finding_and_the_run_is_kept(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    for place in (tmp_path / "none" / "t.csv", tmp_path, tmp_path / "pipe", "/dev/null"):
        run = finished(tmp_path, place)
        assert run.status == "complete"
        assert run.trace is None
        assert len(not_written(run)) == 1
        assert run.energy[0].state == "known"


def test_without_a_journal_there_is_no_trace(tmp_path):
    (tmp_path / "journal").write_text("no folder")
    run = finished(tmp_path, tmp_path / "t.csv")
    assert "could not be kept to the end" in not_written(run)[0]
    assert not (tmp_path / "t.csv").exists()


def no_curve(run):
    return [f.message for f in run.findings if f.code == "CL100"]


FAULTS = [ValueError, KeyError, IndexError, ZeroDivisionError, AttributeError, OSError, OverflowError]


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_in_the_curve_costs_neither_the_run_nor_its_file(tmp_path, monkeypatch, fault):
    def at_fault(*_):
        raise fault

    monkeypatch.setattr(trace_sealing, "power_trace", at_fault)
    file = tmp_path / "t.csv"
    run = finished(tmp_path, file)
    assert (run.power, run.trace.sha256, not_written(run)) == (None, sha256_of(file), [])
    assert runs(tmp_path / "ledger") == (run,)
    assert no_curve(run) == [f"no power over time is kept: it could not be made ({fault.__name__})"]


def test_a_fault_of_the_file_does_not_cost_the_curve(tmp_path):
    one = session(tmp_path, tmp_path / "none" / "t.csv", CounterSensor())
    one.start()
    time.sleep(0.3)
    run = one.finish().run
    assert run.power is not None
    assert (len(not_written(run)), no_curve(run)) == (1, [])


@pytest.mark.parametrize("trace", [True, "t.csv"])
def test_a_record_says_why_it_holds_no_power_over_time(tmp_path, trace, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run = finished(tmp_path, trace)
    assert run.power is None
    assert no_curve(run) == ["no power over time is kept: the run was shorter than two looks (0.2 s)"]
    (tmp_path / "l").mkdir()
    (tmp_path / "l" / "journal").write_text("no folder")
    lost = finished(tmp_path / "l", trace)
    assert (len(no_curve(lost)), len(not_written(lost))) == (1, trace is not True)
    assert "could not be kept to the end" in no_curve(lost)[0]


@pytest.mark.parametrize(
    ("file", "error"),
    [("", ValueError), ("a\0b", ValueError), ("a\udcff", ValueError), (b"t", TypeError), (3, TypeError)],
)
def test_what_is_no_name_of_a_file_is_refused(file, error):
    with pytest.raises(error):
        target_of(file)


def test_a_target_stands_when_the_work_changes_its_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "other").mkdir()
    one = session(tmp_path, "t.csv")
    one.start()
    os.chdir("other")
    run = one.finish().run
    assert run.trace.file == "t.csv"
    assert run.trace.sha256 == sha256_of(tmp_path / "t.csv")


def killed(tmp_path, file, run_id=None):
    head = header(tmp_path / "ledger", start_ticks=1)
    run = head.run if run_id is None else msgspec.structs.replace(head.run, run_id=run_id)
    head = msgspec.structs.replace(head, run=run, trace=TraceTarget(given="t.csv", path=str(file)))
    write(tmp_path / "journal", head, look(0, 1.0), look(1, 1.5), look(2, 3.0))
    return run


def test_a_recovered_run_has_its_trace(tmp_path):
    file = tmp_path / "t.csv"
    begun = killed(tmp_path, file)
    (stored,) = recover(tmp_path / "journal").recovered
    assert (stored.run.status, stored.run.trace.file) == ("recovered", "t.csv")
    assert stored.run.trace.sha256 == sha256_of(file)
    read = read_run_trace(file)
    assert read.readings(0) == [(begun.start_us + i * 1_000_000, v) for i, v in enumerate((1.0, 1.5, 3.0))]


def test_a_recovery_that_comes_late_leaves_the_trace_of_another_run(tmp_path):
    file = tmp_path / "t.csv"
    put_trace(file, board(), seconds=1)
    killed(tmp_path, file)
    (stored,) = recover(tmp_path / "journal").recovered
    assert not_written(stored.run) == [
        "no trace was written: that name holds another run's trace, which stays"
    ]
    assert read_run_trace(file).head.run_id == RUN_ID


def test_a_recovery_writes_its_own_trace_again(tmp_path):
    file = tmp_path / "t.csv"
    put_trace(file, board(), seconds=1)
    killed(tmp_path, file, RUN_ID)
    (stored,) = recover(tmp_path / "journal").recovered
    assert stored.run.trace.sha256 == sha256_of(file)
    assert len(read_run_trace(file).rows) == 3


def test_damaged_lines_of_a_journal_are_left_out(tmp_path):
    _, path = orphan(tmp_path / "journal", tmp_path / "ledger")
    lines = path.read_bytes().split(b"\n")
    lines[-2] = lines[-2].replace(b"3.0", b"9.0")
    path.write_bytes(b"\n".join(lines))
    assert [s.values for s in samples_of(path)] == [((1.0,),), ((1.5,),)]
