"""Entry point: the commands, and how errors become exit codes."""

from __future__ import annotations

import atexit
import os
import signal
import sys
from contextlib import suppress
from typing import Final

from carbonlens.cli import IS_PROGRAM, interruptible, light_start

light_start.load_records_library()  # before the first module that holds records

from carbonlens.cli import run_plain  # noqa: E402  # see the line above
from carbonlens.errors import CarbonlensError  # noqa: E402  # see the line above

_LIGHT: tuple[list[str], ...] = (["run"], ["--help"], ["-h"], [])
"""Command lines whose commands hold nothing that has to be taken apart in order."""

_WITH_THREADS: Final = ("carbonlens.metering.threads", "carbonlens.render.worker")
"""Modules that know of threads which nobody waits for any longer."""

_TOOLS: Final = 6
"""Numbers that a tool of ``sys.monitoring`` may have (docs.python.org, sys.monitoring: 0 to 5)."""


def main() -> None:
    """Run the command line; a carbonlens error becomes one line and its exit code."""
    for stream in (sys.stdout, sys.stderr):
        # A terminal that knows no µ or − gets a question mark, not a traceback.
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")
    try:
        code = _ended()
        _flush()
    except CarbonlensError as error:
        from carbonlens.cli import output  # a run that goes well loads it while its command runs

        output.note(f"carbonlens: {error}")
        code = error.exit_code
        _give_up_stdout()
    except UnicodeEncodeError as error:
        from carbonlens.cli import other_bytes, output  # as above

        told = other_bytes.error_of(error)
        if told is None:
            raise
        output.note(f"carbonlens: {told}")
        code = told.exit_code
        _give_up_stdout()
    except BrokenPipeError:
        # The reader of our output went away (head, less): not a fault.
        code = 0
        _give_up_stdout()
    except KeyboardInterrupt:
        # Between two things that know what to do with it.
        _give_up_stdout()
        run_plain.die_by(signal.SIGINT)
        code = 128 + signal.SIGINT  # not reached but where a handler of somebody else's takes it
    light_start.spare_the_end()
    _leave(code)


def _leave(code: int | str | None) -> None:
    """End this process with an exit code.

    What is registered for the end is done, the streams are written out, and the program ends at
    once: taking an interpreter apart whose memory the system takes back anyhow is a tenth of
    ``carbonlens run``. A thread that was given up on (a server that does not answer) may be inside a
    C library while that library's own exit handlers run: a segmentation fault in place of the
    command's exit code. Of commands that load more, and beside threads that Python waits for, the end
    is the usual one; and always where somebody else has a part in it: in a program of theirs, under a
    profiler or a tracer, before a prompt.
    """
    if isinstance(code, str) or not _is_ours_alone() or not (_holds_given_up() or _holds_little()):
        sys.exit(code)
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):  # nobody is left to tell
            if stream is not None:
                stream.flush()
    os._exit(code or 0)


def _is_ours_alone() -> bool:
    """Whether nobody but the program itself has a part in this process's end."""
    if not IS_PROGRAM or sys.gettrace() is not None or sys.getprofile() is not None:
        return False
    # Python looks at the variable once more at its end, as a program may have set it.
    if sys.flags.inspect or os.environ.get("PYTHONINSPECT"):
        return False
    # From Python 3.12 on profilers and coverage may be told here alone.
    monitoring = getattr(sys, "monitoring", None)
    return monitoring is None or all(monitoring.get_tool(k) is None for k in range(_TOOLS))


def _holds_given_up() -> bool:
    loaded = map(sys.modules.get, _WITH_THREADS)  # who never loaded one has started none
    return any(module is not None and module.holds_given_up() for module in loaded)


def _holds_little() -> bool:
    """Whether this command line left nothing that has to be taken apart in order, and no thread at work."""
    if sys.argv[1:2] not in _LIGHT:
        return False
    threading = sys.modules.get("threading")
    if threading is None:
        return True
    ours = threading.current_thread()
    return all(thread.daemon or thread is ours for thread in threading.enumerate())


def _ended() -> int | str | None:
    """Run the command and return its exit code."""
    name, *arguments = sys.argv[1:] or [""]
    given = run_plain.parsed(arguments) if name == "run" else None
    if given is not None:
        with light_start.uncollected():
            run_plain.load()
        return run_plain.measured(**given)
    with light_start.uncollected():
        from carbonlens.cli import commands  # half of a start that a plain run does without

        made = commands.built([name] if name in commands.MODULES else commands.MODULES)
    interruptible()
    try:
        made()
    except SystemExit as end:
        return end.code
    return 0


def _flush() -> None:
    """Write out what is pending, while a failure can still be said.

    Raises:
        UnwritableError: If stdout cannot be written.
        BrokenPipeError: If its reader went away.
    """
    try:
        if sys.stdout is not None:
            sys.stdout.flush()
    except BrokenPipeError:
        raise
    except (OSError, ValueError) as error:
        from carbonlens.cli import output

        raise output.unwritable(getattr(error, "strerror", None) or "it is closed") from error


def _give_up_stdout() -> None:
    """Print what stdout takes; else leave none, lest the interpreter fails on it at its end."""
    try:
        if sys.stdout is not None:
            sys.stdout.flush()
    except (OSError, ValueError):
        sys.stdout = None  # as Python itself has it when it is closed


if __name__ == "__main__":
    main()
