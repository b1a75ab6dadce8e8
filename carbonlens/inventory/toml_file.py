"""Reading and writing of user TOML, with errors that name the place."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar

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
        raise ConfigError(str(error), where=where, mend="mend that key") from error


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
