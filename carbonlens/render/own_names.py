"""Own names: files of a user's folder that no page uses, most of them for a slip of the pen."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from difflib import get_close_matches
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Final

from carbonlens.errors import ConfigError
from carbonlens.render.environment import need
from carbonlens.render.look import Look

if TYPE_CHECKING:
    from jinja2 import Environment

_THEME: Final = "theme.toml"
_READ_BY_NONE: Final = (".html", ".htm", ".jinja", ".jinja2", ".toml")
"""Endings of files that look like a template or a theme; copies that an editor keeps are none of them."""
_ALIKE: Final = 0.8
_MEND: Final = "correct its name, or include it in a template that is used"


def check_names(look: Look, files: Collection[str], pages: Collection[str], environment: Environment) -> None:
    """Refuse a folder in which nothing is of use to a page, or a template that no page reads.

    Args:
        look: What the folder gives.
        files: Names of all of its files.
        pages: Names of the pages that a template may extend.
        environment: That reads the user's templates and ours.

    Raises:
        ConfigError: With the names that are known.
    """
    known = f"known: {', '.join((*pages, _THEME))}"
    if not look.templates and _THEME not in files and not list(_slips(files, pages)):
        raise ConfigError(
            "holds no template of a page and no theme.toml",
            where=look.folder,
            mend=f"{known}; --init-template begins a folder",
        )
    unused = [*_unused(look, pages, environment), *_slips(files, pages)]
    if unused:
        name = unused[0]
        by_stem = {_stem(one): one for one in (*pages, _THEME)}
        near = get_close_matches(_stem(name), by_stem, 1, _ALIKE)
        meant = f"{_MEND}; near: {by_stem[near[0]]}" if near else _MEND
        raise ConfigError(
            "is used by no page", where=str(PurePosixPath(look.folder) / name), mend=f"{meant}; {known}"
        )


def _unused(look: Look, pages: Collection[str], environment: Environment) -> Iterator[str]:
    """Yield the templates that no page leads to; none where a page takes one by a computed name."""
    meta = need("jinja2.meta")
    waiting, reached = list(pages), set(pages)
    while waiting:
        source = _source(environment, waiting.pop())
        for name in meta.find_referenced_templates(environment.parse(source)):
            if name is None:
                return
            if name not in reached:
                reached.add(name)
                waiting.append(name)
    yield from (name for name in look.templates if name not in reached)


def _source(environment: Environment, name: str) -> str:
    assert environment.loader is not None  # noqa: S101  # user_templates.sandbox() gave it one
    try:
        source, _, _ = environment.loader.get_source(environment, name)
    except need("jinja2").TemplateNotFound:
        return ""  # said by the page that asks for it, with its line
    return source


def _slips(files: Collection[str], pages: Collection[str]) -> Iterator[str]:
    """Yield the files that are named almost like a template or the theme, and are read as neither."""
    for name in files:
        if name == _THEME or not name.lower().endswith(_READ_BY_NONE) or _may_be_report(name):
            continue
        if name.lower().endswith(".toml") and _THEME in files:
            continue  # a theme that is kept beside the one in use
        # A folder's page is mistaken for one of a folder.
        wanted = [_stem(one) for one in (*pages, _THEME) if one.count("/") == name.count("/")]
        if get_close_matches(_stem(name), wanted, 1, _ALIKE):
            yield name


def _may_be_report(name: str) -> bool:
    """Return whether a file is what this folder's own reports are called, where they are saved into it."""
    return "/" not in name and name.lower().endswith((".html", ".htm"))


def _stem(name: str) -> str:
    """Return a name without the endings of a template, in small letters."""
    path = PurePosixPath(name.lower())
    while path.suffix in (".j2", ".jinja", ".jinja2", ".html", ".htm"):
        path = path.with_suffix("")
    return str(path)
