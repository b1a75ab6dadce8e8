"""``carbonlens factors``: list, show, diff, import."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from carbonlens.cli import grammar
from carbonlens.cli.options import JsonOption

FactorsOption = Annotated[
    str | None,
    grammar.Option(
        "--factors",
        metavar="PATH",
        is_path=True,
        help="Your own factors, file or folder [CARBONLENS_FACTORS, pyproject.toml].",
    ),
]


def register(app: grammar.Commands) -> None:
    """Add the command group."""
    group = grammar.Commands(help="Look at the factors of emissions; bring your own.")
    group.add("list", list_command)
    group.add("show", show_command)
    group.add("diff", diff_command)
    group.add("import", import_command)
    app.add_command(group, "factors")


def list_command(
    zone: Annotated[
        str | None, grammar.Option("--zone", help="Country, grid zone, cloud region, provider or device.")
    ] = None,
    kind: Annotated[str | None, grammar.Option("--kind", help="grid, pue, wue, embodied ...")] = None,
    year: Annotated[str | None, grammar.Option("--year", help="Year, or the start of any period.")] = None,
    all_: Annotated[bool, grammar.Option("--all", help="Print every row.")] = False,
    factors: FactorsOption = None,
    json: JsonOption = False,
) -> None:
    """List factors; without a filter, what each table holds."""
    from carbonlens.app.factors import list_factors
    from carbonlens.cli import factors_view

    listed = list_factors(zone=zone, kind=kind, year=year, factors=factors)
    if json:
        factors_view.print_list_as_json(listed)
    elif zone is None and kind is None and year is None and not all_:
        factors_view.print_coverage(listed)
    else:
        factors_view.print_list(listed, every=all_)


def show_command(
    factor_id: Annotated[str, grammar.Argument(metavar="ID", help="Id, as factors list prints it.")],
    factors: FactorsOption = None,
    json: JsonOption = False,
) -> None:
    """Show one factor whole: what it counts, its source and its licence."""
    from carbonlens.app.factors import show_factor
    from carbonlens.cli import factors_view

    factors_view.print_factor(show_factor(factor_id, factors=factors), json=json)


def diff_command(
    old: Annotated[
        str,
        grammar.Argument(metavar="OLD", help="Table, folder of tables, or carbonlens wheel.", is_path=True),
    ],
    new: Annotated[
        str | None,
        grammar.Argument(metavar="NEW", help="Likewise; without it OLD is held against ours.", is_path=True),
    ] = None,
    all_: Annotated[bool, grammar.Option("--all", help="Print every change.")] = False,
    json: JsonOption = False,
) -> None:
    """Compare your table with the bundled ones, or an old set with a new one."""
    from carbonlens.app.factors import diff_factors
    from carbonlens.cli import factors_view

    factors_view.print_difference(diff_factors(old, new), every=all_, json=json)


def import_command(
    file: Annotated[
        Path, grammar.Argument(metavar="FILE", help="CSV of ours, Electricity Maps, Ember or OWID.")
    ],
    since: Annotated[int, grammar.Option("--since", metavar="YEAR", help="Take no earlier year.")] = 2019,
    replace: Annotated[bool, grammar.Option("--replace", help="Replace your table of that name.")] = False,
    factors: FactorsOption = None,
    json: JsonOption = False,
) -> None:
    """Check a table and take its rows into your factor folder."""
    from carbonlens.app.factor_import import import_factors
    from carbonlens.cli import factors_view

    result = import_factors(file, factors=factors, since=since, replace=replace)
    factors_view.print_import(result, json=json)
    if result.file is None:
        raise grammar.Exit(3)
