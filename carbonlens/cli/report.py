"""``carbonlens report``: the pages and tables of a comparison, as HTML, PDF, XLSX, Markdown or JSON."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from carbonlens.cli.compare_business import BusinessOption
from carbonlens.cli.options import AssumptionsOption, JsonOption, LedgerOption, StudyOption


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("report")(report_command)


def report_command(
    kind: Annotated[str, typer.Argument(metavar="KIND", help="business-case or engineering.")],
    output: Annotated[Path, typer.Option("-o", "--output", metavar="DIR", help="Folder to write to.")],
    study: StudyOption = None,
    format_: Annotated[
        str, typer.Option("--format", help="Of html, pdf, xlsx, md, json, with commas.")
    ] = "html,pdf",
    assumptions: AssumptionsOption = None,
    business: BusinessOption = None,
    ledger: LedgerOption = None,
    json: JsonOption = False,
) -> None:
    """Write a report of a study; `carbonlens verify` computes it again from the file alone."""
    from carbonlens.app.assumptions import load_assumptions
    from carbonlens.app.business import with_business
    from carbonlens.app.compare import compared
    from carbonlens.app.report import check_choice, ensure_writable, report
    from carbonlens.cli import output as out

    formats = tuple(dict.fromkeys(f.strip() for f in format_.split(",")))
    check_choice((kind,), formats)
    ensure_writable(output)
    vector = None if assumptions is None else load_assumptions(assumptions)
    found = compared(study, ledger=ledger, vector=vector)
    evidence = found.evidence if business is None else with_business(found, business)
    written = report(found.comparison, sections=(kind,), formats=formats, out_dir=output, evidence=evidence)
    if json:
        out.print_json(
            {"schema": "carbonlens/report/1", "files": {name: str(path) for name, path in written.items()}}
        )
        return
    for path in written.values():
        out.say(f"saved {path}")
