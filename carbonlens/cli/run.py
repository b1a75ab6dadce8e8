"""``carbonlens run -- CMD``: measure any command; its exit code passes through."""

from __future__ import annotations

import os
import signal
import sys
from typing import Annotated

import typer

from carbonlens.cli.options import JsonOption, LedgerOption, TagOption, parse_tags
from carbonlens.errors import UsageError


def register(app: typer.Typer) -> None:
    """Add the command; everything after ``--`` belongs to the user's command."""
    app.command("run", context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False})(
        run_command_line
    )


def run_command_line(
    command: Annotated[list[str], typer.Argument(metavar="-- CMD...", help="The command and its arguments.")],
    step: Annotated[str | None, typer.Option("--step", help="Step of the study this run measures.")] = None,
    study: Annotated[str | None, typer.Option("--study", help="Study the run belongs to.")] = None,
    unit: Annotated[str | None, typer.Option("--unit", help="Functional unit, such as image.")] = None,
    units: Annotated[str | None, typer.Option("--units", help="How many units the command does.")] = None,
    tag: TagOption = None,
    record_args: Annotated[
        bool, typer.Option("--record-args", help="Record the arguments, not only their hash.")
    ] = False,
    ledger: LedgerOption = None,
    json: JsonOption = False,
) -> None:
    """Run a command and record its energy; it is never refused, slowed or changed."""
    from carbonlens.app.command import run_command

    result = run_command(
        command,
        step=step,
        study=study,
        unit=unit,
        units=_units(units),
        tags=parse_tags(tag),
        record_args=record_args,
        ledger=ledger,
    )
    _tell(result.run, json)
    if result.signal is not None:
        _die_by(result.signal)
    raise typer.Exit(result.exit_code)
