"""Explanations of records by their own ids, and ids that nothing has."""

from __future__ import annotations

import pytest

from carbonlens.app.explain import explain
from carbonlens.app.explain_known import Options
from carbonlens.app.explain_quarter import is_of_quarter, is_on_pages, quarter_of
from carbonlens.app.importing import import_files
from carbonlens.errors import SelectionError
from carbonlens.reporting.explanation import walk
from tests.app import statement_case as case


@pytest.fixture(scope="module")
def options(tmp_path_factory):
    folder = tmp_path_factory.mktemp("explain")
    case.write(folder, with_meter=1000)
    return Options(ledger=folder / "ledger", inventory=folder / "inventory", factors=folder / "factors.csv")


@pytest.mark.parametrize(
    ("name", "kind", "said"),
    [
        ("pue:lab", "declared", "file sites.toml:2"),
        ("wue:lab", "declared", "file sites.toml:2"),
        ("wue:edge", "unstated", "nobody states it"),
        ("pue:nowhere", "unstated", "no site of the inventory"),
        ("lab-2026.day", "tariff", "file tariffs.toml:2"),
        ("GO-1", "certificate", "file certificates.toml:2"),
        ("own/FR", "factor", "row: factors.csv, line 4"),
        ("run-07", "run", "file runs.csv:9"),
    ],
)
def test_a_record_leads_to_its_line(options, name, kind, said):
    item = explain(name, options).item
    assert item.kind == kind
    assert any(said in line for line in item.details), item.details


def test_a_bundled_row_is_told_with_its_table_and_line(options):
    from carbonlens.factors.store import bundled_tables

    table = bundled_tables()[0]
    (place, row) = next(iter(table.placed()))
    details = explain(row.factor_id, options).item.details
    assert any(f"row: bundled {place.rpartition('/')[2]}" in line for line in details)


def test_a_factor_of_several_months_is_opened_into_its_rows(options):
    node = explain("own/DE + own/FR", options)
    assert [child.item.item_id for child in node.children] == ["own/DE", "own/FR"]
    assert all(child.item.kind == "factor" for child in node.children)
    with pytest.raises(SelectionError):
        explain("own/DE + own/XX", options)


def test_a_meter_leads_to_its_readings(options):
    node = explain("meter:main", options)
    (reading,) = node.children
    assert reading.item.kind == "reading"
    assert any("readings.csv:2" in line for line in reading.item.details)


def test_metered_energy_names_the_overhead_between_meter_and_figure(options):
    node = explain(f"statement.{case.PERIOD}.lab.metered.it_kwh", options)
    found = {n.item.item_id for n in walk(node)}
    assert {"meter:main", "pue:lab"} <= found
    node = explain(f"statement.{case.PERIOD}.lab.metered.facility_kwh", options)
    assert "pue:lab" not in {n.item.item_id for n in walk(node)}


@pytest.mark.parametrize(
    ("wrong", "near"), [("pue:lap", "pue:lab"), ("own/DEE", "own/DE"), ("lab-2026.dai", "lab-2026.day")]
)
def test_near_ids_are_named(options, wrong, near):
    if wrong == "pue:lap":
        assert explain(wrong, options).item.kind == "unstated"
        return
    with pytest.raises(SelectionError) as refused:
        explain(wrong, options)
    assert near in (refused.value.mend or "")


def test_runs_of_one_id_are_all_told_and_each_has_a_name(tmp_path):
    """Ids of imports are unique within a study only: neither run stands before the other."""
    header = "run_id,study,step,energy_j,units,start_utc,duration_s,boundary,energy_grade,site\n"
    rows = (("1", "a", 3600), ("1", "b", 7200), ("2", "a", 50))
    for run_id, study, joules in rows:
        (tmp_path / f"{study}{run_id}.csv").write_text(
            f"{header}{run_id},{study},s,{joules},1,2026-05-04T08:00:00Z,60,it,B,lab\n"
        )
    import_files([tmp_path / f"{s}{r}.csv" for r, s, _ in rows], ledger=tmp_path / "ledger")
    options = Options(ledger=tmp_path / "ledger", inventory=tmp_path / "none", period="2026-05")
    (tmp_path / "none").mkdir()
    node = explain("run:1", options)
    assert node.item.kind == "runs"
    assert "2 runs have the id 1" in node.item.title
    assert [c.item.estimate.value for c in node.children] == [3600, 7200]
    assert [c.item.item_id for c in node.children] == ["run:a/1", "run:b/1"]
    assert "study b" in explain("run:b/1", options).item.title
    assert explain("run:2", options).item.kind == "run"
    # Lists of runs count both, and lead to both.
    (runs,) = [
        n.item for n in walk(explain("energy.2026-05.lab.it.it_kwh", options)) if n.item.kind == "runs"
    ]
    assert runs.inputs == ("run:a/1", "run:b/1", "run:2")


def test_an_unknown_id_is_no_complaint_about_a_study_that_nobody_asked_for(tmp_path):
    """Two steps on other hardware cannot be compared, and that is no answer to an id of a run."""
    header = "run_id,study,step,energy_j,units,start_utc,duration_s,boundary,energy_grade,site,hardware\n"
    rows = (("1", "base", "A100"), ("2", "int8", "H100"))
    text = "".join(f"{r},s,{step},10,1,2026-05-04T08:00:00Z,60,it,B,lab,{hw}\n" for r, step, hw in rows)
    (tmp_path / "runs.csv").write_text(header + text)
    import_files([tmp_path / "runs.csv"], ledger=tmp_path / "ledger")
    with pytest.raises(SelectionError, match="nothing has the id 'run:t9'"):
        explain("run:t9", Options(ledger=tmp_path / "ledger"))


@pytest.mark.parametrize(
    "name",
    ["change.2026Q3.2026Q2.cost.total.EUR.share", "to_date.2026Q3.total.water_site_l", "rate.2026Q3.A.DE.1",
     "intensity.2025Q4.sq%2E km.energy", "factor.12.high", "close.2026Q3.runs", "left_out.restated.0",
     "others.tag:service.groups", "least.team.groups", "restated.0.12.delta", "prior.3.energy",
     "restated.0.base_year.location.stated", "statement.2026Q3.every_scope.market_at_least_kg"],
)  # fmt: skip
def test_ids_of_a_quarters_report_are_told_from_others(name):
    assert is_of_quarter(name)
    assert is_on_pages(name)


@pytest.mark.parametrize(
    "name", ["own/DE", "factor.of.mine", "changes", "step.int8.savings.cost", "total.share"]
)
def test_other_ids_are_none_of_a_quarters_report(name):
    assert not is_on_pages(name)
    assert quarter_of(name) is None
