"""What the name of a trace's file says of its host: the one thing that content may not tell.

Logs such as those of ``nvidia-smi`` name the device and not the machine. Content counts once; two
such logs that are equal to the last byte are a copy, unless their names say that they are of
two hosts.
"""

from __future__ import annotations

import re
from typing import Final

_NUMBERED: Final = r"[a-z](?![a-z0-9])|[a-z]*\d[a-z0-9]*"
_HOST: Final = re.compile(
    rf"(?:^|[^a-z])(?:host(?:name)?(?:[_\-. =]([a-z0-9]+)|(\d+))"
    rf"|(?:node|machine|server|worker|rank)(?:[_\-. =]({_NUMBERED})|(\d+)))(?![a-z0-9])",
    re.IGNORECASE,
)
"""A word for a machine and which one: a number or a letter, behind ``host`` any word."""

_COPY: Final = re.compile(
    r"(?:[_\-. ]*(?:copy|kopie|backup|bak|old|orig)(?:[_\-. ]*\d+)?"
    r"|\s*\(\d+\)|~|\.(?:gz|csv|txt|log|json|prom|plist|out|data)(?:_\d+)?)+$",
    re.IGNORECASE,
)


def host_in(name: str) -> str | None:
    """Return the host that a file's name says: ``a`` of ``gpu_host_a.csv``; ``None`` where it says none.

    Args:
        name: Of the file, without folders; of a member of an archive behind ``::``.
    """
    found = _HOST.search(_own(name))
    return None if found is None else next(text for text in found.groups() if text).lower()


def is_copy_by_name(name: str, other: str) -> bool:
    """Tell whether two names are of one file and its copy, such as ``a.csv`` and ``a (1).csv.bak``."""
    return _stem(name) == _stem(other)


def _own(name: str) -> str:
    """Return a name without endings and marks of copies."""
    last = name.rpartition("::")[2].replace("\\", "/").rpartition("/")[2]
    return _COPY.sub("", last)


def _stem(name: str) -> str:
    return re.sub(r"^copy of ", "", _own(name).lower())
