"""Markdown: a report as text for a merge request, a wiki or a README (GitHub's tables)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

import msgspec

from carbonlens.reporting.content import Part, Phrase, ReportView, Table, plain_text
from carbonlens.reporting.document import (
    Block,
    Bullets,
    Document,
    Heading,
    Paragraph,
    Picture,
    PowerSeries,
    TableBlock,
    Tiles,
)

_SPECIAL: Final = re.compile(r"([\\`*_{}\[\]<>#|~])")
_NAMED: Final = re.compile(r"(@|\\#(?=\d))")
_NOTHING: Final = "&#8203;"
"""A space without width, between ``@`` and a name, ``#`` and a number.

GitHub looks for mentions and issues in the text that Markdown has become, where ``&#64;`` is ``@``
again and a backslash is gone. This is what Renovate does
(https://github.com/renovatebot/renovate/pull/1084) and Dependabot, for which marking names as code
was not enough: answers by mail are plain text (https://github.com/dependabot/dependabot-core/pull/3157).
"""
_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f\u2028\u2029\u202a-\u202e\u2066-\u2069]+")
_SCHEME: Final = re.compile(r"\b(https?|ftp|mailto)(:)|\b(www)(\.)", re.IGNORECASE)


def render_markdown(document: Document) -> str:
    """Return the document as Markdown; foreign names are text in it and nothing else.

    Args:
        document: The report.
    """
    lines: list[str] = []
    for section in document.sections:
        for block in section.blocks:
            said = _block(block)
            lines += [*said, ""] if said else []
    if document.example:
        lines += ["*Example assumptions: some factors or prices are stated for illustration.*", ""]
    return "\n".join(lines).rstrip("\n") + "\n"


def escaped(text: str) -> str:
    """Return text that Markdown prints as it is: no link, no mention, no markup, no line break.

    Args:
        text: Any text.
    """
    one_line = _CONTROL.sub(" ", text)
    safe = _SPECIAL.sub(r"\\\1", one_line.replace("&", "&amp;"))
    safe = _NAMED.sub(rf"\1{_NOTHING}", safe)
    # An address would be linked by itself.
    return _SCHEME.sub(lambda m: f"{m[1] or m[3]}{'&#58;' if m[2] else '&#46;'}", safe)


def _said(content: Phrase) -> str:
    return "".join(_part(part) for part in content)


def _part(part: Part) -> str:
    """Return a part; an interval's brackets make no link, and read better as they are."""
    said = escaped(part.text)
    if not part.quoted:
        said = said.replace("\\[", "[").replace("\\]", "]")
    return said.replace("\u202f", " ").replace("\u00a0", " ")


def _block(block: Block) -> list[str]:
    if isinstance(block, Heading):
        return [f"{'#' * (block.level + 1)} {_said(block.text)}"]
    if isinstance(block, Paragraph):
        said = _line(block.text)
        return [f"**{said}**" if block.strong else said]
    if isinstance(block, Bullets):
        return [f"- {_said(item)}" for item in block.items]
    if isinstance(block, Tiles):
        return list(_tiles(block))
    if isinstance(block, Picture):
        return [f"*{_said(block.title)}* {escaped(block.alt)}"]
    if isinstance(block, PowerSeries):
        return []  # a curve is no text: its finding and its table are
    return list(_table(block))


def _line(text: Phrase) -> str:
    """Return a paragraph that no first character turns into a list, a quotation or a heading."""
    said = _said(text).strip()
    return re.sub(r"^([-+=]|\d+[.)])", lambda m: m[1][:-1] + "\\" + m[1][-1], said)


def _tiles(block: Tiles) -> Iterator[str]:
    yield "| Figure | Value | 95 % interval | |"
    yield "|---|---:|---|---|"
    for tile in block.tiles:
        more = "; ".join(_said(line) for line in tile.lines)
        yield f"| {escaped(tile.label)} | **{_said(tile.value)}** | {_said(tile.interval)} | {more} |"


def _table(block: TableBlock) -> Iterator[str]:
    table: Table = block.table
    heads = [f"{_said(c.name)}{f' ({escaped(c.unit)})' if c.unit else ''}" for c in table.columns]
    yield f"**{_said(table.caption)}**"
    yield ""
    yield f"| {' | '.join([escaped(table.head), *heads])} |"
    yield f"|---|{'|'.join('---:' if c.numeric else '---' for c in table.columns)}|"
    for row in table.rows:
        cells = ("<br>".join(_said(line) for line in cell) for cell in row.cells)
        yield f"| {' | '.join([_said(row.head), *cells])} |"
    if plain_text(table.note):
        yield ""
        yield _line(table.note)


_IN_A_COMMENT: Final = ("Against the baseline", "Verdict", "Quality and other gates", "Decision")


def render_comment(view: ReportView, mark: str) -> str:
    """Return a comment for a merge request: the message, one row a step, the rest folded away.

    Args:
        view: The report.
        mark: Name of the study, in an invisible line by which a bot finds its comment again.
    """
    page = view.engineering
    effects = page.effects
    kept = [n for n, c in enumerate(effects.columns) if plain_text(c.name) in _IN_A_COMMENT]
    short = msgspec.structs.replace(
        effects,
        columns=tuple(effects.columns[n] for n in kept),
        rows=tuple(msgspec.structs.replace(r, cells=tuple(r.cells[n] for n in kept)) for r in effects.rows),
    )
    tables = (("Effects", effects), ("Measured", page.measured), ("Used", page.used))
    more = [*tables, *(() if page.findings is None else (("Findings", page.findings),))]
    hidden = re.sub(r"[^A-Za-z0-9_.:/ ]", "_", mark)[:80]
    lines = [
        f"<!-- carbonlens: {hidden} -->",
        f"### {_said(view.business_case.title)}",
        "",
        _line(page.lead),
        "",
    ]
    lines += [*_table(TableBlock(name="Effects", table=short)), ""]
    for name, table in more:
        lines += ["<details>", f"<summary>{name}</summary>", "", *_table(TableBlock(name=name, table=table))]
        lines += ["", "</details>", ""]
    return "\n".join(lines).rstrip("\n") + "\n"
