"""Redacted content is gone from every file; its hash stays, and so do the figures."""

from contextlib import suppress
from decimal import Decimal

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from carbonlens.app.ledger_care import compact, redact, tag
from carbonlens.app.runs import list_runs
from carbonlens.domain.phase import Phase
from carbonlens.domain.run import Origin, Reading
from carbonlens.errors import SelectionError, UsageError
from carbonlens.ledger import redaction
from carbonlens.ledger.atomic import write_atomically
from carbonlens.ledger.records import Stored, current
from carbonlens.ledger.store import Ledger
from carbonlens.ledger.verify import verify
from tests.ledger.test_store import make_run

PLANTED = "planted-7f3a"
NOW_US = 1_795_000_000_000_000


def secret_run(run_id="secret-run", **more):
    origin = Origin(instrument="t 1", program="train.py", args=("--token", PLANTED), imported_us=5)
    return make_run(run_id, tags={"owner": PLANTED, "team": "v"}, origin=origin, workload=PLANTED, **more)


def holding(folder):
    """Return files that hold the secret, as text or inside Parquet."""
    import duckdb

    found = [f for f in folder.rglob("*") if f.is_file() and PLANTED.encode() in f.read_bytes()]
    for file in folder.rglob("*.parquet"):
        rows = duckdb.sql(f"SELECT * FROM read_parquet('{file}')").fetchall()
        found += [file] if PLANTED in repr(rows) else []
    return found


def energy(folder):
    runs, _ = current(Ledger(folder).view().runs)
    return sum(r.energy[0].energy_j for r in runs)


FIELDS = ["tags.owner", "origin.args", "workload"]


@pytest.mark.parametrize("form", ["json", "month", "import", "both"])
def test_content_is_gone_wherever_it_lies_and_figures_stay(tmp_path, form):
    ledger = Ledger(tmp_path)
    if form == "import":
        ledger.add_batch([secret_run(), make_run("other")], source_sha256="ab" * 32, importer="t-1")
    else:
        file = ledger.append(secret_run())
        ledger.append(make_run("other"))
        content = file.read_bytes()
        if form in ("month", "both"):
            compact(ledger=tmp_path)
        if form == "both":
            write_atomically(file, content)  # Compaction that was cut off before it removed its inputs.
    before = energy(tmp_path)
    assert holding(tmp_path)
    done = redact("secret-run", FIELDS, why="asked for", ledger=tmp_path)
    assert (done.run_ids, done.energy) == (("secret-run",), False)
    assert holding(tmp_path) == []
    assert energy(tmp_path) == before
    run = next(r for r in Ledger(tmp_path).view().runs if r.run_id == "secret-run")
    assert (run.tags, run.origin.args, run.workload) == ({"team": "v"}, None, None)
    assert [f.code for f in run.findings] == [redaction.CODE]
    assert verify(tmp_path, now_us=NOW_US).sound


def test_the_tombstone_says_who_when_why_and_keeps_the_hash(tmp_path):
    Ledger(tmp_path).append(secret_run())
    (original,) = Ledger(tmp_path).holdings().records
    redact("secret-run", FIELDS, why="asked for", by="the auditor", ledger=tmp_path)
    (stone,) = redaction.tombstones(tmp_path)[0].values()
    (left,) = Ledger(tmp_path).holdings().records
    assert (stone.by, stone.why, stone.fields) == ("the auditor", "asked for", tuple(FIELDS))
    assert (stone.original_sha256, stone.redacted_sha256) == (original.sha256, left.sha256)
    assert abs(stone.when_us / 1e6 - (tmp_path / "redactions").stat().st_mtime) < 60


def test_records_that_correct_the_run_are_redacted_too(tmp_path):
    Ledger(tmp_path).append(secret_run())
    tag("secret-run", {"x": "1"}, ledger=tmp_path)
    done = redact("secret-run", FIELDS, why="w", ledger=tmp_path)
    assert len(done.run_ids) == 2
    assert holding(tmp_path) == []
    assert len(current(Ledger(tmp_path).view().runs)[0]) == 1


def test_a_misnamed_copy_is_redacted_too(tmp_path):
    file = Ledger(tmp_path).append(secret_run())
    (file.parent / "copy.json").write_bytes(file.read_bytes())
    redact("secret-run", FIELDS, why="w", ledger=tmp_path)
    assert holding(tmp_path) == []


def test_a_redaction_cut_off_after_the_tombstone_is_applied_on_reading_and_found(tmp_path):
    file = Ledger(tmp_path).append(secret_run())
    content = file.read_bytes()
    redact("secret-run", FIELDS, why="w", ledger=tmp_path)
    write_atomically(file, content)
    (run,) = Ledger(tmp_path).view().runs
    assert PLANTED not in repr(run)
    assert [f.code for f in verify(tmp_path, now_us=NOW_US).findings] == [redaction.CODE]
    redact("secret-run", FIELDS, why="w", ledger=tmp_path)
    assert holding(tmp_path) == []
    assert verify(tmp_path, now_us=NOW_US).findings == ()


def test_an_original_brought_back_beside_its_redaction_counts_once(tmp_path):
    file = Ledger(tmp_path).append(secret_run())
    content = file.read_bytes()
    redact("secret-run", FIELDS, why="w", ledger=tmp_path)
    compact(ledger=tmp_path)
    write_atomically(file, content)
    view = Ledger(tmp_path).view()
    assert (len(view.runs), view.findings) == (1, ())
    compact(ledger=tmp_path)
    assert holding(tmp_path) == []


def test_redacted_energy_is_unknown_not_zero(tmp_path):
    Ledger(tmp_path).append(secret_run())
    done = redact("secret-run", ["energy"], why="w", ledger=tmp_path)
    (run,) = Ledger(tmp_path).view().runs
    assert done.energy
    assert run.total_energy.value is None
    assert (run.energy[0].state, run.energy[0].u_by_source_j, run.energy_by_hour) == ("unknown", {}, ())
    with pytest.raises(SelectionError):
        redact("secret-run", ["energy"], why="w", ledger=tmp_path)


@pytest.mark.parametrize("form", ["json", "month"])
def test_with_the_energy_goes_that_of_phases(tmp_path, form):
    phase = Phase(
        name="warm-up", entries=2, duration_s=1.0, energy_j=Decimal("0.777"), grade="D", u_random_j=0.1
    )
    Ledger(tmp_path).append(make_run(phases=(phase,)))
    if form == "month":
        compact(ledger=tmp_path)
    redact("r1", ["energy"], why="w", ledger=tmp_path)
    (run,) = Ledger(tmp_path).view().runs
    assert [(p.name, p.duration_s, p.energy_j, p.energy.state) for p in run.phases] == [
        ("warm-up", 1.0, None, "unknown")
    ]
    assert run.total_energy.value is None
    assert verify(tmp_path, now_us=NOW_US).sound
    with pytest.raises(SelectionError):
        redact("r1", ["energy"], why="w", ledger=tmp_path)


def test_a_tombstone_of_an_older_version_gives_what_it_gave(tmp_path):
    """Its hash is that of a record with the energy of phases, which a further redaction takes out."""
    phase = Phase(name="warm-up", entries=2, duration_s=1.0, energy_j=Decimal("0.777"))
    run = make_run(phases=(phase,))
    stored = Stored(run=run, text=msgspec.json.encode(run), file="f")
    stone = redaction.entomb(stored, ["energy"], by="b", when_us=0, why="w")
    older = msgspec.structs.replace(stone, schema_version=2)
    (left,) = redaction.applied([stored], {stored.sha256: older})
    assert left.run.total_energy.value is None
    assert left.run.phases == (phase,)
    again = redaction.entomb(left, ["energy"], by="b", when_us=0, why="w")
    (whole,) = redaction.applied([stored], {stored.sha256: older, left.sha256: again})
    assert whole.run.phases[0].energy_j is None


def test_a_second_redaction_of_another_field_goes_on_from_the_first(tmp_path):
    Ledger(tmp_path).append(secret_run())
    for field in FIELDS:
        redact("secret-run", [field], why="w", ledger=tmp_path)
    assert holding(tmp_path) == []
    assert len(redaction.tombstones(tmp_path)[0]) == 3
    assert verify(tmp_path, now_us=NOW_US).sound


@pytest.mark.parametrize(
    "field",
    [
        *("run_id", "study", "start_us", "origin", "origin.imported_us", "host_id"),
        *("energy.energy_j", "cost.amount", "supersedes_study", "supersedes_also"),
        *("energy.devices", "energy.component", "energy.own_share", "energy.divided", "beside.boundary"),
    ],
)
def test_what_tells_records_apart_or_carries_figures_in_part_cannot_be_taken_out(tmp_path, field):
    from carbonlens.domain.money import Money

    Ledger(tmp_path).append(secret_run(host_id="h", study="s", cost=Money(Decimal(1), "EUR")))
    before = {f: f.read_bytes() for f in tmp_path.rglob("*.json")}
    with pytest.raises(UsageError):
        redact("secret-run", [field], why="w", ledger=tmp_path)
    assert {f: f.read_bytes() for f in tmp_path.rglob("*.json")} == before


def test_a_field_nobody_has_is_refused(tmp_path):
    Ledger(tmp_path).append(secret_run())
    with pytest.raises(SelectionError, match="holds nope"):
        redact("secret-run", ["nope"], why="w", ledger=tmp_path)
    with pytest.raises(UsageError, match="reason"):
        redact("secret-run", FIELDS, why=" ", ledger=tmp_path)


TEXTS = ["tags", "tags.owner", "origin.args", "origin.program", "origin.instrument", "workload"]


@given(field=st.sampled_from(TEXTS))
def test_what_is_left_is_a_record_with_the_same_energy(field):
    run = secret_run()
    stored = Stored(run=run, text=msgspec.json.encode(run), file="f")
    stone = redaction.entomb(stored, [field], by="b", when_us=0, why="w")
    (left,) = redaction.applied([stored], {stored.sha256: stone})
    assert left.sha256 == stone.redacted_sha256
    assert left.run.energy == run.energy
    assert (left.run.run_id, left.run.recorded_us) == (run.run_id, run.recorded_us)


@pytest.mark.parametrize("field", ["findings.message", "findings.subject", "findings.code"])
def test_what_was_said_of_a_run_is_taken_out_whole_or_not_at_all(tmp_path, field):
    """Among it is what was corrected and redacted before: the codes of that stay."""
    Ledger(tmp_path).append(secret_run())
    redact("secret-run", ["tags.owner"], why="w", ledger=tmp_path)
    tag("secret-run", {"a": "b"}, ledger=tmp_path)
    with pytest.raises(UsageError, match="keeps its code"):
        redact("secret-run", [field], why="w", ledger=tmp_path)


def test_no_redaction_has_two_runs_billed_one_device_twice(tmp_path):
    """What tells that they share it stays, whichever fields a reading has."""
    start = 1_790_000_000_000_000
    for i in range(2):
        run = make_run(f"run-{i}", start_us=start, end_us=start + 10_000_000, host_id="h", duration_s=10.0)
        shared = msgspec.structs.replace(run.energy[0], component="gpu", devices=("GPU-1",))
        Ledger(tmp_path).append(msgspec.structs.replace(run, energy=(shared,)))
    before = list_runs(ledger=tmp_path).totals
    for field in msgspec.structs.fields(Reading):
        with suppress(UsageError, SelectionError):
            redact("run-0", [f"energy.{field.name}"], why="w", ledger=tmp_path)
    after = list_runs(ledger=tmp_path)
    assert after.totals == before
    assert after.billed[0].energy[0].method.startswith(redaction.PLACEHOLDER)


@pytest.mark.parametrize(
    ("fields", "version", "code"),
    [
        (["tags.owner"], 99, "CL502"),
        (["run_id"], 2, "CL501"),
        (["job_id"], 1, "CL501"),
        (["start_us.x"], 2, "CL501"),
        (["energy.energy_j"], 2, None),
        ([], 2, None),
    ],
)
@pytest.mark.parametrize("form", ["json", "month"])
def test_a_tombstone_that_is_none_of_ours_stops_nobody_from_reading(tmp_path, fields, version, code, form):
    Ledger(tmp_path).append(secret_run("a", job_id="j"))
    Ledger(tmp_path).append(make_run("b"))
    if form == "month":
        compact(ledger=tmp_path)
    (stored,) = [r for r in Ledger(tmp_path).holdings().records if r.run.run_id == "a"]
    stone = redaction.Tombstone(
        run_id="a",
        fields=tuple(fields),
        by="x",
        when_us=1,
        why="w",
        original_sha256=stored.sha256,
        schema_version=version,
    )
    file = tmp_path / "redactions" / stone.file_name
    file.parent.mkdir()
    file.write_bytes(msgspec.json.encode(stone))
    listing = list_runs(ledger=tmp_path)
    assert sorted(r.run_id for r in listing.runs) == ["a", "b"]
    with Ledger(tmp_path).query() as view:
        said = [*listing.findings, *view.findings]
    found = {(f.code, f.file) for f in said if f.severity == "error"}
    assert found == (set() if code is None else {(code, str(file))})
    assert not verify(tmp_path, now_us=NOW_US).sound
    compact(ledger=tmp_path)
    assert energy(tmp_path) == 3


@pytest.mark.parametrize("name", ["owner", "app.kubernetes.io/owner", "a..b", ".", "ä b"])
def test_a_tag_of_any_name_can_be_taken_out(tmp_path, name):
    Ledger(tmp_path).append(make_run(tags={name: PLANTED, "team": "v"}))
    redact("r1", [f"tags.{name}"], why="w", ledger=tmp_path)
    assert holding(tmp_path) == []
    assert [dict(r.tags) for r in Ledger(tmp_path).view().runs] == [{"team": "v"}]
