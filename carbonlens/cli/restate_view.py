"""How restatements and prior-period adjustments are printed."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from carbonlens.accounting.base_year import Recalculation
from carbonlens.accounting.restatement import PriorPeriod, Restated
from carbonlens.app.restatement import Restating
from carbonlens.cli import output
from carbonlens.domain.counting import counted
from carbonlens.domain.estimate import Estimate
from carbonlens.ledger.calendar import spoken
from carbonlens.reporting import format as fmt

_MOST: Final = 8
_MOST_REASONS: Final = 3
_NAME_WIDTH: Final = 36


def print_restating(found: Restating, *, json: bool) -> None:
    """Print old and new of the figures that changed, totals first, with reasons and the base year."""
    if json:
        output.print_json(_restating(found))
        return
    made = found.made
    if not made.rows:
        output.say_words(
            f"Nothing of {made.period} changes: {counted(made.same, 'figure is', 'figures are')} the same."
        )
        output.print_findings(made.findings)
        return
    output.say_words(
        f"{made.period}: {counted(len(made.rows), 'figure changes', 'figures change')}, {made.same} do not"
    )
    ranked = sorted(made.rows, key=lambda r: (".total." not in r.figure_id, -abs(r.change or 0.0)))
    rows = [_row(r, made.period) for r in ranked[:_MOST]]
    for text in output.table(["figure", "old", "new", "change"], rows):
        output.say(text)
    if len(ranked) > _MOST:
        output.say(f"... and {counted(len(ranked) - _MOST, 'more figure')} (--json lists all)")
    _print_reasons(made.rows)
    for method, one in made.base_year.items():
        _wrapped(_base_year(method, one))
    if found.file is None:
        output.say("Nothing was kept.")
    else:
        before = ", supersedes the last one" if found.stored.supersedes else ""
        output.say(f"saved {Path(found.file).name}{before}")
    output.print_findings(made.findings)


def print_adjustments(lines: Sequence[PriorPeriod], *, json: bool) -> None:
    """Print what closed periods hold more or less than they were closed with."""
    if json:
        rows = [
            {
                "period": x.period,
                "found_in": x.found_in,
                "boundary": x.boundary,
                "metered_at": x.metered_at,
                "records": x.records,
                "closed_j": x.closed_j,
                "closed_state": x.closed_state,
                "now_j": x.now_j,
                "now_state": x.now.state,
                "adjustment_j": x.adjustment_j,
            }
            for x in lines
        ]
        output.print_json({"schema": "carbonlens/ledger-adjustments/1", "adjustments": rows})
        return
    if not lines:
        output.say("No closed period holds other energy than it was closed with.")
        return
    periods = {p for x in lines for p in (x.period, *x.found_in)}
    # Two closes of one name, of different calendars, are told apart by the whole name.
    name = spoken if len(set(map(spoken, periods))) == len(periods) else str
    table = [
        [
            name(x.period),
            ", ".join(map(name, x.found_in)),
            (x.boundary or "not stated") + (f", metered at {x.metered_at}" if x.metered_at else ""),
            str(len(x.records)),
            *_joules(x),
        ]
        for x in lines
    ]
    for text in output.table(
        ["closed", "found in", "boundary", "records", "as closed", "now", "difference"], table, left=3
    ):
        output.say(text)


def _row(row: Restated, period: str) -> list[str]:
    name = output.clip(row.figure_id.removeprefix(f"statement.{period}."), _NAME_WIDTH)
    change = row.change
    return [name, _amount(row.old), _amount(row.new), "-" if change is None else f"{change:+.1%}"]


def _amount(estimate: Estimate | None) -> str:
    if estimate is None:
        return "-"
    return fmt.mass(estimate).text if estimate.unit == "kg" else fmt.plain(estimate, estimate.unit).text


def _joules(line: PriorPeriod) -> list[str]:
    """Return a row's energies in one unit, that of the largest: figures in two cannot be subtracted."""
    given = [None if j is None else float(j) for j in (line.closed_j, line.now_j, line.adjustment_j)]
    scale = fmt.energy_scale(max((abs(j) for j in given if j is not None), default=None))
    texts = [
        fmt.energy(Estimate(value=j, unit="J", state="unknown" if j is None else state), scale).text
        for j, state in zip(given, (line.closed_state, line.now.state), strict=False)
    ]
    change = Estimate(value=given[-1], unit="J", state="unknown" if given[-1] is None else "known")
    return [*texts, fmt.energy(change, scale, plus=True).text]


def _print_reasons(rows: Sequence[Restated]) -> None:
    counts: dict[tuple[str, str], int] = {}
    for row in rows:
        counts[row.reason, row.detail] = counts.get((row.reason, row.detail), 0) + 1
    ranked = sorted(counts, key=lambda k: (-counts[k], k))
    for reason, detail in ranked[:_MOST_REASONS]:
        told = f": {detail}" if detail else ""
        _wrapped(f"{reason} ({counted(counts[reason, detail], 'figure')}){told}")
    if len(ranked) > _MOST_REASONS:
        output.say(f"... and {counted(len(ranked) - _MOST_REASONS, 'more reason')}")


def _base_year(method: str, one: Recalculation) -> str:
    if not one.counted and not one.left_out:
        held = "unknown, before and now" if one.base_kg.value is None else "unchanged"
        return f"Base year {one.year}, {method}-based: {held}"
    change = "unknown" if one.change is None else f"{one.change:+.1%}"
    threshold = "none declared" if one.threshold is None else f"{one.threshold:.0%}"
    verdict = {
        True: f"recalculated to {_amount(one.recalculated_kg)}",
        False: "kept as it was stated",
        None: "open",
    }[one.is_needed]
    return f"Base year {one.year}, {method}-based: {change} against a threshold of {threshold}: {verdict}"


def _wrapped(text: str) -> None:
    for line in textwrap.wrap(text, output.width(), subsequent_indent="  ", break_long_words=False):
        output.say(line)


def _restating(found: Restating) -> dict[str, Any]:
    stored = found.stored
    return {
        "schema": "carbonlens/ledger-restate/1",
        "period": found.made.period,
        "ledger": found.ledger,
        "file": found.file,
        "reason": stored.reason,
        "why": stored.why,
        "old": {"from": stored.old, "factors_sha256": stored.old_factors_sha256},
        "new": {"from": stored.new, "factors_sha256": stored.new_factors_sha256},
        "supersedes": stored.supersedes,
        "same": found.made.same,
        "figures": [
            {
                "id": r.figure_id,
                "label": r.label,
                "old": None if r.old is None else r.old.as_json(),
                "new": None if r.new is None else r.new.as_json(),
                "difference": r.delta.as_json(),
                "change": r.change,
                "reason": r.reason,
                "detail": r.detail,
                "causes": r.causes,
            }
            for r in found.made.rows
        ],
        "base_year": {
            method: {
                "year": one.year,
                "is_needed": one.is_needed,
                "change": one.change,
                "threshold": one.threshold,
                "base_kg": one.base_kg.as_json(),
                "recalculated_kg": one.recalculated_kg.as_json(),
            }
            for method, one in found.made.base_year.items()
        },
        "findings": found.made.findings,
    }
