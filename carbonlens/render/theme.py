"""Theme: a folder of a user's own templates, pictures, fonts and colours, read, checked, made a look."""

from __future__ import annotations

import hashlib
import re
from base64 import b64encode
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from carbonlens.domain.counting import counted
from carbonlens.domain.theme import Colours, Fonts, Theme
from carbonlens.errors import ConfigError, InputFileError
from carbonlens.render.environment import template_file
from carbonlens.render.logo import as_address
from carbonlens.render.look import Logo, Look
from carbonlens.reporting.colour_contrast import GRAPHICS, TEXT, contrast

_MOST_FILES: Final = 200
_MOST_ENTRIES: Final = 2000
_MOST_TEMPLATE_BYTES: Final = 1 << 20
_MOST_FONT_BYTES: Final = 4 << 20
_FONTS: Final = {
    b"\x00\x01\x00\x00": "font/ttf",
    b"true": "font/ttf",
    b"OTTO": "font/otf",
    b"wOF2": "font/woff2",
}
_WEIGHTS: Final = (("regular", 400), ("semibold", 600))
_WRITTEN: Final = ("ink", "muted", "good", "bad")
"""Colours that text is written in."""
_FAMILY: Final = "Carbonlens Own"


def read_look(folder: Path, theme: Theme) -> Look:
    """Return the look that a folder gives to reports.

    Args:
        folder: Templates below their own names, pictures, fonts.
        theme: What its theme file states.

    Raises:
        ConfigError: If there is no such folder, a file is too large or not what it should be, or
            colours cannot be told apart.
        InputFileError: If a file cannot be read.
    """
    if not folder.is_dir():
        raise ConfigError("is no folder of templates", where=str(folder), mend="make one: --init-template")
    files = files_of(folder)
    templates = {name: _text(folder, name) for name in files if name.endswith(".j2")}
    pictures = [name for name in files if name.lower().endswith((".png", ".svg"))]
    assets = {name: as_address(_content(folder, name), str(folder / name)) for name in pictures}
    logo, rule = _logo(folder, theme, assets)
    css = "\n".join(part for part in (_fonts(folder, theme.fonts), _colours(folder, theme), rule) if part)
    return Look(
        folder=str(folder),
        templates=templates,
        assets=assets,
        css=css,
        logo=logo,
        sha256=_sha256(folder, theme, templates, pictures),
    )


def files_of(folder: Path) -> list[str]:
    """Return the names of the folder's files, none of them from outside it.

    Args:
        folder: Of the user's templates.

    Raises:
        ConfigError: If there are too many.
    """
    root = folder.resolve()
    found: list[str] = []
    for seen, path in enumerate(folder.rglob("*"), 1):
        if path.is_file() and path.resolve().is_relative_to(root):
            found.append(path.relative_to(folder).as_posix())
        # No further: what was given by mistake may be a home, or a whole disk.
        if len(found) > _MOST_FILES or seen > _MOST_ENTRIES:
            raise ConfigError(
                f"holds more than {counted(_MOST_FILES, 'file')}, or {counted(_MOST_ENTRIES, 'name')} in all",
                where=str(folder),
                mend="give a folder with nothing but templates, pictures and fonts",
            )
    return sorted(found)


def _content(folder: Path, name: str, most: int = _MOST_FONT_BYTES) -> bytes:
    path = folder / name
    if not path.resolve().is_relative_to(folder.resolve()):
        raise ConfigError(
            f"{name!r} leads out of the folder", where=str(folder), mend="copy the file into it"
        )
    try:
        if path.stat().st_size > most:
            raise ConfigError(f"has more than {most >> 10} kB", where=str(path), mend="make it smaller")
        return path.read_bytes()
    except (OSError, ValueError) as error:
        said = getattr(error, "strerror", None) or error
        raise InputFileError(f"cannot be read ({said})", where=str(path), mend="check the name") from error


def _text(folder: Path, name: str) -> str:
    try:
        return _content(folder, name, _MOST_TEMPLATE_BYTES).decode("utf-8")
    except UnicodeDecodeError as error:
        raise ConfigError("is not UTF-8 text", where=str(folder / name), mend="save it as UTF-8") from error


def _logo(folder: Path, theme: Theme, assets: Mapping[str, str]) -> tuple[Logo | None, str]:
    stated = theme.logo
    if stated is None:
        return None, ""
    uri = assets.get(stated.file) or as_address(_content(folder, stated.file), str(folder / stated.file))
    rule = f".logo {{ margin: 0 0 .5rem; }} .logo img {{ height: {stated.height_mm:g}mm; width: auto; }}"
    return Logo(uri=uri, alt=stated.alt), rule


def _fonts(folder: Path, fonts: Fonts | None) -> str:
    if fonts is None:
        return ""
    rules = []
    for name, weight in _WEIGHTS:
        file = getattr(fonts, name) or fonts.regular
        content = _content(folder, file)
        kind = _FONTS.get(content[:4])
        if kind is None:
            raise ConfigError(
                "is no font that can be used", where=str(folder / file), mend="give a TTF, OTF or WOFF2"
            )
        data = b64encode(content).decode("ascii")
        rules.append(
            f'@font-face {{ font-family: "{_FAMILY}"; font-weight: {weight}; '
            f'src: url("data:{kind};base64,{data}"); }}'
        )
    family = f'"{_FAMILY}", "Carbonlens Inter", sans-serif'
    return "\n".join([*rules, f"body {{ font-family: {family}; }}"])


def _colours(folder: Path, theme: Theme) -> str:
    """Return the rules of the colours; the dark ones after the light, which hold on paper too."""
    light, dark = _shipped_colours()
    for part, given, shipped in (("colours", theme.colours, light), ("dark", theme.dark, dark)):
        _check_colours(folder, part, given, {**light, **shipped, **given.given})
    if not theme.colours.given and not theme.dark.given:
        return ""
    in_dark = {**dark, **theme.dark.given}
    return (
        f":root {{ {_properties(theme.colours.given)} }}\n"
        f"@media screen and (prefers-color-scheme: dark) {{ :root {{ {_properties(in_dark)} }} }}"
    )


def _properties(colours: Mapping[str, str]) -> str:
    return " ".join(f"--{name}: {value};" for name, value in colours.items())


def _check_colours(folder: Path, part: str, given: Colours, shown: Mapping[str, str]) -> None:
    if not given.given:
        return
    wanted = [(name, ground, TEXT) for name in _WRITTEN for ground in ("paper", "ground")]
    for name, ground, least in [*wanted, ("accent", "paper", GRAPHICS)]:
        found = contrast(_long(shown[name]), _long(shown[ground]))
        if found < least:
            what = "text" if least == TEXT else "graphics"
            raise ConfigError(
                f"[{part}] {name} {shown[name]} on {ground} {shown[ground]} has a contrast of {found:.1f}:1; "
                f"{what} needs {least:g}:1",
                where=str(folder / "theme.toml"),
                mend="choose a darker one on a light ground, or a lighter one on a dark ground",
            )


def _long(colour: str) -> str:
    return colour if len(colour) == 7 else "#" + "".join(c * 2 for c in colour[1:])


def _shipped_colours() -> tuple[dict[str, str], dict[str, str]]:
    """Return our colours on a light and on a dark page, as the style sheet states them."""
    css = template_file("report.css").read_text(encoding="utf-8")
    found = re.findall(r":root\s*\{([^}]*)\}", css)
    light, dark = (dict(re.findall(r"--([\w-]+):\s*(#[0-9A-Fa-f]{3,6})", rule)) for rule in found[:2])
    return light, dark


def _sha256(folder: Path, theme: Theme, templates: Mapping[str, str], pictures: list[str]) -> str:
    """Return a hash over names and contents of all files that a report may depend on."""
    fonts = () if theme.fonts is None else (theme.fonts.regular, theme.fonts.semibold)
    logo = () if theme.logo is None else (theme.logo.file,)
    stated = ("theme.toml",) if (folder / "theme.toml").is_file() else ()
    digest = hashlib.sha256()
    for name in sorted({*templates, *pictures, *stated, *(f for f in (*fonts, *logo) if f)}):
        content = _content(folder, name)
        digest.update(f"{name}\0{len(content)}\0".encode())
        digest.update(content)
    return digest.hexdigest()
