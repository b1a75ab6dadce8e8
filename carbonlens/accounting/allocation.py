"""Allocation: shared devices given to the runs that used them, no joule billed twice.

A run's reading of a device is the whole device's energy in its window. Where the
windows of several runs overlap on one ``(host_id, device)``, the device's own
energy is divided among them (see ``allocation_sweep``); shares and what is left
over sum to it exactly. What lies in another run is divided inside that one's part and is
never added to it (``allocation_nesting``). docs/adr/0007-shared-devices.md explains why.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from decimal import Context, Decimal, localcontext
from graphlib import TopologicalSorter
from typing import Final, NamedTuple

from msgspec.structs import replace

from carbonlens.accounting import allocation_findings as findings
from carbonlens.accounting.allocation_bills import (
    Allocation,
    BilledSlice,
    Stretch,
    bill_of,
    by_name,
)
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
from carbonlens.accounting.allocation_nesting import nested
from carbonlens.accounting.allocation_scaling import evidence_of, scaled
from carbonlens.accounting.allocation_share import Share
from carbonlens.accounting.allocation_slices import Slice
from carbonlens.accounting.allocation_sweep import Claim, Divided, Portion, divide
from carbonlens.domain.finding import Finding
from carbonlens.domain.run import Reading, Run

_EXACT: Final = Context(prec=50)
_ZERO: Final = Decimal(0)
_NO_EVIDENCE: Final = Evidence(0.0, {}, None)


class _Level(NamedTuple):
    """What dividing the devices of one level gave: shares by run, stretches, and what is not resolved."""

    shares: dict[str, list[Share]]
    stretches: list[Stretch]
    unresolved: list[tuple[str, list[str]]]
    repeated: list[tuple[Device, str]]
    """Wholes that a run read by another meter too, and the run."""


def allocate(
    runs: Sequence[Run], heirs: Mapping[str, str] | None = None, machines: Mapping[str, str] | None = None
) -> Allocation:
    """Return what each run is billed of the devices that it shared with others.

    Args:
        runs: Current records (none superseded), in any order; a run_id that
            stands twice counts once. Runs without host or times, readings of
            the work alone (no device) and divided ones are billed as measured.
        heirs: Ids of corrected records to that of the record which counts: a run may
            name the one as its parent. One correction is seen without.
        machines: Hosts that are one machine, as of ``one_machine``; told by the runs when ``None``.
    """
    known = {r.run_id: r for r in reversed(runs)}
    machines = one_machine(known.values()) if machines is None else machines
    repeated: list[tuple[Device, str]] = []
    with localcontext(_EXACT):
        lying = nested(known, machines, heirs or {})
        parts = _parts(known, lying.slices)
        names = {s.run.run_id: i for i, slices in parts.items() for s in slices}
        billed: dict[str, BilledSlice] = {}
        top = _Level({}, [], [], [])
        for parent, level in _levels(parts):
            above = [billed[s.run.run_id] for s in parts.get(parent or "", ())]
            found = _divide_level([s.run for s in level], above, machines)
            top = found if parent is None else top
            repeated += found.repeated
            for part in level:
                billed[part.run.run_id] = _billed(part, found.shares.get(part.run.run_id, []))
        bills = {i: bill_of(known[i], [billed[s.run.run_id] for s in parts[i]]) for i in known}
    stretches = sorted((by_name(s, names) for s in top.stretches), key=lambda s: (s.device, s.start_us))
    return Allocation(
        bills=bills,
        stretches=tuple(stretches),
        findings=(
            *_excesses(stretches),
            *_inside(stretches),
            *(findings.whole_beside_parts(h, [names[i] for i in ids]) for h, ids in top.unresolved),
            *_repeats([(device, names[i]) for device, i in repeated]),
            *([findings.clock_set_back(lying.stepped)] if lying.stepped else ()),
        ),
    )


def _parts(known: Mapping[str, Run], slices: Mapping[str, Sequence[Slice]]) -> dict[str, list[Slice]]:
    """Return the slices of each run under ids of their own; most runs are one."""
    found: dict[str, list[Slice]] = {}
    for run_id, run in known.items():
        mine = slices.get(run_id) or (Slice(run, tuple(range(len(run.energy))), ()),)
        named = [run_id] if len(mine) == 1 else _names(run_id, len(mine), known)
        found[run_id] = [
            s if s.run.run_id == name else s._replace(run=replace(s.run, run_id=name))
            for s, name in zip(mine, named, strict=True)
        ]
    return found


def _names(run_id: str, count: int, known: Mapping[str, Run]) -> list[str]:
    stem = run_id
    while any(f"{stem} (part {k})" in known for k in range(count)):
        stem += " "
    return [f"{stem} (part {k})" for k in range(count)]


def _levels(parts: Mapping[str, Sequence[Slice]]) -> Iterable[tuple[str | None, list[Slice]]]:
    """Yield what counts itself, then what lies in each run, parents first."""
    children: dict[str, list[Slice]] = {}
    roots: list[Slice] = []
    for slices in parts.values():
        for one in slices:
            mine = children.setdefault(one.inside[0], []) if one.inside else roots
            mine.append(one)
    yield None, roots
    # Only runs that hold others need an order: they are few beside those inside.
    above = {i: {s.inside[0] for s in parts.get(i, ()) if s.inside} for i in children}
    for run_id in TopologicalSorter(above).static_order():
        yield run_id, children[run_id]


def _divide_level(level: Sequence[Run], above: Sequence[BilledSlice], machines: Mapping[str, str]) -> _Level:
    """Divide the devices of runs inside one run, of which ``above`` are the slices."""
    by_host: dict[str, list[Entry]] = {}
    for run in level:
        host = machines.get(run.host_id or "", run.host_id or "")
        for entry in entries(run, host):
            by_host.setdefault(host, []).append(entry)
    found = _Level({}, [], [], [])
    for host in sorted(by_host):
        _divide_host(by_host[host], above, found)
    return found


def _divide_host(mine: Sequence[Entry], above: Sequence[BilledSlice], found: _Level) -> None:
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
                found.shares.setdefault(claim.run_id, []).append(_within(share, claim, above))
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


def _within(share: Share, claim: Claim, parent: Sequence[BilledSlice]) -> Share:
    """Return the share of a run inside another: its parent's part of the device is all there is."""
    middle = (claim.start_us + claim.end_us) // 2
    above = next(
        (
            s
            for part in sorted(parent, key=lambda p: not _goes_on(p.run, middle))
            for s in part.shares
            if s.device == share.device
        ),
        None,
    )
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


def _goes_on(run: Run, at_us: int) -> bool:
    return (run.start_us or 0) <= at_us < (run.end_us or at_us + 1)


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


def _billed(part: Slice, shares: Sequence[Share]) -> BilledSlice:
    readings = list(part.run.energy)
    moved = dict.fromkeys(s.reading for s in shares if s.billed_j != s.measured_j)
    for place in moved:
        mine = [s for s in shares if s.reading == place]
        readings[place] = scaled(readings[place], mine, sum((s.billed_j for s in mine), _ZERO))
    run = replace(part.run, energy=tuple(readings)) if moved else part.run
    return BilledSlice(run=run, places=part.places, inside=part.inside, shares=tuple(shares))


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
