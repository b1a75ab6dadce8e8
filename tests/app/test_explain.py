"""Explanations of records by their own ids, and ids that nothing has."""

from __future__ import annotations

import pytest

from carbonlens.app.explain import explain
from carbonlens.app.explain_known import Options
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
