"""``carbonlens ledger``: compact, verify, export, close, redact."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from carbonlens.cli import grammar
from carbonlens.cli.account import InventoryOption
from carbonlens.cli.options import JsonOption, LedgerOption
from carbonlens.cli.restate import adjustments_command, restate_command
from carbonlens.errors import UsageError

PeriodText = "2026Q3, 2026-09 or 2026"
TimezoneOption = Annotated[
    str | None,
    grammar.Option("--timezone", metavar="Z", help="Time zone of the period [the inventory's, else UTC]."),
]
FiscalOption = Annotated[
    int | None,
    grammar.Option(
        "--fiscal-year-start",
        metavar="MONTH",
        help="Month the fiscal year begins in [the inventory's, else 1].",
    ),
]
ByOption = Annotated[
    str | None,
    grammar.Option("--by", metavar="NAME", help="Who does it, as it will be kept [a pseudonym of the user]."),
]


def register(app: grammar.Commands) -> None:
    """Add the command group."""
    group = grammar.Commands(help="Look after the ledger: its records and periods.")
    group.add("compact", compact_command)
    group.add("verify", verify_command)
    group.add("export", export_command)
    group.add("close", close_command)
    group.add("redact", redact_command)
    group.add("restate", restate_command)
    group.add("adjustments", adjustments_command)
    app.add_command(group, "ledger")


def compact_command(
    month: Annotated[
        list[str] | None,
        grammar.Option("--month", metavar="YYYY-MM", help="Only this month, also one that is not over."),
    ] = None,
    ledger: LedgerOption = None,
    json: JsonOption = False,
) -> None:
    """Fold past months' runs into Parquet; nothing is lost if it is cut off."""
    from carbonlens.app.ledger_care import compact
    from carbonlens.cli import ledger_view

    months = None if month is None else [_month(m) for m in month]
    ledger_view.print_compaction(compact(ledger=ledger, months=months), json=json)


def verify_command(ledger: LedgerOption = None, json: JsonOption = False) -> None:
    """Check hashes, duplicates, corrections, clocks and closes; exit 4 on a mismatch."""
    from carbonlens.app.ledger_care import verify
    from carbonlens.cli import ledger_view

    result = verify(ledger=ledger)
    ledger_view.print_verification(result, json=json)
    if not result.sound:
        raise grammar.Exit(4)


def export_command(
    format_: Annotated[
        str, grammar.Option("--format", metavar="FORMAT", help="csv, parquet or json.")
    ] = "csv",
    output: Annotated[
        Path | None,
        grammar.Option("-o", "--output", metavar="FILE", help="File to write [stdout].", dir_okay=False),
    ] = None,
    period: Annotated[
        str | None,
        grammar.Option("--period", metavar="PERIOD", help=f"Runs with a part in it: {PeriodText}."),
    ] = None,
    study: Annotated[
        str | None, grammar.Option("--study", metavar="STUDY", help="Only runs of this study.")
    ] = None,
    timezone: TimezoneOption = None,
    fiscal_year_start: FiscalOption = None,
    inventory: InventoryOption = None,
    ledger: LedgerOption = None,
    json: Annotated[bool, grammar.Option("--json", help="The same as --format json.")] = False,
) -> None:
    """Export the runs that count: a table with units in its names, or whole records."""
    from carbonlens.app.inventory import period_calendar
    from carbonlens.app.ledger_care import export
    from carbonlens.cli import ledger_view
    from carbonlens.ledger.export import FORMATS

    wanted = "json" if json else format_
    if wanted not in FORMATS:
        raise UsageError(f"no format {wanted!r}", where="--format", mend="give csv, parquet or json")
    calendar = None
    if period is not None:
        calendar = period_calendar(inventory, timezone=timezone, fiscal_year_start=fiscal_year_start)
    result = export(
        format_=FORMATS[wanted],
        ledger=ledger,
        period=period,
        study=study,
        calendar=calendar,
    )
    ledger_view.write_export(result, output)


def close_command(
    period: Annotated[str, grammar.Argument(metavar="PERIOD", help=f"{PeriodText}.")],
    by: ByOption = None,
    timezone: TimezoneOption = None,
    fiscal_year_start: FiscalOption = None,
    inventory: InventoryOption = None,
    ledger: LedgerOption = None,
    json: JsonOption = False,
) -> None:
    """Close a period: what comes later is a prior-period adjustment."""
    from carbonlens.app.inventory import period_calendar
    from carbonlens.app.ledger_care import close
    from carbonlens.cli import ledger_view

    calendar = period_calendar(inventory, timezone=timezone, fiscal_year_start=fiscal_year_start)
    ledger_view.print_close(
        close(period, ledger=ledger, by=by, calendar=calendar, inventory=inventory), json=json
    )


def redact_command(
    run: Annotated[str, grammar.Argument(metavar="RUN", help="Run id, or enough of its start or end.")],
    field: Annotated[
        list[str],
        grammar.Option("--field", metavar="F", help="tags.owner, origin.args, energy; several times."),
    ],
    why: Annotated[str, grammar.Option("--why", metavar="TEXT", help="The reason; it is kept.")],
    by: ByOption = None,
    study: Annotated[
        str | None,
        grammar.Option("--study", metavar="STUDY", help="Of the run, where several studies have its id."),
    ] = None,
    ledger: LedgerOption = None,
    json: JsonOption = False,
) -> None:
    """Take content out of a run for good; a tombstone with its hash stays. Exit 4 where some remains."""
    from carbonlens.app.ledger_care import redact
    from carbonlens.cli import ledger_view

    done = redact(run, field, why=why, by=by, study=study, ledger=ledger)
    ledger_view.print_redaction(done, json=json)
    if done.remaining:
        raise grammar.Exit(4)


def _month(text: str) -> str:
    digits = text.replace("-", "")
    is_month = len(digits) == 6 and digits.isascii() and digits.isdigit() and "01" <= digits[4:] <= "12"
    if text == "undated" or is_month:
        return digits
    raise UsageError(f"{text!r} is no month", where="--month", mend="write 2026-09")
