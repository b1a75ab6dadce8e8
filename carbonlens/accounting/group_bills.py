"""Bills by group: what the runs of a team, a study or another group carry of the charges of a period.

The groups and ``unallocated`` sum to the bills exactly: each part of a charge is in one of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Final

import msgspec
from msgspec.structs import replace

from carbonlens.accounting.charge_joining import COSTS, Part
from carbonlens.accounting.cost import CostLine, of_bill
from carbonlens.accounting.focus_identity import summed
from carbonlens.domain.charge import Charge
from carbonlens.domain.figure import Figure
from carbonlens.domain.pricing import CostKind

NAME: Final = "bills"
"""Of the amounts in figure ids: ``statement.2026-05.by.team.red.bills.USD``."""


class GroupBill(msgspec.Struct, frozen=True, kw_only=True):
    """One kind of cost that the runs of one group carry, in one currency.

    Attributes:
        key: Of the group's line, ``by.team.red``.
        value: Of the label; ``(none)`` for runs without it.
        line: What they carry.
    """

    key: str
    value: str
    line: CostLine

    @property
    def name(self) -> str:
        """In figure ids after those of the group."""
        return f"{self.key}.{NAME}.{self.line.currency}"

    def figure(self, prefix: str) -> Figure:
        """Return it as a figure.

        Args:
            prefix: ``statement.<period>``.
        """
        return Figure(
            figure_id=f"{prefix}.{self.name}",
            estimate=self.line.amount,
            label=self.line.label,
            formula="sum of the parts of charges that its runs carry",
            inputs=self.line.input_ids,
        )


def carried(charges: Iterable[Charge], parts: Iterable[Part]) -> list[Charge]:
    """Return charges with the sums of some parts of them for their costs, those without any left out.

    Args:
        charges: Whole.
        parts: Of them.
    """
    sums: dict[str, list[Part]] = {}
    for part in parts:
        sums.setdefault(part.charge_id, []).append(part)
    return [
        replace(c, **{cost: summed(getattr(p, cost) for p in sums[c.charge_id]) for cost in COSTS})
        for c in charges
        if c.charge_id in sums
    ]


def group_bills(
    charges: Iterable[Charge],
    parts: Iterable[Part],
    value_of: Callable[[str], str | None],
    *,
    label: str,
    kind: CostKind,
) -> tuple[GroupBill, ...]:
    """Return what each group carries of the charges, groups in the order of their names.

    Args:
        charges: Of the period, whole.
        parts: Of them, as they were joined to runs.
        value_of: Returns the value of the label of a run by its id.
        label: Which groups.
        kind: Which of the four costs.
    """
    every = list(charges)
    groups: dict[str, list[Part]] = {}
    for part in parts:
        if part.run_id is not None:
            groups.setdefault(value_of(part.run_id) or "(none)", []).append(part)
    return tuple(
        GroupBill(key=f"by.{label}.{value}", value=value, line=line)
        for value, held in sorted(groups.items())
        for line in of_bill("cloud", f"bills, carried by runs of {label} {value}", carried(every, held), kind)
    )


def sums_of(bills: Iterable[GroupBill]) -> Mapping[str, tuple[GroupBill, ...]]:
    """Return the bills of groups by currency."""
    found: dict[str, list[GroupBill]] = {}
    for one in bills:
        found.setdefault(one.line.currency, []).append(one)
    return {currency: tuple(held) for currency, held in found.items()}
