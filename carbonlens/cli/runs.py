"""``carbonlens runs``: what the ledger holds; stale journals are sealed on the way."""

from __future__ import annotations

from typing import Annotated

from carbonlens.cli import grammar, runs_edit
from carbonlens.cli.options import JsonOption, LedgerOption
from carbonlens.errors import UsageError

StudyFilter = Annotated[
    str | None, grammar.Option("--study", metavar="STUDY", help="Only runs of this study.")
]


def register(app: grammar.Commands) -> None:
    """Add the command group; ``runs`` alone lists."""
    group = grammar.Commands(help="List and show the ledger's runs.", before=runs_command, alone=True)
    group.add("list", list_command)
    group.add("show", show_command)
    group.add("recover", recover_command)
    runs_edit.register(group)
    app.add_command(group, "runs")


def runs_command(
    study: StudyFilter = None,
    limit: Annotated[
        int, grammar.Option("--limit", metavar="N", help="Most runs to print; JSON has all.")
    ] = 10,
    ledger: LedgerOption = None,
    json: JsonOption = False,
) -> None:
    """List runs, newest last."""
    asked = grammar.named()
    if asked is None:
        _list(study, limit, ledger, json)
    elif ledger is not None or json or study is not None:
        raise UsageError(
            "options stand before the sub-command",
            mend=f"write them after it: carbonlens runs {asked} ...",
        )


def list_command(
    study: StudyFilter = None,
    limit: Annotated[
        int, grammar.Option("--limit", metavar="N", help="Most runs to print; JSON has all.")
    ] = 10,
    ledger: LedgerOption = None,
    json: JsonOption = False,
) -> None:
    """List runs, newest last."""
    _list(study, limit, ledger, json)


def _list(study: str | None, limit: int, ledger: LedgerOption, json: bool) -> None:
    if limit < 1:
        raise UsageError(f"--limit {limit} prints no run", mend="give 1 or more")
    from carbonlens.app.runs import list_runs
    from carbonlens.cli import runs_view

    listing = list_runs(ledger=ledger, study=study, newest=None if json else limit)
    if json:
        runs_view.print_list_as_json(listing)
    else:
        runs_view.print_list(listing, limit)


def show_command(
    run_id: Annotated[
        str, grammar.Argument(metavar="RUN", help="Run id, or enough of its start or end, or: latest.")
    ],
    study: Annotated[
        str | None,
        grammar.Option("--study", metavar="STUDY", help="Of the run, where several studies have its id."),
    ] = None,
    ledger: LedgerOption = None,
    json: JsonOption = False,
) -> None:
    """Show one run whole; also a record that a later one corrects."""
    from carbonlens.app.runs import find_record
    from carbonlens.cli import runs_view

    found = find_record(run_id, study=study, ledger=ledger)
    if json:
        runs_view.print_run_as_json(found.run, found.superseded_by)
    else:
        runs_view.print_run(found.run, found.superseded_by)


def recover_command(ledger: LedgerOption = None, json: JsonOption = False) -> None:
    """Seal the journals of runs whose process is gone."""
    from carbonlens.app.runs import recover_runs
    from carbonlens.cli import runs_view

    runs_view.print_recovered(recover_runs(ledger=ledger), json=json)
