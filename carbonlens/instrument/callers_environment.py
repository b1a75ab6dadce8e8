"""The environment that a command of the user's would have without us.

Python sets ``LC_CTYPE`` for itself, and for whatever it starts, where the locale is C (PEP 538: a
container, a cron job, ``env -i``). A command that is measured would then sort, match and print
otherwise than it does alone. What a program set itself, in an environment of another locale, stays.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final

_NAME: Final = "LC_CTYPE"
_COERCED: Final = frozenset({"C.UTF-8", "C.utf8", "UTF-8"})
"""What Python sets it to (PEP 538)."""

_GIVEN: Final = Path("/proc/self/environ")
"""The environment that this process was started with, whatever it has done to it since (proc(5))."""

_CTYPE_MASK: Final = 1
"""``LC_CTYPE_MASK`` of locale.h: 1 << LC_CTYPE, in glibc and musl."""


def callers_environ(given: Path = _GIVEN) -> dict[str, str]:
    """Return this process's environment, its locale as whoever started it has it.

    Args:
        given: Where the system tells that; where it does not, Python's own stays.
    """
    environ = dict(os.environ)
    if environ.get(_NAME) not in _COERCED:
        return environ
    try:
        variables = [os.fsdecode(v).partition("=") for v in given.read_bytes().split(b"\0")]
    except OSError:
        return environ
    # Of a name that is given twice the first counts, as for getenv(3).
    start = {name: value for name, _, value in reversed(variables)}
    if not _was_coerced(start):
        return environ
    if _NAME in start:
        environ[_NAME] = start[_NAME]
    else:
        del environ[_NAME]
    return environ


def _was_coerced(start: Mapping[str, str]) -> bool:
    """Whether Python set the variable as it began: the locale was C, and nothing kept it from that.

    Args:
        start: The environment that it was started with.
    """
    is_off = start.get("PYTHONCOERCECLOCALE") == "0" and not sys.flags.ignore_environment
    if is_off or start.get("LC_ALL"):
        return False
    name = start.get(_NAME) or start.get("LANG") or "C"
    return name in {"C", "POSIX"} or not _is_installed(name)


def _is_installed(locale: str) -> bool:
    """Whether the system has a locale; without it a program stays at C (setlocale(3))."""
    try:
        import ctypes  # few environments make it needed

        library = ctypes.CDLL(None)
        library.newlocale.argtypes = (ctypes.c_int, ctypes.c_char_p, ctypes.c_void_p)
        library.newlocale.restype = ctypes.c_void_p
        library.freelocale.argtypes = (ctypes.c_void_p,)
        # newlocale(3), which unlike setlocale(3) leaves the locale of this process as it is.
        found = library.newlocale(_CTYPE_MASK, os.fsencode(locale), None)
    except (ImportError, OSError, AttributeError):
        return True
    if found:
        library.freelocale(found)
    return bool(found)
