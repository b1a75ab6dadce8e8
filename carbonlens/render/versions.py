"""Versions: all that the bytes of a report depend on, and which of it each format depends on.

Figures depend on the interpreter, the processor (numpy and the C library pick kernels by what it
can, and their last digits differ) and the packages that compute; a page depends on what lays it
out and draws it too, down to the system's text libraries.
"""

from __future__ import annotations

import ctypes
import hashlib
import os
import platform
import sys
import zlib
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any, Final

import msgspec

_FIGURES: Final = ("numpy", "scipy", "msgspec")
_PAGE: Final = ("Jinja2", "MarkupSafe", "vl-convert-python")
_PAPER: Final = (
    "weasyprint", "pydyf", "tinycss2", "tinyhtml5", "cssselect2", "Pyphen", "pillow", "fonttools", "cffi",
)  # fmt: skip
_BOOK: Final = ("xlsxwriter",)
OWN_TEMPLATES: Final = "own_templates_sha256"
SYSTEM_FONTS: Final = "system_fonts"
"""Decides only where a text has letters that the shipped fonts lack."""

_RUNTIME: Final = ("python", "processor", "libc", *_FIGURES)
_DRAWN: Final = ("templates_sha256", "fonts_sha256", SYSTEM_FONTS, "zlib", *_PAGE)
_TEXT_LIBRARIES: Final = ("pango", "harfbuzz", "harfbuzz-subset", "fontconfig", "freetype", "glib")
DECIDING: Final = {
    "json": ("carbonlens", *_RUNTIME),
    "html": ("carbonlens", OWN_TEMPLATES, *_RUNTIME, *_DRAWN),
    "pdf": ("carbonlens", OWN_TEMPLATES, *_RUNTIME, *_DRAWN, *_PAPER, *_TEXT_LIBRARIES),
}
"""What the bytes of a format depend on, for those formats that can be verified."""


def libraries() -> dict[str, str]:
    """Return the versions of what carbonlens rests on; what is not installed is left out."""
    return dict(_libraries())


@cache
def _libraries() -> tuple[tuple[str, str], ...]:
    found: dict[str, str | None] = {
        "python": platform.python_version(),
        "processor": _processor(),
        "libc": " ".join(platform.libc_ver()).strip() or None,
        "zlib": zlib.ZLIB_RUNTIME_VERSION,
        SYSTEM_FONTS: _system_fonts(),
    }
    for package in (*_FIGURES, *_PAGE, *_PAPER, *_BOOK):
        found[package] = _package(package)
    for name, (soname, ask) in _ASKED.items():
        found[name] = _library(soname, ask)
    return tuple((name, version) for name, version in found.items() if version)


def _package(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def _processor() -> str:
    """Return the machine's architecture, and the best instructions that numpy found in it."""
    machine = platform.machine()
    try:
        import numpy as np
    except ModuleNotFoundError:
        return machine
    built: Any = np.show_config(mode="dicts")
    found = (built or {}).get("SIMD Extensions", {}).get("found") or ()
    return " ".join((machine, *found[-1:]))


def _text_of(name: str) -> Callable[[ctypes.CDLL], str | None]:
    def ask(library: ctypes.CDLL) -> str | None:
        function = getattr(library, name)
        function.restype = ctypes.c_char_p
        said: bytes | None = function()
        return None if said is None else said.decode("ascii", "replace")

    return ask


def _fontconfig(library: ctypes.CDLL) -> str:
    return str(library.FcGetVersion())


def _freetype(library: ctypes.CDLL) -> str | None:
    handle = ctypes.c_void_p()
    if library.FT_Init_FreeType(ctypes.byref(handle)):
        return None
    parts = [ctypes.c_int() for _ in range(3)]
    library.FT_Library_Version(handle, *(ctypes.byref(part) for part in parts))
    library.FT_Done_FreeType(handle)
    return ".".join(str(part.value) for part in parts)


def _glib(library: ctypes.CDLL) -> str:
    names = ("glib_major_version", "glib_minor_version", "glib_micro_version")
    return ".".join(str(ctypes.c_uint.in_dll(library, name).value) for name in names)


_ASKED: Final[dict[str, tuple[str, Callable[[ctypes.CDLL], str | None]]]] = {
    "pango": ("libpango-1.0.so.0", _text_of("pango_version_string")),
    "harfbuzz": ("libharfbuzz.so.0", _text_of("hb_version_string")),
    # With it WeasyPrint cuts fonts by it, without it by fonttools. It has its own copy of the version.
    "harfbuzz-subset": ("libharfbuzz-subset.so.0", lambda _: "present"),
    "fontconfig": ("libfontconfig.so.1", _fontconfig),
    "freetype": ("libfreetype.so.6", _freetype),
    "glib": ("libglib-2.0.so.0", _glib),
}
"""Names as WeasyPrint loads them on Linux; elsewhere they are not found and say nothing."""


def _library(soname: str, ask: Callable[[ctypes.CDLL], str | None]) -> str | None:
    if sys.platform != "linux":
        return None
    try:
        return ask(ctypes.CDLL(soname))
    except (OSError, AttributeError, ValueError):  # not installed, or of an age that cannot say its version
        return None


def _system_fonts() -> str:
    """Return a hash over names and sizes of the installed fonts."""
    home = Path.home()
    roots = ("/usr/share/fonts", "/usr/local/share/fonts", home / ".fonts", home / ".local/share/fonts")
    found = sorted(f"{name}\0{size}" for root in roots for name, size in _files(root))
    return hashlib.sha256("\n".join(found).encode("utf-8", "surrogateescape")).hexdigest()[:16]


def _files(root: str | Path) -> Iterator[tuple[str, int]]:
    for folder, _, names in os.walk(root):
        for name in names:
            try:
                yield name, Path(folder, name).stat().st_size
            except OSError:  # a link to nothing
                continue


def texts_of(node: object) -> Iterator[str]:
    """Yield every text in a record.

    Args:
        node: A view, a section, a chart.
    """
    if isinstance(node, str):
        yield node
    elif isinstance(node, msgspec.Struct):
        for field in node.__struct_fields__:
            yield from texts_of(getattr(node, field))
    elif isinstance(node, tuple | list):
        for item in node:
            yield from texts_of(item)
    elif isinstance(node, dict):
        yield from texts_of(tuple(node.values()))


def shipped_fonts_hold(texts: Iterable[str]) -> bool:
    """Return whether the shipped fonts have every letter of some texts, so that no other font is asked.

    Args:
        texts: All that a report prints.
    """
    from carbonlens.render.environment import template_file

    try:
        from fontTools.ttLib import TTFont  # type: ignore[import-untyped]  # it ships no types
    except ModuleNotFoundError:
        return False
    letters = {ord(letter) for text in texts for letter in text if letter.isprintable()}
    for weight in ("Regular", "SemiBold"):
        with TTFont(template_file(f"fonts/Inter-{weight}.ttf"), lazy=True) as font:
            if not letters <= set(font.getBestCmap()):
                return False
    return True
