"""The command line: one module a command, each a thin skin over ``app``."""

from __future__ import annotations

import signal
import sys
from typing import Final

_NAME: Final = "carbonlens"
_MODULE: Final = f"{_NAME}.cli.main"


def _is_program() -> bool:
    """Whether this process is the program ``carbonlens`` and no other that makes use of its modules."""
    called, words = sys.argv[0] if sys.argv else "", sys.orig_argv
    name = called.replace("\\", "/").rpartition("/")[2]
    # Under ``python -m`` the name is "-m" until the module is found, and then the module's file.
    if name in ("-m", "main.py"):
        return any(words[k : k + 2] == ["-m", _MODULE] for k in range(len(words)))
    return name == _NAME and "-c" not in words[1:2]


IS_PROGRAM: Final = _is_program()

if IS_PROGRAM and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
    # Ctrl-C while the modules load: there is nothing to put in order, and nobody wants to read where
    # it came. The process dies by it, as a command does that is no Python program.
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def interruptible() -> None:
    """Have Ctrl-C raise ``KeyboardInterrupt`` from now on, as Python has it: there is work to unwind."""
    if IS_PROGRAM and signal.getsignal(signal.SIGINT) is signal.SIG_DFL:
        signal.signal(signal.SIGINT, signal.default_int_handler)
