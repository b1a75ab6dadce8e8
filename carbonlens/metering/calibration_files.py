"""Calibration files: one a device, below the state folder of this user.

A UUID is one device wherever it is; a name such as ``package-0`` is one device of one
machine, and the CPU's curve belongs to the machine, so their files bear its pseudonym:
a home directory may be shared. A file that cannot be read is a Finding, not an error.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, NamedTuple

import msgspec

from carbonlens._version import __version__
from carbonlens.domain.decoding import decode_json
from carbonlens.domain.estimate import Estimate
from carbonlens.domain.finding import Finding
from carbonlens.domain.identity import sha256_hex
from carbonlens.domain.units import US_PER_S, Boundary
from carbonlens.errors import UnwritableError
from carbonlens.ledger.location import state_dir
from carbonlens.metering.host import this_host
from carbonlens.metering.plausible import MACHINE_W
from carbonlens.signals.calibrate import Calibration
from carbonlens.signals.cpu_curve import TWO_POINTS_SPREAD
from carbonlens.signals.cpu_model import CpuCurve

FOLDER: Final = "calibrations"
CPU: Final = "cpu"
"""Device name of the machine's own curves."""

_SUFFIX: Final = ".json"
_SCHEMA: Final = "carbonlens/calibration/1"
_LATEST_US: Final = 4_102_444_800 * US_PER_S
_UUID: Final = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", re.IGNORECASE)


class MachineCurve(msgspec.Struct, frozen=True, kw_only=True):
    """Idle and full power of this machine, measured.

    Attributes:
        boundary: ``device`` by a counter of the packages, ``it`` by a meter at the plug.
        idle_w, full_w: Of the whole machine, carried to no load and to full load.
        threads: Hardware threads it has.
        loads: Shares of the threads that were busy at the two points; ``None`` where
            the user gave the watts.
        meter: What measured it.
        taken_us: When, UTC.
    """

    boundary: Boundary
    idle_w: Estimate
    full_w: Estimate
    threads: int
    meter: str
    taken_us: int
    loads: tuple[float, float] | None = None

    def curve(self, machine: str) -> CpuCurve:
        """Return watts a thread; its spread is that of a two-point curve and of the meter.

        Args:
            machine: Pseudonym of the machine; part of the error source's name.
        """
        idle_w, full_w = self.idle_w.value or 0.0, self.full_w.value or 0.0
        return CpuCurve(
            family=f"machine {machine[:8]}" + (" (package)" if self.boundary == "device" else ""),
            idle_w_per_thread=float(f"{idle_w / self.threads:.6g}"),
            full_w_per_thread=float(f"{full_w / self.threads:.6g}"),
            spread=math.hypot(TWO_POINTS_SPREAD, self.full_w.u_total / full_w),
            n=2,
            source=against(self.taken_us, self.meter),
            measured=True,
        )

    @property
    def makes_sense(self) -> bool:
        """Whether full power lies above idle power, both above nothing and at most a machine's."""
        idle_w, full_w = self.idle_w.value, self.full_w.value
        if idle_w is None or full_w is None:
            return False
        return self.threads > 0 and 0 < idle_w < full_w <= MACHINE_W


class Stored(msgspec.Struct, frozen=True, kw_only=True):
    """One device's calibration as it is kept.

    Attributes:
        device: Its id; ``cpu`` for the machine's own curves.
        machine: Pseudonym of the machine it was made on.
        meter: What it was compared with.
        taken_us: When, UTC.
        sensor: Name of the sensor that was calibrated.
        driver: Version of the driver then; ``None`` where there is none.
        calibration: Line and lag, of a device whose power is read.
        curves: Of the machine, at most one a boundary.
        run_id: The run whose trace it was made from; ``None`` where it was measured for itself.
    """

    device: str
    machine: str
    meter: str
    taken_us: int
    sensor: str = "cpu_model"
    driver: str | None = None
    calibration: Calibration | None = None
    curves: tuple[MachineCurve, ...] = ()
    carbonlens: str = __version__
    schema: str = _SCHEMA
    run_id: str | None = None


class Found(NamedTuple):
    """What a file held: a calibration, or why there is none; both empty without a file."""

    stored: Stored | None = None
    finding: Finding | None = None


def calibrations_folder() -> Path:
    """Return where this user's calibrations lie; it need not exist."""
    return state_dir() / FOLDER


def read(device: str, *, folder: Path | None = None) -> Found:
    """Return what is kept of a device; ``cpu`` is this machine's curves.

    Args:
        device: Its id.
        folder: Where calibrations lie; this user's by default.
    """
    return _read(path_of(device, folder=folder))


def path_of(device: str, *, folder: Path | None = None) -> Path:
    """Return the file of a device of this machine; it need not exist.

    Args:
        device: Its id.
        folder: Where calibrations lie; this user's by default.
    """
    return (folder or calibrations_folder()) / _file_name(device)


def store(stored: Stored, *, folder: Path | None = None) -> Path:
    """Keep a calibration in place of the device's former one; curves of another boundary stay.

    Args:
        stored: What to keep.
        folder: Where calibrations lie; this user's by default.

    Raises:
        UnwritableError: If it cannot be written.
    """
    place = folder or calibrations_folder()
    path = path_of(stored.device, folder=place)
    former = _read(path).stored
    if former is not None and stored.curves:
        mine = {c.boundary for c in stored.curves}
        kept = tuple(c for c in former.curves if c.boundary not in mine)
        stored = msgspec.structs.replace(stored, curves=(*stored.curves, *kept))
    fresh = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        place.mkdir(parents=True, exist_ok=True, mode=0o700)
        with fresh.open("wb") as stream:
            stream.write(msgspec.json.format(msgspec.json.encode(stored)) + b"\n")
            stream.flush()
            os.fsync(stream.fileno())
        fresh.replace(path)
    except OSError as error:
        with suppress(OSError):
            fresh.unlink()
        raise UnwritableError(
            f"cannot be written ({error.strerror or error})",
            where=str(path),
            mend="make the state folder writable (XDG_STATE_HOME)",
        ) from error
    return path


def kept(*, folder: Path | None = None) -> Iterator[tuple[Path, Found]]:
    """Yield every file and what it holds.

    Args:
        folder: Where calibrations lie; this user's by default.
    """
    place = folder or calibrations_folder()
    try:
        names = sorted(e.name for e in os.scandir(place) if e.name.endswith(_SUFFIX) and e.name[0] != ".")
    except OSError:
        return
    for name in names:
        yield place / name, _read(place / name)


def remove(path: Path) -> None:
    """Delete a calibration's file.

    Raises:
        UnwritableError: If it cannot be deleted.
    """
    try:
        path.unlink()
    except OSError as error:
        raise UnwritableError(
            f"cannot be deleted ({error.strerror or error})",
            where=str(path),
            mend="make the state folder writable",
        ) from error


def against(taken_us: int, meter: str, run_id: str | None = None) -> str:
    """Return how a calibration is named in a method, for example in a run's provenance.

    Args:
        taken_us: When it was made, UTC.
        meter: What it was compared with.
        run_id: The run whose trace it was made from; its end is named, as `runs` lists it.
    """
    said = f"calibrated {day(taken_us)} against {meter}"
    return said if run_id is None else f"{said} in run {run_id[-12:]}"


def day(taken_us: int) -> str:
    """Return the UTC day of a calibration, as printed.

    Args:
        taken_us: When it was made; between ``is_a_time``'s bounds.
    """
    return f"{datetime.fromtimestamp(taken_us / US_PER_S, tz=UTC):%Y-%m-%d}"


def is_a_time(taken_us: int) -> bool:
    """Tell whether a calibration can have been made then: between 1970 and 2100."""
    return 0 <= taken_us < _LATEST_US


def _read(path: Path) -> Found:
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        return Found()
    except OSError as error:
        return Found(finding=_damaged(path, error.strerror or str(error)))
    try:
        stored = decode_json(content, Stored)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        return Found(finding=_damaged(path, str(error)))
    if stored.schema != _SCHEMA:
        return Found(finding=_damaged(path, f"it is of schema {stored.schema}"))
    if not all(map(is_a_time, (stored.taken_us, *(curve.taken_us for curve in stored.curves)))):
        return Found(finding=_damaged(path, "the time it was made at cannot be true"))
    if not all(curve.makes_sense for curve in stored.curves):
        return Found(finding=_damaged(path, "its idle and full power cannot be true"))
    return Found(stored)


def _damaged(path: Path, reason: str) -> Finding:
    return Finding(
        code="CL153",
        severity="warning",
        message=f"a calibration cannot be read and is not used: {reason}",
        file=str(path),
        mend="delete the file, or calibrate again",
    )


def is_one_everywhere(device: str) -> bool:
    """Tell whether a device's id is its own on whatever machine it is: it holds a UUID."""
    return _UUID.search(device) is not None


def _file_name(device: str) -> str:
    plain = re.sub(r"[^A-Za-z0-9._-]", "_", device).lstrip(".")
    place = "" if is_one_everywhere(device) else f"-{this_host().machine}"
    # Two names that differ in nothing but what was replaced are still two devices.
    if plain != device:
        plain += f"-{sha256_hex(device.encode())[:8]}"
    return f"{plain}{place}{_SUFFIX}"
