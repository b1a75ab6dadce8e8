"""``carbonlens initiatives``: what is left of claimed savings, at a later period's volume and mix."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Annotated

from carbonlens.cli import grammar
from carbonlens.cli.account import InventoryOption, PeriodOption
from carbonlens.cli.drivers import ByOption
from carbonlens.cli.factors import FactorsOption
from carbonlens.cli.options import JsonOption, LedgerOption
from carbonlens.errors import UsageError

if TYPE_CHECKING:
    from carbonlens.domain.drivers_savings import Adjustment


def register(app: grammar.Commands) -> None:
    """Add the command."""
    app.add("initiatives", initiatives_command)


def initiatives_command(
    period: PeriodOption = None,
    against: Annotated[
        str | None,
        grammar.Option("--against", metavar="P", help="The baseline [the last period before each began]."),
    ] = None,
    by: ByOption = "workload",
    adjust: Annotated[
        list[str] | None,
        grammar.Option("--adjust", metavar="ID=KWH:WHY", help="What else changed, added to the baseline."),
    ] = None,
    inventory: InventoryOption = None,
    factors: FactorsOption = None,
    ledger: LedgerOption = None,
    json: JsonOption = False,
) -> None:
    """Measure claimed savings: the baseline at this period's volume and mix, less what was measured."""
    from carbonlens.app.drivers_savings import make_register
    from carbonlens.cli import drivers_savings_view

    made = make_register(
        period,
        against,
        by=by,
        adjustments=[_adjustment(text) for text in adjust or ()],
        inventory=inventory,
        factors=factors,
        ledger=ledger,
    )
    if json:
        drivers_savings_view.print_as_json(made)
    else:
        drivers_savings_view.print_as_text(made)


def _adjustment(text: str) -> Adjustment:
    from carbonlens.domain.drivers_savings import Adjustment
    from carbonlens.domain.limits import MOST
    from carbonlens.domain.units import J_PER_KWH

    name, _, rest = text.partition("=")
    amount, _, why = rest.partition(":")
    try:
        kwh = float(amount)
    except ValueError:
        kwh = math.nan
    # A NaN is below nothing; more than a record holds is a slip, and no sum could show the rest of it.
    if not (name and why.strip()) or not abs(kwh) * J_PER_KWH < float(MOST):
        raise UsageError(
            f"{text!r} is no adjustment",
            where="--adjust",
            mend="write ID=KWH:WHY, such as int8=-120:new data",
        )
    return Adjustment(initiative_id=name, kwh=kwh, why=why.strip())
