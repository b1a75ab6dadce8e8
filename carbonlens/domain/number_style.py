"""Number style: how a user's theme writes numbers, money and dates."""

from __future__ import annotations

from typing import Literal

import msgspec

DatePattern = Literal["YYYY-MM-DD", "DD.MM.YYYY", "DD/MM/YYYY", "MM/DD/YYYY"]


class NumberStyle(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How figures are written; the digits stay those that were computed.

    Attributes:
        decimal: Decimal mark.
        group: What groups thousands.
        minus: Sign of a negative number.
        currency: The ISO code, or the sign where there is one nobody mistakes.
        dates: How a day is written.
    """

    decimal: Literal[".", ","] = "."
    group: Literal["\u202f", "\u00a0", " ", ",", ".", "'", "’", ""] = "\u202f"
    minus: Literal["−", "-"] = "−"
    currency: Literal["code", "sign"] = "code"
    dates: DatePattern = "YYYY-MM-DD"
