"""Audit of a statement: a right one has no slip, and each slip that is written into one is found."""

from __future__ import annotations

import copy

import msgspec
import pytest

from carbonlens.app.audit import audit_files, audit_period
from carbonlens.app.statement import make_statement
from carbonlens.errors import UsageError
from carbonlens.reporting.statement_json import statement_json
from tests.app import statement_case as case

SLIPS = {"CL701", "CL702", "CL703", "CL704", "CL705", "CL706", "CL707", "CL715", "CL717", "CL718"}


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    folder = tmp_path_factory.mktemp("audit")
    case.write(folder)
    return folder


@pytest.fixture(scope="module")
def stated(place):
    made = make_statement(
        case.PERIOD,
        ledger=place / "ledger",
        inventory=place / "inventory",
        factors=place / "factors.csv",
        now_us=case.NOW_US,
    )
    return msgspec.json.decode(msgspec.json.encode(statement_json(made.statement)))


@pytest.fixture
def audited(place, stated, tmp_path):
    """Return what is found in a statement in which something was changed."""

    def found(change=None, factors=None):
        shape = copy.deepcopy(stated)
        if change is not None:
            change(shape)
        file = tmp_path / "account.json"
        file.write_bytes(msgspec.json.encode(shape))
        return audit_files([file], factors=factors or place / "factors.csv").findings

    return found


def line(shape, key):
    return next(x for x in shape["sites"] if x["line"] == key)


def scale(shape, key, name, factor):
    line(shape, key)["amounts"][name]["value"] *= factor


def codes(findings):
    return {f.code for f in findings}


def test_a_right_statement_has_no_slip(audited):
    assert codes(audited()) & SLIPS == set()


def test_the_statement_of_a_ledger_is_audited_as_its_file_is(place, audited):
    ours = audit_period(
        case.PERIOD,
        ledger=place / "ledger",
        inventory=place / "inventory",
        factors=place / "factors.csv",
        now_us=case.NOW_US,
    )
    assert codes(ours.findings) & SLIPS == set()
    assert {f.message for f in audited()} <= {f.message for f in ours.findings}
    assert ours.checked > len(case.runs())


@pytest.mark.parametrize(
    ("change", "code", "said"),
    [
        (lambda s: scale(s, "lab", "location_kg", 1000), "CL702", "a unit slip by 1000 (g, kg"),
        (lambda s: scale(s, "lab", "location_kg", 1000), "CL701", "no grid is above"),
        (lambda s: scale(s, "lab", "location_kg", 1.3), "CL703", "do not give the output"),
        (lambda s: scale(s, "lab", "location_kg", 1 / 1.25), "CL705", "PUE applied 0 times"),
        (lambda s: scale(s, "lab", "facility_kwh", 1.25), "CL705", "PUE applied 2 times"),
        (lambda s: scale(s, "lab", "facility_kwh", 1 / 1.25), "CL705", "PUE applied 0 times"),
        (lambda s: scale(s, "lab", "water_site_l", 1.25), "CL715", "WUE was applied to facility energy"),
        (lambda s: s["total"]["amounts"]["facility_kwh"].update(value=1.0), "CL706", "too much in the rows"),
        (lambda s: s["total"]["amounts"]["market_kg"].update(value=1e6), "CL706", "total, market-based"),
        (lambda s: s["cost"]["totals"]["EUR"].update(value=1e6), "CL706", "EUR of cost"),
        (lambda s: line(s, "lab").update(place=None, factors=[]), "CL710", "neither place nor"),
        (lambda s: line(s, "edge")["terms"].update(span="life_cycle"), "CL713", "direct, life_cycle"),
        (lambda s: line(s, "lab")["terms"].update(site_kind="cloud"), "CL717", "rented machines in scope 2"),
        (lambda s: line(s, "lab")["amounts"]["location_kg"].update(value=0.0), "CL703", "lab"),
    ],
)
def test_a_slip_is_found(audited, change, code, said):
    found = [f for f in audited(change) if f.code == code]
    assert any(said in f.message for f in found), [f.message for f in audited(change)]
    assert found[0].file is not None


def test_one_energy_in_two_scopes_is_found(audited):
    def booked_twice(shape):
        figures = {f["id"]: f for f in shape["figures"]}
        name = f"statement.{case.PERIOD}.lab.location_kg"
        figures[f"statement.{case.PERIOD}.scope_3_category_11.location_kg"]["inputs"].append(name)

    (found,) = [f for f in audited(booked_twice) if f.code == "CL717"]
    assert "in scope 2 and scope 3" in found.message


def test_a_stale_factor_is_found(audited, tmp_path):
    (tmp_path / "old.csv").write_text(case.FACTORS.replace(",2026,0.4,", ",2021,0.4,"))
    (found,) = [f for f in audited(factors=tmp_path / "old.csv") if f.code == "CL718"]
    assert "a factor of 2021 for work of 2026" in found.message


def test_a_run_of_the_period_with_impossible_power_is_found(tmp_path):
    from carbonlens.ledger.store import Ledger

    case.write(tmp_path)
    (run,) = [r for r in case.runs() if r.run_id == "run-59"]
    (reading,) = run.energy
    wild = msgspec.structs.replace(reading, energy_j=reading.energy_j * 1_000_000)
    Ledger(tmp_path / "ledger").append(msgspec.structs.replace(run, run_id="wild", energy=(wild,)))
    found = audit_period(
        case.PERIOD,
        ledger=tmp_path / "ledger",
        inventory=tmp_path / "inventory",
        factors=tmp_path / "factors.csv",
        now_us=case.NOW_US,
    ).findings
    assert [f.subject for f in found if f.code == "CL709"] == ["run wild"]


def test_a_period_that_is_none_is_refused(place):
    with pytest.raises(UsageError):
        audit_period("May", ledger=place / "ledger", inventory=place / "inventory")


def test_a_rest_that_a_statement_says_to_be_unknown_is_no_row_that_it_forgot(tmp_path):
    """A meter with gaps leaves a lower bound, and what no run explains of it unknown."""
    case.write(tmp_path)
    inventory = tmp_path / "inventory"
    (inventory / "meters.toml").write_text(case.METER)
    (inventory / "readings.csv").write_text(
        f"meter,start,end,energy,unit\nmain,{case.PERIOD}-01,{case.PERIOD}-21,90,MWh\n"
    )
    where = {
        "ledger": tmp_path / "ledger",
        "inventory": inventory,
        "factors": tmp_path / "factors.csv",
        "now_us": case.NOW_US,
    }
    made = make_statement(case.PERIOD, **where).statement
    kinds = {x.kind: x for x in made.lines}
    assert kinds["unattributed"].estimate("facility_kwh").state == "unknown"
    file = tmp_path / "account.json"
    file.write_bytes(msgspec.json.encode(statement_json(made)))
    found = audit_files([file], factors=tmp_path / "factors.csv").findings
    assert {f.code for f in found} & SLIPS == set()
