"""Use case: the user's own templates: find, read, list, and begin a folder of them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

from carbonlens.domain.number_style import NumberStyle
from carbonlens.errors import UnwritableError, UsageError

if TYPE_CHECKING:
    from carbonlens.render.look import Look

_KEY: Final = "templates"
_STARTER: Final = "starter"


def find_look(templates: str | Path | None) -> tuple[Look | None, NumberStyle]:
    """Return the look of reports and how they write numbers; ours where nobody asks for another.

    Args:
        templates: The user's folder; that of ``[tool.carbonlens] templates`` in the nearest
            ``pyproject.toml`` when ``None``.

    Raises:
        ConfigError: If the folder, its theme or a file in it is not usable, or no page uses it.
        InputFileError: If a file cannot be read.
    """
    from carbonlens.ledger.location import from_pyproject

    folder = Path(templates) if templates is not None else from_pyproject(Path.cwd(), _KEY)
    if folder is None:
        return None, NumberStyle()
    from carbonlens.inventory.theme_file import read_theme
    from carbonlens.render.own_names import check_names
    from carbonlens.render.theme import files_of, read_look
    from carbonlens.render.user_templates import PAGES, check_templates, sandbox

    look = read_look(folder, theme := read_theme(folder))
    check_templates(look)
    check_names(look, files_of(folder), PAGES, sandbox(look))
    return look, theme.numbers


def list_templates() -> dict[str, tuple[tuple[str, str], ...]]:
    """Return the blocks that a user may fill, with one line each, by template."""
    from carbonlens.render.environment import template_file
    from carbonlens.render.user_templates import PAGES, blocks_of

    return {name: blocks_of(template_file(name).read_text(encoding="utf-8")) for name in PAGES}


def init_templates(folder: Path) -> tuple[Path, ...]:
    """Write a commented folder of templates to begin with and return its files.

    Args:
        folder: Where to; made if need be.

    Raises:
        UsageError: If one of the files is there already: nothing is written then.
        UnwritableError: If the folder cannot be written.
    """
    from carbonlens.ledger.store import write_atomically
    from carbonlens.render.environment import template_file

    root = template_file(f"{_STARTER}/theme.toml").parent
    contents = {
        folder / path.relative_to(root): path.read_bytes()
        for path in sorted(root.rglob("*"))
        if path.is_file()
    }
    for file in contents:
        if file.exists() or file.is_symlink():
            raise UsageError("is there already", where=str(file), mend="give a new folder")
    try:
        for file, content in contents.items():
            file.parent.mkdir(parents=True, exist_ok=True)
            write_atomically(file, content)
    except OSError as error:
        raise UnwritableError(
            f"cannot be written ({error.strerror or error})",
            where=str(folder),
            mend="give a folder you may write to",
        ) from error
    return tuple(contents)
