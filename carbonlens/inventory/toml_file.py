"""Reading and writing of user TOML, with errors that name the place."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final, TypeVar

import msgspec

from carbonlens.domain import decoding
from carbonlens.errors import ConfigError, InputFileError, MissingExtraError

_T = TypeVar("_T")


def read(path: Path) -> dict[str, Any]:
    """Return the tables of a TOML file.

    Raises:
        InputFileError: If the file cannot be read.
        ConfigError: If it is no TOML; the text names the line.
    """
    try:
        return tomllib.loads(path.read_text("utf-8"))
    except OSError as error:
        raise InputFileError(
            f"cannot be read ({error.strerror or error})", where=str(path), mend="check the path"
        ) from error
    except UnicodeDecodeError as error:
        raise ConfigError("is not UTF-8 text", where=str(path), mend="save it as UTF-8") from error
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"is not valid TOML: {error}", where=str(path), mend="mend that line") from error


def convert(tables: object, kind: type[_T], *, where: str) -> _T:
    """Turn parsed tables into a record.

    Args:
        tables: What ``read`` gave, or a part of it.
        kind: Record type; unknown keys are refused if it forbids them.
        where: File, for the error.

    Raises:
        ConfigError: If a key is unknown, missing or of a wrong type.
    """
    try:
        return decoding.convert(tables, kind, strict=True)
    except msgspec.ValidationError as error:
        message, mend = _in_words(str(error), kind)
        raise ConfigError(message, where=where, mend=mend) from error


_PLACE: Final = re.compile(r" - at `\$\.?(?P<key>[^`]*)`$")
_MISSING: Final = re.compile(r"Object missing required field `(?P<name>[^`]+)`")
_NO_VALUE: Final = re.compile(r"Invalid enum value (?P<value>.+)")
_UNKNOWN: Final = re.compile(r"Object contains unknown field `(?P<name>[^`]+)`")


def _in_words(told: str, kind: type[Any]) -> tuple[str, str]:
    """Return what a decoder says of a table, in the words of a file's writer, and how to mend it."""
    place = _PLACE.search(told)
    what, key = (told, "") if place is None else (told[: place.start()], place["key"])
    table = f"[{key}]" if key else "the file"
    missing, unknown = _MISSING.fullmatch(what), _UNKNOWN.fullmatch(what)
    if missing is not None:
        return f"{table} lacks the key {missing['name']!r}", f"add {missing['name']} = ... there"
    if unknown is not None:
        return f"{table} has an unknown key {unknown['name']!r}", "correct its spelling, or take it out"
    other = _NO_VALUE.fullmatch(what)
    values = () if other is None else _values(kind, key)
    if other is not None and values:
        return f"{key}: {other['value']} is none of its values", f"give one of {', '.join(values)}"
    return f"{key}: {what[0].lower()}{what[1:]}" if key else what, "mend that key"


def _values(kind: type[Any], key: str) -> tuple[str, ...]:
    """Return the values that a key may have, where those are a list: quoted, as the file writes them."""
    from msgspec import inspect  # loaded here: for a message alone

    found: list[inspect.Type] = [inspect.type_info(kind)]
    for name in re.findall(r"[^.\[\]]+|\[[^\]]*\]", key):
        found = [inner for one in found for inner in _inside(one, name)]
    return tuple(repr(v) for one in found if isinstance(one, inspect.LiteralType) for v in one.values)


def _inside(kind: Any, name: str) -> Iterator[Any]:  # noqa: ANN401  # one of msgspec's kinds of types
    """Yield the types of what a key or an index leads to, without the wrapping of an optional one."""
    from msgspec import inspect

    if isinstance(kind, inspect.StructType):
        inner = [f.type for f in kind.fields if f.encode_name == name]
    elif isinstance(kind, inspect.DictType):
        inner = [kind.value_type]
    else:
        inner = [kind.item_type] if hasattr(kind, "item_type") else []
    for one in inner:
        yield from one.types if isinstance(one, inspect.UnionType) else (one,)


def dumps(tables: Mapping[str, Any]) -> str:
    """Return tables as TOML text.

    Raises:
        MissingExtraError: If tomli-w is not installed.
    """
    try:
        import tomli_w
    except ImportError as error:
        raise MissingExtraError("analysis", "tomli-w") from error
    return tomli_w.dumps(tables)
