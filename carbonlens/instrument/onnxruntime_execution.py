"""What the sessions of a run executed: providers registered, and from a profile what each did.

``get_providers()`` says what is registered, in order of preference, and not what ran: without
a profile a provider has neither nodes nor a share.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable, Sequence
from typing import Final
from weakref import WeakKeyDictionary

from carbonlens.domain.counting import counted
from carbonlens.domain.execution import ProviderTime
from carbonlens.domain.finding import Finding
from carbonlens.importers.ort_profile import Profile
from carbonlens.instrument import onnxruntime_findings as findings
from carbonlens.instrument.tracked import TrackedRun

ON_CPU: Final = "CPUExecutionProvider"

_NO_ACCELERATOR: Final = frozenset(
    {
        ON_CPU,
        "AzureExecutionProvider",
        "ACLExecutionProvider",
        "ArmNNExecutionProvider",
        "DnnlExecutionProvider",
        "XnnpackExecutionProvider",
    }
)
"""Providers that compute on the CPU too, and the one that only calls a service."""


class _Sessions:
    """What the sessions of one run executed: each that is open, and all closed ones as one."""

    def __init__(self) -> None:
        self.opened = 0
        self.closed: tuple[ProviderTime, ...] = ()
        self.open: dict[int, tuple[ProviderTime, ...]] = {}


class _Kept:
    """What the sessions of each run executed."""

    def __init__(self) -> None:
        self._runs: WeakKeyDictionary[TrackedRun, _Sessions] = WeakKeyDictionary()
        self.renew_lock()

    def renew_lock(self) -> None:
        """Forget who holds the lock: in a forked child its holder may not exist."""
        self._lock = threading.Lock()

    def enrol(self, run: TrackedRun) -> int:
        with self._lock:
            sessions = self._runs.setdefault(run, _Sessions())
            sessions.opened += 1
            return sessions.opened

    def keep(self, run: TrackedRun, session: int, times: tuple[ProviderTime, ...]) -> None:
        with self._lock:
            sessions = self._runs.setdefault(run, _Sessions())
            sessions.open[session] = times
            run._recorder.keep_execution(merged((sessions.closed, *sessions.open.values())))

    def close(self, run: TrackedRun, session: int) -> None:
        with self._lock:
            sessions = self._runs.setdefault(run, _Sessions())
            sessions.closed = merged((sessions.closed, sessions.open.pop(session, ())))


_kept = _Kept()
os.register_at_fork(after_in_child=_kept.renew_lock)


def enrol(run: TrackedRun) -> int:
    """Return the number, from 1, of a further session of a run."""
    return _kept.enrol(run)


def keep(run: TrackedRun, session: int, times: Iterable[ProviderTime]) -> None:
    """Keep what one session of a run executed, beside its other sessions."""
    _kept.keep(run, session, tuple(times))


def close(run: TrackedRun, session: int) -> None:
    """Keep what a session executed as a part of all that ended: it changes no more."""
    _kept.close(run, session)


def registered(providers: Iterable[str]) -> tuple[ProviderTime, ...]:
    """Return providers of which nothing is known but that they are registered."""
    return tuple(ProviderTime(provider=name) for name in providers)


def executed(profile: Profile, providers: Iterable[str]) -> tuple[ProviderTime, ...]:
    """Return what each provider did; a registered one that no node ran on did nothing."""
    if not profile.operators:
        return registered(providers)
    ran = profile.providers
    seen = {time.provider for time in ran}
    total = profile.time_s
    idle = (
        ProviderTime(provider=name, nodes=0, time_s=0.0, share=0.0 if total > 0 else None)
        for name in providers
        if name not in seen
    )
    return (*ran, *idle)


def merged(sessions: Iterable[Sequence[ProviderTime]]) -> tuple[ProviderTime, ...]:
    """Return what several sessions executed; times are known where they are for all of them."""
    known = [times for times in sessions if times]
    if len(known) == 1:
        return tuple(known[0])
    by_name: dict[str, list[ProviderTime]] = {}
    for times in known:
        for time in times:
            by_name.setdefault(time.provider, []).append(time)
    profiled = all(time.time_s is not None for times in known for time in times)
    if not profiled:
        return registered(by_name)
    seconds = {name: sum(t.time_s or 0.0 for t in mine) for name, mine in by_name.items()}
    total = sum(seconds.values())
    return tuple(
        ProviderTime(
            provider=name,
            nodes=_sum(t.nodes for t in mine),
            time_s=seconds[name],
            share=seconds[name] / total if total > 0 else None,
        )
        for name, mine in sorted(by_name.items(), key=lambda item: -seconds[item[0]])
    )


def fallback(
    profile: Profile, asked: Sequence[str], providers: Sequence[str], subject: str
) -> Finding | None:
    """Return the finding that the CPU ran a part of what was meant for an accelerator, if it did.

    Args:
        profile: What ran where.
        asked: Providers that were asked for.
        providers: Those registered.
        subject: The session.
    """
    meant = [p for p in dict.fromkeys((*asked, *providers)) if p not in _NO_ACCELERATOR]
    on_cpu = [o for o in profile.operators if o.provider == ON_CPU]
    if not meant or not on_cpu:
        return None
    total = profile.time_s
    cpu = next(t for t in profile.providers if t.provider == ON_CPU)
    by_kind: dict[str, float] = {}
    for operator in on_cpu:
        by_kind[operator.operator] = by_kind.get(operator.operator, 0.0) + operator.time_s
    shares = [(name, seconds / total if total > 0 else None) for name, seconds in by_kind.items()]
    shares.sort(key=lambda item: -(item[1] or 0.0))
    nodes = cpu.nodes, _sum(t.nodes for t in profile.providers)
    hosts = [t.provider for t in profile.providers if t.provider in findings.HOST_TIMED]
    return findings.ran_on_cpu(cpu.share, nodes, shares, meant, hosts, subject)


def unavailable(asked: Sequence[str], providers: Sequence[str], subject: str) -> Finding | None:
    """Return the finding that providers asked for are not registered, if there are such."""
    missing = [name for name in asked if name not in providers]
    return findings.not_registered(missing, providers, subject) if missing else None


def gaps(profile: Profile, calls: int, subject: str) -> list[Finding]:
    """Return findings about what a profile does not hold.

    Args:
        profile: What was read.
        calls: Calls of the session that gave a result.
        subject: The session.
    """
    held = profile.runs + profile.warm_up_runs
    notes = []
    if not profile.complete:
        notes.append("ends in the middle")
    if profile.unread:
        notes.append(f"holds {counted(profile.unread, 'event')} that cannot be read")
    if profile.is_capped:
        notes.append("reached its limit of a million events")
    if held < calls:
        notes.append(f"holds {held} of {counted(calls, 'call')}")
    return [findings.profile_incomplete(" and ".join(notes), subject)] if notes else []


def _sum(counts: Iterable[int | None]) -> int | None:
    total = 0
    for count in counts:
        if count is None:
            return None
        total += count
    return total
