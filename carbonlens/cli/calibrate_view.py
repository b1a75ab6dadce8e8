"""How calibrations are printed: what was found, and what it changes."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Sequence
from pathlib import Path

from carbonlens.app.calibrate import CpuOutcome, Listed
from carbonlens.app.calibrate_fit import DeviceOutcome
from carbonlens.cli import output
from carbonlens.domain.counting import counted
from carbonlens.domain.estimate import Estimate
from carbonlens.domain.units import Z_95
from carbonlens.metering.calibration_files import Stored, day
from carbonlens.signals.cpu_curve import TWO_POINTS_SPREAD
from carbonlens.signals.cpu_model import CpuCurve

_SCHEMA = "carbonlens/calibrate/1"
_WHERE = {"it": "the whole machine at the plug", "device": "the CPU packages", "facility": "the building"}


def print_cpu(outcome: CpuOutcome, *, json: bool) -> None:
    """Print idle and full power of the machine, and the curve before and after."""
    measured = outcome.measured
    if json:
        output.print_json(
            {
                "schema": _SCHEMA,
                "device": "cpu",
                "meter": measured.meter,
                "boundary": measured.boundary,
                "idle_w": measured.idle_w.as_json(),
                "full_w": measured.full_w.as_json(),
                "threads": measured.threads,
                "loads": measured.loads,
                "before": _curve_json(outcome.before),
                "after": _curve_json(outcome.after),
                "file": str(outcome.path),
                "findings": outcome.findings,
            }
        )
        return
    output.say(f"power of {_WHERE[measured.boundary]}, against {measured.meter}")
    output.say(f"idle    {_watts(measured.idle_w)}")
    output.say(f"full    {_watts(measured.full_w)}, {measured.threads} threads")
    output.say(f"before  {_curve(outcome.before)}")
    output.say(f"now     {_curve(outcome.after)}")
    for line in textwrap.wrap(f"width   {_why_wide(outcome)}", output.width(), subsequent_indent=" " * 8):
        output.say(line)
    output.say_words(f"kept in {outcome.path}: the CPU model uses it from the next run on")
    output.print_findings(outcome.findings)


def print_device(outcome: DeviceOutcome, *, json: bool) -> None:
    """Print gain, offset and lag, the range they hold for, and what they change."""
    found, stored = outcome.calibration, outcome.stored
    examples = [(told, found.correct([told])[0]) for told in found.read_w]
    if json:
        output.print_json(
            {
                "schema": _SCHEMA,
                "device": stored.device,
                "sensor": stored.sensor,
                "meter": stored.meter,
                "run_id": stored.run_id,
                "taken_us": stored.taken_us,
                "gain": found.gain.as_json(),
                "offset_w": found.offset_w.as_json(),
                "lag_us": found.lag_us.as_json(),
                "range_w": found.read_w,
                "corrected_w": [after for _, after in examples],
                "explained": found.explained,
                "residual_w": found.residual_w,
                "updates": found.n,
                "file": str(outcome.path),
                "findings": outcome.findings,
            }
        )
        return
    lag = found.lag_us.scale(1e-3, "ms")
    run = f" in run {stored.run_id}" if stored.run_id else ""
    output.say_words(
        f"{stored.device} ({stored.sensor}) against {stored.meter}{run}, {counted(found.n, 'update')}"
    )
    output.say(f"gain    {_signed(found.gain, '.4f')}")
    output.say(f"offset  {_signed(found.offset_w, '.2f')} W")
    output.say(f"lag     {_signed(lag, '.0f')} ms")
    output.say(
        f"range   {found.read_w[0]:.4g} to {found.read_w[1]:.4g} W as read, {found.explained:.1%} explained"
    )
    changed = ", ".join(
        f"{told:.4g} W read is {after:.4g} W" for told, after in examples if after is not None
    )
    output.say(f"so      {changed}")
    used = "used from the next run on" if outcome.is_here else "used once such a device is read here"
    output.say_words(f"kept in {outcome.path}: {used}")
    output.print_findings(outcome.findings)


def print_list(listed: Sequence[Listed], *, json: bool) -> None:
    """Print what is calibrated, a line a device."""
    if json:
        output.print_json(
            {
                "schema": "carbonlens/calibrations/1",
                "calibrations": [
                    {
                        "file": str(each.path),
                        "here": each.here,
                        "calibration": each.stored,
                        "findings": each.findings,
                    }
                    for each in listed
                ],
            }
        )
        return
    rows = [_row(each.stored, each.here) for each in listed if each.stored is not None]
    if rows:
        for line in output.table(["device", "calibrated", "against", "result"], rows, left=4):
            output.say(line)
    else:
        output.say("nothing is calibrated")
    output.print_findings([finding for each in listed for finding in each.findings])


def print_removed(device: str, path: Path, *, json: bool) -> None:
    """Say which file is gone."""
    if json:
        output.print_json({"schema": _SCHEMA, "device": device, "removed": str(path)})
    else:
        output.say(f"removed {path}")


def _row(stored: Stored, here: bool) -> list[str]:
    what = [f"{c.boundary} {c.idle_w.value:.4g} to {c.full_w.value:.4g} W" for c in stored.curves]
    if stored.calibration is not None:
        what.append(f"gain {_signed(stored.calibration.gain, '.4f')}")
    name = stored.device if here else f"{stored.device} (elsewhere)"
    return [name, day(stored.taken_us), output.clip(stored.meter, 24), ", ".join(what)]


def _watts(power: Estimate) -> str:
    if power.value is None or power.low is None or power.high is None:
        return "unknown"
    return f"{power.value:.4g} W ({power.low:.4g} to {power.high:.4g})"


def _signed(value: Estimate, style: str) -> str:
    if value.value is None:
        return "unknown"
    return f"{value.value:{style}} +- {Z_95 * value.u_total:{style}}"


def _curve(curve: CpuCurve) -> str:
    factor = math.exp(Z_95 * curve.relative_sigma)
    return f"{curve.full_w_per_thread:.3g} W a busy thread, x/: {factor:.2f} ({curve.family})"


def _why_wide(outcome: CpuOutcome) -> str:
    """Say what of the new width is the meter's: the rest no better meter takes away."""
    factor = math.exp(Z_95 * TWO_POINTS_SPREAD)
    gain = "narrower" if outcome.after.relative_sigma < outcome.before.relative_sigma else "no narrower"
    return (
        f"The figure is now this machine's own, and {gain}: two points leave x/: {factor:.2f} however good "
        "the meter, because nothing tells the power between idle and full, nor that of unlike work. "
        "A meter that is declared and read during each run is as good as the meter itself."
    )


def _curve_json(curve: CpuCurve) -> dict[str, object]:
    return {
        "family": curve.family,
        "idle_w_per_thread": curve.idle_w_per_thread,
        "full_w_per_thread": curve.full_w_per_thread,
        "factor_95": math.exp(Z_95 * curve.relative_sigma),
        "source": curve.source,
        "measured": curve.measured,
    }
