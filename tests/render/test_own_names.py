"""Own names: a file of the user's folder that no page uses is refused, with the names that are known."""

from __future__ import annotations

import pytest

from carbonlens.app.report_look import find_look
from carbonlens.errors import ConfigError
from carbonlens.render.user_templates import PAGES

PAGE = "business_case/page.html.j2"


def folder(tmp_path, **files):
    own = tmp_path / "own"
    own.mkdir()
    for name, text in files.items():
        (own / name).parent.mkdir(parents=True, exist_ok=True)
        (own / name).write_text(text, encoding="utf-8")
    return own


def page(body=""):
    return {PAGE: f'{{% extends "carbonlens/{PAGE}" %}}\n{body}'}


@pytest.mark.parametrize(
    ("name", "near"),
    [
        ("busines_case/page.html.j2", "business_case/page.html.j2"),
        ("business_case/Page.html.j2", "business_case/page.html.j2"),
        ("business_case/page.html", "business_case/page.html.j2"),
        ("business_case/page.html.jinja", "business_case/page.html.j2"),
        ("reports.html.j2", "report.html.j2"),
        ("Theme.toml", "theme.toml"),
        ("themes.toml", "theme.toml"),
        ("mine.j2", None),
    ],
)
@pytest.mark.parametrize("beside", [{}, page()], ids=["alone", "beside another"])
def test_a_name_that_no_page_reads_is_refused_with_those_that_are(tmp_path, name, near, beside):
    own = folder(tmp_path, **beside, **{name: "x"})
    with pytest.raises(ConfigError, match="used by no page") as refused:
        find_look(own)
    assert refused.value.where == f"{own}/{name}"
    assert (f"near: {near};" in refused.value.mend) == (near is not None)
    assert all(known in refused.value.mend for known in (*PAGES, "theme.toml"))


@pytest.mark.parametrize("files", [{}, {"logo.svg": '<svg xmlns="http://www.w3.org/2000/svg"/>'}])
def test_a_folder_without_template_and_theme_is_refused(tmp_path, files):
    own = folder(tmp_path, **files)
    with pytest.raises(ConfigError, match="no template of a page and no theme") as refused:
        find_look(own)
    assert PAGE in refused.value.mend


@pytest.mark.parametrize(
    "files",
    [
        {"theme.toml": ""},
        page(),
        page() | {f"{PAGE}~": "x", f"{PAGE}.bak": "x", "README.md": "x", "pyproject.toml": "", "a.html": ""},
        page() | {"report.html": "x", "sustainability.html": "x", "o/report.html": "x"},
        page("{% block extra %}{% include 'mine/b.j2' %}{% endblock %}")
        | {"mine/b.j2": "{% import 'c.j2' as c %}", "c.j2": "x"},
        page("{% block extra %}{% include name %}{% endblock %}") | {"mine.j2": "x"},
        {"partials/macros.html.j2": "{% macro say(x) %}{% endmacro %}"},
    ],
    ids=[
        "a theme",
        "a page",
        "an editor's copies",
        "reports beside it",
        "by way of another",
        "by a computed name",
        "a part of ours",
    ],
)
def test_what_a_page_may_use_is_taken(tmp_path, files):
    assert find_look(folder(tmp_path, **files))[0] is not None
