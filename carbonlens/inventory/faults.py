"""Faults: what makes an inventory file malformed; all are gathered before any is raised."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final

import msgspec

from carbonlens.domain.counting import counted
from carbonlens.errors import ConfigError

_MOST_NAMED: Final = 20
_MOST_SHOWN: Final = 120
"""Characters of a value that a message repeats."""


class Fault(msgspec.Struct, frozen=True, kw_only=True, order=True):
    """One thing that must be mended before the inventory can be read.

    Attributes:
        file: Name of the file, without its folder.
        line: Line in it, where it can be told; 0 otherwise.
        what: What is wrong, with the key or column.
        mend: What to do.
    """

    file: str
    line: int = 0
    what: str
    mend: str

    @property
    def where(self) -> str:
        """File and line."""
        return f"{self.file}:{self.line}" if self.line else self.file

    def __str__(self) -> str:
        """Return one line: place, fault, mend."""
        return f"{self.where}: {self.what} ({self.mend})"


def refusal(folder: Path, faults: Iterable[Fault]) -> ConfigError:
    """Return one error that names every fault.

    Args:
        folder: The inventory folder.
        faults: At least one.
    """
    found = sorted(faults)
    named = [str(f) for f in found[:_MOST_NAMED]]
    if len(found) > _MOST_NAMED:
        named.append(f"and {len(found) - _MOST_NAMED} more")
    return ConfigError(
        f"the inventory has {counted(len(found), 'fault')}: {'; '.join(named)}",
        where=str(folder),
        mend="mend them; carbonlens inventory check lists them",
    )


def shown(value: object) -> str:
    """Return a value as a message repeats it: quoted, and not at any length."""
    text = repr(value) if isinstance(value, str) else str(value)
    return text if len(text) <= _MOST_SHOWN else f"{text[: _MOST_SHOWN - 1]}…"


def nearest(word: str, known: Sequence[str]) -> str:
    """Return a mend that names the nearest known word, or all of them."""
    close = difflib.get_close_matches(word, known, n=1)
    return f"did you mean {close[0]!r}?" if close else f"known are {', '.join(known)}"
