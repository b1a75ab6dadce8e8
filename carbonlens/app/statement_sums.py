"""Use case part: the columns that a period's runs are summed by, the same ones for every question."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

import msgspec

if TYPE_CHECKING:
    from carbonlens.ledger.frames import View

MONTH: Final = "month_of_use"
"""Column of the month of the reporting time zone, ``202603``."""

LABEL: Final = "label"
"""Column of the values of a label, whichever it is."""

ASKED: Final = "asked"
"""Column of the number of the sums that a row is of."""

BY: Final = (ASKED, "site", "zone", "unit", LABEL, MONTH)
"""What sums are by; columns of what is not asked for are empty."""


class Sums(msgspec.Struct, frozen=True, kw_only=True):
    """Sums that are asked for: by which label, by the unit too, of which runs, and with prices or not."""

    label: str | None = None
    with_unit: bool = False
    where: tuple[tuple[str, str], ...] = ()
    priced: bool = True


def alike(parts: Any, sums: Sequence[Sums], view: View) -> Any:  # noqa: ANN401 - a frame
    """Return parts of some runs with the columns of ``BY``, empty where nothing is asked for.

    Of several sums there is a row for each, with its number.
    """
    import narwhals as nw

    from carbonlens.ledger import queries

    nothing = nw.lit(None).cast(nw.String)
    number = nw.lit(0).cast(nw.Int32)
    if len(sums) > 1:
        # A row for each, in one pass: making a query of each takes longer than summing.
        numbers = view.frame(f"SELECT unnest({list(range(len(sums)))}) AS {ASKED}")
        parts, number = parts.join(numbers, how="cross"), nw.col(ASKED).cast(nw.Int32)
    labels = list(dict.fromkeys(one.label for one in sums if one.label))
    chosen = queries.labelled(queries.matching(parts, dict(sums[0].where)), labels)
    label = unit = nothing
    for n, one in enumerate(sums):
        mine = nw.col(ASKED) == n
        of_label = nw.col(one.label) if one.label else nothing
        of_unit = nw.col("unit") if one.with_unit else nothing
        label = of_label if len(sums) == 1 else nw.when(mine).then(of_label).otherwise(label)
        unit = of_unit if len(sums) == 1 else nw.when(mine).then(of_unit).otherwise(unit)
    return chosen.with_columns(label.alias(LABEL), unit.alias("unit"), number.alias(ASKED))


def told(label: str, value: object) -> object:
    """Return a value of a label as it was given: the column of tags has what ends one escaped."""
    from carbonlens.ledger.queries import TAG
    from carbonlens.ledger.schema import unescaped

    return unescaped(value) if label.startswith(TAG) and isinstance(value, str) else value


def text_or_none(value: object) -> str | None:
    """Return a value as text; ``None`` where it is empty."""
    return None if value in (None, "") else str(value)
