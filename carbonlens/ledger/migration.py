"""Schema versions: older records are brought forward when read, files are never rewritten for it.

Each step is a pure function from the plain mapping of one version to that of
the next. A record newer than this carbonlens is refused by name, not guessed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from carbonlens.domain.run import SCHEMA_VERSION
from carbonlens.errors import RecordError

Plain = Mapping[str, Any]
"""A record as JSON gives it: the one place where its fields have no types yet."""

Step = Callable[[Plain], Plain]

STEPS: Final[Mapping[int, Step]] = {}
"""Version to the step that leaves it. Version 1 is the first and, so far, the only one."""


class NewerSchemaError(RecordError):
    """A record was written by a newer carbonlens.

    Args:
        version: The record's schema version.
        where: The file it is in.
    """

    def __init__(self, version: int, *, known: int = SCHEMA_VERSION, where: str | None = None) -> None:
        """Keep the version, so that a reader can name it."""
        self.version = version
        super().__init__(
            f"record has schema version {version}, newer than {known}",
            where=where,
            mend="upgrade carbonlens",
        )


def version_of(plain: Plain) -> int:
    """Return a record's schema version.

    Raises:
        RecordError: If it states none that is a positive whole number.
    """
    version = plain.get("schema_version", 1)
    if not isinstance(version, int) or isinstance(version, bool) or version < 1:
        raise RecordError(
            f"schema_version is {version!r}, no positive whole number", mend="restore the file from a copy"
        )
    return version


def forward(plain: Plain, *, steps: Mapping[int, Step] = STEPS, to: int = SCHEMA_VERSION) -> Plain:
    """Return the record in the schema version ``to``.

    Args:
        plain: A record of any version up to ``to``.
        steps: Version to the step that leaves it.
        to: The version wanted.

    Raises:
        NewerSchemaError: If the record is newer than ``to``.
        RecordError: If no step leaves a version on the way.
    """
    version = version_of(plain)
    if version > to:
        raise NewerSchemaError(version, known=to)
    while version < to:
        step = steps.get(version)
        if step is None:
            raise RecordError(
                f"no migration leaves schema version {version}", mend="report this: a release forgot it"
            )
        version += 1
        plain = {**step(plain), "schema_version": version}
    return plain
