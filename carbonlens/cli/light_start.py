"""A start of the command line without what it does not need."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Final

from carbonlens._deferred import BACKPORTS, Deferred, real


def load_records_library() -> None:
    """Load msgspec, in this process of our own, without the backports it would load where they are.

    They are a tenth of the start of ``carbonlens run`` (with ``inspect``, ``ast`` and
    ``tokenize``, which they load), and the standard library of Python 3.11 has what msgspec
    takes from them. Whoever imports them later gets them. Nothing is done where they are
    loaded already. The program ``carbonlens`` alone calls it: not a program that imports the
    package, and not the processes that it starts (commands, and the workers of a bench, which
    import the user's functions), whose interpreters begin anew.
    """
    for name, known in _SELDOM.items():
        if name not in sys.modules:
            sys.modules[name] = Deferred(name, known)
    if BACKPORTS not in sys.modules:
        # An import of it fails while None stands there, as if it were not installed.
        sys.modules[BACKPORTS] = None  # type: ignore[assignment]  # what the import system reads so
        try:
            with uncollected():
                import msgspec  # noqa: F401  # for the effect
        finally:
            del sys.modules[BACKPORTS]


@contextmanager
def uncollected() -> Iterator[None]:
    """Let no garbage be looked for within the block: what modules make while they load is kept."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def spare_the_end() -> None:
    """Let the interpreter end without looking for garbage in all that this process of our own holds.

    That is a tenth of ``carbonlens run``, and the system takes the memory back at once.
    """
    gc.freeze()


def _dedent(text: str) -> str:
    found: str = real("textwrap").dedent(text)
    return found


_SELDOM: Final[Mapping[str, Mapping[str, object]]] = {
    "ipaddress": {},
    **({"platform": {"system": lambda: os.uname().sysname}} if hasattr(os, "uname") else {}),
    "textwrap": {"dedent": _dedent},
}
"""Standard modules that others load for a corner of theirs (addresses in brackets, JSON schemas),
a tenth of the start too, with what these take from them at once."""
