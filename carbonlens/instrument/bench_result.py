"""What a command says of its own work: a small JSON object in a file, or as its last line.

A measured command finds the file's name in ``CARBONLENS_RESULT``. All keys are optional::

    {"units": 20000, "latencies_ms": [1.2, 1.3],
     "quality": {"accuracy": {"value": 0.97, "n": 1000, "outcomes": [1, 1, 0]},
                 "score": {"value": 3.1, "higher_is_better": false}}}

A quality may be a number alone. Where nobody says whether more is better the name may tell,
else it is not known. An evaluation may also print the object, or the
qualities alone (``{"accuracy": 0.97}``), as the last line of its output. A key that is none of
these, or that stands among qualities alone and reads like one (``unit``), is left out and noted.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import msgspec

from carbonlens.domain.counting import counted
from carbonlens.domain.direction import direction_unstated
from carbonlens.domain.limits import LEAST_UNITS, MOST
from carbonlens.errors import MeasurementError
from carbonlens.metering.findings import record_ignored
from carbonlens.metering.recorder import Recorder
from carbonlens.metering.wording import plain

VARIABLE: Final = "CARBONLENS_RESULT"

_KEYS: Final = frozenset({"units", "latencies_ms", "quality"})

_LIKE_A_KEY: Final = re.compile(
    r"(units?|latenc(y|ies))(_(done|count|us|ms|s|seconds))?|qualit(y|ies)", re.IGNORECASE
)
"""What is meant for one of the keys, and names no quality."""


_LONGEST_KEY: Final = 40
_MOST_NAMED: Final = 3


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
    if _KEYS & found.keys():
        return found
    meant = {key: said for key, said in found.items() if _LIKE_A_KEY.fullmatch(key)}
    return {"quality": {key: said for key, said in found.items() if key not in meant}, **meant}


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
        if isinstance(units, bool) or not isinstance(units, int | float) or not 0 < units < MOST:
            raise MeasurementError(f"its units are {units!r}", where=where, mend=_MEND)
        recorder.add_units(units)
    recorder.add_latencies(result.get("latencies_ms") or ())
    quality = result.get("quality") or {}
    if not isinstance(quality, Mapping):
        raise MeasurementError("quality is no object", where=where, mend=_MEND)
    for name, said in quality.items():
        _keep(name, said, recorder, where)
    if unknown := sorted(plain(key)[:_LONGEST_KEY] for key in result.keys() - _KEYS):
        _note(unknown, recorder)
    return units is not None


def require_units(recorder: Recorder, *, where: str) -> None:
    """Refuse a window whose units are fewer than a record holds: all its rounds would be in vain.

    Args:
        recorder: Of the window, at its end.
        where: For the error.

    Raises:
        MeasurementError: If their sum is so small.
    """
    if recorder.units is not None and 0 < recorder.units < LEAST_UNITS:
        raise MeasurementError(
            f"the units of a window come to {recorder.units}; a record holds {LEAST_UNITS:f} or more",
            where=where,
            mend="count in a smaller unit, or measure longer windows",
        )


def _note(unknown: list[str], recorder: Recorder) -> None:
    """Say which keys were not read: none of their values is counted anywhere."""
    named = ", ".join(map(repr, unknown[:_MOST_NAMED]))
    more = f" and {len(unknown) - _MOST_NAMED} more" if len(unknown) > _MOST_NAMED else ""
    is_or_are = "is none" if len(unknown) == 1 else "are none"
    finding = record_ignored(
        "result", f"{counted(len(unknown), 'key')} {is_or_are} of its own: {named}{more}"
    )
    mend = f"write {', '.join(sorted(_KEYS))}; a quality of such a name belongs under quality"
    recorder.note(msgspec.structs.replace(finding, mend=mend))


def _keep(name: str, said: Any, recorder: Recorder, where: str) -> None:  # noqa: ANN401  # whatever was said
    """Keep one quality: an object, or a number of whatever library, as ``track`` takes them."""
    if isinstance(said, Mapping):
        unstated = direction_unstated(name, of_outcomes=said.get("outcomes") is not None)
        better = said.get("higher_is_better", unstated)
        if isinstance(better, str | bytes):
            raise MeasurementError(
                f"higher_is_better of {name!r} is a text", where=where, mend="write true, false or null"
            )
        figures = said.get("value"), said.get("n"), said.get("outcomes")
        recorder.add_quality(name, *figures, higher_is_better=better)
    elif hasattr(said, "__float__") and not isinstance(said, bool):
        recorder.add_quality(
            name, said, None, None, higher_is_better=direction_unstated(name, of_outcomes=False)
        )
    else:
        raise MeasurementError(f"quality {name!r} is no number", where=where, mend=_MEND)


_MEND: Final = 'write for example {"quality": {"accuracy": {"value": 0.97, "n": 1000}}}'
