"""Allocation: shared devices given to the runs that used them, no joule billed twice.

A run's reading of a device is the whole device's energy in its window. Where the
windows of several runs overlap on one ``(host_id, device)``, the device's own
energy is divided among them (see ``allocation_sweep``); shares and what is left
over sum to it exactly. Runs inside another run are divided inside their parent's
part and are never added to it. docs/adr/0007-shared-devices.md explains why.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Mapping, Sequence
from decimal import Context, Decimal, localcontext
from typing import Final, NamedTuple

import msgspec
from msgspec.structs import replace

from carbonlens.accounting import allocation_findings as findings
from carbonlens.accounting.allocation_bounds import MICROJOULE, apportion, exact
from carbonlens.accounting.allocation_sweep import Basis, Claim, Divided, Portion, divide
from carbonlens.domain.finding import Finding
from carbonlens.domain.run import Reading, Run
from carbonlens.domain.units import US_PER_S

_EXACT: Final = Context(prec=50)
_WHOLES: Final = frozenset({"wall", "total"})
"""Components that hold the others; without a named device they are the host's own."""
_LARGEST: Final = Decimal(10) ** 18
_LEAST_COVERAGE: Final = 0.01
_BY_CPU_TIME: Final = frozenset({"cpu", "ram"})


class Device(NamedTuple):
    """A device of one host, as far as readings tell devices apart."""

    host_id: str
    component: str
    device: str


class Share(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """What one run is billed of one device it read.

    Attributes:
        reading: Place of the reading in ``Run.energy``.
        measured_j: What the run read of the device.
        billed_j: Its part of the device's own energy.
        split_j: Part of ``billed_j`` that rests on dividing the device.
        guessed_j: Part of ``billed_j`` divided in equal parts between runs of
            different steps: nothing measured tells them apart.
        basis: What divided the device.
        named: Whether the reading names the device; a stated total may not.
    """

    device: Device
    reading: int
    measured_j: Decimal
    billed_j: Decimal
    split_j: Decimal
    guessed_j: Decimal
    basis: Basis
    named: bool


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
        energy_j: The device's own energy; billed and unattributed sum to it.
        measured_j: Sum of what the runs read.
        unattributed_j: Idle, or the work of what no run recorded.
        run_ids: In time order.
    """

    device: Device
    start_us: int
    end_us: int
    energy_j: Decimal
    measured_j: Decimal
    unattributed_j: Decimal
    basis: Basis
    run_ids: tuple[str, ...]


class Allocation(msgspec.Struct, frozen=True, kw_only=True):
    """What every run is billed, and what devices drew besides."""

    bills: Mapping[str, RunBill]
    stretches: tuple[Stretch, ...]
    findings: tuple[Finding, ...]


class _Entry(NamedTuple):
    """A claim with where it came from."""

    run: Run
    reading: int
    named: bool
    claim: Claim


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
    with localcontext(_EXACT):
        for parent, level in _levels(known):
            shares = _divide_level(level, bills.get(parent or ""), stretches if parent is None else None)
            for run in level:
                bills[run.run_id] = _bill(run, shares.get(run.run_id, []), root=parent is None)
    stretches.sort(key=lambda s: (s.device, s.start_us))
    roots = [known[i] for i, bill in bills.items() if bill.root]
    return Allocation(
        bills={i: bills[i] for i in known if i in bills},
        stretches=tuple(stretches),
        findings=(*_excesses(stretches), *findings.whole_beside_parts(roots)),
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


def _divide_level(
    level: Sequence[Run], parent: RunBill | None, stretches: list[Stretch] | None
) -> dict[str, list[Share]]:
    """Divide the devices of runs of one parent; root stretches are kept in ``stretches``."""
    by_device: dict[Device, list[_Entry]] = {}
    for run in level:
        for device, entry in _entries(run):
            by_device.setdefault(device, []).append(entry)
    shares: dict[str, list[Share]] = {}
    for device in sorted(by_device):
        # One claim a run: of two readings of one device the first is the device's.
        entries: dict[str, _Entry] = {}
        for entry in by_device[device]:
            entries.setdefault(entry.run.run_id, entry)
        for part in divide([e.claim for e in entries.values()]):
            if stretches is not None and (len(part.claims) > 1 or part.unattributed_j):
                stretches.append(_stretch(device, part))
            for claim, portion in zip(part.claims, part.portions, strict=True):
                share = _share(device, entries[claim.run_id], portion)
                shares.setdefault(claim.run_id, []).append(_within(share, parent))
    return shares


def _entries(run: Run) -> Iterable[tuple[Device, _Entry]]:
    """Yield a claim per device that the run read whole."""
    start, end, host = run.start_us, run.end_us, run.host_id
    if host is None or start is None or end is None or end <= start:
        return
    for place, reading in enumerate(run.energy):
        devices = tuple(dict.fromkeys(reading.devices))
        named = bool(devices) or reading.component == "wall"
        if not devices and reading.component in _WHOLES:
            devices = (reading.component,)
        energy = reading.energy_j
        if energy is None or reading.divided or not devices or not _is_storable(energy):
            continue
        hours = run.energy_by_hour
        # A reading of several devices does not tell them apart: equal parts.
        parts = [energy] if len(devices) == 1 else apportion([energy / len(devices)] * len(devices), energy)
        for device, part in zip(devices, parts, strict=True):
            claim = Claim(
                run_id=run.run_id,
                start_us=start,
                end_us=end,
                energy_j=part,
                hours=tuple((h.hour_utc, h.energy_j) for h in hours if h.component == reading.component)
                if len(hours) > 1
                else (),
                coverage=_coverage(run, reading),
                share=_own_share(run, reading),
                cpu_per_us=_cpu_per_us(run, reading),
                job=run.job_id if run.rank is not None else None,
                label=_label(run),
            )
            yield Device(host, reading.component, device), _Entry(run, place, named, claim)


def _is_storable(energy: Decimal) -> bool:
    """Whether the joules are a number that a ledger can hold; damaged ones are left as they are."""
    return energy.is_finite() and 0 <= energy < _LARGEST


def _coverage(run: Run, reading: Reading) -> Decimal:
    window_s = ((run.end_us or 0) - (run.start_us or 0)) / US_PER_S
    covered_s = window_s if reading.covered_s is None else reading.covered_s
    # A reading of nearly nothing keeps some weight: there may be no other.
    return Decimal(min(max(covered_s / window_s, _LEAST_COVERAGE), 1.0))


def _own_share(run: Run, reading: Reading) -> Decimal | None:
    share = reading.own_share
    if share is not None and math.isfinite(share):
        return Decimal(str(min(max(share, 0.0), 1.0)))
    # An idle run watches: it takes nothing from those that work.
    return Decimal(0) if run.role == "idle" else None


def _cpu_per_us(run: Run, reading: Reading) -> Decimal | None:
    seen = run.conditions
    if reading.component not in _BY_CPU_TIME or seen is None or seen.cpu_s is None:
        return None
    if not (math.isfinite(seen.cpu_s) and seen.cpu_s >= 0):
        return None
    return Decimal(str(seen.cpu_s)) / ((run.end_us or 0) - (run.start_us or 0))


def _label(run: Run) -> Hashable:
    if run.study is not None:
        return run.study, run.step if run.step is not None else run.on
    return ("job", run.job_id) if run.job_id is not None and run.rank is not None else ("run", run.run_id)


def _share(device: Device, entry: _Entry, portion: Portion) -> Share:
    return Share(
        device=device,
        reading=entry.reading,
        measured_j=entry.claim.energy_j,
        billed_j=portion.billed_j,
        split_j=portion.billed_j - portion.alone_j,
        guessed_j=portion.guessed_j,
        basis=portion.basis,
        named=entry.named,
    )


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
        basis=above.basis if share.basis == "whole" else share.basis,
    )


def _stretch(device: Device, part: Divided) -> Stretch:
    bases = [p.basis for p in part.portions]
    return Stretch(
        device=device,
        start_us=part.claims[0].start_us,
        end_us=max(c.end_us for c in part.claims),
        energy_j=part.energy_j,
        measured_j=sum((c.energy_j for c in part.claims), Decimal(0)),
        unattributed_j=part.unattributed_j,
        # The weakest ground that any part of it rests on.
        basis=next((b for b in findings.WEAKEST_FIRST if b in bases), "whole"),
        run_ids=tuple(c.run_id for c in part.claims),
    )


def _bill(run: Run, shares: Sequence[Share], *, root: bool) -> RunBill:
    readings = list(run.energy)
    moved = dict.fromkeys(s.reading for s in shares if s.billed_j != s.measured_j)
    for place in moved:
        mine = [s for s in shares if s.reading == place]
        billed = sum((s.billed_j for s in mine), Decimal(0))
        bases = [s.basis for s in mine]
        basis = next(b for b in (*findings.WEAKEST_FIRST, "whole") if b in bases)
        readings[place] = _scaled(readings[place], billed, basis)
    return RunBill(run_id=run.run_id, root=root, readings=tuple(readings), shares=tuple(shares))


def _scaled(reading: Reading, billed: Decimal, basis: Basis) -> Reading:
    """Return a reading of part of a device; ``divided``, so that it is not divided again."""
    measured = reading.energy_j or Decimal(0)
    factor = billed / measured if measured else Decimal(0)
    times = float(factor)
    return replace(
        reading,
        energy_j=billed,
        method=f"{reading.method}; {times:.1%} of a shared device ({findings.SPLIT_BY[basis]})",
        u_random_j=reading.u_random_j * times,
        u_by_source_j={name: u * times for name, u in reading.u_by_source_j.items()},
        low_j=None if reading.low_j is None else reading.low_j * times,
        high_j=None if reading.high_j is None else reading.high_j * times,
        dynamic_j=None if reading.dynamic_j is None else (reading.dynamic_j * factor).quantize(MICROJOULE),
        divided=True,
    )


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
