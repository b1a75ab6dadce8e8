"""Own styles: what a user's style rules may not do: load, write numbers into a page, or hide what it says."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from itertools import pairwise
from typing import Any, Final

import msgspec

from carbonlens.render.environment import need

_FUNCTIONS: Final = frozenset(
    {"var", "calc", "min", "max", "clamp", "rgb", "rgba", "hsl", "hsla", "hwb", "lab", "lch", "oklab",
     "oklch", "color-mix", "linear-gradient", "radial-gradient", "repeating-linear-gradient", "repeat",
     "minmax", "fit-content", "not", "is", "where", "has", "lang", "nth-child", "nth-last-child",
     "nth-of-type", "nth-last-of-type"}
)  # fmt: skip
"""What neither loads nor writes; ``url`` is looked at by itself."""

_AT: Final = frozenset(
    {"media", "supports", "page"}
    | {f"{side}-{place}" for side in ("top", "bottom") for place in ("left", "center", "right")}
)
_BARRED: Final = frozenset(
    {"all", "animation", "clip", "clip-path", "contain", "content-visibility", "direction", "filter",
     "font-size-adjust", "inset", "left", "right", "top", "bottom", "mask", "mix-blend-mode", "offset",
     "position", "rotate", "scale", "text-indent", "transform", "transition", "translate", "unicode-bidi",
     "z-index", "zoom", "counter-reset", "counter-increment", "counter-set", "string-set"}
)  # fmt: skip
"""Properties that move, clip, reverse or count; those that begin alike (``mask-image``) too."""

_BARRED_FAMILIES: Final = ("-", "animation-", "inset-", "mask-", "offset-", "overflow", "transition-")
_HIDES: Final = {
    "display": {"none"},
    "visibility": {"hidden", "collapse"},
    "color": {"transparent"},
}
_LEAST_SIZES: Final = {
    "font-size": 6.0, "font": 6.0, "height": 16.0, "max-height": 16.0, "block-size": 16.0,
    "max-block-size": 16.0,
}  # fmt: skip
"""Pixels below which nothing is read, by property."""

_MOVES: Final = ("margin", "padding", "letter-spacing", "word-spacing")
_MOST_PX: Final = 400.0
_PX: Final = {"px": 1.0, "pt": 4 / 3, "rem": 16.0, "em": 16.0, "mm": 96 / 25.4, "cm": 96 / 2.54}
_MOST_PERCENT: Final = 50.0
_LEAST_OPACITY: Final = 0.5


class Fault(msgspec.Struct, frozen=True, kw_only=True):
    """What a page may not have.

    Attributes:
        what: What it does, to follow the name of the template.
        text: As it stands there, to find its line by.
        is_number: Whether it prints a number that is no figure.
    """

    what: str
    text: str
    is_number: bool = False


def elsewhere(text: str) -> Fault:
    """Return the fault of what would run, or bring something in.

    Args:
        text: As it stands on the page.
    """
    shown = text.strip()[:80]
    return Fault(what=f"has {shown!r}: nothing on a page is run, or loaded from elsewhere", text=text.strip())


def no_figure(text: str) -> Fault:
    """Return the fault of a number that is that of no figure.

    Args:
        text: As it stands on the page.
    """
    shown = text.strip()[:80]
    return Fault(what=f"the number in {shown!r} belongs to no figure", text=text.strip(), is_number=True)


def style_faults(css: str, pictures: Collection[str]) -> Iterator[Fault]:
    """Yield what style rules of a user's may not do.

    Args:
        css: Rules, or the declarations of one element.
        pictures: Addresses that they may have.
    """
    if "\\" in css:
        # Every word can be written otherwise with it, and none needs it.
        yield elsewhere(next(line for line in css.splitlines() if "\\" in line))
    waiting: list[Sequence[Any]] = [need("tinycss2").parse_component_value_list(css)]
    while waiting:
        tokens = waiting.pop()
        yield from _declared(tokens)
        for token in tokens:
            yield from _token(token, pictures)
            for inner in ("content", "arguments"):
                if isinstance(getattr(token, inner, None), list):
                    waiting.append(getattr(token, inner))


def _token(token: Any, pictures: Collection[str]) -> Iterator[Fault]:  # noqa: ANN401  # of tinycss2
    kind = token.type
    if kind == "error":
        yield elsewhere(token.message)
    elif kind == "url" and not _is_own(token.value, pictures):
        yield elsewhere(token.value)
    elif kind == "at-keyword" and token.lower_value not in _AT:
        yield elsewhere(f"@{token.value}")
    elif kind == "string" and any(c.isdigit() for c in token.value) and token.value not in pictures:
        yield no_figure(token.value)
    elif kind == "function":
        given = [t.value for t in token.arguments if t.type == "string"]
        if token.lower_name == "url":
            yield from (elsewhere(address) for address in given if not _is_own(address, pictures))
        elif token.lower_name not in _FUNCTIONS:
            yield elsewhere(f"{token.name}(")


def _is_own(address: str, pictures: Collection[str]) -> bool:
    return address in pictures or address.startswith("#")


def _declared(tokens: Sequence[Any]) -> Iterator[Fault]:
    """Yield the declarations among these tokens that hide; a selector is not told from one, and has none."""
    seen = [t for t in tokens if t.type not in ("whitespace", "comment")]
    for place, (name, colon) in enumerate(pairwise(seen)):
        if name.type != "ident" or colon.type != "literal" or colon.value != ":":
            continue
        rest = seen[place + 2 :]
        end = next((n for n, t in enumerate(rest) if t.type == "literal" and t.value == ";"), len(rest))
        if _hides(name.lower_value, rest[:end]):
            said = "".join(t.serialize() for t in rest[:end][:4])
            what = f"{name.value}: {said[:60]}"
            yield Fault(what=f"has a style {what!r}, which hides or moves what a page says", text=name.value)


def _hides(name: str, value: Sequence[Any]) -> bool:
    if name.startswith("--"):
        return False
    if name in _BARRED or name.startswith(_BARRED_FAMILIES):
        return True
    if name in _HIDES:
        # What a function comes to is not known here.
        unknown = name != "color" and any(t.type == "function" for t in value)
        return unknown or any(t.type == "ident" and t.lower_value in _HIDES[name] for t in value)
    if name == "content":
        # A picture in place of what stands there.
        return any(t.type in ("url", "function") for t in value)
    if name == "opacity":
        return any(t.type == "function" or _number(t) < _LEAST_OPACITY for t in value)
    if name in _LEAST_SIZES:
        return any(t.type == "function" or _is_small(t, _LEAST_SIZES[name]) for t in value)
    return name.startswith(_MOVES) and any(t.type == "function" or _is_far(t) for t in value)


def _number(token: Any) -> float:  # noqa: ANN401  # of tinycss2
    if token.type == "percentage":
        return float(token.value) / 100
    return float(token.value) if token.type == "number" else 1.0


def _is_small(token: Any, least_px: float) -> bool:  # noqa: ANN401  # of tinycss2
    if token.type == "dimension":
        return bool(token.value * _PX.get(token.lower_unit, 0.0) < least_px)
    if token.type == "percentage":
        return bool(token.value / 100 * _PX["em"] < min(least_px, _LEAST_SIZES["font"]))
    # In ``font`` another number is a weight, or a line's height.
    return bool(token.type == "number" and token.value == 0)


def _is_far(token: Any) -> bool:  # noqa: ANN401  # of tinycss2
    if token.type == "dimension":
        return bool(not 0 <= token.value * _PX.get(token.lower_unit, float("inf")) <= _MOST_PX)
    return bool(token.type == "percentage" and not 0 <= token.value <= _MOST_PERCENT)
