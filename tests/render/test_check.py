"""Self-check: a page or a chart that disagrees with its figures is refused."""

from __future__ import annotations

import msgspec
import pytest

from carbonlens.errors import VerificationError
from carbonlens.render.check import check_page
from carbonlens.render.html import render_html
from carbonlens.render.pdf import render_pdf
from tests.render.pages import html, view

replace = msgspec.structs.replace


def test_a_true_page_passes():
    check_page(html("demo"), view("demo"))


@pytest.mark.parametrize(
    ("old", "new", "where"),
    [
        (
            'data-figure="total.reduction_energy" data-aspect="text">87.9',
            'data-figure="total.reduction_energy" data-aspect="text">78.9',
            "total.reduction_energy",
        ),
        (
            'data-figure="total.reduction_energy" data-aspect="interval">[87.8',
            'data-figure="total.reduction_energy" data-aspect="interval">[87.9',
            "total.reduction_energy",
        ),
        ('data-figure="step.torch.macs"', 'data-figure="step.torch.mac"', "step.torch.mac"),
        ("<h2>Decision asked</h2>", "<h2>Decision asked by 2030</h2>", "page"),
        ("✓\u00a0adopt</td>", "✓\u00a0adopt 3</td>", "page"),
        ("<title>Three", "<title>Four", "title"),
        (">+23.8\u00a0% rejected<", ">+2.38\u00a0% rejected<", "waterfall"),
        (">P50 13.8\u00a0ms · ", ">P50 3.8\u00a0ms · ", "latencies"),
    ],
)
def test_a_tampered_page_is_refused(old, new, where):
    page = html("demo")
    assert old in page
    with pytest.raises(VerificationError) as refused:
        check_page(page.replace(old, new), view("demo"))
    assert refused.value.where == where
    assert refused.value.exit_code == 4


def tampered_bar(**change):
    seen = view("demo")
    chart = seen.business_case.waterfall
    bars = (chart.bars[0], replace(chart.bars[1], **change), *chart.bars[2:])
    return replace(seen, business_case=replace(seen.business_case, waterfall=replace(chart, bars=bars)))


@pytest.mark.parametrize(
    "change", [{"end": 40.0}, {"text": "−60.6\u00a0%"}, {"figure_id": "nothing"}, {"interval": "[1, 2]"}]
)
def test_a_chart_that_draws_another_value_is_refused(change):
    with pytest.raises(VerificationError):
        render_html(tampered_bar(**change))


def test_a_forest_that_draws_another_value_is_refused():
    seen = view("demo")
    forest = seen.engineering.forest
    means = (replace(forest.means[0], change=-5.0), *forest.means[1:])
    lying = replace(seen, engineering=replace(seen.engineering, forest=replace(forest, means=means)))
    with pytest.raises(VerificationError, match="the chart draws"):
        render_html(lying, ["engineering"])


@pytest.mark.parametrize("change", [{"value": 1.0}, {"text": "9.9\u00a0mJ"}, {"figure_id": "nothing"}])
@pytest.mark.parametrize("axis", ["x", "y"])
def test_a_scatter_that_draws_another_value_is_refused(axis, change):
    seen = view("demo")
    front = seen.engineering.pareto[0]
    mark = replace(front.marks[0], **{axis: replace(getattr(front.marks[0], axis), **change)})
    lying = replace(front, marks=(mark, *front.marks[1:]))
    with pytest.raises(VerificationError):
        check_page(html("demo"), replace(seen, engineering=replace(seen.engineering, pareto=(lying,))))


def test_a_percentile_that_is_not_its_figure_is_refused():
    seen = view("demo")
    chart = seen.engineering.latencies
    name, spot = chart.spreads[0].marks[0]
    spread = replace(chart.spreads[0], marks=((name, replace(spot, value=spot.value * 2)),))
    lying = replace(chart, spreads=(spread, *chart.spreads[1:]))
    with pytest.raises(VerificationError, match="the chart draws"):
        check_page(html("demo"), replace(seen, engineering=replace(seen.engineering, latencies=lying)))


def test_a_view_whose_figure_was_changed_is_not_printed():
    seen = view("demo")
    figure = replace(seen.figures["total.reduction_energy"], text="99\u00a0%")
    lying = replace(seen, figures={**seen.figures, "total.reduction_energy": figure})
    with pytest.raises(VerificationError):
        render_pdf(lying, ["business-case"])
