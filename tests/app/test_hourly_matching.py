"""Hourly matching: certificates with hours against load by the hour, or why there is none."""

from decimal import Decimal

import pytest

from carbonlens.app import hourly_matching
from carbonlens.app.statement import make_statement
from tests.app import statement_case as case

EXTRA = case.CERTIFICATES.replace('"GO-1"', '"PPA-1"').replace('kind = "certificate"', 'kind = "contract"')


def made(folder):
    return make_statement(
        case.PERIOD,
        ledger=folder / "ledger",
        inventory=folder / "inventory",
        factors=folder / "factors.csv",
        now_us=case.NOW_US,
    )


def with_hours(folder, kwh_by_hour, *, certificates=case.CERTIFICATES, name="GO-1"):
    lines = [f"{name},{stamp(hour)},{Decimal(str(kwh)) / 1000:f}" for hour, kwh in kwh_by_hour.items()]
    text = "\n".join(["certificate,hour_utc,mwh", *lines])
    (folder / "inventory" / "certificate_hours.csv").write_text(text + "\n")
    (folder / "inventory" / "certificates.toml").write_text(certificates)


def stamp(hour):
    return f"2026-05-{hour // 24 + 1:02}T{hour % 24:02}:00Z"


def loads():
    """Return the lab's facility kWh by hour of the month, summed in plain floats."""
    found = {}
    for i, run in enumerate(case.runs()):
        if run.site == "lab":
            (reading,) = run.energy
            host = case.HOST if reading.boundary == "device" else 1
            found[i * 7] = float(reading.energy_j / 3_600_000 * host * case.PUE)
    return found


def test_the_score_is_the_sum_of_hourly_minima_over_the_load(tmp_path):
    case.write(tmp_path)
    load = loads()
    # All of the first ten hours, half of the next ten, and hours in which nothing runs.
    hours = list(load)
    clean = dict.fromkeys(hours[:10], 1000.0) | dict.fromkeys(hours[10:20], 1.0) | {3: 500.0, 5: 500.0}
    with_hours(tmp_path, clean)
    found = made(tmp_path)
    (one,) = found.hourly.matches
    assert (one.entity, one.market) == ("Test Ltd", "DE")
    matched = sum(min(load[h], clean.get(h, 0.0)) for h in load)
    assert one.match.load_kwh.value == pytest.approx(sum(load.values()), rel=1e-9)
    assert one.match.matched_kwh.value == pytest.approx(matched, rel=1e-9)
    assert one.match.score.value == pytest.approx(matched / sum(load.values()), rel=1e-9)
    assert one.match.hourly_kg.value == pytest.approx((sum(load.values()) - matched) * 0.7, rel=1e-9)
    assert one.match.score.low < one.match.score.value < one.match.score.high
    assert found.hourly.why_none == ""


def test_its_figures_are_in_the_statement_and_change_no_other(tmp_path):
    case.write(tmp_path)
    before = {f.figure_id: f.estimate for f in made(tmp_path).statement.figures}
    with_hours(tmp_path, dict.fromkeys(loads(), 1.0))
    statement = made(tmp_path).statement
    after = {f.figure_id: f for f in statement.figures}
    at = f"statement.{case.PERIOD}.Test Ltd.DE.hourly"
    assert {name for name in after if name not in before} == {
        f"{at}.{n}"
        for n in (
            "load_kwh",
            "clean_kwh",
            "matched_kwh",
            "score",
            "annual_matched_kwh",
            "hourly_kg",
            "annual_kg",
        )
    }
    assert all(after[name].estimate == estimate for name, estimate in before.items())
    inputs = after[f"{at}.load_kwh"].inputs
    assert {"own/DE-residual", f"statement.{case.PERIOD}.lab.facility_kwh"} <= set(inputs)
    assert "GO-1" in after[f"{at}.clean_kwh"].inputs


@pytest.mark.parametrize(
    ("certificates", "hours", "why"),
    [
        (None, None, hourly_matching.NO_CERTIFICATE),
        (case.CERTIFICATES, None, hourly_matching.NO_HOURS),
        (case.CERTIFICATES.replace("unique_claim = true", "unique_claim = false"), 1, "counts"),
        (case.CERTIFICATES.replace('market = "DE"', 'market = "FR"'), 1, "counts"),
        (case.CERTIFICATES.replace('period = "2026"', 'period = "2025"'), 1, "counts"),
    ],
)
def test_without_a_score_it_says_why(tmp_path, certificates, hours, why):
    case.write(tmp_path)
    if hours is not None:
        with_hours(tmp_path, {7: 1.0}, certificates=certificates)
    elif certificates is None:
        (tmp_path / "inventory" / "certificates.toml").unlink()
    hourly = made(tmp_path).hourly
    assert hourly.matches == ()
    assert why in hourly.why_none


def test_instruments_without_hours_are_not_matched_and_said_so(tmp_path):
    case.write(tmp_path)
    with_hours(tmp_path, {7: 1.0}, certificates=case.CERTIFICATES + EXTRA, name="PPA-1")
    found = made(tmp_path)
    (one,) = found.hourly.matches
    assert one.match.matched_kwh.value == 1.0
    said = [f for f in found.statement.findings if f.code == "CL396"]
    assert "GO-1" in said[0].message


def hourly_readings(folder, kwh):
    rows = [f"main,{stamp(h)},{_end(h)},{kwh},kWh" for h in range(case.HOURS)]
    text = "\n".join(["meter,start,end,energy,unit", *rows])
    (folder / "inventory" / "readings.csv").write_text(text + "\n")


def _end(hour):
    return "2026-06-01T00:00Z" if hour + 1 == case.HOURS else stamp(hour + 1)


def test_a_metered_site_is_matched_by_its_meter(tmp_path):
    case.write(tmp_path, with_meter=Decimal(1))
    hourly_readings(tmp_path, 10)
    with_hours(tmp_path, dict.fromkeys(range(100), 4.0) | {200: 50.0})
    (one,) = made(tmp_path).hourly.matches
    assert one.match.load_kwh.value == pytest.approx(10 * case.HOURS)
    assert one.match.matched_kwh.value == pytest.approx(410)
    assert one.match.score.value == pytest.approx(410 / (10 * case.HOURS))


def test_readings_longer_than_an_hour_leave_the_score_unknown(tmp_path):
    case.write(tmp_path, with_meter=Decimal(7440))
    with_hours(tmp_path, dict.fromkeys(range(100), 4.0))
    found = made(tmp_path)
    (one,) = found.hourly.matches
    assert one.match.score.state == "unknown"
    assert {"CL384", "CL465"} <= {f.code for f in found.statement.findings}


def test_energy_that_is_a_lower_bound_leaves_the_score_unknown(tmp_path):
    case.write(tmp_path)
    path = tmp_path / "inventory" / "sites.toml"
    path.write_text(path.read_text().replace("pue = 1.25\n", ""))
    with_hours(tmp_path, dict.fromkeys(loads(), 4.0))
    (one,) = made(tmp_path).hourly.matches
    assert one.match.score.value is None
