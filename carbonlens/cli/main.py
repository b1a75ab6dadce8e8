"""Entry point: the commands, and how errors become exit codes."""

from __future__ import annotations

import sys

import typer

from carbonlens._version import __version__
from carbonlens.cli import calibrate, compare, demo, doctor, import_, ledger, report, run, runs
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
runs.register(app)
import_.register(app)
compare.register(app)
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
        app()
    except CarbonlensError as error:
        sys.stderr.write(f"carbonlens: {error}\n")
        sys.exit(error.exit_code)
    except BrokenPipeError:
        # The reader of our output went away (head, less): not a fault.
        sys.stderr.close()
        sys.exit(0)


if __name__ == "__main__":
    main()
