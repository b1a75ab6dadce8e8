"""``carbonlens run`` without the library that reads command lines: it would be half of the start.

What stands between ``run`` and the command is taken apart here where it is plain; anything
else (help, a mistake, a short form) is left to the library, which has the words for it.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Sequence
from contextlib import suppress
from decimal import Decimal, InvalidOperation
from importlib import import_module
from pathlib import Path
from typing import Any, Final

from carbonlens.cli.tags import parse_tags
from carbonlens.errors import UsageError

VALUES: Final = frozenset({"step", "study", "unit", "units", "repeat", "tag", "trace", "ledger"})
"""Options that a value follows."""

FLAGS: Final = frozenset({"record-args", "live", "json"})

_AFTERWARDS: Final = ("carbonlens.reporting.format", "carbonlens.cli.output", "carbonlens.cli.run_view")
"""Modules that are needed when the command has ended."""

_AS_JSON: Final = "carbonlens.reporting.run_json"
"""One more that ``--json`` needs."""

_DIGITS: Final = 100
"""Of a number of a round: far more than one that is refused for its size."""


def parsed(arguments: Sequence[str]) -> dict[str, Any] | None:
    """Return the arguments of ``measured``; ``None`` where they are not plain.

    Args:
        arguments: What follows ``run`` on the command line.
    """
    given: dict[str, Any] = {}
    rest = list(arguments)
    while rest and rest[0].startswith("-"):
        word = rest.pop(0)
        if word == "--":
            break
        name, equals, value = word.removeprefix("--").partition("=")
        if not word.startswith("--") or name not in (VALUES if equals else VALUES | FLAGS):
            return None
        if name in FLAGS:
            given[name.replace("-", "_")] = True
            continue
        if not equals:
            if not rest:
                return None
            value = rest.pop(0)
        if name == "tag":
            given.setdefault("tag", []).append(value)
        else:
            given[name] = value
    repeat = given.get("repeat", "1")
    is_number = repeat.isascii() and repeat.isdecimal() and len(repeat) <= _DIGITS
    if not rest or given.get("ledger") == "" or not is_number:
        return None
    if "repeat" in given:
        given["repeat"] = int(repeat)
    return {"command": rest, **given}


_DRIVERS: Final = ("/dev/nvidiactl", "/dev/dxg")
"""Files of the NVIDIA driver, under Linux and under Linux below Windows."""

_REPLAY: Final = "CARBONLENS_REPLAY"
"""As the sensors have it, whose module is loaded beside the driver's start and not before."""


def load() -> None:
    """Load what ``measured`` needs before the command begins."""
    is_there = any(map(os.path.exists, _DRIVERS)) and os.environ.get("CUDA_VISIBLE_DEVICES") != ""
    if is_there and _may_ask_driver():
        from carbonlens.metering.threads import start_beside

        start_beside(_start_driver, "carbonlens-nvml")
    import carbonlens.app.command  # noqa: F401  # for the effect


def _may_ask_driver() -> bool:
    """Whether this run reads NVIDIA's devices: a driver that hangs, or wakes a GPU, is left out by name."""
    if os.environ.get(_REPLAY):
        return False
    from carbonlens.instrument.sources import declared_sources

    # What is wrong with the file is said where its sources are made use of.
    return not any(name.startswith("nvml") for name in declared_sources([]).leave_out)


def _start_driver() -> None:
    """Start NVIDIA's library, which takes as long as all else that is loaded meanwhile.

    Whoever asks it something waits until it has started, or asks in vain as if nobody had.
    """
    from carbonlens.metering.sensors.nvml_library import process_nvml

    process_nvml().start()


def measured(
    command: Sequence[str],
    *,
    step: str | None = None,
    study: str | None = None,
    unit: str | None = None,
    units: str | None = None,
    repeat: int | None = None,
    tag: list[str] | None = None,
    record_args: bool = False,
    trace: str | None = None,
    live: bool = False,
    ledger: str | Path | None = None,
    json: bool = False,
) -> int:
    """Measure a command, say what it used and return its exit code; die by the signal it died by.

    Raises:
        UsageError: If an option has no sense; the command has not been started.
    """
    from carbonlens.app.command import run_command

    if repeat is not None:
        _require_round(repeat)
    result = run_command(
        command,
        step=step,
        study=study,
        unit=unit,
        units=units_of(units),
        repeat=repeat,
        tags=parse_tags(tag),
        record_args=record_args,
        ledger=ledger,
        trace=trace,
        live=live,
        may_give_way=True,
        meanwhile=(*_AFTERWARDS, *((_AS_JSON,) if json else ())),
    )
    try:
        from carbonlens.cli import run_view

        if json:
            import_module(_AS_JSON)
    except Exception as error:  # noqa: BLE001  # law 8: the exit code passes through, whatever became of our files
        if result.run is not None:
            _tell_unshown(error)
    else:
        run_view.print_result(result, json=json)
    if result.signal is not None:
        die_by(result.signal)
    return result.exit_code


def _tell_unshown(error: Exception) -> None:
    """Say in a line that the package changed before all of it was loaded; raises nothing."""
    from carbonlens.metering.notice import tell  # both are loaded before the command begins
    from carbonlens.metering.wording import error_text

    tell(
        f"what the run used cannot be shown ({error_text(error)}): "
        "carbonlens was moved or renewed while the command ran"
    )


def _require_round(repeat: int) -> None:
    """Refuse what is no number of a round, or none that a record holds."""
    if repeat < 0:
        raise UsageError(f"--repeat {repeat} is no round", mend="rounds count from 0 or 1")
    if repeat >= 2**63:
        raise UsageError(
            f"--repeat {repeat} is more than a record holds", mend="number the rounds from 0 or 1"
        )


def units_of(text: str | None) -> Decimal | None:
    """Return how many units a text says.

    Raises:
        UsageError: If it is no positive number that a record holds.
    """
    if text is None:
        return None
    try:
        value = Decimal(text)
    except InvalidOperation:
        value = Decimal("NaN")
    if not value.is_finite() or value <= 0:
        raise UsageError(f"--units {text!r} is no positive number", mend="write --units 1000")
    from carbonlens.domain.limits import LEAST_UNITS, MOST

    if value >= MOST:
        raise UsageError(f"--units {text!r} is more than a record holds", mend=f"give less than {MOST:.0e}")
    if value < LEAST_UNITS:
        raise UsageError(
            f"--units {text!r} is less than a record holds", mend=f"give {LEAST_UNITS:f} or more"
        )
    return value


def die_by(number: int) -> None:
    """End this process by the signal that ended the command, as a shell would see it."""
    import resource

    # The command's own core dump, if any, is the one of interest.
    with suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))
    if number not in (signal.SIGKILL, signal.SIGSTOP):
        signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)
