"""Records of older versions with fewer units than their column holds keep their energy."""

from decimal import Decimal

import msgspec
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
