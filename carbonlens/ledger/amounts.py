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

_LARGE: Final = 1e10
_LARGE_FROM: Final = 1e9
"""Sigmas from here on, in joules or joules times a rate, are squared at ``_LARGE`` times less."""

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


def squares(sigma: Expr) -> tuple[Expr, Expr]:
    """Return the squares of sigmas in two decimals, of which one is null, for sums that are exact.

    A decimal of 38 digits cannot hold the squares of both a milligram and a billion: those of
    large sigmas are kept ``_LARGE`` times smaller. ``variance`` puts the sums together.
    """
    import narwhals as nw

    shrunk = sigma / _LARGE
    is_large = sigma >= _LARGE_FROM
    small = nw.when(~is_large).then(sigma * sigma).cast(exact_variance())
    return small, nw.when(is_large).then(shrunk * shrunk).cast(exact_variance())


def variance(small: Expr, large: Expr) -> Expr:
    """Return a variance of the sums of ``squares``, as a float."""
    import narwhals as nw

    wide: Expr = large.cast(nw.Float64).fill_null(0.0) * (_LARGE * _LARGE)
    return small.cast(nw.Float64).fill_null(0.0) + wide


def exact_variance() -> Any:  # noqa: ANN401 - narwhals' type is imported late
    """Return the type in which sigmas and variances are summed: the same for any order of summing."""
    import narwhals as nw

    return nw.Decimal(38, 9)
