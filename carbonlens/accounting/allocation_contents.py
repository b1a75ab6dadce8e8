"""Contents: devices that lie inside another one, and what is billed of them.

A ``wall`` reading holds all of its host, a ``total`` the processors and memory of its
module. Where one run is billed the whole and another a part of it, the part is billed
once, to the run that read it (docs/adr/0007-shared-devices.md, "A whole and its parts").
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from decimal import Decimal
from typing import Final, NamedTuple

from carbonlens.accounting.allocation_bounds import Piece
from carbonlens.accounting.allocation_claims import WHOLES, Device, Entry
from carbonlens.accounting.allocation_course import Course, split_by, within
from carbonlens.accounting.allocation_sweep import divide, pieces_of
from carbonlens.domain.estimate import worst_grade
from carbonlens.domain.units import Boundary, Grade

_IN_A_MODULE: Final = frozenset({"cpu", "gpu", "npu", "ram"})
_WIDTH_OF: Final[Mapping[Boundary, int]] = {"device": 0, "it": 1, "facility": 2}
_ZERO: Final = Decimal(0)


class Evidence(NamedTuple):
    """How sure an amount of energy is: one sigma each, in joules.

    Attributes:
        known: False where a part of it has no interval.
    """

    random_j: float
    by_source_j: Mapping[str, float]
    grade: Grade | None
    known: bool = True

    def scaled(self, factor: float) -> Evidence:
        """Return that of a multiple of the amount."""
        by_source = {name: u * factor for name, u in self.by_source_j.items()}
        return self._replace(random_j=self.random_j * abs(factor), by_source_j=by_source)


def together(parts: Iterable[Evidence]) -> Evidence:
    """Return the evidence of a sum: random parts in quadrature, each source linearly."""
    mine = list(parts)
    sources: dict[str, float] = {}
    for part in mine:
        for name, u in part.by_source_j.items():
            sources[name] = sources.get(name, 0.0) + u
    return Evidence(
        math.hypot(*(p.random_j for p in mine)),
        sources,
        worst_grade([p.grade for p in mine]),
        all(p.known for p in mine),
    )


class Item(NamedTuple):
    """What runs are billed of one device over one stretch, or of one run's work alone."""

    component: str
    device: Device | None
    boundaries: frozenset[Boundary | None]
    run_ids: frozenset[str]
    pieces: tuple[Piece, ...]
    evidence: Evidence

    @property
    def joules(self) -> Decimal:
        """What is billed in all."""
        return sum((j for _, _, j in self.pieces), _ZERO)


class Held(NamedTuple):
    """What of a device's energy in one stretch is billed as that of devices inside it.

    Attributes:
        joules: At most the device's own energy.
        excess_j: By how much readings that lie wholly inside exceed it: they contradict.
        evidence: Of ``joules``.
        where_j: One sigma of when runs over the stretch's edge had their energy.
        sure: Whether it is known that the devices lie inside.
        run_ids: Who is billed for it.
    """

    joules: Decimal
    excess_j: Decimal
    evidence: Evidence
    where_j: float
    sure: bool
    run_ids: tuple[str, ...]


class Wholes:
    """The devices of one host that hold others, and what lies in them.

    Args:
        entries: All readings of the host by runs of one level.
    """

    def __init__(self, entries: Sequence[Entry]) -> None:
        """Note who read what; nothing is divided yet."""
        self._entries: dict[Device, list[Entry]] = {}
        self._read_by: dict[str, set[Device]] = {}
        for entry in entries:
            if entry.device is not None:
                self._entries.setdefault(entry.device, []).append(entry)
                self._read_by.setdefault(entry.run.run_id, set()).add(entry.device)
        self._groups = {name: [d for d in self._entries if d.component == name] for name in WHOLES}
        self._items: list[Item] = []
        self._courses: dict[Device, Course] = {}
        self.unresolved: dict[str, None] = {}

    def add(self, item: Item) -> None:
        """Note what is billed of a device; those inside others come before them."""
        self._items.append(item)

    def contents(self, device: Device) -> tuple[Course, Callable[[int, int, Decimal], Held | None]] | None:
        """Return what is billed of devices inside one, and how to tell it of a stretch."""
        items: list[tuple[Item, tuple[Piece, ...]]] = []
        for item in self._items if device.component in WHOLES else ():
            if self._may_hold(device, item):
                mine = self._part(device, item.pieces)
                if self._is_wider(device, item):
                    self._note_unresolved(device, item)
                elif mine:
                    items.append((item, tuple(mine)))
        if not items:
            return None
        sure = self._is_sure(device)

        def held(start_us: int, end_us: int, joules: Decimal) -> Held | None:
            return _held(items, start_us, end_us, joules, lambda i: sure and None not in i.boundaries)

        return Course(p for _, pieces in items for p in pieces), held

    def idle_inside(self, device: Device, idle: Sequence[Piece]) -> Decimal:
        """Return how much of what nobody is billed of a device lies in others while runs read those."""
        windows = [
            (e.claim.start_us, e.claim.end_us)
            for name in WHOLES
            for whole in self._groups[name]
            if self._lies_in(whole, device.component, device, frozenset())
            for e in self._entries[whole]
            if not self._is_wider(whole, self._entries[device])
        ]
        inside = _ZERO
        for start, end in _merged(windows):
            inside += within(idle, start, end).joules
        return inside

    def _may_hold(self, whole: Device, item: Item) -> bool:
        return self._lies_in(whole, item.component, item.device, item.run_ids)

    def _lies_in(self, whole: Device, component: str, device: Device | None, run_ids: frozenset[str]) -> bool:
        """Tell whether a device lies in another.

        The readings of one run never hold the same joule: what it read beside the
        whole lies outside of it.
        """
        if component in {"wall", whole.component}:
            return False
        if whole.component == "total" and component not in _IN_A_MODULE:
            return False
        if device is None:
            return not any(whole in self._read_by.get(i, ()) for i in run_ids)
        return not any(whole in read and device in read for read in self._read_by.values())

    def _is_wider(self, whole: Device, part: Item | Sequence[Entry]) -> bool:
        """Tell whether a reading includes more than the whole does, cooling for one."""
        found = part.boundaries if isinstance(part, Item) else boundaries_of(part)
        mine = [_WIDTH_OF[b] for b in boundaries_of(self._entries[whole]) if b is not None]
        theirs = [_WIDTH_OF[b] for b in found if b is not None]
        return bool(mine and theirs) and max(theirs) > min(mine)

    def _note_unresolved(self, whole: Device, item: Item) -> None:
        claims = [e.claim for e in self._entries[whole]]
        if any(within(item.pieces, c.start_us, c.end_us).joules > 0 for c in claims):
            self.unresolved.update(dict.fromkeys(sorted(item.run_ids)))

    def _is_sure(self, whole: Device) -> bool:
        """Tell whether it is known what a device holds."""
        mine = self._entries[whole]
        return (
            len(self._groups[whole.component]) == 1
            and all(e.named for e in mine)
            and None not in boundaries_of(mine)
        )

    def _part(self, whole: Device, pieces: Sequence[Piece]) -> Sequence[Piece]:
        """Return what of pieces falls to one of several wholes side by side: by their power at the time."""
        group = self._groups[whole.component]
        if len(group) == 1:
            return pieces
        for device in group:
            if device not in self._courses:
                claims = one_each(self._entries[device])
                drawn = divide([e.claim for e in claims.values()], traced=True)
                self._courses[device] = Course(p for part in drawn for p in (*part.billed, *part.idle))
        return split_by(pieces, self._courses[whole], [self._courses[d] for d in group])


def boundaries_of(entries: Iterable[Entry]) -> frozenset[Boundary | None]:
    """Return the boundaries that readings were made at."""
    return frozenset(e.run.energy[e.reading].boundary for e in entries)


def one_each(entries: Iterable[Entry]) -> dict[str, Entry]:
    """Return one claim a run: of two readings of one device the first is the device's."""
    found: dict[str, Entry] = {}
    for entry in entries:
        found.setdefault(entry.run.run_id, entry)
    return found


class Parts:
    """Readings of a part of a device (MIG), beside runs that read the device as a whole.

    Args:
        entries: All readings of the host by runs of one level.
        evidence_of: How sure the reading of one is.
    """

    def __init__(self, entries: Iterable[Entry], evidence_of: Callable[[Entry], Evidence]) -> None:
        """Note which devices there are parts of."""
        self._items: dict[tuple[str, str], list[Item]] = {}
        for entry in entries:
            reading = entry.run.energy[entry.reading]
            if entry.device is None and reading.divided and len(reading.devices) == 1:
                item = work_alone(entry, evidence_of(entry))
                self._items.setdefault((reading.component, reading.devices[0]), []).append(item)

    def contents(self, device: Device) -> tuple[Course, Callable[[int, int, Decimal], Held | None]] | None:
        """Return what is billed of parts of a device, and how to tell it of a stretch."""
        items = [(i, i.pieces) for i in self._items.get((device.component, device.device), ()) if i.pieces]
        if not items:
            return None

        def held(start_us: int, end_us: int, joules: Decimal) -> Held | None:
            return _held(items, start_us, end_us, joules, lambda _: True)

        return Course(p for _, pieces in items for p in pieces), held


def work_alone(entry: Entry, evidence: Evidence) -> Item:
    """Return what a run is billed of a reading that is not divided."""
    reading = entry.run.energy[entry.reading]
    pieces = tuple(p for p in pieces_of(entry.claim) if p[2] > 0)
    ids = frozenset({entry.run.run_id})
    return Item(reading.component, None, frozenset({reading.boundary}), ids, pieces, evidence)


def holds_any(entries: Iterable[Entry]) -> bool:
    """Tell whether a host has a whole and anything besides, so that one may hold the other."""
    components = {e.run.energy[e.reading].component for e in entries}
    return len(components) > 1 and not components.isdisjoint(WHOLES)


def _held(
    items: Sequence[tuple[Item, Sequence[Piece]]],
    start_us: int,
    end_us: int,
    joules: Decimal,
    is_sure: Callable[[Item], bool],
) -> Held | None:
    whole = inside_j = _ZERO
    where_j: list[float] = []
    evidence: list[Evidence] = []
    sure = True
    ids: dict[str, None] = {}
    for item, pieces in items:
        found = within(pieces, start_us, end_us)
        if found.joules <= 0:
            continue
        whole += found.joules
        inside_j += found.sure_j
        where_j.append(found.u_j)
        evidence.append(item.evidence.scaled(float(found.joules / item.joules)))
        sure = sure and is_sure(item)
        ids.update(dict.fromkeys(sorted(item.run_ids)))
    if not ids:
        return None
    return Held(
        joules=min(whole, joules),
        excess_j=max(inside_j - joules, _ZERO),
        evidence=together(evidence),
        where_j=math.hypot(*where_j),
        sure=sure,
        run_ids=tuple(ids),
    )


def _merged(windows: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    found: list[tuple[int, int]] = []
    for start, end in sorted(windows):
        if found and start <= found[-1][1]:
            found[-1] = (found[-1][0], max(found[-1][1], end))
        else:
            found.append((start, end))
    return found
