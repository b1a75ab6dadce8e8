"""Identity: run ids and content hashes, as pure functions of given bytes."""

from __future__ import annotations

import hashlib
import uuid


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
    return hashlib.sha256(content).hexdigest()
