"""What a reader of the ledger stumbled over once: each kind of fault, kept from coming again."""

from decimal import Decimal

import msgspec
import pytest

from carbonlens.app.ledger_care import compact, export, redact, supersede, tag, verify
from carbonlens.app.runs import list_runs
from carbonlens.domain.identity import uuid7
from carbonlens.domain.limits import misfit
from carbonlens.domain.run import HourEnergy
from carbonlens.domain.units import US_PER_HOUR
from carbonlens.errors import RecordError, SelectionError, UsageError
from carbonlens.ledger import editing, forks, retiring
from carbonlens.ledger.accounts import account
from carbonlens.ledger.store import Ledger
from carbonlens.metering.deposit import deposit
from tests.ledger.test_store import make_run

START_MS = 1_780_000_000_000
START = START_MS * 1000
MONTH = "202605"


def id_at(minute, mark=0):
    return uuid7(START_MS + minute * 60_000, bytes([mark]) * 10)


def run_at(minute, mark=0, **more):
    return make_run(id_at(minute, mark), "100", START + minute * 60_000_000, **more)


def totals(folder, period=None):
    with Ledger(folder).query(period) as view:
        found = account(view)
    return [(t.runs, t.energy.exact) for t in found.totals], [f.code for f in found.findings]


def family(folder, generations):
    """Write A, B inside A, then so many corrections of A, and return the latest of A and all records."""
    ledger = Ledger(folder)
    ledger.append(run_at(0))
    ledger.append(run_at(1, 1, parent_run_id=id_at(0)))
    for k in range(generations):
        tag(id_at(0), {"t": str(k)}, ledger=folder)
    runs = ledger.view().runs
    return editing.select(id_at(0), runs, where="here"), runs


@pytest.mark.parametrize("generations", [0, 1, 3])
@pytest.mark.parametrize("parent", ["child", "itself"])
def test_a_parent_in_a_circle_hides_no_run_however_often_it_was_corrected(tmp_path, generations, parent):
    latest, _ = family(tmp_path, generations)
    named = {"child": id_at(1, 1), "itself": id_at(0)}[parent]
    Ledger(tmp_path).append(editing.corrected(latest, {"parent_run_id": named}))
    assert totals(tmp_path) == ([(2, 200)], ["CL525"])
    assert totals(tmp_path, "2026-05") == ([(2, 200)], ["CL525"])


@pytest.mark.parametrize("generations", [0, 2])
@pytest.mark.parametrize("parent", ["child", "itself", "latest"])
def test_a_correction_that_puts_a_run_into_itself_is_refused(tmp_path, generations, parent):
    latest, _ = family(tmp_path, generations)
    named = {"child": id_at(1, 1), "itself": id_at(0), "latest": latest.run_id}[parent]
    with pytest.raises(UsageError, match="lie in itself"):
        supersede(id_at(0), {"parent_run_id": named}, ledger=tmp_path)
    assert totals(tmp_path)[0] == [(1, 100)]


def test_a_run_may_still_be_put_into_another(tmp_path):
    family(tmp_path, 1)
    Ledger(tmp_path).append(run_at(0, 7))
    supersede(id_at(0), {"parent_run_id": id_at(0, 7)}, ledger=tmp_path)
    assert list_runs(ledger=tmp_path).totals.runs == 1


def test_a_view_outlives_a_compaction_and_redaction_never_ends_in_a_traceback(tmp_path):
    ledger = Ledger(tmp_path)
    for minute in range(3):
        ledger.append(run_at(minute))
        view = ledger.query("2026-05")
        compact(ledger=tmp_path, months=[MONTH])
        with view:
            assert account(view).totals[0].energy.exact == 100 * (minute + 1)
    months = tmp_path / "months" / MONTH
    assert len(list(months.glob("*.retired"))) == 2
    assert totals(tmp_path) == ([(3, 300)], [])
    assert verify(ledger=tmp_path).findings == ()
    assert list_runs(ledger=tmp_path).totals.runs == 3
    with ledger.query() as view:
        redact(id_at(0), ["units"], why="x", ledger=tmp_path)
        with pytest.raises(RecordError, match="went away"):
            account(view)
    assert not list(months.glob("*.retired"))
    assert len(list(months.glob("*.parquet"))) == 1


def test_retired_files_go_when_they_are_old(tmp_path):
    ledger = Ledger(tmp_path)
    for minute in range(2):
        ledger.append(run_at(minute))
        compact(ledger=tmp_path, months=[MONTH])
    (mark,) = (tmp_path / "months" / MONTH).glob("*.retired")
    retiring.remove_retired(tmp_path, older_than_s=retiring.RETIRED_S)
    assert mark.exists()
    told = msgspec.json.decode(mark.read_bytes())
    mark.write_bytes(msgspec.json.encode({**told, "retired_s": told["retired_s"] - 2 * retiring.RETIRED_S}))
    compact(ledger=tmp_path)
    assert not mark.exists()
    assert not mark.with_suffix(".parquet").exists()
    assert totals(tmp_path) == ([(2, 200)], [])


PLANTED = "Planted 9000"


def named_run(minute, name=PLANTED):
    reading = msgspec.structs.replace(
        make_run().energy[0],
        energy_j=Decimal(100),
        method=f"CPU time on the package curve ({name}; table)",
        u_by_source_j={f"cpu_model:{name}": 3.0, f"grade_B:{name}": 4.0},
    )
    return msgspec.structs.replace(
        run_at(minute), hardware=name, energy=(reading,), beside=(reading,), workload="w"
    )


def texts_of(folder):
    import duckdb

    found = [f.read_bytes().decode("utf-8", "replace") for f in folder.rglob("*") if f.is_file()]
    found += [repr(duckdb.read_parquet(str(f)).fetchall()) for f in folder.rglob("*.parquet")]
    return found


@pytest.mark.parametrize("form", ["live", "batch", "month", "corrected"])
def test_redacted_hardware_is_in_no_name_and_still_shares_its_error(tmp_path, form):
    ledger = Ledger(tmp_path)
    runs = [named_run(0), named_run(1), named_run(2, "Other 1")]
    if form == "batch":
        ledger.add_batch(runs, source_sha256="ab" * 32, importer="t-1")
    else:
        for run in runs:
            ledger.append(run)
    if form == "corrected":
        supersede(runs[0].run_id, {"hardware": None}, ledger=tmp_path)
    if form == "month":
        compact(ledger=tmp_path, months=[MONTH])
    with ledger.query() as view:
        before = account(view).totals[0].energy.estimate
    for run in runs[:2]:
        redact(run.run_id, ["hardware"], why="x", ledger=tmp_path)
    assert not [text for text in texts_of(tmp_path) if PLANTED in text]
    assert any("Other 1" in text for text in texts_of(tmp_path))
    with ledger.query() as view:
        after = account(view).totals[0].energy.estimate
    assert after.low == pytest.approx(before.low)
    assert after.high == pytest.approx(before.high)
    assert verify(ledger=tmp_path).sound
    with pytest.raises(SelectionError):
        redact(runs[0].run_id, ["hardware"], why="x", ledger=tmp_path)


def close_at_once(tmp_path, first, second):
    import shutil

    from carbonlens.app.ledger_care import close

    one, two = tmp_path / "one", tmp_path / "two"
    Ledger(one).append(run_at(0))
    shutil.copytree(one, two)
    close(first, ledger=one)
    close(second, ledger=two)
    for file in (two / "closes").iterdir():
        shutil.copy(file, one / "closes")
    return one


def test_two_first_closes_at_once_are_a_fork_that_the_next_close_names(tmp_path):
    from carbonlens.app.ledger_care import close

    ledger = close_at_once(tmp_path, "2026-01", "2026-02")
    found = verify(ledger=ledger)
    assert found.sound
    assert ["closed at once" in f.message for f in found.findings if f.code == "CL511"] == [True]
    manifest = close("2026-03", ledger=ledger)
    assert {manifest.previous, *manifest.others} == {"2026-01", "2026-02"}
    assert verify(ledger=ledger).findings == ()


NEGATIVE = {
    "units": {"units": Decimal(-5)},
    "duration": {"duration_s": -4.0},
    "energy": {"energy_j": Decimal(-100)},
    "sigma": {"u_random_j": -3.0},
    "common sigma": {"u_by_source_j": {"s": -1.0}},
}


def negative(name):
    change = NEGATIVE[name]
    if name in ("units", "duration"):
        return msgspec.structs.replace(run_at(0), **change)
    return msgspec.structs.replace(
        run_at(0), energy=(msgspec.structs.replace(run_at(0).energy[0], **change),)
    )


@pytest.mark.parametrize("name", NEGATIVE)
def test_what_import_refuses_no_other_way_in_takes(tmp_path, name):
    run = negative(name)
    assert "negative" in misfit(run)
    for write in (
        Ledger(tmp_path).append,
        lambda r: Ledger(tmp_path).add_batch([r], source_sha256="ab" * 32, importer="t-1"),
    ):
        with pytest.raises(RecordError, match="negative"):
            write(run)
    Ledger(tmp_path).append(run_at(0))
    plain = msgspec.to_builtins(run)
    changes = {k: plain[k] for k in ("units", "duration_s", "energy")}
    with pytest.raises(UsageError, match="negative"):
        supersede(id_at(0), changes, ledger=tmp_path)
    assert totals(tmp_path)[0] == [(1, 100)]


def stray_run():
    hours = (HourEnergy(hour_utc=400_000, component="cpu", energy_j=Decimal(100)),)
    return msgspec.structs.replace(run_at(0), end_us=START + 10_000_000, energy_by_hour=hours)


def test_hours_outside_a_runs_times_are_refused_and_said(tmp_path):
    ledger = Ledger(tmp_path)
    with pytest.raises(RecordError, match="hours"):
        ledger.append(stray_run())
    with pytest.raises(RecordError, match="hours"):
        ledger.add_batch([stray_run()], source_sha256="ab" * 32, importer="t-1")
    file = ledger.append(run_at(0))
    file.write_bytes(msgspec.json.encode(stray_run()))
    said = [f for f in verify(ledger=tmp_path).findings if f.code == "CL516"]
    assert "outside its times" in said[0].message


def test_a_measured_run_with_stray_hours_is_not_lost(tmp_path):
    done = deposit(stray_run(), tmp_path / "l")
    assert done.ledger == tmp_path / "l"
    assert totals(tmp_path / "l", "2026-05")[0] == [(1, 100)]


def test_a_link_to_nothing_is_not_taken_for_compacted(tmp_path):
    file = Ledger(tmp_path).append(run_at(0))
    (file.parent / f"{id_at(1)}.json").symlink_to(tmp_path / "gone.json")
    assert totals(tmp_path)[1] == ["CL506"]
    assert not verify(ledger=tmp_path).sound


def large(folder, number=1_100):
    ledger = Ledger(folder)
    month = ledger.append(run_at(0)).parent
    for minute in range(1, number):
        run = run_at(minute)
        (month / f"{run.run_id}.json").write_bytes(msgspec.json.encode(run))
    return ledger


@pytest.mark.parametrize("compacted", [False, True])
def test_many_corrections_leave_the_list_as_long_and_in_order(tmp_path, compacted):
    large(tmp_path)
    newest = [id_at(minute) for minute in range(1_100)][-5:]
    for k in range(3):
        for run in newest[-2:]:
            tag(run, {"t": str(k)}, ledger=tmp_path)
    for k in range(12):
        tag(newest[0], {"u": str(k)}, ledger=tmp_path)
    tag(id_at(0), {"old": "x"}, ledger=tmp_path)
    if compacted:
        compact(ledger=tmp_path, months=[MONTH, "202606"])
    found = Ledger(tmp_path).latest(5)
    assert [r.start_us for r in found.runs] == [START + m * 60_000_000 for m in range(1_099, 1_094, -1)]
    assert found.findings == ()


def test_a_foreign_parquet_file_is_said_by_queries_too(tmp_path):
    import duckdb

    Ledger(tmp_path).append(run_at(0))
    folder = tmp_path / "months" / "202604"
    folder.mkdir(parents=True)
    duckdb.sql(f"COPY (SELECT '{{}}' AS record, 1 AS other) TO '{folder}/x.parquet' (FORMAT parquet)")
    assert totals(tmp_path) == ([(1, 100)], ["CL503"])
    assert totals(tmp_path, "2026-05") == ([(1, 100)], ["CL503"])


def test_an_export_of_nothing_is_refused(tmp_path):
    Ledger(tmp_path).append(run_at(0))
    Ledger(tmp_path).append(make_run("other", "1", START - 100 * 24 * US_PER_HOUR, study="other"))
    for wanted in ({"study": "nosuch"}, {"period": "2019"}, {"study": "other", "period": "2026-05"}):
        with pytest.raises(SelectionError):
            export(format_="csv", ledger=tmp_path, **wanted)
    assert export(format_="csv", ledger=tmp_path, period="2026-05").runs == 1


def test_a_fork_says_both_values(tmp_path):
    ledger = Ledger(tmp_path)
    ledger.append(run_at(0))
    for units in ("20", "30"):
        ledger.append(editing.corrected(run_at(0), {"units": units}))
    runs = ledger.view().runs
    latest = editing.select(id_at(0), runs, where="here")
    with pytest.raises(UsageError, match=r"units \((20 or 30|30 or 20)\)"):
        editing.tagged(latest, {"a": "b"}, fork=forks.fork_of(latest, runs))


def test_an_hour_of_a_run_that_ends_on_the_hour_is_its_last(tmp_path):
    start = START - START % US_PER_HOUR
    hours = (HourEnergy(hour_utc=start // US_PER_HOUR, component="cpu", energy_j=Decimal(100)),)
    run = msgspec.structs.replace(
        make_run("whole", "100", start), end_us=start + US_PER_HOUR, energy_by_hour=hours
    )
    Ledger(tmp_path).append(run)
    assert totals(tmp_path)[0] == [(1, 100)]
