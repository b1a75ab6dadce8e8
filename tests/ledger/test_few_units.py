"""Records of older versions with fewer units than their column holds keep their energy."""

from decimal import Decimal

import msgspec
import narwhals as nw
import pytest

from carbonlens.app.ledger_care import supersede
from carbonlens.errors import RecordError
from carbonlens.ledger import compaction
from carbonlens.ledger.accounts import account
from carbonlens.ledger.calendar import Calendar
from carbonlens.ledger.editing import changes_from
from carbonlens.ledger.frames import View
from carbonlens.ledger.store import Ledger
from tests.ledger.test_store import make_run

START = 1_790_000_000_000_000
FEW = ["1e-400", "1e-310", "9e-7"]


def old_ledger(folder, units):
    """Return a ledger with a run of 7 J and an old one of 5 J that states too few units."""
    Ledger(folder).append(make_run("good", "7", START))
    (month,) = (folder / "runs").iterdir()
    old = msgspec.structs.replace(make_run("old", "5", START), units=Decimal(units), unit="GB")
    (month / "old.json").write_bytes(msgspec.json.encode(old))
    return folder


def joules(folder):
    with View(folder) as view:
        return [t.energy.exact for t in account(view, calendar=Calendar()).totals]


@pytest.mark.parametrize("units", FEW)
@pytest.mark.parametrize("is_compacted", [False, True])
def test_the_energy_counts_and_the_units_are_unknown(tmp_path, units, is_compacted):
    ledger = old_ledger(tmp_path, units)
    if is_compacted:
        compaction.compact(ledger, before="209912")
    assert joules(ledger) == [12]
    view = Ledger(ledger).view()
    assert {r.run_id: r.units for r in view.runs}["old"] is None
    told = [f for f in view.findings if f.code in ("CL519", "CL527")]
    assert [(f.code, f.severity, f.subject) for f in told] == [("CL527", "warning", "old")]


def test_its_units_can_be_corrected(tmp_path):
    ledger = old_ledger(tmp_path, "1e-310")
    supersede("old", changes_from(["units=3"]), ledger=ledger)
    assert joules(ledger) == [12]
    assert Decimal(3) in [r.units for r in Ledger(ledger).view().runs]


def test_no_new_record_takes_so_few(tmp_path):
    few = msgspec.structs.replace(make_run("new", "5", START), units=Decimal("9e-7"))
    with pytest.raises(RecordError, match="units is"):
        Ledger(tmp_path).append(few)


def as_an_older_version_folded(folder):
    """Fold the month as versions did that rounded few units to the last place of their column."""
    from carbonlens.ledger.records import Stored, decode

    files = sorted((folder / "runs").rglob("*.json"))
    runs = [Stored(run=decode(f.read_bytes()), text=f.read_bytes(), file=str(f)) for f in files]
    compaction.write_month(folder, files[0].parent.name, runs, {})
    for file in files:
        file.unlink()


def seen(folder, period=None):
    """Return units and findings of the ledger's view, without the file they lie in."""
    with Ledger(folder).query(period) as view:
        rows = {r["run_id"]: r["units"] for r in view.rows(view.parts.filter(nw.col("is_first")))}
        return rows, [(f.code, f.subject, f.message) for f in view.findings]


@pytest.mark.parametrize("period", [None, "2026-09"])
@pytest.mark.parametrize("fold", ["now", "before"])
@pytest.mark.parametrize("units", FEW)
def test_queries_say_of_a_compacted_month_what_they_said_before(tmp_path, units, fold, period):
    ledger = old_ledger(tmp_path, units)
    few = seen(ledger, period)
    assert few[0] == {"good": 3, "old": None}
    assert [code for code, _, _ in few[1]] == ["CL527"]
    if fold == "now":
        compaction.compact(ledger, before="209912")
    else:
        as_an_older_version_folded(ledger)
    assert seen(ledger, period) == few
    supersede("old", changes_from(["units=3"]), ledger=ledger)
    rows, said = seen(ledger, period)
    assert sorted(rows.values()) == [3, 3]
    assert said == []


def test_runs_without_a_number_of_units_are_not_said_to_have_few(tmp_path):
    Ledger(tmp_path).append(msgspec.structs.replace(make_run("silent", "7", START), units=None, unit="GB"))
    Ledger(tmp_path).append(
        msgspec.structs.replace(make_run("none", "7", START), units=Decimal(0), unit="GB")
    )
    before = seen(tmp_path)
    compaction.compact(tmp_path, before="209912")
    assert seen(tmp_path) == before == ({"silent": None, "none": 0}, [])
