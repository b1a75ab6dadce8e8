"""Measure what AI model runs cost, and which optimization step saved how much.

The public names load lazily: importing the package costs milliseconds and pulls
in no third-party library.
"""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]  # of the interpreter itself: signal would load enum
import sys


def _is_program() -> bool:
    """Whether this process is the program ``carbonlens`` and no other that makes use of its modules.

    Its name in ``sys.argv`` is not enough: profilers, debuggers and other runners set that before they
    run a program within their own. What the interpreter itself was started with tells.
    """
    called = sys.argv[0] if sys.argv else ""
    name = called.replace("\\", "/").rpartition("/")[2]
    if name not in ("-m", "main.py", __name__):
        return False
    option, given = _started_with(sys.orig_argv)
    # Under ``python -m`` the name is "-m" until the module is found, and then the module's file.
    if name != __name__:
        return (option, given) == ("m", f"{__name__}.cli.main")
    return (option, given) == ("", called)


def _started_with(words: list[str]) -> tuple[str, str]:
    """Return what an interpreter was told to run: ``m`` and a module, ``c`` and code, nothing and a script.

    Args:
        words: Its command line, read as ``python --help`` has it.
    """
    rest = iter(words[1:])
    for word in rest:
        if word == "--":
            return "", next(rest, "")
        if word == "-" or not word.startswith("-"):
            return "", word
        if word == "--check-hash-based-pycs":
            next(rest, None)
        if word.startswith("--"):
            continue
        for place, letter in enumerate(word[1:], start=2):
            if letter in "cmWX":  # a value follows, in the same word or in the next
                value = word[place:] or next(rest, "")
                if letter in "cm":
                    return letter, value
                break
    return "", ""


_IS_PROGRAM = _is_program()


def _on_interrupt(wanted: object, instead_of: object) -> None:
    """Have one handler of Ctrl-C in the place of another, in the program; else nothing is done."""
    if _IS_PROGRAM and _signal.getsignal(_signal.SIGINT) is instead_of:
        try:
            _signal.signal(_signal.SIGINT, wanted)
        except ValueError:  # in a thread of somebody's: it stays as it is
            return


# Ctrl-C while the modules load: there is nothing to put in order, and nobody wants to read where it
# came. The process dies by it, as a command does that is no Python program. Before all else: the next
# lines load ``typing``, which takes as long as the interpreter's own start.
_on_interrupt(_signal.SIG_DFL, instead_of=_signal.default_int_handler)


def _interruptible() -> None:
    """Have Ctrl-C raise ``KeyboardInterrupt`` from now on, as Python has it: there is work to unwind."""
    _on_interrupt(_signal.default_int_handler, instead_of=_signal.SIG_DFL)


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
        _interruptible()  # a program of the user's that bears our name, and measures its own work
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
