"""How a profile's operators are printed: their time by provider, and no energy."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from carbonlens.cli import output
from carbonlens.domain.counting import counted
from carbonlens.domain.estimate import Estimate
from carbonlens.reporting import format as fmt

if TYPE_CHECKING:
    from carbonlens.importers.contract import OperatorTime

SHOWN: Final = 10
"""Operators in the terminal; the JSON holds more."""

LISTED: Final = 100
_FILE_COLUMNS: Final = 36
_PROVIDER_COLUMNS: Final = 24
_LEAST_NAME: Final = 12
_HEADER: Final = ("provider", "calls", "time", "share")


def lines(name: str, operators: Sequence[OperatorTime]) -> list[str]:
    """Return a heading and a table of the longest operators, within the terminal's width.

    Args:
        name: Of the file.
        operators: The longest first.
    """
    shown, wholes = operators[:SHOWN], _wholes(operators)
    rest = len(operators) - len(shown)
    providers = dict.fromkeys(o.provider for o in operators)
    told = f"{counted(len(operators), 'operator')} on {', '.join(providers)}"
    file = name.rpartition("/")[2]
    heading = f"{output.clip(file, _FILE_COLUMNS)}: {told}; times, no energy"
    rows = [_row(o, wholes) for o in shown]
    others = _width([_HEADER, *(r[1:] for r in rows)])
    room = max(output.width() - others, _LEAST_NAME)
    names = output.clip_apart([r[0] for r in rows], room)
    table = output.table(
        ["operator", *_HEADER], [[n, *r[1:]] for n, r in zip(names, rows, strict=True)], left=2
    )
    more = [f"... and {counted(rest, 'more operator')} (--json lists {min(len(operators), LISTED)})"]
    return [*output.wrap(heading, output.width()), *table, *(more if rest else [])]


def as_json(operators: Sequence[OperatorTime]) -> dict[str, object]:
    """Return the longest operators as JSON, and how many there are.

    Args:
        operators: The longest first.
    """
    wholes = _wholes(operators)
    return {
        "count": len(operators),
        "energy_j": None,
        "longest": [
            {
                "operator": o.operator,
                "provider": o.provider,
                "calls": o.calls,
                "time_s": o.time_s,
                "cycles": o.cycles,
                "share_of_provider": _share(o, wholes),
            }
            for o in operators[:LISTED]
        ],
    }


def _row(operator: OperatorTime, wholes: dict[tuple[str, bool], float]) -> list[str]:
    share = _share(operator, wholes)
    return [
        operator.operator,
        output.clip(operator.provider, _PROVIDER_COLUMNS),
        "-" if operator.calls is None else fmt.fixed(operator.calls, 0),
        _size(operator),
        "-" if share is None else f"{share:.1%}",
    ]


def _size(operator: OperatorTime) -> str:
    if operator.time_s is not None:
        return fmt.duration(Estimate(value=operator.time_s, unit="s")).text
    return "-" if operator.cycles is None else f"{fmt.fixed(operator.cycles, 0)} cycles"


def _figure(operator: OperatorTime) -> tuple[bool, float]:
    """Return whether an operator tells cycles, and its figure."""
    is_cycles = operator.time_s is None
    value = operator.cycles if is_cycles else operator.time_s
    return is_cycles, float(value or 0)


def _wholes(operators: Sequence[OperatorTime]) -> dict[tuple[str, bool], float]:
    """Return the sums by provider, of times and of cycles: neither is added to the other."""
    parts: dict[tuple[str, bool], list[float]] = {}
    for operator in operators:
        is_cycles, value = _figure(operator)
        parts.setdefault((operator.provider, is_cycles), []).append(value)
    return {key: math.fsum(values) for key, values in parts.items()}


def _share(operator: OperatorTime, wholes: dict[tuple[str, bool], float]) -> float | None:
    is_cycles, value = _figure(operator)
    whole = wholes[operator.provider, is_cycles]
    return value / whole if whole else None


def _width(rows: Sequence[Sequence[str]]) -> int:
    """Return the columns that the cells after the name take, with the blanks between."""
    return sum(max(output.columns(row[i]) for row in rows) + 2 for i in range(len(_HEADER)))
