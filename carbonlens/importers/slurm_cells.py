"""Cells of SLURM's accounting: energies with prefixes, elapsed times, trackable resources."""

from __future__ import annotations

import re
from collections.abc import Mapping
from decimal import Decimal
from typing import Final

from carbonlens.importers.tables import exact
from carbonlens.importers.times import seconds_of

_NO_VALUE: Final = frozenset({4294967294, 4294967295, 18446744073709551614, 18446744073709551615})
"""SLURM's 32 and 64 bit words for no value and for no end."""

_PREFIXES: Final = {"K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12, "P": 10**15}
_MIB: Final = {"K": 1 / 1024, "M": 1.0, "G": 1024.0, "T": 1024.0**2, "P": 1024.0**3}
_ENERGY: Final = re.compile(r"^(.*?)\s*([KMGTP]?)J?$")
_MEMORY: Final = re.compile(r"^([\d.]+)\s*([KMGTP]?)([nc]?)$")
_GPU: Final = re.compile(r"^gres/gpu(?::([^=]+))?=(\d+)$")


def energy_of(cells: Mapping[str, str]) -> Decimal | None:
    """Return the joules of a line; ``None`` where nothing measured them.

    Raises:
        ValueError: If a figure is no number, or below zero.
    """
    for column in ("consumedenergyraw", "consumedenergy"):
        text = cells.get(column)
        found = None if text is None else _ENERGY.match(text)
        if found is None:
            continue
        try:
            value = exact(found[1], delimiter="|")
        except ValueError as error:
            raise ValueError(f"has {column}: {error}") from None
        if value is None or value == 0 or value in _NO_VALUE:
            continue
        if value < 0:
            raise ValueError(f"has {column} {value}, below zero")
        return value * _PREFIXES.get(found[2], 1)
    return None


def seconds_in(cells: Mapping[str, str]) -> float | None:
    """Return how long a line's job or step ran, in seconds.

    Raises:
        ValueError: If what is there is no duration.
    """
    for column in ("elapsedraw", "elapsed"):
        text = cells.get(column)
        if not text or text in {"Unknown", "INVALID"}:
            continue
        seconds = seconds_of(text)
        if seconds is None:
            raise ValueError(f"has the {column} {text!r}, which is no duration")
        return seconds
    return None


def whole_in(cells: Mapping[str, str], column: str) -> int | None:
    """Return a whole number above zero; ``None`` for another cell."""
    text = cells.get(column, "")
    return int(text) if text.isascii() and text.isdigit() and 0 < len(text) < 10 and int(text) else None


def cpus_of(cells: Mapping[str, str]) -> int | None:
    """Return the CPUs that a job held."""
    for column in ("alloccpus", "ncpus"):
        told = whole_in(cells, column)
        if told is not None:
            return told
    return whole_in(_tres(cells), "cpu")


def gpus_of(cells: Mapping[str, str]) -> int | None:
    """Return the GPUs that a job held; those by kind are parts of the plain figure where both stand."""
    text = cells.get("alloctres")
    if not text:
        return None
    found = [m for part in text.split(",") if (m := _GPU.match(part.strip()))]
    plain = [int(m[2]) for m in found if m[1] is None]
    return plain[0] if plain else sum(int(m[2]) for m in found)


def memory_mib(cells: Mapping[str, str]) -> float | None:
    """Return the memory that a job held, in MiB: its own, or a core's or node's times their number."""
    for text in (_tres(cells).get("mem"), cells.get("reqmem")):
        found = _MEMORY.match(text or "")
        if found is None:
            continue
        try:
            size = float(found[1]) * _MIB[found[2] or "M"]
        except ValueError:
            continue
        counts = {"n": whole_in(cells, "nnodes"), "c": cpus_of(cells), "": 1}
        count = counts[found[3]]
        return None if count is None else size * count
    return None


def _tres(cells: Mapping[str, str]) -> dict[str, str]:
    parts = (part.partition("=") for part in cells.get("alloctres", "").split(","))
    return {name.strip(): value.strip() for name, equals, value in parts if equals}
