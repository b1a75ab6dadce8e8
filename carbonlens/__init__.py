"""Measure what AI model runs cost, and which optimization step saved how much.

The public names load lazily: importing the package costs milliseconds and pulls
in no third-party library.
"""

from __future__ import annotations

import sys
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from carbonlens.app.compare import compare as compare
    from carbonlens.app.report import report as report
    from carbonlens.errors import CarbonlensError as CarbonlensError
    from carbonlens.instrument.stage import stage as stage
    from carbonlens.instrument.track import track as track
    from carbonlens.ledger.store import Ledger as Ledger

from carbonlens._version import __version__ as __version__

_PUBLIC = {
    "track": "carbonlens.instrument.track",
    "stage": "carbonlens.instrument.stage",
    "compare": "carbonlens.app.compare",
    "report": "carbonlens.app.report",
    "Ledger": "carbonlens.ledger.store",
    "CarbonlensError": "carbonlens.errors",
}
__all__ = ["CarbonlensError", "Ledger", "compare", "report", "stage", "track"]


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


class _Package(ModuleType):
    """The package itself, whose public names win over rooms of the same name.

    Importing the room ``carbonlens.compare`` would put it in place of the
    function ``carbonlens.compare``; ``from carbonlens.compare import ...`` finds
    the room all the same.
    """

    def __setattr__(self, name: str, value: object) -> None:
        if name not in _PUBLIC or not isinstance(value, ModuleType):
            super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Package
