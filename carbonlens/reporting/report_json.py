"""Report as JSON: every figure by its id, the tables, and what it was computed from.

Outside scripts read it, ``explain --report`` and ``verify`` too. Fields may be added;
none is renamed.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from carbonlens.domain.comparison import Comparison
from carbonlens.domain.evidence import Evidence, sha256
from carbonlens.reporting.comparison_json import comparison_json, estimate_json
from carbonlens.reporting.content import Phrase, PrintedFigure, ReportView, Table, Tile, plain_text
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
    document,
)
from carbonlens.reporting.power_content import PowerArm

SCHEMA: Final = "carbonlens/report-document/1"


def report_json(
    view: ReportView,
    sections: tuple[str, ...],
    *,
    comparison: Comparison | None = None,
    evidence: Evidence | None = None,
) -> dict[str, Any]:
    """Return a report as plain values.

    Args:
        view: The report.
        sections: Which sections it has.
        comparison: What it is about, in the shape of ``compare --json``; left out when ``None``.
        evidence: What it was computed from, for ``verify``; left out when ``None``.
    """
    return {
        "schema": SCHEMA,
        **document_json(document(view, sections), view.figures),
        "comparison": None if comparison is None else comparison_json(comparison),
        "evidence_sha256": None if evidence is None else sha256(evidence),
        "evidence": None if evidence is None else msgspec.to_builtins(evidence, str_keys=True),
    }


def document_json(doc: Document, figures: Mapping[str, PrintedFigure]) -> dict[str, Any]:
    """Return the words, tables and figures of a report.

    Args:
        doc: The report in blocks.
        figures: Every printed figure by its id.
    """
    return {
        "title": doc.title,
        "subject": plain_text(doc.subject),
        "example": doc.example,
        "sections": [{"name": s.name, "blocks": [_block(b) for b in s.blocks]} for s in doc.sections],
        "figures": figures_json(figures),
    }


def figures_json(figures: Mapping[str, PrintedFigure]) -> dict[str, Any]:
    """Return the printed figures by id: the number, and how it is printed.

    Args:
        figures: Of a report.
    """
    return {
        name: {
            **(estimate_json(f.figure.estimate) or {}),
            "label": f.figure.label,
            "printed": f.text,
            "printed_number": f.number,
            "printed_interval": f.interval,
            "formula": f.figure.formula,
            "inputs": list(f.figure.inputs),
        }
        for name, f in figures.items()
    }


def _block(block: Block) -> dict[str, Any]:
    if isinstance(block, Heading):
        return {"kind": "heading", "level": block.level, "text": plain_text(block.text)}
    if isinstance(block, Paragraph):
        return {"kind": "paragraph", "text": plain_text(block.text)}
    if isinstance(block, Bullets):
        return {"kind": "bullets", "items": [plain_text(item) for item in block.items]}
    if isinstance(block, Tiles):
        return {"kind": "tiles", "tiles": [_tile(t) for t in block.tiles]}
    if isinstance(block, Picture):
        return {"kind": "picture", "name": block.name, "title": plain_text(block.title), "alt": block.alt}
    if isinstance(block, PowerSeries):
        return {"kind": "power", "name": block.name, "arms": [_power(arm) for arm in block.arms]}
    return _table(block)


def _power(arm: PowerArm) -> dict[str, Any]:
    """Return the thinned power of one run; ``None`` is a stretch that nothing is known of."""
    trace = arm.trace
    return {
        "step": arm.step,
        "run_id": arm.run_id,
        "duration_s": arm.duration_s,
        "bin_s": trace.bin_s,
        "time_s": list(trace.time_s),
        "power_w": list(trace.power_w),
        "low_w": list(trace.low_w),
        "high_w": list(trace.high_w),
        "phases": [{"name": s.name, "start_s": s.start_s, "end_s": s.end_s} for s in trace.spans],
    }


def _tile(tile: Tile) -> dict[str, Any]:
    return {
        "label": tile.label,
        "value": plain_text(tile.value),
        "interval": plain_text(tile.interval),
        "lines": [plain_text(line) for line in tile.lines],
        "figures": _ids((tile.value, *tile.lines)),
    }


def _table(block: TableBlock) -> dict[str, Any]:
    table: Table = block.table
    return {
        "kind": "table",
        "name": block.name,
        "caption": plain_text(table.caption),
        "columns": [table.head, *(plain_text(c.name) for c in table.columns)],
        "units": ["", *(c.unit for c in table.columns)],
        "rows": [
            {
                "head": plain_text(row.head),
                "cells": [
                    {"text": "\n".join(map(plain_text, cell)), "figures": _ids(cell)} for cell in row.cells
                ],
            }
            for row in table.rows
        ],
        "note": plain_text(table.note),
    }


def _ids(lines: tuple[Phrase, ...]) -> list[str]:
    return list(dict.fromkeys(p.figure_id for line in lines for p in line if p.figure_id is not None))
