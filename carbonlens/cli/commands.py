"""The commands, put together: loaded where the command line is more than a plain ``run``."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from importlib import import_module
from typing import Final

import typer

from carbonlens._version import __version__

MODULES: Final = {
    "demo": "demo",
    "doctor": "doctor",
    "calibrate": "calibrate",
    "run": "run",
    "bench": "bench",
    "runs": "runs",
    "import": "import_",
    "study": "study",
    "compare": "compare",
    "check": "check",
    "report": "report",
    "verify": "verify",
    "export": "export",
    "factors": "factors",
    "prices": "prices",
    "inventory": "inventory",
    "allocate": "allocate",
    "account": "account",
    "drivers": "drivers",
    "initiatives": "drivers_savings",
    "sci": "sci",
    "explain": "explain",
    "charges": "charges",
    "audit": "audit",
    "ledger": "ledger",
}
"""Commands and the modules that add them, in the order the help lists them."""


def _version(show: bool) -> None:
    if show:
        typer.echo(f"carbonlens {__version__}")
        raise typer.Exit


def root(
    version: bool = typer.Option(
        False, "--version", callback=_version, is_eager=True, help="Print the version and stop."
    ),
) -> None:
    """Take options that stand before a command."""


def built(names: Iterable[str] = MODULES) -> typer.Typer:
    """Return the command line with these commands.

    Args:
        names: Of the commands. The one that is called is enough: loading and describing
            the others takes as long as bare Python's own start.
    """
    made = typer.Typer(
        name="carbonlens",
        help="What AI model runs cost in energy, carbon and money, and which step saved how much.",
        rich_markup_mode=None,
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    made.callback()(root)
    for name in names:
        import_module(f"carbonlens.cli.{MODULES[name]}").register(made)
    return made


def outlined() -> typer.Typer:
    """Return the command line for its list of commands, which shows no options of theirs.

    To describe these takes twice as long as everything else; none can be called.
    """
    made = built()
    for command in made.registered_commands:
        command.callback = _bare(command.callback)
    for group in made.registered_groups:
        full = group.typer_instance
        group.typer_instance = typer.Typer(help=None if full is None else full.info.help)
        group.typer_instance.callback()(_bare(None))
    return made


def _bare(command: Callable[..., object] | None) -> Callable[[], None]:
    """Return a function without options that reads in the help as another one does."""

    def listed() -> None:
        raise AssertionError("it is listed only")

    listed.__doc__ = None if command is None else command.__doc__
    return listed
