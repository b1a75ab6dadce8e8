"""``carbonlens report``: the pages and tables of a comparison, as HTML, PDF, XLSX, Markdown or JSON."""

from __future__ import annotations

import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

from carbonlens.cli import grammar
from carbonlens.cli.account import InventoryOption
from carbonlens.cli.compare_business import BusinessOption
from carbonlens.cli.factors import FactorsOption
from carbonlens.cli.options import AssumptionsOption, JsonOption, LedgerOption, StudyOption

if TYPE_CHECKING:
    from carbonlens.domain.comparison import Comparison
    from carbonlens.domain.evidence import Evidence

_SHOWN_AFTER_S: Final = 1.0


def register(app: grammar.Commands) -> None:
    """Add the command."""
    app.add("report", report_command)


def _list_templates(wanted: bool) -> None:
    if not wanted:
        return
    from carbonlens.app.report_look import list_templates
    from carbonlens.cli import output as out

    for name, blocks in list_templates().items():
        out.say(name)
        for block, words in blocks:
            out.say(f"  {block:<14} {words}")
    raise grammar.Exit(0)


def _init_templates(folder: Path | None) -> None:
    if folder is None:
        return
    from carbonlens.app.report_look import init_templates
    from carbonlens.cli import output as out

    for path in init_templates(folder):
        out.say(f"saved {path}")
    raise grammar.Exit(0)


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
    period: Annotated[
        str | None,
        grammar.Option(
            "--period", metavar="P", help="Quarter of the sustainability report, 2026Q3 [the last]."
        ),
    ] = None,
    inventory: InventoryOption = None,
    factors: FactorsOption = None,
    templates: Annotated[
        Path | None,
        grammar.Option(
            "--templates", metavar="DIR", help="Your own templates and theme.toml [pyproject.toml]."
        ),
    ] = None,
    memory_mb: Annotated[
        int, grammar.Option("--memory-mb", metavar="MB", min=1, help="Memory that making a file may take.")
    ] = 1024,
    timeout: Annotated[
        float, grammar.Option("--timeout", metavar="S", min=0.1, help="Seconds that making a file may take.")
    ] = 300.0,
    list_templates: Annotated[
        bool, grammar.Option("--list-templates", callback=_list_templates, help="List templates and blocks.")
    ] = False,
    init_template: Annotated[
        Path | None,
        grammar.Option(
            "--init-template", metavar="DIR", callback=_init_templates, help="Begin a folder of templates."
        ),
    ] = None,
    json: JsonOption = False,
) -> None:
    """Write a report of a study; `carbonlens verify` computes it again from the file alone."""
    from carbonlens.app.report import Making, check_choice, ensure_writable, report, start_rendering
    from carbonlens.render.worker import Limits

    del list_templates, init_template  # their callbacks end the command
    formats = tuple(dict.fromkeys(f.strip() for f in format_.split(",")))
    with _Progress() as progress:
        making = Making(limits=Limits(memory_mb=memory_mb, seconds=timeout), progress=progress.tell)
        if kind == "sustainability":
            from carbonlens.app.sustainability_report import report_sustainability, unread_templates
            from carbonlens.cli.output import note

            refuse_others(study=study, assumptions=assumptions, business=business, templates=templates)
            if (own := unread_templates()) is not None:
                note(f"the sustainability report takes no templates: those of {own} are not used")
            written = report_sustainability(
                period,
                formats=formats,
                out_dir=output,
                inventory=inventory,
                factors=factors,
                ledger=ledger,
                making=making,
            )
        else:
            refuse_others(period=period, inventory=inventory, factors=factors, kind=kind)
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
            raise UsageError(f"the {kind} report takes no --{name}", where=f"--{name}", mend="leave it out")


class _Progress:
    """A line on a terminal that says what is being done, once that takes more than a moment."""

    def __init__(self) -> None:
        self._is_terminal = sys.stderr is not None and sys.stderr.isatty()
        self._shown = False

    def tell(self, words: str, seconds: float) -> None:
        """Write the line again."""
        if self._is_terminal and seconds > _SHOWN_AFTER_S:
            self._write(f"report: {words}, {seconds:.0f} s")
            self._shown = True

    def __enter__(self) -> _Progress:
        """Begin without a line."""
        return self

    def __exit__(self, *_: object) -> None:
        """Take the line away."""
        if self._shown:
            self._write("")

    @staticmethod
    def _write(line: str) -> None:
        with suppress(OSError):
            sys.stderr.write(f"\r\x1b[K{line}")
            sys.stderr.flush()
