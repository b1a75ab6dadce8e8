"""What a study file may not say: contradictions and impossible values, each with its mend."""

from __future__ import annotations

import math
import re

from carbonlens.compare.comparability import ROUTINE
from carbonlens.domain.limits import LEAST_UNITS, MOST
from carbonlens.domain.study import LATENCIES, Adjustment, Gate, Selector, Study
from carbonlens.errors import ConfigError

_RATIOS = ("min_retention", "max_ratio")
_PERIOD = re.compile(r"[0-9]{4}(-(0[1-9]|1[0-2]))?")
_COMPARED = (
    "energy",
    "energy_j",
    "carbon",
    "carbon_location",
    "carbon_market",
    "emissions_location_kg",
    "emissions_market_kg",
    "cost",
)


def check(study: Study, where: str) -> None:
    """Refuse a study that contradicts itself.

    Args:
        study: As read.
        where: The file, for the error.

    Raises:
        ConfigError: For the first fault.
    """
    _check_names(study, where)
    _check_lattice(study, where)
    _check_gates(study, where)
    _check_values(study, where)
    _check_effort(study, where)


def _check_names(study: Study, where: str) -> None:
    names = [study.baseline, *(s.name for s in study.steps)]
    for what, text in (("name", study.name), ("unit", study.unit), *(("step name", n) for n in names)):
        if not text.strip():
            raise ConfigError(f"has an empty {what}", where=where, mend=f"state the {what}")
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
    selectors = [("baseline_select", study.baseline_select), *((s.name, s.select) for s in study.steps)]
    for name, selector in selectors:
        if selector == Selector():
            raise ConfigError(
                f"the selector of {name!r} states nothing, and would take every run",
                where=where,
                mend='state what its runs have, for example tag = {precision = "int8"}',
            )


def _check_lattice(study: Study, where: str) -> None:
    if not study.optimizations:
        return
    if study.steps:
        raise ConfigError(
            "has both [[step]] and [lattice]",
            where=where,
            mend="state the steps, or the optimizations that were switched on and off",
        )
    wanted = set(study.optimizations)
    if len(wanted) < len(study.optimizations):
        raise ConfigError("names an optimization twice", where=where, mend="name each once")
    strange = next((o for o in study.optimization_hours if o not in wanted), None)
    if strange is not None:
        raise ConfigError(
            f"[lattice] engineering_hours names {strange!r}, which is no optimization of it",
            where=where,
            mend=f"name one of {', '.join(study.optimizations)}",
        )
    for index, order in enumerate(study.orders):
        if len(order) != len(wanted) or set(order) != wanted:
            raise ConfigError(
                f"order {index + 1} does not name every optimization once",
                where=where,
                mend="keep [lattice] orders as study plan wrote them",
            )
    pairs = zip(study.orders[::2], study.orders[1::2], strict=False)
    if len(study.orders) % 2 or any(a != b[::-1] for a, b in pairs):
        raise ConfigError(
            "has an order that is not followed by its reverse",
            where=where,
            mend="keep [lattice] orders as study plan wrote them",
        )


def check_gate(gate: Gate, where: str) -> None:
    """Refuse a gate that can say nothing, whether a file or the command line states it.

    Args:
        gate: The gate.
        where: File or option, for the error.

    Raises:
        ConfigError: For the first fault.
    """
    if not gate.name.strip() or not gate.metric.strip():
        raise ConfigError("a gate has no name or no metric", where=where, mend="name both")
    if gate.metric.startswith("latency") and gate.metric not in LATENCIES:
        raise ConfigError(
            f"gate {gate.name!r} is on {gate.metric!r}, which nothing measures",
            where=where,
            mend=f"name one of {', '.join(LATENCIES)}",
        )
    if gate.metric in _COMPARED:
        raise ConfigError(
            f"gate {gate.name!r} is on {gate.metric!r}, which the comparison itself decides on",
            where=where,
            mend="state its limit with check --fail-if, or the margin",
        )
    if not math.isfinite(gate.limit):
        raise ConfigError(f"gate {gate.name!r} has limit {gate.limit}", where=where, mend="give a number")
    if gate.kind in _RATIOS and gate.limit <= 0:
        raise ConfigError(
            f"gate {gate.name!r} has ratio {gate.limit}",
            where=where,
            mend="0.98 keeps 98 % of the baseline's",
        )


def check_margin(margin: float, where: str) -> None:
    """Refuse a margin that is no share between 0 and 1.

    Raises:
        ConfigError: If it is none.
    """
    if not 0 < margin < 1:
        raise ConfigError(
            f"margin is {margin}", where=where, mend="give a share between 0 and 1: 0.01 means 1 %"
        )


def check_volume(name: str, value: float, where: str) -> None:
    """Refuse a volume that is no positive number of units, or one beyond what a run may state.

    Raises:
        ConfigError: If it is none.
    """
    if not LEAST_UNITS <= value < MOST:
        raise ConfigError(
            f"{name} is {value:g}",
            where=where,
            mend=f'give a positive volume below {MOST:.0e}, for example "2e9 a year"',
        )


def _check_gates(study: Study, where: str) -> None:
    for gate in study.gates:
        check_gate(gate, where)
    names = [g.name for g in study.gates]
    double = sorted({n for n in names if names.count(n) > 1})
    if double:
        raise ConfigError(
            f"names the gate {', '.join(double)} twice", where=where, mend="give every gate its own name"
        )


def _check_values(study: Study, where: str) -> None:
    check_margin(study.margin, where)
    for name in ("volume_units", "units_per_day"):
        value = getattr(study, name)
        if value is not None:
            check_volume(name, value, where)
    for one in study.adjustments:
        _check_adjustment(one, where)


def _check_adjustment(one: Adjustment, where: str) -> None:
    if one.tag not in ROUTINE:
        raise ConfigError(
            f"adjusts for the tag {one.tag!r}, in which arms may differ anyway",
            where=where,
            mend=f"name one of {', '.join(ROUTINE)}",
        )
    at = 1.0 if one.at is None else one.at
    if not (math.isfinite(one.exponent) and 0 <= one.u_exponent < math.inf and 0 < at < math.inf):
        raise ConfigError(
            f"adjustment of {one.tag} has exponent {one.exponent}, u_exponent {one.u_exponent}, at {one.at}",
            where=where,
            mend="give numbers: u_exponent 0 or more, at above 0",
        )


def _check_effort(study: Study, where: str) -> None:
    stated = {s.name: s.engineering_hours for s in study.steps if s.engineering_hours is not None}
    for name, hours in (stated | dict(study.optimization_hours)).items():
        if not 0 <= hours < math.inf:
            raise ConfigError(
                f"step {name!r} took {hours} engineering hours",
                where=where,
                mend="give hours, 0 or more",
            )
    rate = study.engineering
    if rate is not None and not (rate.amount_per_hour.is_finite() and rate.amount_per_hour >= 0):
        raise ConfigError(
            f"engineering costs {rate.amount_per_hour} an hour", where=where, mend="give an amount, 0 or more"
        )
    if rate is not None and not 0 <= rate.u_relative < math.inf:
        raise ConfigError(
            f"engineering has u_relative {rate.u_relative}", where=where, mend="0.1 means 10 %, one sigma"
        )
    if rate is not None and not (rate.currency.isascii() and re.fullmatch("[A-Z]{3}", rate.currency)):
        raise ConfigError(
            f"engineering has currency {rate.currency!r}", where=where, mend='write an ISO 4217 code: "EUR"'
        )
    if rate is not None and not rate.source.strip():
        raise ConfigError(
            "engineering has no source", where=where, mend="state source: where the amount is from"
        )
    for place in study.effort_places:
        if place.period is not None and not _PERIOD.fullmatch(place.period):
            raise ConfigError(
                f"effort_place has period {place.period!r}",
                where=where,
                mend="write a year or a month: 2025-03",
            )
        if place.zone is None and place.site is None and place.period is None:
            raise ConfigError(
                "effort_place names no zone, site or period",
                where=where,
                mend="say which effort runs it is for; the serving site's factors are [assumptions]",
            )
