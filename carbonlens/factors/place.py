"""Where the user's own factors lie."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from carbonlens.errors import UsageError
from carbonlens.ledger.location import expanded, from_pyproject, working_folder

VARIABLE: Final = "CARBONLENS_FACTORS"
OPTION: Final = "--factors"


def locate_factors(
    explicit: str | Path | None = None,
    *,
    start: Path | None = None,
    environ: Mapping[str, str] | None = None,
) -> Path | None:
    """Return the file or folder of the user's own factors, ``None`` when none is named.

    The first that is given wins: ``explicit``, the variable ``CARBONLENS_FACTORS``,
    ``[tool.carbonlens] factors`` in the nearest ``pyproject.toml`` (relative to that file).
    There is no default: a folder that merely has the right name is not read.

    Args:
        explicit: The ``--factors`` option.
        start: Folder to search from; the working directory when ``None``.
        environ: Environment; the process's own when ``None``.

    Raises:
        ConfigError: If the nearest ``pyproject.toml`` names factors by no text, or a
            ``~user`` has no home.
        UsageError: If ``explicit`` is empty.
    """
    if explicit == "":
        # As a path it would be the working folder; a shell variable that is not set gives it.
        raise UsageError("the path is empty", where=OPTION, mend="give a file or folder, or leave it out")
    if explicit is not None:
        return expanded(Path(explicit), OPTION).absolute()
    variables = os.environ if environ is None else environ
    if variables.get(VARIABLE):
        return expanded(Path(variables[VARIABLE]), VARIABLE).absolute()
    return from_pyproject((start or working_folder()).absolute(), "factors")
