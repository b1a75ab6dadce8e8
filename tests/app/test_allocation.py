"""Shared services from a ledger and an inventory: what is whose, and what is said."""

import calendar
from datetime import UTC, datetime
from decimal import Decimal

import pytest

from carbonlens.app.allocation import allocate
from carbonlens.domain.run import Reading, Run
from carbonlens.errors import SelectionError, UsageError
from carbonlens.ledger.store import Ledger
from tests.inventory.inventory_files import METER, SITE, TERMS, lay

NOW_US = 1_790_000_000_000_000
"""2026-09-21."""

SERVICE = '[[service]]\nid = "chat"\nsite = "berlin"\ntags = { app = "chat" }\nbasis = "tokens"\n'
USES = (
    "service,month,consumer,count\nchat,2026-03,search,300\nchat,2026-03,ads,100\nchat,2026-04,search,100\n"
)


def us(month, day):
    return calendar.timegm(datetime(2026, month, day, 12, tzinfo=UTC).timetuple()) * 1_000_000


def run(run_id, month, joules, *, role="serving", site="berlin", boundary="it", **tags):
    reading = Reading(
        component="gpu",
        energy_j=None if joules is None else Decimal(joules),
        boundary=boundary,
        grade="B",
        method="counter",
        state="unknown" if joules is None else "known",
        u_by_source_j={} if joules is None else {"nvml:gpu": joules * 0.025},
    )
    start = us(month, 10)
    return Run(run_id=run_id, role=role, site=site, start_us=start, end_us=start + 10**9,
               energy=(reading,), tags=tags)  # fmt: skip


@pytest.fixture
def place(tmp_path):
    store = Ledger(tmp_path / "ledger")
    for one in (
        run("a", 3, 4_000_000, app="chat"),
        run("b", 4, 2_000_000, app="chat"),
        run("idle", 4, 500_000, role="idle", app="chat"),
        run("other", 3, 9_000_000, app="batch"),
        run("elsewhere", 3, 7_000_000, site="paris", app="chat"),
    ):
        store.append(one)
    lay(tmp_path / "inventory", sites_toml=SITE, reporting_toml=TERMS, services_toml=SERVICE)
    (tmp_path / "inventory" / "service_uses-2026.csv").write_text(USES)
    return tmp_path


def found(place, period="2026Q2", **more):
    return allocate(period, inventory=place / "inventory", ledger=place / "ledger", now_us=NOW_US, **more)


def lines(one):
    return {(x.kind, x.name): x.exact for x in one.lines}


def test_a_year_by_the_uses_of_each_month(place):
    result = found(place, "2026")
    (chat,) = result.services
    assert lines(chat) == {
        ("consumer", "ads"): 1_000_000,
        ("consumer", "search"): 5_000_000,
        ("idle", "idle"): 500_000,
    }
    assert (chat.total.exact, chat.months, result.is_draft) == (6_500_000, ("2026-03", "2026-04"), True)
    assert chat.total.estimate.u_by_source["nvml:gpu"] == pytest.approx(6_500_000 * 0.025)
    assert result.findings == ()


def test_only_the_period_counts(place):
    (chat,) = found(place, "2026-03").services
    assert lines(chat) == {("consumer", "ads"): 1_000_000, ("consumer", "search"): 3_000_000}
    assert "CL477" in {f.code for f in found(place, "2026-05").findings}


def test_what_two_services_name_is_nobodys(place):
    more = SERVICE + '[[service]]\nid = "all"\ntags = { app = "chat" }\nbasis = "requests"\n'
    (place / "inventory" / "services.toml").write_text(more)
    result = found(place, "2026-03")
    doubled = [f for f in result.findings if f.code == "CL476"]
    assert [f.severity for f in doubled] == ["error"]
    assert "all and chat" in doubled[0].message
    # What only one of them names stays its own.
    assert [(s.service.service_id, s.total.exact) for s in result.services] == [("all", 7_000_000)]


def test_a_meter_beside_the_runs_tells_the_headroom(place):
    text = SERVICE + 'meter = "m1"\nidle = "shared"\n'
    (place / "inventory" / "services.toml").write_text(text)
    meter = METER.replace("facility", "it")
    rows = "meter,start,end,energy,unit\nm1,2026-03-01,2026-04-01,6,MJ\n"
    lay(place / "inventory", meters_toml=meter, readings_csv=rows)
    (chat,) = found(place, "2026-03").services
    assert lines(chat) == {("consumer", "ads"): 1_500_000, ("consumer", "search"): 4_500_000}
    assert {x.name: x.of_idle for x in chat.lines} == {"ads": 500_000, "search": 1_500_000}


def test_a_meter_of_another_boundary_is_never_mixed_with_runs(place):
    (place / "inventory" / "services.toml").write_text(SERVICE + 'meter = "m1"\n')
    rows = "meter,start,end,energy,unit\nm1,2026-03-01,2026-04-01,6,MJ\n"
    lay(place / "inventory", meters_toml=METER, readings_csv=rows)
    result = found(place, "2026-03")
    assert [(s.boundary, s.total.exact) for s in result.services] == [("facility", 6_000_000)]
    assert "CL477" in {f.code for f in result.findings}


def test_runs_of_unknown_energy_make_a_lower_bound(place):
    Ledger(place / "ledger").append(run("silent", 3, None, app="chat"))
    (chat,) = found(place, "2026-03").services
    assert chat.total.estimate.state == "unbounded"
    assert {x.estimate.state for x in chat.lines} == {"unbounded"}


def test_requests_that_make_no_sense_are_refused(place):
    with pytest.raises(UsageError, match="by month"):
        found(place, "2026-03-10")
    with pytest.raises(SelectionError, match="known: chat"):
        found(place, "2026-03", service="chet")
    (place / "inventory" / "services.toml").unlink()
    (place / "inventory" / "service_uses-2026.csv").unlink()
    with pytest.raises(SelectionError, match="no service"):
        found(place, "2026-03")
