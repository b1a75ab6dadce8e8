"""What an import sums to, and what became of each file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Literal

import msgspec

from carbonlens.accounting.cost import StatedCosts, stated_costs
from carbonlens.app.importing_charges import CostTotals, cost_totals
from carbonlens.domain.alike import joules
from carbonlens.domain.charge import Charge
from carbonlens.domain.finding import Finding
from carbonlens.domain.money import Money
from carbonlens.domain.units import J_PER_KWH
from carbonlens.importers.contract import AlikeRecords, OperatorTime, ProfileRecord, RunRecord

FileStatus = Literal["imported", "duplicate", "refused"]


class Totals(msgspec.Struct, frozen=True, kw_only=True):
    """Sums over what was imported; ``None`` where a part is unknown.

    Attributes:
        energy_kwh: Energy as the sources state it, at their own boundary.
        energy_known_kwh: Of the runs whose energy is known.
        emissions_reported_kg: The sources' own emissions, kept as evidence; of those that state any.
        duration_s: Of runs as stated, of traces the seconds that samples cover.
        samples: Moments at which traces tell power.
        mean_power_w: Of one trace.
        charges: Lines of bills.
        readings: Spans that meters counted.
        runs_known: Runs that the ledger holds already.
        runs_replaced: Of the runs those that take the place of one in the ledger.
        cost: Of the bills, by currency; ``None`` without a bill.
        cost_stated: What runs themselves say they cost, by currency: of those that say it.
        profile: Events, seconds and further figures of a profile.
    """

    runs: int = 0
    rows: int = 0
    rows_rejected: int = 0
    energy_kwh: float | None = None
    energy_known_kwh: float | None = None
    emissions_reported_kg: float | None = None
    duration_s: float | None = None
    samples: int | None = None
    mean_power_w: float | None = None
    charges: int = 0
    readings: int = 0
    runs_known: int = 0
    runs_replaced: int = 0
    cost: dict[str, CostTotals] | None = None
    cost_stated: dict[str, Decimal] | None = None
    profile: Mapping[str, float | int | str | None] | None = None


class FileResult(msgspec.Struct, frozen=True, kw_only=True):
    """What became of one file.

    Attributes:
        path: As given or walked to; a member of an archive follows ``::``.
        format: Who read it; ``None`` for what nobody did.
        named: Whether it was named, and not met in a folder.
        part_of: The file whose entry holds the figures of a set of files.
        operators: Of a profile: time of each kind of operator, the longest first; no energy.
    """

    path: str
    format: str | None
    status: FileStatus
    totals: Totals
    findings: tuple[Finding, ...] = ()
    named: bool = True
    part_of: str | None = None
    operators: tuple[OperatorTime, ...] = ()


class ImportResult(msgspec.Struct, frozen=True, kw_only=True):
    """What an import did."""

    totals: Totals
    files: tuple[FileResult, ...]
    ledger: str

    @property
    def refused(self) -> tuple[FileResult, ...]:
        """Explicitly named files that could not be read."""
        return tuple(f for f in self.files if f.status == "refused" and f.named)


class Sums:
    """Running sums over run records, which need not be kept."""

    def __init__(self) -> None:
        """Start at nothing."""
        self.runs = 0
        self.rows = self.rejected = self.known = self.replaced = 0
        self._energy_j = self._kg = self._duration_s = Decimal(0)
        self._energies = self._kgs = self._durations = 0
        self._samples = 0
        self._means: list[float | None] = []
        self._costs: dict[str, Money] = {}

    def add(self, record: RunRecord) -> None:
        """Count one record."""
        run = record.run
        self.runs += 1
        energy = stated_j(record)
        if energy is not None:
            self._energy_j += energy
            self._energies += 1
        if run.emissions_reported_kg is not None:
            self._kg += run.emissions_reported_kg
            self._kgs += 1
        duration_s, told = _duration_s(record), record.measured
        if duration_s is not None:
            self._duration_s += duration_s
            self._durations += 1
        if told is not None:
            self._samples += told.samples
            self._means.append(told.mean_power_w)
        if run.cost is not None:
            self._costs[f"{run.study}/{run.run_id}"] = run.cost

    def include(self, other: Sums) -> None:
        """Add the sums over other runs, none of which states a cost or is a trace."""
        self.runs += other.runs
        self._energy_j += other._energy_j
        self._kg += other._kg
        self._duration_s += other._duration_s
        self._energies += other._energies
        self._kgs += other._kgs
        self._durations += other._durations

    def count_alike(self, told: AlikeRecords) -> None:
        """Count records that have all of their figures."""
        count = len(told)
        self.runs += count
        self._energies += count
        self._kgs += count
        self._durations += count
        self._energy_j += joules(int(told.stated_uj.sum()))
        self._kg += sum(told.runs.emissions_kg)
        self._duration_s += sum(map(Decimal, map(repr, told.runs.duration_s.tolist())))

    def drop(self, record: RunRecord) -> None:
        """Take one record out again, which a later one replaces."""
        self.hold_within(record)
        run = record.run
        self.runs -= 1
        self._energies -= stated_j(record) is not None
        self._kgs -= run.emissions_reported_kg is not None
        self._durations -= _duration_s(record) is not None
        if record.measured is not None:
            self._samples -= record.measured.samples
            self._means.remove(record.measured.mean_power_w)
        self._costs.pop(f"{run.study}/{run.run_id}", None)

    def hold_within(self, record: RunRecord) -> None:
        """Take out the figures of a record, which those of another one hold already."""
        self._energy_j -= stated_j(record) or Decimal(0)
        self._kg -= record.run.emissions_reported_kg or Decimal(0)
        self._duration_s -= _duration_s(record) or Decimal(0)

    @property
    def costs(self) -> StatedCosts:
        """What runs say they cost, each once whatever study has another of its name."""
        if not self._costs:
            return stated_costs({})
        unpriced = dict.fromkeys((str(n) for n in range(self.runs - len(self._costs))), None)
        return stated_costs({**self._costs, **unpriced})

    def totals(
        self, charges: Sequence[Charge] = (), profiles: Sequence[ProfileRecord] = (), *, whole: bool = False
    ) -> Totals:
        """Return the sums.

        Args:
            charges: Lines of bills beside the runs.
            profiles: Profiles beside them.
            whole: Whether these are the sums of a whole import, in which formats meet that state
                emissions and such that never do.
        """
        known_kwh = float(self._energy_j / J_PER_KWH) if self._energies else None
        stated = {currency: money.amount for currency, money in self.costs.totals.items()}
        all_kg = self._kgs and (whole or self._kgs == self.runs)
        return Totals(
            runs=self.runs,
            rows=self.rows,
            rows_rejected=self.rejected,
            energy_kwh=known_kwh if self._energies == self.runs else None,
            energy_known_kwh=known_kwh,
            emissions_reported_kg=float(self._kg) if all_kg else None,
            duration_s=float(self._duration_s) if self._durations and self._durations == self.runs else None,
            samples=self._samples or None,
            mean_power_w=self._means[0] if len(self._means) == 1 and self.runs == 1 else None,
            charges=len(charges),
            runs_known=self.known,
            runs_replaced=self.replaced,
            cost=cost_totals(charges) if charges else None,
            cost_stated=stated or None,
            profile=_profile(profiles),
        )


def sums_of(told: AlikeRecords) -> Sums:
    """Return the sums over records that came as columns."""
    sums = Sums()
    sums.count_alike(told)
    return sums


def _duration_s(record: RunRecord) -> Decimal | None:
    told = record.measured
    seconds = record.run.duration_s if told is None else told.covered_s
    return None if seconds is None else Decimal(repr(seconds))


def stated_j(record: RunRecord) -> Decimal | None:
    """Return the whole energy of a record as its source states it."""
    if record.stated_j is not None:
        return record.stated_j
    parts = [r.energy_j for r in record.run.energy]
    known = [p for p in parts if p is not None]
    return sum(known, Decimal(0)) if known and len(known) == len(parts) else None


def _profile(profiles: Sequence[ProfileRecord]) -> Mapping[str, float | int | str | None] | None:
    if not profiles:
        return None
    first = profiles[0]
    times = [o.time_s for o in first.operators if o.time_s is not None]
    return {
        "events": first.events,
        "operators": len(first.operators),
        "operator_time_s": sum(times) if times else None,
        "span_s": first.span_s,
        "device": first.device,
        **first.facts,
    }
