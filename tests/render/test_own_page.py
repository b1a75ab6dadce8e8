"""What a user's template cannot put on a page: what runs, loads, counts or hides."""

from __future__ import annotations

from functools import cache

import msgspec
import pytest

from carbonlens.app.report_look import list_templates
from carbonlens.errors import ConfigError, VerificationError
from carbonlens.render import user_templates
from carbonlens.render.charts import draw
from carbonlens.render.html import made_page, page_variables
from carbonlens.render.logo import as_address
from carbonlens.render.look import Look
from carbonlens.render.user_templates import PAGES, check_templates, composed
from tests.render import quarter_pages
from tests.render.pages import view

SECTIONS = ("business-case",)
SEAL = as_address(b'<svg xmlns="http://www.w3.org/2000/svg"><rect width="4" height="4"/></svg>', "seal.svg")
AROUND, CASE, QUARTER = PAGES[0], PAGES[1], PAGES[4]
BOTH = pytest.mark.parametrize("kind", [CASE, QUARTER])
"""A report of a study, and that of a quarter: what its page may have is the same."""


@cache
def charts():
    return draw(view("demo"), sections=SECTIONS, narrow=True)


def made(templates, kind=CASE):
    look = Look(folder="own", templates=templates, assets={"seal.svg": SEAL})
    if kind == QUARTER:
        return composed(look, quarter_pages.variables(), quarter_pages.quarter())
    variables = page_variables(view("demo"), SECTIONS, medium="screen", charts=charts(), data=b"{}")
    return composed(look, variables, view("demo"))


def filled(page, block, body, kind=CASE):
    if kind == QUARTER:
        body = body.replace("total.reduction_energy", quarter_pages.FIGURE)
        body = body.replace("say(page.title)", "say(view.subject)")
        body = body.replace("charts.waterfall, page.waterfall", "charts.scopes, view.plots.scopes")
    return made(
        {page: f'{{% extends "carbonlens/{page}" %}}\n{{% block {block} %}}\n{body}\n{{% endblock %}}'}, kind
    )


ALLOWED = (
    '<p class="note"><a href="https://example.com/x">ask</a> <b>us</b>: <span data-label>P95</span></p>',
    '<img src="{{ asset(\'seal.svg\') }}" alt="Seal"><table><tr><td>one</td></tr></table>',
    '<p style="color: #333; margin: 1rem">{{ figure("total.reduction_energy") }} {{ say(page.title) }}</p>',
    "{{ chart(charts.waterfall, page.waterfall.title) }}",
)


@BOTH
@pytest.mark.parametrize("body", ALLOWED)
def test_words_tables_pictures_and_figures_are_allowed(body, kind):
    assert "<!DOCTYPE html>" in filled(kind, "extra", body, kind)


REFUSED = (
    "<script>alert()</script>",
    "<script src='data:text/javascript,x'></script>",
    "<meta http-equiv='refresh' content='0;url=https://evil/'>",
    "<base href='https://evil/'>",
    "<iframe srcdoc='x'></iframe>",
    "<a href='#' ping='https://evil/'>y</a>",
    "<a href='javascript:alert()'>y</a>",
    "<a href=' java&#10;script:alert()'>y</a>",
    "<p style=\"background: image-set('https://evil/x' 1x)\">y</p>",
    "<p style='background: u\\72l(https://evil/x)'>y</p>",
    "<p style='background: url(data:image/png;base64,AA)'>y</p>",
    "<img srcset='data:image/png;base64,AA 1x, https://evil/x 2x' alt=''>",
    "<img src='data:,' alt=''>",
    "<style>p { color: red }</style>",
    "<svg><text>saved 99 kWh</text></svg>",
    "<ol start='99'><li>kWh</li></ol>",
    "<details><p>x</p></details>",
    "<input value='99 kWh'>",
    "<p hidden>x</p>",
    "<p aria-hidden='true'>x</p>",
    "<!-- x -->",
    "</main></body></html> saved 99 kWh",
    "<div class='chart'><div class='narrow'>unseen words</div></div>",
    "<p>\u202e{{ figure('total.reduction_energy') }}</p>",
    "<div style='display: none'>{{ say(page.title) }}</div>",
)


@BOTH
@pytest.mark.parametrize("body", REFUSED)
def test_what_runs_loads_or_hides_is_refused_by_its_line(body, kind):
    with pytest.raises(ConfigError) as refused:
        filled(kind, "extra", body, kind)
    assert refused.value.where == f"own/{kind}:3"


RULES = (
    ".tiles { display: none }",
    ".tile { visibility: hidden }",
    ".tile { opacity: 0 }",
    ".value { font-size: 0 }",
    ".value { font: 0/0 a }",
    ".value { font-size: var(--none) }",
    ".tiles { position: absolute; left: -9999px }",
    ".tiles { margin-left: -9999px }",
    ".tiles { margin-left: 200vw }",
    ".tiles { transform: scale(0) }",
    ".tiles { height: 0; overflow: hidden }",
    ".value { color: transparent }",
    ".value { unicode-bidi: bidi-override; direction: rtl }",
    "@media print { .tiles { DISPLAY/**/: none } }",
    "@import 'https://evil/x';",
    "@font-face { font-family: x; src: local(x) }",
    ".a { counter-reset: n 99 } .a::after { content: counter(n) }",
    ".a::after { content: attr(class) }",
    ".value { content: url(#x) }",
    "</style><script>alert()</script><style>",
)


@BOTH
@pytest.mark.parametrize("rule", RULES)
def test_own_rules_neither_hide_nor_load(rule, kind):
    with pytest.raises(ConfigError) as refused:
        filled(AROUND, "own_style", rule, kind)
    assert refused.value.where == f"own/{AROUND}:3"


@BOTH
def test_own_rules_decide_how_a_page_looks(kind):
    rule = "@media print { .badge:hover { text-transform: uppercase; border: 1px solid #333; padding: 1mm } }"
    assert rule in filled(AROUND, "own_style", rule, kind)


NUMBERS = (
    "<span data-label>saved 99 kWh</span>",
    "<span data-label>P95: 99 %</span>",
    "<span data-label>P99 %</span>",
    "<span data-label>EUR99</span>",
    "<bdi data-quoted>99 %</bdi>",
    '<img src="{{ asset(\'seal.svg\') }}" alt="99 kWh">',
    "<p title='99 kWh'>x</p>",
    "<p aria-label='99 kWh'>x</p>",
    "<p>saved \uff19\uff19 kWh</p>",
)


@BOTH
@pytest.mark.parametrize("body", NUMBERS)
def test_a_number_that_no_figure_has_is_refused_wherever_it_is_shown(body, kind):
    with pytest.raises(VerificationError) as refused:
        filled(kind, "extra", body, kind)
    assert refused.value.where == f"own/{kind}:3"


def test_a_number_that_a_rule_writes_is_refused():
    with pytest.raises(VerificationError, match="'99 kWh' belongs to no figure"):
        filled(AROUND, "own_style", '.tile::after { content: "99 kWh" }')


PAGE_OF_ONES_OWN = '<html><head><title>{{ view.title }}</title></head><body>{% include "x" %}</body></html>'


@pytest.mark.parametrize(
    "source",
    [
        f'{{% if 0 %}}{{% extends "carbonlens/{AROUND}" %}}{{% endif %}}{PAGE_OF_ONES_OWN}',
        f'{PAGE_OF_ONES_OWN}{{% extends "carbonlens/{AROUND}" %}}',
        f'{{% extends "x" %}}{{% if 0 %}}{{% extends "carbonlens/{AROUND}" %}}{{% endif %}}',
    ],
)
def test_a_page_begins_with_the_one_line_that_makes_it_ours(source):
    with pytest.raises(ConfigError, match="replaces a page of ours"):
        check_templates(Look(folder="own", templates={AROUND: source, "x": "x"}))


def test_no_file_of_ones_own_stands_for_one_of_ours():
    ours = {AROUND: f'{{% extends "carbonlens/{AROUND}" %}}', f"carbonlens/{AROUND}": PAGE_OF_ONES_OWN}
    with pytest.raises(ConfigError, match="only ours"):
        check_templates(Look(folder="own", templates=ours))


@BOTH
@pytest.mark.parametrize("name", ["script_source", "generator", "script"])
def test_what_the_head_is_made_of_cannot_be_set(name, kind):
    with pytest.raises(ConfigError, match="loaded from elsewhere"):
        made({AROUND: f'{{% extends "carbonlens/{AROUND}" %}}{{% set {name} = "*" %}}'}, kind)


def test_parentheses_without_end_are_refused():
    deep = f'{{% extends "carbonlens/{CASE}" %}}{{{{ {"(" * 5000}1{")" * 5000} }}}}'
    with pytest.raises(ConfigError, match="nested too deeply"):
        check_templates(Look(folder="own", templates={CASE: deep}))


def test_headline_figures_in_the_index_alone_are_left_out():
    both = ("business-case", "engineering")
    look = Look(
        folder="own",
        templates={CASE: f'{{% extends "carbonlens/{CASE}" %}}{{% block tiles %}}{{% endblock %}}'},
    )
    charts_of_both = draw(view("demo"), sections=both, narrow=True)
    variables = page_variables(view("demo"), both, medium="screen", charts=charts_of_both)
    shown = user_templates.page_text(composed(Look(folder="own", templates={}), variables, view("demo")))
    tiles = set(user_templates.figure_ids(view("demo").business_case.tiles))
    assert tiles <= shown.figure_ids
    with pytest.raises(ConfigError, match="leaves out"):
        composed(look, variables, view("demo"))


def test_headline_figures_of_a_quarter_in_the_index_alone_are_left_out():
    with pytest.raises(ConfigError, match="leaves out") as refused:
        filled(QUARTER, "statement", "<p>A good quarter.</p>", QUARTER)
    assert refused.value.where == f"own/{QUARTER}:2"


def test_a_section_of_a_quarter_may_be_left_out_with_its_charts():
    plots = quarter_pages.quarter().plots
    assert "trend" in plots
    page = filled(QUARTER, "trends", "", QUARTER)
    whole = made({}, QUARTER)
    assert 'id="trends"' in whole
    assert 'id="trends"' not in page
    assert page.count("<svg") < whole.count("<svg")
    assert 'id="findings"' in page


def test_a_chart_that_is_shown_is_held_against_its_figures():
    plots = dict(quarter_pages.quarter().plots)
    first, *others = plots["scopes"].marks
    forged = (msgspec.structs.replace(first, value=first.value * 2), *others)
    plots["scopes"] = msgspec.structs.replace(plots["scopes"], marks=forged)
    view = msgspec.structs.replace(quarter_pages.quarter(), plots=plots)
    with pytest.raises(VerificationError):
        composed(Look(folder="own", templates={"x": ""}), quarter_pages.variables(), view)


def test_our_own_templates_and_a_folder_that_fills_nothing_make_the_same_page():
    names = (AROUND, QUARTER)
    page = made({name: f'{{% extends "carbonlens/{name}" %}}' for name in names}, QUARTER)
    ours = made_page(quarter_pages.variables(), quarter_pages.quarter(), None)
    assert page.split() == ours.split()


def test_every_part_of_a_quarter_has_a_block():
    blocks = {name for name, _ in list_templates()[QUARTER]}
    assert {s.name for s in quarter_pages.quarter().document.sections} <= blocks
