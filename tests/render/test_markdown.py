"""Markdown: what GitHub's renderer makes of it is the report, and no name becomes markup."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carbonlens.render.markdown import escaped, render_markdown
from carbonlens.reporting.content import plain_text
from carbonlens.reporting.document import TableBlock, document
from tests.render.pages import view
from tests.reporting.golden import cases

BOTH = ("business-case", "engineering")
mistune = pytest.importorskip("markdown_it", reason="markdown_it is of an extra that is not installed")


def parsed(text):
    return mistune.MarkdownIt("gfm-like", {"html": True, "linkify": False}).parse(text)


def shown(tokens):
    """All text that a reader sees, without markup."""
    for token in tokens:
        for child in token.children or ():
            if child.type in ("text", "code_inline"):
                yield child.content
            elif child.type in ("softbreak", "hardbreak"):
                yield " "


@pytest.mark.parametrize("name", ["demo", "hostile", "unknown_factors", "no_baseline", "lattice", "failed"])
def test_every_table_is_a_table_and_holds_every_cell(name):
    doc = document(view(name), BOTH)
    tokens = parsed(render_markdown(doc))
    tables = [b for s in doc.sections for b in s.blocks if isinstance(b, TableBlock)]
    rows = sum(1 for t in tokens if t.type == "tr_open")
    tiles = len(view(name).business_case.tiles) + 1
    assert rows == tiles + sum(len(t.table.rows) + 1 for t in tables)
    columns = [sum(1 for _ in re.finditer("th_open", t.type)) for t in tokens]
    assert sum(columns) == 4 + sum(len(t.table.columns) + 1 for t in tables)


@pytest.mark.parametrize("name", ["demo", "hostile"])
def test_no_markup_but_ours_comes_out(name):
    tokens = parsed(render_markdown(document(view(name), BOTH)))
    kinds = {c.type for t in tokens for c in t.children or ()}
    assert kinds <= {"text", "strong_open", "strong_close", "em_open", "em_close", "html_inline", "softbreak"}
    inline = {c.content for t in tokens for c in t.children or () if c.type == "html_inline"}
    assert inline <= {"<br>"}
    assert not [t for t in tokens if t.type in ("html_block", "fence", "code_block", "hr", "blockquote_open")]


@given(st.text(max_size=60))
def test_any_text_is_printed_as_it_is_on_one_line(text):
    made = escaped(text)
    assert "\n" not in made
    (paragraph,) = [t for t in parsed(f"x {made} x") if t.type == "inline"]
    assert {c.type for c in paragraph.children} <= {"text"}
    # After @ and before a number stands a space without width.
    said = "".join(c.content for c in paragraph.children).replace("\u200b", "")
    text = text.replace("\u200b", "")
    meant = re.sub(r"[\x00-\x1f\x7f\u2028\u2029\u202a-\u202e\u2066-\u2069]+", " ", text)
    assert said.split() == f"x {meant} x".split()


@pytest.mark.parametrize(
    "text",
    ["https://evil.example/x", "www.evil.example", "mailto:a@b.example", "ftp://x.example", "@someone"],
)
def test_no_address_and_no_mention_is_linked(text):
    assert not re.search(r"(?:https?|ftp|mailto):|www\.|@\w", escaped(text))


@pytest.mark.parametrize(
    "text", ["@someone", "a@b.example", "@org/team", "see #12", "org/repo#12", "\\@x \\#1"]
)
def test_nobody_is_mentioned_by_the_text_that_markdown_becomes(text):
    """GitHub looks for mentions and issues after Markdown is text, not in its source."""
    (paragraph,) = [t for t in parsed(f"x {escaped(text)} x") if t.type == "inline"]
    said = "".join(c.content for c in paragraph.children)
    assert not re.search(r"@\w|#\d", said)
    assert said.replace("\u200b", "") == f"x {text} x"


def test_the_example_mark_and_every_message_are_there():
    text = render_markdown(document(view("demo"), ("business-case",)))
    assert "Example assumptions" in text
    assert text.startswith("## Three steps cut energy")
    for item in view("demo").business_case.decision:
        assert plain_text(item)[:10] in text


def test_every_case_renders():
    for name in cases():
        assert render_markdown(document(view(name), BOTH)).endswith("\n")
