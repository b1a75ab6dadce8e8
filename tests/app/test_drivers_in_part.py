"""Work of which a part of the energy is only a lower bound: the rest of it is no efficiency."""

from __future__ import annotations

from decimal import Decimal

import pytest

from carbonlens.app.drivers import Source, make_drivers
from carbonlens.app.drivers_savings import make_register
from carbonlens.app.importing import import_files
from carbonlens.app.importing_placing import Said, placing_of
from carbonlens.app.inventory import load_inventory
from carbonlens.app.statement import make_statement
from carbonlens.app.sustainability_scores import _intensities, works_of
from carbonlens.factors.store import open_factors
from scripts.write_company import write
from tests.app.company_case import NOW_US

EARLIER = {"2026-07": "2026-04", "2026-08": "2026-05", "2026-09": "2026-06", "-31T": "-30T"}
REGISTER = """\
[[initiative]]
id = "nothing"
title = "Nothing was done"
owner = "nobody"
status = "running"
start = "2026-07-01"
tags = {kind = "ranker"}
claimed = {energy_kwh = 120}
"""


def quarters(folder, every):
    """One class of work at one site, the same in two quarters; of the later one some runs tell less."""
    write(folder)
    table = folder / "ranker.csv"
    head, *rows = table.read_text("utf-8").splitlines()
    columns = head.split(",")
    start, site, boundary = (columns.index(n) for n in ("start_utc", "site", "boundary"))
    kept = [c for c in (r.split(",") for r in rows) if c[site] == "paris" and c[start] >= "2026-07-01"]
    made = []
    for number, cells in enumerate(kept):
        before = list(cells)
        before[0] += "-before"
        for month, other in EARLIER.items():
            before[start] = before[start].replace(month, other)
        if every and number % every == 0:
            cells[boundary] = "device"
        made += [before, cells]
    table.write_text("\n".join([head, *(",".join(c) for c in made)]) + "\n", "utf-8")
    ledger = folder / "ledger"
    import_files([table], ledger=ledger, placing=placing_of(Said(tags={"kind": "ranker"})))
    (folder / "inventory" / "initiatives.toml").write_text(REGISTER, "utf-8")
    given = {"inventory": folder / "inventory", "factors": folder / "factors.csv", "ledger": ledger}
    return given | {"now_us": NOW_US}


@pytest.fixture(scope="module", params=[0, 2, 3])
def given(request, tmp_path_factory):
    return request.param, quarters(tmp_path_factory.mktemp("company"), request.param)


@pytest.mark.slow
def test_energy_that_is_only_a_lower_bound_is_no_saving_per_unit(given):
    """The work done with it stands beside it among the lower bounds, as volume that is not in the rest."""
    every, kept = given
    figures = {
        f.figure_id: f.estimate.value for f in make_drivers("2026Q3", "2026Q2", **kept).drivers.figures
    }
    prefix = "drivers.2026Q3.2026Q2.workload.energy"
    whole = figures[f"{prefix}.unit:request.before"]
    assert abs(figures[f"{prefix}.energy"]) < 0.01 * whole
    share = 1 / every if every else 0
    assert figures[f"{prefix}.volume"] == pytest.approx(-share * whole, rel=0.05, abs=1e-9)


@pytest.mark.slow
def test_an_intensity_of_work_that_is_known_in_part_is_unknown(given):
    every, kept = given
    made = make_statement("2026Q3", **kept)
    source = Source(
        kept=load_inventory(kept["inventory"]),
        factors=open_factors(kept["factors"]),
        ledger=kept["ledger"],
        inventory=kept["inventory"],
        now_us=NOW_US,
        held={"2026Q3": made},
    )
    work = works_of(["2026Q3"], source, "workload")["2026Q3"]
    found = dict(_intensities("request", "2026Q3", work))
    assert (found["energy"].estimate.value is None) == bool(every)
    assert (found["count"].estimate.value is None) == bool(every)


@pytest.mark.slow
def test_a_claim_about_work_that_is_known_in_part_is_undetermined(given):
    every, kept = given
    (found,) = make_register("2026Q3", **kept).register.found
    assert found.verdict != "confirmed"
    if every:
        assert (found.verdict, found.savings) == ("undetermined", {})
        assert "lower bound" in found.reason
    assert found.claimed["energy_kwh"].value > Decimal(0)
