"""A start of the command line without what it does not need."""

from __future__ import annotations

import sys
from typing import Final

_BACKPORTS: Final = "typing_extensions"


def load_records_library() -> None:
    """Load msgspec, in this process of our own, without the backports it would load where they are.

    They are a tenth of the start of ``carbonlens run`` (with ``inspect``, ``ast`` and
    ``tokenize``, which they load), and the standard library of Python 3.11 has what msgspec
    takes from them. Whoever imports them later gets them. Nothing is done where they are
    loaded already, nor when carbonlens is a guest in another program.
    """
    if _BACKPORTS not in sys.modules:
        # An import of it fails while None stands there, as if it were not installed.
        sys.modules[_BACKPORTS] = None  # type: ignore[assignment]  # what the import system reads so
        try:
            import msgspec  # noqa: F401  # for the effect
        finally:
            del sys.modules[_BACKPORTS]
