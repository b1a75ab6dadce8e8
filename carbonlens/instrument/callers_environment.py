"""The environment that a command of the user's would have without us.

Python sets ``LC_CTYPE`` for itself, and for whatever it starts, where the locale is C (PEP 538: a
container, a cron job, ``env -i``). A command that is measured would then sort, match and print
otherwise than it does alone.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

_NAME: Final = "LC_CTYPE"
_COERCED: Final = frozenset({"C.UTF-8", "C.utf8", "UTF-8"})
"""What Python sets it to (PEP 538)."""

_GIVEN: Final = Path("/proc/self/environ")
"""The environment that this process was started with, whatever it has done to it since (proc(5))."""


def callers_environ(given: Path = _GIVEN) -> dict[str, str]:
    """Return this process's environment, its locale as whoever started it has it.

    Args:
        given: Where the system tells that; where it does not, Python's own stays.
    """
    environ = dict(os.environ)
    if environ.get(_NAME) not in _COERCED:
        return environ
    try:
        variables = given.read_bytes().split(b"\0")
    except OSError:
        return environ
    before = next((os.fsdecode(v[len(_NAME) + 1 :]) for v in variables if v.startswith(b"LC_CTYPE=")), None)
    if before is None:
        del environ[_NAME]
    else:
        environ[_NAME] = before
    return environ
