"""Bills, meter readings and inventory snapshots: written once, read back exactly, counted once."""

from decimal import Decimal

import duckdb
import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from carbonlens.domain.charge import Charge
from carbonlens.domain.identity import sha256_hex
from carbonlens.domain.meter_reading import MeterReading
from carbonlens.domain.money import Money
from carbonlens.domain.run import Origin
from carbonlens.domain.snapshot import Snapshot
from carbonlens.ledger.activity import CHARGES, READINGS, SNAPSHOTS, numbered_ids
from carbonlens.ledger.store import Ledger
from carbonlens.ledger.superseding import corrected_rows
from carbonlens.ledger.verify import verify

HOUR_US = 3_600_000_000
CHARGE = Charge(
    charge_id="line-1",
    start_us=0,
    end_us=HOUR_US,
    billed=Money(Decimal("12.300000000001"), "EUR"),
    list_cost=Money(Decimal("-0.5"), "USD"),
    tags={"team": "v"},
    origin=Origin(instrument="t 1", source_file="bill.csv", source_line=2),
)
READING = MeterReading(
    reading_id="r1", meter_id="m", start_us=0, end_us=HOUR_US, energy_j=Decimal("3600000.000001")
)
SNAPSHOT = Snapshot(snapshot_id="ab", name="sites", taken_us=5, text="[paris]\n")


def add(folder, kind, rows, source="ab"):
    return Ledger(folder).add_rows(kind, rows, source_sha256=source * 32, importer="t-1")


@pytest.mark.parametrize(("kind", "row"), [(CHARGES, CHARGE), (READINGS, READING), (SNAPSHOTS, SNAPSHOT)])
def test_a_row_comes_back_exactly_and_once(tmp_path, kind, row):
    for source in ("ab", "ab", "cd"):
        add(tmp_path, kind, [row], source)
    assert Ledger(tmp_path).rows(kind) == ([row], [])
    assert len(list((tmp_path / kind.folder).iterdir())) == 2


def test_amounts_are_exact_columns(tmp_path):
    file = add(tmp_path, CHARGES, [CHARGE])
    query = f"SELECT billed_amount, billed_currency, list_cost_amount, effective_amount FROM '{file}'"
    assert duckdb.sql(query).fetchall() == [(Decimal("12.300000000001"), "EUR", Decimal("-0.5"), None)]
    file = add(tmp_path, READINGS, [READING])
    assert duckdb.sql(f"SELECT energy_j FROM '{file}'").fetchall() == [(READING.energy_j,)]


def test_one_id_with_other_content_counts_once_and_is_said(tmp_path):
    other = msgspec.structs.replace(CHARGE, billed=Money(Decimal(99), "EUR"))
    moved = msgspec.structs.replace(CHARGE, origin=None)
    add(tmp_path, CHARGES, [CHARGE], "aa")
    add(tmp_path, CHARGES, [moved, other], "bb")
    rows, findings = Ledger(tmp_path).rows(CHARGES)
    assert rows == [CHARGE]
    assert [(f.code, f.subject) for f in findings] == [("CL505", "charge_id line-1")]


def test_a_corrected_row_no_longer_counts(tmp_path):
    fixed = msgspec.structs.replace(READING, reading_id="r2", energy_j=Decimal(1), supersedes="r1")
    add(tmp_path, READINGS, [READING], "aa")
    add(tmp_path, READINGS, [fixed], "bb")
    assert Ledger(tmp_path).rows(READINGS) == ([fixed], [])


def test_a_damaged_batch_is_a_finding_and_the_others_are_read(tmp_path):
    add(tmp_path, CHARGES, [CHARGE], "aa")
    file = add(tmp_path, CHARGES, [CHARGE], "bb")
    file.write_bytes(file.read_bytes()[:80])
    rows, findings = Ledger(tmp_path).rows(CHARGES)
    assert (rows, [f.code for f in findings]) == ([CHARGE], ["CL503"])
    assert str(file) == findings[0].file


LINES = st.lists(st.sampled_from([b"a", b"b", b"c"]), max_size=8)


@given(LINES, LINES)
def test_equal_lines_of_one_file_stay_apart_and_of_two_files_meet(lines, more):
    ids = numbered_ids(lines, sha256_hex)
    assert len(set(ids)) == len(lines)
    assert numbered_ids([*lines, *more], sha256_hex)[: len(lines)] == ids


def reading(name, supersedes=None, hours=(0, 1), joules=1):
    times = {"start_us": hours[0] * HOUR_US, "end_us": hours[1] * HOUR_US}
    return MeterReading(
        reading_id=name, meter_id="m", energy_j=Decimal(joules), supersedes=supersedes, **times
    )


def counting(folder):
    rows, findings = Ledger(folder).rows(READINGS)
    return [r.reading_id for r in rows], [(f.code, f.severity) for f in findings]


@pytest.mark.parametrize(
    ("rows", "left", "said"),
    [
        ([reading("a", "a"), reading("b")], ["a", "b"], [("CL508", "error")]),
        ([reading("a", "b"), reading("b", "a")], ["b"], [("CL508", "error")]),
        ([reading("a", "b"), reading("b", "a"), reading("c", "b")], ["c"], []),
        ([reading("a", "a"), reading("b", "a")], ["b"], []),
        ([reading("a"), reading("b", "a"), reading("c", "a")], ["c"], [("CL507", "warning")]),
        (
            [reading("a"), reading("b", "a"), reading("c", "b"), reading("d", "a")],
            ["d"],
            [("CL507", "warning")],
        ),
        ([reading("a", hours=(0, 2)), reading("b", "a"), reading("c", "a", (1, 2))], ["b", "c"], []),
        ([reading("a"), reading("b", "a"), reading("c", "b"), reading("d", "gone")], ["c", "d"], []),
    ],
)
def test_no_reading_vanishes_and_none_counts_twice_however_they_correct_each_other(
    tmp_path, rows, left, said
):
    add(tmp_path, READINGS, rows)
    assert counting(tmp_path) == (left, said)
    assert [(f.code, f.severity) for f in verify(tmp_path, now_us=0).findings] == said
    # Nothing that is returned says that it is corrected by itself.
    assert not [r for r in Ledger(tmp_path).rows(READINGS)[0] if r.supersedes == r.reading_id]


@given(targets=st.lists(st.none() | st.integers(0, 7), min_size=1, max_size=8))
def test_of_each_family_of_one_hour_one_reading_counts(targets):
    names = [str(i) for i in range(len(targets))]
    rows = {n: reading(n, None if t is None else str(t)) for n, t in zip(names, targets, strict=True)}
    links = [(n, r.supersedes) for n, r in rows.items() if r.supersedes in rows]
    family = {n: n for n in names}
    for newer, older in links:
        family = {n: family[older] if f == family[newer] else f for n, f in family.items()}
    gone, _ = corrected_rows(rows, "reading_id")
    assert sorted(family[n] for n in names if n not in gone) == sorted(set(family.values()))
