"""Phases while a run is measured: what the user says, how long each took, and when to look.

A switch alone costs some microseconds. A look at the sensors is taken with it only where the
last one is long enough ago for the sensors to tell two phases apart, and where looks have
cost little so far; phases in between share the stretch from one such look to the next.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from decimal import Decimal
from types import TracebackType
from typing import Final

import msgspec

from carbonlens.domain.counting import counted
from carbonlens.domain.finding import Finding
from carbonlens.domain.units import US_PER_S
from carbonlens.metering.findings import record_ignored
from carbonlens.metering.locks import LOCK_WAIT_S, patiently
from carbonlens.metering.sensors import SensorInfo
from carbonlens.metering.wording import plain, unfit

LEAST_US: Final = 100_000
"""Two looks at switches are this far apart, at least."""

ALLOWANCE_US: Final = 50_000
"""Time that looks at switches may cost in all, beside a share of the run's age ..."""

COST_SHARE: Final = 1 / 400
"""... of a quarter of a percent."""

_BURST: Final = 600
"""Looks at switches before their number is limited to one a second (of the run's age), so
that a week's journal stays small."""

_MOST_SWITCHES: Final = 256
"""Switches that a look notes; of quicker ones nobody could see anything."""

_PENDING_US: Final = 50_000
"""The sampler looks where a switch had no look, once the phase has lasted as long as this."""

MOST_NAMES: Final = 100
_LONGEST_NAME: Final = 80


class Piece(msgspec.Struct, frozen=True, array_like=True):
    """What one phase had of a stretch; without a name, what lay in none."""

    name: str | None
    entries: int
    us: int
    units: Decimal


class Switch(msgspec.Struct, frozen=True, array_like=True):
    """From when on which phase counted; ``None`` is none."""

    t_us: int
    name: str | None


class PhaseMark(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The phases of the stretch that is open, up to a look.

    Attributes:
        since_us: Where the stretch began.
        now: The phase that goes on after the look.
        pieces: Whose lengths sum to the time from ``since_us`` to the look.
        units: All units counted in the run so far.
        ends: Whether the stretch ends here, and the next begins.
        findings: What must be said of phases by now, where that is new.
        switches: Those since the last mark, of a run whose trace is kept.
    """

    since_us: int
    now: str | None
    pieces: tuple[Piece, ...]
    units: Decimal | None = None
    ends: bool = False
    findings: tuple[Finding, ...] = ()
    switches: tuple[Switch, ...] = ()


class Level:
    """One ``with`` block, or what lies around all of them: its own phase, and one said inside."""

    __slots__ = ("own", "said")

    def __init__(self, own: str | None) -> None:
        """Begin with the block's own phase."""
        self.own = own
        self.said: str | None = None

    @property
    def name(self) -> str | None:
        """The phase that counts."""
        return self.own if self.said is None else self.said


class _Account:
    """Entries, time and units of one phase in the open stretch."""

    __slots__ = ("entries", "units", "us")

    def __init__(self) -> None:
        self.entries = 0
        self.us = 0
        self.units = Decimal(0)


class Phases:
    """The phases of one session; safe from any thread.

    Phases are the run's, not a thread's: where several threads enter some, the one entered
    last counts.

    Args:
        infos: The session's sensors; none tells phases apart that are shorter than its
            update period.
        keeps_switches: Whether marks tell when each phase began.
    """

    def __init__(self, infos: Sequence[SensorInfo] = (), *, keeps_switches: bool = False) -> None:
        """Start in no phase."""
        self._keeps_switches = keeps_switches
        self._switches: list[Switch] = []
        self._lock = threading.Lock()
        slowest_s = max((i.update_period_s for i in infos), default=0.0)
        self._least_us = max(LEAST_US, round(slowest_s * US_PER_S))
        self._cost_us = 0.0
        self._looks = 0
        self._base = Level(None)
        self._levels: list[Level] = [self._base]
        self._now: str | None = None
        self._at_us = self._since_us = self._switched_us = 0
        self._accounts: dict[str | None, _Account] = {}
        self._names: set[str] = set()
        self._units = Decimal(0)
        self._changed = False
        self._unread = 0
        self._waits = False
        self._notes: dict[str, Finding] = {}
        self._told: tuple[Finding, ...] = ()
        self.in_use = False

    def begin(self, name: object) -> Level | None:
        """Enter a phase; ``None`` where the name is none, and nothing is entered."""
        known = self._known(name)
        if known is None:
            return None
        level = Level(known)
        with patiently(self._lock):
            self._levels.append(level)
            self._account(known).entries += 1
        return level

    def end(self, level: Level) -> None:
        """Leave a phase; the one around it goes on."""
        with patiently(self._lock):
            if level not in self._levels:
                return
            if self._levels[-1] is not level:
                self._notes["overlap"] = overlapped(level.own or "")
            self._levels.remove(level)

    def say(self, name: object) -> None:
        """Go on in a phase until the next is said, or the ``with`` block around ends.

        Args:
            name: ``None`` goes back to the phase of the block around, or to none.
        """
        known = None if name is None else self._known(name)
        if name is not None and known is None:
            return
        with patiently(self._lock):
            top = self._levels[-1]
            if known is not None and top.name != known:
                self._account(known).entries += 1
            top.said = known

    @property
    def is_settled(self) -> bool:
        """Whether the phase that counts is the one that was said last."""
        return self._levels[-1].name == self._now

    def is_due(self, t_us: int) -> bool:
        """Tell whether a switch at this time is worth a look at the sensors."""
        afford = self._spare_us(t_us) >= 0 and self._looks < _BURST + t_us / US_PER_S
        return afford and t_us - self._since_us >= self._least_us

    def _spare_us(self, t_us: int) -> float:
        return ALLOWANCE_US + t_us * COST_SHARE - self._cost_us

    def wait_s(self, t_us: int) -> float:
        """Return how long a look at a switch may wait for the sensors to be free.

        One switch waits at a time, and none after one that waited in vain until a look was
        taken again: a driver that hangs costs one wait, however many switches follow.
        """
        with patiently(self._lock):
            waits, self._waits = self._waits, True
        return 0.0 if waits else min(max(self._spare_us(t_us), 0.0) / US_PER_S, LOCK_WAIT_S)

    def is_pending(self, t_us: int) -> bool:
        """Tell whether a switch had no look, and one would be worth it by now."""
        lasted = t_us - self._switched_us >= _PENDING_US
        return self._switched_us > self._since_us and lasted and self.is_due(t_us)

    @property
    def is_changed(self) -> bool:
        """Whether there is something that no look has noted yet."""
        return self._changed or not self.is_settled or self.findings() != self._told

    def looked(self, cost_us: float) -> None:
        """Take what a look at a switch cost."""
        self._looks += 1
        self._cost_us += cost_us
        self._waits = False

    def could_not_look(self, cost_us: float = 0.0) -> None:
        """Take that a switch should have had a look, and had none, and what waiting for it cost."""
        self._unread += 1
        self._cost_us += cost_us

    def settle(self, t_us: int, units: Decimal | None) -> None:
        """Have the phase that was said last count from now on.

        Args:
            t_us: Microseconds since the run's start.
            units: All that were counted so far.
        """
        with patiently(self._lock):
            self._settle(t_us, units)

    def _settle(self, t_us: int, units: Decimal | None) -> None:
        account = self._account(self._now)
        account.us += max(t_us - self._at_us, 0)
        # Threads read the count before they come by turns: a lower one is an earlier one.
        if units is not None and units is not self._units and units > self._units:
            account.units += units - self._units
            self._units = units
        self._at_us = max(t_us, self._at_us)
        name = self._levels[-1].name
        if name != self._now:
            self._now, self._switched_us, self._changed = name, self._at_us, True
            if self._keeps_switches and len(self._switches) <= _MOST_SWITCHES:
                # Beyond them nothing is said up to the mark.
                told = name if len(self._switches) < _MOST_SWITCHES else None
                self._switches.append(Switch(self._at_us, told))

    def mark(self, t_us: int, units: Decimal | None, *, ends: bool) -> PhaseMark | None:
        """Return how the open stretch stands; ``None`` where nothing is new.

        Args:
            t_us: When the look was.
            units: All that were counted so far.
            ends: Whether the stretch ends with this look.
        """
        # Of a run that has no phase it is noted why a name was none.
        if not (self.in_use or self._notes) or not (ends or self.is_changed):
            return None
        with patiently(self._lock):
            return self._marked(t_us, units, ends=ends)

    def _marked(self, t_us: int, units: Decimal | None, *, ends: bool) -> PhaseMark:
        self._settle(t_us, units)
        notes = self.findings()
        mark = PhaseMark(
            since_us=self._since_us,
            now=self._now,
            pieces=tuple(
                Piece(name, a.entries, a.us, a.units)
                for name, a in self._accounts.items()
                if a.us or a.entries or a.units
            ),
            # As the pieces have them: another thread may have counted since `units` were read.
            units=None if units is None and not self._units else self._units,
            ends=ends,
            findings=notes if notes != self._told else (),
            switches=self._told_switches(),
        )
        self._changed, self._told = False, notes
        if ends:
            self._since_us = t_us
            self._accounts = {}
        return mark

    def _told_switches(self) -> tuple[Switch, ...]:
        told, self._switches = tuple(self._switches), []
        return told if len(told) <= _MOST_SWITCHES else (*told, Switch(self._at_us, self._now))

    def _account(self, name: str | None) -> _Account:
        account = self._accounts.get(name)
        if account is None:
            account = self._accounts[name] = _Account()
        return account

    def _known(self, name: object) -> str | None:
        """Return a phase's name as a record takes it; ``None``, and a Finding, where it is none."""
        if type(name) is str and name in self._names:
            return name
        try:
            if not isinstance(name, str):
                raise TypeError
            known = " ".join(plain(name).split())[:_LONGEST_NAME]
            if not known:
                raise ValueError
        except Exception as error:  # noqa: BLE001  # law 8: whatever the user's own text does
            self._notes["name"] = record_ignored("phase", unfit(name, error, "a text"))
            return None
        if known not in self._names and len(self._names) >= MOST_NAMES:
            reason = f"there are {MOST_NAMES} phases already, and further ones count as none"
            self._notes["names"] = record_ignored("phase", reason)
            return None
        self._names.add(known)
        self.in_use = True
        return known

    def findings(self) -> tuple[Finding, ...]:
        """Return what must be said of how phases were entered and left."""
        unread = (unread_switches(self._unread),) if self._unread else ()
        return (*self._notes.values(), *unread)

    def renew_lock(self) -> None:
        """Forget who holds the lock: in a forked child its holder may not exist."""
        self._lock = threading.Lock()


class PhaseBlock:
    """What ``run.phase`` returns: a context manager that raises nothing of its own.

    Args:
        name: The phase.
        begin: Enters it, and returns what ``end`` leaves it by.
        end: Leaves it.
    """

    def __init__(
        self, name: object, begin: Callable[[object], Level | None], end: Callable[[Level], None]
    ) -> None:
        """Enter nothing yet."""
        self._name = name
        self._begin = begin
        self._end = end
        self._entered: list[Level | None] = []

    def __enter__(self) -> None:
        """Enter the phase."""
        self._entered.append(self._begin(self._name))

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Leave it; an exception goes on."""
        level = self._entered.pop() if self._entered else None
        if level is not None:
            self._end(level)


def overlapped(name: str) -> Finding:
    """Phases were not left in the order that they were entered in."""
    return Finding(
        code="CL175",
        severity="info",
        message=f"phase '{name}' was left while one that was entered later went on (threads or a "
        "generator): of phases that overlap, the one entered last has the time and the energy",
        mend="enter phases from one thread, one inside the other",
        subject="phases",
    )


def unread_switches(count: int) -> Finding:
    """The sensors could not be read at switches: what lies near is told by time."""
    return Finding(
        code="CL176",
        severity="warning",
        message=f"at {counted(count, 'switch', 'switches')} of phase the sensors could not be read in time: "
        "the energy around is shared by time, or not known",
        mend="run the work again; if it happens each time, a sensor is slow (`carbonlens doctor` tells)",
        subject="phases",
    )
