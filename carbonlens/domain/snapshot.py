"""Snapshot: an inventory file as it stood when figures were made from it."""

from __future__ import annotations

import msgspec

from carbonlens.domain.run import Origin


class Snapshot(msgspec.Struct, frozen=True, kw_only=True):
    """The content of one inventory file.

    Attributes:
        snapshot_id: Hash of name and content: the same counts once.
        name: File it stood in: ``sites.toml``, ``readings-2026.csv``...
        taken_us: When it was read, UTC microseconds.
        text: The content as read.
    """

    snapshot_id: str
    name: str
    taken_us: int
    text: str
    schema_version: int = 1
    supersedes: str | None = None
    origin: Origin | None = None
