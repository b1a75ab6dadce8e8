"""IPMI: the power that a server's management controller tells by ``ipmitool`` (grade C).

Only the instantaneous reading is used. The "average over sample period" beside it is
in practice the mean since the statistics were last reset, days or weeks ago, however
short a sampling period is printed.
"""

from __future__ import annotations

import math
import os
import re
import select
import signal
import subprocess
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Final

from carbonlens.domain.grades import COUNTER_GAIN_95
from carbonlens.domain.units import Z_95
from carbonlens.metering.process_time import leave_out, wait_left_out
from carbonlens.metering.sensors import Channel, Probe, SensorInfo
from carbonlens.metering.sensors.poll import PERIOD_S, Poll

COMMAND: Final = ("ipmitool", "dcmi", "power", "reading")
TIMEOUT_S: Final = 5.0

_READING: Final = re.compile(r"Instantaneous power reading:\s*([\d.]+)\s*Watts", re.IGNORECASE)
_STATE: Final = re.compile(r"Power reading state is:\s*(\w+)", re.IGNORECASE)
_TEXT_LENGTH: Final = 120
_CHUNK: Final = 65536
_WAIT_STEP_S: Final = 0.005
_MS_PER_S: Final = 1000

Runner = Callable[[Sequence[str]], str]
"""Runs a program and returns what it printed; raises OSError if it fails."""


def parse_reading(text: str) -> float | None:
    """Return the watts of ``ipmitool dcmi power reading``; ``None`` if it tells none.

    Nought is no power of a server that runs this program: the controller has not
    filled the field in. Nor is a figure beside the state ``deactivated`` one, by the
    DCMI specification (some controllers never set the state; their Redfish serves).
    """
    reading, state = _READING.search(text), _STATE.search(text)
    if reading is None or (state is not None and state[1].lower() not in {"activated", "active"}):
        return None
    try:
        watts = float(reading[1])
    except ValueError:
        return None
    return watts if math.isfinite(watts) and watts > 0 else None


def run_program(command: Sequence[str], timeout_s: float = TIMEOUT_S) -> str:
    """Run a program with a time limit and return what it printed. Its CPU time is no part of the work.

    Args:
        command: Program and arguments; no shell reads them.
        timeout_s: It and what it started are killed after that time.

    Raises:
        OSError: If it cannot be started, fails, or takes longer.
    """
    deadline_s = time.monotonic() + timeout_s
    process = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        bufsize=0,
        start_new_session=True,
    )
    leave_out(process.pid)
    try:
        out, err = _all_of(process, deadline_s)
    except BaseException:  # put in order, then raised again
        deadline_s = 0.0  # nobody reads on: it is ended
        raise
    finally:
        code, was_ended = _end_of(process, deadline_s)
    if code == -signal.SIGKILL and was_ended:
        raise TimeoutError(f"{command[0]} gave no answer in {timeout_s:g} s")
    if code != 0:
        said = err.strip().splitlines() or ["it said nothing"]
        raise OSError(f"{command[0]} failed: {said[0][:_TEXT_LENGTH]}")
    return out


def _end_of(process: subprocess.Popen[bytes], deadline_s: float) -> tuple[int, bool]:
    """Wait for a program; return its exit code, and whether it was killed for being late."""
    was_ended = False
    while (code := wait_left_out(process.pid)) is None:
        # What was killed is waited for by the next look, which may come before the kernel's.
        if was_ended or time.monotonic() < deadline_s:
            time.sleep(_WAIT_STEP_S)
            continue
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
        was_ended = True
    process.returncode = code
    return code, was_ended


def _all_of(process: subprocess.Popen[bytes], deadline_s: float) -> tuple[str, str]:
    """Return what a program prints on both streams until it closes them, or until a time."""
    found: dict[int, bytes] = {}
    streams = [s for s in (process.stdout, process.stderr) if s is not None]
    waiting = {s.fileno() for s in streams}
    # Not select(2), which takes no handle above 1,023: programs may have many files open.
    ready = select.poll()
    for handle in waiting:
        ready.register(handle, select.POLLIN)
    try:
        while waiting and (left_s := deadline_s - time.monotonic()) > 0:
            for handle, _ in ready.poll(left_s * _MS_PER_S):
                data = os.read(handle, _CHUNK)
                found[handle] = found.get(handle, b"") + data
                if not data:
                    ready.unregister(handle)
                    waiting.discard(handle)
        out, err = (found.get(s.fileno(), b"").decode("utf-8", "replace") for s in streams)
    finally:
        for stream in streams:
            stream.close()
    return out, err


def controller_info(name: str, how: str) -> SensorInfo:
    """Describe the power readings of a management controller.

    Args:
        name: Of the sensor.
        how: How it is asked, as printed.
    """
    return SensorInfo(
        name=name,
        kind="instant",
        unit="W",
        scope="wall",
        boundary="it",
        grade="C",
        update_period_s=PERIOD_S,
        channels=(Channel(device="controller", component="wall"),),
        method=f"power supplies by the management controller ({how}); accuracy not stated, grade C's default",
        # Makers publish no accuracy: the default of grade C (DESIGN law 2, docs/adr/0006).
        gain_sigma=COUNTER_GAIN_95 / Z_95,
        # An answer is between nought and one polling period old.
        lag_s=PERIOD_S / 2,
        lag_sigma_s=PERIOD_S,
        whole_machine=True,
    )


class IpmiSensor:
    """Asks this machine's controller about once a second, beside the work.

    Args:
        runner: Runs ``ipmitool``.
        wait_s: How long a probe waits for an answer, and calls silence a fault.
            ``None`` is for the start of a run, which waits for nothing.
        clock: Monotonic seconds.
    """

    may_block = False
    rest_s = PERIOD_S

    def __init__(
        self,
        runner: Runner = run_program,
        *,
        wait_s: float | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Keep the runner; nothing is started."""
        self._runner = runner
        self._wait_s = wait_s
        self._poll = Poll(self._watts, clock)
        self._info = controller_info("ipmi", "IPMI DCMI")

    @property
    def info(self) -> SensorInfo:
        """Describe the readings."""
        return self._info

    def probe(self) -> Probe:
        """Ask the controller."""
        try:
            self._poll.start()
        except OSError as error:
            return Probe(usable=False, found="management controller", reason=str(error))
        if not self._poll.wait(self._wait_s or 0.0) and self._wait_s is None:
            return Probe(usable=True, found="management controller, being asked")
        try:
            return Probe(usable=True, found=f"management controller: {self._poll.latest():.4g} W now")
        except OSError as error:
            return Probe(
                usable=False, found="management controller", reason=str(error), mend=_mend(str(error))
            )

    def read(self, *, edge: bool) -> tuple[float | None, ...]:
        """Return watts.

        Raises:
            OSError: If there is no recent answer, or the sensor is closed.
        """
        del edge  # an answer takes longer than the edge of a window may
        self._poll.start()
        return (self._poll.latest(),)

    def close(self) -> None:
        """Ask no more."""
        self._poll.stop()

    def _watts(self) -> float:
        watts = parse_reading(self._runner(COMMAND))
        if watts is None:
            raise OSError("the controller tells no power: its reading is empty, 0 or deactivated")
        return watts


def _mend(fault: str) -> str:
    if "No such file" in fault and "/dev/ipmi" not in fault:
        return "install ipmitool"
    if "/dev/ipmi" in fault or "ermission" in fault:
        return "ask an administrator to let your group read and write /dev/ipmi0"
    return 'declare the controller\'s Redfish address instead (kind = "redfish")'
