"""Tags as they are written on the command line."""

from __future__ import annotations

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
