"""Shares of a service: its energy of a month, and its headroom's, over its consumers.

Headroom is what the service held ready and nobody used: runs of role ``idle``, and what its
meter counted beside its runs. It belongs to the service: a line of its own, or shared by use.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from decimal import Decimal
from typing import Final

import msgspec
from msgspec.structs import replace

from carbonlens.accounting.metered import Metered
from carbonlens.accounting.sharing import Claim, Division, Line, LineKind, by_activity, divide, reserved
from carbonlens.domain.estimate import Estimate, add
from carbonlens.domain.finding import Finding
from carbonlens.domain.service import Service, Use
from carbonlens.domain.units import Boundary

_ORDER: Final[tuple[LineKind, ...]] = ("consumer", "undivided", "idle", "rounding")


class Portion(msgspec.Struct, frozen=True, kw_only=True):
    """An amount, exact where it is known, and with its interval."""

    exact: Decimal | None
    estimate: Estimate

    def plus(self, other: Portion) -> Portion:
        """Return the sum; what is unknown makes the estimate a lower bound."""
        # Nothing beside what is unknown would make it a known least of 0.
        if NO_ENERGY in (self, other):
            return other if self == NO_ENERGY else self
        known = [p.exact for p in (self, other) if p.exact is not None]
        return Portion(
            exact=sum(known, Decimal(0)) if known else None,
            estimate=add([self.estimate, other.estimate], self.estimate.unit),
        )


NO_ENERGY: Final = Portion(exact=Decimal(0), estimate=Estimate(value=0.0, unit="J", bounds=(0.0, 0.0)))


class Load(msgspec.Struct, frozen=True, kw_only=True):
    """Energy of a service in one month, at one boundary, in joules.

    Attributes:
        used: Of its runs, or of its meter where no runs are named.
        headroom: Held ready and not used.
    """

    month: str
    boundary: Boundary | None
    used: Portion
    headroom: Portion = NO_ENERGY

    @property
    def total(self) -> Portion:
        """Both."""
        return self.used.plus(self.headroom)


class ServiceShares(msgspec.Struct, frozen=True, kw_only=True):
    """A service's energy over its consumers, months together, at one boundary.

    Attributes:
        total: What is divided, headroom among it.
        lines: By consumer, then what is not divided, idle and rounding.
    """

    service: Service
    boundary: Boundary | None
    months: tuple[str, ...]
    total: Portion
    lines: tuple[Line, ...]
    findings: tuple[Finding, ...] = ()


def claims_of(service: Service, month: str) -> tuple[Claim, ...]:
    """Return what the consumers of a service used in a month.

    Args:
        service: With its uses.
        month: ``2026-03``.
    """
    return tuple(_claim(service, use) for use in service.uses if use.month == month)


def _claim(service: Service, use: Use) -> Claim:
    if service.basis == "activity":
        return by_activity(use.consumer, use.count)
    weight = reserved(use.request, use.count) if service.basis == "request_or_usage" else use.count
    if weight is None or not use.u_relative:
        return Claim(name=use.consumer, weight=weight)
    value = float(weight)
    source = f"use:{service.service_id}:{use.consumer}"
    # What was reserved is exact: only a measured use carries the error of its measurement.
    errors = {source: value * use.u_relative} if weight == use.count else {}
    return Claim(
        name=use.consumer, weight=weight, estimate=Estimate(value=value, unit="1", u_by_source=errors)
    )


def with_meter(load: Load, meter: Metered) -> tuple[Load, tuple[Finding, ...]]:
    """Return a load whose whole is what a meter counted: the rest beside its runs is headroom.

    Args:
        load: Of the runs.
        meter: What was counted in the same month, at the same boundary.
    """
    total = load.total
    counted = Portion(exact=meter.exact_j, estimate=meter.energy)
    if total.exact is None or load.used.exact is None:
        return replace(load, used=counted, headroom=NO_ENERGY), ()
    if meter.exact_j >= total.exact:
        rest = replace(counted.estimate.minus(load.used.estimate), signed=False)
        headroom = Portion(exact=meter.exact_j - load.used.exact, estimate=rest)
        return replace(load, headroom=headroom), ()
    finding = Finding(
        code="CL473",
        severity="warning",
        message=f"its runs hold {total.exact:.6g} J in {load.month}, its meter counted "
        f"{meter.exact_j:.6g} J: the meter's energy is divided, with no idle beside it",
        mend="check which runs the meter feeds",
    )
    return replace(load, used=counted, headroom=NO_ENERGY), (finding,)


def shares_of(service: Service, loads: Sequence[Load]) -> ServiceShares:
    """Divide a service's energy, month by month, by what was used in each.

    Args:
        service: With its uses.
        loads: Of one boundary, at most one a month.
    """
    divided = [_divided(service, load) for load in loads]
    total = NO_ENERGY
    for load in loads:
        total = total.plus(load.total)
    findings = [f for d in divided for f in d.findings]
    if service.basis == "activity":
        findings.append(_BY_ACTIVITY)
    return ServiceShares(
        service=service,
        boundary=loads[0].boundary if loads else None,
        months=tuple(load.month for load in loads),
        total=total,
        lines=_merged((line for d in divided for line in d.lines), total.exact),
        findings=tuple(dict.fromkeys(replace(f, subject=service.service_id) for f in findings)),
    )


def _divided(service: Service, load: Load) -> Division:
    """Return one month's division: use by use, and headroom by the service's rule."""
    claims = claims_of(service, load.month)
    if not claims:
        return _not_stated(load)
    used = divide(load.used.exact, load.used.estimate, claims, whole=service.capacity, idle=service.idle)
    if load.headroom.exact == 0 and load.headroom.estimate.state == "known":
        return used
    findings = used.findings
    if service.idle == "shared" and not any(line.kind == "undivided" for line in used.lines):
        spread = divide(load.headroom.exact, load.headroom.estimate, claims)
        rest = tuple(
            replace(x, of_idle=x.exact or Decimal(0)) if x.kind == "consumer" else x for x in spread.lines
        )
    else:
        rest = (Line(name="idle", kind="idle", exact=load.headroom.exact, estimate=load.headroom.estimate),)
    return Division(exact=load.total.exact, lines=(*used.lines, *rest), findings=findings)


def _not_stated(load: Load) -> Division:
    total = load.total
    line = Line(name="undivided", kind="undivided", exact=total.exact, estimate=total.estimate)
    finding = Finding(
        code="CL479",
        severity="warning",
        message=f"no use is stated for {load.month}: its energy is not divided",
        mend="add the month's uses to services.toml or service_uses*.csv",
    )
    return Division(exact=total.exact, lines=(line,), findings=(finding,))


def _merged(lines: Iterable[Line], total: Decimal | None) -> tuple[Line, ...]:
    """Return lines of several divisions as one for each consumer and kind."""
    groups: dict[tuple[LineKind, str], list[Line]] = {}
    for line in lines:
        groups.setdefault((line.kind, line.name), []).append(line)
    merged = []
    for (kind, name), parts in groups.items():
        known = [p.exact for p in parts if p.exact is not None]
        exact = sum(known, Decimal(0)) if known else None
        merged.append(
            Line(
                name=name,
                kind=kind,
                exact=exact,
                of_idle=sum((p.of_idle for p in parts), Decimal(0)),
                share=float(exact / total) if exact is not None and total else None,
                estimate=add((p.estimate for p in parts), parts[0].estimate.unit),
            )
        )
    return tuple(sorted(merged, key=lambda x: _ORDER.index(x.kind)))


_BY_ACTIVITY: Final = Finding(
    code="CL478",
    severity="info",
    message="divided by shares of activity: no counter tells the energy of a MIG device or a process apart",
    mend="nothing; the shares have evidence grade D",
)
