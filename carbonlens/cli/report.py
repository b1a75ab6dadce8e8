"""``carbonlens report``: the pages and tables of a comparison, as HTML, PDF, XLSX, Markdown or JSON."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from carbonlens.cli import grammar
from carbonlens.cli.account import InventoryOption
from carbonlens.cli.compare_business import BusinessOption
from carbonlens.cli.factors import FactorsOption
from carbonlens.cli.options import AssumptionsOption, JsonOption, LedgerOption, StudyOption
from carbonlens.cli.report_progress import Progress
from carbonlens.cli.report_templates import InitTemplateOption, ListTemplatesOption

QuarterOption = Annotated[
    str | None,
    grammar.Option("--period", metavar="P", help="Quarter of the sustainability report, 2026Q3 [the last]."),
]

TemplatesOption = Annotated[
    Path | None,
    grammar.Option("--templates", metavar="DIR", help="Your own templates and theme.toml [pyproject.toml]."),
]

WithoutRecordsOption = Annotated[
    bool,
    grammar.Option("--without-records", help="Leave the ledger's records out of the sustainability report."),
]

WithHostNamesOption = Annotated[
    bool,
    grammar.Option(
        "--with-host-names", help="Let records that name hosts in plain letters travel with that report."
    ),
]

if TYPE_CHECKING:
    from carbonlens.domain.comparison import Comparison
    from carbonlens.domain.evidence import Evidence


def register(app: grammar.Commands) -> None:
    """Add the command."""
    app.add("report", report_command)


def report_command(
    kind: Annotated[
        str, grammar.Argument(metavar="KIND", help="business-case, engineering or sustainability.")
    ],
    output: Annotated[Path, grammar.Option("-o", "--output", metavar="DIR", help="Folder to write to.")],
    study: StudyOption = None,
    format_: Annotated[
        str, grammar.Option("--format", help="Of html, pdf, xlsx, md, json, with commas.")
    ] = "html,pdf",
    assumptions: AssumptionsOption = None,
    business: BusinessOption = None,
    ledger: LedgerOption = None,
    period: QuarterOption = None,
    inventory: InventoryOption = None,
    factors: FactorsOption = None,
    templates: TemplatesOption = None,
    without_records: WithoutRecordsOption = False,
    with_host_names: WithHostNamesOption = False,
    memory_mb: Annotated[
        int, grammar.Option("--memory-mb", metavar="MB", min=1, help="Memory that making a file may take.")
    ] = 1024,
    timeout: Annotated[
        float, grammar.Option("--timeout", metavar="S", min=0.1, help="Seconds that making a file may take.")
    ] = 300.0,
    list_templates: ListTemplatesOption = False,
    init_template: InitTemplateOption = None,
    json: JsonOption = False,
) -> None:
    """Write a report of a study; `carbonlens verify` computes it again from the file alone."""
    from carbonlens.app.report import Making, check_choice, ensure_writable, report, start_rendering
    from carbonlens.cli import output as out
    from carbonlens.render.worker import Limits

    notes: list[str] = []
    del list_templates, init_template  # their callbacks end the command
    formats = tuple(dict.fromkeys(f.strip() for f in format_.split(",")))
    with Progress() as progress:
        making = Making(limits=Limits(memory_mb=memory_mb, seconds=timeout), progress=progress.tell)
        if kind == "sustainability":
            from carbonlens.app.sustainability_report import report_sustainability

            refuse_others(study=study, assumptions=assumptions, business=business)
            written = report_sustainability(
                period,
                formats=formats,
                out_dir=output,
                inventory=inventory,
                factors=factors,
                ledger=ledger,
                templates=templates,
                with_records=not without_records,
                with_host_names=with_host_names,
                tell=notes.append,
                making=making,
            )
        else:
            refuse_others(
                kind,
                period=period,
                inventory=inventory,
                factors=factors,
                without_records=without_records or None,
                with_host_names=with_host_names or None,
            )
            check_choice((kind,), formats)
            ensure_writable(output)
            start_rendering(formats)
            found, evidence = _compared(study, assumptions, business, ledger)
            written = report(
                found,
                sections=(kind,),
                formats=formats,
                out_dir=output,
                evidence=evidence,
                templates=templates,
                making=making,
            )
    _say(written, json=json)
    for text in notes:
        out.note(text)


def _compared(
    study: str | None, assumptions: Path | None, business: Path | None, ledger: Path | None
) -> tuple[Comparison, Evidence]:
    """Return what a report of a study is about, and what that was computed from."""
    from carbonlens.app.assumptions import load_assumptions
    from carbonlens.app.business import with_business
    from carbonlens.app.compare import compared

    vector = None if assumptions is None else load_assumptions(assumptions)
    found = compared(study, ledger=ledger, vector=vector)
    return found.comparison, found.evidence if business is None else with_business(found, business)


def _say(written: dict[str, Path], *, json: bool) -> None:
    from carbonlens.cli import output as out

    if json:
        out.print_json(
            {"schema": "carbonlens/report/1", "files": {name: str(path) for name, path in written.items()}}
        )
        return
    for path in written.values():
        out.say(f"saved {path}")


def refuse_others(kind: str = "sustainability", **given: object) -> None:
    """Refuse options that the kind of report does not take: unread ones would be believed.

    Args:
        kind: Of the report.
        given: Options by name; ``None`` where they were not given.

    Raises:
        UsageError: If one was given.
    """
    from carbonlens.errors import UsageError

    for name, value in given.items():
        if value is not None:
            option = f"--{name.replace('_', '-')}"
            raise UsageError(f"the {kind} report takes no {option}", where=option, mend="leave it out")
