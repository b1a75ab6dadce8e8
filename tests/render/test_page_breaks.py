"""Page breaks: no note begins a page, and no heading, caption or table head ends one."""

from __future__ import annotations

import pytest

from carbonlens.render.html import shipped_styles
from carbonlens.render.pdf import paper

TOLD = {"h2", "h3", "caption", "thead", "tr", "figure", "p", "li"}
ROWS = "".join(f'<tr><th scope="row">row {n}</th><td class="num">{n}</td></tr>' for n in range(20))
BODY = """
<h3>What was found</h3>
<div class="scroll{whole}"><table class="steps"><caption>Found</caption>
<thead><tr><th scope="col">Name</th><th scope="col">Number</th></tr></thead><tbody>{rows}</tbody></table>
</div>
<p class="note">What the numbers of the table above mean, and what they leave out.</p>
<h2>Decision asked</h2><ul><li>Adopt it.</li></ul>
<figure class="chart"><figcaption>A chart</figcaption><div style="height: 30mm"></div></figure>
<p class="note">What the chart shows.</p>
"""


def pages(section: str, filler_mm: int, rows: int) -> list[list[str]]:
    """What stands on each page, in order, behind a filler that moves all of it down."""
    short = "".join(ROWS.partition(f'<tr><th scope="row">row {rows}<')[0])
    body = BODY.format(rows=short, whole=" whole" if rows <= 12 else "")
    page = (
        f'<html lang="en"><head><title>t</title><style>{shipped_styles("paper")}</style></head><body><main>'
        f'<section class="{section}"><div style="height: {filler_mm}mm"></div>{body}</section></main></body>'
    )
    found = []
    for sheet in paper(page).pages:
        told: list[str] = []
        for box in sheet._page_box.descendants():
            element = getattr(box, "element", None)
            tag = getattr(element, "tag", None)
            name = f"{tag}.{element.get('class')}" if tag == "p" else tag
            if tag in TOLD and (not told or told[-1] != name):
                told.append(name)
        found.append(told)
    return found


@pytest.mark.slow
@pytest.mark.parametrize("rows", [5, 20])
@pytest.mark.parametrize(("section", "height_mm"), [("business-case", 270), ("engineering", 185)])
def test_what_belongs_together_stays_on_one_page(section, height_mm, rows):
    broken = 0
    for filler in range(height_mm - 110, height_mm, 7):
        sheets = pages(section, filler, rows)
        broken += len(sheets) > 1
        for sheet in sheets:
            assert sheet[:1] != ["p.note"], filler
            assert sheet[-1:] not in (["h2"], ["h3"], ["caption"], ["thead"]), filler
    assert broken > 5
