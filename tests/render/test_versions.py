"""Versions: all that a report's bytes depend on is recorded, by the format it decides."""

from __future__ import annotations

import re
import subprocess
import sys
from importlib.metadata import requires

import pytest

from carbonlens.render.environment import made_with
from carbonlens.render.versions import DECIDING, libraries, shipped_fonts_hold, texts_of
from tests.render.pages import view

OWN = {"carbonlens", "templates_sha256", "fonts_sha256", "own_templates_sha256"}


@pytest.mark.parametrize("kind", ["json", "html", "pdf"])
def test_whatever_decides_a_format_is_recorded_here(kind):
    made = made_with()
    for name in DECIDING[kind]:
        said = getattr(made, name) if name in OWN else made.libraries.get(name)
        assert said or name == "own_templates_sha256", name


def test_every_package_that_lays_out_a_page_on_paper_decides_it():
    """WeasyPrint's own requirements, and theirs: one more of them must be recorded too."""
    known = {re.sub(r"[-_.]+", "-", name).lower() for name in DECIDING["pdf"]}
    for package in ("weasyprint", "jinja2"):
        wanted = [r for r in requires(package) or () if "extra ==" not in r]
        assert {re.match(r"[\w-]+", r)[0].lower() for r in wanted} <= known


def test_what_only_other_formats_need_does_not_decide_one():
    assert not {"weasyprint", "pango", "vl-convert-python", "zlib"} & set(DECIDING["json"])
    assert not {"weasyprint", "pango", "harfbuzz"} & set(DECIDING["html"])
    assert set(DECIDING["json"]) < set(DECIDING["html"]) < set(DECIDING["pdf"])


@pytest.mark.skipif(sys.platform != "linux", reason="names of Linux libraries")
def test_the_libraries_that_weasyprint_loads_are_those_whose_version_is_recorded():
    code = (
        "import weasyprint.text.ffi, re; maps = open('/proc/self/maps').read();"
        "print(*sorted(set(re.findall(r'/lib(pango|harfbuzz|fontconfig|freetype|glib)-?[0-9.]*so', maps))))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert {"pango", "harfbuzz", "fontconfig"} <= set(done.stdout.split())
    assert set(done.stdout.split()) <= set(libraries())
    assert re.fullmatch(r"\d+\.\d+\.\d+", libraries()["pango"])


@pytest.mark.parametrize(("case", "held"), [("demo", True), ("hostile", False)])
def test_fonts_of_the_system_count_only_where_ours_lack_a_letter(case, held):
    assert shipped_fonts_hold(texts_of(view(case))) is held
