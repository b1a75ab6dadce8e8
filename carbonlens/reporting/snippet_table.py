"""Snippets of a comparison: a LaTeX table and a badge."""

from __future__ import annotations

from html import escape
from typing import Final

from msgspec.structs import replace

from carbonlens.reporting import format as fmt
from carbonlens.reporting.content import Phrase, ReportView, plain_text
from carbonlens.reporting.names import clip

_TEX: Final = {
    "\\": r"\textbackslash{}", "{": r"\{", "}": r"\}", "$": r"\$", "&": r"\&", "#": r"\#", "%": r"\%",
    "_": r"\_", "^": r"\textasciicircum{}", "~": r"\textasciitilde{}", "<": r"\textless{}",
    ">": r"\textgreater{}", "|": r"\textbar{}", "\u2212": r"$-$", "\u202f": r"\,", "\u00a0": "~",
    "\u2082": r"\textsubscript{2}", "\u00b5": r"\textmu{}", "\u2192": r"$\rightarrow$", "\u00b1": r"$\pm$",
    "\u2013": "--", "\u2026": r"\ldots{}", "\u2019": "'", "\u25bc": r"$\downarrow$", "\u25b2": r"$\uparrow$",
    "\u2713": r"\checkmark{}", "\u2717": r"$\times$", "\u2265": r"$\geq$", "\u2264": r"$\leq$",
    "\u00d7": r"$\times$",
    # A bracket after a line break would be taken for the height of the break.
    "[": "{[}", "]": "{]}",
}  # fmt: skip

_WIDE: Final = "MW@%mw"
_NARROW: Final = "ijlt.,:;'![]()| I1"
_GREEN, _RED, _GREY, _DARK = "#00694d", "#a34700", "#555555", "#333333"


def latex_table(view: ReportView) -> str:
    """Return the effects of the steps as a ``tabular`` (booktabs, amssymb, textcomp).

    Args:
        view: The report.
    """
    table = view.engineering.effects
    spec = "l" + "".join("r" if c.numeric else "l" for c in table.columns)
    heads = [_tex(table.head), *(_tex(plain_text(c.name)) for c in table.columns)]
    rows = [
        " & ".join([_tex(plain_text(row.head)), *(_tex_cell(cell) for cell in row.cells)]) + r" \\"
        for row in table.rows
    ]
    return "\n".join(
        [
            "% needs \\usepackage{booktabs,amssymb,textcomp,makecell}",
            r"\begin{table}",
            rf"\caption{{{_tex(plain_text(table.caption))}. {_tex(plain_text(table.note))}}}",
            rf"\begin{{tabular}}{{{spec}}}",
            r"\toprule",
            " & ".join(heads) + r" \\",
            r"\midrule",
            *rows,
            r"\bottomrule",
            r"\end{tabular}",
            r"\end{table}",
            "",
        ]
    )


def _tex_cell(cell: tuple[Phrase, ...]) -> str:
    lines = [_tex(plain_text(line)) for line in cell]
    joined = r" \\ ".join(lines)
    return joined if len(lines) < 2 else rf"\makecell[r]{{{joined}}}"


def _tex(text: str) -> str:
    return "".join(_TEX.get(c, c) for c in text if c.isprintable() or c in _TEX)


def badge(view: ReportView, label: str = "energy") -> str:
    """Return a small SVG that states the change of energy per unit, as a README shows it.

    Args:
        view: The report.
        label: Text of its left side.
    """
    figure = view.figures.get("total.reduction_energy")
    estimate = None if figure is None else figure.figure.estimate
    if figure is None or estimate is None or estimate.value is None:
        said, colour = "no step accepted", _GREY
    else:
        change = replace(
            estimate,
            value=-estimate.value,
            signed=True,
            bounds=(
                None if estimate.high is None else -estimate.high,
                None if estimate.low is None else -estimate.low,
            ),
        )
        printed = fmt.percent(change, plus=True)
        said = f"{printed.text} {printed.interval}".strip()
        better = estimate.low is not None and estimate.low > 0
        worse = estimate.high is not None and estimate.high < 0
        colour = _GREEN if better else _RED if worse else _GREY
    return _svg(clip(label, 40), said, colour, view.title)


def _svg(label: str, said: str, colour: str, title: str) -> str:
    left, right = _width(label), _width(said)
    whole = left + right
    alt = escape(f"{label}: {said}. {title}")
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{whole}" height="20" role="img">'
        f"<title>{alt}</title>"
        f'<rect width="{left}" height="20" fill="{_DARK}"/>'
        f'<rect x="{left}" width="{right}" height="20" fill="{colour}"/>'
        '<g fill="#fff" text-anchor="middle" font-family="Verdana,DejaVu Sans,sans-serif" font-size="11">'
        f'<text x="{left / 2:g}" y="14" textLength="{left - 12}">{escape(label)}</text>'
        f'<text x="{left + right / 2:g}" y="14" textLength="{right - 12}">{escape(said)}</text>'
        "</g></svg>\n"
    )


def _width(text: str) -> int:
    """Return the pixels that a text takes at 11 px in Verdana, about; ``textLength`` makes it so."""
    return 12 + round(sum(10 if c in _WIDE else 4 if c in _NARROW else 7 for c in text))
