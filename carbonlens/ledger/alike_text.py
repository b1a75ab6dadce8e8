"""The records of alike runs as JSON: the text of their pattern, with each run's own figures in it."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from itertools import repeat
from typing import TYPE_CHECKING, Any, Final

import msgspec

from carbonlens.domain.alike import MICRO, Alike

if TYPE_CHECKING:
    from carbonlens.domain.alike import Real, Whole

_MARK: Final = "\x7f%s\x7f"
"""Stands for a figure in the text of a pattern; no name of ours holds such a character."""


def texts_of(alike: Alike) -> tuple[list[str], list[str]]:
    """Return the record of each run as JSON, letter by letter as of one alone, and the hash of each."""
    columns = _columns(alike)
    first, *others = _pieces(alike, list(columns))
    # A formatted text would be read letter by letter for each run; pieces are copied.
    told = [
        part
        for column, piece in zip(columns.values(), others, strict=True)
        for part in (column, repeat(piece))
    ]
    made = list(map("".join, zip(repeat(first, len(alike)), *told)))  # noqa: B905  # pieces do not end
    sha256 = hashlib.sha256
    return made, [sha256(text.encode()).hexdigest() for text in made]


def _columns(alike: Alike) -> dict[str, list[str]]:
    """Return the figures of each run as JSON has them, in the order in which they stand there."""
    found: dict[str, list[str]] = {
        "run_id": _quoted(alike.run_ids),
        "start_us": _plain(alike.start_us),
        "end_us": _plain(alike.end_us),
        "duration_s": _plain(alike.duration_s),
    }
    widths = iter(alike.widths_j)
    for name, columns in (("energy", alike.energy_uj), ("beside", alike.beside_uj)):
        for place, column in enumerate(columns):
            found[f"{name} {place} energy_j"] = _joules(column)
            found[f"{name} {place} u"] = _plain(next(widths))
    found["emissions_reported_kg"] = list(map(str, alike.emissions_kg))
    if alike.pattern.origin is not None:
        found["source_line"] = _plain(alike.lines)
    return found


def _pieces(alike: Alike, names: Sequence[str]) -> list[str]:
    """Return the text of the pattern around its figures: before the first of them, and after each.

    Raises:
        ValueError: If the figures do not stand in it in the order of their names.
    """
    plain: dict[str, Any] = msgspec.to_builtins(alike.pattern)
    for name in ("run_id", "start_us", "end_us", "duration_s", "emissions_reported_kg"):
        plain[name] = _MARK % name
    for name in ("energy", "beside"):
        for place, reading in enumerate(plain[name]):
            reading["energy_j"] = _MARK % f"{name} {place} energy_j"
            (source,) = reading["u_by_source_j"]
            reading["u_by_source_j"] = {source: _MARK % f"{name} {place} u"}
    if plain.get("origin") is not None:
        plain["origin"]["source_line"] = _MARK % "source_line"
    rest = msgspec.json.encode(plain).decode()
    pieces = []
    for name in names:
        is_text = name.endswith(("run_id", "energy_j", "_kg"))
        mark = _MARK % name if is_text else f'"{_MARK % name}"'
        before, found, rest = rest.partition(mark)
        if not found:
            raise ValueError(f"the text of a pattern does not hold {name} where it should")
        pieces.append(before)
    return [*pieces, rest]


def _quoted(texts: Sequence[str]) -> list[str]:
    """Return texts as they stand between the quotes of JSON."""
    whole = msgspec.json.encode(texts).decode()
    if "\\" not in whole:
        return whole[2:-2].split('","')
    return [msgspec.json.encode(text).decode()[1:-1] for text in texts]


def _plain(values: Real | Whole) -> list[str]:
    """Return numbers as JSON has them."""
    return msgspec.json.encode(values.tolist()).decode()[1:-1].split(",")


def _joules(microjoules: Whole) -> list[str]:
    """Return joules as records have them."""
    digits = _plain(microjoules)
    if microjoules.min() < 10**MICRO:
        digits = [text.zfill(MICRO + 1) for text in digits]
    return [f"{text[:-MICRO]}.{text[-MICRO:]}" for text in digits]
