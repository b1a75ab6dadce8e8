"""CPU names as makers, kernels and tables write them, made comparable.

Only the whole name decides: two names are one processor if nothing but trade marks,
clock rates and words such as "Processor" tells them apart. A likeness score would
take an 8380 for an 8380H.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Final

from carbonlens.domain.patterns import later

_MARKS: Final = later(r"\((r|tm|c)\)|[®™©]")
_CLOCK: Final = later(r"@.*$|[,(]?\s*\d+([.,]\d+)?\s*[gm]hz.*$")
_WORDS: Final = later(
    r"\b((\d+|dual|quad|six|eight|twelve|sixteen|multi)-core|64-bit|cpu|processors?|\d+th gen)\b"
    r"|\bwith .*graphics\b|[,;]"
)
_VERSION: Final = later(r"(\d[a-z]?)v(\d)\b")
_CORES: Final = later(r"\b(\d+)-core\b", re.IGNORECASE)

HIGHEST_TDP_W: Final = 1000.0
"""A row above it, or at or below nothing, is a slip of the table."""


def plain_name(name: str) -> str:
    """Return a CPU's name in lower case without what is not its model.

    Args:
        name: As the kernel, a table or a published result has it.
    """
    text = _MARKS.sub(" ", name.lower())
    text = _WORDS.sub(" ", _CLOCK.sub(" ", text))
    # "E3-1240V2" and "E3-1240 v2" are one model.
    return " ".join(_VERSION.sub(r"\1 v\2", text).split())


def cores_in(name: str) -> int | None:
    """Return the cores a name states ("64-Core Processor"); ``None`` where it states none."""
    found = _CORES.search(name)
    return int(found.group(1)) if found else None


class TdpTable:
    """Thermal design powers by name; a name that stands for several powers tells none.

    Args:
        rows: Pairs of name and power as text; rows that are no power are left out.
    """

    def __init__(self, rows: Iterable[tuple[str, str]]) -> None:
        """Index the rows by their plain names."""
        found: dict[str, dict[float, str]] = {}
        for name, text in rows:
            watts = _watts(text)
            if watts is not None:
                found.setdefault(plain_name(name), {}).setdefault(watts, name)
        self._by_name: Mapping[str, Mapping[float, str]] = found

    def look_up(self, cpu_name: str) -> tuple[float, str] | None:
        """Return the power in watts of one package, and the row's own name.

        Args:
            cpu_name: Name of the CPU.

        Returns:
            ``None`` if no row bears the whole name, or several rows disagree.
        """
        rows = self._by_name.get(plain_name(cpu_name), {})
        return next(iter(rows.items())) if len(rows) == 1 else None


def _watts(text: str) -> float | None:
    try:
        watts = float(text)
    except ValueError:
        return None
    return watts if 0 < watts <= HIGHEST_TDP_W else None
