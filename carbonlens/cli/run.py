"""``carbonlens run -- CMD``: measure any command; its exit code passes through."""

from __future__ import annotations

import os
import signal
from contextlib import suppress
from decimal import Decimal, InvalidOperation
from typing import Annotated

import typer

from carbonlens.cli.options import LedgerOption, TagOption, parse_tags
from carbonlens.errors import UsageError


def register(app: typer.Typer) -> None:
    """Add the command; everything after ``--`` belongs to the user's command."""
    app.command("run", context_settings={"allow_interspersed_args": False})(run_command_line)


def run_command_line(
    command: Annotated[list[str], typer.Argument(metavar="-- CMD...", help="The command and its arguments.")],
    step: Annotated[str | None, typer.Option("--step", help="Step of the study this run measures.")] = None,
    study: Annotated[str | None, typer.Option("--study", help="Study the run belongs to.")] = None,
    unit: Annotated[str | None, typer.Option("--unit", help="Functional unit, such as image.")] = None,
    units: Annotated[str | None, typer.Option("--units", help="How many units the command does.")] = None,
    repeat: Annotated[int | None, typer.Option("--repeat", help="Number of the round, from 1.")] = None,
    tag: TagOption = None,
    record_args: Annotated[
        bool, typer.Option("--record-args", help="Record the arguments, not only their hash.")
    ] = False,
    trace: Annotated[
        str | None,
        typer.Option("--trace", metavar="FILE", help="Keep every reading in FILE (CSV; .gz compresses)."),
    ] = None,
    ledger: LedgerOption = None,
    json: Annotated[
        bool,
        typer.Option("--json", help="Print JSON as one last line on stdout, after the command's own output."),
    ] = False,
) -> None:
    """Run a command and record its energy; its output and exit code are its own."""
    from carbonlens.app.command import run_command

    if repeat is not None and repeat < 1:
        raise UsageError(f"--repeat {repeat} is no round", mend="rounds count from 1")
    result = run_command(
        command,
        step=step,
        study=study,
        unit=unit,
        units=_units(units),
        repeat=repeat,
        tags=parse_tags(tag),
        record_args=record_args,
        ledger=ledger,
        trace=trace,
    )
    from carbonlens.cli import run_view

    run_view.print_result(result, json=json)
    if result.signal is not None:
        die_by(result.signal)
    raise typer.Exit(result.exit_code)


def _units(text: str | None) -> Decimal | None:
    if text is None:
        return None
    try:
        value = Decimal(text)
    except InvalidOperation:
        value = Decimal("NaN")
    if not value.is_finite() or value <= 0:
        raise UsageError(f"--units {text!r} is no positive number", mend="write --units 1000")
    return value


def die_by(number: int) -> None:
    """End this process by the signal that ended the command, as a shell would see it."""
    import resource

    # The command's own core dump, if any, is the one of interest.
    with suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))
    if number not in (signal.SIGKILL, signal.SIGSTOP):
        signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)
