"""Measure what AI model runs cost, and which optimization step saved how much.

The public names load lazily: importing the package costs milliseconds and pulls
in no third-party library.
"""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]  # of the interpreter itself: signal would load enum
import sys


def _is_started_as_program() -> bool:
    """Whether the interpreter was started for ``carbonlens`` itself: as a module, or by the script beside it.

    Asked in every program that imports the package, and surely of ours alone: no script of a user's that
    bears the name lies where the interpreter does. Whatever else starts the command line (``-X`` before
    it, a script of another folder) is told by ``carbonlens.cli``, some milliseconds later.
    """
    words = (getattr(sys, "orig_argv", None) or ())[1:3]
    if words == ["-m", f"{__name__}.cli.main"]:
        return True
    folder = (sys.executable or "").rpartition("/")[0]
    return bool(folder) and words[:1] == [f"{folder}/{__name__}"]


if _is_started_as_program() and _signal.getsignal(_signal.SIGINT) is _signal.default_int_handler:
    # Ctrl-C while the modules load: there is nothing to put in order, and nobody wants to read where it
    # came. Before all else: the next lines load ``typing``, which takes as long as the interpreter did.
    _signal.signal(_signal.SIGINT, _signal.SIG_DFL)


from importlib import import_module  # noqa: E402  # see above
from types import ModuleType  # noqa: E402  # see above
from typing import TYPE_CHECKING  # noqa: E402  # see above

if TYPE_CHECKING:
    from carbonlens.app.compare import compare as compare
    from carbonlens.app.report import report as report
    from carbonlens.errors import CarbonlensError as CarbonlensError
    from carbonlens.instrument.stage import stage as stage
    from carbonlens.instrument.track import track as track
    from carbonlens.ledger.store import Ledger as Ledger

from carbonlens._version import __version__ as __version__  # noqa: E402  # see above

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
