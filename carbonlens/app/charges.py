"""Use case: what the bills of a period say the recorded runs cost, and what no run carries."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Final, Literal

import msgspec

from carbonlens.accounting.allocation_nesting import counting
from carbonlens.accounting.charge_joining import Consumer, Joined, join
from carbonlens.accounting.charges import FIELDS, by_currency, check_invoices, checked, invoices, of_period
from carbonlens.accounting.focus_identity import is_covering
from carbonlens.app.importing_charges import CostTotals, cost_totals
from carbonlens.app.inventory import calendar_of, load_inventory
from carbonlens.domain.charge import Charge
from carbonlens.domain.counting import counted
from carbonlens.domain.finding import Finding
from carbonlens.domain.inventory import Inventory
from carbonlens.domain.money import Money
from carbonlens.domain.pricing import CostKind
from carbonlens.domain.run import Run
from carbonlens.domain.site import Site
from carbonlens.domain.units import US_PER_HOUR
from carbonlens.errors import SelectionError, UsageError
from carbonlens.ledger.activity import CHARGES
from carbonlens.ledger.opening import open_ledger
from carbonlens.ledger.records import current

Weights = Literal["time", "energy"]

KINDS: Final[Mapping[str, CostKind]] = {k: k for k in FIELDS}

RESOURCE_TAGS: Final = ("resource_id", "instance_id", "node", "pod")
"""Tags of a run that name what it ran on, as bills do."""


class RunCharges(msgspec.Struct, frozen=True, kw_only=True):
    """The bills of a period, shared over runs.

    Attributes:
        period: As asked for; ``None`` for all bills.
        kind: Which of the four costs.
        totals: All four costs by currency.
        amounts: Of ``kind``: currency to run to its part; ``None`` is what no run carries.
        joined: Each charge's parts.
        runs: The runs that carry a part, by id.
        invoices: Billed cost by invoice and currency.
        savings: List less effective cost by currency; ``None`` where a line states one of them not.
        charges: The lines of bills that are shared.
        weights: By what they are shared.
    """

    period: str | None
    kind: CostKind
    totals: dict[str, CostTotals]
    amounts: dict[str, dict[str | None, Money]]
    joined: Joined
    runs: dict[str, Run]
    invoices: dict[tuple[str, str], Money]
    savings: dict[str, Money | None]
    findings: tuple[Finding, ...]
    charges: tuple[Charge, ...] = ()
    weights: Weights = "time"


def charges_of_runs(
    *,
    ledger: str | Path | None = None,
    inventory: str | Path | None = None,
    period: str | None = None,
    kind: str = "effective",
    weights: Weights = "time",
) -> RunCharges:
    """Share the bills of a period over the runs that match them.

    A charge is of the period in which it starts; billed cost of its billing period, where stated.

    Args:
        ledger: Found as the command line finds it when ``None``.
        inventory: Likewise; gives the regions of sites, and the calendar.
        period: Such as ``2026Q3``; all bills when ``None``.
        kind: ``billed`` is cash, ``effective`` accrual; or ``list``, ``contracted``.
        weights: ``time`` leaves what no run covers unallocated; ``energy`` shares a charge
            whole, by the energy of its runs.

    Raises:
        UsageError: If the period or the kind is none.
        SelectionError: If there is no charge in the period.
        MissingExtraError, RecordError, ConfigError: If ledger or inventory cannot be read.
    """
    if kind not in KINDS:
        raise UsageError(f"no kind of cost {kind!r}", where="--kind", mend=f"give one of {', '.join(KINDS)}")
    held = load_inventory(inventory).inventory
    with open_ledger(ledger) as store:
        every, findings = store.rows(CHARGES)
        runs, broken = current(store.view().runs)
    charges = every
    if period is not None:
        calendar = calendar_of(held.terms)
        hours = calendar.period(period)
        first, end = hours.first_hour * US_PER_HOUR, hours.end_hour * US_PER_HOUR
        charges = of_period(every, KINDS[kind], first, end, calendar.dates(period))
    if not charges:
        raise SelectionError(
            "no charge" + (f" starts in {period}" if period else " is in the ledger"),
            mend="import a bill: carbonlens import FILE",
        )
    found = consumers(runs, held.sites, by_energy=weights == "energy")
    joined = join(_without_covering(charges, kind), found)
    names = {p.run_id for p in joined.parts}
    return RunCharges(
        period=period,
        kind=KINDS[kind],
        totals=cost_totals(charges),
        amounts=joined.amounts(FIELDS[KINDS[kind]]),
        joined=joined,
        runs={r.run_id: r for r in runs if r.run_id in names},
        invoices=invoices(charges),
        charges=tuple(charges),
        weights=weights,
        savings={currency: sums.savings for currency, sums in by_currency(charges).items()},
        findings=(
            *(*findings, *broken, *checked(charges)),
            *invoice_findings(held, every, None if period is None else charges),
            *(*joined.findings, *_undated(runs)),
        ),
    )


def invoice_findings(
    inventory: Inventory, charges: Sequence[Charge], of: Iterable[Charge] | None = None
) -> tuple[Finding, ...]:
    """Return a Finding for each invoice whose lines do not sum to what its paper asks for.

    Args:
        inventory: With the invoices.
        charges: All lines of bills: those of an invoice may be of several periods.
        of: Lines whose invoices are asked about; all invoices when ``None``.
    """
    names = None if of is None else {c.invoice_id for c in of}
    asked = (i for i in inventory.invoices if names is None or i.invoice_id in names)
    return check_invoices(charges, {i.invoice_id: i.amount for i in asked})


def consumers(runs: Iterable[Run], sites: Sequence[Site] = (), *, by_energy: bool = False) -> list[Consumer]:
    """Return runs as bills may know them; those without times are left out.

    Of a run that lies in others there is what counts beside them, if anything.

    Args:
        runs: Of the ledger.
        sites: Of the inventory, for their regions.
        by_energy: Whether a run's weight is its energy in joules.
    """
    every = list(runs)
    own = counting(every)
    regions = {s.site_id: s.region for s in sites}
    found = []
    for run in every:
        parts = [p for p in own[run.run_id] if p.start_us is not None and p.end_us is not None]
        span = [t for p in parts for t in (p.start_us, p.end_us) if t is not None]
        if not span or max(span) <= min(span):
            continue
        found.append(
            Consumer(
                run_id=run.run_id,
                start_us=min(span),
                end_us=max(span),
                resources=tuple(run.tags[name] for name in RESOURCE_TAGS if name in run.tags),
                tags={**_labels(run), **run.tags},
                site=run.site,
                region=run.tags.get("region") or regions.get(run.site or ""),
                weight=_joules(parts) if by_energy else None,
            )
        )
    return found


def _labels(run: Run) -> dict[str, str]:
    labels = (
        ("run_id", run.run_id),
        ("job_id", run.job_id),
        ("study", run.study),
        ("workload", run.workload),
    )
    return {name: value for name, value in labels if value is not None}


def _joules(parts: Iterable[Run]) -> Decimal | None:
    """Return the energy of parts of a run; ``None`` where some of it is unknown."""
    energies = [r.energy_j for part in parts for r in part.energy]
    known = [e for e in energies if e is not None]
    return sum(known, Decimal(0)) if known and len(known) == len(energies) else None


def _without_covering(charges: Iterable[Charge], kind: str) -> list[Charge]:
    """Leave out purchases that cover later use where their cost is that of the use again."""
    return [c for c in charges if kind in {"billed", "effective"} or not is_covering(c)]


def _undated(runs: Iterable[Run]) -> list[Finding]:
    count = sum(r.start_us is None or r.end_us is None for r in runs)
    if not count:
        return []
    text = f"{counted(count, 'run')} without start or end can carry no charge"
    mend = "state start_utc and duration_s"
    return [Finding(code="CL317", severity="warning", message=text, mend=mend)]
