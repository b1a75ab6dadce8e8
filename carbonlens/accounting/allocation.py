"""Allocation: shared devices given to the runs that used them, no joule billed twice.

A run's reading of a device is the whole device's energy in its window. Where the
windows of several runs overlap on one ``(host_id, device)``, the device's own
energy is divided among them (see ``allocation_sweep``); shares and what is left
over sum to it exactly. Runs inside another run are divided inside their parent's
part and are never added to it. docs/adr/0007-shared-devices.md explains why.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from decimal import Context, Decimal, localcontext
from typing import Final, NamedTuple

import msgspec
from msgspec.structs import replace

from carbonlens.accounting import allocation_findings as findings
from carbonlens.accounting.allocation_bounds import exact
from carbonlens.accounting.allocation_claims import WHOLES, Device, Entry, entries
from carbonlens.accounting.allocation_contents import (
    Evidence,
    Held,
    Item,
    Parts,
    Wholes,
    boundaries_of,
    holds_any,
    one_each,
    together,
    work_alone,
)
from carbonlens.accounting.allocation_machines import one_machine, one_meter_each, one_name_each
from carbonlens.accounting.allocation_scaling import evidence_of, scaled
from carbonlens.accounting.allocation_share import Share
from carbonlens.accounting.allocation_sweep import Basis, Divided, Portion, divide
from carbonlens.domain.finding import Finding
from carbonlens.domain.run import Reading, Run

_EXACT: Final = Context(prec=50)
_ZERO: Final = Decimal(0)
_NO_EVIDENCE: Final = Evidence(0.0, {}, None)


class RunBill(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """What one run is billed.

    Attributes:
        root: Whether it counts in totals; other runs are inside their parent.
        readings: The run's readings with their billed energy; widths scale with
            it, and the error of dividing is not in them (it cancels in a total).
        shares: One per reading and device that could be shared.
    """

    run_id: str
    root: bool
    readings: tuple[Reading, ...]
    shares: tuple[Share, ...]


class Stretch(msgspec.Struct, frozen=True, kw_only=True):
    """A device over windows of root runs that hang together, where it was divided.

    Attributes:
        energy_j: The device's own energy; billed, unattributed and elsewhere sum to it.
        measured_j: Sum of what the runs read.
        unattributed_j: Idle, or the work of what no run recorded.
        elsewhere_j: On other lines: what devices inside this one are billed, or idle
            that lies in the energy of a device that holds this one.
        run_ids: In time order.
        held: What of ``elsewhere_j`` is billed as that of devices inside.
    """

    device: Device
    start_us: int
    end_us: int
    energy_j: Decimal
    measured_j: Decimal
    unattributed_j: Decimal
    basis: Basis
    run_ids: tuple[str, ...]
    elsewhere_j: Decimal = _ZERO
    held: Held | None = None


class Allocation(msgspec.Struct, frozen=True, kw_only=True):
    """What every run is billed, and what devices drew besides."""

    bills: Mapping[str, RunBill]
    stretches: tuple[Stretch, ...]
    findings: tuple[Finding, ...]


class _Level(NamedTuple):
    """What dividing the devices of one level gave: shares by run, stretches, and what is not resolved."""

    shares: dict[str, list[Share]]
    stretches: list[Stretch]
    unresolved: list[tuple[str, list[str]]]
    repeated: list[tuple[Device, str]]
    """Wholes that a run read by another meter too, and the run."""


def allocate(runs: Sequence[Run]) -> Allocation:
    """Return what each run is billed of the devices that it shared with others.

    Args:
        runs: Current records (none superseded), in any order; a run_id that
            stands twice counts once. Runs without host or times, readings of
            the work alone (no device) and divided ones are billed as measured.
    """
    known = {r.run_id: r for r in reversed(runs)}
    bills: dict[str, RunBill] = {}
    stretches: list[Stretch] = []
    unresolved: list[tuple[str, list[str]]] = []
    repeated: list[tuple[Device, str]] = []
    machines = one_machine(known.values())
    with localcontext(_EXACT):
        for parent, level in _levels(known):
            found = _divide_level(level, bills.get(parent or ""), machines)
            repeated += found.repeated
            if parent is None:
                stretches, unresolved = found.stretches, found.unresolved
            for run in level:
                bills[run.run_id] = _bill(run, found.shares.get(run.run_id, []), root=parent is None)
    stretches.sort(key=lambda s: (s.device, s.start_us))
    return Allocation(
        bills={i: bills[i] for i in known if i in bills},
        stretches=tuple(stretches),
        findings=(
            *_excesses(stretches),
            *_inside(stretches),
            *(findings.whole_beside_parts(host, ids) for host, ids in unresolved),
            *_repeats(repeated),
        ),
    )


def _levels(known: Mapping[str, Run]) -> Iterable[tuple[str | None, list[Run]]]:
    """Yield the roots, then the children of each run, parents first."""
    children: dict[str, list[Run]] = {}
    roots: list[Run] = []
    for run in known.values():
        inside = run.parent_run_id is not None and run.parent_run_id in known
        (children.setdefault(run.parent_run_id or "", []) if inside else roots).append(run)
    reached = _below(roots, children)
    # Records that name each other as parents are damaged; each then stands for itself.
    circling = [r for i, r in known.items() if i not in reached]
    yield None, [*roots, *circling]
    for run_id in reached:
        if run_id in children:
            yield run_id, children[run_id]


def _below(roots: Iterable[Run], children: Mapping[str, list[Run]]) -> dict[str, None]:
    order = [r.run_id for r in roots]
    for run_id in order:  # grows while it is walked
        order += [r.run_id for r in children.get(run_id, ())]
    return dict.fromkeys(order)


def _divide_level(level: Sequence[Run], parent: RunBill | None, machines: Mapping[str, str]) -> _Level:
    """Divide the devices of runs of one parent."""
    by_host: dict[str, list[Entry]] = {}
    for run in level:
        host = machines.get(run.host_id or "", run.host_id or "")
        for entry in entries(run, host):
            by_host.setdefault(host, []).append(entry)
    found = _Level({}, [], [], [])
    for host in sorted(by_host):
        _divide_host(by_host[host], parent, found)
    return found


def _divide_host(mine: Sequence[Entry], parent: RunBill | None, found: _Level) -> None:
    """Divide the devices of one host, those that lie inside others first."""
    mine, others = one_meter_each(mine)
    mine = one_name_each(mine)
    wholes = Wholes(mine) if holds_any(mine) else None
    parts = Parts(mine, lambda entry: evidence_of(entry.run.energy[entry.reading], 1.0))
    by_device: dict[Device, list[Entry]] = {}
    for entry in mine:
        if entry.device is not None:
            by_device.setdefault(entry.device, []).append(entry)
        elif wholes is not None:
            reading = entry.run.energy[entry.reading]
            wholes.add(work_alone(entry, evidence_of(reading, 1.0)))
    for device in sorted(
        by_device, key=lambda d: (d.component in WHOLES and WHOLES.index(d.component) + 1, d)
    ):
        claims = one_each(by_device[device])
        inside = (wholes.contents(device) if wholes is not None else None) or parts.contents(device)
        course, held_of = inside or (None, None)
        for part in divide([e.claim for e in claims.values()], course, traced=wholes is not None):
            held = held_of(*_span(part), part.energy_j) if held_of is not None else None
            shares = _shares(device, claims, part, held)
            moved = _ZERO
            if wholes is not None:
                moved = min(exact(wholes.idle_inside(device, part.idle)), part.unattributed_j)
                wholes.add(_item(device, part, [claims[c.run_id] for c in part.claims], shares))
            if len(part.claims) > 1 or part.unattributed_j or part.held_j:
                found.stretches.append(_stretch(device, part, moved, held))
            for claim, share in zip(part.claims, shares, strict=True):
                found.shares.setdefault(claim.run_id, []).append(_within(share, parent))
    if wholes is not None and wholes.unresolved:
        found.unresolved.append((mine[0].run.host_id or "", list(wholes.unresolved)))
    for entry in others:
        if entry.device is not None:
            found.shares.setdefault(entry.run.run_id, []).append(_nothing_of(entry.device, entry))
            found.repeated.append((entry.device, entry.run.run_id))


def _span(part: Divided) -> tuple[int, int]:
    return part.claims[0].start_us, max(c.end_us for c in part.claims)


def _shares(device: Device, claims: Mapping[str, Entry], part: Divided, held: Held | None) -> list[Share]:
    """Return the runs' shares of one stretch; what devices inside it hold goes by what is left to each."""
    left = part.energy_j - part.held_j
    read = sum((c.energy_j for c in part.claims), _ZERO)
    made = []
    for claim, portion in zip(part.claims, part.portions, strict=True):
        entry = claims[claim.run_id]
        mine = None
        if held is not None and part.held_j:
            weight = portion.billed_j / left if left else (claim.energy_j / read if read else _ZERO)
            mine = held._replace(
                joules=part.held_j * weight,
                evidence=held.evidence.scaled(float(weight)),
                where_j=held.where_j * float(weight),
            )
        made.append(_share(device, entry, portion, mine))
    return made


def _item(device: Device, part: Divided, mine: Sequence[Entry], shares: Sequence[Share]) -> Item:
    """Return what is billed of a device in one stretch, for the devices that hold it."""
    return Item(
        component=device.component,
        device=device,
        boundaries=boundaries_of(mine),
        run_ids=frozenset(c.run_id for c in part.claims),
        pieces=tuple(p for p in part.billed if p[2] > 0),
        evidence=together(_evidence(e.run.energy[e.reading], s) for e, s in zip(mine, shares, strict=True)),
    )


def _evidence(reading: Reading, share: Share) -> Evidence:
    return evidence_of(scaled(reading, [share], share.billed_j), 1.0) if share.billed_j else _NO_EVIDENCE


def _share(device: Device, entry: Entry, portion: Portion, held: Held | None) -> Share:
    return Share(
        device=device,
        reading=entry.reading,
        measured_j=entry.claim.energy_j,
        billed_j=portion.billed_j,
        split_j=portion.billed_j - portion.alone_j,
        guessed_j=portion.guessed_j,
        basis=portion.basis,
        named=entry.named,
        held=held,
    )


def _nothing_of(device: Device, entry: Entry) -> Share:
    """Return the share of a reading whose joules another reading of its run holds."""
    nothing = Portion(billed_j=_ZERO, alone_j=_ZERO, guessed_j=_ZERO, basis="whole")
    return _share(device, entry, nothing, None)


def _within(share: Share, parent: RunBill | None) -> Share:
    """Return the share of a run inside another: its parent's part of the device is all there is."""
    above = None if parent is None else next((s for s in parent.shares if s.device == share.device), None)
    if above is None or above.billed_j == above.measured_j or not above.measured_j:
        return share
    kept = above.billed_j / above.measured_j
    split, guessed = (
        (above.split_j / above.billed_j, above.guessed_j / above.billed_j)
        if above.billed_j
        else (Decimal(0), Decimal(0))
    )
    billed = exact(share.billed_j * kept)
    alone = (share.billed_j - share.split_j) * kept * (1 - split)
    return replace(
        share,
        billed_j=billed,
        split_j=billed - min(exact(alone), billed),
        guessed_j=min(exact(share.guessed_j * kept + billed * guessed), billed),
        held=None if share.held is None else share.held._replace(joules=share.held.joules * kept),
        basis=above.basis if share.basis == "whole" else share.basis,
    )


def _stretch(device: Device, part: Divided, moved: Decimal, held: Held | None) -> Stretch:
    bases = [p.basis for p in part.portions]
    return Stretch(
        device=device,
        start_us=part.claims[0].start_us,
        end_us=max(c.end_us for c in part.claims),
        energy_j=part.energy_j,
        measured_j=sum((c.energy_j for c in part.claims), Decimal(0)),
        unattributed_j=part.unattributed_j - moved,
        elsewhere_j=part.held_j + moved,
        held=held if part.held_j else None,
        # The weakest ground that any part of it rests on.
        basis=next((b for b in findings.WEAKEST_FIRST if b in bases), "whole"),
        run_ids=tuple(c.run_id for c in part.claims),
    )


def _bill(run: Run, shares: Sequence[Share], *, root: bool) -> RunBill:
    readings = list(run.energy)
    moved = dict.fromkeys(s.reading for s in shares if s.billed_j != s.measured_j)
    for place in moved:
        mine = [s for s in shares if s.reading == place]
        readings[place] = scaled(readings[place], mine, sum((s.billed_j for s in mine), _ZERO))
    return RunBill(run_id=run.run_id, root=root, readings=tuple(readings), shares=tuple(shares))


def _excesses(stretches: Sequence[Stretch]) -> list[Finding]:
    """Say once a device which runs read more of it than it drew."""
    grouped: dict[Device, list[Stretch]] = {}
    for stretch in stretches:
        if stretch.measured_j > stretch.energy_j:
            grouped.setdefault(stretch.device, []).append(stretch)
    return [
        findings.billed_once(
            where=f"{device.component} {device.device} of host {device.host_id}",
            run_ids=[i for s in mine for i in s.run_ids],
            measured_j=sum(s.measured_j for s in mine),
            energy_j=sum(s.energy_j for s in mine),
            basis=next((b for b in findings.WEAKEST_FIRST if any(s.basis == b for s in mine)), "whole"),
        )
        for device, mine in grouped.items()
    ]


def _repeats(repeated: Sequence[tuple[Device, str]]) -> list[Finding]:
    """Say once a whole of which runs hold the readings of several meters."""
    grouped: dict[Device, list[str]] = {}
    for device, run_id in repeated:
        grouped.setdefault(device, []).append(run_id)
    return [findings.one_meter(d.component, d.device, d.host_id, ids) for d, ids in grouped.items()]


def _inside(stretches: Sequence[Stretch]) -> list[Finding]:
    """Say once a device that what it holds is billed to the runs that read that."""
    grouped: dict[Device, list[tuple[Stretch, Held]]] = {}
    for stretch in stretches:
        if stretch.held is not None:
            grouped.setdefault(stretch.device, []).append((stretch, stretch.held))
    return [
        findings.parts_of_a_whole(
            component=device.component,
            host=device.host_id,
            wholes=[i for s, _ in found for i in s.run_ids],
            parts=[i for _, held in found for i in held.run_ids],
            held_j=sum((held.joules for _, held in found), _ZERO),
            excess_j=sum((held.excess_j for _, held in found), _ZERO),
            sure=all(held.sure for _, held in found),
        )
        for device, found in grouped.items()
    ]
