"""Which CPU family a machine has, and the power curve that goes with it.

Virtual machines often hide the model ("AMD EPYC" and nothing more) while family
and model numbers stay true, so the numbers are asked first and the name second.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

import msgspec

from carbonlens.metering.cpu_table import DEFAULT, ROWS, SOURCE, Row
from carbonlens.signals.cpu_model import CpuCurve

_CPUINFO = Path("/proc/cpuinfo")
_HEAD_BYTES = 16_384
"""Enough for the first processor's entry; the file is long on large machines."""

_AMD = "AuthenticAMD"
_INTEL = "GenuineIntel"
_ARM_LTD = "0x41"

# (vendor, family) -> (first model, last model, row). AMD: models by PPR documents
# and the kernel's arch/x86/kernel/cpu/amd.c; Intel: arch/x86/include/asm/intel-family.h.
_BY_NUMBER: Final[dict[tuple[str, int], tuple[tuple[int, int, str], ...]]] = {
    (_AMD, 21): ((0x00, 0x0F, "AMD Opteron"),),
    (_AMD, 16): ((0x00, 0x0F, "AMD Opteron"),),
    (_AMD, 23): ((0x00, 0x01, "AMD EPYC 1st gen"), (0x30, 0x3F, "AMD EPYC 2nd gen")),
    (_AMD, 25): (
        (0x00, 0x0F, "AMD EPYC 3rd gen"),
        (0x10, 0x1F, "AMD EPYC 4th gen"),
        (0xA0, 0xAF, "AMD EPYC 4th gen, Zen 4c"),
    ),
    (_AMD, 26): ((0x00, 0x1F, "AMD EPYC 5th gen"),),
    (_INTEL, 6): (
        (26, 26, "Intel Nehalem/Westmere"),
        (30, 30, "Intel Nehalem/Westmere"),
        (44, 44, "Intel Nehalem/Westmere"),
        (46, 47, "Intel Nehalem/Westmere"),
        (42, 42, "Intel Sandy Bridge E3"),
        (45, 45, "Intel Sandy Bridge"),
        (58, 58, "Intel Ivy Bridge E3"),
        (62, 62, "Intel Ivy Bridge"),
        (60, 60, "Intel Haswell E3"),
        (63, 63, "Intel Haswell"),
        (79, 79, "Intel Broadwell"),
        (86, 86, "Intel Broadwell"),
        (94, 94, "Intel Skylake/Kaby Lake E3"),
        (106, 106, "Intel Ice Lake"),
        (108, 108, "Intel Ice Lake D"),
        (143, 143, "Intel Sapphire Rapids"),
        (167, 167, "Intel Rocket Lake E"),
        (173, 174, "Intel Granite Rapids"),
        (175, 175, "Intel Sierra Forest"),
        (183, 183, "Intel Raptor Lake E"),
        (207, 207, "Intel Emerald Rapids"),
    ),
}
# One model number, told apart by stepping: (first, last, row).
_BY_STEPPING: Final[dict[tuple[str, int, int], tuple[tuple[int, int, str], ...]]] = {
    (_INTEL, 6, 85): (
        (0, 4, "Intel Skylake"),
        (5, 7, "Intel Cascade Lake"),
        (10, 11, "Intel Cooper Lake"),
    ),
    (_INTEL, 6, 158): ((9, 9, "Intel Skylake/Kaby Lake E3"), (10, 13, "Intel Coffee Lake E")),
}
# Arm's own Neoverse N1 core, in Ampere's Altra and in AWS Graviton2.
_BY_ARM_PART: Final = {(_ARM_LTD, 0xD0C): "Ampere Altra"}


class Processor(msgspec.Struct, frozen=True, kw_only=True):
    """What the kernel says of the first processor; ``None`` where it says nothing.

    ``siblings`` are the threads of its package, as far as this machine sees them;
    ``virtual`` tells that a hypervisor shows it.
    """

    vendor: str | None = None
    family: int | None = None
    model: int | None = None
    stepping: int | None = None
    name: str | None = None
    arm_part: int | None = None
    siblings: int | None = None
    virtual: bool = False


def parse_cpuinfo(text: str) -> Processor:
    """Read the first processor's entry of ``/proc/cpuinfo``; unknown fields are ``None``."""
    fields: dict[str, str] = {}
    for line in text.splitlines():
        key, colon, value = line.partition(":")
        if colon:
            fields.setdefault(key.strip().lower(), value.strip())
    return Processor(
        vendor=fields.get("vendor_id") or fields.get("cpu implementer"),
        family=_number(fields.get("cpu family")),
        model=_number(fields.get("model")),
        stepping=_number(fields.get("stepping")),
        name=fields.get("model name") or None,
        arm_part=_number(fields.get("cpu part")),
        siblings=_number(fields.get("siblings")),
        virtual="hypervisor" in fields.get("flags", "").split(),
    )


def this_processor(path: Path = _CPUINFO) -> Processor:
    """Return this machine's processor; all fields ``None`` where the file is missing."""
    try:
        with path.open("rb") as stream:
            return parse_cpuinfo(stream.read(_HEAD_BYTES).decode("utf-8", "replace"))
    except OSError:
        return Processor()


def curve_for(processor: Processor) -> CpuCurve:
    """Return the power curve of a processor's family, else the class default.

    The class default has ``known=False``: whoever uses it says so.
    """
    row = row_for(processor)
    return _curve(row or DEFAULT, known=row is not None)


def row_for(processor: Processor) -> Row | None:
    """Return the table's row of a processor's family; ``None`` if it has none."""
    name = _family_by_number(processor)
    row = next((r for r in ROWS if r.family == name), None)
    if row is None and processor.name:
        row = next((r for r in ROWS if re.search(r.pattern, processor.name or "")), None)
    return row


def _family_by_number(cpu: Processor) -> str | None:
    if cpu.vendor is None:
        return None
    if cpu.arm_part is not None:
        return _BY_ARM_PART.get((cpu.vendor, cpu.arm_part))
    if cpu.family is None or cpu.model is None:
        return None
    # A name that a client processor shares with no server row still has numbers of
    # a server's sibling (same cores, other platform): the row's spread holds it.
    by_stepping = _BY_STEPPING.get((cpu.vendor, cpu.family, cpu.model))
    if by_stepping is not None and cpu.stepping is not None:
        return _in_ranges(cpu.stepping, by_stepping)
    return _in_ranges(cpu.model, _BY_NUMBER.get((cpu.vendor, cpu.family), ()))


def _in_ranges(number: int, ranges: tuple[tuple[int, int, str], ...]) -> str | None:
    return next((row for first, last, row in ranges if first <= number <= last), None)


def _curve(row: Row, *, known: bool) -> CpuCurve:
    return CpuCurve(
        family=row.family,
        idle_w_per_thread=row.idle_w,
        full_w_per_thread=row.full_w,
        spread=row.spread,
        n=row.n,
        source=SOURCE,
        known=known,
    )


def _number(text: str | None) -> int | None:
    if text is None:
        return None
    try:
        return int(text, 0)
    except ValueError:
        return None
