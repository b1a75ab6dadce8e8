"""The command line: one module a command, each a thin skin over ``app``."""

from __future__ import annotations

import signal
import sys
from collections.abc import Sequence
from typing import Final

_NAME: Final = "carbonlens"
_MODULE: Final = f"{_NAME}.cli.main"


def _is_program() -> bool:
    """Whether this process is the program ``carbonlens`` and no other that makes use of its modules.

    Its name in ``sys.argv`` is not enough: profilers, debuggers and other runners set that before they
    run a program within their own. What the interpreter itself was started with tells.
    """
    called = sys.argv[0] if sys.argv else ""
    name = called.replace("\\", "/").rpartition("/")[2]
    option, given = _started_with(sys.orig_argv)
    # Under ``python -m`` the name is "-m" until the module is found, and then the module's file.
    if name in ("-m", "main.py"):
        return (option, given) == ("m", _MODULE)
    return name == _NAME and (option, given) == ("", called)


def _started_with(words: Sequence[str]) -> tuple[str, str]:
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


IS_PROGRAM: Final = _is_program()

if IS_PROGRAM and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
    # Ctrl-C while the modules load: there is nothing to put in order, and nobody wants to read where
    # it came. The process dies by it, as a command does that is no Python program.
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def interruptible() -> None:
    """Have Ctrl-C raise ``KeyboardInterrupt`` from now on, as Python has it: there is work to unwind."""
    if IS_PROGRAM and signal.getsignal(signal.SIGINT) is signal.SIG_DFL:
        signal.signal(signal.SIGINT, signal.default_int_handler)
