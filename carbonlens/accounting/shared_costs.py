"""Shared costs of clusters: idle, costs that others carry, hosts and what runs on them.

Each rule counts every amount once; what contradicts itself is a Finding and no figure.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from decimal import Decimal

import msgspec

from carbonlens.accounting.sharing import Claim, Division, divide
from carbonlens.domain.counting import counted, with_article
from carbonlens.domain.estimate import Estimate
from carbonlens.domain.finding import Finding


class Owner(msgspec.Struct, frozen=True, kw_only=True):
    """A namespace or team with its own costs and its share of idle."""

    name: str
    own: Decimal
    idle: Decimal = Decimal(0)


class Carried(msgspec.Struct, frozen=True, kw_only=True):
    """What one owner carries.

    Attributes:
        own, idle: As before.
        shared, shared_idle: Its part of what the shared owners cost, and of their idle.
    """

    name: str
    own: Decimal
    idle: Decimal
    shared: Decimal = Decimal(0)
    shared_idle: Decimal = Decimal(0)

    @property
    def total(self) -> Decimal:
        """All of it."""
        return self.own + self.idle + self.shared + self.shared_idle


class Shared(msgspec.Struct, frozen=True, kw_only=True):
    """Owners with what they carry, and what nobody does (rounding, or all where nobody is left)."""

    owners: tuple[Carried, ...]
    remainder: Decimal
    findings: tuple[Finding, ...] = ()

    @property
    def total(self) -> Decimal:
        """The sum, equal to that of all owners before."""
        return sum((o.total for o in self.owners), self.remainder)


def share_out(owners: Sequence[Owner], shared: Collection[str], unit: str = "1") -> Shared:
    """Share the costs of some owners onto the others, each part exactly once.

    The own costs of the others are the weights. Idle of a shared owner goes with its costs
    and is not idle of the cluster a second time.

    Args:
        owners: All of them.
        shared: Names of those whose costs the others carry.
        unit: Of the amounts.
    """
    givers = [o for o in owners if o.name in shared]
    takers = [o for o in owners if o.name not in shared]
    claims = [Claim(name=o.name, weight=max(o.own, Decimal(0))) for o in takers]
    costs = _exactly(sum((o.own for o in givers), Decimal(0)), claims, unit)
    idles = _exactly(sum((o.idle for o in givers), Decimal(0)), claims, unit)
    carried = [
        Carried(
            name=o.name,
            own=o.own,
            idle=o.idle,
            shared=costs.lines[place].exact or Decimal(0),
            shared_idle=idles.lines[place].exact or Decimal(0),
        )
        for place, o in enumerate(takers)
    ]
    rest = sum(((d.exact or Decimal(0)) - d.part("consumer") for d in (costs, idles)), Decimal(0))
    return Shared(owners=tuple(carried), remainder=rest, findings=_unshared(rest, costs))


def _exactly(amount: Decimal, claims: Sequence[Claim], unit: str) -> Division:
    return divide(amount, Estimate(value=float(amount), unit=unit), claims)


def _unshared(rest: Decimal, costs: Division) -> tuple[Finding, ...]:
    if not rest or not any(line.kind == "idle" for line in costs.lines):
        return ()
    text = f"shared costs of {rest} found nobody with costs of its own to carry them"
    return (Finding(code="CL471", severity="warning", message=text, mend="share them by another weight"),)


class Idle(msgspec.Struct, frozen=True, kw_only=True):
    """What of a machine nobody is charged.

    Attributes:
        idle: Never negative; a lower bound where a Finding says so.
        total: Charged and idle together.
    """

    idle: Decimal
    total: Decimal
    findings: tuple[Finding, ...] = ()


def idle_of(whole: Decimal | None, charged: Decimal, *, what: str = "node") -> Idle:
    """Return the idle cost of a machine of which parts are charged.

    Args:
        whole: Its cost; ``None`` or 0 where no price is known.
        charged: What its workloads are charged.
        what: Name of the machine, for the Finding.
    """
    if whole is not None and whole >= charged and (whole or not charged):
        return Idle(idle=whole - charged, total=whole)
    if not whole:
        text = (
            f"{what} price missing: its idle cost is unknown, and the total is what was charged ({charged})"
        )
        mend = f"state the price of the {what}"
    else:
        text = f"workloads are charged {charged} of {with_article(what)} that costs {whole}: no idle is left"
        mend = "check the price, and whether a charge stands there twice"
    finding = Finding(code="CL473", severity="warning", message=text, mend=mend, subject=what)
    return Idle(idle=Decimal(0), total=charged, findings=(finding,))


class ResourceCost(msgspec.Struct, frozen=True, kw_only=True):
    """Cost of one resource (``gpu``, ``cpu``) of one workload; ``hours`` is ``None`` when unknown."""

    name: str
    resource: str
    cost: Decimal
    hours: Decimal | None = None


class Usable(msgspec.Struct, frozen=True, kw_only=True):
    """Costs that stand for use, and those that contradict themselves and are not in the sum."""

    total: Decimal
    usable: tuple[ResourceCost, ...]
    apart: tuple[ResourceCost, ...]
    findings: tuple[Finding, ...] = ()


def without_phantoms(costs: Sequence[ResourceCost]) -> Usable:
    """Keep apart costs of a resource that, by its own hours, nobody had.

    Args:
        costs: Hours that are unknown contradict nothing.
    """
    apart = tuple(c for c in costs if c.cost and c.hours == 0)
    usable = tuple(c for c in costs if not (c.cost and c.hours == 0))
    sums: dict[str, Decimal] = {}
    for one in apart:
        sums[one.resource] = sums.get(one.resource, Decimal(0)) + one.cost
    findings = tuple(
        Finding(
            code="CL474",
            severity="warning",
            message=f"{cost} {resource.upper()} cost with 0 {resource.upper()} hours "
            f"({', '.join(c.name for c in apart if c.resource == resource)}): kept apart, not in the total",
            mend="check the tool that made the figures",
            subject=resource,
        )
        for resource, cost in sums.items()
    )
    total = sum((c.cost for c in usable), Decimal(0))
    return Usable(total=total, usable=usable, apart=apart, findings=findings)


class Hosted(msgspec.Struct, frozen=True, kw_only=True):
    """A line of a host or of an instance on it.

    Attributes:
        row_id: Of the line.
        host: Line of the dedicated host it runs on; ``None`` for one that stands for itself.
        amount: Energy, kg or money of the line as it was stated.
        weight: Its use of the host, such as instance hours times size.
    """

    row_id: str
    host: str | None = None
    amount: Estimate
    exact: Decimal
    weight: Decimal | None = None


class CountedOnce(msgspec.Struct, frozen=True, kw_only=True):
    """Lines that count, and how hosts divide over their instances.

    Attributes:
        total: Hosts and single instances; what runs on a host is in the host.
        hosts: Host to its division.
    """

    total: Decimal
    hosts: Mapping[str, Division]
    findings: tuple[Finding, ...] = ()


def hosts_once(rows: Sequence[Hosted], capacity: Mapping[str, Decimal] | None = None) -> CountedOnce:
    """Count a dedicated host and its instances once: instances are shares of the host.

    Args:
        rows: Instances of a host that has no line stand for themselves.
        capacity: Host to what it could carry, in the unit of the weights; idle is the rest.
    """
    known = {r.row_id: r for r in rows if r.host is None}
    inside: dict[str, list[Hosted]] = {}
    for row in rows:
        if row.host in known:
            inside.setdefault(row.host, []).append(row)
    hosts = {
        name: divide(
            known[name].exact,
            known[name].amount,
            [Claim(name=r.row_id, weight=r.weight) for r in instances],
            whole=(capacity or {}).get(name),
        )
        for name, instances in inside.items()
    }
    total = sum((r.exact for r in rows if r.host not in known), Decimal(0))
    findings = [f for d in hosts.values() for f in d.findings]
    double = [r for r in rows if r.host in known and r.exact]
    if double:
        text = f"{counted(len(double), 'instance')} on dedicated hosts stated an amount of its host again"
        mend = "nothing; instances are shares of their host"
        findings.append(Finding(code="CL475", severity="info", message=text, mend=mend))
    return CountedOnce(total=total, hosts=hosts, findings=tuple(findings))
