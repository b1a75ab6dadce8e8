"""Use case: what is left of the savings that initiatives claim, at a later period's volume and mix."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from datetime import date, timedelta
from pathlib import Path
from typing import Any, Final

import msgspec

from carbonlens.accounting.initiative_lines import savings as stated_savings
from carbonlens.app.drivers import Source, before, refuse_overlap
from carbonlens.app.drivers_reading import Given, Place, Work, read_work, sides
from carbonlens.app.drivers_savings_findings import events_of, listed, said_of
from carbonlens.app.inventory import load_inventory
from carbonlens.app.statement import Made
from carbonlens.compare.drivers_bridge import Side
from carbonlens.compare.drivers_names import together
from carbonlens.compare.drivers_savings import (
    Avoided,
    Pair,
    at_rate,
    avoided_kwh,
    daily_k,
    interval_sigma,
    judged,
    scatter_of,
)
from carbonlens.compare.drivers_savings_figures import register_figures
from carbonlens.domain.drivers import NO_UNIT, Measure
from carbonlens.domain.drivers_savings import Adjustment, Register, SavingFound, Scatter
from carbonlens.domain.estimate import Estimate, add, unknown
from carbonlens.domain.initiative import Initiative
from carbonlens.errors import SelectionError
from carbonlens.factors.store import FactorSet, open_factors
from carbonlens.ledger.opening import open_ledger
from carbonlens.ledger.store import Ledger

_DAYS_A_YEAR: Final = 365
_MONTHS_A_YEAR: Final = 12
_MOST_BACK: Final = 12
"""Periods that are looked back over for one with runs before an initiative began."""
_MONEY: Final = "money"


class Checked(msgspec.Struct, frozen=True, kw_only=True):
    """A register, the statement of its period, and the runs that its figures name."""

    register: Register
    made: Made
    runs_of: Mapping[str, tuple[str, ...]] = {}


class _Asked(msgspec.Struct, frozen=True, kw_only=True):
    """What all initiatives of a register share; statements and works are read once."""

    source: Source
    store: Ledger
    made: Made
    by: str
    statements: dict[str, Made | None]
    works: dict[tuple[str, tuple[tuple[str, str], ...]], Work]
    adjustments: Sequence[Adjustment]

    def work(self, made: Made, where: Mapping[str, str]) -> Work:
        """Return the work of some runs in a statement's period, read once."""
        key = (made.period.text, tuple(sorted(where.items())))
        if key not in self.works:
            given = Given(
                store=self.store,
                inventory=self.source.kept.inventory,
                factors=self.source.factors,
                calendar=self.source.calendar,
            )
            self.works[key] = read_work(made, given, self.by, where, listed=True)
        return self.works[key]

    def statement(self, period: str) -> Made | None:
        """Return the statement of an earlier period, made once; ``None`` where it holds no runs."""
        if period not in self.statements:
            try:
                self.statements[period] = self.source.statement(period)
            except SelectionError:
                self.statements[period] = None
        return self.statements[period]


def make_register(  # noqa: PLR0913 - each is a choice of the one who asks
    period: str | None = None,
    against: str | None = None,
    *,
    by: str = "workload",
    adjustments: Sequence[Adjustment] = (),
    inventory: str | Path | None = None,
    factors: str | Path | FactorSet | None = None,
    ledger: str | Path | None = None,
    now_us: int | None = None,
) -> Checked:
    """Return what is found of each initiative in effect in a period.

    Args:
        period: ``2026Q3``, ``2026-08`` or ``2026``, fiscal; the last quarter with runs when ``None``.
        against: The baseline's period; the last one before each initiative began when ``None``.
        by: What classes of work are told apart by.
        adjustments: Non-routine ones.
        inventory: The inventory folder, with the register; found as the command line finds it.
        factors: The user's own factors, found likewise, or a whole set.
        ledger: The ledger's folder; found likewise.
        now_us: The present, UTC microseconds; by the clock when ``None``.

    Raises:
        SelectionError: If the period holds no runs, no initiative is in effect in it, or an adjustment
            is of none.
        UsageError: If a period is none, or the baseline is no earlier one.
        ConfigError, InputFileError: If inventory or factors cannot be read.
        MissingExtraError: If the ``analysis`` extra is not installed.
    """
    kept = load_inventory(inventory)
    held = factors if isinstance(factors, FactorSet) else open_factors(factors)
    present = time.time_ns() // 1000 if now_us is None else now_us
    source = Source(kept=kept, factors=held, ledger=ledger, inventory=inventory, now_us=present)
    return register_of(source, period, against, by=by, adjustments=adjustments)


def register_of(
    source: Source,
    period: str | None = None,
    against: str | None = None,
    *,
    by: str = "workload",
    adjustments: Sequence[Adjustment] = (),
) -> Checked:
    """Return the same of a source that is open.

    Args:
        source: Ledger, inventory and factors.
        period: As of ``make_register``.
        against: As of ``make_register``.
        by: What classes of work are told apart by.
        adjustments: Non-routine ones.

    Raises:
        SelectionError, UsageError: As ``make_register``.
    """
    made = source.statement(period)
    _refuse_strange(made, adjustments)
    with open_ledger(source.ledger) as store:
        asked = _Asked(
            source=source, store=store, made=made, by=by, statements={}, works={}, adjustments=adjustments
        )
        found = tuple(_found(one, asked, against) for one in made.statement.initiatives)
        found = _without_doubles(found, asked)
        runs = {f.initiative.initiative_id: _runs(f, asked) for f in found if f.savings}
    names = {name: (lists[0][0], lists[1][0]) for name, lists in runs.items()}
    register = Register(
        period=made.period.text,
        by=by,
        found=found,
        figures=register_figures(found, by, names),
        findings=tuple(said_of(found)),
    )
    return Checked(
        register=register, made=made, runs_of={n: held for lists in runs.values() for n, held in lists}
    )


def _runs(found: SavingFound, asked: _Asked) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """Return the runs of an initiative in its baseline and in the period, each with the list's id."""
    lists = []
    for period in (str(found.baseline), found.period):
        made = asked.made if period == found.period else asked.statement(period)
        work = None if made is None else asked.work(made, found.initiative.tags)
        ids = () if work is None else tuple(sorted({r for held in work.runs.values() for r in held}))
        lists.append((f"runs.initiatives.{period}.{found.initiative.initiative_id}", ids))
    return tuple(lists)


def _refuse_strange(made: Made, adjustments: Sequence[Adjustment]) -> None:
    known = [i.initiative_id for i in made.statement.initiatives]
    if not known:
        raise SelectionError(
            f"no initiative is in effect in {made.period.text}",
            where="initiatives.toml",
            mend="declare them in the inventory: carbonlens inventory init DIR writes an example",
        )
    for one in adjustments:
        if one.initiative_id not in known:
            raise SelectionError(
                f"no initiative {one.initiative_id!r} in {made.period.text}",
                where="--adjust",
                mend=f"in effect are {', '.join(known)}",
            )


def _found(one: Initiative, asked: _Asked, against: str | None) -> SavingFound:
    days = _days(one, asked)
    mine = tuple(a for a in asked.adjustments if a.initiative_id == one.initiative_id)
    claimed = {n: e.scale(days[0] / _DAYS_A_YEAR, e.unit) for n, e in stated_savings(one.claimed).items()}
    nothing = SavingFound(
        initiative=one,
        period=asked.made.period.text,
        days=days,
        adjusted_kwh=unknown("kWh"),
        measured_kwh=unknown("kWh"),
        adjustments=mine,
        claimed=claimed,
        verdict="undetermined",
        reason="",
    )
    if not one.tags:
        return msgspec.structs.replace(nothing, reason="its tags do not say which runs it applies to")
    base = _baseline(one, asked, against)
    if base is None:
        return msgspec.structs.replace(nothing, reason=f"no run lies in a period before {one.start}")
    works = asked.work(base, one.tags), asked.work(asked.made, one.tags)
    nothing = msgspec.structs.replace(nothing, baseline=base.period.text)
    for work in works:
        if not work.shares:
            text = f"no run of {work.made.period.text} has its tags"
            return msgspec.structs.replace(nothing, reason=text)
    return _measured(nothing, works, asked)


def _measured(blank: SavingFound, works: tuple[Work, Work], asked: _Asked) -> SavingFound:
    """Return an initiative with its saving, where work that counts stands in both periods."""
    baseline, reporting = (sides(w, "energy") for w in works)
    pairs = _pairs(baseline, reporting)
    if not pairs:
        counts = any(key[0] != NO_UNIT for key in (*baseline, *reporting))
        reason = "no class of its work stands in both periods" if counts else "its runs count no work"
        if not baseline or not reporting:
            reason = "its energy is known as a lower bound only"
        return msgspec.structs.replace(blank, reason=reason)
    if any(w.least_units for w in works):
        # What the rest saved is no sample of all of it, and a claim is about all of it.
        reason = "a part of its energy is known as a lower bound only"
        return msgspec.structs.replace(blank, reason=reason)
    scatter = _scatter(works, blank, asked)
    months = (asked.made.period.end_hour - asked.made.period.first_hour) / 24 / _DAYS_A_YEAR * _MONTHS_A_YEAR
    sigma = None if scatter is None else interval_sigma(scatter, daily_k(months))
    non_routine = sum(a.kwh for a in blank.adjustments)
    found = avoided_kwh(list(pairs.values()), sigma, non_routine)
    claim = blank.claimed.get("energy_kwh")
    verdict, reason = judged(found.saving_kwh, None if claim is None else claim.value)
    if sigma is None and verdict != "undetermined":
        verdict, reason = "undetermined", "too few days of the baseline tell how sure its energy per unit is"
    return msgspec.structs.replace(
        blank,
        adjusted_kwh=found.adjusted_kwh,
        measured_kwh=found.measured_kwh,
        savings=_savings(found, works[1], pairs),
        scatter=scatter,
        verdict=verdict,
        reason=reason,
        events=tuple(events_of(works, baseline, reporting, pairs)),
    )


def _pairs(baseline: Mapping[Place, Side], reporting: Mapping[Place, Side]) -> dict[Place, Pair]:
    """Return counted work of the period beside the baseline's: at its site, else wherever it was done."""
    everywhere: dict[tuple[str, str], list[Side]] = {}
    for (unit, name, _), side in baseline.items():
        everywhere.setdefault((unit, name), []).append(side)
    found = {}
    for key, side in reporting.items():
        held = [baseline[key]] if key in baseline else everywhere.get(key[:2], [])
        if key[0] == NO_UNIT or not held or not side.units or not side.it_kwh.value:
            continue
        whole = together(held)
        if whole.units:
            found[key] = Pair(whole, side)
    return found


def _savings(found: Avoided, work: Work, pairs: Mapping[Place, Pair]) -> dict[str, Estimate]:
    """Return the saving in energy, in kg by both methods and in money, at the period's own rates."""
    saved = {"energy_kwh": found.saving_kwh}
    wanted: list[tuple[str, Measure, str | None]] = [
        ("emissions_location_kg", "carbon-location", None),
        ("emissions_market_kg", "carbon-market", None),
        *((_MONEY, "cost", c) for c in work.currencies[:1]),
    ]
    for name, measure, currency in wanted:
        held = sides(work, measure, currency)
        own = [held[key] for key in pairs if key in held]
        unit = own[0].amount.unit if own else "kg"
        # One site without a factor leaves all of it unknown: which part it saves nobody knows.
        if len(own) == len(pairs) and all(s.is_known for s in own):
            amount, energy = add((s.amount for s in own), unit), add((s.facility_kwh for s in own), "kWh")
            saved[name] = at_rate(found.saving_kwh, amount, energy)
    return saved


def _baseline(one: Initiative, asked: _Asked, against: str | None) -> Made | None:
    """Return the statement of the period that tells how it was before: one that ends before the start."""
    calendar, text = asked.source.calendar, asked.made.period.text
    if against is not None:
        refuse_overlap(text, against, calendar)
        return asked.statement(against)
    for _ in range(_MOST_BACK):
        text = before(text, calendar)
        if calendar.dates(text)[1] <= one.start:
            made = asked.statement(text)
            if made is not None:
                return made
    return None


def _days(one: Initiative, asked: _Asked) -> tuple[int, int]:
    """Return the days of the period in which an initiative was in effect, and all of its days."""
    first, after = map(date.fromisoformat, asked.source.calendar.dates(asked.made.period.text))
    start = max(first, date.fromisoformat(one.start))
    last = after if one.end is None else date.fromisoformat(one.end) + timedelta(days=1)
    end = min(after, last)
    return max((end - start).days, 0), (after - first).days


def _scatter(works: tuple[Work, Work], blank: SavingFound, asked: _Asked) -> Scatter | None:
    days = [_by_day(w, blank.initiative.tags, asked) for w in works]
    return scatter_of(days[0], len(days[1]))


def _by_day(work: Work, where: Mapping[str, str], asked: _Asked) -> dict[int, dict[Any, tuple[float, float]]]:
    """Return units and joules of counted work by day and class, as measured."""
    import narwhals as nw

    from carbonlens.ledger import queries

    text, calendar = work.made.period.text, asked.source.calendar
    with asked.store.query(text, calendar) as view:
        parts = queries.matching(queries.roots(view.parts, view.orphans), where)
        parts = queries.labelled(parts, [asked.by], view.calendar(calendar))
        labels = list(dict.fromkeys(["date", "unit", asked.by, "site"]))
        sums = {name: nw.col(name).sum() for name in ("units", "energy_j")}
        rows = view.rows(parts.group_by(*labels).agg(**sums))
    found: dict[int, dict[Any, tuple[float, float]]] = {}
    for row in rows:
        if row["unit"] in (None, "") or row["date"] is None:
            continue
        day = found.setdefault(int(row["date"]), {})
        key = (row["unit"], row[asked.by], row["site"])
        units, energy = day.get(key, (0.0, 0.0))
        day[key] = (units + float(row["units"] or 0), energy + float(row["energy_j"] or 0))
    return dict(sorted(found.items()))


def _without_doubles(found: Sequence[SavingFound], asked: _Asked) -> tuple[SavingFound, ...]:
    """Return what was found; where two initiatives share runs, neither's saving is its own."""
    runs = {
        f.initiative.initiative_id: {
            r for held in asked.work(asked.made, f.initiative.tags).runs.values() for r in held
        }
        for f in found
        if f.savings
    }
    made = []
    for one in found:
        own = runs.get(one.initiative.initiative_id, set())
        others = [
            f.initiative.initiative_id
            for f in found
            if f is not one
            and own & runs.get(f.initiative.initiative_id, set())
            and _began_since(f.initiative, one, asked)
        ]
        if others and one.verdict == "confirmed":
            reason = f"its runs are also those of {listed(others)}: whose saving it is cannot be told"
            one = msgspec.structs.replace(one, verdict="undetermined", reason=reason)  # noqa: PLW2901 - the same, judged
        made.append(one)
    return tuple(made)


def _began_since(other: Initiative, one: SavingFound, asked: _Asked) -> bool:
    """Tell whether another initiative began after the baseline, so that the saving may be its."""
    if one.baseline is None:
        return False
    return other.start >= asked.source.calendar.dates(one.baseline)[0]
