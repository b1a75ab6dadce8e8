"""``carbonlens runs tag`` and ``runs supersede``: corrections; the old record stays."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from carbonlens.cli import grammar, output
from carbonlens.cli.options import JsonOption, LedgerOption
from carbonlens.cli.tags import parse_tags, refuse_fields
from carbonlens.domain.counting import counted

if TYPE_CHECKING:
    from carbonlens.app.ledger_care import Edited

StudyOption = Annotated[
    str | None,
    grammar.Option("--study", metavar="STUDY", help="Of the run, where several studies have its id."),
]
RunArgument = Annotated[str, grammar.Argument(metavar="RUN", help="Run id, or enough of its start or end.")]


def register(group: grammar.Commands) -> None:
    """Add the commands to the group ``runs``."""
    group.add("tag", tag_command)
    group.add("supersede", supersede_command)


def tag_command(
    run: RunArgument,
    tags: Annotated[
        list[str], grammar.Argument(metavar="K=V...", help="Tags; an empty value takes one out.")
    ],
    study: StudyOption = None,
    ledger: LedgerOption = None,
    json: JsonOption = False,
) -> None:
    """Tag a run: a new record with the tags supersedes it."""
    from carbonlens.app.ledger_care import tag

    given = parse_tags(tags, option="")
    refuse_fields(given, f"give carbonlens runs supersede {run} --by {{}}=...")
    _print(tag(run, given, study=study, ledger=ledger), json=json)


def supersede_command(
    run: RunArgument,
    by: Annotated[
        list[str],
        grammar.Option(
            "--by",
            metavar="FILE|FIELD=VALUE",
            help="A JSON file, or a field: units=20; several times.",
            is_path=True,
        ),
    ],
    why: Annotated[
        str | None, grammar.Option("--why", metavar="TEXT", help="Reason, kept in the new record.")
    ] = None,
    study: StudyOption = None,
    ledger: LedgerOption = None,
    json: JsonOption = False,
) -> None:
    """Correct a run: a new record supersedes it, the old one stays."""
    from carbonlens.app.ledger_care import supersede
    from carbonlens.ledger.editing import changes_from

    _print(supersede(run, changes_from(by), why=why, study=study, ledger=ledger), json=json)


def _print(edited: Edited, *, json: bool) -> None:
    if json:
        output.print_json(
            {
                "schema": "carbonlens/runs-edit/1",
                "run_id": edited.after.run_id,
                "supersedes": edited.before.run_id,
                "adjusts": edited.adjusts,
                "run": edited.after,
            }
        )
        return
    output.say_words(f"Run {edited.before.run_id} is superseded by {edited.after.run_id}.")
    if edited.settles:
        output.note(f"settled: {counted(edited.settles + 1, 'correction')} of the run by several hosts")
    if edited.adjusts is not None:
        from carbonlens.ledger.calendar import spoken

        output.note(f"period {spoken(edited.adjusts)} is closed: this is a prior-period adjustment")
