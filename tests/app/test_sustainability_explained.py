"""Every figure that a quarter's report prints is explained: by its ledger, and from the report alone."""

from __future__ import annotations

import json

import pytest

from carbonlens.app.explain import explain, explain_each
from carbonlens.app.explain_known import Options
from carbonlens.app.explain_report import explain_in_report
from carbonlens.errors import SelectionError
from carbonlens.reporting.explanation import walk
from tests.app import company_case
from tests.app.explained import differing, unknown_in

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def company(company_report):
    return company_report.places


@pytest.fixture(scope="module")
def made(company_report):
    return company_report.material


@pytest.fixture(scope="module")
def report(company_report):
    return company_report.file("json")


@pytest.fixture
def once(made, monkeypatch):
    """What the report is made of is gathered once: it is the same each time, and takes long."""

    def gathered(period, **_):
        assert period in (None, "2026Q3")
        return made.gathered

    monkeypatch.setattr("carbonlens.app.explain_quarter.gather", gathered)


def figures_of(report):
    return json.loads(report.read_text("utf-8"))["figures"]


def options(company, **more):
    return Options(now_us=company_case.NOW_US, **company, **more)


def test_every_figure_of_a_quarter_is_explained_as_it_is_printed(report, company, once):
    figures = figures_of(report)
    # Without a word about the quarter: ids name it, and the last one with runs stands in for the rest.
    nodes = list(explain_each(figures, options(company)))
    heads = {name.split(".")[0] for name in figures}
    assert heads >= {"statement", "change", "to_date", "intensity", "drivers", "initiatives", "sci", "factor"}
    assert differing(figures, nodes) == []
    assert unknown_in(nodes) == []
    # A change leads to both quarters, and each of them down to readings and factors.
    change = dict(zip(figures, nodes, strict=True))["change.2026Q3.2026Q2.scope_2.location_kg"]
    ends = [c.item.item_id for c in change.children]
    assert ends == ["statement.2026Q3.scope_2.location_kg", "statement.2026Q2.scope_2.location_kg"]
    for child in change.children:
        assert {"reading", "factor"} <= {n.item.kind for n in walk(child)}


@pytest.mark.parametrize("name", ["factor.99.low", "rate.2026Q3.x.1"])
def test_what_no_report_prints_is_refused(name, company, once):
    with pytest.raises(SelectionError, match="nothing has the id"):
        explain(name, options(company))


def test_every_figure_of_a_quarter_is_explained_from_the_report_alone(report):
    figures = figures_of(report)
    nodes = list(explain_in_report(figures, report))
    assert differing(figures, nodes) == []
    for node in nodes:
        for found in walk(node):
            said = " ".join(found.item.details)
            if found.item.kind == "unknown":
                assert f"needs the ledger: carbonlens explain '{found.item.item_id}'" in said
            if found.item.kind == "factor":
                assert found.children or "sha256" in said
    kinds = {found.item.kind for node in nodes for found in walk(node)}
    assert {"figure", "factor", "meter", "unknown"} <= kinds


def test_a_factor_of_another_set_is_told_as_such(report, tmp_path):
    shape = json.loads(report.read_text("utf-8"))
    name = next(n for n, f in shape["figures"].items() if n.startswith("factor.") and f["inputs"])

    def told():
        file = tmp_path / "altered.json"
        file.write_text(json.dumps(shape), "utf-8")
        (node,) = explain_in_report((name,), file)
        return " ".join(line for n in walk(node) for line in n.item.details)

    assert "another set" not in told()
    shape["basis"]["factors_sha256"] = "0" * 64
    assert "another set" not in told(), "the report carries this row itself"
    shape["figures"][name]["inputs"] = [bundled_row()]
    assert "another set" in told()


def bundled_row():
    from carbonlens.factors.store import bundled

    return bundled().rows[0].factor_id
