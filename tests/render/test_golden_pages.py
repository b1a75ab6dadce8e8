"""Golden pages: reports as pictures, held against those of one pinned set-up within a tolerance.

Text and structure are held elsewhere, everywhere; this sees what only an eye would: a chart that
slid over a table, a lost colour, a font that was replaced. Other versions of what draws move
letters by a pixel, so that elsewhere the test is skipped. ``make update-golden`` writes the pictures.
"""

from __future__ import annotations

import io
import json
import os
import re
import shutil
import subprocess
from importlib import metadata
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from tests.render.pages import pdf

FOLDER = Path(__file__).parent / "golden_pages"
SETUP = FOLDER / "setup.json"
PAGES = {"business-case": 1, "engineering-tables": 2, "engineering-charts": 3}
UPDATE = bool(os.environ.get("UPDATE_GOLDEN"))

_DPI = 50
_VISIBLE = 64
"""Difference of one of 256 shades that an eye sees."""
MOST_VISIBLE = 0.004
"""Share of the pixels that may differ visibly: a word more or less, but no moved line."""


def setup() -> dict[str, str]:
    """Versions of what draws a page, as far as they are here."""
    found = {name: metadata.version(name) for name in ("weasyprint", "pydyf", "vl-convert-python")}
    from weasyprint.text.ffi import pango

    found["pango"] = str(pango.pango_version())
    said = subprocess.run(["pdftoppm", "-v"], capture_output=True, text=True, check=False).stderr
    found["poppler"] = re.search(r"version (\S+)", said)[1]
    return found


def drawn(page: int) -> Image.Image:
    """A page of the demo's report."""
    return page_of(pdf("demo", "business-case", "engineering"), page)


def page_of(report: bytes, page: int) -> Image.Image:
    """A page of a report in shades of three colours."""
    command = ["pdftoppm", "-r", str(_DPI), "-f", str(page), "-l", str(page), "-png", "-"]
    made = subprocess.run(command, input=report, capture_output=True, check=True).stdout
    return Image.open(io.BytesIO(made)).convert("RGB")


def visibly_different(one: Image.Image, other: Image.Image) -> float:
    """The share of pixels that an eye sees differ; all of them where the sizes do."""
    if one.size != other.size:
        return 1.0
    off = np.abs(np.asarray(one, dtype=int) - np.asarray(other, dtype=int)).max(axis=2)
    return float((off > _VISIBLE).mean())


@pytest.fixture(scope="module")
def pinned():
    if shutil.which("pdftoppm") is None:
        pytest.skip("no pdftoppm here (Debian: poppler-utils)")
    if UPDATE:
        FOLDER.mkdir(exist_ok=True)
        SETUP.write_text(json.dumps(setup(), indent=1) + "\n", encoding="utf-8")
    wanted = json.loads(SETUP.read_text(encoding="utf-8"))
    here = setup()
    other = [
        f"{name} {here[name]}, not {version}" for name, version in wanted.items() if here[name] != version
    ]
    if other:
        pytest.skip(f"pages are compared on the pinned set-up only; here is {'; '.join(other)}")


@pytest.mark.slow
@pytest.mark.parametrize("name", PAGES)
def test_golden_page(name, pinned):
    page, file = drawn(PAGES[name]), FOLDER / f"{name}.png"
    if UPDATE:
        page.save(file, optimize=True)
    assert visibly_different(page, Image.open(file).convert("RGB")) <= MOST_VISIBLE


@pytest.mark.slow
def test_golden_pages_tell_a_lost_chart_and_a_moved_page(pinned):
    page = drawn(PAGES["business-case"])
    shades = np.asarray(page).copy()
    moved = Image.fromarray(np.roll(shades, 3, axis=0))
    assert visibly_different(page, moved) > MOST_VISIBLE
    whole = shades.copy()
    whole[180:330] = 255
    assert visibly_different(page, Image.fromarray(whole)) > MOST_VISIBLE
