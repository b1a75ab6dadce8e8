"""Environment: where the templates lie, and the Jinja environment over them."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

from carbonlens.errors import MissingExtraError

if TYPE_CHECKING:
    from jinja2 import Environment

_PACKAGE = Path(__file__).parents[1]
ROOTS = (_PACKAGE / "_report_templates", _PACKAGE.parent / "report_templates")
"""In an installed wheel, and in the repository (editable install)."""


def need(module: str) -> ModuleType:
    """Import a module of the ``report`` extra.

    Raises:
        MissingExtraError: If it is not installed.
    """
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        raise MissingExtraError("report", error.name or module) from error


def template_file(name: str) -> Path:
    """Return the path of a shipped template, style sheet or font.

    Raises:
        FileNotFoundError: If the installation is damaged and the file is gone.
    """
    for root in ROOTS:
        if (root / name).is_file():
            return root / name
    raise FileNotFoundError(f"carbonlens is installed without {name}")


def template_environment() -> Environment:
    """Return the environment: everything escaped, nothing silently undefined.

    Raises:
        MissingExtraError: If Jinja is not installed.
    """
    jinja2 = need("jinja2")
    loaders = [jinja2.FileSystemLoader(root) for root in ROOTS if root.is_dir()]
    environment: Environment = jinja2.Environment(
        loader=jinja2.ChoiceLoader(loaders),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    return environment
