"""The bench file (``bench.toml``): variants, functional unit, gates, and when enough is measured."""

from __future__ import annotations

import shlex
from decimal import Decimal
from pathlib import Path
from typing import Any, Final

import msgspec

from carbonlens.domain.bench import Bench, Pace, Variant, VariantKind
from carbonlens.domain.study import Step, Study
from carbonlens.errors import ConfigError
from carbonlens.inventory import assumptions, toml_file
from carbonlens.inventory.bench_check import check
from carbonlens.inventory.study_file import GateTable, gate_of

_Work = str | tuple[str, ...]
"""A command as one text, split as a shell would, or as program and arguments."""

_KINDS: Final[tuple[VariantKind, ...]] = ("command", "callable", "onnx", "url")


class _Bench(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    name: str
    unit: str
    title: str | None = None
    workload: str | None = None
    units: Decimal | int | None = None
    margin: float = 0.01
    volume_units: float | None = None
    volume_period: str | None = None
    units_per_day: float | None = None
    half_width: float = 0.01
    least_rounds: int = 10
    most_rounds: int = 40
    window_s: float = 1.0
    budget_s: float | None = None
    warm_up: int = 1
    timeout_s: float | None = None


class _Variant(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    name: str
    title: str | None = None
    command: _Work | None = None
    callable: str | None = None
    onnx: str | None = None
    url: str | None = None
    serve: _Work | None = None
    units: Decimal | int | None = None
    measured_on: str | None = None
    on: tuple[str, ...] | None = None
    prepare: _Work | None = None
    evaluate: _Work | None = None
    inputs: str | None = None
    providers: tuple[str, ...] = ()
    body: str | None = None
    headers: dict[str, str] = {}  # a frozen record's default is never mutated
    environment: dict[str, str] = {}  # a frozen record's default is never mutated
    engineering_hours: float | None = None


class _File(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    bench: _Bench
    variant: tuple[_Variant, ...] = ()
    gate: tuple[GateTable, ...] = ()
    assumptions: dict[str, Any] = {}  # a frozen record's default is never mutated


def load(path: Path) -> Bench:
    """Read a bench file.

    Raises:
        InputFileError: If it cannot be read.
        ConfigError: If it is malformed or contradicts itself.
    """
    where = str(path)
    tables = toml_file.read(path)
    stated = toml_file.convert(tables, _File, where=where)
    head = stated.bench
    variants = tuple(_variant(v, head, where) for v in stated.variant)
    if len(variants) < 2:
        raise ConfigError(
            f"has {len(variants)} [[variant]]",
            where=where,
            mend="state a baseline and at least one variant to compare with it",
        )
    bench = Bench(
        study=_study(stated),
        variants=variants,
        pace=Pace(
            half_width=head.half_width,
            least=head.least_rounds,
            most=head.most_rounds,
            window_s=head.window_s,
            budget_s=head.budget_s,
            warm_up=head.warm_up,
            timeout_s=head.timeout_s,
        ),
        vector=assumptions.from_tables(stated.assumptions, where=f"{where} [assumptions]"),
        workload=head.workload,
        folder=str(path.absolute().parent),
    )
    check(bench, where)
    return bench


def words(work: str, where: str) -> tuple[str, ...]:
    """Return a command line as program and arguments, split as a shell would.

    Raises:
        ConfigError: If a quote is not closed, or nothing stands there.
    """
    try:
        argv = tuple(shlex.split(work))
    except ValueError as error:
        raise ConfigError(f"{work!r}: {error}", where=where, mend="close the quote") from error
    if not argv or not argv[0]:
        raise ConfigError("a command is empty", where=where, mend='write for example "python run.py"')
    return argv


def _variant(stated: _Variant, head: _Bench, where: str) -> Variant:
    kinds = [k for k in _KINDS if getattr(stated, k) is not None]
    if len(kinds) != 1:
        raise ConfigError(
            f"variant {stated.name!r} has {' and '.join(kinds) if kinds else 'nothing to run'}",
            where=where,
            mend=f"state one of {', '.join(_KINDS)}",
        )
    units = stated.units if stated.units is not None else head.units
    return Variant(
        name=stated.name,
        kind=kinds[0],
        command=() if stated.command is None else _argv(stated.command, where),
        callable=stated.callable,
        onnx=stated.onnx,
        url=stated.url,
        serve=() if stated.serve is None else _argv(stated.serve, where),
        units=None if units is None else Decimal(units),
        prepare=_work(stated.prepare, where),
        evaluate=_work(stated.evaluate, where),
        inputs=stated.inputs,
        providers=stated.providers,
        body=stated.body,
        headers=stated.headers,
        environment=stated.environment,
    )


def _argv(work: _Work, where: str) -> tuple[str, ...]:
    if isinstance(work, str):
        return words(work, where)
    if not work or not work[0]:
        raise ConfigError("a command is empty", where=where, mend='write for example ["python", "run.py"]')
    return work


def _work(stated: _Work | None, where: str) -> tuple[str, ...] | str | None:
    """Return a command as its words; ``module:function`` stays one text."""
    if stated is None or not isinstance(stated, str):
        return None if stated is None else _argv(stated, where)
    module, colon, function = stated.partition(":")
    is_function = bool(colon) and function.isidentifier() and module.replace(".", "").isidentifier()
    return stated if is_function else words(stated, where)


def _study(stated: _File) -> Study:
    head, (baseline, *steps) = stated.bench, stated.variant
    return Study(
        name=head.name,
        title=head.title,
        baseline=baseline.name,
        baseline_title=baseline.title,
        steps=tuple(
            Step(
                name=s.name,
                title=s.title,
                measured_on=s.measured_on,
                on=s.on,
                engineering_hours=s.engineering_hours,
            )
            for s in steps
        ),
        unit=head.unit,
        gates=tuple(map(gate_of, stated.gate)),
        margin=head.margin,
        volume_units=head.volume_units,
        volume_period=head.volume_period,
        units_per_day=head.units_per_day,
        is_sequential=True,
    )
