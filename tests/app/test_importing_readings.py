"""Meter readings are imported once, kept by the ledger, and are the activity data of a statement."""

import pytest

from carbonlens.app.importing import import_files
from carbonlens.app.importing_readings import claims_readings
from carbonlens.app.statement import make_statement
from carbonlens.ledger.activity import READINGS
from carbonlens.ledger.store import Ledger
from tests.app import statement_case as case

HEAD = "meter,start,end,energy,unit,reading_id,supersedes\n"
MAY = "main,2026-05-01T00:00Z,2026-06-01T00:00Z,{kwh},kWh,{name},{of}\n"


def written(folder, text, name="may.csv"):
    (folder / name).write_text(text)
    return import_files([folder / name], ledger=folder / "ledger")


def test_imported_readings_are_the_activity_data(tmp_path):
    case.write(tmp_path)
    (tmp_path / "inventory" / "meters.toml").write_text(case.METER)
    done = written(tmp_path, HEAD + MAY.format(kwh=1000, name="r1", of=""))
    assert (done.files[0].format, done.files[0].status) == ("meter readings", "imported")
    assert (done.totals.readings, done.totals.rows, done.totals.runs) == (1, 1, 0)
    where = {"ledger": tmp_path / "ledger", "inventory": tmp_path / "inventory"}
    found = make_statement(case.PERIOD, **where, factors=tmp_path / "factors.csv", now_us=case.NOW_US)
    (whole,) = [x for x in found.statement.lines if x.kind == "metered"]
    assert whole.estimate("facility_kwh").value == pytest.approx(1000)
    # The class of the meter stands in the inventory, and is the readings'.
    assert whole.estimate("facility_kwh").u_by_source == {"meter:main": pytest.approx(10 / 3**0.5)}


def test_each_reading_counts_once_and_a_correction_replaces_one(tmp_path):
    first = HEAD + MAY.format(kwh=1000, name="r1", of="")
    written(tmp_path, first)
    assert written(tmp_path, first, "again.csv").files[0].status == "duplicate"
    more = written(tmp_path, first + MAY.format(kwh=900, name="r2", of="r1"), "more.csv")
    assert (more.totals.readings, [f.code for f in more.files[0].findings]) == (1, ["CL236"])
    held, findings = Ledger(tmp_path / "ledger").rows(READINGS)
    assert ([r.reading_id for r in held], findings) == (["r2"], [])


def test_other_content_under_a_known_id_is_refused(tmp_path):
    written(tmp_path, HEAD + MAY.format(kwh=1000, name="r1", of=""))
    done = written(tmp_path, HEAD + MAY.format(kwh=1, name="r1", of=""), "other.csv")
    assert (done.totals.readings, done.files[0].status) == (0, "refused")
    assert [f.code for f in done.files[0].findings] == ["CL213"]


def test_counts_become_spans(tmp_path):
    text = "meter;time;counter;unit\nm;2026-05-01T00:00Z;10,5;kWh\nm;2026-05-02T00:00Z;12,5;kWh\n"
    assert written(tmp_path, text).totals.readings == 1
    (one,) = Ledger(tmp_path / "ledger").rows(READINGS)[0]
    assert one.energy_j == 7_200_000


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ("m,2026-05-01T00:00,2026-06-01T00:00,1,kWh,,\n", "no time zone"),
        ("m,2026-05-01T00:00Z,2026-06-01T00:00Z,1,mWh,,\n", "unit is"),
        ("m,2026-06-01T00:00Z,2026-05-01T00:00Z,1,kWh,,\n", "ends when it begins"),
    ],
)
def test_a_malformed_row_refuses_the_file(tmp_path, row, said):
    done = written(tmp_path, HEAD + row)
    (finding,) = done.refused[0].findings
    assert said in finding.message
    assert "reporting.toml" not in finding.mend
    assert not (tmp_path / "ledger" / "readings").exists()


@pytest.mark.parametrize(
    ("head", "claimed"),
    [
        (b"meter,start,end,energy,unit\n", True),
        (b"\xef\xbb\xbf# by hand\nmeter_id;time;counter;unit\n", True),
        (b"run_id,study,energy_j,units,step\n", False),
        (b"meter,start,end,energy,unit,price\n", False),
        (b"", False),
        (b"\x89PNG\r\n", False),
    ],
)
def test_readings_are_known_by_their_columns(head, claimed):
    assert claims_readings(head) is claimed
