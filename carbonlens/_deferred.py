"""Standard modules and backports that are loaded when something of them is wanted, and not before.

``import carbonlens`` is part of the user's program, whose start it must not delay. msgspec, which
holds our records, loads ``typing_extensions`` where it is installed, and with it ``inspect``,
``ast`` and ``tokenize``: a third of what ``carbonlens.track`` takes to load, for a function that is
called when a decoder is made, which measuring does without.
"""

from __future__ import annotations

import _thread
import sys
from collections.abc import Mapping
from importlib import import_module
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any, Final, NotRequired, Required

BACKPORTS: Final = "typing_extensions"
_PATIENCE_S: Final = 2.0
_taking_away: Final = _thread.RLock()


class Deferred(ModuleType):
    """Stands for a module until somebody wants more of it than is known here.

    Args:
        name: The module.
        known: What is given out without loading it.
    """

    def __init__(self, name: str, known: Mapping[str, object]) -> None:
        """Load nothing."""
        super().__init__(name)
        # Without one, importlib.util.find_spec of the name would fail instead of saying that it is there.
        self.__spec__ = ModuleSpec(name, None)
        self.__dict__.update(known)

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401  # whatever the module holds
        """Look into the module itself; the import system's own questions about it are no use."""
        if name.startswith("__") and name not in ("__all__", "__file__", "__version__"):
            raise AttributeError(name)
        return getattr(real(self.__name__), name)


def real(name: str) -> ModuleType:
    """Return the module of a name, in its place from now on.

    Raises:
        ImportError: If it is not installed.
    """
    stand_in = sys.modules.get(name)
    if isinstance(stand_in, Deferred):
        _take_away(name, stand_in)
    return import_module(name)


def _take_away(name: str, stand_in: ModuleType) -> None:
    """Have the next import load a module, for which something stood in.

    Several threads may want that at once: the second of them must neither find nothing to take
    away, nor take away the module itself that the first one is loading.
    """
    # Reentrant: a signal's handler may want a module too. A child forked meanwhile, where the lock
    # stays held for ever, is alone, and goes on without it.
    held = _taking_away.acquire(timeout=_PATIENCE_S)
    try:
        if sys.modules.get(name) is stand_in:
            del sys.modules[name]
    finally:
        if held:
            _taking_away.release()


def load_records_library() -> None:
    """Load msgspec without the backports, which it finds as they are once it makes use of them.

    In the user's process: another thread that imports them meanwhile gets what it wants of
    them, and from then on whoever imports them does so as ever. Where they are loaded already
    they stay so; nothing is done where msgspec is.

    It is loaded in a thread of its own, which no Ctrl-C reaches. An interrupt in the middle
    leaves its extension half made (msgspec 0.22), and the next import of it crashes the
    interpreter: a notebook whose first cell was stopped, and run again. A thread that is still at
    it when this returns goes on: an import of the same module waits for it.
    """
    if "msgspec" in sys.modules:
        return
    ended = _thread.allocate_lock()
    ended.acquire()

    def load() -> None:
        try:
            _load()
        except BaseException:  # noqa: BLE001, S110  # whoever imports it next is told why it cannot be
            pass
        finally:
            ended.release()

    try:
        _thread.start_new_thread(load, ())
    except RuntimeError:  # no thread is to be had
        load()
    # A program may hold a lock of its own around every import, which that thread then waits for:
    # after a while whoever imports the library here does it as ever.
    ended.acquire(timeout=_PATIENCE_S)


def _load() -> None:
    # What msgspec takes of them. The marks are those of the standard library from Python 3.11 on.
    stand_in = Deferred(
        BACKPORTS, {"get_type_hints": _type_hints, "NotRequired": NotRequired, "Required": Required}
    )
    sys.modules.setdefault(BACKPORTS, stand_in)
    try:
        import msgspec  # noqa: F401  # for the effect
    finally:
        _take_away(BACKPORTS, stand_in)


def _type_hints(*given: Any, **more: Any) -> dict[str, Any]:  # noqa: ANN401  # whatever theirs takes
    """Return the hints as msgspec would have them: by the backports where they are, else without."""
    try:
        hints = real(BACKPORTS).get_type_hints
    except ImportError:
        from typing import get_type_hints as hints
    found: dict[str, Any] = hints(*given, **more)
    return found
