"""Trace: the file in which every reading of a run was kept, as its record names it."""

from __future__ import annotations

import msgspec


class Trace(msgspec.Struct, frozen=True, kw_only=True):
    """A file of readings.

    Attributes:
        file: Its name as the user gave it; relative to the folder the work was started in.
        sha256: Hash of the file as written, compressed or not.
    """

    file: str
    sha256: str
