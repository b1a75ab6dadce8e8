"""Every figure that a report of a study prints is explained: by its ledger, and from the report alone."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from carbonlens.app.business import with_business
from carbonlens.app.compare import compared, computed
from carbonlens.app.explain import explain_each
from carbonlens.app.explain_known import Options
from carbonlens.app.explain_report import explain_in_report, ids_in_report
from carbonlens.app.importing import import_files
from carbonlens.app.report import report
from carbonlens.errors import InputFileError, SelectionError
from carbonlens.reporting.explanation import walk
from tests.app.explained import differing, unknown_in
from tests.cli.commands import Shell

EXAMPLE = Path(__file__).parents[2] / "docs" / "examples" / "business"
KINDS = ("business-case", "engineering")


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A folder with the demo study of the docs in its ledger, and both reports of it as JSON."""
    folder = tmp_path_factory.mktemp("explained")
    for file in EXAMPLE.iterdir():
        shutil.copy(file, folder)
    import_files([folder / "demo_runs.csv"], ledger=folder / "ledger")
    found = compared(str(folder / "study.toml"), ledger=folder / "ledger")
    given = with_business(found, folder / "business.toml")
    for kind in KINDS:
        report(computed(given), sections=(kind,), formats=["json"], out_dir=folder, evidence=given)
    return folder


def printed(place, kind):
    return json.loads((place / f"{kind}.json").read_text("utf-8"))["figures"]


@pytest.mark.parametrize("kind", KINDS)
def test_every_figure_of_a_report_is_explained_as_it_is_printed(place, kind):
    figures = printed(place, kind)
    options = Options(
        study=str(place / "study.toml"), ledger=place / "ledger", business=place / "business.toml"
    )
    nodes = list(explain_each(figures, options))
    assert len(nodes) > 50
    assert differing(figures, nodes) == []
    assert unknown_in(nodes) == []


@pytest.mark.parametrize("kind", KINDS)
def test_every_figure_is_explained_from_the_report_alone(place, kind, monkeypatch):
    monkeypatch.setattr("carbonlens.ledger.opening.open_ledger", None)
    figures = printed(place, kind)
    nodes = list(explain_in_report(figures, place / f"{kind}.json"))
    assert differing(figures, nodes) == []
    assert unknown_in(nodes) == []
    # The runs travel with it: each figure of the baseline leads to their file and line.
    (one,) = explain_in_report(("baseline.energy",), place / f"{kind}.json")
    assert any("demo_runs.csv:" in line for n in walk(one) for line in n.item.details)
    assert ids_in_report(place / f"{kind}.json") == tuple(figures)


def altered(place, tmp_path, change):
    shape = json.loads((place / "engineering.json").read_text("utf-8"))
    change(shape)
    file = tmp_path / "altered.json"
    file.write_text(json.dumps(shape), "utf-8")
    return file


def test_without_its_runs_a_report_tells_what_it_prints(place, tmp_path):
    file = altered(place, tmp_path, lambda shape: shape.update(evidence=None))
    figures = printed(place, "engineering")
    nodes = list(explain_in_report(figures, file))
    assert differing(figures, nodes) == []
    assert not any(n.item.kind == "run" for node in nodes for n in walk(node))


def test_what_a_report_lacks_is_named_with_the_command_that_has_it(place, tmp_path):
    def change(shape):
        shape["evidence"] = None
        shape["figures"]["baseline.energy"] |= {"inputs": ["run:a/1", "energy.2026Q3.x"]}

    (node,) = explain_in_report(("baseline.energy",), altered(place, tmp_path, change))
    said = [(c.item.kind, c.item.title, c.item.details) for c in node.children]
    assert said == [
        ("unknown", "stands in the ledger", ("needs the ledger: carbonlens explain 'run:a/1' --ledger DIR",)),
        (
            "unknown",
            "not printed in the report",
            ("needs the ledger: carbonlens explain 'energy.2026Q3.x' --ledger DIR",),
        ),
    ]


@pytest.mark.parametrize(
    "change",
    [
        lambda shape: shape.update(schema="carbonlens/compare/1"),
        lambda shape: shape.update(figures=[]),
        lambda shape: shape["figures"].update({"baseline.energy": {"value": "much"}}),
        lambda shape: shape["figures"].update({"baseline.energy": 7}),
    ],
)
def test_what_is_no_report_is_refused(place, tmp_path, change):
    with pytest.raises(InputFileError) as refused:
        list(explain_in_report(("baseline.energy",), altered(place, tmp_path, change)))
    assert refused.value.where.endswith("altered.json")


def _huge(run):
    run["energy"] = [part | {"energy_j": "1e999"} for part in run["energy"]]


@pytest.mark.parametrize(
    "change", [_huge, lambda run: run.update(units="-1"), lambda run: run.update(unit="x")]
)
def test_runs_from_which_no_figure_follows_are_told(place, tmp_path, change):
    file = altered(place, tmp_path, lambda shape: [change(run) for run in shape["evidence"]["runs"]])
    with pytest.raises(InputFileError, match="cannot be computed") as refused:
        list(explain_in_report(("baseline.energy",), file))
    assert refused.value.where == str(file)


def test_an_id_that_a_report_has_not_is_refused_with_near_ones(place):
    with pytest.raises(SelectionError) as refused:
        list(explain_in_report(("baseline.enery",), place / "engineering.json"))
    assert "baseline.energy" in (refused.value.mend or "")
    assert "--report" in (refused.value.mend or "")


def test_the_command_takes_a_report(place):
    shell = Shell(place)
    listed = shell("explain", "--report", "engineering.json", "--list").stdout.split()
    assert listed == list(printed(place, "engineering"))
    told = shell("explain", listed[0], "--report", "engineering.json").stdout
    assert "not verified" in told
    shape = shell.json("explain", listed[0], "--report", "engineering.json")
    assert shape["figure"]["estimate"]["value"] == printed(place, "engineering")[listed[0]]["value"]
    refused = shell("explain", listed[0], "--report", "engineering.json", "--ledger", "ledger", code=2)
    assert "--report takes no --ledger" in refused.stderr
    assert shell("explain", "--report", "engineering.json", code=2).stderr.startswith("carbonlens")
    shell("explain", listed[0], "--report", "nowhere.json", code=3)
