"""``invoices.csv``: what invoices ask for, so that their lines can be held against it."""

from __future__ import annotations

from typing import Final

from carbonlens.domain.charge import Invoice
from carbonlens.inventory.prices_file import join_amount
from carbonlens.inventory.records import Kind

KIND: Final = Kind(
    name="invoices",
    table="invoice",
    type=Invoice,
    id_field="invoice_id",
    formats=(".csv",),
    columns=("currency",),
    shape=join_amount,
)
"""How an invoice stands in its file; a credit note asks for a negative amount."""
