"""A session: one window over which a run is measured, journalled and sealed."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final, TypeVar

import msgspec

from carbonlens.domain.finding import Finding
from carbonlens.domain.run import Conditions, Run
from carbonlens.domain.units import US_PER_S, RunStatus
from carbonlens.ledger.location import local_state_dir
from carbonlens.metering import findings
from carbonlens.metering.clocks import wall_us
from carbonlens.metering.deposit import UNENCODABLE, Deposit, deposit, deposit_outcomes
from carbonlens.metering.devices.conditions import Fared, Surroundings
from carbonlens.metering.ending import process_ending
from carbonlens.metering.host_watch import HostFigures, HostWatch
from carbonlens.metering.journal import Header, JournalWriter, Look, this_writer
from carbonlens.metering.looking import Looking, Seen
from carbonlens.metering.phase_energy import Stretches, with_phases
from carbonlens.metering.phases import PhaseMark, Phases
from carbonlens.metering.recorder import UNTOUCHED, Recorder
from carbonlens.metering.records import one_line, sealed_run
from carbonlens.metering.sampler import process_sampler
from carbonlens.metering.sealing import Sample, Sealed, seal_tally
from carbonlens.metering.sensors import Sensor
from carbonlens.metering.sensors.discovery import Watch
from carbonlens.metering.tally import Tally
from carbonlens.metering.trace_target import TraceTarget

T = TypeVar("T")

_LOCK_WAIT_S: Final = 0.05
"""The longest the user's thread waits for the sampler to finish a look."""


class Session:
    """Measures from ``start`` to ``finish``.

    Args:
        run: What is known of the run beforehand, with status ``running``.
        watch: What to look at.
        ledger: Folder the sealed run is meant for.
        recorder: Where the user's own figures are collected.
        journal_folder: Where the journal lies; the state folder by default.
        trace: Where the readings are kept when the run is sealed.
    """

    def __init__(
        self,
        run: Run,
        watch: Watch,
        ledger: Path,
        *,
        recorder: Recorder | None = None,
        journal_folder: Path | None = None,
        trace: TraceTarget | None = None,
    ) -> None:
        """Prepare; nothing is read or written yet."""
        self.run = run
        self.recorder = recorder or Recorder()
        self._sensors = tuple(_patient(s) if s.may_block else s for s in watch.sensors)
        self._unmeasured = watch.unmeasured
        self._infos = tuple(s.info for s in watch.sensors)
        self._looking = Looking(self._sensors, self._infos, all_at_once=trace is not None)
        self._ledger = ledger
        self._journal_folder = journal_folder
        self._trace = trace
        self._pid = os.getpid()
        self._lock = threading.Lock()  # of the sensors and the samples; the journal has one of its own
        self._tally = Tally(self._infos)
        self.phases = Phases(self._infos, keeps_switches=trace is not None)
        self._stretches = Stretches(self._infos, self._tally)
        self._last_us: int | None = None
        self._host = HostWatch(of_children=watch.of_children)
        self._host_figures: HostFigures | None = None
        self.reads_power = self._looking.reads_power
        self._journal: JournalWriter | None = None
        self._journalled = UNTOUCHED
        self._journal_is_broken = False
        self._notes: list[Finding] = []
        self._open = False
        self._sensors_wait = False
        self._start_ns = 0
        self._surroundings = Surroundings(self._infos)
        self._fared = Fared()

    @property
    def is_ours(self) -> bool:
        """False in a forked child, where the session must do nothing."""
        return os.getpid() == self._pid

    @property
    def is_easy(self) -> bool:
        """Whether nothing is lost by waiting, at this age of the run."""
        return self._looking.is_easy_at(self._now_us() / US_PER_S)

    def start(self) -> None:
        """Open the journal, take the first readings, and have the sampler go on; a fault leaves nothing."""
        try:
            self._begin()
        except BaseException:
            self.drop()
            raise

    def drop(self) -> None:
        """Let go of the sensors and the journal: as if the session had not begun."""
        self._open = False
        process_sampler().remove(self)
        self._sensors_wait = True  # a look may still be under way, which then closes them when it is done
        if self._lock.acquire(timeout=_LOCK_WAIT_S):
            self._close_sensors()
            self._lock.release()
        if self._journal is not None:
            self._journal.discard()

    def _begin(self) -> None:
        self._starts_at(time.monotonic_ns())  # probing may have taken a while
        self._journal = self._open_journal()
        self._host.begin()
        self._surroundings.begin()
        self._open = True
        self._start_ns = time.monotonic_ns()
        self._look()
        self._starts_at(self._start_ns)
        process_sampler().add(self)

    def _starts_at(self, monotonic_ns: int) -> None:
        """Say by the wall clock when the window began: before its first look was written down."""
        if self.run.start_us is not None:
            self.run = msgspec.structs.replace(self.run, start_us=wall_us(monotonic_ns))

    def sample(self) -> None:
        """Look at the sensors between the edges; called by the sampler."""
        if self.is_ours and self._lock.acquire(timeout=_LOCK_WAIT_S):
            try:
                if self._open and self.phases.is_pending(self._now_us()):
                    self._look_at_switch(time.monotonic_ns())
                elif self._open:
                    self._glance()
                self._surroundings.between()
            finally:
                if self._sensors_wait:
                    self._close_sensors()
                self._lock.release()

    def sync(self) -> None:
        """Put the journal on the disk; called by the sampler."""
        journal = self._journal
        if journal is not None and self.is_ours:
            try:
                journal.sync()
            except OSError as error:
                self._journal_broke(error)

    def abandon(self) -> None:
        """Let go of the journal in a forked child, which must not write to it."""
        self._open = False
        self.recorder.renew_lock()
        self.phases.renew_lock()
        if self._journal is not None:
            self._journal.abandon()

    def note(self, finding: Finding) -> None:
        """Add a finding to the run."""
        self._notes.append(finding)

    def switch_phase(self, change: Callable[[Phases], T]) -> T | None:
        """Change the phase, with a look at the sensors where one is due.

        Args:
            change: Says what is entered or left; its value is passed on. Nothing happens
                while the run is not measured, or in a forked child.
        """
        if not (self._open and self.is_ours):
            return None
        made = change(self.phases)
        if self.phases.is_settled:
            return made
        if self.phases.is_due(self._now_us()):
            with process_ending().undisturbed():  # a signal would wait for locks that the look holds
                self._look_here()
        if not self.phases.is_settled:
            self.phases.settle(self._now_us(), self.recorder.units)
        return made

    def _look_here(self) -> None:
        """Look at a switch in the user's thread, where the sampler is not at it."""
        begin_ns = time.monotonic_ns()
        if not self._lock.acquire(timeout=self.phases.wait_s(self._now_us())):
            self.phases.could_not_look((time.monotonic_ns() - begin_ns) / 1000)
            return
        try:
            if self._open:
                self._look_at_switch(begin_ns)
        finally:
            if self._sensors_wait:
                self._close_sensors()
            self._lock.release()

    def _look_at_switch(self, begin_ns: int) -> None:
        try:
            self._look(ends=True)
        except Exception:  # noqa: BLE001  # law 8: the switch counts, and that nothing was read is said
            self.phases.could_not_look()
        self.phases.looked((time.monotonic_ns() - begin_ns) / 1000)

    def _now_us(self) -> int:
        return (time.monotonic_ns() - self._start_ns) // 1000

    def so_far(self) -> Sealed | None:
        """Return what there would be if the run ended at its last look; ``None`` before the second one.

        Nothing is read, and the session goes on as if nobody had asked: its tally is copied
        and the copy sealed, by the same rules as at the end.
        """
        window_us = self._last_us
        if not window_us or not self._open:
            return None
        return seal_tally(
            self._tally,
            start_us=self.run.start_us or 0,
            window_us=window_us,
            unmeasured=self._unmeasured,
            goes_on=True,
        )

    def finish(
        self,
        status: RunStatus = "complete",
        *,
        error: str | None = None,
        exit_code: int | None = None,
    ) -> Deposit:
        """Take the last readings, seal the run and store it.

        Args:
            status: How the work ended.
            error: What it ended with; shortened to one line.
            exit_code: Of the process, where there was one.
        """
        self.end()
        kept = False
        try:
            if self.run.status == "running":  # else a Ctrl-C cut an earlier call: one window is one record
                self.run = self._sealed_run(status, error, exit_code)
            stored = deposit(self.run, self._ledger)
            self.run = stored.run
            kept = stored.ledger is not None
        finally:
            if self._journal is not None:
                # A run that lies in no ledger keeps its journal, to be recovered later.
                (self._journal.discard if kept else self._journal.close)()
        return stored

    def end(self) -> None:
        """Take the last readings: what happens from now until ``finish`` is no part of the window."""
        if self._host_figures is not None:
            return
        locked = self._lock.acquire(timeout=_LOCK_WAIT_S)
        try:
            if self._open:
                self._surroundings.ask()
                self._look(ends=True)
                self._fared = self._surroundings.end()
            self._open = False
            self._notes += (*self._looking.said(), *self._fared.findings)
            # Where the sampler is reading them still, it closes them when it is done.
            self._sensors_wait = True
            locked = locked or self._lock.acquire(blocking=False)
            if locked:
                self._close_sensors()
        finally:
            if locked:
                self._lock.release()
        process_sampler().remove(self)
        # Before the facts, whose figures of a large model take time and memory that are not the window's.
        self._host_figures = self._host.figures()

    def _close_sensors(self) -> None:
        self._sensors_wait = False
        self._surroundings.close()
        for sensor in self._sensors:
            try:
                sensor.close()
            except Exception:  # noqa: BLE001, S112  # law 8: a driver that fails to close has given its readings
                continue

    def _look(self, *, ends: bool = False) -> None:
        """Read all sensors at an edge of the window, or where a stretch of phases ``ends``."""
        first = self._last_us is None
        seen = self._looking.edge(first=first)
        if first:
            self._start_ns = seen[1]
        self._take(seen, self._host.rss(seen[1], edge=True), ends=ends)

    def _glance(self) -> None:
        """Read what is due between the edges; where nothing is, and nothing was recorded, write nothing."""
        now_ns = time.monotonic_ns()
        seen = self._looking.between(now_ns, (now_ns - self._start_ns) / 1e9)
        rss = self._host.rss(now_ns, edge=False)
        if seen is None:
            if rss is None and self.recorder.version == self._journalled and not self.phases.is_changed:
                return
            seen = ((),) * len(self._infos), now_ns, None
        self._take(seen, rss)

    def _take(self, seen: Seen, rss: int | None, *, ends: bool = False) -> None:
        values, now_ns, skew_us = seen
        t_us = (now_ns - self._start_ns) // 1000
        if self._last_us is None or t_us > self._last_us:
            self._last_us = t_us
        sample = Sample(t_us, values, rss, skew_us)
        self._tally.take(t_us, values, skew_us or ())
        mark = self.phases.mark(t_us, self.recorder.units, ends=ends)
        self._stretches.take(sample, mark, in_use=self.phases.in_use)
        if self._journal is not None:
            self._write(self._journal, sample, mark)

    def _write(self, journal: JournalWriter, sample: Sample, mark: PhaseMark | None) -> None:
        version = self.recorder.version
        facts = self.recorder.facts() if version != self._journalled else None
        try:
            devices = self._surroundings.to_note(sample.t_us)
            journal.append(Look(sample=sample, facts=facts, phases=mark, devices=devices))
            self._journalled = version
        except (OSError, *UNENCODABLE) as error:
            self._journal_broke(error)

    def _open_journal(self) -> JournalWriter | None:
        header = Header(
            writer=this_writer(),
            ledger=str(self._ledger),
            run=self.run,
            sensors=self._infos,
            unmeasured=self._unmeasured,
            trace=self._trace,
        )
        try:
            return JournalWriter(self._journal_folder or journal_folder(), header)
        except (OSError, *UNENCODABLE) as error:
            self._journal_broke(error)
            return None

    def _journal_broke(self, error: Exception) -> None:
        self._journal_is_broken = True
        reason = error.strerror if isinstance(error, OSError) else None
        self.note(findings.no_journal(reason or type(error).__name__))
        if self._journal is not None:
            self._journal.close()

    def _traced(self, run: Run, sealed: Sealed) -> Run:
        """Keep the trace that was asked for, from the journal."""
        if self._trace is None:
            return run
        from carbonlens.metering.trace_sealing import with_trace  # most runs have none

        if self._journal is not None:
            self._journal.close()
        whole = self._journal is not None and not self._journal_is_broken
        path = self._journal.path if self._journal is not None and whole else None
        return with_trace(run, self._trace, path, self._tally.infos, sealed, may_replace=True)

    def _describe_anew(self) -> None:
        """Have the tally know how often meters told something, where nobody declared it."""
        for place, sensor in enumerate(self._sensors):
            seen_s = getattr(sensor, "seen_period_s", None)
            if seen_s is not None:
                info = msgspec.structs.replace(self._infos[place], update_period_s=seen_s)
                self._tally.describe(place, info)

    def _sealed_run(self, status: RunStatus, error: str | None, exit_code: int | None) -> Run:
        self._describe_anew()
        window_us = self._last_us or 0
        sealed = seal_tally(
            self._tally,
            start_us=self.run.start_us or 0,
            window_us=window_us,
            unmeasured=self._unmeasured,
            hardware=self.run.hardware,
        )
        host = self._host_figures or self._host.figures()
        facts = self.recorder.final_facts(lambda o: deposit_outcomes(o, self._ledger))
        run = sealed_run(self.run, facts, sealed, window_us, status, self._notes)
        self._stretches.finish(window_us, self.recorder.units)
        run = with_phases(run, self._stretches, sealed, self.phases.findings())
        conditions = msgspec.structs.replace(
            run.conditions or Conditions(wall_s=window_us / US_PER_S),
            load_1m=host.load_1m,
            steal_s=host.steal_s,
            peak_rss_bytes=host.peak_rss_bytes,
            throttled_s=self._fared.throttled_s,
            devices=self._fared.devices,
        )
        run = msgspec.structs.replace(run, conditions=conditions, error=one_line(error), exit_code=exit_code)
        return self._traced(run, sealed)


def journal_folder() -> Path:
    """Return the folder of this user's journals.

    It is on this host's own disk where that can be told. Where several hosts share it all
    the same, a journal names the host that wrote it, and the others leave it alone.

    Raises:
        OSError: If no folder can be written.
    """
    return local_state_dir() / "journal"


def _patient(sensor: Sensor) -> Sensor:
    from carbonlens.metering.patience import PatientSensor  # needs threads that most runs do without

    return PatientSensor(sensor)
