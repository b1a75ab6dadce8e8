"""Golden texts: a view as plain text, and the files it is held against.

``make update-golden`` writes them anew; look at the difference before you keep it.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from carbonlens.domain.comparison import Comparison
from carbonlens.domain.factor import Vector
from carbonlens.domain.finding import Finding
from carbonlens.reporting.content import BusinessCase, Engineering, ReportView, Table, plain_text
from tests.compare.study_runs import demo_comparison, vector
from tests.compare.test_lattice import SHAPLEY_2, compared
from tests.reporting.comparisons import DEMO, Arm, comparison
from tests.reporting.power_case import traced

FOLDER = Path(__file__).parent / "golden_texts"

FAILED = Arm(
    name="static-int8", title="Static int8 quantization", cpu_us=None, status="failed",
    error="RuntimeError: node Conv_3 has no kernel",
)  # fmt: skip
NO_PLACE = Finding(
    code="CL305", severity="warning", mend="state a location-based factor with its zone, period and source",
    message="no location-based emission factor: location-based emissions are unknown",
)  # fmt: skip


def cases() -> dict[str, Comparison]:
    """Comparisons that together show every state a report can be in."""
    return {
        "demo": comparison(),
        "demo_from_runs": demo_comparison(),
        "traced": traced(comparison()),
        "undetermined": comparison(
            (
                Arm(name="layout", title="Channels-last layout", cpu_us=855, status="undetermined"),
                Arm(name="fused", title="Fused batch norm", cpu_us=858, status="undetermined"),
            ),
            spread=0.03,
        ),
        "rejected": comparison(
            (Arm(name="half", title="Half", cpu_us=1200, status="rejected", loss=(0.03, 0.02, 0.04)),),
        ),
        "failed": comparison((*DEMO[:2], FAILED)),
        "unknown_factors": comparison(vector=Vector(), findings=(NO_PLACE,)),
        "one_ungated": comparison(DEMO[:1], gated=False),
        "no_baseline": comparison(DEMO, baseline=Arm(name="torch", cpu_us=None)),
        "lattice": compared(SHAPLEY_2, vector(), n_rounds=5, spread=0.01, u_relative=0.05),
        "lattice_one_round": compared(SHAPLEY_2),
        "long_ladder": comparison(
            tuple(
                Arm(name=f"s{i}", title=f"Optimization {chr(65 + i)}", cpu_us=800 - 30 * i,
                    status="accepted" if i % 3 else "rejected")
                for i in range(20)
            )
        ),
    }  # fmt: skip


def as_text(view: ReportView) -> str:
    """Return everything the view prints, line by line."""
    lines = [view.title, plain_text(view.subject), ""]
    lines += [*_business_case(view.business_case), "", *_engineering(view.engineering)]
    return "\n".join(lines).replace("\u00a0", " ").replace("\u202f", " ") + "\n"


def _business_case(page: BusinessCase) -> Iterator[str]:
    yield from ("# Business case", plain_text(page.title), plain_text(page.lead), plain_text(page.basis))
    for tile in page.tiles:
        lines = " | ".join(plain_text(line) for line in tile.lines)
        yield f"[{tile.label}] {plain_text(tile.value)} {plain_text(tile.interval)} ({tile.mark}) {lines}"
    for bar in page.waterfall.bars if page.waterfall else ():
        ends = "" if bar.start is None or bar.end is None else f"{bar.start:.1f} to {bar.end:.1f}"
        yield f"  bar {bar.kind}: {bar.name}: {bar.text}: {ends}"
    yield plain_text(page.waterfall_note)
    for name in ("decision", "break_even", "risks", "not_counted"):
        yield f"{name}:"
        yield from (f"- {plain_text(item)}" for item in getattr(page, name))
    yield from _table(page.assumptions)


def _engineering(page: Engineering) -> Iterator[str]:
    yield from ("# Engineering", plain_text(page.title), plain_text(page.lead))
    tables = (
        page.measured,
        page.used,
        page.attribution,
        page.effects,
        page.effort,
        page.break_even,
        page.findings,
    )
    for table in tables:
        if table is not None:
            yield from _table(table)
    for mean in page.forest.means if page.forest else ():
        yield f"  mean {mean.name}: {mean.label}"
    for front in page.pareto:
        yield f"  {front.name}: {front.y_axis} over {front.x_axis}"
        yield from (f"  mark {m.tip}{m.suffix}" for m in front.marks)
    for spread in page.latencies.spreads if page.latencies else ():
        yield f"  latencies {spread.name}: {spread.label}"
    if page.power is not None:
        yield f"power: {page.power.alt}"
        yield from (f"  {arm.name}: {line}" for arm in page.power.arms for line in arm.lines)
        yield from _table(page.power.table)
    yield from (plain_text(words) for words in page.left_out)
    yield from (f"failed {plain_text(name)}: {plain_text(error)}" for name, error in page.failures)
    yield from (f"{plain_text(name)}: {plain_text(value)}" for name, value in page.environment)


def _table(table: Table) -> Iterator[str]:
    yield f"== {plain_text(table.caption)}"
    yield " | ".join([table.head, *(f"{plain_text(c.name)} ({c.unit})" for c in table.columns)])
    for row in table.rows:
        cells = (" / ".join(plain_text(line) for line in cell) for cell in row.cells)
        yield " | ".join([plain_text(row.head), *cells])
    yield plain_text(table.note)
