"""Months folded into Parquet: the same records, the same figures, each once, in few bytes."""

import json
import os
from decimal import Decimal

import msgspec
import pytest

from carbonlens.domain.identity import sha256_hex, uuid7
from carbonlens.domain.run import Conditions, HourEnergy, Origin, Reading, Run
from carbonlens.errors import RecordError
from carbonlens.ledger import atomic, compaction, layout, parquet, verify_files
from carbonlens.ledger.store import Ledger
from carbonlens.ledger.verify import verify
from tests.ledger.test_store import make_run

DAY_US = 86_400_000_000
NOW_US = 1_795_000_000_000_000
START_US = 1_790_000_000_000_000  # 2026-09-21


def runs_over(days, number):
    step = days * DAY_US // number
    return [make_run(f"run-{i:04}", f"{i}.25", START_US + i * step) for i in range(number)]


def fill(folder, runs):
    ledger = Ledger(folder)
    for run in runs:
        ledger.append(run)
    return ledger


def test_past_months_are_folded_and_hold_the_same_records(tmp_path):
    ledger = fill(tmp_path, runs_over(60, 30))
    before = {r.sha256: r.run for r in ledger.holdings().records}
    done = compaction.compact(tmp_path, before="202611")
    assert [m.month for m in done.months] == ["202609", "202610"]
    assert done.left_open == ("202611",)
    assert {r.sha256: r.run for r in ledger.holdings().records} == before
    left = [f.parent.name for f in (tmp_path / "runs").glob("*/*.json")]
    assert set(left) == {"202611"}
    assert verify(tmp_path, now_us=NOW_US).sound


def test_compacting_again_changes_nothing(tmp_path):
    fill(tmp_path, runs_over(20, 10))
    compaction.compact(tmp_path, before="202612")
    before = {f: (f.read_bytes(), f.stat().st_mtime_ns) for f in tmp_path.rglob("*") if f.is_file()}
    assert compaction.compact(tmp_path, before="202612").months == ()
    assert {f: (f.read_bytes(), f.stat().st_mtime_ns) for f in tmp_path.rglob("*") if f.is_file()} == before


def test_later_runs_of_a_folded_month_join_it(tmp_path):
    runs = runs_over(5, 10)
    ledger = fill(tmp_path, runs[:6])
    compaction.compact(tmp_path, before="202612")
    fill(tmp_path, runs[6:])
    compaction.compact(tmp_path, before="202612")
    (file,) = layout.months_in(tmp_path / "months" / "202609")
    assert len(compaction.read_manifest(file).records) == 10
    assert sorted(ledger.view().runs, key=lambda r: r.run_id) == runs


def test_the_manifest_lists_inputs_and_records_by_hash(tmp_path):
    ledger = fill(tmp_path, runs_over(5, 3))
    inputs = {
        f.relative_to(tmp_path).as_posix(): sha256_hex(f.read_bytes()) for f in tmp_path.glob("runs/*/*.json")
    }
    records = {r.run.run_id: r.sha256 for r in ledger.holdings().records}
    compaction.compact(tmp_path, before="202612")
    (file,) = tmp_path.glob("months/*/*.json")
    manifest = json.loads(file.read_text())
    assert manifest["inputs"] == inputs
    assert manifest["records"] == records
    assert manifest["file_sha256"] == sha256_hex(file.with_suffix(".parquet").read_bytes())


def test_a_folded_run_is_still_known_by_its_id(tmp_path):
    ledger = fill(tmp_path, runs_over(5, 3))
    assert ledger.holds("run-0001")
    compaction.compact(tmp_path, before="202612")
    assert ledger.holds("run-0001")
    assert not ledger.holds("run-000")


def test_damaged_files_stay_where_they_are(tmp_path):
    ledger = fill(tmp_path, runs_over(5, 3))
    torn = tmp_path / "runs" / "202609" / "torn.json"
    torn.write_bytes(b'{"run_id": "torn"')
    newer = ledger.append(make_run("newer", "1", START_US, schema_version=99))
    done = compaction.compact(tmp_path, before="202612")
    assert sorted(f.code for f in done.findings) == ["CL501", "CL502"]
    assert sorted(f.name for f in torn.parent.iterdir()) == ["newer.json", "torn.json"]
    assert newer.exists()
    assert len(ledger.view().runs) == 3


def test_two_hosts_that_compact_at_once_double_nothing(tmp_path):
    """The second began before the first removed anything, and knew one run more."""
    ledger = fill(tmp_path, runs_over(5, 4))
    files = {f: f.read_bytes() for f in tmp_path.glob("runs/*/*.json")}
    compaction.compact(tmp_path, before="202612")
    (first,) = tmp_path.glob("months/*/*.parquet")
    kept = first.read_bytes(), compaction.manifest_file(first).read_bytes()
    for file, content in files.items():
        file.write_bytes(content)
    first.unlink()
    compaction.manifest_file(first).unlink()
    ledger.append(make_run("run-0009", "9", START_US))
    compaction.compact(tmp_path, before="202612")
    first.write_bytes(kept[0])
    compaction.manifest_file(first).write_bytes(kept[1])
    view = ledger.view()
    assert (len(view.runs), view.findings) == (5, ())
    done = compaction.compact(tmp_path, before="202612")
    assert [m.runs for m in done.months] == [5]
    assert len(layout.months_in(tmp_path / "months" / "202609")) == 1
    assert len(ledger.view().runs) == 5


def test_other_content_of_one_id_is_never_removed(tmp_path):
    ledger = fill(tmp_path, runs_over(5, 2))
    compaction.compact(tmp_path, before="202612")
    with pytest.raises(RecordError):
        ledger.append(make_run("run-0000", "77", START_US))
    # Of an older version, which did not look into months.
    written = Ledger(tmp_path / "elsewhere").append(make_run("run-0000", "77", START_US))
    other = written.rename(tmp_path / "runs" / "202609" / written.name)
    done = compaction.compact(tmp_path, before="202612")
    assert [f.code for f in done.findings] == ["CL505"]
    assert other.exists()
    assert [str(r.energy[0].energy_j) for r in ledger.view().runs] == ["0.25", "1.25"]


@pytest.mark.parametrize("month", ["202609", "undated"])
def test_one_month_can_be_asked_for(tmp_path, month):
    fill(tmp_path, [*runs_over(60, 6), make_run("u", start_us=None)])
    done = compaction.compact(tmp_path, before="202601", months=[month])
    assert [m.month for m in done.months] == [month]


def test_samples_of_past_days_are_put_into_one_file_a_day(tmp_path):
    from carbonlens.ledger import samples

    series = {"gpu0": [(START_US + i * 1_000_000, 100.0 + i) for i in range(20)]}
    for name in ("a", "b"):
        samples.write(tmp_path, name, series)
    before = samples.energy(tmp_path)
    done = compaction.compact(tmp_path, before="202612")
    assert done.days == ("20260921",)
    assert len(list(tmp_path.glob("samples/*/*.parquet"))) == 1
    assert samples.energy(tmp_path) == before
    assert compaction.compact(tmp_path, before="202612").days == ()
    assert verify(tmp_path, now_us=NOW_US).findings == ()


def test_what_writers_left_behind_is_cleared_a_day_later(tmp_path):
    fill(tmp_path, runs_over(5, 2))
    name = f".a.json.{'0f' * 8}.tmp"
    old, fresh = tmp_path / "runs" / "202609" / name, tmp_path / "months" / "202609" / name
    fresh.parent.mkdir(parents=True)
    fresh.write_text("{")
    old.write_text("{")
    os.utime(old, (1, 1))
    compaction.compact(tmp_path, before="202612")
    assert (old.exists(), fresh.exists()) == (False, True)
    assert (tmp_path / ".gitignore").exists()


@pytest.mark.parametrize("place", sorted(verify_files._PLACES))
def test_verify_calls_nothing_half_done_that_compaction_leaves(tmp_path, place):
    """Each kind of file is written under a temporary name, and so is the ledger's own."""
    fill(tmp_path, runs_over(5, 2))
    folder = tmp_path / place / ("20260901" if place == "samples" else "202609")
    folder = folder if place in verify_files._NESTED else folder.parent
    folder.mkdir(parents=True, exist_ok=True)
    for left in (folder / f".a.json.{'0f' * 8}.tmp", tmp_path / f"..gitignore.{'0f' * 8}.tmp"):
        left.write_text("{")
        os.utime(left, (1, 1))
    assert len(verify(tmp_path, now_us=NOW_US).findings) == 2
    compaction.compact(tmp_path, before="202612")
    assert verify(tmp_path, now_us=NOW_US).findings == ()


def test_what_is_the_users_own_stays(tmp_path):
    project = tmp_path / "project"
    fill(project, runs_over(5, 2))
    month = project / "runs" / "202609"
    name = f".a.json.{'0f' * 8}.tmp"
    own = [
        project / ".env",
        project / ".git" / name,
        project / "sub" / ".venv" / name,
        project / ".carbonlens" / "runs" / "202609" / name,
        project / "runs" / "mine" / name,
        month / ".env",
        month / ".git" / name,
        month / f"{name}x",
        tmp_path / "elsewhere" / name,
    ]
    for file in own:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("mine")
    folder = month / f".folder.{'0f' * 8}.tmp"
    folder.mkdir()
    own.append(folder / "notes")
    own[-1].write_text("mine")
    (project / "runs" / "202608").symlink_to(tmp_path / "elsewhere")
    (project / "imports").symlink_to(tmp_path / "elsewhere")
    links = [month / ".link", month / f".link.{'0f' * 8}.tmp"]
    links[0].symlink_to(tmp_path / "elsewhere")
    links[1].symlink_to(own[0])
    for path in tmp_path.rglob("*"):
        os.utime(path, (1, 1), follow_symlinks=False)
    compaction.compact(project, before="202612")
    assert [p.read_text() for p in own] == ["mine"] * len(own)
    assert folder.is_dir()
    assert all(p.is_symlink() for p in links)


def test_a_temporary_file_that_its_writer_renames_meanwhile_is_no_error(tmp_path, monkeypatch):
    folder = tmp_path / "closes"
    folder.mkdir()
    for i in range(2):
        file = folder / f".{i}.json.{'0f' * 8}.tmp"
        file.write_text("{")
        os.utime(file, (1, 1))
    listed = atomic._entries

    def one_is_renamed(place):
        entries = listed(place)
        if place == folder:
            (folder / f".0.json.{'0f' * 8}.tmp").rename(folder / "0.json")
        return entries

    monkeypatch.setattr(atomic, "_entries", one_is_renamed)
    assert atomic.remove_leftovers(tmp_path, older_than_s=60) == 1
    assert [f.name for f in folder.iterdir()] == ["0.json"]


def realistic(i):
    """Return a run as a laptop without sensors records it: two components, an hour's edge now and then."""
    start_us = START_US + i * 137_000_003
    cpu, ram = Decimal(i * 7919 % 1000003) / 1000, Decimal(i * 104729 % 100003) / 1000
    hour = start_us // 3_600_000_000
    parts = [("cpu", cpu, "D", "cpu_model:xeon"), ("ram", ram, "E", "ram_model")]
    return Run(
        run_id=uuid7(start_us // 1000, os.urandom(10)),
        host_id=sha256_hex(b"%d" % (i % 20))[:32],
        machine_id=sha256_hex(b"m%d" % (i % 20))[:32],
        study=f"study-{i % 7}",
        step=f"step-{i % 5}",
        role="variant",
        start_us=start_us,
        end_us=start_us + 60_000_000,
        duration_s=60.0 + i / 7919,
        energy=tuple(
            Reading(
                component=name,
                energy_j=joules,
                boundary="it",
                grade=grade,
                method=f"{name} model",
                u_random_j=float(joules) / 97,
                u_by_source_j={source: float(joules) * 0.3},
                covered_s=60.0 + i / 7919,
                dynamic_j=joules / 2,
            )
            for name, joules, grade, source in parts
        ),
        energy_by_hour=tuple(HourEnergy(hour_utc=hour, component=n, energy_j=j) for n, j, _, _ in parts),
        units=Decimal(1000),
        unit="image",
        coverage=1.0,
        lost_s=0.0,
        conditions=Conditions(wall_s=60.0 + i / 7919, cpu_s=55.0 + i % 91 / 13, load_1m=i % 17 / 9),
        tags={"team": f"team-{i % 9}"},
        origin=Origin(
            instrument="carbonlens 0.1.0", program="train.py", args_sha256=sha256_hex(b"%d" % (i % 40))
        ),
    )


def test_a_folded_run_takes_at_most_600_bytes(tmp_path):
    (tmp_path / "runs" / "202609").mkdir(parents=True)
    for i in range(3000):
        run = realistic(i)
        file = tmp_path / layout.RUNS / "202609" / f"{run.run_id}.json"
        file.write_bytes(msgspec.json.encode(run))
    (month,) = compaction.compact(tmp_path, before="202612").months
    whole = sum(f.stat().st_size for f in tmp_path.rglob("months/*/*"))
    assert month.size_bytes < whole <= 600 * month.runs


@pytest.mark.parametrize("content", [None, b"", b"{", b"[]", b"\xff"])
def test_a_month_whose_manifest_is_lost_gets_a_new_one(tmp_path, content):
    fill(tmp_path, runs_over(5, 4))
    compaction.compact(tmp_path, before="202612")
    (manifest,) = (tmp_path / "months" / "202609").glob("*.json")
    kept = compaction.read_manifest(manifest.with_suffix(".parquet")).records
    manifest.write_bytes(content) if content is not None else manifest.unlink()
    (month,) = compaction.compact(tmp_path, before="202612").months
    assert month.month == "202609"
    assert compaction.read_manifest(manifest.with_suffix(".parquet")).records == kept
    assert verify(tmp_path, now_us=NOW_US).findings == ()


def test_a_month_that_was_altered_gets_no_new_manifest(tmp_path):
    fill(tmp_path, runs_over(5, 4))
    compaction.compact(tmp_path, before="202612")
    (file,) = (tmp_path / "months" / "202609").glob("*.parquet")
    other = tmp_path / "other"
    fill(other, runs_over(5, 3))
    compaction.compact(other, before="202612")
    (shorter,) = (other / "months" / "202609").glob("*.parquet")
    file.write_bytes(shorter.read_bytes())
    compaction.manifest_file(file).write_text("{")
    done = compaction.compact(tmp_path, before="202612")
    assert done.months == ()
    assert [(f.code, f.severity, f.file) for f in done.findings] == [("CL515", "error", str(file))]


@pytest.mark.parametrize(
    ("asked", "left"), [(None, ("202611",)), (["202611"], ()), (["202610"], ("202611",))]
)
def test_only_months_that_are_not_over_are_said_to_be_left_open(tmp_path, asked, left):
    fill(tmp_path, runs_over(60, 30))
    assert compaction.compact(tmp_path, before="202611", months=asked).left_open == left


@pytest.mark.parametrize("place", ["runs/202609", "months/202609", "imports", "samples/20260901", "readings"])
def test_a_half_written_parquet_file_is_cleared_a_day_later(tmp_path, place):
    fill(tmp_path, runs_over(5, 2))
    folders = [tmp_path / place / f".m.parquet.{n * 8}.tmp" for n in ("0a", "0b", "0c")]
    for folder in folders:
        folder.mkdir(parents=True)
        for name in ("rows.json", "new.parquet", "tmp_new.parquet"):
            (folder / name).write_text("half")
    (folders[1] / "mine").write_text("mine")
    for folder in folders[:2]:
        os.utime(folder, (1, 1))
    compaction.compact(tmp_path, before="202612")
    assert not folders[0].exists()
    assert [f.name for f in folders[1].iterdir()] == ["mine"]
    assert len(list(folders[2].iterdir())) == 3


def test_what_a_killed_writer_of_parquet_leaves_has_the_name_that_is_cleared(tmp_path):
    """A writer that is cut off while rows come; its folder is what ``compact`` clears."""
    target = tmp_path / "imports" / "batch.parquet"
    seen = []

    def rows():
        (folder,) = [f for f in target.parent.iterdir() if f.name.startswith(".")]
        (folder / "rows.json").exists()
        seen.append(folder)
        copy = folder.with_name(folder.name.replace(".tmp", "")[:-16] + "ab" * 8 + ".tmp")
        copy.mkdir()
        (copy / "rows.json").write_text("half")
        os.utime(copy, (1, 1))
        seen.append(copy)
        yield {"a": "1"}

    parquet.write(target, {"a": "VARCHAR"}, rows())
    assert [f.exists() for f in seen] == [False, True]
    compaction.compact(tmp_path, before="202612")
    assert not seen[1].exists()
    assert target.exists()
