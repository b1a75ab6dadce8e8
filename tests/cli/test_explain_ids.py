"""Every figure that a command prints as JSON has an id, and explain leads each down to what was stated."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from carbonlens.app.explain import explain_each
from carbonlens.reporting.explanation import Node, walk
from tests.app import explain_case as case
from tests.cli.commands import Shell

FILE_LINE = re.compile(r"file [\w.-]+\.(csv|toml):\d+")
TABLE_ROW = re.compile(r"row: (bundled )?[\w.-]+\.csv, (line|row) \d+|row: file [\w.-]+:\d+")
AT_A_LINE = {"charge", "meter", "tariff", "asset", "declared", "expense", "exchange_rate", "certificate"}
COMMANDS = {
    "account": ("account", "--period", case.PERIOD, "--by", "tag:service"),
    "charges": ("charges", "--period", "2026-03"),
    "charges_by_energy": ("charges", "--kind", "billed", "--weights", "energy"),
    "sci": ("sci", "--study", "rank", "--unit", "item", "--units", "4000"),
    "sci_for_ai": tuple("sci --ai consumer --period 2026Q1 --unit token --units 1e9 --per 1e6".split()),
    "allocate": ("allocate", "--period", "2026-03"),
    "compare": ("compare", "--study", "rank", "--assumptions", "assumptions.toml", "--volume", "1e6 a year"),
    "compare_one_unit": ("compare", "--study", "rank", "--assumptions", "assumptions.toml"),
}


@pytest.fixture(scope="module")
def place(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("explain")
    case.write(folder)
    shell = Shell(folder)
    shell("import", "runs.csv", "--tag", "service=ranking")
    shell("import", "bill.csv")
    return folder


@pytest.fixture(scope="module")
def printed(place):
    shell = Shell(place)
    return {name: shell.json(*arguments) for name, arguments in COMMANDS.items()}


def estimates(node):
    """Yield every estimate of a JSON value."""
    if isinstance(node, dict):
        if {"value", "unit", "state"} <= node.keys():
            yield node
        for child in node.values():
            yield from estimates(child)
    elif isinstance(node, list):
        for child in node:
            yield from estimates(child)


def options(name: str, place: Path):
    if not name.startswith("compare"):
        return case.options(place)
    more = {"study": "rank", "assumptions": place / "assumptions.toml"}
    return case.options(place, **more, **({"volume": "1e6 a year"} if name == "compare" else {}))


def ids_of(name: str, shape) -> list[str]:
    found = [e["id"] for e in estimates(shape) if "id" in e]
    found += [f["id"] for f in shape.get("figures", ())]
    if name.startswith("charges"):
        found += [p["figure"] for p in (*shape["parts"], *shape["invoices"])]
        for key in ("run_figures", "cost_figures"):
            found += [i for ids in shape[key].values() for i in ids.values()]
        found += shape["savings_figures"].values()
    return list(dict.fromkeys(found))


def wrong_leaves(node: Node) -> list[str]:
    """Return what ends a tree and is no file line, table row, reading or stated assumption."""
    return [
        f"{found.item.kind} {found.item.item_id}"
        for found in walk(node)
        if not found.children and not found.hidden and not found.is_repeated and not _is_leaf(found)
    ]


def _is_leaf(found: Node) -> bool:
    item = found.item
    said = "\n".join(item.details)
    if item.kind in AT_A_LINE:
        return FILE_LINE.search(said) is not None
    if item.kind in ("factor", "price"):
        return TABLE_ROW.search(said) is not None
    if item.kind == "reading":
        # One of a run stands below the run's file line, and tells how it was made itself.
        return "grade" in said
    return item.kind in ("assumption", "study", "unstated")


@pytest.mark.parametrize("name", ["account", "allocate"])
def test_every_estimate_has_an_id(printed, name):
    own = {k: v for k, v in printed[name].items() if k != "figures"}
    found = list(estimates(own))
    assert len(found) > 2
    assert [e for e in found if "id" not in e and e["state"] != "not_applicable"] == []


def test_every_amount_of_a_comparison_has_an_id(printed):
    """Kilograms and money; ratios and measures of the arms are the runs' own."""
    found = [e for e in estimates(printed["compare"]) if e["unit"] in ("kg", "EUR") or e["unit"] == "J"]
    named = [e for e in found if "id" in e]
    assert {e["unit"] for e in named} == {"kg", "EUR", "J"}
    assert [e for e in found if "id" not in e and e["unit"] != "J"] == []
    assert {e["id"] for e in named} >= {"step.int8.savings.emissions_location", "total.savings.cost"}


def test_amounts_of_bills_name_their_figures(printed):
    shape = printed["charges"]
    figures = {f["id"]: f["estimate"]["value"] for f in shape["figures"]}
    for currency, runs in shape["runs"].items():
        for run, amount in runs.items():
            assert figures[shape["run_figures"][currency][run]] == pytest.approx(amount)
        for kind, amount in shape["cost"][currency].items():
            assert figures[shape["cost_figures"][currency][kind]] == pytest.approx(amount)
    assert [figures[p["figure"]] for p in shape["parts"]] == [
        pytest.approx(p["amount"]) for p in shape["parts"]
    ]


@pytest.mark.slow
@pytest.mark.parametrize("name", COMMANDS)
def test_each_figure_leads_down_to_what_was_stated(printed, place, name):
    ids = ids_of(name, printed[name])
    assert len(ids) > 2
    wrong = {}
    for figure_id, node in zip(ids, explain_each(ids, options(name, place)), strict=True):
        found = wrong_leaves(node)
        if found:
            wrong[figure_id] = found
    assert wrong == {}, json.dumps(wrong, indent=1)[:4000]


@pytest.mark.slow
@pytest.mark.parametrize("name", COMMANDS)
def test_the_root_of_a_tree_is_the_number_that_was_printed(printed, place, name):
    shape = printed[name]
    values = {e["id"]: e["value"] for e in estimates(shape) if "id" in e}
    values |= {f["id"]: f["estimate"]["value"] for f in shape.get("figures", ())}
    for node, (figure_id, value) in zip(
        explain_each(values, options(name, place)), values.items(), strict=True
    ):
        told = node.item.estimate
        if value is not None:
            assert told is not None, figure_id
            assert told.value == pytest.approx(value), figure_id
