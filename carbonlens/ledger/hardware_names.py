"""Names of hardware inside a record, beside the field that holds one: error sources and methods.

A source of error is named by what it is common to, often a kind of CPU or the hardware that a
table states. Where that name is taken out, the source gets an opaque one that is made of it, so
that runs of one hardware still share their error. Whoever guesses the name can check the guess,
as with the hash that a tombstone keeps.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from typing import Any, Final

from carbonlens.domain.identity import sha256_hex

FIELD: Final = "hardware"

_OPAQUE: Final = "hidden-"
_LETTERS: Final = 16

_BY_HARDWARE: Final = "cpu_model"
"""What stands before the colon of a source that is named by hardware alone.

A source of a table's grade is named by the host, the hardware or the study, whichever the table
tells first. Where it is not the hardware it stays: runs that share it would share no error else.
"""

_SOURCES: Final = frozenset({"u_by_source_j", "u_by_source"})
_WORDS: Final = frozenset({"method", "message"})


def hashed(name: str) -> str:
    """Return what stands for a name of hardware where the name itself may not stand."""
    return sha256_hex(name.encode())[:_LETTERS]


def holds_names(plain: Mapping[str, Any], known: Collection[str] = ()) -> bool:
    """Tell whether a record's sources name hardware.

    Args:
        plain: The record as JSON has it.
        known: Hashes of the names of its run's hardware, as other records of the run tell it.
    """
    return any(_names_hardware(name, None, known) for name in _sources(plain))


def without_names(plain: dict[str, Any], placeholder: str, known: Collection[str] = ()) -> dict[str, Any]:
    """Return the record with opaque names of sources, and without the names in its methods and findings.

    Args:
        plain: The record as JSON has it, its field ``hardware`` among it.
        placeholder: Stands in texts in place of a name.
        known: As of ``holds_names``.
    """
    stated = plain.get(FIELD)
    stated = stated if isinstance(stated, str) and stated else None
    sources = {name: _opaque(name) for name in _sources(plain) if _names_hardware(name, stated, known)}
    names = {name.partition(":")[2] for name in sources} | ({stated} if stated else set())
    # The longest first: one name may be the beginning of another.
    ordered = sorted(names, key=len, reverse=True)
    told = re.compile("|".join(rf"(?<!\w){re.escape(n)}(?!\w)" for n in ordered)) if ordered else None
    changed: dict[str, Any] = _renamed(plain, sources, told, placeholder)
    return changed


def _names_hardware(source: str, stated: str | None, known: Collection[str]) -> bool:
    kind, colon, name = source.partition(":")
    if not colon or not name or name.startswith(_OPAQUE):
        return False
    if kind == _BY_HARDWARE or hashed(name) in known:
        return True
    # As a word: a device id may begin with what a record calls its hardware.
    return stated is not None and re.search(rf"(?<![\w-]){re.escape(stated)}(?![\w-])", name) is not None


def _opaque(source: str) -> str:
    kind, _, name = source.partition(":")
    return f"{kind}:{_OPAQUE}{hashed(name)}"


def _sources(plain: Any) -> Iterator[str]:  # noqa: ANN401 - JSON of any shape
    if isinstance(plain, list):
        for item in plain:
            yield from _sources(item)
    elif isinstance(plain, dict):
        for key, value in plain.items():
            if key in _SOURCES and isinstance(value, dict):
                yield from value
            else:
                yield from _sources(value)


def _renamed(
    plain: Any,  # noqa: ANN401 - JSON of any shape
    sources: Mapping[str, str],
    told: re.Pattern[str] | None,
    placeholder: str,
) -> Any:  # noqa: ANN401 - likewise
    if isinstance(plain, list):
        return [_renamed(item, sources, told, placeholder) for item in plain]
    if not isinstance(plain, dict):
        return plain
    found: dict[str, Any] = {}
    for key, value in plain.items():
        if key in _SOURCES and isinstance(value, dict):
            found[key] = {sources.get(name, name): sigma for name, sigma in value.items()}
        elif key in _WORDS and isinstance(value, str):
            found[key] = value if told is None else told.sub(lambda _: placeholder, value)
        else:
            found[key] = _renamed(value, sources, told, placeholder)
    return found
