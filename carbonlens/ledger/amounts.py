"""Amounts: what queries sum, and the expressions that make it of a row's energy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

import msgspec

from carbonlens.accounting.formulas import electricity_cost, emissions_kg
from carbonlens.ledger import rates

if TYPE_CHECKING:
    import narwhals as nw

    Expr = nw.Expr


class Amount(msgspec.Struct, frozen=True, kw_only=True):
    """A quantity that a query sums.

    Attributes:
        name: Of its columns.
        rate: The rates that make it of energy; ``None`` for the energy itself.
            Values then are in joules times the rate's unit per kWh: exact, and
            divided by 3.6e6 where they are read.
    """

    name: str
    rate: rates.Name | None = None


ENERGY: Final = Amount(name="energy")
EMISSIONS: Final = Amount(name="emissions", rate="emissions")
COST: Final = Amount(name="cost", rate="cost")

_FORMULAS: Final = {"emissions": emissions_kg, "cost": electricity_cost}


def groups_of(by: Sequence[str], amounts: Sequence[Amount]) -> list[str]:
    """Return the columns to group by: nothing is added over boundaries, nor over currencies."""
    currency = ["currency"] if any(a.rate == "cost" for a in amounts) else []
    return [*dict.fromkeys(by), "boundary", *currency]


def value(amount: Amount) -> Expr:
    """Return a row's amount: exact."""
    import narwhals as nw

    return at_rate(nw.col("energy_j"), amount)


def at_rate(energy: Expr, amount: Amount) -> Expr:
    """Return what the amount's rate makes of an energy, or of a sigma of it: exact."""
    import narwhals as nw

    if amount.rate is None:
        return energy
    made: Expr = _FORMULAS[amount.rate](energy, nw.col(f"{amount.rate}_rate"))
    return made


def at_float_rate(energy: Expr, amount: Amount) -> Expr:
    """Return the same as a float, for variances: a wide decimal is slow to turn into one."""
    import narwhals as nw

    plain = energy.cast(nw.Float64)
    if amount.rate is None:
        return plain
    made: Expr = _FORMULAS[amount.rate](plain, nw.col(f"{amount.rate}_rate").cast(nw.Float64))
    return made


def exact_variance() -> Any:  # noqa: ANN401 - narwhals' type is imported late
    """Return the type in which sigmas and variances are summed: the same for any order of summing."""
    import narwhals as nw

    return nw.Decimal(38, 9)
