"""``carbonlens run -- CMD``: measure any command; its exit code passes through."""

from __future__ import annotations

from typing import Annotated

from carbonlens.cli import grammar
from carbonlens.cli.options import LedgerOption, TagOption
from carbonlens.cli.run_plain import measured


def register(app: grammar.Commands) -> None:
    """Add the command; everything after ``--`` belongs to the user's command, whatever bytes it is of.

    Labels too: one that is no UTF-8 does not cost the run (DESIGN, law 8), it is kept with a mark.
    """
    app.add("run", run_command_line, options_first=True, any_bytes=True)


def run_command_line(
    command: Annotated[
        list[str], grammar.Argument(metavar="-- CMD...", help="The command and its arguments.")
    ],
    step: Annotated[str | None, grammar.Option("--step", help="Step of the study this run measures.")] = None,
    study: Annotated[str | None, grammar.Option("--study", help="Study the run belongs to.")] = None,
    unit: Annotated[str | None, grammar.Option("--unit", help="Functional unit, such as image.")] = None,
    units: Annotated[str | None, grammar.Option("--units", help="How many units the command does.")] = None,
    repeat: Annotated[int | None, grammar.Option("--repeat", help="Number of the round, 0 or more.")] = None,
    tag: TagOption = None,
    record_args: Annotated[
        bool, grammar.Option("--record-args", help="Record the arguments, not only their hash.")
    ] = False,
    trace: Annotated[
        str | None,
        grammar.Option("--trace", metavar="FILE", help="Keep every reading in FILE (CSV; .gz compresses)."),
    ] = None,
    live: Annotated[
        bool, grammar.Option("--live", help="Show power, energy so far and rate on the terminal's last line.")
    ] = False,
    ledger: LedgerOption = None,
    json: Annotated[
        bool,
        grammar.Option(
            "--json", help="Print JSON as one last line on stdout, after the command's own output."
        ),
    ] = False,
) -> None:
    """Run a command and record its energy; its output and exit code are its own."""
    code = measured(
        command,
        step=step,
        study=study,
        unit=unit,
        units=units,
        repeat=repeat,
        tag=tag,
        record_args=record_args,
        trace=trace,
        live=live,
        ledger=ledger,
        json=json,
    )
    raise grammar.Exit(code)
