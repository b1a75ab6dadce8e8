"""Page tree: the pages of our own templates read as XML, which takes a tenth of the time of HTML."""

from __future__ import annotations

import re
from xml.etree import ElementTree as ET

_VOID = re.compile(r"<(meta|br|img|hr|link|wbr|col)\b([^<>]*?)/?>")
_BARE = re.compile(r"<((?:bdi|span)\b[^<>]*?) (data-quoted|data-label)(?=[ >])")
_DOCTYPE = "<!DOCTYPE html>"


def read(page: str) -> ET.Element | None:
    """Return the tree of a page that only our templates made, or ``None`` where it must be read as HTML.

    In such a page every element is closed, and all text of others is escaped. What HTML allows beyond
    that is made XML first: elements that are never closed, and attributes without a value. What then is
    no XML (a control character in a name, a style rule with a ``&``) is left to a reader of HTML; both
    give the same tree.

    Args:
        page: Finished HTML.
    """
    if not page.startswith(_DOCTYPE):
        return None
    try:
        return ET.fromstring(_as_xml(page[len(_DOCTYPE) :]).encode("utf-8"))  # noqa: S314  # our own page
    except (ET.ParseError, UnicodeEncodeError):
        return None


def _as_xml(page: str) -> str:
    return _BARE.sub(r'<\1 \2=""', _VOID.sub(r"<\1\2/>", page))
