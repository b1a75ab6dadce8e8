"""``carbonlens doctor``: what can be measured here, why not better, one safe mend each."""

from __future__ import annotations

from carbonlens.cli import grammar
from carbonlens.cli.options import JsonOption, LedgerOption

_NOTHING_TO_READ = 3


def register(app: grammar.Commands) -> None:
    """Add the command."""
    app.add("doctor", doctor_command)


def doctor_command(ledger: LedgerOption = None, json: JsonOption = False) -> None:
    """Say what can be measured on this machine, and what would make it better."""
    from carbonlens.app.doctor import examine
    from carbonlens.cli import doctor_view

    found = examine(ledger=ledger)
    if json:
        doctor_view.print_as_json(found)
    else:
        doctor_view.print_as_text(found)
    if not found.can_measure:
        raise grammar.Exit(_NOTHING_TO_READ)
