"""Recovery: seal the journals of processes that ended without doing so.

A journal is claimed by renaming it, which only one process can do; the claim's
name tells who holds it, so that the claim of a process that died is claimed anew.
Journals whose writer this process cannot judge (another host, boot or container,
by way of a shared home directory) are left alone; those of an earlier boot of
this machine, or of another container on it, once they have been silent for long.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

import msgspec

from carbonlens.domain.run import Run
from carbonlens.domain.units import US_PER_S
from carbonlens.metering import findings
from carbonlens.metering.deposit import Deposit, deposit, fallback_ledger, is_recorded
from carbonlens.metering.host import place_of_pids, process_start_ticks, this_host
from carbonlens.metering.journal import (
    SUFFIX,
    VERSION,
    Header,
    Journal,
    Writer,
    is_of_another_version,
    read,
    read_header,
)
from carbonlens.metering.phase_energy import replayed, with_phases
from carbonlens.metering.records import sealed_run
from carbonlens.metering.sealing import Sealed, seal
from carbonlens.metering.session import journal_folder
from carbonlens.metering.threads import start_beside

WAIT_S: Final = 0.04
"""Longest the end of a block or command waits for ``recover_beside``; law 8 allows 50 ms."""

BESIDE_BYTES: Final = 8 * 2**20
"""Journals up to this size, a day of readings once a second, are read beside a user's work."""

SILENT_S: Final = 900.0
"""A journal is written every 30 s at least: one this old has no writer any more."""

_CLAIM: Final = ".claim-"
_CLAIM_PARTS: Final = 4
"""Its pid and start, where that pid means it, and when it claimed (Unix seconds)."""

_DAMAGED: Final = "damaged"
_LATEST_US: Final = 4_102_444_800 * US_PER_S
"""2100-01-01: a time beyond it, or a window that ends there, is no measurement."""


class Running(msgspec.Struct, frozen=True, kw_only=True):
    """A run whose process lives, or may: what was known at its start, and where it will go.

    Attributes:
        elsewhere: Whether it is of another machine, so that nobody here can tell if its
            process lives.
    """

    run: Run
    ledger: Path
    elsewhere: bool = False


class Recovery(msgspec.Struct, frozen=True, kw_only=True):
    """What a recovery found.

    Attributes:
        recovered: Runs that were sealed, and where they lie.
        running: Runs whose process lives.
        damaged: Journals that cannot be turned into a run, moved aside.
        foreign: Journals of another version, left to the carbonlens that wrote them.
    """

    recovered: tuple[Deposit, ...] = ()
    running: tuple[Running, ...] = ()
    damaged: tuple[Path, ...] = ()
    foreign: tuple[Path, ...] = ()


def recover(folder: Path | None = None, *, most_bytes: int | None = None) -> Recovery:
    """Seal every journal whose writer is gone.

    Safe to call from several processes at once. A journal that cannot be read or
    stored now stays for the next time; one that never can is moved aside; one of
    another version is left to the carbonlens that wrote it. Whoever seals one takes the
    sensors as the journal describes them: the figure is the same.

    Args:
        folder: Folder of the journals; this user's on this host by default.
        most_bytes: Longer journals stay for another time; none does when ``None``.
    """
    recovered: list[Deposit] = []
    running: list[Running] = []
    damaged: list[Path] = []
    foreign: list[Path] = []
    for path in _journals(folder, most_bytes):
        try:
            header = read_header(path)
            if header is None and is_of_another_version(path):
                foreign.append(path)
            elif header is None:
                damaged += _set_aside(path)
            elif header.version != VERSION:
                foreign.append(path)
            elif _is_orphan(header.writer, path):
                sealed = _seal(path)
                recovered += [s for s in sealed if isinstance(s, Deposit)]
                damaged += [s for s in sealed if isinstance(s, Path)]
            else:
                elsewhere = header.writer.machine != this_host().machine
                running.append(Running(run=header.run, ledger=Path(header.ledger), elsewhere=elsewhere))
        except OSError:
            # Another process took it, or it cannot be read now.
            continue
    return Recovery(
        recovered=tuple(recovered), running=tuple(running), damaged=tuple(damaged), foreign=tuple(foreign)
    )


def recover_beside(folder: Path | None = None) -> threading.Thread | None:
    """Recover in a thread beside the user's work; ``None`` when there is nothing to look at.

    What the thread has not finished when the process ends stays for the next time, and a
    journal too long to be read beside work that is measured stays for ``runs``.

    Args:
        folder: Folder of the journals; this user's on this host by default.
    """
    if next(_journals(folder, BESIDE_BYTES), None) is None:
        return None
    return start_beside(lambda: recover(folder, most_bytes=BESIDE_BYTES), "carbonlens-recovery")


def _journals(folder: Path | None, most_bytes: int | None = None) -> Iterator[Path]:
    try:
        entries = sorted(os.scandir(folder or journal_folder()), key=lambda e: e.name)
    except OSError:
        return
    for entry in entries:
        # A pipe of that name would hold its reader for ever.
        if entry.name.startswith(".") or not entry.is_file(follow_symlinks=False):
            continue
        if most_bytes is not None and not _is_within(entry, most_bytes):
            continue
        if entry.name.endswith(SUFFIX) or (_CLAIM in entry.name and _claimer_is_gone(entry.name)):
            yield Path(entry.path)


def _is_within(entry: os.DirEntry[str], most_bytes: int) -> bool:
    try:
        return entry.stat(follow_symlinks=False).st_size <= most_bytes
    except OSError:
        return False


def _is_orphan(writer: Writer, path: Path) -> bool:
    """Tell whether a journal's writer is known to be gone."""
    host = this_host()
    if writer.machine != host.machine:
        return False
    same_pids = (writer.host_id, writer.pid_namespace) == (host.host_id, host.pid_namespace)
    if same_pids and writer.start_ticks is not None:
        return process_start_ticks(writer.pid) != writer.start_ticks
    return time.time() - path.stat().st_mtime > SILENT_S


def _seal(path: Path) -> list[Deposit | Path]:
    """Store the run of a journal, or move aside the journal that holds none."""
    claimed = _claim(path)
    try:
        journal = read(claimed)
        if journal.header is None or not _is_plausible(journal.header, journal):
            return [_move_aside(claimed)]
        return _store(claimed, journal.header, journal)
    except (ArithmeticError, LookupError, TypeError, ValueError):
        # A value that no writer of ours would write: it will not be better next time.
        return [_move_aside(claimed)]
    except OSError:
        # Given back: the claim of this process would keep the others off.
        with suppress(OSError):
            claimed.rename(claimed.with_name(_plain(claimed.name)))
        raise


def _is_plausible(header: Header, journal: Journal) -> bool:
    start_us = header.run.start_us or 0
    times = [sample.t_us for sample in journal.samples]
    return 0 <= start_us <= _LATEST_US and all(0 <= t <= _LATEST_US - start_us for t in times)


def _store(claimed: Path, header: Header, journal: Journal) -> list[Deposit | Path]:
    ledger = Path(header.ledger)
    if any(is_recorded(header.run.run_id, place) for place in (ledger, fallback_ledger())):
        # Its process was killed between storing the run and removing the journal.
        claimed.unlink(missing_ok=True)
        return []
    run = recovered_run(header, journal)
    if header.trace is not None:
        from carbonlens.metering.trace_sealing import with_trace  # most runs have none

        sealed = _sealed(header, journal)
        run = with_trace(run, header.trace, claimed, header.sensors, sealed, may_replace=False)
    stored = deposit(run, ledger)
    if stored.unstorable:
        return [_move_aside(claimed)]
    if stored.ledger is None:
        claimed.rename(claimed.with_name(_plain(claimed.name)))
        return []
    claimed.unlink(missing_ok=True)
    return [stored]


def recovered_run(header: Header, journal: Journal) -> Run:
    """Return the run a journal holds, up to its last sample.

    How long its process went on after that nobody knows: the energy is a lower
    bound, coverage and lost seconds are unknown.

    Args:
        header: The journal's header.
        journal: Its samples.
    """
    window_us = _window_us(journal)
    sealed = _sealed(header, journal)
    notes = [findings.recovered(window_us / 1e6)]
    if journal.damaged:
        notes.append(findings.journal_damaged(journal.damaged))
    run = sealed_run(header.run, journal.facts, sealed, window_us, "recovered", notes)
    if any(journal.marks):
        stretches = replayed(header.sensors, journal.samples, journal.marks)
        stretches.finish(window_us, journal.facts.units)
        said = [mark.findings for mark in journal.marks if mark is not None and mark.findings]
        run = with_phases(run, stretches, sealed, said[-1] if said else (), was_killed=True)
    if run.conditions is not None and journal.devices:
        conditions = msgspec.structs.replace(run.conditions, devices=journal.devices)
        run = msgspec.structs.replace(run, conditions=conditions)
    energy = tuple(
        msgspec.structs.replace(r, state="unbounded") if r.state == "known" else r for r in run.energy
    )
    return msgspec.structs.replace(run, energy=energy, coverage=None, lost_s=None)


def _window_us(journal: Journal) -> int:
    return journal.samples[-1].t_us if journal.samples else 0


def _sealed(header: Header, journal: Journal) -> Sealed:
    return seal(
        header.sensors,
        journal.samples,
        start_us=header.run.start_us or 0,
        window_us=_window_us(journal),
        unmeasured=header.unmeasured,
        hardware=header.run.hardware,
    )


def _claim(path: Path) -> Path:
    """Take a journal for this process.

    Raises:
        FileNotFoundError: If another process was quicker.
    """
    pid = os.getpid()
    claim = f"{_CLAIM}{pid}-{process_start_ticks(pid)}-{place_of_pids()}-{int(time.time())}"
    claimed = path.with_name(_plain(path.name) + claim)
    path.rename(claimed)
    return claimed


def _plain(name: str) -> str:
    return name.partition(_CLAIM)[0]


def _claimer_is_gone(name: str) -> bool:
    """Tell whether who claimed a journal has ended, or may be taken to have.

    Of another boot or container nobody here can tell. To seal takes seconds: a claim
    made there ``SILENT_S`` ago is nobody's any more.
    """
    parts = name.partition(_CLAIM)[2].split("-")
    if len(parts) != _CLAIM_PARTS or not (parts[0].isdecimal() and parts[3].isdecimal()):
        return False
    pid, ticks, place, since_s = parts
    if place != place_of_pids():
        return time.time() - int(since_s) > SILENT_S
    return str(process_start_ticks(int(pid))) != ticks


def _set_aside(path: Path) -> list[Path]:
    """Move a journal without a header away, once nobody can be writing it any more."""
    if time.time() - path.stat().st_mtime <= SILENT_S:
        return []
    return [_move_aside(path)]


def _move_aside(path: Path) -> Path:
    aside = path.parent / _DAMAGED
    aside.mkdir(exist_ok=True, mode=0o700)
    return path.rename(aside / _plain(path.name))
