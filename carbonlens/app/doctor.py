"""Use case: say what can be measured here, why not better, and one safe mend for each.

Nothing is changed, no administrator's right is asked for, and nothing is sent anywhere;
a declared meter or controller is asked, because it was declared.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from carbonlens._version import __version__
from carbonlens.app.doctor_parts import parts_of, total_of
from carbonlens.app.doctor_probes import Look, look
from carbonlens.domain.sources import Sources
from carbonlens.inventory.sources_file import find
from carbonlens.ledger.location import locate
from carbonlens.metering.allowance import allowance
from carbonlens.metering.cpu_families import curve_for, this_processor
from carbonlens.metering.devices.visibility import HIP, ROCM, VARIABLES
from carbonlens.metering.sensors.discovery import HERE, REPLAY, Place, calibrations_of, head_of
from carbonlens.reporting.doctor import Answering, Diagnosis, Machine, Storage

_DECLARED: Final = ("external", "datasheet", "ipmi", "redfish", "powermetrics")
_REQUIRED: Final = re.compile(r"""^([A-Za-z0-9._-]+).*;\s*extra\s*==\s*["']([\w-]+)["']""")


def examine(*, ledger: str | Path | None = None, place: Place = HERE) -> Diagnosis:
    """Look at this machine; takes some seconds where declared meters are slow.

    Args:
        ledger: The ledger's folder, else as ``ledger.location.locate`` finds it.
        place: Where to look.

    Raises:
        ConfigError: If the sources file, or the ledger's setting, is malformed.
    """
    ledger_folder = locate(ledger)
    declared = find(Path.cwd(), place.variables)
    seen = look(declared.sources, place)
    machine = _machine(seen, place)
    parts = parts_of(seen, place.root, machine)
    return Diagnosis(
        version=__version__,
        parts=parts,
        total=total_of(parts),
        machine=machine,
        storage=_storage(ledger_folder),
        extras=missing_packages(),
        calibrations=_calibrations(place),
        sources_file=None if declared.file is None else str(declared.file),
        declared=_answers(seen, declared.sources),
        replay=place.variables.get(REPLAY) or None,
        findings=seen.findings,
    )


def _machine(seen: Look, place: Place) -> Machine:
    from carbonlens.app.cpu_power import tdp_of

    processor = this_processor(place.root / "proc" / "cpuinfo")
    curve = curve_for(processor)
    uname = os.uname()
    shown = dict.fromkeys((*VARIABLES, ROCM, *HIP))
    # Only a family that is not known needs the table, whose import takes a second.
    match = None if curve.known else tdp_of(processor.name)
    return Machine(
        system=f"{uname.sysname} {uname.release} {uname.machine}",
        cpu=processor.name,
        threads=os.cpu_count(),
        virtual=processor.virtual,
        cpu_family=curve.family if curve.known else None,
        tdp_w=None if match is None else match.watts,
        visibility={name: place.variables[name] for name in shown if name in place.variables},
        gpus_present=None if seen.nvidia is None else seen.nvidia.present,
        gpus_used=None if seen.nvidia is None else len(seen.nvidia.gpus),
        allowance=allowance(place.root),
    )


def _storage(ledger: Path) -> Storage:
    from carbonlens.metering.session import journal_folder

    journal, fault = None, None
    try:
        journal = journal_folder()
    except OSError as error:
        fault = error.strerror or str(error)
    return Storage(
        ledger=str(ledger),
        ledger_exists=ledger.is_dir(),
        ledger_fault=_unwritable(ledger),
        journal=None if journal is None else str(journal),
        journal_fault=fault or (None if journal is None else _unwritable(journal)),
    )


def _unwritable(folder: Path) -> str | None:
    """Return why a folder, or the one it would be made in, cannot be written."""
    there = next((f for f in (folder, *folder.parents) if f.exists()), Path("/"))
    if not there.is_dir():
        return f"{there} is no folder"
    return None if os.access(there, os.W_OK | os.X_OK) else f"{there} cannot be written"


def missing_packages() -> Mapping[str, tuple[str, ...]]:
    """Return the packages of each extra that are not installed; nothing is imported."""
    from importlib import metadata

    try:
        required = metadata.requires("carbonlens") or []
    except metadata.PackageNotFoundError:
        return {}
    found: dict[str, list[str]] = {}
    for text in required:
        named = _REQUIRED.match(text)
        if named is None or named[1].lower() == "carbonlens":
            continue
        missing = found.setdefault(named[2], [])
        try:
            metadata.version(named[1])
        except metadata.PackageNotFoundError:
            missing.append(named[1])
    # ``all`` names the others again.
    return {extra: tuple(packages) for extra, packages in found.items() if extra != "all"}


def _calibrations(place: Place) -> tuple[str, ...]:
    folder = calibrations_of(place)
    if folder is None:
        return ()
    from carbonlens.metering.calibration_files import against, kept

    words = []
    for path, found in kept(folder=folder):
        stored = found.stored
        if stored is None:
            words.append(f"{path.name} cannot be read")
        else:
            words.append(f"{stored.device} {against(stored.taken_us, stored.meter)}")
    return tuple(words)


def _answers(seen: Look, sources: Sources) -> tuple[Answering, ...]:
    answers = []
    for one in seen.seen:
        if one.info is None or one.probe is None or head_of(one.info) not in _DECLARED:
            continue
        said = one.probe.found if one.probe.usable else one.probe.reason or "it cannot be read"
        answers.append(Answering(name=one.name, answers=one.probe.usable, said=said, mend=one.probe.mend))
    answers += [
        Answering(name=name, answers=False, said="left out, as declared", left_out=True)
        for name in dict.fromkeys(sources.leave_out)
    ]
    return tuple(answers)
