"""SLURM sacct tables: a run a job, with the energy that its nodes told.

A job's line holds the energy of all its steps where SLURM keeps it; else steps tell it, each of
them the whole node's over its own time, so that steps at the same time are not added up.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from datetime import datetime
from decimal import Decimal
from itertools import pairwise
from typing import Final

import msgspec

from carbonlens.domain.counting import counted
from carbonlens.domain.run import Run
from carbonlens.domain.units import RunStatus
from carbonlens.errors import InputFileError
from carbonlens.importers import unit_checks
from carbonlens.importers.claiming import each
from carbonlens.importers.contract import USUAL, Facts, Group, Item, Kind, Options, RunRecord, Tally
from carbonlens.importers.json_files import id_of
from carbonlens.importers.once import Once
from carbonlens.importers.records import exact_j, finding, origin_of, reading
from carbonlens.importers.slurm_cells import cpus_of, energy_of, gpus_of, memory_mib, seconds_in, whole_in
from carbonlens.importers.sources import Source, first_names
from carbonlens.importers.tables import Table
from carbonlens.importers.times import Clock

_OWN: Final = frozenset(
    {
        *("consumedenergy", "consumedenergyraw", "alloctres", "reqtres", "totalcpu", "cputime"),
        *("cputimeraw", "reqmem", "maxrss", "ncpus", "alloccpus", "nnodes"),
    }
)
_NOT_RUN: Final = frozenset({"PENDING", "REQUEUED", "REVOKED", "RESV_DEL_HOLD", "SPECIAL_EXIT"})
_STATUSES: Final[dict[str, RunStatus]] = {"COMPLETED": "complete", "RUNNING": "running"}
_JOB: Final = re.compile(r"^\d+(?:_(?:\d+|\[[^\]]*\]))?(?:\+\d+)?$")
_STEP: Final = re.compile(r"^(.+?)\.(batch|extern|interactive|\d+)$")
_LEAST_W: Final = 1.0


class _Row(msgspec.Struct, frozen=True):
    """A line of a table: of a job, or of a step of one."""

    line: int
    job: str
    step: str | None
    cells: dict[str, str]
    energy_j: Decimal | None
    duration_s: float | None
    start_us: int | None
    end_us: int | None


class SlurmSacctImporter:
    """Importer of tables that sacct prints."""

    name = "slurm-sacct"
    version = 1
    kind: Kind = "runs"
    rank = USUAL
    facts = Facts(
        title="SLURM sacct, with bars (--parsable, --parsable2; as Green Algorithms 4 HPC asks for)",
        reads="any columns with JobID and Elapsed; ConsumedEnergyRaw or ConsumedEnergy tell the energy",
        units="joules, with K, M, G of 1000 in ConsumedEnergy; D-HH:MM:SS; memory in MiB",
        grade="C: which plug-in measured is not told (RAPL would be B, a board's power is C)",
        traps=(
            "lines of steps are parts of their job's: they are not added to it",
            "0, empty and SLURM's words for no value are not measured: unknown, not zero",
            "the energy is of whole nodes: jobs that share one each state all of it, which is said",
            "Submit is no start: without Start the energy is in no hour",
            "a job that was not done when it was listed is superseded by its later line",
            "memory is a core's (c), a node's (n) or the job's by its last letter",
        ),
        tested_on=("the example of Green Algorithms 4 HPC, which has no energy", "samples typed here"),
    )

    def claim(self, sources: Sequence[Source]) -> list[Group]:
        """Claim tables with a JobID, an Elapsed and another column that only sacct has."""
        return each(sources, _is_mine)

    def read(self, group: Group, options: Options) -> Iterator[Item]:
        """Yield a run a job.

        Raises:
            InputFileError: If its columns are parted by blanks.
        """
        yield from _Reading(group.main, options).items()


IMPORTER: Final = SlurmSacctImporter()


def _is_mine(source: Source) -> bool:
    names = set(first_names(source))
    if "jobid" in names and {"elapsed", "elapsedraw"} & names and _OWN & names:
        return True
    return _is_spaced(source)


def _is_spaced(source: Source) -> bool:
    lines = source.first_lines
    if len(lines) < 2 or not re.fullmatch(r"[- ]+", lines[1]):
        return False
    words = set(lines[0].lower().split())
    return "jobid" in words and bool({"elapsed", "state", "consumedenergy", "consumedenergyraw"} & words)


class _Reading:
    def __init__(self, source: Source, options: Options) -> None:
        if _is_spaced(source):
            raise InputFileError(
                "is a table parted by blanks, which cuts long values off",
                where=source.shown,
                mend="let sacct print it with --parsable2",
            )
        self._source = source
        self._options = options
        self._once = Once(source)
        self._clocks: dict[str | None, Clock] = {}
        self._busy: dict[str, tuple[int, str]] = {}
        self._rows = self._rejected = self._repeated = 0
        self._table = Table(source)

    def items(self) -> Iterator[Item]:
        """Yield runs, Findings and a tally."""
        waiting: list[_Row] = []
        seen: set[int] = set()
        for line, cells in self._table.dicts():
            self._rows += 1
            try:
                row = self._row(line, cells)
            except ValueError as error:
                self._rejected += 1
                text = f"line {line} {error}; it is left out"
                yield finding("CL202", "error", text, self._source, line=line, mend="list the job again")
                continue
            key = hash(tuple(row.cells.items()))
            if key in seen:
                self._repeated += 1
                self._once.say("CL201", "info", "a line repeats another; counted once", line)
                continue
            seen.add(key)
            if waiting and (row.job != waiting[0].job or row.step is None):
                yield from self._job(waiting)
                waiting = []
            waiting.append(row)
        if waiting:
            yield from self._job(waiting)
        for clock in self._clocks.values():
            yield from clock.findings
        yield from self._once.findings()
        yield Tally(rows=self._rows, rejected=self._rejected, repeated=self._repeated)

    def _row(self, line: int, cells: dict[str, str] | list[str]) -> _Row:
        if isinstance(cells, list):
            columns = counted(len(self._table.header), "column")
            raise ValueError(f"has {counted(len(cells), 'cell')} where there are {columns}")
        name = cells["jobid"]
        step = _STEP.match(name)
        job = step[1] if step else name
        if not _JOB.match(job):
            raise ValueError(f"has the JobID {name!r}, which is none")
        account = cells.get("account")
        start_us = self._us(cells.get("start"), account, line)
        end_us = self._us(cells.get("end"), account, line)
        return _Row(
            line=line,
            job=job,
            step=step[2] if step else None,
            cells=cells,
            energy_j=energy_of(cells),
            duration_s=seconds_in(cells),
            start_us=start_us,
            end_us=end_us,
        )

    def _us(self, text: str | None, account: str | None, line: int) -> int | None:
        if text is None or text in {"", "Unknown", "None"}:
            return None
        zone = self._options.zone_of(account)
        clock = self._clocks.setdefault(zone, Clock(zone, self._source))
        try:
            return clock.us(datetime.fromisoformat(text), line)
        except ValueError:
            raise ValueError(f"has the time {text!r}, which is none") from None

    def _job(self, rows: list[_Row]) -> Iterator[Item]:
        """Yield the run of a job, of its own line and those of its steps."""
        job = next((r for r in rows if r.step is None), rows[0])
        state = job.cells.get("state", "").split(" ")[0].rstrip("+")
        if state in _NOT_RUN and not job.duration_s:
            self._once.say("CL262", "info", "a job that has not run yet is no run", job.line)
            return
        energy_j, is_lower = self._energy(job, rows)
        yield from self._checks(job, energy_j)
        cells = job.cells
        boundary = self._options.boundary
        if energy_j is not None and boundary is None:
            text = "boundary is not stated: RAPL tells of CPU and memory, IPMI of the node"
            self._once.say("CL206", "warning", text, job.line, "give --boundary device or it")
        measured = reading(
            "total",
            energy_j,
            method="SLURM ConsumedEnergy",
            grade="C",
            meter=cells.get("nodelist") or cells.get("cluster") or "slurm",
            boundary=boundary,
        )
        if is_lower:
            measured = msgspec.structs.replace(measured, state="unbounded")
        begun = cells.get("start") or cells.get("submit")
        run = Run(
            run_id=id_of("slurm", {"cluster": cells.get("cluster"), "job": job.job, "begun": begun}),
            job_id=job.job,
            status=_STATUSES.get(state, "failed") if state else "complete",
            start_us=job.start_us,
            end_us=job.end_us,
            duration_s=job.duration_s,
            energy=(measured,),
            workload=cells.get("jobname") or None,
            tags=_tags(job, state),
            origin=origin_of(IMPORTER, self._source, job.line),
        )
        yield RunRecord(
            run=run,
            line=job.line,
            stated_j=exact_j(energy_j),
            cumulative=True,
            project=cells.get("account") or None,
        )

    def _energy(self, job: _Row, rows: list[_Row]) -> tuple[Decimal | None, bool]:
        """Return the joules of a job, and whether they are those of a part of it."""
        if job.step is None and job.energy_j is not None:
            return job.energy_j, False
        steps = {r.step: r for r in rows if r.step is not None and r.energy_j is not None}
        if not steps:
            text = "no energy was measured: it is unknown, and no total is possible"
            mend = "ask for ConsumedEnergyRaw, and let an acct_gather_energy plug-in measure"
            self._once.say("CL260", "warning", text, job.line, mend)
            return None, False
        whole = steps.get("extern")
        if whole is None and whole_in(job.cells, "nnodes") == 1:
            whole = steps.get("batch")
        if whole is not None:
            return whole.energy_j, False
        told = sorted((r for r in steps.values()), key=lambda r: r.start_us or 0)
        overlap = len(told) > 1 and any(
            one.end_us is None or other.start_us is None or other.start_us < one.end_us
            for one, other in pairwise(told)
        )
        if overlap:
            text = "steps of a job ran at the same time on nodes whose whole energy each states: unknown"
            self._once.say("CL284", "warning", text, job.line, "list the job's own line too")
            return None, False
        text = "only steps state an energy: the time between them is not in it"
        self._once.say("CL284", "warning", text, job.line, "list the job's own line too")
        return sum((r.energy_j for r in told if r.energy_j is not None), Decimal(0)), True

    def _checks(self, job: _Row, energy_j: Decimal | None) -> Iterator[Item]:
        if job.start_us is None:
            mend = "ask sacct for Start and End"
            self._once.say(
                "CL245", "warning", "Start is not listed: the energy is in no hour", job.line, mend
            )
        elif job.end_us is not None:
            told_s = (job.end_us - job.start_us) / 1e6
            yield from unit_checks.of_length(job.duration_s, told_s, self._source, job.line)
        stated = unit_checks.Stated(
            energy_j=None if energy_j is None else float(energy_j),
            energy_unit="J",
            duration_s=job.duration_s,
            least_w=_LEAST_W,
            most_w=unit_checks.MOST_HOST_W * (whole_in(job.cells, "nnodes") or 1),
        )
        yield from unit_checks.of_run(stated, self._source, job.line)
        self._say_shared(job, energy_j)

    def _say_shared(self, job: _Row, energy_j: Decimal | None) -> None:
        """Say where jobs ran on the same nodes at the same time: each states the nodes' whole energy."""
        nodes = job.cells.get("nodelist")
        if not nodes or energy_j is None or job.start_us is None or job.end_us is None:
            return
        until_us, other = self._busy.get(nodes, (job.start_us, job.job))
        if job.start_us < until_us and other != job.job:
            text = "jobs ran on the same nodes at the same time, and each states the nodes' whole energy"
            self._once.say("CL284", "warning", text, job.line, "count exclusive jobs, or meter the node")
        if job.end_us >= until_us:
            self._busy[nodes] = (job.end_us, job.job)


def _tags(job: _Row, state: str) -> dict[str, str]:
    cells = job.cells
    cpus, gpus, memory = cpus_of(cells), gpus_of(cells), memory_mib(cells)
    hours = None if job.duration_s is None else job.duration_s / 3600
    told = {
        "state": state or None,
        "partition": cells.get("partition") or None,
        "account": cells.get("account") or None,
        "nodes": cells.get("nnodes") or None,
        "cpus": None if cpus is None else str(cpus),
        "gpus": None if gpus is None else str(gpus),
        "memory_mib": None if memory is None else f"{memory:g}",
        "core_hours": None if cpus is None or hours is None else f"{cpus * hours:.6g}",
        "gpu_hours": None if not gpus or hours is None else f"{gpus * hours:.6g}",
    }
    return {name: text for name, text in told.items() if text is not None}
