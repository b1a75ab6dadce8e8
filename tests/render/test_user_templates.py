"""A user's own templates: blocks are filled, and whatever is broken is named by file and line."""

from __future__ import annotations

import base64
import shutil
import struct
import zlib
from pathlib import Path

import msgspec
import pytest

from carbonlens.app.report import report
from carbonlens.app.report_look import find_look, init_templates, list_templates
from carbonlens.errors import ConfigError, UsageError, VerificationError
from carbonlens.render import user_templates
from carbonlens.render.blocks import render_document_html
from carbonlens.render.environment import template_file
from carbonlens.render.html import render_html
from carbonlens.render.user_templates import PAGES
from tests.render import quarter_pages
from tests.render.pages import view
from tests.reporting.comparisons import comparison

KINDS = ("business-case", "engineering", "sustainability")
PAGE = {
    "business-case": "business_case/page.html.j2",
    "engineering": "engineering/page.html.j2",
    "sustainability": "sustainability/page.html.j2",
}
LAST = {"business-case": "extra", "engineering": "environment", "sustainability": "extra"}
NEEDED = {"business-case": "tiles", "engineering": "effects", "sustainability": "statement"}
FIGURE = dict.fromkeys(KINDS, "total.reduction_energy") | {"sustainability": quarter_pages.FIGURE}
HIDDEN = {"engineering": "{% block index %}{% endblock %}{% block measured %}{% endblock %}"}


def folder(tmp_path, section, body, theme=""):
    """A folder with one template, whose blocks begin on its third line."""
    place = tmp_path / "own" / PAGE[section]
    place.parent.mkdir(parents=True)
    place.write_text(f'{{% extends "carbonlens/{PAGE[section]}" %}}\n\n{body}', encoding="utf-8")
    if theme:
        (tmp_path / "own" / "theme.toml").write_text(theme, encoding="utf-8")
    return tmp_path / "own"


def page(place, section="business-case"):
    look, _ = find_look(place)
    if section == "sustainability":
        return render_document_html(quarter_pages.quarter(), look=look)
    return render_html(view("demo"), (section,), look=look)


def printed(section):
    made = quarter_pages.quarter() if section == "sustainability" else view("demo")
    return made.figures[FIGURE[section]].text


@pytest.mark.parametrize("section", KINDS)
def test_a_block_is_replaced_and_figures_are_printed_by_their_id(tmp_path, section):
    block = LAST[section]
    own = folder(
        tmp_path,
        section,
        f"{{% block {block} %}}<p>Ours: {{{{ figure('{FIGURE[section]}') }}}}</p>{{% endblock %}}",
    )
    said = f'Ours: <span class="text" data-figure="{FIGURE[section]}" data-aspect="text">{printed(section)}'
    assert said in page(own, section)


BROKEN = {
    "{% block LAST %}\n{{ x ": (4, "unexpected end of template"),
    "\n{% block no_such %}{% endblock %}": (4, "no block 'no_such'"),
    "{% block LAST %}{{ nothing }}{% endblock %}": (3, "'nothing' is undefined"),
    "{% block LAST %}\n{{ view.nothing }}{% endblock %}": (4, "nothing"),
    "{% block LAST %}{{ figure('total.trees') }}{% endblock %}": (3, "no figure 'total.trees'"),
    "{% block LAST %}{{ asset('a.png') }}{% endblock %}": (3, "no picture 'a.png'"),
    "{% block LAST %}{% include '../../etc/passwd' %}{% endblock %}": (3, "no template"),
    "{% block LAST %}{{ ''.__class__.__mro__ }}{% endblock %}": (3, "unsafe"),
    "{% block LAST %}{{ 9**(9**9) }}{% endblock %}": (3, "more digits than any page needs"),
    "{% block LAST %}{{ 'x' * 999999999 }}{% endblock %}": (3, "repeats a text"),
    "{% block LAST %}{% for i in range(9999999) %}{% endfor %}{% endblock %}": (3, "Range too big"),
    "{% block LAST %}\n{% for i in range(9999) %}{{ 'x'*9999 }}{% endfor %}{% endblock %}": (4, "64 million"),
    "{% block LAST %}{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}{% endblock %}": (3, "without end"),
    "{% block LAST %}<img src='https://example.com/a.png' alt=''>{% endblock %}": (3, "from elsewhere"),
    "{% block LAST %}<p style='background: url(//x/y)'></p>{% endblock %}": (3, "from elsewhere"),
    "{% block LAST %}<p onclick='x'></p>{% endblock %}": (3, "from elsewhere"),
}  # fmt: skip


@pytest.mark.parametrize("section", KINDS)
@pytest.mark.parametrize("body", BROKEN)
def test_a_broken_template_is_named_by_file_and_line(tmp_path, section, body):
    line, words = BROKEN[body]
    own = folder(tmp_path, section, body.replace("LAST", LAST[section]))
    with pytest.raises(ConfigError) as refused:
        page(own, section)
    assert refused.value.where == f"{own}/{PAGE[section]}:{line}"
    assert words in refused.value.what
    assert refused.value.exit_code == 2


def test_a_template_that_never_ends_is_stopped_where_it_is(tmp_path, monkeypatch):
    monkeypatch.setattr(user_templates, "CPU_S", 0.3)
    inner = "{% for j in range(99999) %}{% endfor %}"
    body = f"{{% block extra %}}\n{{% for i in range(99999) %}}{inner}{{% endfor %}}{{% endblock %}}"
    own = folder(tmp_path, "business-case", body)
    with pytest.raises(ConfigError, match="processor time") as refused:
        page(own)
    assert refused.value.where == f"{own}/{PAGE['business-case']}:4"


@pytest.mark.parametrize("section", KINDS)
def test_headline_figures_cannot_be_left_out(tmp_path, section):
    body = f"\n\n{{% block {NEEDED[section]} %}}{{% endblock %}}{HIDDEN.get(section, '')}"
    own = folder(tmp_path, section, body)
    with pytest.raises(ConfigError, match="leaves out") as refused:
        page(own, section)
    assert refused.value.where == f"{own}/{PAGE[section]}:5"


@pytest.mark.parametrize("section", KINDS)
@pytest.mark.parametrize(
    "forged", ["<p>We saved 99 %</p>", '<p data-figure="total.reduction_energy">99 %</p>']
)
def test_a_number_that_is_no_figure_is_refused(tmp_path, section, forged):
    own = folder(tmp_path, section, f"{{% block {LAST[section]} %}}{forged}{{% endblock %}}")
    with pytest.raises(VerificationError) as refused:
        page(own, section)
    assert refused.value.exit_code == 4
    assert refused.value.where == f"{own}/{PAGE[section]}:3"


def test_a_number_written_as_character_references_is_found_on_its_line(tmp_path):
    own = folder(tmp_path, "business-case", "{% block extra %}\n<p>&#57;&#x39; trees</p>{% endblock %}")
    with pytest.raises(VerificationError) as refused:
        page(own)
    assert refused.value.where == f"{own}/{PAGE['business-case']}:4"


def test_a_page_of_ours_is_extended_and_not_replaced(tmp_path):
    own = folder(tmp_path, "business-case", "")
    (own / PAGE["business-case"]).write_text("<p>nothing but this</p>")
    with pytest.raises(ConfigError, match="replaces a page of ours"):
        find_look(own)


def test_every_block_has_a_line_and_a_begun_folder_changes_nothing(tmp_path):
    listed = list_templates()
    assert set(listed) == set(PAGES)
    for name, blocks in listed.items():
        source = template_file(name).read_text(encoding="utf-8")
        assert source.count("{% block ") == len(blocks) > 0
    files = init_templates(tmp_path / "own")
    assert set(files) == {tmp_path / "own" / name for name in (*PAGES, "theme.toml")}
    words = page(tmp_path / "own").split("</style>")[1].split()
    assert words == render_html(view("demo"), ("business-case",)).split("</style>")[1].split()
    words = page(tmp_path / "own", "sustainability").split("</style>")[1].split()
    assert words == render_document_html(quarter_pages.quarter()).split("</style>")[1].split()
    with pytest.raises(UsageError, match="there already"):
        init_templates(tmp_path / "own")


def test_a_template_folder_is_refused_before_anything_is_written(tmp_path):
    own = folder(tmp_path, "business-case", "{% block extra %}{{ nothing }}{% endblock %}")
    with pytest.raises(ConfigError, match="nothing"):
        report(comparison(), sections=["business-case"], out_dir=tmp_path / "out", templates=own)
    assert not (tmp_path / "out").exists()
    with pytest.raises(ConfigError, match="no folder"):
        report(
            comparison(), sections=["business-case"], out_dir=tmp_path / "out", templates=tmp_path / "none"
        )


def png(width=2, height=1):
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    rows = zlib.compress(b"".join(b"\0" + b"\x7f" * 3 * width for _ in range(height)))
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", rows) + chunk(b"IEND", b"")


SVG_HEAD = b'<svg xmlns="http://www.w3.org/2000/svg">'
SVG = """<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 4 1" onload="alert()"><script>alert()</script>
<style>@import url(http://x)</style><rect width="4" height="1" fill="#123456" style="fill:url(http://x)"/>
<image href="http://x/y.png"/><foreignObject><p xmlns="http://www.w3.org/1999/xhtml">x</p></foreignObject>
<use href="http://x#y"/></svg>"""


def test_a_logo_is_printed_and_an_svg_keeps_what_draws(tmp_path):
    own = folder(tmp_path, "business-case", "", '[logo]\nfile = "l.svg"\nalt = "Own & Co"\n')
    (own / "l.svg").write_text(SVG)
    made = page(own)
    uri = made.partition('<img src="data:image/svg+xml;base64,')[2].partition('" alt="Own &amp; Co">')[0]
    kept = base64.b64decode(uri).decode()
    assert "#123456" in kept
    assert not [bad for bad in ("script", "http://x", "onload", "style", "foreign", "image") if bad in kept]


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("l.svg", b'<!DOCTYPE svg [<!ENTITY a "b">]><svg xmlns="http://www.w3.org/2000/svg"/>', "entities"),
        ("l.svg", b"<svg xmlns='http://www.w3.org/2000/svg'><g></svg>", "no SVG"),
        ("l.svg", SVG_HEAD + b"<g>" * 1500 + b"</g>" * 1500 + b"</svg>", "nested too deeply"),
        ("l.png", b"GIF89a", "neither"),
        ("l.png", png()[:30], "damaged"),
        ("l.png", png(5000, 1), "5000 x 1"),
        ("l.png", png() + b"\0" * (1 << 20), "512 kB"),
    ],
)
def test_a_picture_that_is_none_is_refused(tmp_path, name, content, words):
    own = folder(tmp_path, "business-case", "", f'[logo]\nfile = "{name}"\nalt = "x"\n')
    (own / name).write_bytes(content)
    with pytest.raises(ConfigError, match=words) as refused:
        find_look(own)
    assert refused.value.where == f"{own}/{name}"


@pytest.mark.parametrize(
    ("theme", "words"),
    [
        ('[colours]\nink = "#cccccc"', "contrast of 1.6:1"),
        ('[colours]\naccent = "#f0e442"', "graphics needs 3:1"),
        ('[colours]\npaper = "#000000"', "text needs 4.5:1"),
        ('[dark]\nink = "#222222"', r"\[dark\] ink"),
        ('[colours]\nink = "red"', "ink"),
        ('[colours]\nlink = "#000000"', "unknown key 'link'"),
        ('[numbers]\ndecimal = ","\ngroup = ","', "both ','"),
        ('[fonts]\nregular = "theme.toml"', "no font"),
        ('[fonts]\nregular = "../../secret.ttf"', "leads out of the folder"),
        ("[colours", "not valid TOML"),
        ('[numbers]\ndates = "%d.%m.%Y"', "numbers.dates: '%d.%m.%Y' is none of its values"),
    ],
)
def test_a_theme_that_cannot_be_used_is_refused_with_words(tmp_path, theme, words):
    own = folder(tmp_path, "business-case", "", theme)
    with pytest.raises(ConfigError, match=words):
        find_look(own)


def test_a_link_that_leads_out_of_the_folder_is_not_read(tmp_path):
    own = folder(tmp_path, "business-case", "")
    (tmp_path / "secret.j2").write_text("secret")
    (own / "in.j2").symlink_to(tmp_path / "secret.j2")
    look, _ = find_look(own)
    assert set(look.templates) == {PAGE["business-case"]}


def test_a_folder_with_too_much_is_not_walked_to_its_end(tmp_path, monkeypatch):
    own = folder(tmp_path, "business-case", "")
    seen = []

    def endless(self, pattern):
        for number in range(20_000):
            seen.append(number)
            yield self / PAGE["business-case"]

    monkeypatch.setattr(Path, "rglob", endless)
    with pytest.raises(ConfigError, match="more than 200 files"):
        find_look(own)
    assert len(seen) == 201


def test_colours_and_fonts_follow_ours(tmp_path):
    own = folder(tmp_path, "business-case", "", '[colours]\naccent = "#7a1fa2"\n[fonts]\nregular = "f.woff2"')
    shutil.copy(template_file("fonts/Inter-SemiBold.woff2"), own / "f.woff2")
    made = page(own)
    assert made.rindex("--accent: #7a1fa2;") > made.index("--accent: #0072b2")
    assert made.count("@font-face") == 4


def test_every_file_of_the_folder_counts_for_its_hash(tmp_path):
    body = "{% block extra %}{% include 'b.j2' %}{% endblock %}"
    own = folder(tmp_path, "business-case", body, "[colours]\n")
    hashes = {find_look(own)[0].sha256}
    for name, content in (("theme.toml", b"[colours]\n#"), ("a.png", png()), ("b.j2", b"x")):
        (own / name).write_bytes(content)
        hashes.add(find_look(own)[0].sha256)
    assert len(hashes) == 4


def test_the_look_travels_to_the_renderer(tmp_path):
    look, _ = find_look(folder(tmp_path, "business-case", ""))
    assert msgspec.json.decode(msgspec.json.encode(look), type=type(look)) == look
