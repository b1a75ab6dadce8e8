"""Pedigree of a user's factor: the judgements of its quality, as they stand in a table's cell.

A cell names the factor of uncertainty of each judgement, ``basic=1.05, reliability=1.1``: the
table from scores to factors is the user's, because published ones differ. It becomes the row's
``u_relative``, and its words stay in the row's note.
"""

from __future__ import annotations

from typing import Any, Final

from carbonlens.accounting.pedigree import relative_sigma, sd95
from carbonlens.errors import ConfigError

COLUMN: Final = "pedigree"
"""Column of a table beside those of the row's own fields."""

JUDGEMENTS: Final = ("reliability", "completeness", "temporal", "geographic", "technology")
"""Judgements of data quality (Weidema and Wesnaes 1996), beside ``basic``, the kind of figure itself."""

_BASIC: Final = "basic"
_RIVALS: Final = ("u_relative", "low", "high")


def with_sigma(plain: dict[str, Any], where: str) -> dict[str, Any]:
    """Return a plain row whose pedigree, if it has one, is its ``u_relative``.

    Args:
        plain: Fields of the row as texts, or as TOML's values.
        where: Its place, as errors are to name it.

    Raises:
        ConfigError: If the pedigree is malformed, a factor of it is below 1, or the row states
            another width beside it.
    """
    if COLUMN not in plain:
        return plain
    rivals = [name for name in _RIVALS if name in plain]
    if rivals:
        raise ConfigError(
            f"states a pedigree and {rivals[0]}", where=where, mend="keep one: each tells how sure it is"
        )
    text = str(plain[COLUMN])
    factors = _factors(text, where)
    try:
        spread = sd95(factors.pop(_BASIC, 1.0), factors)
    except ConfigError as error:
        raise ConfigError(
            f"pedigree: {error.what}", where=f"{where}, {error.where}", mend=error.mend or ""
        ) from error
    note = "; ".join(t for t in (str(plain.get("note", "")), f"u_relative by pedigree: {text}") if t)
    rest = {name: value for name, value in plain.items() if name != COLUMN}
    return {**rest, "u_relative": relative_sigma(spread), "note": note}


def _factors(text: str, where: str) -> dict[str, float]:
    found: dict[str, float] = {}
    for part in text.split(","):
        name, _, number = (t.strip() for t in part.partition("="))
        value = _number(number)
        if name not in (_BASIC, *JUDGEMENTS) or name in found or value is None:
            raise ConfigError(
                f"pedigree has {part.strip()!r}",
                where=where,
                mend=f"write NAME=FACTOR, each name once, of {', '.join((_BASIC, *JUDGEMENTS))}",
            )
        found[name] = value
    return found


def _number(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if value < float("inf") else None
