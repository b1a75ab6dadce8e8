"""Files of power samples: which of a day's count, while other hosts put them into one.

A day's merged file counts by its manifest, which comes after it and before what it was made
from goes: a day that is listed at once holds each sample once.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

import msgspec

from carbonlens.domain.decoding import decode_json
from carbonlens.domain.identity import sha256_hex
from carbonlens.ledger import layout

MERGED: Final = "merged-"
"""How the names of merged files begin."""

ATTEMPTS: Final = 5
"""How often a day is listed again when other hosts' merging changes it meanwhile."""


class _Merged(msgspec.Struct, frozen=True):
    files: tuple[str, ...]
    schema_version: int = 1


def counting(folder: Path) -> list[Path]:
    """Return the files whose samples count: merged ones with their manifest, others not in one.

    Raises:
        OSError: If the folder cannot be read.
    """
    manifests = layout.files_in(folder, ".json")
    for _ in range(ATTEMPTS):
        files = layout.files_in(folder, ".parquet")
        before, manifests = manifests, layout.files_in(folder, ".json")
        # A manifest that came between the two lists names files that one of them has, not the other.
        if manifests == before:
            break
    # A damaged manifest still makes its merged file count: what it was made from is gone, as far as known.
    merged = {name for m in manifests for name in names_in(m) or ()}
    whole = {m.stem for m in manifests}
    return [f for f in files if f.name not in merged and (not f.name.startswith(MERGED) or f.stem in whole)]


def names_in(manifest: Path) -> tuple[str, ...] | None:
    """Return the files that a manifest says were merged; ``None`` where it is damaged."""
    try:
        return decode_json(manifest.read_bytes(), _Merged).files
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return None


def manifest_of(names: Sequence[str]) -> bytes:
    """Return the manifest of these files, merged."""
    return msgspec.json.encode(_Merged(tuple(names)))


def merged_name(names: Sequence[str]) -> str:
    """Return the name, without its ending, of what these files were merged into."""
    return f"{MERGED}{sha256_hex(chr(10).join(names).encode())[:32]}"
