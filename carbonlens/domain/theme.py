"""Theme: a user's colours, fonts, logo and way of writing numbers, as stated in ``theme.toml``."""

from __future__ import annotations

from typing import Annotated

import msgspec

from carbonlens.domain.number_style import NumberStyle

Colour = Annotated[str, msgspec.Meta(pattern="^#[0-9A-Fa-f]{6}$")]


class Colours(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Colours of the page; those not given stay ours.

    Attributes:
        ink: Text.
        muted: Lesser text.
        paper: Ground of a section.
        ground: Ground around the sections, on a screen.
        rule: Lines of tables.
        good: A saving.
        bad: A loss, a warning.
        accent: What stands out without a meaning.
    """

    ink: Colour | None = None
    muted: Colour | None = None
    paper: Colour | None = None
    ground: Colour | None = None
    rule: Colour | None = None
    good: Colour | None = None
    bad: Colour | None = None
    accent: Colour | None = None

    @property
    def given(self) -> dict[str, str]:
        """Colours that are stated, by name."""
        stated = {name: getattr(self, name) for name in self.__struct_fields__}
        return {name: value.lower() for name, value in stated.items() if value is not None}


class Fonts(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Fonts of the text; charts keep ours.

    Attributes:
        regular: File of the regular weight (TTF, OTF or WOFF2) in the folder.
        semibold: File of the heavier weight; the regular one where there is none.
    """

    regular: str
    semibold: str | None = None


class LogoFile(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A picture for the head of a report.

    Attributes:
        file: PNG or SVG in the folder.
        alt: What it shows, in words, for readers who do not see it.
        height_mm: How high it is printed, in millimetres.
    """

    file: str
    alt: Annotated[str, msgspec.Meta(min_length=1, max_length=200)]
    height_mm: Annotated[float, msgspec.Meta(ge=3, le=40)] = 8.0


class Theme(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What ``theme.toml`` states.

    Attributes:
        colours: On paper and on a light screen.
        dark: On a dark screen.
        fonts: Of the text.
        logo: For the head of a report.
        numbers: How figures, money and days are written.
    """

    colours: Colours = Colours()
    dark: Colours = Colours()
    fonts: Fonts | None = None
    logo: LogoFile | None = None
    numbers: NumberStyle = NumberStyle()
