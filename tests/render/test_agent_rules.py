"""Our pages are styled by less than WeasyPrint's own rules, and come out as by all of them."""

from copy import copy

import pytest
from weasyprint.css import StyleFor
from weasyprint.html import UA_STYLESHEET

from carbonlens.render import agent_rules, blocks
from carbonlens.render.html import SECTIONS
from carbonlens.render.look import Look
from carbonlens.render.pdf import paper, render_pdf, written
from tests.render.pages import view
from tests.render.quarter_pages import quarter

LISTS = (
    "<!DOCTYPE html><html lang='en'><head><title>t</title></head><body><ol><li>one</li><li>two</li></ol>"
    "<ul><li>dot<ul><li>ring</li></ul></li></ul><p>after</p></body></html>"
)


def by_all_rules(make):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(agent_rules, "spare", lambda _: None)
        return make()


@pytest.mark.parametrize(
    "make",
    [
        lambda: render_pdf(view("demo"), SECTIONS),
        lambda: render_pdf(view("hostile"), SECTIONS[:1]),
        lambda: blocks.render_document_pdf(quarter()),
        lambda: written(paper(LISTS), LISTS, (), None),
    ],
    ids=["study", "hostile", "quarter", "lists"],
)
def test_pages_are_the_same_as_by_all_rules(make):
    assert make() == by_all_rules(make)


def styled(page):
    """How many pseudo-elements of elements are given a style."""
    made = []
    whole = StyleFor.set_computed_styles

    def counted(self, element, *args, **more):
        made.append(more.get("pseudo_type") is not None and not isinstance(element, tuple))
        return whole(self, element, *args, **more)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(StyleFor, "set_computed_styles", counted)
        paper(page)
    return sum(made)


def test_only_list_items_have_styles_besides_their_own():
    page = LISTS.replace("<p>after</p>", "<p>after</p>" * 1000)
    assert styled(page) == page.count("<li>")
    assert by_all_rules(lambda: styled(page)) > 1000 * len(agent_rules.NOTES), "there is nothing to spare"


@pytest.mark.parametrize("kept", ["other_selectors", "lower_local_name_selectors"])
def test_a_release_that_keeps_its_rules_otherwise_takes_them_all(monkeypatch, kept):
    usual = written(paper(LISTS), LISTS, (), None)
    agent_rules._rules.cache_clear()
    try:
        with monkeypatch.context() as patch:
            patch.setattr(agent_rules, "copy", lambda thing: of_a_later_release(thing, kept))
            assert written(paper(LISTS), LISTS, (), None) == usual
    finally:
        agent_rules._rules.cache_clear()


def of_a_later_release(thing, lacks):
    """Return a copy that keeps nothing by a name."""
    made = copy(thing)
    if hasattr(made, lacks):
        delattr(made, lacks)
    return made


def test_weasyprints_own_rules_are_left_as_they_are():
    matcher = UA_STYLESHEET.matcher
    before = list(matcher.other_selectors), dict(matcher.lower_local_name_selectors)
    paper(LISTS)
    assert before == (matcher.other_selectors, matcher.lower_local_name_selectors)


@pytest.mark.parametrize(
    "look",
    [
        Look(folder="theirs", css="p.note { float: footnote; }"),
        Look(folder="theirs", templates={"any.html.j2": ""}),
    ],
)
def test_a_look_of_ones_own_may_have_notes_at_foot(look):
    page = LISTS.replace("<p>after</p>", "<p>a</p><p class='note'>far below</p>")
    page = page.replace("</head>", "<style>p.note { float: footnote; }</style></head>")

    def made():
        return written(paper(page, look), page, (), None)

    assert made() == by_all_rules(made)
