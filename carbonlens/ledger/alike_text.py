"""The records of alike runs as JSON: the text of their pattern, with each run's own figures in it."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from itertools import repeat
from operator import add
from typing import TYPE_CHECKING, Any, Final

import msgspec

from carbonlens.domain.alike import MICRO, Alike

if TYPE_CHECKING:
    from carbonlens.domain.alike import Real, Whole

_MARK: Final = "\x7f%s\x7f"
"""Stands for a figure in the text of a pattern; no name of ours holds such a character."""


class Texts(msgspec.Struct, frozen=True):
    """The texts of alike runs, in UTF-8, one of each a run.

    Attributes:
        run_ids: Their ids.
        records: Each record as JSON, letter by letter as of one alone.
        hashes: SHA-256 of each record, in hexadecimal digits.
        kg: Emissions that the source states.
    """

    run_ids: list[bytes]
    records: list[bytes]
    hashes: list[bytes]
    kg: list[bytes]


def texts_of(alike: Alike) -> Texts:
    """Return the record of each run, and what else of it is kept as text."""
    columns = _columns(alike)
    first, *others = _pieces(alike, list(columns))
    # A formatted text would be read letter by letter for each run; pieces are copied.
    told = [
        part
        for column, piece in zip(columns.values(), others, strict=True)
        for part in (column, repeat(piece))
    ]
    made = list(map(b"".join, zip(repeat(first, len(alike)), *told)))  # noqa: B905  # pieces do not end
    sha256 = hashlib.sha256
    return Texts(
        run_ids=[text.encode() for text in alike.run_ids],
        records=made,
        hashes=[sha256(text).hexdigest().encode() for text in made],
        kg=columns["emissions_reported_kg"],
    )


def _columns(alike: Alike) -> dict[str, list[bytes]]:
    """Return the figures of each run as JSON has them, in the order in which they stand there."""
    found: dict[str, list[bytes]] = {
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
    found["emissions_reported_kg"] = [str(kg).encode() for kg in alike.emissions_kg]
    if alike.pattern.origin is not None:
        found["source_line"] = _plain(alike.lines)
    return found


def _pieces(alike: Alike, names: Sequence[str]) -> list[bytes]:
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
        pieces.append(before.encode())
    return [*pieces, rest.encode()]


def _quoted(texts: Sequence[str]) -> list[bytes]:
    """Return texts as they stand between the quotes of JSON."""
    whole = msgspec.json.encode(texts)
    if b"\\" not in whole:
        return whole[2:-2].split(b'","')
    return [msgspec.json.encode(text)[1:-1] for text in texts]


def _plain(values: Real | Whole) -> list[bytes]:
    """Return numbers as JSON has them."""
    return msgspec.json.encode(values.tolist())[1:-1].split(b",")


def _joules(microjoules: Whole) -> list[bytes]:
    """Return joules as records have them: with six places, and none below zero."""
    import numpy as np

    whole, rest = np.divmod(microjoules, 10**MICRO)
    # Digit by digit over all of them: a text for each, cut in two, takes thrice the time.
    letters = np.full((len(rest), MICRO + 1), ord("."), dtype=np.uint8)
    rest = rest.astype(np.uint32)
    for place in range(MICRO, 0, -1):
        rest, digit = np.divmod(rest, np.uint32(10))
        letters[:, place] = digit + ord("0")
    return list(map(add, _plain(whole), letters.view(f"S{MICRO + 1}").ravel().tolist()))
