"""The study file (``study.toml``): what is compared, and with which assumptions."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import msgspec

from carbonlens.domain.factor import Vector
from carbonlens.domain.study import Gate, GateKind, Step, Study
from carbonlens.errors import ConfigError
from carbonlens.inventory import assumptions, toml_file


class _Study(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    name: str
    baseline: str
    unit: str
    title: str | None = None
    baseline_title: str | None = None
    margin: float = 0.01
    volume_units: float | None = None
    volume_period: str | None = None


class _Step(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    name: str
    title: str | None = None
    measured_on: str | None = None
    on: tuple[str, ...] | None = None


class _Gate(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    name: str
    metric: str
    kind: GateKind
    limit: float


class _File(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    study: _Study
    step: tuple[_Step, ...] = ()
    gate: tuple[_Gate, ...] = ()
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
    study = Study(
        name=stated.study.name,
        baseline=stated.study.baseline,
        unit=stated.study.unit,
        title=stated.study.title,
        baseline_title=stated.study.baseline_title,
        margin=stated.study.margin,
        volume_units=stated.study.volume_units,
        volume_period=stated.study.volume_period,
        steps=tuple(
            Step(name=s.name, title=s.title, measured_on=s.measured_on, on=s.on) for s in stated.step
        ),
        gates=tuple(Gate(name=g.name, metric=g.metric, kind=g.kind, limit=g.limit) for g in stated.gate),
    )
    _check(study, where)
    return study, assumptions.from_tables(stated.assumptions, where=f"{where} [assumptions]")


def dumps(study: Study, vector: Vector) -> str:
    """Return a study and its vector as the text of a study file."""
    head = {
        "name": study.name,
        "title": study.title,
        "baseline": study.baseline,
        "baseline_title": study.baseline_title,
        "unit": study.unit,
        "margin": study.margin,
        "volume_units": study.volume_units,
        "volume_period": study.volume_period,
    }
    tables: dict[str, Any] = {"study": _stated(head)}
    tables["step"] = [
        _stated(
            {
                "name": s.name,
                "title": s.title,
                "measured_on": s.measured_on,
                "on": None if s.on is None else list(s.on),
            }
        )
        for s in study.steps
    ]
    tables["gate"] = [
        {"name": g.name, "metric": g.metric, "kind": g.kind, "limit": g.limit} for g in study.gates
    ]
    tables["assumptions"] = assumptions.to_tables(vector)
    return toml_file.dumps(tables)


def _stated(table: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in table.items() if value is not None}


def _check(study: Study, where: str) -> None:
    names = [study.baseline, *(s.name for s in study.steps)]
    double = sorted({n for n in names if names.count(n) > 1})
    if double:
        raise ConfigError(
            f"names {', '.join(double)} twice", where=where, mend="give every step its own name"
        )
    for index, step in enumerate(study.steps, start=1):
        earlier = names[:index]
        if step.measured_on is not None and step.measured_on not in earlier:
            raise ConfigError(
                f"step {step.name!r} is measured on {step.measured_on!r}, which does not stand before it",
                where=where,
                mend=f"name one of {', '.join(earlier)}",
            )
    if not 0 < study.margin < 1:
        raise ConfigError(f"margin is {study.margin}", where=where, mend="0.01 means 1 %")
    for gate in study.gates:
        if not math.isfinite(gate.limit):
            raise ConfigError(f"gate {gate.name!r} has limit {gate.limit}", where=where, mend="give a number")
    if study.volume_units is not None and not 0 < study.volume_units < math.inf:
        raise ConfigError(f"volume_units is {study.volume_units}", where=where, mend="give a positive volume")
