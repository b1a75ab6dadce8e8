"""Prices per device hour: which of them is that of the devices a run names, and how many these are.

A price of ``gpu:H100`` is that of a device whose name holds the words of ``H100`` in their order:
``NVIDIA H100 80GB HBM3``, never ``GH200``. Of several the one with most words holds; where two
hold alike nobody can tell, and none is taken.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

_WORD: Final = re.compile(r"[a-z0-9]+")
_DEVICES: Final = re.compile(r"[,;]")
_COUNT: Final = re.compile(r"\b(\d{1,4})\s*[x\N{MULTIPLICATION SIGN}]\s", re.IGNORECASE)
_SLICE: Final = "MIG-"
"""Begin of the id of a part of a device, whose hour is no hour of the device."""


def device_subject(names: str | None, subjects: Iterable[str]) -> str | None:
    """Return what prices call the devices of a run; ``None`` where none or several fit.

    Args:
        names: Devices as the run names them: ``4 x NVIDIA A100-SXM4-80GB``.
        subjects: Of prices per device hour: ``gpu:A100``.
    """
    parts = [_words(part) for part in _DEVICES.split(names or "")]
    fitting = [(len(words), s) for s in set(subjects) if (words := _name(s)) and _is_in(words, parts)]
    most = max((count for count, _ in fitting), default=0)
    found = [subject for count, subject in fitting if count == most]
    return found[0] if len(found) == 1 else None


def device_count(names: str | None, subject: str) -> int | None:
    """Return how many devices a run names by their kind; ``None`` where it does not say.

    Args:
        names: As for ``device_subject``.
        subject: As found there.
    """
    for part in _DEVICES.split(names or ""):
        count = _COUNT.search(part)
        if count is not None and _is_in(_name(subject), [_words(part)]):
            return int(count[1]) or None
    return None


def is_whole(device: str) -> bool:
    """Tell whether an id is that of a whole device, and not of a slice of one."""
    return not device.startswith(_SLICE)


def _name(subject: str) -> list[str]:
    return _words(subject.rpartition(":")[2])


def _words(text: str) -> list[str]:
    return _WORD.findall(text.lower())


def _is_in(words: list[str], parts: Iterable[list[str]]) -> bool:
    """Tell whether words stand in one of the parts, in their order."""
    return any(_follow(words, part) for part in parts)


def _follow(words: list[str], part: list[str]) -> bool:
    rest = iter(part)
    return all(word in rest for word in words)
