"""Use case: look up a CPU's thermal design power in codecarbon's table, where that is installed.

Importing codecarbon takes a good part of a second: this is for ``doctor``, which says
what to declare, never for the start or end of a user's work, nor for the recovery of
runs, whose figures are the same whoever seals them.
"""

from __future__ import annotations

import csv
from functools import cache
from pathlib import Path
from typing import Final, NamedTuple

from carbonlens.metering.cpu_names import TdpTable

_FAULTS: Final = (
    ArithmeticError,
    AttributeError,
    ImportError,
    LookupError,
    NameError,
    OSError,
    RuntimeError,
    SyntaxError,
    TypeError,
    ValueError,
    csv.Error,
)
"""What an import and a table of others may raise: codecarbon brings dozens of packages along."""


class TdpMatch(NamedTuple):
    """Watts of one package, and the row of the table that has the CPU's whole name."""

    watts: float
    name: str
    source: str


def tdp_of(cpu_name: str | None) -> TdpMatch | None:
    """Return the TDP of a CPU by its whole name.

    Likeness does not count: a name that is not in the table, or stands there with
    several powers, gives nothing.

    Args:
        cpu_name: As the kernel has it; ``None`` gives nothing.

    Returns:
        ``None`` without a match, and without the extra ``codecarbon``.
    """
    if cpu_name is None:
        return None
    loaded = _table()
    found = loaded[0].look_up(cpu_name) if loaded else None
    return TdpMatch(found[0], found[1], loaded[1]) if loaded and found else None


@cache
def _table() -> tuple[TdpTable, str] | None:
    try:
        from codecarbon import __version__
        from codecarbon.input import DataSource

        path = Path(DataSource().cpu_power_path)
        with path.open(encoding="utf-8", newline="") as stream:
            rows = [(row.get("Name") or "", row.get("TDP") or "") for row in csv.DictReader(stream)]
        return TdpTable(rows), f"codecarbon {__version__}"
    except _FAULTS:
        # Another version may keep it elsewhere: no table is no match, never a guess.
        return None
