"""Identity: run ids, content hashes and pseudonyms of hosts, as pure functions of what is given."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from functools import cache
from importlib import import_module
from typing import Any, Final

_SHORT: Final = 1 << 16
"""Bytes up to which another SHA-256 than OpenSSL's costs less than loading that one."""


_PSEUDONYM_LENGTH: Final = 32
_HEXADECIMAL: Final = frozenset("0123456789abcdef")


def uuid7(unix_ms: int, randomness: bytes) -> str:
    """Return a UUID version 7 (RFC 9562, 5.7), which sorts by time.

    Args:
        unix_ms: Milliseconds since 1970 UTC.
        randomness: At least 10 random bytes.

    Raises:
        ValueError: If fewer than 10 bytes are given.
    """
    if len(randomness) < 10:
        raise ValueError("uuid7 needs 10 random bytes")
    tail = int.from_bytes(randomness[:10], "big")
    rand_a = tail >> 68
    rand_b = tail & ((1 << 62) - 1)
    value = (unix_ms & ((1 << 48) - 1)) << 80 | 0x7 << 76 | rand_a << 64 | 0b10 << 62 | rand_b
    return str(uuid.UUID(int=value))


def uuid7_ms(text: str) -> int | None:
    """Return the milliseconds since 1970 UTC that a UUID version 7 carries; ``None`` for other text."""
    try:
        value = uuid.UUID(text)
    except ValueError:
        return None
    return value.int >> 80 if value.version == 7 and str(value) == text else None


def sha256_hex(content: bytes) -> str:
    """Return the SHA-256 of the content, in hexadecimal."""
    found: str = (_sha256() if len(content) <= _SHORT else _fast_sha256())(content).hexdigest()
    return found


def host_pseudonym(*parts: str) -> str:
    """Return what stands for a host, or a thing of it: who knows the name can tell it, nobody else.

    Args:
        parts: What names it, the same ones in the same order each time.
    """
    return sha256_hex("\n".join(("carbonlens host", *parts)).encode())[:_PSEUDONYM_LENGTH]


def is_plain_host(name: str | None) -> bool:
    """Tell whether the id of a host is a name in plain letters, as a source states it, not a pseudonym."""
    if not name:
        return False
    return len(name) != _PSEUDONYM_LENGTH or not set(name) <= _HEXADECIMAL


def without_host_name(name: str | None) -> str | None:
    """Return the id of a host with a pseudonym in the place of a plain name.

    Args:
        name: Of the host; ``None`` where none is told.
    """
    return host_pseudonym(name) if name and is_plain_host(name) else name


def is_hidden_as(run_id: str, said: str) -> bool:
    """Tell whether an id is that of a run with a pseudonym in the place of the host that it ends with.

    Args:
        run_id: Of a run, as its record has it.
        said: What a table of runs may call it.
    """
    begin, _, end = said.rpartition("-")
    if not begin or is_plain_host(end or "-") or not run_id.startswith(f"{begin}-"):
        return False
    return host_pseudonym(run_id[len(begin) + 1 :]) == end


@cache
def _sha256() -> Callable[[bytes], Any]:
    """Return Python's own SHA-256: ``hashlib`` loads OpenSSL first, 5 ms of a start."""
    for name in ("_sha2", "_sha256"):  # since Python 3.12, and before
        try:
            own: Callable[[bytes], Any] = import_module(name).sha256
        except ImportError:
            continue
        return own
    return _fast_sha256()  # one that was built without


@cache
def _fast_sha256() -> Callable[[bytes], Any]:
    from hashlib import sha256

    return sha256
