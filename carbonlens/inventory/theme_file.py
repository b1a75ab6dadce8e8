"""The theme file (``theme.toml``) in a folder of templates."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from carbonlens.domain.theme import Theme
from carbonlens.errors import ConfigError
from carbonlens.inventory import toml_file

NAME: Final = "theme.toml"


def read_theme(folder: Path) -> Theme:
    """Return the theme that a folder states; ours where it has no theme file.

    Args:
        folder: Of templates.

    Raises:
        ConfigError: If it is malformed.
        InputFileError: If it cannot be read.
    """
    path = folder / NAME
    if not path.exists():
        return Theme()
    theme = toml_file.convert(toml_file.read(path), Theme, where=str(path))
    if theme.numbers.decimal == theme.numbers.group:
        raise ConfigError(
            f"[numbers] decimal and group are both {theme.numbers.decimal!r}",
            where=str(path),
            mend="a number must be read in one way only: choose another group",
        )
    return theme
