"""Text of the user's that goes into a record: storable, and free of secrets (law 11)."""

from __future__ import annotations

import errno
import os
import re
import sys
from collections.abc import Iterable, Sequence
from typing import Final

from carbonlens.domain.identity import sha256_hex

_SHORTEST_SECRET: Final = 7
"""Shorter values are words and numbers of everyday: an error would say nothing without them."""

_SURROGATE: Final = re.compile("[\ud800-\udfff]")
_HIDDEN: Final = "[hidden]"
_LONGEST_KIND: Final = 60


class UnfitValueError(ValueError):
    """A number that a record cannot take; the text says why and holds no value."""


def unfit(value: object, error: BaseException, wanted: str) -> str:
    """Return why a value of the user's was not taken, without the value; raises nothing.

    Args:
        value: What was given; it may be a secret that stands in the wrong place (law 11).
        error: What came of using it.
        wanted: What is wanted instead.
    """
    if isinstance(error, UnfitValueError):
        return f"{error}; {wanted} is wanted"
    kind = plain(type(value).__name__)[:_LONGEST_KIND]
    plainly = isinstance(error, AttributeError | TypeError | ValueError)
    of_its_own = "" if plainly else f" ({error_kind(error)})"
    return f"a value of type {kind} was given{of_its_own}; {wanted} is wanted"


def plain(value: object) -> str:
    """Return a value as text that UTF-8 can hold.

    Raises:
        Exception: Whatever the value's own ``__str__`` raises.
    """
    # Undecodable bytes of file names and arguments are lone surrogates, which JSON has not.
    return _SURROGATE.sub("\N{REPLACEMENT CHARACTER}", str(value))


def error_kind(error: BaseException) -> str:
    """Return what may be recorded of an error of the user's: its type; raises nothing.

    Its message is left out, because it may hold anything: an address with a key in it,
    a path, a piece of the data. How a command of ``subprocess`` ended, and what the
    system says of an error number, hold nothing of the user's.
    """
    name = plain(type(error).__name__)
    try:
        said = _outcome_of_command(error)
    except Exception:  # noqa: BLE001  # law 8: the error is the user's own class
        return name
    if said is None and isinstance(error, OSError):
        number = error.errno
        said = os.strerror(number) if type(number) is int and number in errno.errorcode else None
    return name if said is None else f"{name}: {said}"


def error_text(error: BaseException) -> str:
    """Return type and message of an error, secrets hidden; raises nothing.

    For faults of our own: of the user's errors only the ``error_kind`` is recorded. Of
    an error of ``subprocess`` the command is left out: its arguments are nobody's
    business but the user's.
    """
    name = type(error).__name__
    try:
        message = _outcome_of_command(error)
        return f"{name}: {redacted(plain(error) if message is None else message)}".rstrip(": ")
    except Exception:  # noqa: BLE001  # law 8: an error that cannot say what it is still has a type
        return name


def redacted(text: str) -> str:
    """Return a text without the values of this process's arguments and environment."""
    for secret in sorted(_secrets(), key=len, reverse=True):
        text = text.replace(secret, _HIDDEN)
    return text


def arguments_sha256(arguments: Sequence[str]) -> str:
    """Return the hash that stands for a program's arguments."""
    joined = "\0".join(map(str, arguments))
    try:
        return sha256_hex(joined.encode("utf-8", "surrogateescape"))
    except UnicodeEncodeError:
        # A surrogate that stands for no byte: somebody changed sys.argv.
        return sha256_hex(joined.encode("utf-8", "surrogatepass"))


def _outcome_of_command(error: BaseException) -> str | None:
    """Return how a command of ``subprocess`` ended; ``None`` for any other error."""
    # Not imported here: a program that raised such an error has it loaded.
    subprocess = sys.modules.get("subprocess")
    if subprocess is None or not isinstance(error, subprocess.SubprocessError):
        return None
    if isinstance(error, subprocess.CalledProcessError):
        code = error.returncode
        return f"died by signal {-code}" if isinstance(code, int) and code < 0 else f"exit status {code}"
    if isinstance(error, subprocess.TimeoutExpired):
        return f"after {error.timeout} s" if isinstance(error.timeout, int | float) else None
    return None


def _secrets() -> set[str]:
    found: set[str] = set()
    for value in _values():
        found.update(line.strip() for line in (value, *value.splitlines()))
    return {plain(s) for s in found if len(s) >= _SHORTEST_SECRET}


def _values() -> Iterable[str]:
    for argument in map(str, getattr(sys, "argv", ())[1:]):
        yield argument
        # --token=VALUE
        yield argument.partition("=")[2]
    yield from os.environ.values()
