"""Use case: the business case of a comparison, from a file, from options, or from both."""

from __future__ import annotations

import re
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import msgspec

from carbonlens.accounting.amounts import NO_CURRENCY
from carbonlens.domain.business import MONTHS_PER_YEAR, Business, OneOff
from carbonlens.domain.business_result import BusinessResult
from carbonlens.domain.comparison import Comparison
from carbonlens.domain.evidence import Evidence
from carbonlens.errors import UsageError

if TYPE_CHECKING:
    from carbonlens.app.compare import Compared

_DAYS_PER_YEAR: Final = 365.2425
_SPAN: Final = re.compile(r"\s*(?P<count>\d+(?:\.\d+)?)\s*(?P<unit>years?|y|months?|m)?\s*")
_SHARE: Final = re.compile(r"\s*(?P<number>-?\d+(?:\.\d+)?(?:e-?\d+)?)\s*(?P<percent>%)?\s*")
_AMOUNT: Final = re.compile(
    r"\s*(?:(?P<name>[^=]+)=)?\s*(?P<amount>\d+(?:\.\d+)?)\s*(?P<currency>[A-Z]{3})?\s*"
)


class BusinessOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Main values of a case as the command line takes them; each wins over the file's.

    Attributes:
        file: ``business.toml``.
        horizon: ``3 years``, ``36 months``.
        discount_rate: ``0.08`` or ``8%``.
        start: First month.
        regime: For all of the saving.
        until: Last day of a commitment.
        one_offs: ``engineering=30000``.
        seed: Of the draws.
    """

    file: Path | None = None
    horizon: str | None = None
    discount_rate: str | None = None
    start: str | None = None
    regime: str | None = None
    until: str | None = None
    one_offs: tuple[str, ...] = ()
    seed: int | None = None

    @property
    def asks(self) -> bool:
        """Whether a business case is asked for at all."""
        return any(getattr(self, f) not in (None, ()) for f in self.__struct_fields__)


def business_of(comparison: Comparison, options: BusinessOptions) -> Business:
    """Return the case that a file and options state for a comparison.

    What neither states of the volume is taken from the study, and the currency from the prices.

    Args:
        comparison: Of a study.
        options: As the command line takes them.

    Raises:
        UsageError: If an option is malformed.
        InputFileError: If the file cannot be read.
        ConfigError: If what they state together has faults; all are named.
    """
    from carbonlens.inventory import business_file

    per_day = comparison.study.per_day
    given = business_file.Given(
        head=_head(options),
        units_per_month=None if per_day is None else per_day * _DAYS_PER_YEAR / MONTHS_PER_YEAR,
        currency=_currency(comparison),
        one_offs=tuple(_one_off(text) for text in options.one_offs),
    )
    if options.file is None:
        return business_file.of_options(given)
    return business_file.load(options.file, given)


def with_business(found: Compared, file: Path) -> Evidence:
    """Return what a comparison was computed from, with a business case for its report.

    Args:
        found: The comparison with its evidence.
        file: ``business.toml``.

    Raises:
        InputFileError: If it cannot be read.
        ConfigError: If it has faults.
    """
    case = business_of(found.comparison, BusinessOptions(file=file))
    return msgspec.structs.replace(found.evidence, business=case)


def business_result(comparison: Comparison, business: Business) -> BusinessResult:
    """Return what a comparison is worth under a case.

    Args:
        comparison: Of a study.
        business: The case.

    Raises:
        IncomparableError: If both are priced in different currencies.
        ConfigError: If engineering is stated by both.
    """
    from carbonlens.compare.business import business_case

    return business_case(comparison, business)


def _currency(comparison: Comparison) -> str | None:
    """Return the currency of the comparison's prices, else of what its runs cost; ``None`` without any."""
    total = comparison.total or comparison.baseline_amounts
    stated = None if total is None or total.cost.unit == NO_CURRENCY else total.cost.unit
    return comparison.vector.currency or stated


def _head(options: BusinessOptions) -> dict[str, Any]:
    stated = {
        "horizon_months": None if options.horizon is None else _months(options.horizon),
        "discount_rate": None if options.discount_rate is None else _share(options.discount_rate),
        "start": options.start,
        "regime": options.regime,
        "until": options.until,
        "seed": options.seed,
    }
    return {key: value for key, value in stated.items() if value is not None}


def _months(text: str) -> int:
    found = _SPAN.fullmatch(text)
    months = None
    if found is not None:
        is_months = (found["unit"] or "m").startswith("m")
        months = Decimal(found["count"]) * (1 if is_months else MONTHS_PER_YEAR)
    if months is None or months != int(months) or not months:
        mend = "write whole months: 36, '36 months' or '3 years'"
        raise UsageError(f"horizon {text!r} is none", where="--horizon", mend=mend)
    return int(months)


def _share(text: str) -> Decimal:
    found = _SHARE.fullmatch(text)
    if found is None:
        mend = "write a share a year: 0.08, or 8%"
        raise UsageError(f"discount rate {text!r} is none", where="--discount-rate", mend=mend)
    number = Decimal(found["number"])
    return number / 100 if found["percent"] else number


def _one_off(text: str) -> OneOff:
    found = _AMOUNT.fullmatch(text)
    try:
        amount = None if found is None else Decimal(found["amount"])
    except InvalidOperation:
        amount = None
    if found is None or amount is None:
        mend = "write NAME=AMOUNT: engineering=30000"
        raise UsageError(f"one-off {text!r} is none", where="--one-off", mend=mend)
    name = (found["name"] or "one-off").strip() or "one-off"
    return OneOff(name=name, amount=amount, currency=found["currency"], source="--one-off")
