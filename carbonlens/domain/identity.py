"""Identity: run ids and content hashes, as pure functions of given bytes."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from functools import cache
from importlib import import_module
from typing import Any, Final

_SHORT: Final = 1 << 16
"""Bytes up to which another SHA-256 than OpenSSL's costs less than loading that one."""


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
