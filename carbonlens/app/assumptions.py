"""Use case: load the factors and prices a user states."""

from __future__ import annotations

from pathlib import Path

from carbonlens.domain.factor import Vector
from carbonlens.inventory import assumptions


def load_assumptions(path: Path) -> Vector:
    """Read an assumptions file.

    Raises:
        InputFileError: If it cannot be read.
        ConfigError: If it is malformed or a value is impossible.
    """
    return assumptions.load(path)
