"""The commands, put together: loaded where the command line is more than a plain ``run``."""

from __future__ import annotations

from collections.abc import Iterable
from importlib import import_module
from typing import Annotated, Final

from carbonlens._version import __version__
from carbonlens.cli import grammar, output

MODULES: Final = {
    "demo": "demo",
    "doctor": "doctor",
    "calibrate": "calibrate",
    "run": "run",
    "bench": "bench",
    "import": "import_",
    "compare": "compare",
    "check": "check",
    "report": "report",
    "verify": "verify",
    "export": "export",
    "allocate": "allocate",
    "account": "account",
    "drivers": "drivers",
    "initiatives": "drivers_savings",
    "sci": "sci",
    "explain": "explain",
    "charges": "charges",
    "audit": "audit",
    "runs": "runs",
    "study": "study",
    "factors": "factors",
    "prices": "prices",
    "inventory": "inventory",
    "ledger": "ledger",
}
"""Commands and the modules that add them, in the order the help lists them."""


def _version(show: bool) -> None:
    if show:
        output.say(f"carbonlens {__version__}")
        raise grammar.Exit


def root(
    version: Annotated[
        bool, grammar.Option("--version", callback=_version, help="Print the version and stop.")
    ] = False,
) -> None:
    """Take options that stand before a command."""


def built(names: Iterable[str] = MODULES) -> grammar.Commands:
    """Return the command line with these commands.

    Args:
        names: Of the commands. The one that is called is enough: to load the others takes as
            long as bare Python's own start. None is described before it is asked about.
    """
    made = grammar.Commands(
        help="What AI model runs cost in energy, carbon and money, and which step saved how much.",
        before=root,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    for name in names:
        import_module(f"carbonlens.cli.{MODULES[name]}").register(made)
    return made
