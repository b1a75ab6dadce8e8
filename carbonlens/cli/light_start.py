"""A start of the command line without what it does not need."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from typing import Any, Final

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
        _defer(name, known)
    if "msgspec" not in sys.modules:
        for name, known in _SELDOM_OF_RECORDS.items():
            _defer(name, known)
    if BACKPORTS not in sys.modules:
        # An import of it fails while None stands there, as if it were not installed.
        sys.modules[BACKPORTS] = None  # type: ignore[assignment]  # what the import system reads so
        try:
            with uncollected():
                import msgspec  # noqa: F401  # for the effect
        finally:
            del sys.modules[BACKPORTS]


def _defer(name: str, known: Mapping[str, object]) -> None:
    """Have a module loaded when more of it is wanted; nothing is done where it is loaded already."""
    if name in sys.modules:
        return
    sys.modules[name] = stand_in = Deferred(name, known)
    package, _, leaf = name.rpartition(".")
    if package and not package.startswith("msgspec"):  # which takes its own in itself
        setattr(import_module(package), leaf, stand_in)


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


def _of(name: str, function: str) -> Callable[..., Any]:
    """Return a function of a module that is loaded when it is called."""

    def called(*given: Any, **more: Any) -> Any:  # noqa: ANN401  # whatever that function takes and gives
        return getattr(real(name), function)(*given, **more)

    called.__name__ = function
    return called


_SELDOM: Final[Mapping[str, Mapping[str, object]]] = {
    "ipaddress": {},
    **({"platform": {"system": lambda: os.uname().sysname}} if hasattr(os, "uname") else {}),
    "textwrap": {"dedent": _of("textwrap", "dedent")},
    "fnmatch": {"fnmatchcase": _of("fnmatch", "fnmatchcase")},
    **({"ntpath": {}} if os.name == "posix" else {}),
    "urllib.parse": {"quote_from_bytes": _of("urllib.parse", "quote_from_bytes")},
}
"""Standard modules that others load for a corner of theirs (addresses in brackets, JSON schemas, paths
as addresses and of Windows), a tenth of the start too, with what these take from them at once."""

_SELDOM_OF_RECORDS: Final[Mapping[str, Mapping[str, object]]] = {
    "msgspec.inspect": {},
    "msgspec._json_schema": {
        name: _of("msgspec._json_schema", name) for name in ("schema", "schema_components")
    },
    "msgspec.toml": {},
    "msgspec.yaml": {},
}
"""Modules of msgspec that no record of ours makes use of, and that it loads all the same."""
