"""Data sets of FOCUS beside cost and usage: known by their columns, to be refused by their names.

Invoice detail (1.4) states what an invoice asks for, contract commitment (1.3) what was agreed.
Neither is a charge: read as charges, the same money would count twice. Their column names are
those of the FinOps Open Cost and Usage Specification 1.3 and 1.4.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

_COST_AND_USAGE: Final = "chargeperiodstart"
_INVOICE: Final = frozenset(
    {"invoicedetailid", "invoicedetailgrain", "invoicedetaildescription", "invoicedetailcreated"}
)
_COMMITMENT: Final = frozenset(
    {"contractcommitmentid", "contractcommitmentcost", "contractcommitmentcategory", "contractcommitmenttype"}
)
_ENOUGH: Final = 2
"""Columns of its own by which a data set is known, whatever others stand beside them."""

_MEND_INVOICE: Final = (
    "import the cost and usage data set of the same months; to hold its lines against the invoice state "
    "what the invoice asks for in invoices.csv of the inventory"
)
_MEND_COMMITMENT: Final = (
    "import the cost and usage data set: its lines have the purchases and the use of commitments"
)


def other_dataset(names: Collection[str]) -> tuple[str, str] | None:
    """Return the name of a data set that is no cost and usage, and a mend; ``None`` for any other table.

    Args:
        names: Of its columns, in any case.
    """
    held = {name.lower() for name in names}
    for own, name, mend in (
        (_INVOICE, "invoice detail", _MEND_INVOICE),
        (_COMMITMENT, "contract commitment", _MEND_COMMITMENT),
    ):
        found = held & own
        # From 1.4 on a line of cost and usage may name the invoice detail that it belongs to.
        if len(found) >= _ENOUGH or (found and _COST_AND_USAGE not in held and "billingcurrency" in held):
            return name, mend
    return None
