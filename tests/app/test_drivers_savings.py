"""Initiatives of the two quarters, found again at the later one's volume and mix, and what is refused."""

from __future__ import annotations

import pytest

from carbonlens.app.drivers_savings import make_register
from carbonlens.app.explain import explain
from carbonlens.app.explain_known import Options
from carbonlens.domain.drivers_savings import Adjustment
from carbonlens.errors import SelectionError, UsageError
from carbonlens.reporting.drivers_savings_json import register_json, register_lines
from carbonlens.reporting.explanation import walk
from tests.app import quarters_case as case

CHAT = {"workload": "chat", "site": "berlin"}


@pytest.fixture(scope="module")
def ledger(tmp_path_factory):
    return case.write(tmp_path_factory.mktemp("initiatives"))


@pytest.fixture(scope="module")
def register(ledger):
    return make_register("2026Q3", **case.given(ledger)).register


def of(register, name):
    return next(f for f in register.found if f.initiative.initiative_id == name)


def test_the_saving_is_that_of_the_formula_at_the_periods_volume_and_pue(register):
    found = of(register, "int8-chat")
    per_unit = case.it_kwh("2026Q2", **CHAT) / case.units("2026Q2", **CHAT)
    measured = sum(
        float(r["energy_j"]) / 3.6e6 * case.pue(r)
        for r in case.rows()
        if r["quarter"] == "2026Q3" and r["workload"] == "chat"
    )
    pue = measured / case.it_kwh("2026Q3", **CHAT)
    adjusted = per_unit * case.units("2026Q3", **CHAT) * pue
    assert found.adjusted_kwh.value == pytest.approx(adjusted)
    assert found.measured_kwh.value == pytest.approx(measured)
    assert found.savings["energy_kwh"].value == pytest.approx(adjusted - measured)
    assert found.baseline == "2026Q2"
    assert found.days == (92, 92)


def test_kg_and_money_are_the_saving_at_the_periods_own_rates(register):
    found = of(register, "int8-chat")
    saved = found.savings["energy_kwh"].value
    assert found.savings["money"].value == pytest.approx(saved * 0.2430)
    assert found.savings["emissions_market_kg"].value == pytest.approx(saved * 0.62)
    assert 0.345 < found.savings["emissions_location_kg"].value / saved < 0.352


def test_verdicts_follow_intervals_and_claims_of_the_days_in_effect(register):
    verdicts = {f.initiative.initiative_id: f.verdict for f in register.found}
    assert verdicts == {
        "int8-chat": "confirmed",
        "short-summaries": "not confirmed",
        "rank-cache": "undetermined",
    }
    found = of(register, "int8-chat")
    assert found.claimed["energy_kwh"].value == pytest.approx(1450 * 92 / 365)
    assert found.scatter.days == 46
    codes = {f.code for f in register.findings}
    assert {"CL660", "CL661"} <= codes


def test_the_scatter_of_the_days_is_in_the_interval(register):
    found = of(register, "int8-chat")
    saving = found.savings["energy_kwh"]
    shared = abs(saving.value) * 0.05 / 1.96
    assert saving.u_total > shared
    assert saving.u_random > 0


def test_lines_of_a_report_stand_claimed_beside_found_with_their_figures(register):
    lines = register_lines(register)
    known = {f.figure_id for f in register.figures}
    assert {i for line in lines for i in line.figures if i is not None} <= known
    energy = next(x for x in lines if x.initiative_id == "int8-chat" and x.name == "energy_kwh")
    assert energy.claimed.unit == energy.found.unit == "kWh"
    assert energy.verdict == "confirmed"
    shape = register_json(register)
    assert [i["verdict"] for i in shape["initiatives"]] == [f.verdict for f in register.found]


@pytest.mark.slow
def test_a_non_routine_adjustment_is_named_and_in_the_figures(ledger, register):
    stated = Adjustment(initiative_id="rank-cache", kwh=12.5, why="a second index")
    made = make_register("2026Q3", adjustments=[stated], **case.given(ledger))
    found = of(made.register, "rank-cache")
    assert found.adjustments == (stated,)
    name = "initiatives.2026Q3.2026Q2.workload.rank-cache~12.5.saving.energy_kwh"
    figures = {f.figure_id: f for f in made.register.figures}
    before = of(register, "rank-cache").savings["energy_kwh"].value
    assert figures[name].estimate.value == pytest.approx(before + 12.5)
    where = case.given(ledger)
    options = Options(ledger=where["ledger"], inventory=where["inventory"], factors=where["factors"])
    node = explain(name, options)
    assert node.item.estimate.value == pytest.approx(before + 12.5)
    assert {"runs", "run", "reading"} <= {n.item.kind for n in walk(node)}
    assert "unknown" not in {n.item.kind for n in walk(node)}


def test_an_adjustment_of_no_initiative_and_a_later_baseline_are_refused(ledger):
    stated = Adjustment(initiative_id="rank-cash", kwh=1.0, why="x")
    with pytest.raises(SelectionError, match="no initiative 'rank-cash'"):
        make_register("2026Q3", adjustments=[stated], **case.given(ledger))
    with pytest.raises(UsageError, match="overlap"):
        make_register("2026Q3", "2026-08", **case.given(ledger))
    with pytest.raises(SelectionError, match="no initiative is in effect in 2026Q2"):
        make_register("2026Q2", **case.given(ledger))


REGISTER = """
[[initiative]]
id = "no-tags"
title = "Nobody says where"
start = 2026-07-01

[[initiative]]
id = "nowhere"
title = "Of runs that are not there"
start = 2026-07-01
tags = { service = "none" }

[[initiative]]
id = "uncounted"
title = "Of work that nobody counts"
start = 2026-07-01
tags = { workload = "retrain" }

[[initiative]]
id = "new-work"
title = "Of work that was not there before"
start = 2026-07-01
tags = { workload = "guard" }

[[initiative]]
id = "early"
title = "Begun before any run"
start = 2025-01-01
tags = { workload = "chat" }

[[initiative]]
id = "late"
title = "Begun in August"
start = 2026-08-16
tags = { workload = "chat" }
claimed = { energy_kwh = 365 }

[[initiative]]
id = "twin"
title = "Of the same runs"
start = 2026-07-01
tags = { service = "serving" }
"""


@pytest.mark.slow
def test_what_cannot_be_found_is_undetermined_and_says_why(ledger, tmp_path):
    inventory = tmp_path / "inventory"
    inventory.mkdir()
    for name in ("sites.toml", "reporting.toml", "tariffs.toml"):
        (inventory / name).write_text((case.FIXTURE / "inventory" / name).read_text())
    (inventory / "initiatives.toml").write_text(REGISTER)
    made = make_register("2026Q3", **case.given(ledger) | {"inventory": inventory}).register
    found = {f.initiative.initiative_id: f for f in made.found}
    reasons = {name: f.reason for name, f in found.items() if not f.savings}
    assert "tags do not say" in reasons["no-tags"]
    assert "has its tags" in reasons["nowhere"]
    assert "count no work" in reasons["uncounted"]
    assert "has its tags" in reasons["new-work"]
    assert "in a period before 2025-01-01" in reasons["early"]
    assert {found[name].verdict for name in reasons} == {"undetermined"}
    assert found["late"].days == (46, 92)
    assert found["late"].claimed["energy_kwh"].value == pytest.approx(46)
    assert "CL662" in {f.code for f in made.findings}
    twin, late = found["twin"], found["late"]
    assert twin.verdict == late.verdict == "undetermined"
    assert "late" in twin.reason
    assert "ended since the baseline" in " ".join(twin.events)
