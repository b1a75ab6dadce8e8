"""Where the inventory folder lies."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from carbonlens.errors import InputFileError, UsageError
from carbonlens.ledger.location import expanded, from_pyproject, working_folder

INVENTORY_VARIABLE: Final = "CARBONLENS_INVENTORY"
FOLDER: Final = "inventory"


def locate(
    explicit: str | Path | None = None,
    *,
    start: Path | None = None,
    environ: Mapping[str, str] | None = None,
) -> Path | None:
    """Return the inventory folder; ``None`` where nobody names one and none stands here.

    The first that is given wins: ``explicit``, the variable ``CARBONLENS_INVENTORY``,
    ``[tool.carbonlens] inventory`` in the nearest ``pyproject.toml`` (relative to that
    file), ``./inventory`` if it is a folder.

    Args:
        explicit: The ``--inventory`` option.
        start: Folder to search from; the working directory when ``None``.
        environ: Environment; the process's own when ``None``.

    Raises:
        UsageError: If ``explicit`` is empty.
        ConfigError: If ``pyproject.toml`` names no path, or a ``~user`` has no home.
        InputFileError: If the folder that is named is not there.
    """
    if explicit == "":
        raise UsageError("the path is empty", where="--inventory", mend="give a folder, or leave it out")
    if explicit is not None:
        return _folder(expanded(Path(explicit), "--inventory"), "check the path")
    variables = os.environ if environ is None else environ
    if variables.get(INVENTORY_VARIABLE):
        named = expanded(Path(variables[INVENTORY_VARIABLE]), INVENTORY_VARIABLE)
        return _folder(named, f"check {INVENTORY_VARIABLE}")
    here = (start or working_folder()).absolute()
    project = from_pyproject(here, FOLDER)
    if project is not None:
        return _folder(project, "check [tool.carbonlens] inventory in pyproject.toml")
    return here / FOLDER if (here / FOLDER).is_dir() else None


def _folder(path: Path, mend: str) -> Path:
    if not path.is_dir():
        what = "is no folder" if path.exists() else "is not there"
        raise InputFileError(what, where=str(path), mend=mend)
    return path.absolute()
