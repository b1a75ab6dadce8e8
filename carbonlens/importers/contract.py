"""What an importer is: the one object of a module that reads one format.

An importer claims sources by what they hold, never by their names, and reads a group of them
as a stream of canonical things: runs, power traces, bill lines, profiles, and what is wrong in
them. It keeps nothing and writes nothing; ``harvest`` and ``app`` do.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from typing import TYPE_CHECKING, Literal, Protocol, TypeAlias, runtime_checkable

import msgspec

from carbonlens.domain.alike import Alike, joules
from carbonlens.domain.charge import Charge
from carbonlens.domain.finding import Finding
from carbonlens.domain.import_map import TableRule
from carbonlens.domain.run import Run
from carbonlens.domain.units import Boundary, Grade
from carbonlens.importers.sources import Source

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Array: TypeAlias = npt.NDArray[np.float64]
    Whole: TypeAlias = npt.NDArray[np.int64]

Kind = Literal["runs", "trace", "profile", "bill", "claims"]

SampleKind = Literal["instant", "average", "counter", "delta"]
"""Watts now, mean watts, joules so far, or joules since the sample before."""

SPECIFIC, USUAL, GENERIC = 10, 50, 90
"""Ranks: who is asked first. Sets of files before single ones, any CSV last."""


class Facts(msgspec.Struct, frozen=True, kw_only=True):
    """What ``docs/importers.md`` says of a format.

    Attributes:
        title: The tool and its file.
        reads: Versions, eras and layouts that are read.
        units: Units as the format has them.
        grade: Evidence grade of what comes out, by component, and why.
        traps: What goes wrong with this format, and what is done about it.
        tested_on: What it was tested on.
    """

    title: str
    reads: str
    units: str
    grade: str
    traps: tuple[str, ...] = ()
    tested_on: tuple[str, ...] = ()


class Group(msgspec.Struct, frozen=True):
    """Sources that are read together; records name the first where they come from none in particular."""

    sources: tuple[Source, ...]

    @property
    def main(self) -> Source:
        """The source that stands for the group."""
        return self.sources[0]


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """What the user says beside the files; each is ``None`` where nobody said.

    Attributes:
        tz: IANA zone of local times without one, such as ``Europe/Paris``.
        tz_by_project: Zones by project, which go before ``tz``; glob pattern to zone.
        boundary: What energies include, where the file does not say.
        voltage_v: Volts, for logs of current alone.
        interval_s: Seconds between samples, for logs without times.
        start_us: When a log of relative times began, UTC microseconds.
        columns: What the columns of a log without a header are called.
        table: How the columns of a table of no known format are read.
        kept_us: First and last time of the samples of a trace that count, UTC microseconds; others tell
            of the rest.
    """

    tz: str | None = None
    tz_by_project: Mapping[str, str] = msgspec.field(default_factory=dict)
    boundary: Boundary | None = None
    voltage_v: float | None = None
    interval_s: float | None = None
    start_us: int | None = None
    columns: tuple[str, ...] | None = None
    table: TableRule | None = None
    kept_us: tuple[float, float] | None = None

    def zone_of(self, project: str | None) -> str | None:
        """Return the zone of a project's local times."""
        from fnmatch import fnmatchcase

        if project:
            for pattern, zone in self.tz_by_project.items():
                if fnmatchcase(project, pattern):
                    return zone
        return self.tz


class Measured(msgspec.Struct, frozen=True, kw_only=True):
    """What a trace holds, beside its energy.

    Attributes:
        samples: Moments at which power was told.
        mean_power_w: Plain mean of what was told, summed over devices; also without times.
        covered_s: Seconds that samples of every device stand for; ``None`` without times.
        uncovered_s: The other seconds of the span: with the covered ones they are the whole of it.
        samples_sha256: Of all samples, whatever their encoding in the file.
        changes: Values that differ from the one before, of the channel with most of them.
        gaps_us: Of each device the times of which nothing is told, UTC microseconds; a device is not
            among them where nobody knows.
    """

    samples: int
    mean_power_w: float | None
    covered_s: float | None = None
    uncovered_s: float | None = None
    samples_sha256: str | None = None
    changes: int = 0
    gaps_us: Mapping[str, tuple[tuple[float, float], ...]] = msgspec.field(default_factory=dict)


class Written(msgspec.Struct, frozen=True, kw_only=True):
    """A place as a source writes it; ``app`` finds its zone.

    Attributes:
        country: Name or code.
        region: Part of it, as the source names it.
        cloud: Provider and region, such as ``aws:us-east-1``; goes before the country.
        doubt: Why it is not believed; no zone is taken from it then.
    """

    country: str | None = None
    region: str | None = None
    cloud: str | None = None
    doubt: str | None = None


class RunRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A run as a source states it.

    Attributes:
        run: The record; ``origin`` is made by ``origin_of``.
        line: Line it stands on, from 1.
        stated_j: Whole energy as the source states it, at its own boundary; ``None`` takes
            the sum of the run's readings.
        cumulative: Whether the format writes one run several times, ever longer; the furthest counts.
        project: What rules of a map go by.
        place: Where it ran, unless ``run.zone`` says it.
        machine: Name of the machine whose whole energy this is; records of one machine over
            the same time count once. ``None`` where the energy is the run's own.
        measured: What a trace held.
    """

    run: Run
    line: int = 0
    stated_j: Decimal | None = None
    cumulative: bool = False
    project: str | None = None
    place: Written | None = None
    machine: str | None = None
    measured: Measured | None = None


class AlikeRecords(msgspec.Struct, frozen=True, kw_only=True):
    """Records of runs that differ in their figures only, as columns: a large table gives those.

    Attributes:
        pattern: One of them; what has no column is the same in all.
        runs: The runs.
        stated_uj: Microjoules as the source states them, of each.
    """

    pattern: RunRecord
    runs: Alike
    stated_uj: Whole

    def __len__(self) -> int:
        """Return how many there are."""
        return len(self.runs)

    def record(self, place: int) -> RunRecord:
        """Return one of them as a record of its own."""
        return msgspec.structs.replace(
            self.pattern,
            run=self.runs.run(place),
            line=int(self.runs.lines[place]),
            stated_j=joules(int(self.stated_uj[place])),
        )

    def of(self, places: Whole) -> AlikeRecords:
        """Return some of them, in the order given."""
        return msgspec.structs.replace(self, runs=self.runs.of(places), stated_uj=self.stated_uj[places])


class Channel(msgspec.Struct, frozen=True, kw_only=True):
    """One series of a trace: a device, a rail or a meter. Told before its first samples.

    Attributes:
        name: Unique within the host, such as ``GPU 0`` or ``VDD_IN``.
        host: Machine it belongs to; each host of a group becomes a run of its own.
        component: ``gpu``, ``cpu``, ``ram``, ``npu``, ``soc``, ``total`` or ``wall``.
        device: Stable id of the device, where there is one.
        kind: ``instant`` or ``average`` watts, a ``counter`` of joules, or joules since the
            sample before (``delta``).
        counted: Whether it is a part of the energy. False for rails that another one holds
            already, and second methods: they stand beside.
        boundary: What its joules include.
        grade: ``None`` takes that of the kind: B for a counter, C for power.
        method: How the figure was made, as printed.
        unit: Unit of power, or of energy, in the file; values here are watts or joules.
        period_us: How often the sensor updates, where the format or maker says.
        gain_95: Relative 95 % accuracy, where the maker says; for A without it the width is unknown.
        max_range_j: Where a counter wraps.
        least_w: Lowest mean power that such a device is believed to draw; 0 where it may sleep.
        is_least: Whether its energy is the least there was: it may be one of several devices.
    """

    name: str
    host: str | None = None
    component: str
    device: str | None = None
    kind: SampleKind = "instant"
    counted: bool = True
    boundary: Boundary | None = "device"
    grade: Grade | None = None
    method: str
    unit: str = "W"
    period_us: float | None = None
    gain_95: float | None = None
    max_range_j: float | None = None
    least_w: float = 0.0
    is_least: bool = False

    @property
    def key(self) -> tuple[str | None, str | None, str]:
        """What tells it from others of the group: logs of two machines joined both name a GPU 0."""
        return self.host, self.device, self.name


class Chunk(msgspec.Struct, frozen=True, kw_only=True):
    """Samples of one channel, in the order of the file.

    Attributes:
        channel: A channel that was told before.
        t_us: UTC microseconds, or microseconds from some begin with ``relative``; ``None``
            without any time base: there is a mean then, and no energy.
        values: Watts, or joules as the channel's kind says; NaN for a reading that failed.
        seconds: Of ``delta``: what each sample covers, where the format tells.
        line: Line of the first sample.
        relative: Whether times count from an unknown begin.
    """

    channel: Channel
    t_us: Array | None
    values: Array
    seconds: Array | None = None
    line: int = 0
    relative: bool = False


class Window(msgspec.Struct, frozen=True, kw_only=True):
    """The part of a trace that counts, told before the samples: between two marks, say."""

    start_us: float
    end_us: float
    why: str


class Named(msgspec.Struct, frozen=True, kw_only=True):
    """What a trace's runs are called and where they were made; told at any time, the last counts.

    Attributes:
        run_id: The run's own id, where files that may be there or not tell more of it; ``None``
            takes the content of all of them.
        study, step, workload, hardware, job_id: As of ``Run``.
        units, unit: Work done in the window.
        tags: Labels of the source.
    """

    run_id: str | None = None
    study: str | None = None
    step: str | None = None
    workload: str | None = None
    hardware: str | None = None
    job_id: str | None = None
    units: Decimal | None = None
    unit: str | None = None
    tags: Mapping[str, str] = msgspec.field(default_factory=dict)


class ChargeRecord(msgspec.Struct, frozen=True):
    """A line of a bill."""

    charge: Charge


class OperatorTime(msgspec.Struct, frozen=True, kw_only=True):
    """Time of one kind of operator on one provider or device; no energy is claimed.

    Attributes:
        provider: Execution provider, or device.
        operator: Kind of operator or kernel.
        calls: How often; ``None`` where the format does not tell.
        time_s: Seconds in it; ``None`` where only cycles are known.
        cycles: Hardware cycles in it, where the format tells those.
    """

    provider: str
    operator: str
    calls: int | None = None
    time_s: float | None = None
    cycles: int | None = None


class ProfileRecord(msgspec.Struct, frozen=True, kw_only=True):
    """What a profile tells: times, never joules. It is shown, and no run is made of it.

    Attributes:
        operators: The longest first.
        events: Events of the profile.
        span_s: First to last event.
        device: Hardware as the profile names it.
        facts: Further figures by name, with their unit as a suffix.
    """

    operators: tuple[OperatorTime, ...]
    events: int
    span_s: float | None = None
    device: str | None = None
    facts: Mapping[str, float | int | None] = msgspec.field(default_factory=dict)


class Tally(msgspec.Struct, frozen=True, kw_only=True):
    """Rows that were met since the last tally; each rejected one has its Finding."""

    rows: int
    rejected: int = 0
    repeated: int = 0


Item: TypeAlias = (
    RunRecord
    | AlikeRecords
    | Channel
    | Chunk
    | Window
    | Named
    | ChargeRecord
    | ProfileRecord
    | Tally
    | Finding
)


@runtime_checkable
class Importer(Protocol):
    """Reads one format.

    Attributes:
        name: Format name as printed.
        version: Raised when the same content gives other records.
        kind: What comes out.
        rank: Who is asked first: ``SPECIFIC``, ``USUAL`` or ``GENERIC``.
        facts: For ``docs/importers.md``.
    """

    name: str
    version: int
    kind: Kind
    rank: int
    facts: Facts

    def claim(self, sources: Sequence[Source]) -> Sequence[Group]:
        """Return the groups of sources that are of this format, by what they hold.

        Args:
            sources: Sources that nobody has claimed, from all folders of the import.
        """
        ...

    def read(self, group: Group, options: Options) -> Iterator[Item]:
        """Yield what a group holds, in bounded memory.

        Raises:
            InputFileError: If nothing of it can be used; nothing is kept of it then.
        """
        ...
