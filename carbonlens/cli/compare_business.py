"""Options of ``compare`` that ask for a business case."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from carbonlens.cli import grammar

if TYPE_CHECKING:
    from carbonlens.app.business import BusinessOptions

BusinessOption = Annotated[
    Path | None,
    grammar.Option("--business", help="TOML file of a business case: what the adopted steps are worth."),
]
HorizonOption = Annotated[
    str | None, grammar.Option("--horizon", help="Of the business case: 36 months, 3 years.")
]
DiscountOption = Annotated[
    str | None, grammar.Option("--discount-rate", help="A year, effective, real, before tax: 8% or 0.08.")
]
StartOption = Annotated[str | None, grammar.Option("--start", help="First month of the business case.")]
RegimeOption = Annotated[
    str | None,
    grammar.Option(
        "--regime", help="How the capacity is bought: on_demand, committed, reserved, owned; decides on cash."
    ),
]
UntilOption = Annotated[
    str | None, grammar.Option("--until", help="Last day of a commitment or reservation.")
]
OneOffOption = Annotated[
    list[str] | None,
    grammar.Option(
        "--one-off", metavar="NAME=AMOUNT", help="Paid before the first month: engineering=30000."
    ),
]
SeedOption = Annotated[int | None, grammar.Option("--seed", help="Of the Monte-Carlo draws.")]


def options_of(
    business: Path | None = None,
    horizon: str | None = None,
    discount_rate: str | None = None,
    start: str | None = None,
    regime: str | None = None,
    until: str | None = None,
    one_off: list[str] | None = None,
    seed: int | None = None,
) -> BusinessOptions:
    """Return the options as the use case takes them."""
    from carbonlens.app.business import BusinessOptions

    return BusinessOptions(
        file=business,
        horizon=horizon,
        discount_rate=discount_rate,
        start=start,
        regime=regime,
        until=until,
        one_offs=tuple(one_off or ()),
        seed=seed,
    )
