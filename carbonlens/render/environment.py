"""Environment: where the templates lie, and the Jinja environment over them."""

from __future__ import annotations

import ctypes
import ctypes.util
import hashlib
import shutil
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from threading import RLock
from types import ModuleType
from typing import TYPE_CHECKING, Any

from carbonlens._version import __version__
from carbonlens.domain.evidence import MadeWith
from carbonlens.errors import MissingExtraError, MissingLibraryError
from carbonlens.render.versions import libraries

if TYPE_CHECKING:
    from jinja2 import BaseLoader, Environment

_PACKAGE = Path(__file__).parents[1]
ROOTS = (_PACKAGE / "_report_templates", _PACKAGE.parent / "report_templates")
"""In an installed wheel, and in the repository (editable install)."""

_LIBRARIES = ("libpango-1.0.so.0", "libpangoft2-1.0.so.0")
"""What WeasyPrint loads at its import; the subset library it can do without."""

_NEEDED = {
    "html": ("jinja2", "vl_convert"),
    "pdf": ("jinja2", "vl_convert", "weasyprint"),
    "xlsx": ("xlsxwriter",),
}
"""Modules by format."""


ENVIRONMENT: dict[str, Any] = {
    "autoescape": True,
    "trim_blocks": True,
    "lstrip_blocks": True,
    "keep_trailing_newline": True,
}
"""How every template is read, ours and a user's."""


def need(module: str) -> ModuleType:
    """Import a module of the ``report`` extra.

    Raises:
        MissingExtraError: If it is not installed.
        MissingLibraryError: If a system library it loads is not installed.
    """
    try:
        with _no_compiler_asked():
            return import_module(module)
    except ModuleNotFoundError as error:
        raise MissingExtraError("report", error.name or module) from error
    except OSError as error:
        raise _missing_library(module) from error


@contextmanager
def _no_compiler_asked() -> Iterator[None]:
    """Find libraries by the system's own list while a module is imported, without starting gcc and ld.

    WeasyPrint tries several names of each library, and for each that is none of this system Python runs
    both of them: some forty processes one after the other. What only they find (a library beside the
    compiler's) the loader could not load by its name either.
    """
    # Two threads at once would each put back what the other put there.
    with _ASKING:
        asked = [name for name in ("_findLib_gcc", "_findLib_ld") if hasattr(ctypes.util, name)]
        kept = {name: getattr(ctypes.util, name) for name in asked}
        # Where there is no such list (musl), the compiler is all there is to ask.
        if shutil.which("ldconfig", path=_SYSTEM_PATH) is None:
            kept.clear()
        for name in kept:
            setattr(ctypes.util, name, _nothing)
        try:
            yield
        finally:
            for name, function in kept.items():
                setattr(ctypes.util, name, function)


_ASKING = RLock()
_SYSTEM_PATH = "/sbin:/usr/sbin:/bin:/usr/bin"


def _nothing(_: str) -> None:
    """Stand in for what asks a compiler."""


def ensure_renderable(formats: Sequence[str]) -> None:
    """Check that the packages of the ``report`` extra are there, without loading them.

    Args:
        formats: What is to be made; Markdown and JSON need nothing.

    Raises:
        MissingExtraError: If one is not installed.
        MissingLibraryError: If WeasyPrint's system libraries are not installed.
    """
    pdf = "pdf" in formats
    needed = dict.fromkeys(module for f in formats for module in _NEEDED.get(f, ()))
    for module in needed:
        if find_spec(module) is None:
            raise MissingExtraError("report", module)
    for library in _LIBRARIES if pdf and sys.platform == "linux" else ():
        try:
            ctypes.CDLL(library)
        except OSError as error:
            raise _missing_library("weasyprint") from error


def _missing_library(module: str) -> MissingLibraryError:
    return MissingLibraryError(
        f"{module} cannot load the system libraries it needs for PDF",
        mend="as root: apt-get install libpango-1.0-0 libpangoft2-1.0-0 libharfbuzz-subset0",
    )


def template_file(name: str) -> Path:
    """Return the path of a shipped template, style sheet or font.

    Raises:
        FileNotFoundError: If the installation is damaged and the file is gone.
    """
    for root in ROOTS:
        if (root / name).is_file():
            return root / name
    raise FileNotFoundError(f"carbonlens is installed without {name}")


@cache
def template_environment() -> Environment:
    """Return the environment, one a process: everything escaped, nothing silently undefined.

    Raises:
        MissingExtraError: If Jinja is not installed.
    """
    jinja2 = need("jinja2")
    environment: Environment = jinja2.Environment(
        loader=own_loader(), undefined=jinja2.StrictUndefined, **ENVIRONMENT
    )
    return environment


def own_loader() -> BaseLoader:
    """Return what loads the shipped templates.

    Raises:
        MissingExtraError: If Jinja is not installed.
    """
    jinja2 = need("jinja2")
    loaders = [jinja2.FileSystemLoader(root) for root in ROOTS if root.is_dir()]
    loader: BaseLoader = jinja2.ChoiceLoader(loaders)
    return loader


def made_with() -> MadeWith:
    """Return the versions that the bytes of a report depend on."""
    return MadeWith(
        carbonlens=__version__,
        libraries=libraries(),
        templates_sha256=_sha256(("*.j2", "*.css", "*.js")),
        fonts_sha256=_sha256(("*.ttf", "*.woff2")),
    )


def _sha256(patterns: Sequence[str]) -> str:
    """Return a hash over names and contents of our template files of these kinds."""
    root = next(r for r in ROOTS if r.is_dir())
    found = sorted(f for pattern in patterns for f in root.rglob(pattern))
    digest = hashlib.sha256()
    for file in found:
        content = file.read_bytes()
        digest.update(f"{file.relative_to(root).as_posix()}\0{len(content)}\0".encode())
        digest.update(content)
    return digest.hexdigest()
