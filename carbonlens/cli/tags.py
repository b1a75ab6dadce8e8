"""Tags as they are written on the command line."""

from __future__ import annotations

from collections.abc import Mapping

from carbonlens.errors import UsageError


def parse_tags(tags: list[str] | None, option: str = "--tag ") -> dict[str, str]:
    """Return ``k=v`` texts as a mapping.

    Args:
        tags: The texts.
        option: What stands before each on the command line; empty for arguments.

    Raises:
        UsageError: If a text has no ``=`` or no key.
    """
    pairs: dict[str, str] = {}
    for tag in tags or []:
        key, equals, value = tag.partition("=")
        if not equals or not key.strip():
            raise UsageError(f"{option}{tag!r} is no key=value", mend=f"write {option}team=vision")
        pairs[key.strip()] = value.strip()
    return pairs


def refuse_fields(tags: Mapping[str, str], mend: str) -> None:
    """Refuse tags that are named as a field of a run: who gives one means the field, which it would not set.

    Args:
        tags: By name; an empty value takes a tag out.
        mend: How such a field is given, with ``{}`` for its name.

    Raises:
        UsageError: If there is one.
    """
    from carbonlens.instrument.request import FIELDS

    for name, value in tags.items():
        if value and name in FIELDS:
            raise UsageError(
                f"{name} is a field of a run, and no tag: a tag would not set it",
                where=f"{name}={value}",
                mend=mend.format(name),
            )
