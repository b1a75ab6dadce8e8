"""What ``carbonlens factors`` prints."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from carbonlens.app.factor_import import Imported
from carbonlens.app.factors import BUNDLED, Compared, Listed, Shown
from carbonlens.cli import output
from carbonlens.domain.counting import counted
from carbonlens.domain.factor_row import FactorRow
from carbonlens.factors.difference import Change

_LICENCE_WIDTH: Final = 13
"""Columns of a licence in the table; a longer one stands whole below it."""

_MOST: Final = 15
"""Rows that are printed unless all are asked for."""

_MOST_ALONE: Final = 3
_WORDS: Final = {"life_cycle": "life-cycle"}


def print_list_as_json(listed: Listed) -> None:
    """Print rows and tables."""
    output.print_json(
        {
            "schema": "carbonlens/factors/1",
            "factor_set_sha256": listed.sha256,
            "of": listed.of,
            "subjects": listed.subjects,
            "factors": [_row_json(row, own=row.factor_id in listed.own) for row in listed.rows],
            "tables": listed.coverage,
            "findings": listed.findings,
        }
    )


def print_coverage(listed: Listed) -> None:
    """Print what each table holds."""
    header = ["table", "kinds", "rows", "subjects", "periods", "licence"]
    rows = []
    told: dict[str, tuple[str, ...]] = {}
    for table in listed.coverage:
        periods = table.first if table.first == table.last else f"{table.first}..{table.last}"
        licence = table.licences[0] if len(table.licences) == 1 else f"{len(table.licences)} licences"
        if licence not in table.licences or len(licence) > _LICENCE_WIDTH:
            licence, told[table.table] = "below", table.licences
        kinds = ", ".join(table.kinds)
        held = [str(table.rows), str(table.subjects), periods, licence]
        rows.append([output.clip(table.table, 27), output.clip(kinds, 8), *held])
    for line in output.table(header, rows, left=2):
        output.say(line)
    for table_name, licences in told.items():
        for line in output.wrap(f"{table_name}: {' | '.join(licences)}", output.WIDTH, cut=False):
            output.say(line)
    own = f", {len(listed.own)} of them yours" if listed.own else ""
    output.say(f"{listed.of} factors in force{own}, set {listed.sha256[:12]}")
    output.say("carbonlens factors list --zone FR | --kind pue | --year 2024 lists rows")
    output.print_findings(listed.findings)


def print_list(listed: Listed, *, every: bool) -> None:
    """Print rows, at most ``_MOST`` unless every one is wanted."""
    if not listed.rows:
        place = f" for {', '.join(listed.subjects)}" if listed.subjects else ""
        output.say(f"no such factor{place}; {listed.of} are in force")
        output.print_findings(listed.findings)
        return
    shown = listed.rows if every else listed.rows[-_MOST:]
    rows = [_list_row(row, own=row.factor_id in listed.own) for row in shown]
    header = ["id", "value", "unit", "counts"]
    rest = sum(max(len(r[i]) for r in (header, *rows)) for i in (1, 2)) + 6
    longest = max(len(r[3]) for r in (header, *rows))
    room = max(output.WIDTH - rest - longest, 24)
    clipped = [[output.clip(r[0], room), *r[1:]] for r in rows]
    for line in output.table(header, clipped, left=1):
        output.say(line)
    if len(shown) < len(listed.rows):
        output.say(f"the last {len(shown)} of {counted(len(listed.rows), 'factor')} (--all prints every one)")
    if listed.own:
        output.say("* yours")
    output.print_findings(listed.findings)


def print_factor(shown: Shown, *, json: bool) -> None:
    """Print one factor whole."""
    row = shown.row
    if json:
        output.print_json(
            {
                "schema": "carbonlens/factor/1",
                "factor": _row_json(row, own=shown.place is not None),
                "place": shown.place,
                "replaces": [_row_json(r, own=False) for r in shown.replaces],
            }
        )
        return
    subject = f"{row.subject}, {row.name}" if row.name else row.subject
    interval = f" [{row.low:f}, {row.high:f}]" if row.low is not None and row.high is not None else ""
    facts = [
        ("id", row.factor_id),
        (row.kind, f"{row.value:f} {_unit(row)}{interval}".strip()),
        ("of", subject),
        ("period", row.period),
        ("counts", _basis(row) or "not stated"),
        ("one sigma", "not stated" if row.u_relative is None else f"{row.u_relative:.1%}"),
        ("source", row.source),
        ("address", row.address),
        ("licence", row.licence),
        ("published", row.vintage + (f", {row.version}" if row.version else "")),
        ("note", row.note),
        ("read from", shown.place or ""),
        ("replaces", "; ".join(f"{r.value:f} {r.factor_id}" for r in shown.replaces)),
        ("sha256", row.sha256),
    ]
    for name, text in facts:
        if text:
            output.say_fact(name, text)


def print_difference(compared: Compared, *, every: bool, json: bool) -> None:
    """Print what differs, the largest change first."""
    found = compared.difference
    if json:
        output.print_json(
            {
                "schema": "carbonlens/factors-diff/1",
                "old": compared.old,
                "new": compared.new,
                "changed": [_change_json(change) for change in found.changed],
                "same": found.same,
                "only_old": found.only_old,
                "only_new": found.only_new,
            }
        )
        return
    shown = found.changed if every else found.changed[:_MOST]
    if shown:
        header = ["subject", "period", "counts", "old", "new", "unit", "change"]
        for line in output.table(header, [_change_row(change) for change in shown], left=3):
            output.say(line)
    if len(shown) < len(found.changed):
        rest = counted(len(found.changed) - len(shown), "smaller change")
        output.say(f"... and {rest} (--all prints every one)")
    output.say_words(
        f"{counted(len(found.changed), 'figure')} changed, {found.same} alike, "
        f"{len(found.only_old)} only in {compared.old}, {len(found.only_new)} only in {compared.new}"
    )
    for where, rows in ((compared.old, found.only_old), (compared.new, found.only_new)):
        for row in rows if every else rows[:_MOST_ALONE]:
            output.say(
                output.clip(f"only in {where}: {row.factor_id} {row.value:f} {_unit(row)}", output.WIDTH)
            )
        if len(rows) > _MOST_ALONE and not every:
            output.say_words(
                f"... and {len(rows) - _MOST_ALONE} more only in {where} (--all prints every one)"
            )
    if compared.old == BUNDLED:
        output.say_words("Of the bundled factors, those of the same kinds and subjects are compared.")


def print_import(result: Imported, *, json: bool) -> None:
    """Print what was taken and what was refused."""
    if json:
        output.print_json({"schema": "carbonlens/factors-import/1", **msgspec.structs.asdict(result)})
        return
    if result.file is None:
        output.say_words(f"nothing taken from {result.source} ({result.format})")
    else:
        rows = counted(result.taken, "factor")
        output.say_words(f"saved {rows} of {result.source} ({result.format}) in {result.file}")
    for reason, count in sorted(result.left_out.items(), key=lambda item: -item[1]):
        output.say_words(f"left out: {counted(count, 'line')} {reason}")
    if result.refused:
        output.say(f"refused: {counted(len(result.refused), 'factor')}")
    output.print_findings([*result.refused, *result.findings])


def _list_row(row: FactorRow, *, own: bool) -> list[str]:
    return [("* " if own else "") + row.factor_id, f"{row.value:f}", _unit(row), _basis(row)]


def _change_row(change: Change) -> list[str]:
    new, ratio = change.new, change.ratio
    moved = "" if ratio is None else f"{ratio - 1:+.0%}" if ratio < 3 else f"x {ratio:.1f}"
    figures = [f"{float(r.value):.4g}" for r in (change.old, new)]
    return [output.clip(new.subject, 24), new.period, new.span or "", *figures, _unit(new), moved]


def _basis(row: FactorRow) -> str:
    parts = (row.method, row.averaging, row.span, row.flow)
    return " ".join(_WORDS.get(part, part) for part in parts if part and part not in {"location", "average"})


def _unit(row: FactorRow) -> str:
    return "" if row.unit == "1" else row.unit


def _row_json(row: FactorRow, *, own: bool) -> dict[str, Any]:
    return {**msgspec.structs.asdict(row), "unit": row.unit, "own": own, "sha256": row.sha256}


def _change_json(change: Change) -> dict[str, Any]:
    return {"old": change.old, "new": change.new, "ratio": change.ratio}
