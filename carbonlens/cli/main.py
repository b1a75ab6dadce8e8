"""Entry point: the commands, and how errors become exit codes."""

from __future__ import annotations

import sys

import typer

from carbonlens._version import __version__
from carbonlens.cli import (
    bench,
    calibrate,
    check,
    compare,
    demo,
    doctor,
    import_,
    ledger,
    output,
    report,
    run,
    runs,
    study,
)
from carbonlens.errors import CarbonlensError

app = typer.Typer(
    name="carbonlens",
    help="What AI model runs cost in energy, carbon and money, and which step saved how much.",
    rich_markup_mode=None,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
demo.register(app)
doctor.register(app)
calibrate.register(app)
run.register(app)
bench.register(app)
runs.register(app)
import_.register(app)
study.register(app)
compare.register(app)
check.register(app)
report.register(app)
ledger.register(app)


def _version(show: bool) -> None:
    if show:
        typer.echo(f"carbonlens {__version__}")
        raise typer.Exit


@app.callback()
def root(
    version: bool = typer.Option(
        False, "--version", callback=_version, is_eager=True, help="Print the version and stop."
    ),
) -> None:
    """Take options that stand before a command."""


def main() -> None:
    """Run the command line; a carbonlens error becomes one line and its exit code."""
    for stream in (sys.stdout, sys.stderr):
        # A terminal that knows no µ or − gets a question mark, not a traceback.
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")
    try:
        code = _ended()
        _flush()
    except CarbonlensError as error:
        output.note(f"carbonlens: {error}")
        code = error.exit_code
        _give_up_stdout()
    except BrokenPipeError:
        # The reader of our output went away (head, less): not a fault.
        code = 0
        _give_up_stdout()
    sys.exit(code)


def _ended() -> int | str | None:
    """Run the command and return its exit code."""
    try:
        app()
    except SystemExit as end:
        return end.code
    return 0


def _flush() -> None:
    """Write out what is pending, while a failure can still be said.

    Raises:
        UnwritableError: If stdout cannot be written.
        BrokenPipeError: If its reader went away.
    """
    try:
        if sys.stdout is not None:
            sys.stdout.flush()
    except BrokenPipeError:
        raise
    except (OSError, ValueError) as error:
        raise output.unwritable(getattr(error, "strerror", None) or "it is closed") from error


def _give_up_stdout() -> None:
    """Print what stdout takes; else leave none, lest the interpreter fails on it at its end."""
    try:
        if sys.stdout is not None:
            sys.stdout.flush()
    except (OSError, ValueError):
        sys.stdout = None  # as Python itself has it when it is closed


if __name__ == "__main__":
    main()
