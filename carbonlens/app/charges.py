"""Use case: what the bills of a period say the recorded runs cost, and what no run carries."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Final, Literal

import msgspec

from carbonlens.accounting.charge_joining import Consumer, Joined, join
from carbonlens.accounting.charges import FIELDS, checked, invoices
from carbonlens.accounting.focus_identity import is_covering
from carbonlens.app.importing_charges import CostTotals, cost_totals
from carbonlens.app.inventory import calendar_of, load_inventory
from carbonlens.domain.charge import Charge
from carbonlens.domain.counting import counted
from carbonlens.domain.finding import Finding
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
    """

    period: str | None
    kind: CostKind
    totals: dict[str, CostTotals]
    amounts: dict[str, dict[str | None, Money]]
    joined: Joined
    runs: dict[str, Run]
    invoices: dict[tuple[str, str], Money]
    findings: tuple[Finding, ...]


def charges_of_runs(
    *,
    ledger: str | Path | None = None,
    inventory: str | Path | None = None,
    period: str | None = None,
    kind: str = "effective",
    weights: Weights = "time",
) -> RunCharges:
    """Share the bills of a period over the runs that match them.

    A charge is of the period in which it starts.

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
        charges, findings = store.rows(CHARGES)
        runs, broken = current(store.view().runs)
    if period is not None:
        hours = calendar_of(held.terms).period(period)
        first, end = hours.first_hour * US_PER_HOUR, hours.end_hour * US_PER_HOUR
        charges = [c for c in charges if first <= c.start_us < end]
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
        findings=(*findings, *broken, *checked(charges), *joined.findings, *_undated(runs)),
    )


def consumers(runs: Iterable[Run], sites: Sequence[Site] = (), *, by_energy: bool = False) -> list[Consumer]:
    """Return runs as bills may know them; parts of other runs, and runs without times, are left out.

    Args:
        runs: Of the ledger.
        sites: Of the inventory, for their regions.
        by_energy: Whether a run's weight is its energy in joules.
    """
    every = list(runs)
    names = {r.run_id for r in every}
    regions = {s.site_id: s.region for s in sites}
    return [
        Consumer(
            run_id=r.run_id,
            start_us=r.start_us,
            end_us=r.end_us,
            resources=tuple(r.tags[name] for name in RESOURCE_TAGS if name in r.tags),
            tags={**_labels(r), **r.tags},
            site=r.site,
            region=r.tags.get("region") or regions.get(r.site or ""),
            weight=_joules(r) if by_energy else None,
        )
        for r in every
        if r.parent_run_id not in names
        and r.start_us is not None
        and r.end_us is not None
        and r.end_us > r.start_us
    ]


def _labels(run: Run) -> dict[str, str]:
    labels = (
        ("run_id", run.run_id),
        ("job_id", run.job_id),
        ("study", run.study),
        ("workload", run.workload),
    )
    return {name: value for name, value in labels if value is not None}


def _joules(run: Run) -> Decimal | None:
    """Return the run's energy; ``None`` where a part of it is unknown."""
    energies = [r.energy_j for r in run.energy]
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
