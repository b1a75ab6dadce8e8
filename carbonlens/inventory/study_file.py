"""The study file (``study.toml``): what is compared, and with which assumptions."""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Decimal
from pathlib import Path
from typing import Any, Final

import msgspec

from carbonlens.domain.factor import Vector
from carbonlens.domain.study import (
    SHORT_METRICS,
    Adjustment,
    EffortPlace,
    Engineering,
    Gate,
    GateKind,
    IntervalMethod,
    Selector,
    Step,
    Study,
)
from carbonlens.inventory import assumptions, toml_file
from carbonlens.inventory.study_check import check

_ORDER: Final = " > "
"""Between the optimizations of an order, first switched on first."""


class _Select(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    study: str | None = None
    step: str | None = None
    run: tuple[str, ...] | None = None
    job: str | None = None
    on: tuple[str, ...] | None = None
    workload: str | None = None
    hardware: str | None = None
    host: str | None = None
    zone: str | None = None
    site: str | None = None
    role: str | None = None
    tag: dict[str, str] = {}  # a frozen record's default is never mutated


class _Study(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    name: str
    baseline: str
    unit: str
    title: str | None = None
    baseline_title: str | None = None
    margin: float = 0.01
    volume_units: float | None = None
    volume_period: str | None = None
    units_per_day: float | None = None
    interval: IntervalMethod = "t"
    is_sequential: bool = False
    select: _Select | None = None
    baseline_select: _Select | None = None


class _Lattice(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    optimizations: tuple[str, ...]
    orders: tuple[str, ...] = ()
    engineering_hours: dict[str, float] = {}  # a frozen record's default is never mutated


class _Step(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    name: str
    title: str | None = None
    measured_on: str | None = None
    on: tuple[str, ...] | None = None
    select: _Select | None = None
    engineering_hours: float | None = None


class GateTable(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A gate as a study or bench file states it."""

    name: str
    metric: str
    kind: GateKind
    limit: float


class _Adjustment(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    tag: str
    exponent: float = 0.0
    u_exponent: float = 0.0
    at: float | None = None
    source: str | None = None


class _Engineering(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    amount_per_hour: Decimal
    currency: str
    source: str
    u_relative: float = 0.0


class _EffortPlace(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    assumptions: dict[str, Any]
    zone: str | None = None
    site: str | None = None
    period: str | None = None


class _File(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    study: _Study
    step: tuple[_Step, ...] = ()
    lattice: _Lattice | None = None
    gate: tuple[GateTable, ...] = ()
    adjustment: tuple[_Adjustment, ...] = ()
    engineering: _Engineering | None = None
    effort_place: tuple[_EffortPlace, ...] = ()
    assumptions: dict[str, Any] = {}  # a frozen record's default is never mutated


def load(path: Path) -> tuple[Study, Vector]:
    """Read a study file.

    Returns:
        The study, and the vector of its ``[assumptions]``, empty without them.

    Raises:
        InputFileError: If it cannot be read.
        ConfigError: If it is malformed or contradicts itself.
    """
    where = str(path)
    stated = toml_file.convert(toml_file.read(path), _File, where=where)
    head = stated.study
    fields = {f: getattr(head, f) for f in head.__struct_fields__ if f not in ("select", "baseline_select")}
    study = Study(
        **fields,
        select=_selector(head.select),
        baseline_select=_selector(head.baseline_select),
        steps=tuple(
            Step(
                name=s.name,
                title=s.title,
                measured_on=s.measured_on,
                on=s.on,
                select=_selector(s.select),
                engineering_hours=s.engineering_hours,
            )
            for s in stated.step
        ),
        optimizations=() if stated.lattice is None else stated.lattice.optimizations,
        orders=() if stated.lattice is None else tuple(map(_order, stated.lattice.orders)),
        optimization_hours={} if stated.lattice is None else stated.lattice.engineering_hours,
        gates=tuple(map(gate_of, stated.gate)),
        adjustments=tuple(Adjustment(**msgspec.structs.asdict(a)) for a in stated.adjustment),
        engineering=_engineering(stated.engineering),
        effort_places=tuple(_place(p, where) for p in stated.effort_place),
    )
    check(study, where)
    return study, assumptions.from_tables(stated.assumptions, where=f"{where} [assumptions]")


def dumps(study: Study, vector: Vector) -> str:
    """Return a study and its vector as the text of a study file."""
    plain = ("name", "title", "baseline", "baseline_title", "unit", "margin", "volume_units", "volume_period")
    head = {f: getattr(study, f) for f in (*plain, "units_per_day")}
    head |= {"interval": None if study.interval == "t" else study.interval}
    head |= {"is_sequential": study.is_sequential or None}
    head |= {"select": _select_table(study.select), "baseline_select": _select_table(study.baseline_select)}
    tables: dict[str, Any] = {"study": _stated(head)}
    tables["step"] = [_step_table(s) for s in study.steps]
    if study.optimizations:
        orders = [_ORDER.join(o) for o in study.orders] or None
        hours = dict(study.optimization_hours) or None
        tables["lattice"] = _stated(
            {"optimizations": list(study.optimizations), "orders": orders, "engineering_hours": hours}
        )
    tables["gate"] = _tables(study.gates)
    tables["adjustment"] = _tables(study.adjustments)
    if study.engineering is not None:
        rate = study.engineering
        tables["engineering"] = {**msgspec.structs.asdict(rate), "amount_per_hour": str(rate.amount_per_hour)}
    tables["effort_place"] = [
        _stated({"zone": p.zone, "site": p.site, "period": p.period})
        | {"assumptions": assumptions.to_tables(p.vector)}
        for p in study.effort_places
    ]
    tables["assumptions"] = assumptions.to_tables(vector)
    return toml_file.dumps({k: v for k, v in tables.items() if v or k == "study"})


def gate_of(stated: GateTable) -> Gate:
    """Return a gate as it was stated, its metric by its full name."""
    metric = SHORT_METRICS.get(stated.metric, stated.metric)
    return Gate(name=stated.name, metric=metric, kind=stated.kind, limit=stated.limit)


def _order(text: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in text.split(_ORDER.strip()))


def _selector(stated: _Select | None) -> Selector | None:
    return None if stated is None else Selector(**msgspec.structs.asdict(stated))


def _select_table(selector: Selector | None) -> dict[str, Any] | None:
    if selector is None:
        return None
    return _stated({k: _plain(v) for k, v in msgspec.structs.asdict(selector).items() if v != {}})


def _step_table(step: Step) -> dict[str, Any]:
    stated = {f: _plain(getattr(step, f)) for f in step.__struct_fields__ if f != "select"}
    return _stated({**stated, "select": _select_table(step.select)})


def _tables(records: Iterable[msgspec.Struct]) -> list[dict[str, Any]]:
    return [_stated(msgspec.structs.asdict(r)) for r in records]


def _engineering(stated: _Engineering | None) -> Engineering | None:
    if stated is None:
        return None
    given = msgspec.structs.asdict(stated)
    return Engineering(**{**given, "currency": stated.currency.upper()})


def _place(stated: _EffortPlace, where: str) -> EffortPlace:
    vector = assumptions.from_tables(stated.assumptions, where=f"{where} [effort_place.assumptions]")
    return EffortPlace(vector=vector, zone=stated.zone, site=stated.site, period=stated.period)


def _plain(value: object) -> object:
    """Return a value as TOML takes it."""
    return list(value) if isinstance(value, tuple) else value


def _stated(table: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in table.items() if value is not None}
