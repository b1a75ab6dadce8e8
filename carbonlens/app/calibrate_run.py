"""Use case: calibrate a device against a meter that was read in the same run, from the run's trace."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple

import msgspec

from carbonlens.app.calibrate import LATEST
from carbonlens.app.calibrate_fit import (
    DeviceOutcome,
    DeviceRequest,
    Origin,
    check_supply,
    fitted,
    kept,
    matching,
    same_supply,
)
from carbonlens.domain.grades import COUNTER_GAIN_95
from carbonlens.domain.run import Run
from carbonlens.domain.units import Z_95
from carbonlens.errors import InputFileError, MeasurementError, SelectionError, UsageError
from carbonlens.metering.calibration_files import is_one_everywhere
from carbonlens.metering.calibrations import driver_version
from carbonlens.metering.host import this_host
from carbonlens.metering.tally import signal_sensor
from carbonlens.metering.trace_file import Column, RunTrace, read_run_trace, sha256_of
from carbonlens.metering.trace_pair import Trace, look_s
from carbonlens.metering.trace_power import (
    device_power,
    in_blocks,
    is_reference,
    is_void,
    meter_name,
    meter_power,
    spacing_us,
    tells_power,
)
from carbonlens.metering.trace_sealing import CODE as NOT_TRACED
from carbonlens.signals.calibrate import Calibration
from carbonlens.signals.sensor import GAP_PERIODS, Sensor

_AGAIN: Final = "run the work again with a trace: carbonlens run --trace FILE -- CMD"
_BLOCK_LOOKS: Final = 10
_LEAST_IN_BLOCK: Final = 3
_FILES: Final = (".csv", ".gz", ".txt")


class Reference(NamedTuple):
    """A meter in a trace.

    Attributes:
        name: As the user declared it, or ``NAME:RAIL``.
        places: Of its columns, which are summed.
    """

    name: str
    places: tuple[int, ...]


def calibrate_against_run(request: DeviceRequest) -> DeviceOutcome:
    """Fit gain, offset and lag of a device's power readings in a run, and keep them.

    Args:
        request: Device, and the run or its trace.

    Raises:
        SelectionError: If the run, the device or the meter is not there, or more than one is.
        InputFileError: If the trace is not there, or is not what the run left.
        UsageError: If the meter tells of more than the device, or the device is of another machine.
        MeasurementError: If no calibration comes of them.
        UnwritableError: If it cannot be kept.
    """
    against = request.against or LATEST
    file = _file_of(against, request.ledger)
    trace = read_run_trace(file)
    device = _device(request.device, trace, file)
    channel = trace.columns[device].channel
    _check_machine(channel.device, trace, file)
    meter = _meter(request.meter, trace, device, file)
    info, metered = trace.columns[device].sensor, trace.columns[meter.places[0]].sensor
    check_supply(meter.name, metered.channels[0].component, channel)
    if is_void(trace, meter.places):
        raise MeasurementError(
            "the clock of the meter was at fault in this run, so that nothing it told is true",
            where=meter.name,
            mend="have it print its own monotonic time in microseconds, and run the work again",
        )
    told = (device_power(trace, device), meter_power(trace, meter.places))
    known = signal_sensor(info, channel, look_s(info))
    # Looked at more seldom than it has new readings, it is known no better than that.
    period_us = max(known.update_period_us or 0.0, spacing_us(told[0]) or 0.0) or None
    is_stated = metered.width_known or request.meter_95 is not None
    accuracy_u = COUNTER_GAIN_95 / Z_95 if not metered.width_known else metered.gain_sigma
    found = _line(
        told,
        msgspec.structs.replace(known, update_period_us=period_us),
        accuracy_u if request.meter_95 is None else request.meter_95 / Z_95,
    )
    origin = Origin(
        sensor=info.name,
        meter=meter.name,
        is_stated=is_stated,
        # The driver of another boot, or of another machine, may have been another one.
        driver=driver_version(channel.device) if trace.head.host_id == this_host().host_id else None,
        taken_us=trace.head.start_us,
        machine=trace.head.machine_id,
        run_id=trace.head.run_id,
    )
    outcome = kept(found, channel.device, origin)
    is_here = trace.head.machine_id in {None, this_host().machine}
    return msgspec.structs.replace(outcome, is_here=is_here)


def _line(told: tuple[Trace, Trace], sensor: Sensor, meter_u: float) -> Calibration:
    """Return lag and line, the line from means over blocks of many of the meter's readings.

    The meter is known by its means between two looks alone. Around each step of the load
    one of them holds both powers, and the device's reading of that time holds one: a line
    through single readings would be too flat (by 0.6 % for steps of 5 s). Over blocks both
    are means over the same time.
    """
    found = fitted(told, sensor, meter_u)
    device, meter = told
    block_us = _BLOCK_LOOKS * (spacing_us(meter) or 0.0)
    if (spacing_us(device) or 0.0) * _LEAST_IN_BLOCK > block_us:
        return found
    means = in_blocks(device, block_us, earlier_us=found.lag_us.value or 0.0)
    # Held no longer than until the next block: its readings may have failed.
    of_blocks = msgspec.structs.replace(sensor, update_period_us=1.2 * block_us / GAP_PERIODS)
    line = fitted((means, meter), of_blocks, meter_u)
    return msgspec.structs.replace(
        found,
        gain=line.gain,
        offset_w=line.offset_w,
        level_w=line.level_w,
        pivot_w=line.pivot_w,
        n=line.n,
    )


def _file_of(against: str, ledger: Path | None) -> Path:
    """Return the trace that is meant: a file, or that of a run, unchanged since."""
    path = Path(against)
    if path.exists() or os.sep in against or against.endswith(_FILES):
        return path
    run = _latest(ledger) if against.lower() == LATEST else _run(against, ledger)
    if run.trace is None:
        raise SelectionError(f"the run {run.run_id} keeps no trace{_why_none(run)}", mend=_AGAIN)
    path = Path(run.trace.file)
    try:
        sha256 = sha256_of(path)
    except OSError as error:
        raise InputFileError(
            f"the trace of the run {run.run_id} cannot be read ({error.strerror or error})",
            where=str(path),
            mend="work in the folder that the run was started in, or give the file: --against FILE",
        ) from error
    if sha256 != run.trace.sha256:
        raise InputFileError(
            f"the trace of the run {run.run_id} has changed since: its SHA-256 begins with "
            f"{sha256[:12]}, not {run.trace.sha256[:12]}",
            where=str(path),
            mend="restore it, or run the work again with a trace of another name",
        )
    return path


def _run(text: str, ledger: Path | None) -> Run:
    from carbonlens.app.runs import find_run

    return find_run(text, ledger=ledger)


def _latest(ledger: Path | None) -> Run:
    """Return the run that began last among those with a trace."""
    from carbonlens.app.runs import list_runs

    traced = [r for r in list_runs(ledger=ledger).runs if r.trace is not None]
    if not traced:
        raise SelectionError("no run here keeps a trace", where="--against latest", mend=_AGAIN)
    return max(traced, key=lambda r: r.start_us or 0)


def _why_none(run: Run) -> str:
    if run.status == "running":
        return ": it is made when the run ends"
    said = next((f.message for f in run.findings if f.code == NOT_TRACED), None)
    return f" ({said})" if said else ": its record holds energy, not the power that was read"


def _device(name: str, trace: RunTrace, file: Path) -> int:
    """Return the place of the device's column; power of the moment before a mean."""
    places = [i for i, column in enumerate(trace.columns) if tells_power(column) and not is_reference(column)]
    # Power now has no window of its own to be told apart from the lag.
    places.sort(key=lambda i: trace.columns[i].sensor.kind != "instant")
    channels = [trace.columns[i].channel for i in places]
    matches = matching(name, channels)
    if len(matches) != 1:
        known = ", ".join(dict.fromkeys(c.device for c in channels)) or "none"
        raise SelectionError(
            f"{len(matches) or 'no'} device{'s' if len(matches) > 1 else ''} {name!r} whose power was read "
            f"in the run (there: {known})",
            where=str(file),
            mend="name one of them, or run the work again where its power can be read (carbonlens doctor)",
        )
    return next(i for i in places if trace.columns[i].channel.device == matches[0])


def _check_machine(device: str, trace: RunTrace, file: Path) -> None:
    machine = trace.head.machine_id
    if not is_one_everywhere(device) and machine not in {None, this_host().machine}:
        raise UsageError(
            f"the run is of another machine, and here {device} is another device",
            where=str(file),
            mend="calibrate on the machine that the run was on",
        )


def _meter(wanted: str | None, trace: RunTrace, device: int, file: Path) -> Reference:
    meters = _meters(trace.columns, device)
    if wanted is not None:
        plain = wanted.removeprefix("external:")
        if plain in meters:
            return Reference(plain, meters[plain])
        rails = {trace.columns[i].channel.device: i for places in meters.values() for i in places}
        if plain in rails:
            return Reference(plain, (rails[plain],))
    found = list(meters)
    if wanted is None and len(found) > 1:
        component = trace.columns[device].channel.component
        found = [m for m in found if same_supply(_component(trace, meters[m]), component)] or found
    if wanted is None and len(found) == 1:
        return Reference(found[0], meters[found[0]])
    if not meters:
        raise SelectionError(
            "no external meter was read in the run",
            where=str(file),
            mend="declare one in the sources file (docs/measuring.md), and run the work again with --trace",
        )
    if wanted is not None:
        raise SelectionError(
            f"no meter {wanted!r} was read in the run (there: {', '.join(meters)})",
            where=str(file),
            mend="name one of them with --meter",
        )
    raise SelectionError(
        f"{len(found)} meters were read in the run: {', '.join(found)}",
        where=str(file),
        mend="name the one of the device's supply: --meter NAME",
    )


def _component(trace: RunTrace, places: Sequence[int]) -> str:
    return trace.columns[places[0]].channel.component


def _meters(columns: Sequence[Column], device: int) -> Mapping[str, tuple[int, ...]]:
    """Return the meters of a trace and the places of their columns."""
    found: dict[str, tuple[int, ...]] = {}
    for i, column in enumerate(columns):
        if i != device and is_reference(column):
            found[meter_name(column)] = (*found.get(meter_name(column), ()), i)
    return found
