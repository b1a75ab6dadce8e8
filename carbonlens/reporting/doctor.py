"""Diagnosis: what can be measured on a machine, why not better, and one mend for each.

``app.doctor`` looks and fills these records; ``doctor_json`` and the command line
show them.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from carbonlens.domain.allowance import Allowance
from carbonlens.domain.finding import Finding
from carbonlens.domain.units import Boundary, Grade


class SourceView(msgspec.Struct, frozen=True, kw_only=True):
    """A source that can be read.

    Attributes:
        sensor: Its name.
        found: What it found when it was asked.
        method: How a figure from it is made.
        factor_95: With 95 % probability the truth lies between a figure divided and
            multiplied by it; ``None`` where nobody states the source's accuracy.
        update_period_s: How often its value changes; 0 when it is never stale.
        read_cost_s: Median time of a read; ``None`` where it could not be read.
        on_recordings: Whether it was tested on recordings and never on hardware.
    """

    sensor: str
    found: str
    method: str
    grade: Grade
    factor_95: float | None
    boundary: Boundary
    scope: str
    update_period_s: float
    read_cost_s: float | None
    on_recordings: bool = False


class Missing(msgspec.Struct, frozen=True, kw_only=True):
    """A source that cannot be read, and why."""

    sensor: str
    reason: str
    found: str = ""
    mend: str | None = None


class Part(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that draws power: the processors, the memory, a GPU, the whole at the plug.

    Attributes:
        part: ``cpu``, ``ram``, ``gpu``, ``npu``, ``module`` or ``wall``.
        name: As printed.
        device: Stable id of a GPU or NPU.
        source: What a run's figure will come from; ``None`` where nothing reads it.
        others: Further sources, read beside it.
        missing: Better sources, each with the reason why it is not read.
        note: What a reader must know.
        mend: One safe thing that would make it better.
    """

    part: str
    name: str
    device: str | None = None
    source: SourceView | None = None
    others: tuple[SourceView, ...] = ()
    missing: tuple[Missing, ...] = ()
    note: str | None = None
    mend: str | None = None


class Answering(msgspec.Struct, frozen=True, kw_only=True):
    """A declared source, and whether it answers; one that is left out is not asked."""

    name: str
    answers: bool
    said: str
    mend: str | None = None
    left_out: bool = False


class Machine(msgspec.Struct, frozen=True, kw_only=True):
    """The machine.

    Attributes:
        threads: Hardware threads of the machine, as far as it sees them.
        virtual: Whether a hypervisor shows it.
        cpu_family: Family in the table of powers; ``None`` when it is not known.
        tdp_w: Thermal design power of the CPU by codecarbon's table, where that is
            installed and has the whole name.
        visibility: Variables that choose or hide GPUs, as they are set.
        allowance: What of its CPUs and memory the work may use.
        gpus_present, gpus_used: How many NVIDIA GPUs the driver lists, and how many of
            them the work may use; ``None`` without a driver.
    """

    system: str
    cpu: str | None
    threads: int | None
    virtual: bool = False
    cpu_family: str | None = None
    tdp_w: float | None = None
    visibility: Mapping[str, str] = {}
    gpus_present: int | None = None
    gpus_used: int | None = None
    allowance: Allowance = Allowance()


class Storage(msgspec.Struct, frozen=True, kw_only=True):
    """Where records go.

    Attributes:
        ledger, journal: Folders; ``None`` where there is none to write.
        ledger_exists: False before the first run.
        ledger_fault, journal_fault: Why it cannot be written; ``None`` when it can.
    """

    ledger: str | None
    journal: str | None
    ledger_exists: bool = False
    ledger_fault: str | None = None
    journal_fault: str | None = None


class Diagnosis(msgspec.Struct, frozen=True, kw_only=True):
    """All that ``doctor`` found.

    Attributes:
        extras: Packages that are missing, by extra; nothing missing means it is there.
        calibrations: Devices with a calibration, each in words.
        sources_file: The file of declared sources.
        declared: What stands in it, and whether it answers.
        replay: Recording that is played instead of reading this machine.
        total: What a run's total will be, in words; ``None`` where nothing is read.
    """

    version: str
    parts: tuple[Part, ...]
    machine: Machine
    storage: Storage
    extras: Mapping[str, tuple[str, ...]] = {}
    calibrations: tuple[str, ...] = ()
    sources_file: str | None = None
    declared: tuple[Answering, ...] = ()
    replay: str | None = None
    total: str | None = None
    findings: tuple[Finding, ...] = ()

    @property
    def can_measure(self) -> bool:
        """Whether anything at all has a source."""
        return any(part.source is not None for part in self.parts)
