"""``carbonlens import``: other tools' files and run tables into the ledger."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from carbonlens.cli import grammar
from carbonlens.cli.options import JsonOption, LedgerOption, TagOption
from carbonlens.cli.tags import parse_tags

if TYPE_CHECKING:
    from carbonlens.app.importing import ImportResult


def register(app: grammar.Commands) -> None:
    """Add the command."""
    app.add("import", import_command)


def import_command(
    paths: Annotated[list[Path], grammar.Argument(metavar="FILE|DIR...", help="What to read.")],
    tag: TagOption = None,
    site: Annotated[str | None, grammar.Option("--site", help="Site of runs that state none.")] = None,
    tz: Annotated[
        str | None, grammar.Option("--tz", metavar="ZONE", help="Zone of local times, e.g. Europe/Paris.")
    ] = None,
    boundary: Annotated[
        str | None,
        grammar.Option(
            "--boundary", help="What energies include, if a file does not say: device, it, facility."
        ),
    ] = None,
    map_file: Annotated[
        Path | None,
        grammar.Option("--map", metavar="MAP.toml", help="Paths and projects to team, site, zone; columns."),
    ] = None,
    interval: Annotated[
        float | None, grammar.Option("--interval", metavar="S", help="Seconds between samples without times.")
    ] = None,
    start: Annotated[
        str | None, grammar.Option("--start", metavar="TIME", help="When a log of relative times began.")
    ] = None,
    voltage: Annotated[
        float | None, grammar.Option("--voltage", metavar="V", help="Volts, for logs of current alone.")
    ] = None,
    columns: Annotated[
        str | None,
        grammar.Option("--columns", metavar="A,B,...", help="Columns of an nvidia-smi log without a header."),
    ] = None,
    host: Annotated[
        str | None, grammar.Option("--host", metavar="NAME", help="Machine of traces that name none.")
    ] = None,
    study: Annotated[
        str | None, grammar.Option("--study", help="Study of runs that state none; compare needs it.")
    ] = None,
    step: Annotated[
        str | None, grammar.Option("--step", help="Step of it that the runs measure, such as baseline.")
    ] = None,
    role: Annotated[
        str | None, grammar.Option("--role", help="What the runs are for: variant, effort, training, ...")
    ] = None,
    unit: Annotated[str | None, grammar.Option("--unit", help="Functional unit, such as inference.")] = None,
    units: Annotated[
        str | None, grammar.Option("--units", metavar="N", help="How many units each run did.")
    ] = None,
    strict: Annotated[
        bool, grammar.Option("--strict", help="Exit 3 if anything was repaired, dropped or unclear.")
    ] = False,
    ledger: LedgerOption = None,
    json: JsonOption = False,
) -> None:
    """Import other tools' runs and meters' logs, run tables, bills; each content counts once."""
    from carbonlens.app.importing import import_files
    from carbonlens.app.importing_placing import Said, placing_of
    from carbonlens.cli.progress_bar import ProgressBar
    from carbonlens.cli.run_plain import units_of

    said = Said(
        tags=parse_tags(tag),
        site=site,
        tz=tz,
        boundary=boundary,
        voltage_v=voltage,
        interval_s=interval,
        start=start,
        columns=columns,
        host=host,
        study=study,
        step=step,
        role=role,
        unit=unit,
        units=units_of(units),
        map_file=map_file,
    )
    with ProgressBar("import", "file") as bar:
        result = import_files(paths, ledger=ledger, placing=placing_of(said), progress=bar.show)
    _tell(result, json=json, strict=strict)


def _tell(result: ImportResult, *, json: bool, strict: bool) -> None:
    from carbonlens.cli import import_view

    if json:
        import_view.print_as_json(result)
    else:
        import_view.print_as_text(result)
    worth_a_look = any(finding.severity != "info" for f in result.files for finding in f.findings)
    unclear = worth_a_look or any(f.status == "refused" for f in result.files)
    if result.refused or (strict and unclear):
        raise grammar.Exit(3)
