"""Use case part: shares of services as figures, each led to runs, meter readings and stated uses."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import msgspec

from carbonlens.accounting.allocation_nesting import counting
from carbonlens.accounting.service_shares import ServiceShares
from carbonlens.accounting.sharing import Line
from carbonlens.app.allocation import Allocated, allocation_of
from carbonlens.app.inventory import Kept, calendar_of
from carbonlens.app.statement_meters import meters_and_readings
from carbonlens.domain.estimate import Estimate
from carbonlens.domain.figure import Figure
from carbonlens.domain.meter_reading import MeterReading
from carbonlens.domain.run import Run
from carbonlens.domain.service import Service
from carbonlens.domain.units import US_PER_HOUR
from carbonlens.errors import SelectionError
from carbonlens.ledger.opening import open_ledger
from carbonlens.ledger.records import current


class AllocationFigures(msgspec.Struct, frozen=True, kw_only=True):
    """Figures of an allocation, and the runs that they name as ``runs.<...>``."""

    figures: tuple[Figure, ...]
    runs_of: Mapping[str, tuple[str, ...]]


def total_id(period: str, one: ServiceShares) -> str:
    """Return the id of the energy of a service that is divided."""
    return f"allocation.{period}.{one.service.service_id}.{one.boundary or 'unstated'}.total_j"


def line_id(period: str, one: ServiceShares, line: Line) -> str:
    """Return the id of one line of a division."""
    name = line.name if line.kind == "consumer" else line.kind
    begin = total_id(period, one).removesuffix("total_j")
    return f"{begin}{'by' if line.kind == 'consumer' else 'rest'}.{name}"


def allocation_figures(
    period: str, *, kept: Kept, ledger: str | Path | None = None, now_us: int | None = None
) -> AllocationFigures:
    """Return the figures of the services of a period.

    Args:
        period: As ``allocate`` takes it.
        kept: The inventory.
        ledger: The ledger's folder; found as the command line finds it when ``None``.
        now_us: The present, UTC microseconds; by the clock when ``None``.

    Raises:
        SelectionError: If there is no ledger, or no service.
        UsageError: If the period is none, or not of whole months.
        MissingExtraError: If the ``analysis`` extra is not installed.
    """
    present = time.time_ns() // 1000 if now_us is None else now_us
    hours = calendar_of(kept.inventory.terms).period(period)
    span = hours.first_hour * US_PER_HOUR, hours.end_hour * US_PER_HOUR
    with open_ledger(ledger) as store:
        if not store.exists:
            raise SelectionError("the ledger is not there", where=store.shown, mend="check --ledger")
        found = allocation_of(kept.inventory, store, period, now_us=present)
        runs = [r for r in current(store.view().runs)[0] if _is_within(r.start_us, r.end_us, span)]
        readings = meters_and_readings(store, kept.inventory, ())[1]
    return _figures(found, runs, [r for r in readings if _is_within(r.start_us, r.end_us, span)])


def _figures(found: Allocated, runs: Sequence[Run], readings: Sequence[MeterReading]) -> AllocationFigures:
    figures: list[Figure] = []
    runs_of: dict[str, tuple[str, ...]] = {}
    roots = tuple(_root(runs))
    for one in found.services:
        named = f"runs.allocation.{found.period}.{one.service.service_id}"
        mine = tuple(r.run_id for r in roots if _holds(one.service, r))
        if mine:
            runs_of[named] = mine
        figures.append(_total(found.period, one, (named,) if mine else (), readings))
        figures += [_line(found.period, one, line) for line in one.lines]
        figures += _meter(one.service, readings)
    return AllocationFigures(figures=tuple(figures), runs_of=runs_of)


def _total(
    period: str, one: ServiceShares, runs: tuple[str, ...], readings: Sequence[MeterReading]
) -> Figure:
    meter = one.service.meter
    counted = any(r.meter_id == meter for r in readings)
    return Figure(
        figure_id=total_id(period, one),
        estimate=one.total.estimate,
        label=f"energy of service {one.service.service_id} that is divided",
        formula="energy of its runs" + (", or what its meter counted where that is whole" if meter else ""),
        inputs=(*runs, *((f"meter:{meter}",) if counted else ()), f"service:{one.service.service_id}"),
    )


def _line(period: str, one: ServiceShares, line: Line) -> Figure:
    service = one.service
    uses = [u for u in service.uses if u.month in one.months]
    formula = {
        "consumer": "sum over the months of energy * its use / all uses",
        "idle": "held ready and not used: runs of role idle, and the meter beside the runs",
        "undivided": "energy of months whose uses nobody states",
        "rounding": "what the shares leave by rounding",
    }[line.kind]
    counted = uses if line.kind in ("consumer", "rounding") else []
    return Figure(
        figure_id=line_id(period, one, line),
        estimate=line.estimate,
        label=f"share of {line.name} in service {service.service_id}"
        if line.kind == "consumer"
        else f"{line.kind} of service {service.service_id}",
        formula=formula,
        inputs=(
            total_id(period, one),
            *(f"use:{service.service_id} {u.month} {u.consumer}" for u in counted),
        ),
    )


def _meter(service: Service, readings: Sequence[MeterReading]) -> list[Figure]:
    held = [r for r in readings if r.meter_id == service.meter]
    if not held or service.meter is None:
        return []
    joules = [float(r.energy_j) for r in held if r.energy_j is not None]
    return [
        Figure(
            figure_id=f"meter:{service.meter}",
            estimate=Estimate(value=sum(joules), unit="J", bounds=(None, None)),
            label=f"meter {service.meter}",
            formula="sum of the readings that touch the period",
            inputs=tuple(f"reading:{r.reading_id}" for r in held),
        )
    ]


def _holds(service: Service, run: Run) -> bool:
    if not service.tags or (service.site is not None and run.site != service.site):
        return False
    return all(run.tags.get(key) == value for key, value in service.tags.items())


def _root(runs: Sequence[Run]) -> Iterable[Run]:
    own = counting(runs)
    return (r for r in runs if own[r.run_id])


def _is_within(start_us: int | None, end_us: int | None, span: tuple[int, int]) -> bool:
    if start_us is None:
        return False
    last = start_us if end_us is None else end_us
    return start_us < span[1] and (last > span[0] or start_us >= span[0])
