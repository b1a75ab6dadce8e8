"""The types of a function's arguments, as click's: which texts of the command line give which values."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import click


def signature_of(function: Callable[..., object]) -> list[tuple[str, Any, Any]]:
    """Return name, type and default of each argument of a function."""
    kinds = get_type_hints(function, include_extras=True)
    return [(p.name, kinds[p.name], p.default) for p in inspect.signature(function).parameters.values()]


def value_of(kind: Any) -> tuple[Any, bool]:  # noqa: ANN401  # any type
    """Return the type of one value, and whether there may be several."""
    if get_origin(kind) in (Union, UnionType):
        kinds = [one for one in get_args(kind) if one is not NoneType]
        if len(kinds) == 1:
            (kind,) = kinds
    return (get_args(kind)[0], True) if get_origin(kind) is list else (kind, False)


def type_of(
    kind: Any,  # noqa: ANN401  # any type
    *,
    min: float | None = None,
    parser: Callable[[str], Any] | None = None,
    dir_okay: bool = True,
) -> click.ParamType[Any]:
    """Return click's type for one value.

    Raises:
        TypeError: If there is none; a fault of the command's signature.
    """
    if parser is not None:
        return click.types.FuncParamType(parser)
    if get_origin(kind) is Literal:
        return click.Choice(get_args(kind))
    if kind is int:
        return click.INT if min is None else click.IntRange(min=int(min))
    if kind is float:
        return click.FLOAT if min is None else click.FloatRange(min=min)
    if kind is Path:
        return click.Path(dir_okay=dir_okay, path_type=Path)
    if kind is str:
        return click.STRING
    raise TypeError(f"no option or argument is of type {kind!r}")


def metavar_of(kind: Any) -> str:  # noqa: ANN401  # any type
    """Return what the help calls a value of a type."""
    if get_origin(kind) is Literal:
        return f"<{'|'.join(get_args(kind))}>"
    return f"<{kind.__name__.lower()}>"
