"""The lines of bills that an import keeps: each once in the ledger, and what they sum to."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal

import msgspec

from carbonlens.accounting.charges import FIELDS, by_currency, checked
from carbonlens.accounting.focus_identity import CostIdentity
from carbonlens.domain.charge import Charge
from carbonlens.domain.counting import counted
from carbonlens.domain.finding import Finding
from carbonlens.ledger.activity import CHARGES, ids
from carbonlens.ledger.layout import batch_name
from carbonlens.ledger.store import Ledger


class CostTotals(msgspec.Struct, frozen=True, kw_only=True):
    """The four costs in one currency; ``None`` where a line does not state one.

    Attributes:
        billed: Cash: what invoices ask for.
        effective: Accrual: purchases in advance as they are used.
        list_cost, contracted: Without purchases that cover later use.
    """

    billed: Decimal | None
    effective: Decimal | None
    list_cost: Decimal | None
    contracted: Decimal | None


class ChargeKeeper:
    """Knows which lines the ledger holds, and adds those it does not."""

    def __init__(self, store: Ledger, tags: Mapping[str, str], site: str | None) -> None:
        """Look at nothing yet: most imports hold no bill.

        Args:
            store: The ledger.
            tags: To put on every line.
            site: Of the lines that state none.
        """
        self.new: list[Charge] = []
        self._store = store
        self._tags = tags
        self._site = site
        self._known: set[str] | None = None

    def holds_file(self, sha256: str, importer: str) -> bool:
        """Tell whether lines of this content are in the ledger."""
        return (self._store.path / CHARGES.folder / batch_name(sha256, importer)).exists()

    def holds_content(self, sha256: str) -> bool:
        """Tell whether any importer read lines of this content into the ledger."""
        folder = self._store.path / CHARGES.folder
        return any(folder.glob(batch_name(sha256, "*")))

    def keep(
        self, charges: Sequence[Charge], file: str, *, sha256: str, importer: str, now_us: int
    ) -> tuple[list[Charge], list[Finding]]:
        """Store the lines that are new, and return them with what is wrong in their sums.

        Args:
            charges: Lines of one file.
            file: Its name, for Findings.
            sha256: Hash of its content.
            importer: Name and version of the importer.
            now_us: Time of the import.

        Raises:
            MissingExtraError: If DuckDB is not installed.
            UnwritableError: If the ledger cannot be written.
            RecordError: If the ledger cannot be read.
        """
        if self._known is None:
            self._known = self._ids()
        fresh = [self._marked(c, now_us) for c in charges if c.charge_id not in self._known]
        findings = list(checked(fresh))
        repeated = len(charges) - len(fresh)
        if repeated:
            lines = counted(repeated, "line is", "lines are")
            text = f"{lines} in the ledger already; each counts once"
            findings.append(Finding(code="CL236", severity="info", message=text, file=file))
        if repeated and (self._tags or self._site):
            findings += self._not_marked([c for c in charges if c.charge_id in self._known], file)
        if fresh:
            self._store.add_rows(CHARGES, fresh, source_sha256=sha256, importer=importer)
            self._known.update(c.charge_id for c in fresh)
            self.new += fresh
        return fresh, findings

    def _not_marked(self, repeated: Sequence[Charge], file: str) -> list[Finding]:
        """Say which lines in the ledger do not bear what is said now: lines of bills are not told anew."""
        own_site = {c.charge_id: c.site for c in repeated}
        held = [c for c in self._store.rows(CHARGES)[0] if c.charge_id in own_site]
        lacking = sum(not self._bears(c, own_site[c.charge_id]) for c in held)
        if not lacking:
            return []
        lines = counted(lacking, "line is", "lines are")
        text = f"{lines} in the ledger without what --tag or --site says now, and stay so"
        mend = "say it as a bill is first imported; or import it anew into another ledger"
        return [Finding(code="CL293", severity="warning", message=text, file=file, mend=mend)]

    def _bears(self, charge: Charge, own_site: str | None) -> bool:
        has_tags = all(charge.tags.get(name) == value for name, value in self._tags.items())
        return has_tags and (self._site is None or charge.site == (own_site or self._site))

    def _ids(self) -> set[str]:
        try:
            return ids(self._store.path / CHARGES.folder, CHARGES)
        except OSError as error:
            raise self._store.unreadable(error) from error

    def _marked(self, charge: Charge, now_us: int) -> Charge:
        origin = charge.origin
        if origin is not None:
            origin = msgspec.structs.replace(origin, imported_us=now_us)
        tags = {**charge.tags, **self._tags}
        return msgspec.structs.replace(charge, tags=tags, site=charge.site or self._site, origin=origin)


def cost_totals(charges: Iterable[Charge]) -> dict[str, CostTotals]:
    """Return the sums of the four costs by currency."""
    return {currency: _totals(sums) for currency, sums in by_currency(charges).items()}


def _totals(sums: CostIdentity) -> CostTotals:
    known = {field: sums.complete(field) for field in FIELDS.values()}
    return CostTotals(**{field: None if m is None else m.amount for field, m in known.items()})
