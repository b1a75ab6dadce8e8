"""Use case part: the bills of a period: electricity of sites, what runs carry, and what none does."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import msgspec

from carbonlens.accounting.bill_energy import energy_once
from carbonlens.accounting.billed_time import BilledTime, billed_time
from carbonlens.accounting.charge_joining import Consumer, Joined, Part, join
from carbonlens.accounting.charges import of_period, preferred_kind
from carbonlens.accounting.cost import CostLine, of_bill
from carbonlens.accounting.electricity_bill import ElectricityBill, bill_of, sorted_out
from carbonlens.accounting.group_bills import carried
from carbonlens.app.charges import RESOURCE_TAGS, invoice_findings
from carbonlens.domain.charge import Charge
from carbonlens.domain.counting import counted
from carbonlens.domain.finding import Finding
from carbonlens.domain.inventory import Inventory
from carbonlens.domain.pricing import CostKind
from carbonlens.ledger.schema import tags_of
from carbonlens.ledger.store import Ledger

_COLUMNS: Final = (
    *("run_id", "study", "step", "job_id", "workload", "site", "zone", "host_id", "tags", "team", "model"),
    "hardware",
    *("start_us", "end_us"),
)


class Bills(msgspec.Struct, frozen=True, kw_only=True):
    """What bills say of a period.

    Attributes:
        electricity: Of sites that are no cloud.
        lines: All other charges: what runs carry, and what is unallocated.
        time: Of the runs, by key: for which a bill holds what they ran on.
        places: Site and zone of the runs that carry a part of a charge, as they state them.
        held: Charges of the period that are no electricity bill, ``parts`` what of each which run carries.
        kind: Which of their costs the lines are of.
        runs: What the ledger has of the runs by their keys.
    """

    electricity: tuple[ElectricityBill, ...] = ()
    lines: tuple[CostLine, ...] = ()
    time: Mapping[str, BilledTime] = {}
    places: frozenset[tuple[str, str]] = frozenset()
    held: tuple[Charge, ...] = ()
    parts: tuple[Part, ...] = ()
    kind: CostKind = "effective"
    runs: Mapping[str, Mapping[str, Any]] = {}
    findings: tuple[Finding, ...] = ()


def bills_of(
    store: Ledger,
    inventory: Inventory,
    charges: Sequence[Charge],
    period: tuple[int, int],
    over: tuple[int, int],
    dates: tuple[str, str] | None = None,
) -> Bills:
    """Return what the bills say of a period.

    Lines of electricity are split by time; any other charge is of the period in which it starts,
    and covers runs as long as it lasts.

    Args:
        store: Ledger with the runs.
        inventory: With sites, meters and invoices.
        charges: Bills in the ledger.
        period: Its instants, the end exclusive.
        over: The part of it that is over.
        dates: The period as local dates, the end exclusive; its instants in UTC when ``None``.
    """
    if not charges:
        return Bills()
    sites = {s.site_id: s for s in inventory.sites}
    found = sorted_out(charges, sites, {m.meter_id: m.site for m in inventory.meters})
    once = {site: energy_once(lines) for site, lines in found.electricity.items()}
    electricity = [
        bill_of(site, lines, preferred_kind(lines), period, over) for site, (lines, _) in once.items()
    ]
    of_energy = [
        f for site, (_, said) in once.items() if _is_in(found.electricity[site], period) for f in said
    ]
    # One kind for all periods: a line is in one of them then.
    kind = preferred_kind(found.others)
    held = of_period(found.others, kind, *period, dates)
    lasting = [c for c in found.others if c.start_us < period[1] and c.end_us > period[0]]
    runs = _consumers(store, (*held, *lasting), inventory)
    consumers = [consumer for consumer, _ in runs]
    rows = {consumer.run_id: row for consumer, row in runs}
    joined, covering = join(held, consumers), join(lasting, consumers)
    carrying = {p.run_id for p in (*joined.parts, *covering.parts) if p.run_id is not None and p.share}
    mine = [c for c in charges if period[0] <= c.start_us < period[1]]
    return Bills(
        electricity=tuple(b for b in electricity if b is not None),
        lines=_lines(held, joined, kind),
        time=billed_time(lasting, covering.parts),
        places=frozenset((r["site"] or "", r["zone"] or "") for name, r in rows.items() if name in carrying),
        held=tuple(held),
        parts=joined.parts,
        kind=kind,
        runs=rows,
        findings=(
            *joined.findings,
            *of_energy,
            *invoice_findings(inventory, charges, mine),
            *_counted_elsewhere(held, covering),
        ),
    )


def _is_in(charges: Sequence[Charge], period: tuple[int, int]) -> bool:
    return any(c.start_us < period[1] and c.end_us > period[0] for c in charges)


def _counted_elsewhere(held: Sequence[Charge], covering: Joined) -> Iterator[Finding]:
    """Yield a Finding where runs are covered by lines that count in another period."""
    counted_here = {c.charge_id for c in held}
    others = {p.charge_id for p in covering.parts if p.run_id is not None and p.share} - counted_here
    if others:
        text = (
            f"{counted(len(others), 'line')} of bills that hold time of runs here started in another period"
        )
        mend = "nothing: a charge counts once, in the period in which it starts; ask for a longer period"
        yield Finding(code="CL456", severity="info", message=f"{text}, and cost there", mend=mend)


def run_key(row: Mapping[str, Any]) -> str:
    """Return what tells a run from all others: ids of imports are unique within a study only."""
    return f"{row['study'] or ''}/{row['run_id']}"


def _lines(charges: Sequence[Charge], joined: Joined, kind: CostKind) -> tuple[CostLine, ...]:
    """Return what runs carry of charges, and what no run carries."""
    mine, rest = (
        carried(charges, [p for p in joined.parts if (p.run_id is None) == no]) for no in (False, True)
    )
    return (
        *of_bill("cloud", "bills, carried by recorded runs", mine, kind),
        *of_bill("unallocated", "bills, carried by no recorded run", rest, kind),
    )


def _consumers(
    store: Ledger, charges: Sequence[Charge], inventory: Inventory
) -> list[tuple[Consumer, Mapping[str, Any]]]:
    """Return the runs that overlap charges, as bills may know them, each with what the ledger has of it."""
    if not charges:
        return []
    import narwhals as nw

    from carbonlens.ledger import queries

    first, last = min(c.start_us for c in charges), max(c.end_us for c in charges)
    with store.query() as view:
        parts = queries.roots(view.parts, view.orphans)
        parts = parts.filter(nw.col("start_us") < last, nw.col("end_us") > first)
        rows = view.rows(parts.select(*_COLUMNS).unique().sort("start_us", "run_id"))
    regions = {s.site_id: s.region for s in inventory.sites}
    return [(_consumer(row, regions), row) for row in rows]


def _consumer(row: Mapping[str, Any], regions: Mapping[str, str | None]) -> Consumer:
    tags = tags_of(row["tags"])
    labels = {n: row[n] for n in ("run_id", "job_id", "study", "workload") if row[n] is not None}
    return Consumer(
        run_id=run_key(row),
        start_us=row["start_us"],
        end_us=row["end_us"],
        resources=tuple(tags[name] for name in RESOURCE_TAGS if name in tags),
        tags={**labels, **tags},
        site=row["site"],
        region=tags.get("region") or regions.get(row["site"] or ""),
    )
