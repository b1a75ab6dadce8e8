"""What the command line is given that is no UTF-8: texts are refused, names of files are told.

A system hands over arguments, variables and names of files as bytes. Python keeps those that are no
UTF-8 as lone surrogates (PEP 383), which neither a record nor a report can hold.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import msgspec

from carbonlens.domain.file_names import is_utf8, printable
from carbonlens.errors import UsageError

_NEAR: Final = 30
"""Letters on each side by which a place in a text is known again."""


def refuse(called: str, value: object) -> None:
    """Refuse a value of an option or an argument.

    Args:
        called: The option or argument.
        value: What was given of it; several in a tuple.

    Raises:
        UsageError: If a text in it is no UTF-8.
    """
    for text in value if isinstance(value, tuple) else (value,):
        if isinstance(text, str) and not is_utf8(text):
            raise UsageError(
                f"'{printable(text)}' is no UTF-8",
                where=called,
                mend="write it in UTF-8, or leave those bytes out",
            )


def error_of(error: UnicodeEncodeError) -> UsageError | None:
    """Return the error of a text that came from outside and is no UTF-8; ``None`` if it was another fault.

    The options of commands are looked at before they run. This is said of whatever else the system
    gives as bytes: names of folders that were found, variables, what a file of the user's names.

    Args:
        error: What came of writing it.
    """
    text, place = error.object, error.start
    if is_utf8(text):
        return None
    near = text[max(place - _NEAR, 0) : place + _NEAR]
    return UsageError(
        f"a text is no UTF-8, near '{printable(near)}'",
        mend="name it in UTF-8: of an option, a file or folder, or a variable such as CARBONLENS_LEDGER",
    )


def told(value: object) -> object:
    r"""Return a payload, or a part of one, with ``\xNN`` for each byte of its texts that is no UTF-8."""
    if isinstance(value, str):
        return value if is_utf8(value) else printable(value)
    if isinstance(value, Mapping):
        return {told(name): told(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [told(one) for one in value]
    if isinstance(value, msgspec.Struct):
        fields = {name: told(getattr(value, name)) for name in value.__struct_fields__}
        return msgspec.structs.replace(value, **fields)
    return value
