"""Look: a user's own templates, colours, fonts and logo, read and checked, ready for every page."""

from __future__ import annotations

import msgspec


class Logo(msgspec.Struct, frozen=True, kw_only=True):
    """A picture for the head of a report.

    Attributes:
        uri: The picture itself, as a ``data:`` address.
        alt: What it shows, in words.
    """

    uri: str
    alt: str


class Look(msgspec.Struct, frozen=True, kw_only=True):
    """What of a report is the user's own.

    Attributes:
        folder: Where it lies, as it was given: for messages.
        templates: Source by name, ``business_case/page.html.j2``.
        assets: ``data:`` address by name of the pictures in the folder.
        css: Style rules that follow ours.
        logo: For the head of the report.
        sha256: Over names and contents of all files used.
    """

    folder: str
    templates: dict[str, str] = msgspec.field(default_factory=dict)
    assets: dict[str, str] = msgspec.field(default_factory=dict)
    css: str = ""
    logo: Logo | None = None
    sha256: str = ""
