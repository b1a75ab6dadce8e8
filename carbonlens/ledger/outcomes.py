"""Outcomes of single examples, 0 or 1, beside the runs; a file is named by its content's hash."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import msgspec

from carbonlens.domain.decoding import decode_json
from carbonlens.domain.identity import sha256_hex
from carbonlens.errors import RecordError
from carbonlens.ledger import layout
from carbonlens.ledger.atomic import write_atomically


def write(ledger: Path, outcomes: Sequence[int]) -> str:
    """Store outcomes and return their hash; the same again changes nothing.

    Raises:
        OSError: If the ledger cannot be written.
    """
    content = msgspec.json.encode([int(x) for x in outcomes])
    name = sha256_hex(content)
    file = ledger / layout.OUTCOMES / f"{name}.json"
    if not file.exists():
        file.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(file, content)
    return name


def read(ledger: Path, sha256: str) -> tuple[int, ...] | None:
    """Return stored outcomes, ``None`` when the ledger has none of this hash.

    Raises:
        RecordError: If the content does not match its hash.
    """
    file = ledger / layout.OUTCOMES / f"{sha256}.json"
    if not file.is_file():
        return None
    content = file.read_bytes()
    if sha256_hex(content) != sha256:
        raise RecordError(
            "the outcomes do not match their hash", where=str(file), mend="restore the file from a copy"
        )
    return decode_json(content, tuple[int, ...])
