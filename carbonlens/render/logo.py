"""Logo: a picture as a ``data:`` address; an SVG keeps what draws and nothing that acts or loads."""

from __future__ import annotations

import re
import struct
from base64 import b64encode
from typing import Final
from xml.etree import ElementTree as ET  # an entity of its own is refused before it is parsed

from carbonlens.errors import ConfigError

MOST_BYTES: Final = 512 * 1024
_MOST_PIXELS: Final = 4096
_SVG: Final = "http://www.w3.org/2000/svg"
_DRAWS: Final = frozenset(
    {"svg", "g", "path", "rect", "circle", "ellipse", "line", "polyline", "polygon", "defs",
     "linearGradient", "radialGradient", "stop", "clipPath", "title", "desc", "text", "tspan", "use"}
)  # fmt: skip
_SAYS: Final = frozenset(
    {"id", "d", "x", "y", "x1", "y1", "x2", "y2", "cx", "cy", "r", "rx", "ry", "fx", "fy", "dx", "dy",
     "width", "height", "viewBox", "points", "transform", "preserveAspectRatio", "offset", "version",
     "gradientUnits", "gradientTransform", "clipPathUnits", "clip-path", "clip-rule", "fill", "fill-rule",
     "fill-opacity", "stroke", "stroke-width", "stroke-linecap", "stroke-linejoin", "stroke-miterlimit",
     "stroke-dasharray", "stroke-opacity", "opacity", "stop-color", "stop-opacity", "font-size",
     "font-weight", "text-anchor"}
)  # fmt: skip
_FROM: Final = re.compile(r"url\(\s*[\"']?(?!#)", re.IGNORECASE)


def as_address(content: bytes, where: str) -> str:
    """Return a picture as a ``data:`` address.

    Args:
        content: A PNG or an SVG.
        where: The file, for the error.

    Raises:
        ConfigError: If it is neither, too large, or no whole picture.
    """
    if len(content) > MOST_BYTES:
        raise _refused(where, f"has more than {MOST_BYTES >> 10} kB", "make the picture smaller")
    if content.startswith(b"\x89PNG\r\n\x1a\n"):
        _check_png(content, where)
        return _address("image/png", content)
    if b"<svg" in content[:4096]:
        return _address("image/svg+xml", _cleaned(content, where))
    raise _refused(where, "is neither PNG nor SVG", "save the picture as one of them")


def _check_png(content: bytes, where: str) -> None:
    if content[12:16] != b"IHDR" or len(content) < 24 or b"IEND" not in content[-16:]:
        raise _refused(where, "is a damaged PNG", "save the picture again")
    width, height = struct.unpack(">II", content[16:24])
    if not 0 < width <= _MOST_PIXELS or not 0 < height <= _MOST_PIXELS:
        raise _refused(where, f"has {width} x {height} pixels", f"at most {_MOST_PIXELS} each way")


def _cleaned(content: bytes, where: str) -> bytes:
    if re.search(rb"<!(DOCTYPE|ENTITY)", content, re.IGNORECASE):
        raise _refused(where, "declares entities", "take the DOCTYPE out")
    try:
        root = ET.fromstring(content)  # noqa: S314  # without entities, and no larger than MOST_BYTES
    except (ET.ParseError, ValueError, RecursionError) as error:
        raise _refused(where, f"is no SVG that can be read ({error})", "save the picture again") from error
    if root.tag != f"{{{_SVG}}}svg":
        raise _refused(where, "is no SVG", "begin it with <svg xmlns=...>")
    try:
        _clean(root)
        ET.register_namespace("", _SVG)
        cleaned: bytes = ET.tostring(root, encoding="utf-8")
    except RecursionError as error:
        raise _refused(where, "is nested too deeply", "save the picture without groups in groups") from error
    return cleaned


def _clean(element: ET.Element) -> None:
    for name, value in list(element.attrib.items()):
        local = name.rpartition("}")[2]
        refers = local == "href" and value.strip().startswith("#")
        if not refers and (name not in _SAYS or _FROM.search(value)):
            del element.attrib[name]
    for child in list(element):
        tag = child.tag if isinstance(child.tag, str) else ""
        namespace, _, local = tag.lstrip("{").partition("}")
        if namespace != _SVG or local not in _DRAWS:
            element.remove(child)
        else:
            _clean(child)


def _address(kind: str, content: bytes) -> str:
    return f"data:{kind};base64,{b64encode(content).decode('ascii')}"


def _refused(where: str, what: str, mend: str) -> ConfigError:
    return ConfigError(what, where=where, mend=mend)
