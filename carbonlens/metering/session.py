"""A session: one window over which a run is measured, journalled and sealed."""

from __future__ import annotations

import os
import threading
import time
from pathlib import Path
from typing import Final, cast

import msgspec

from carbonlens.domain.finding import Finding
from carbonlens.domain.run import Conditions, Run
from carbonlens.domain.units import US_PER_S, RunStatus
from carbonlens.ledger.location import state_dir
from carbonlens.metering import findings, process_time
from carbonlens.metering.deposit import UNENCODABLE, Deposit, deposit, deposit_outcomes
from carbonlens.metering.journal import Header, JournalWriter, Look, this_writer
from carbonlens.metering.recorder import Recorder
from carbonlens.metering.records import one_line, sealed_run
from carbonlens.metering.sampler import process_sampler
from carbonlens.metering.sealing import Sample, Values, seal_tally, tallied
from carbonlens.metering.sensors import Sensor
from carbonlens.metering.sensors.discovery import Watch
from carbonlens.metering.tally import Tally

_LOCK_WAIT_S: Final = 0.05
"""The longest the user's thread waits for the sampler to finish a look."""

_RSS_REST_NS: Final = 1_000_000_000

_SKEW_US: Final = 1000
"""Sensors read further apart than this have their own times noted."""


class Session:
    """Measures from ``start`` to ``finish``.

    Args:
        run: What is known of the run beforehand, with status ``running``.
        watch: What to look at.
        ledger: Folder the sealed run is meant for.
        recorder: Where the user's own figures are collected.
        journal_folder: Where the journal lies; the state folder by default.
    """

    def __init__(
        self,
        run: Run,
        watch: Watch,
        ledger: Path,
        *,
        recorder: Recorder | None = None,
        journal_folder: Path | None = None,
    ) -> None:
        """Prepare; nothing is read or written yet."""
        self.run = run
        self.recorder = recorder or Recorder()
        self._sensors = tuple(_patient(s) if s.may_block else s for s in watch.sensors)
        order = sorted(range(len(self._sensors)), key=lambda k: hasattr(self._sensors[k], "ask"))
        self._quick_first, self._slow_first = tuple(order), tuple(reversed(order))
        self._unmeasured = watch.unmeasured
        self._of_children = watch.of_children
        self._infos = tuple(s.info for s in watch.sensors)
        self._ledger = ledger
        self._journal_folder = journal_folder
        self._pid = os.getpid()
        # Guards the sensors and the samples; the journal has a lock of its own.
        self._lock = threading.Lock()
        self._tally = Tally(self._infos)
        self._last_us: int | None = None
        self._sampled_peak: int | None = None
        self._rss_ns = 0
        self._read_ns = [0] * len(self._sensors)
        self.reads_power = any(info.unit == "W" for info in self._infos)
        self._journal: JournalWriter | None = None
        self._journalled = 0
        self._notes: list[Finding] = []
        self._open = False
        self._sensors_wait = False
        self._start_ns = 0
        self._steal_s: float | None = None
        self._peak_before = 0

    @property
    def is_ours(self) -> bool:
        """False in a forked child, where the session must do nothing."""
        return os.getpid() == self._pid

    def start(self) -> None:
        """Open the journal, take the first readings, and have the sampler go on.

        What goes wrong leaves nothing behind.
        """
        try:
            self._begin()
        except BaseException:
            self._open = False
            process_sampler().remove(self)
            self._close_sensors()
            if self._journal is not None:
                self._journal.discard()
            raise

    def _begin(self) -> None:
        # Probing may have taken a while since the record was begun.
        self._starts_now()
        self._journal = self._open_journal()
        self._steal_s = process_time.steal_s()
        self._peak_before = process_time.peak_rss_bytes(of_children=self._of_children)
        self._open = True
        self._start_ns = time.monotonic_ns()
        self._look(edge=True)
        self._starts_now()
        process_sampler().add(self)

    def _starts_now(self) -> None:
        if self.run.start_us is not None:
            self.run = msgspec.structs.replace(self.run, start_us=time.time_ns() // 1000)

    def sample(self) -> None:
        """Look at the sensors between the edges; called by the sampler."""
        if self.is_ours and self._lock.acquire(timeout=_LOCK_WAIT_S):
            try:
                if self._open:
                    self._look(edge=False)
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
        if self._journal is not None:
            self._journal.abandon()

    def note(self, finding: Finding) -> None:
        """Add a finding to the run."""
        self._notes.append(finding)

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
        locked = self._lock.acquire(timeout=_LOCK_WAIT_S)
        try:
            if self._open:
                self._look(edge=True)
            self._open = False
            self._notes += self._said_of_sensors()
            if locked:
                self._close_sensors()
            else:
                # The sampler is reading them still, and closes them when it is done.
                self._sensors_wait = True
        finally:
            if locked:
                self._lock.release()
        process_sampler().remove(self)
        kept = False
        try:
            self.run = self._sealed_run(status, error, exit_code)
            stored = deposit(self.run, self._ledger)
            self.run = stored.run
            kept = stored.ledger is not None
        finally:
            if self._journal is not None:
                # A run that lies in no ledger keeps its journal, to be recovered later.
                (self._journal.discard if kept else self._journal.close)()
        return stored

    def _said_of_sensors(self) -> list[Finding]:
        """Return what the sensors themselves have to say, before they are closed."""
        said = [findings.sensor_stalled(s.info.name) for s in self._sensors if getattr(s, "stalled", False)]
        for sensor in self._sensors:
            notes = getattr(sensor, "notes", None)
            said += notes() if callable(notes) else ()
        return said

    def _close_sensors(self) -> None:
        for sensor in self._sensors:
            try:
                sensor.close()
            except Exception:  # noqa: BLE001, S112  # law 8: a driver that fails to close has given its readings
                continue

    def _look(self, *, edge: bool) -> None:
        first = self._last_us is None
        begin_ns = time.monotonic_ns()
        values, times_ns = self._values(edge=edge, first=first)
        # The window ends before the last readings, and begins after the first, whatever
        # they took: the work does not run meanwhile.
        now_ns = begin_ns if edge and not first else time.monotonic_ns()
        if first:
            self._start_ns = now_ns
        t_us = (now_ns - self._start_ns) // 1000
        skew = tuple((t - now_ns) // 1000 for t in times_ns)
        rss = self._rss(now_ns, edge=edge)
        sample = Sample(
            t_us=t_us,
            values=values,
            rss_bytes=rss,
            skew_us=skew if max(map(abs, skew), default=0) > _SKEW_US else None,
        )
        self._last_us = max(t_us, self._last_us or 0)
        self._sampled_peak = max(filter(None, (rss, self._sampled_peak)), default=None)
        tallied(self._tally, sample)
        self._write(sample)

    def _rss(self, now_ns: int, *, edge: bool) -> int | None:
        """Return this process's resident memory, once a second."""
        if self._of_children or not (edge or now_ns - self._rss_ns >= _RSS_REST_NS):
            return None
        self._rss_ns = now_ns
        return process_time.rss_bytes()

    def _values(self, *, edge: bool, first: bool) -> tuple[tuple[Values, ...], list[int]]:
        """Read the sensors that are due; return their values, and when each was read."""
        values: list[Values] = [()] * len(self._sensors)
        times_ns = [time.monotonic_ns()] * len(self._sensors)
        for sensor in self._sensors if edge else ():
            # All that may hang are asked first, so that the work waits once for them and not for each.
            ask = getattr(sensor, "ask", None)
            if ask is not None:
                ask(edge=True)
        # Those that answer at once are read where the window begins or ends.
        for place in self._slow_first if first else self._quick_first:
            sensor = self._sensors[place]
            begin_ns = time.monotonic_ns()
            rested = begin_ns - self._read_ns[place] >= sensor.rest_s * 1e9
            if edge or rested:
                self._read_ns[place] = begin_ns
                values[place] = _read(sensor, edge=edge)
            # A slow driver takes its figure somewhere between the call and its end.
            between_ns = (begin_ns + time.monotonic_ns()) // 2
            told_ns: int | None = getattr(sensor, "read_at_ns", None) if values[place] else None
            times_ns[place] = between_ns if told_ns is None else told_ns
        return tuple(values), times_ns

    def _write(self, sample: Sample) -> None:
        if self._journal is None:
            return
        version = self.recorder.version
        facts = self.recorder.facts() if version != self._journalled else None
        try:
            self._journal.append(Look(sample=sample, facts=facts))
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
        )
        try:
            return JournalWriter(self._journal_folder or journal_folder(), header)
        except (OSError, *UNENCODABLE) as error:
            self._journal_broke(error)
            return None

    def _journal_broke(self, error: Exception) -> None:
        reason = error.strerror if isinstance(error, OSError) else None
        self.note(findings.no_journal(reason or type(error).__name__))
        if self._journal is not None:
            self._journal.close()

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
        facts = self.recorder.final_facts(lambda o: deposit_outcomes(o, self._ledger))
        run = sealed_run(self.run, facts, sealed, window_us, status, self._notes)
        conditions = msgspec.structs.replace(
            run.conditions or Conditions(wall_s=window_us / US_PER_S),
            load_1m=process_time.load_1m(),
            steal_s=self._steal_in_window(),
            peak_rss_bytes=self._peak_in_window(),
        )
        return msgspec.structs.replace(run, conditions=conditions, error=one_line(error), exit_code=exit_code)

    def _steal_in_window(self) -> float | None:
        now = process_time.steal_s()
        if now is None or self._steal_s is None:
            return None
        return round(max(now - self._steal_s, 0.0), 6)

    def _peak_in_window(self) -> int | None:
        """Return the peak within the window: exact if it is the highest so far, else sampled."""
        peak = process_time.peak_rss_bytes(of_children=self._of_children)
        if self._of_children:
            # A child's figure starts from that of the process it was spawned by, so
            # that nothing is known of one that stayed below it.
            return peak if peak > max(self._peak_before, process_time.peak_rss_bytes()) else None
        if peak > self._peak_before:
            return peak
        return self._sampled_peak


def journal_folder() -> Path:
    """Return the folder of this user's journals.

    It lies below the home directory, which several hosts may share: a journal names
    the host that wrote it, and the others leave it alone.

    Raises:
        OSError: If no folder can be written.
    """
    return state_dir() / "journal"


def _patient(sensor: Sensor) -> Sensor:
    from carbonlens.metering.patience import PatientSensor  # needs threads that most runs do without

    return PatientSensor(sensor)


def _read(sensor: Sensor, *, edge: bool) -> Values:
    try:
        # The edges are read in the user's thread, looks between them in the sampler's.
        read_here = None if edge else getattr(sensor, "read_here", None)
        return sensor.read(edge=edge) if read_here is None else cast("Values", read_here())
    except Exception:  # noqa: BLE001  # law 8: whatever a driver raises is a gap, never the user's error
        return None
