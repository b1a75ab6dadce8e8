"""``carbonlens import``: other tools' files and run tables into the ledger."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from carbonlens.cli.options import JsonOption, LedgerOption, TagOption
from carbonlens.cli.tags import parse_tags


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("import")(import_command)


def import_command(
    paths: Annotated[list[Path], typer.Argument(metavar="FILE|DIR...", help="What to read.")],
    tag: TagOption = None,
    site: Annotated[str | None, typer.Option("--site", help="Site of runs that state none.")] = None,
    strict: Annotated[
        bool, typer.Option("--strict", help="Exit 3 if anything was repaired, dropped or unclear.")
    ] = False,
    ledger: LedgerOption = None,
    json: JsonOption = False,
) -> None:
    """Import run tables, bills and meter readings (CSV); each content counts once."""
    from carbonlens.app.importing import import_files
    from carbonlens.cli import import_view

    result = import_files(paths, ledger=ledger, tags=parse_tags(tag), site=site)
    if json:
        import_view.print_as_json(result)
    else:
        import_view.print_as_text(result)
    worth_a_look = any(finding.severity != "info" for f in result.files for finding in f.findings)
    unclear = worth_a_look or any(f.status == "refused" for f in result.files)
    if result.refused or (strict and unclear):
        raise typer.Exit(3)
