"""Money: an exact amount in one currency."""

from __future__ import annotations

from decimal import Decimal

import msgspec


class Money(msgspec.Struct, frozen=True):
    """An exact amount of one currency (ISO 4217 code)."""

    amount: Decimal
    currency: str

    def __add__(self, other: Money) -> Money:
        """Add two amounts of the same currency.

        Raises:
            ValueError: If the currencies differ; rates are never guessed.
        """
        if other.currency != self.currency:
            raise ValueError(f"cannot add {other.currency} to {self.currency}")
        return Money(self.amount + other.amount, self.currency)
