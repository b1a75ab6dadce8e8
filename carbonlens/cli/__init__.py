"""The command line: one module a command, each a thin skin over ``app``."""

from __future__ import annotations

from carbonlens import _IS_PROGRAM, _interruptible

IS_PROGRAM = _IS_PROGRAM
"""Whether this process is the program ``carbonlens``, whose modules load with Ctrl-C as it is for any
other command: the package itself sees to that, before all else that it does."""

interruptible = _interruptible
