"""``carbonlens drivers``: why a period is another one than that before."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from carbonlens.cli import grammar
from carbonlens.cli.account import InventoryOption, PeriodOption
from carbonlens.cli.factors import FactorsOption
from carbonlens.cli.options import JsonOption, LedgerOption
from carbonlens.errors import UsageError

if TYPE_CHECKING:
    from carbonlens.domain.drivers import Measure


ByOption = Annotated[
    str, grammar.Option("--by", metavar="LABEL", help="Classes of work: workload, model, team, tag:NAME.")
]


def register(app: grammar.Commands) -> None:
    """Add the command."""
    app.add("drivers", drivers_command)


def drivers_command(
    period: PeriodOption = None,
    against: Annotated[
        str | None, grammar.Option("--against", metavar="P", help="The earlier period [the one just before].")
    ] = None,
    by: ByOption = "workload",
    measure: Annotated[
        str,
        grammar.Option("--measure", metavar="M", help="energy, carbon-location, carbon-market, cost or all."),
    ] = "energy",
    same: Annotated[
        list[str] | None,
        grammar.Option("--same", metavar="OLD=NEW", help="Work that goes under another name now."),
    ] = None,
    inventory: InventoryOption = None,
    factors: FactorsOption = None,
    ledger: LedgerOption = None,
    json: JsonOption = False,
) -> None:
    """Explain a change between two periods: volume, mix, place, energy per unit, PUE, grid and price."""
    from carbonlens.app.drivers import make_drivers
    from carbonlens.cli import drivers_view

    made = make_drivers(
        period,
        against,
        by=by,
        measures=_measures(measure),
        same=_same(same or ()),
        inventory=inventory,
        factors=factors,
        ledger=ledger,
    )
    if json:
        drivers_view.print_as_json(made)
    else:
        drivers_view.print_as_text(made)


def _measures(name: str) -> tuple[Measure, ...]:
    from carbonlens.domain.drivers import MEASURES

    found = MEASURES if name == "all" else tuple(m for m in MEASURES if m == name)
    if not found:
        raise UsageError(f"no measure {name!r}", where="--measure", mend=f"known: {', '.join(MEASURES)}, all")
    return found


def _same(given: list[str] | tuple[()]) -> dict[str, str]:
    pairs = [text.partition("=") for text in given]
    for (old, sign, new), text in zip(pairs, given, strict=True):
        if not (old and sign and new):
            raise UsageError(f"{text!r} names no two", where="--same", mend="write OLD=NEW")
    return {old: new for old, _, new in pairs}
