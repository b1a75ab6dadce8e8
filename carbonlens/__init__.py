"""Measure what AI model runs cost, and which optimization step saved how much.

The public names load lazily: importing the package costs milliseconds and pulls
in no third-party library.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from carbonlens.app.compare import compare as compare
    from carbonlens.app.report import report as report
    from carbonlens.app.track import track as track
    from carbonlens.errors import CarbonlensError as CarbonlensError
    from carbonlens.ledger.store import Ledger as Ledger

from carbonlens._version import __version__ as __version__

_PUBLIC = {
    "track": "carbonlens.app.track",
    "compare": "carbonlens.app.compare",
    "report": "carbonlens.app.report",
    "Ledger": "carbonlens.ledger.store",
    "CarbonlensError": "carbonlens.errors",
}
__all__ = ["CarbonlensError", "Ledger", "compare", "report", "track"]


def __getattr__(name: str) -> object:
    """Load a public name on first use (PEP 562)."""
    if name in _PUBLIC:
        value = getattr(import_module(_PUBLIC[name]), name)
        globals()[name] = value
        return value
    raise AttributeError(f"module 'carbonlens' has no attribute {name!r}")


def __dir__() -> list[str]:
    """List the public names, loaded or not."""
    return sorted([*__all__, "__version__"])
