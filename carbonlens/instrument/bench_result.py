"""What a command says of its own work: a small JSON object in a file, or as its last line.

A measured command finds the file's name in ``CARBONLENS_RESULT``. All keys are optional::

    {"units": 20000, "latencies_ms": [1.2, 1.3],
     "quality": {"accuracy": {"value": 0.97, "n": 1000, "outcomes": [1, 1, 0]}}}

A quality may be a number alone. An evaluation may also print the object, or the
qualities alone (``{"accuracy": 0.97}``), as the last line of its output.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import msgspec

from carbonlens.errors import MeasurementError
from carbonlens.metering.recorder import Recorder

VARIABLE: Final = "CARBONLENS_RESULT"

_MOST_UNITS: Final = 1e26
"""Exclusive, as the recorder has it: more digits than the ledger's decimals take."""

_KEYS: Final = frozenset({"units", "latencies_ms", "quality"})


def read(file: Path) -> dict[str, Any]:
    """Return what a command wrote; empty when it wrote nothing.

    Raises:
        MeasurementError: If it is no JSON object of the known keys.
    """
    try:
        text = file.read_bytes()
    except OSError:
        return {}
    return parse(text, VARIABLE) if text.strip() else {}


def parse(text: bytes | str, where: str) -> dict[str, Any]:
    """Return a result from its JSON text; qualities alone are taken as such.

    Args:
        text: The text.
        where: For the error.

    Raises:
        MeasurementError: If it is no JSON object.
    """
    try:
        found = msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise MeasurementError(f"is no JSON ({error})", where=where, mend=_MEND) from error
    if not isinstance(found, dict):
        raise MeasurementError("is no JSON object", where=where, mend=_MEND)
    return found if _KEYS & found.keys() else {"quality": found}


def record(result: Mapping[str, Any], recorder: Recorder, *, where: str) -> bool:
    """Put a result into a run's record.

    Args:
        result: As ``read`` or ``parse`` gave it.
        recorder: Of the run.
        where: For the error.

    Returns:
        Whether it said how many units were done.

    Raises:
        MeasurementError: If the units are no positive number, or a quality is neither a
            number nor an object.
    """
    units = result.get("units")
    if units is not None:
        if isinstance(units, bool) or not isinstance(units, int | float) or not 0 < units < _MOST_UNITS:
            raise MeasurementError(f"its units are {units!r}", where=where, mend=_MEND)
        recorder.add_units(units)
    recorder.add_latencies(result.get("latencies_ms") or ())
    quality = result.get("quality") or {}
    if not isinstance(quality, dict):
        raise MeasurementError("quality is no object", where=where, mend=_MEND)
    for name, said in quality.items():
        if isinstance(said, dict):
            recorder.add_quality(
                name,
                said.get("value"),
                said.get("n"),
                said.get("outcomes"),
                higher_is_better=bool(said.get("higher_is_better", True)),
            )
        elif isinstance(said, int | float) and not isinstance(said, bool):
            recorder.add_quality(name, said, None, None, higher_is_better=True)
        else:
            raise MeasurementError(f"quality {name!r} is no number", where=where, mend=_MEND)
    return units is not None


_MEND: Final = 'write for example {"quality": {"accuracy": {"value": 0.97, "n": 1000}}}'
