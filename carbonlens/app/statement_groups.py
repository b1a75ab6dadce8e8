"""Use case part: which runs carry the bills of a period: of which group they are, and at which place."""

from __future__ import annotations

from carbonlens.accounting.group_bills import GroupBill, group_bills
from carbonlens.app.statement_bills import Bills
from carbonlens.app.statement_ledger import PeriodReading
from carbonlens.domain.inventory import Inventory


def bills_by_group(label: str | None, bills: Bills, read: PeriodReading) -> tuple[GroupBill, ...]:
    """Return what the runs of each group carry of the bills; nothing where no groups are asked for.

    Args:
        label: By which the statement is split.
        bills: Of the period.
        read: The runs of the period, by place.
    """
    if label is None:
        return ()
    values = {name: read.value_of(label, row) for name, row in bills.runs.items()}
    return group_bills(bills.held, bills.parts, values.get, label=label, kind=bills.kind)


def undeclared_clouds(bills: Bills, read: PeriodReading, inventory: Inventory) -> frozenset[str]:
    """Return places that the inventory does not declare and whose runs carry bills.

    What is billed there by the hour holds its electricity, as at a cloud.

    Args:
        bills: Of the period.
        read: The runs of the period, by place.
        inventory: Which declares sites.
    """
    known = {s.site_id for s in inventory.sites}
    return frozenset(name for pair, name in read.sites.items() if pair in bills.places and name not in known)
