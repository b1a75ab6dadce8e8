"""Use case part: records of a ledger, an inventory and the factor tables as items of an explanation."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime
from functools import partial

import msgspec

from carbonlens.accounting.amounts import NO_CURRENCY
from carbonlens.accounting.factor_choice import DEFAULT_GRID_U_RELATIVE, relative_sigma
from carbonlens.accounting.propagation import stated
from carbonlens.domain.certificate import Certificate
from carbonlens.domain.charge import Charge
from carbonlens.domain.counting import counted
from carbonlens.domain.estimate import Estimate
from carbonlens.domain.factor_row import FactorRow
from carbonlens.domain.figure import Figure
from carbonlens.domain.meter_reading import MeterReading
from carbonlens.domain.pricing import PriceRow
from carbonlens.domain.run import Origin, Reading, Run
from carbonlens.domain.units import US_PER_S
from carbonlens.reporting.explanation import Item, item_of


def factor_item(row: FactorRow, place: str) -> Item:
    """Return a factor row.

    Args:
        row: The row.
        place: File and line it was read from.
    """
    counts = ", ".join(w for w in (row.method, row.averaging, row.span, row.flow) if w)
    is_grid = row.kind in ("grid", "upstream", "transmission")
    sigma = relative_sigma(row, DEFAULT_GRID_U_RELATIVE) if is_grid else row.u_relative
    return Item(
        item_id=row.factor_id,
        kind="factor",
        title=f"{row.kind} factor of {row.subject}, {row.period}" + (f" ({counts})" if counts else ""),
        estimate=stated(float(row.value), sigma, row.factor_id, row.unit),
        details=(
            f"source: {row.source}, {row.vintage}; licence {row.licence}",
            f"address: {row.address}" + (f"; version {row.version}" if row.version else ""),
            f"row: {place}, sha256 {row.sha256[:12]}",
        ),
    )


def blended_factor_item(name: str, of: tuple[str, ...]) -> Item:
    """Return a factor that weighs rows of several months by the energy of each.

    Args:
        name: Ids of the rows, as ``statement_market.weighted_rate`` joins them.
        of: The same apart.
    """
    return Item(
        item_id=name,
        kind="factor",
        title=f"{counted(len(of), 'factor')} of months, weighted by the electricity of each month",
        formula="rate = sum of kWh x factor / sum of kWh",
        inputs=of,
    )


def price_item(row: PriceRow, place: str) -> Item:
    """Return a price.

    Args:
        row: The row.
        place: File and line it was read from.
    """
    unit = f"{row.amount.currency}/{row.per}"
    until = f" to {row.valid_to}" if row.valid_to else ""
    return Item(
        item_id=row.price_id,
        kind="price",
        title=f"{row.cost_kind} price of {row.subject}, from {row.valid_from}{until}",
        estimate=stated(float(row.amount.amount), row.u_relative, row.price_id, unit),
        details=(f"source: {row.source}; read on {row.read_on}", f"address: {row.address}", f"row: {place}"),
    )


def certificate_item(row: Certificate, place: str) -> Item:
    """Return a certificate, with what makes it count or not.

    Args:
        row: The certificate.
        place: File and line it was read from, as a line of text.
    """
    unmet = f"criteria not met: {', '.join(row.unmet)}" if row.unmet else "all eight criteria met"
    covers = "all that was delivered" if row.energy_mwh is None else f"{row.energy_mwh:f} MWh"
    retired = f"; retired {row.retired}" if row.retired else "; not retired"
    return Item(
        item_id=row.certificate_id,
        kind="certificate",
        title=f"{row.kind} of {row.entity} in {row.market}, {row.period}: {covers}",
        estimate=stated(float(row.value_kg_per_kwh), row.u_relative, row.certificate_id, "kg/kWh"),
        details=(
            f"{unmet}{retired if row.kind == 'certificate' else ''}",
            f"evidence: {row.evidence or 'not stated'}",
            place,
        ),
    )


def charge_item(row: Charge) -> Item:
    """Return one line of a bill."""
    cost = row.effective if row.effective is not None else row.billed
    kind = "effective" if row.effective is not None else "billed"
    value = None if cost is None else float(cost.amount)
    words = [w for w in (row.category, row.service, row.sku, row.resource_id) if w]
    return Item(
        item_id=row.charge_id,
        kind="charge",
        title=f"line of a bill, {_span(row.start_us, row.end_us)}: {', '.join(words) or 'not described'}",
        estimate=Estimate(
            value=value, unit=NO_CURRENCY if cost is None else cost.currency, signed=(value or 0) < 0
        ),
        details=(f"{kind} cost; invoice {row.invoice_id or 'not stated'}", _where(row.origin)),
    )


def reading_item(row: MeterReading) -> Item:
    """Return one reading of a meter."""
    joules = None if row.energy_j is None else float(row.energy_j)
    return Item(
        item_id=f"reading:{row.reading_id}",
        kind="reading",
        title=f"reading of meter {row.meter_id}, {_span(row.start_us, row.end_us)}",
        estimate=Estimate(value=joules, unit="J", grade=row.grade, bounds=(None, None)),
        details=(f"method {row.method or 'not stated'}, grade {row.grade}", _where(row.origin)),
    )


def run_item(run: Run) -> Item:
    """Return a run with its readings."""
    facts = [w for w in (run.site and f"site {run.site}", run.zone and f"zone {run.zone}") if w]
    facts += [f"step {run.step}"] if run.step else []
    when = _span(run.start_us, run.end_us)
    lost = f"; coverage {run.coverage:.1%}" if run.coverage is not None else ""
    return Item(
        item_id=f"run:{run.run_id}",
        kind="run",
        title=f"run {run.run_id}, {when}" + (f", {', '.join(facts)}" if facts else ""),
        estimate=run.total_energy,
        formula="sum of its readings",
        details=(f"{_where(run.origin)}{lost}",),
        parts=tuple(_reading(run, reading) for reading in run.energy),
    )


def counted_item(figure: Figure) -> Item:
    """Return a figure that the pages of a report count or divide, and that rests on no other one.

    Args:
        figure: The figure.
    """
    return msgspec.structs.replace(
        item_of(figure),
        formula=figure.formula or "part / whole",
        details=("counted while the report was made; it rests on no other figure",),
    )


def run_makers(runs: Iterable[Run]) -> dict[str, Callable[[], Item]]:
    """Return what makes the item of each run, by its id.

    Imported ids are unique within a study only: runs of one id are told together under it, and each
    under ``study/id``.

    Args:
        runs: Those of a ledger that count.
    """
    by_id: dict[str, list[Run]] = {}
    for run in runs:
        by_id.setdefault(run.run_id, []).append(run)
    made: dict[str, Callable[[], Item]] = {}
    for run_id, alike in by_id.items():
        if len(alike) == 1:
            made[run_id] = partial(run_item, alike[0])
            continue
        names = [named_by_study(run.study, run_id) for run in alike]
        # One name may stand in two records still; then their place in the ledger tells them apart.
        names = [n if names.count(n) == 1 else f"{n}#{at}" for at, n in enumerate(names, 1)]
        made[run_id] = partial(_alike, run_id, names)
        for name, run in zip(names, alike, strict=True):
            made.setdefault(name, partial(_of_study, name, run))
    return made


def named_by_study(study: str | None, run_id: str) -> str:
    """Return what tells a run from those of its id in other studies."""
    return f"{study or 'no study'}/{run_id}"


def _alike(run_id: str, names: Sequence[str]) -> Item:
    return Item(
        item_id=f"run:{run_id}",
        kind="runs",
        title=f"{len(names)} runs have the id {run_id}: ids of imports are unique within a study only",
        inputs=tuple(f"run:{name}" for name in names),
    )


def _of_study(name: str, run: Run) -> Item:
    item = run_item(run)
    where = f", study {run.study}" if run.study else ", of no study"
    return msgspec.structs.replace(item, item_id=f"run:{name}", title=f"{item.title}{where}")


def _reading(run: Run, reading: Reading) -> Item:
    covered = "" if reading.covered_s is None else f", covers {reading.covered_s:.6g} s"
    if reading.covered_s is not None and run.duration_s:
        covered += f" of {run.duration_s:.6g} s"
    sensors = f"; errors of {', '.join(reading.u_by_source_j)}" if reading.u_by_source_j else ""
    devices = f"; devices {', '.join(reading.devices)}" if reading.devices else ""
    return Item(
        item_id=f"run:{run.run_id}.{reading.component}",
        kind="reading",
        title=f"reading of {reading.component}, {reading.boundary or 'boundary not stated'}",
        estimate=reading.estimate,
        details=(f"{reading.method}, grade {reading.grade or 'not stated'}{covered}{sensors}{devices}",),
    )


def _span(start_us: int | None, end_us: int | None) -> str:
    if start_us is None:
        return "time not stated"
    if end_us is None:
        return f"from {_time(start_us)}"
    return f"{_time(start_us)} to {_time(end_us)}"


def _time(instant_us: int) -> str:
    return f"{datetime.fromtimestamp(instant_us / US_PER_S, tz=UTC):%Y-%m-%d %H:%M}Z"


def _where(origin: Origin | None) -> str:
    """Return where a record was read: file and line, else what measured it."""
    if origin is None:
        return "origin not recorded"
    if origin.source_file is None:
        return f"measured and recorded by {origin.instrument}"
    line = f":{origin.source_line}" if origin.source_line else ""
    sha = f", sha256 {origin.source_sha256[:12]}" if origin.source_sha256 else ""
    return f"file {origin.source_file}{line}{sha}, by {origin.instrument}"
