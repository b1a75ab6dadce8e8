"""Run: the immutable record of one measured or imported piece of work."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import Final

import msgspec

from carbonlens.domain.allowance import Allowance
from carbonlens.domain.artefact import Artefact
from carbonlens.domain.estimate import Estimate, add, unknown
from carbonlens.domain.execution import ProviderTime
from carbonlens.domain.finding import Finding
from carbonlens.domain.latency import Latency
from carbonlens.domain.money import Money
from carbonlens.domain.phase import Phase
from carbonlens.domain.tokens import Tokens
from carbonlens.domain.trace import PowerTrace, Trace
from carbonlens.domain.units import Boundary, Grade, IdleConvention, Role, RunStatus, State

SCHEMA_VERSION: Final = 1
"""Version of the run record; a reader migrates forward, never back."""


class Reading(msgspec.Struct, frozen=True, kw_only=True):
    """Energy of one component over the run's window.

    Attributes:
        component: ``cpu``, ``gpu``, ``ram``, ``npu``, ``wall`` or ``total``.
        energy_j: Exact joules, ``None`` when unknown.
        boundary: What the joules include; ``None`` when the source does not say.
        grade: Evidence grade; ``None`` when the source does not say.
        method: How the figure was made, as printed.
        u_random_j: One sigma of the random part.
        u_by_source_j: One sigma per named common error.
        low_j, high_j: 95 % interval as a source stated it, else ``None``.
        devices: Stable ids of the devices read.
        covered_s: Seconds of the window that the reading covers.
        dynamic_j: Part of ``energy_j`` above the share of idle power, where the
            method tells them apart.
        own_share: Share of the device's activity in the window that was this
            work's, where the device tells; ``energy_j`` is the whole device's
            unless ``divided``.
        divided: Whether ``energy_j`` is that share of the device alone (MIG).
        idle: Idle convention of ``energy_j``: ``reserved`` holds the device's idle
            power over the window, ``dynamic`` leaves it out; ``None`` when the
            source does not say (this package's own meters hold it).
    """

    component: str
    energy_j: Decimal | None
    boundary: Boundary | None
    grade: Grade | None
    method: str
    state: State = "known"
    u_random_j: float = 0.0
    u_by_source_j: Mapping[str, float] = msgspec.field(default_factory=dict)
    low_j: float | None = None
    high_j: float | None = None
    devices: tuple[str, ...] = ()
    covered_s: float | None = None
    dynamic_j: Decimal | None = None
    own_share: float | None = None
    divided: bool = False
    idle: IdleConvention | None = None

    @property
    def estimate(self) -> Estimate:
        """The reading as an estimate in joules."""
        if self.energy_j is None:
            return unknown("J")
        stated: tuple[float | None, float | None] | None = None
        if self.low_j is not None or self.high_j is not None or self._width_is_unknown:
            stated = (self.low_j, self.high_j)
        return Estimate(
            value=float(self.energy_j),
            unit="J",
            state=self.state,
            grade=self.grade,
            u_random=self.u_random_j,
            u_by_source=self.u_by_source_j,
            bounds=stated,
        )

    @property
    def _width_is_unknown(self) -> bool:
        """Whether nothing tells how sure the figure is: then it has no interval, not a zero one."""
        return not self.u_by_source_j and self.u_random_j == 0 and self.energy_j != 0


class HourEnergy(msgspec.Struct, frozen=True, kw_only=True):
    """Energy of one component in one UTC hour (``start_us // 3_600_000_000``)."""

    hour_utc: int
    component: str
    energy_j: Decimal


class Quality(msgspec.Struct, frozen=True, kw_only=True):
    """A quality figure of the work.

    Attributes:
        name: What was measured, for example ``accuracy``.
        value: The figure; ``None`` when the evaluation gave none.
        n: Number of examples it rests on.
        outcomes_sha256: Hash of the sidecar with per-example outcomes, which
            allows a paired comparison.
        higher_is_better: Direction; ``None`` when nobody says which is better.
    """

    name: str
    value: float | None
    n: int | None = None
    outcomes_sha256: str | None = None
    higher_is_better: bool | None = True


class DeviceConditions(msgspec.Struct, frozen=True, kw_only=True):
    """How one device was set and how it fared in the window; explains a change of pace.

    Attributes:
        device: Stable id, as in a reading.
        clock_mhz: Clock of its cores, mean of the looks.
        lowest_clock_mhz: Lowest of the looks.
        temperature_c: Highest of the looks.
        power_cap_w: The cap in force at the end.
        earlier_power_cap_w: Another cap that was seen in the window before it; ``None``
            where it did not change.
        memory_bytes: Most of its memory that was in use, by anybody.
    """

    device: str
    clock_mhz: float | None = None
    lowest_clock_mhz: float | None = None
    temperature_c: float | None = None
    power_cap_w: float | None = None
    earlier_power_cap_w: float | None = None
    memory_bytes: int | None = None


class Conditions(msgspec.Struct, frozen=True, kw_only=True):
    """What the host was doing meanwhile; explains noise, disqualifies rounds.

    Attributes:
        wall_s: Elapsed time by the monotonic clock.
        cpu_s: CPU time of the process tree.
        load_1m: Load average at the end.
        steal_s: CPU seconds the hypervisor took from the whole machine.
        peak_rss_bytes: Largest resident memory of the process.
        throttled_s: Seconds in which a device was slowed by heat or a fault (not by
            its ordinary power cap), where it tells.
        devices: Clock, temperature and cap of each device that tells.
    """

    wall_s: float
    cpu_s: float | None = None
    load_1m: float | None = None
    steal_s: float | None = None
    peak_rss_bytes: int | None = None
    throttled_s: float | None = None
    devices: tuple[DeviceConditions, ...] = ()


class ImportedAs(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What is kept of an import, so that a source is known again that has grown, or of which more is told.

    Attributes:
        size_bytes: Length of the content, unpacked; ``source_sha256`` is its hash.
        prefixes: Hashes of its first 256, 512, 1024 ... bytes, shortened; of traces alone.
        told: What the user said of the source beside it, by option, such as ``tz``.
    """

    size_bytes: int | None = None
    prefixes: tuple[str, ...] = ()
    told: Mapping[str, str] = msgspec.field(default_factory=dict)


class Origin(msgspec.Struct, frozen=True, kw_only=True):
    """Where a record comes from, so that any figure can be traced.

    Attributes:
        instrument: Name and version of what measured or imported it.
        source_file: Name of the imported file (no directories).
        source_sha256: Hash of the imported content.
        source_line: Line of the record, from 1.
        imported_us: When it was imported, UTC; orders files of one import too.
        imported_as: What makes that import known again; ``None`` where nothing needs it.
        program: Name of the program that ran, without its arguments.
        args_sha256: Hash of the arguments, which may hold secrets.
        args: The arguments themselves, only where the user asked for them.
        python, platform: Versions of the environment.
    """

    instrument: str
    source_file: str | None = None
    source_sha256: str | None = None
    source_line: int | None = None
    imported_us: int | None = None
    imported_as: ImportedAs | None = None
    program: str | None = None
    args_sha256: str | None = None
    args: tuple[str, ...] | None = None
    python: str | None = None
    platform: str | None = None


class Run(msgspec.Struct, frozen=True, kw_only=True):
    """One run; times are integer UTC microseconds.

    Attributes:
        run_id: UUIDv7 of a live run, the source's id for an imported one.
        job_id: The job that several runs or ranks belong to.
        attempt: 1 for the first try; a requeue or restart counts up.
        host_id: Hash of the boot id, which all containers of a machine share; of the machine id
            where there is none.
        machine_id: Hash of the machine id alone: the same after a reboot.
        process: Pseudonym of the process whose own time and memory the readings without
            devices are of; ``None`` where nobody says.
        ancestors: Pseudonyms of the processes that ``process`` descends from, its parent first;
            those of other containers are not among them. ``None`` where nobody says.
        allowance: CPUs and memory that the work could use as it began; ``None`` where nobody says.
        step: Name of the step the run measures; ``None`` outside a study.
        on: The optimizations that were on; ``None`` when not stated.
        repeat: Number of the round, 0 or more.
        duration_s: By the monotonic clock, which no clock step can change.
        energy: Readings whose sum is the run's energy: no two hold the same joule.
        beside: Readings of the same window that are evidence and are not summed:
            parts of a whole that was read too, other methods for one device.
        units: Work done, in functional units of name ``unit``.
        coverage: Share of the window that was measured (0 to 1).
        error: Text of the error the work ended with.
        cost: Cost the source itself states.
        emissions_reported_kg: Emissions the source itself states: evidence
            only, the ledger recomputes them.
        trace: File that holds every reading; ``None`` where none was asked for.
        power: Power over time, thinned; ``None`` where no trace was asked for, or none can be told.
        phases: Named parts of the window, without what lies in none of them.
        tokens: What a language model read and wrote.
        artefacts: What a stage took in and gave out.
        execution: What each execution provider of a runtime did.
        supersedes: Id of the record that this one corrects.
        supersedes_study: Study of that record; empty where it has none. Imported ids are
            unique within a study only. Older versions named it only where it is not this one's own.
        supersedes_also: Ids of further corrections of the same run that this one
            settles: two hosts may have corrected it, each unaware of the other.
    """

    run_id: str
    schema_version: int = SCHEMA_VERSION
    job_id: str | None = None
    parent_run_id: str | None = None
    attempt: int = 1
    host_id: str | None = None
    machine_id: str | None = None
    rank: int | None = None
    device_uuids: tuple[str, ...] = ()
    role: Role = "other"
    status: RunStatus = "complete"
    study: str | None = None
    step: str | None = None
    on: tuple[str, ...] | None = None
    repeat: int | None = None
    start_us: int | None = None
    end_us: int | None = None
    duration_s: float | None = None
    energy: tuple[Reading, ...] = ()
    beside: tuple[Reading, ...] = ()
    energy_by_hour: tuple[HourEnergy, ...] = ()
    units: Decimal | None = None
    unit: str | None = None
    latency: Latency | None = None
    quality: tuple[Quality, ...] = ()
    model_bytes: int | None = None
    macs_per_unit: int | None = None
    workload: str | None = None
    hardware: str | None = None
    zone: str | None = None
    site: str | None = None
    cost: Money | None = None
    emissions_reported_kg: Decimal | None = None
    conditions: Conditions | None = None
    coverage: float | None = None
    lost_s: float | None = None
    exit_code: int | None = None
    error: str | None = None
    tags: Mapping[str, str] = msgspec.field(default_factory=dict)
    origin: Origin | None = None
    supersedes: str | None = None
    supersedes_study: str | None = None
    supersedes_also: tuple[str, ...] = ()
    findings: tuple[Finding, ...] = ()
    trace: Trace | None = None
    phases: tuple[Phase, ...] = ()
    tokens: Tokens | None = None
    artefacts: tuple[Artefact, ...] = ()
    execution: tuple[ProviderTime, ...] = ()
    process: str | None = None
    ancestors: tuple[str, ...] | None = None
    allowance: Allowance | None = None
    power: PowerTrace | None = None

    @property
    def covered_s(self) -> float | None:
        """Seconds that every component was measured; ``None`` where one does not tell."""
        told = [r.covered_s for r in self.energy]
        known = [s for s in told if s is not None]
        return min(known) if known and len(known) == len(told) else None

    @property
    def total_energy(self) -> Estimate:
        """Sum of the components in joules.

        Unknown without a reading. Components of different boundaries are not
        summed: the result is unknown.
        """
        if not self.energy or len({r.boundary for r in self.energy}) > 1:
            return unknown("J")
        if len(self.energy) == 1:
            return self.energy[0].estimate
        return add((r.estimate for r in self.energy), "J")

    @property
    def recorded_us(self) -> tuple[int, int]:
        """Place in the order of first appearance: when it ran or was imported, and its line."""
        if self.origin is not None and self.origin.imported_us is not None:
            return self.origin.imported_us, self.origin.source_line or 0
        return self.start_us or 0, 0

    @property
    def boundary(self) -> Boundary | None:
        """The one boundary of the readings; ``None`` when unstated or mixed."""
        found = {r.boundary for r in self.energy}
        return found.pop() if len(found) == 1 else None

    def says_the_same(self, other: Run) -> bool:
        """Whether both records hold the same, wherever they were read from."""
        return msgspec.structs.replace(self, origin=None) == msgspec.structs.replace(other, origin=None)
