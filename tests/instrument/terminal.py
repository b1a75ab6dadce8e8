"""A small terminal: what a program wrote to it, as it stands on the screen."""

import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import termios
import time

TOKEN = re.compile(r"\x1b\[([0-9;?]*)([A-Za-z])|\x1b([78DM])|([\r\n\b\a])|([^\x1b\r\n\b\a]+)|\x1b", re.DOTALL)


class Screen:
    """Interprets what ECMA-48 terminals do with text, cursor moves, clearing and scrolling regions."""

    def __init__(self, rows=12, columns=100):
        self.rows, self.columns = rows, columns
        self.lines = [" " * columns for _ in range(rows)]
        self.scrolled = []
        self.top, self.bottom = 0, rows - 1
        self.row = self.column = 0
        self.kept = (0, 0)
        self.updates = []

    def feed(self, text):
        for found in TOKEN.finditer(text):
            numbers, command, escape, control, printed = found.groups()
            if printed is not None:
                self._print(printed)
            elif control is not None:
                self._control(control)
            elif escape is not None:
                self._escape(escape)
            elif command is not None:
                self._command([int(n) if n.isdecimal() else 0 for n in numbers.split(";")], command)

    def text(self):
        return [line.rstrip() for line in (*self.scrolled, *self.lines)]

    def _print(self, text):
        line = self.lines[self.row]
        self.lines[self.row] = (line[: self.column] + text + line[self.column + len(text) :])[: self.columns]
        self.column = min(self.column + len(text), self.columns)

    def _control(self, control):
        if control == "\r":
            self.column = 0
        elif control == "\n":
            self._down()

    def _down(self):
        if self.row == self.bottom:
            if self.top == 0:
                self.scrolled.append(self.lines[0])
            self.lines[self.top : self.bottom + 1] = [
                *self.lines[self.top + 1 : self.bottom + 1],
                " " * self.columns,
            ]
        else:
            self.row = min(self.row + 1, self.rows - 1)

    def _escape(self, escape):
        if escape == "7":
            self.kept = (self.row, self.column)
        elif escape == "8":
            self.row, self.column = self.kept
        elif escape == "D":
            self._down()

    def _command(self, numbers, command):
        if command == "r":
            self.top = max(numbers[0] - 1, 0)
            self.bottom = (numbers[1] if len(numbers) > 1 and numbers[1] else self.rows) - 1
            self.row = self.column = 0
        elif command == "H":
            self.row = max(numbers[0], 1) - 1
            self.column = (max(numbers[1], 1) if len(numbers) > 1 else 1) - 1
        elif command == "A":
            self.row = max(self.row - max(numbers[0], 1), self.top)
        elif command == "K":
            line = self.lines[self.row]
            blank = " " * self.columns
            self.lines[self.row] = blank if numbers[0] == 2 else (line[: self.column] + blank)[: self.columns]
            if self.bottom < self.row and numbers[0] == 0:
                self.updates.append(self.lines[self.row].rstrip())
        else:
            assert command == "m", f"a terminal command that this screen does not know: {command}"


def on_terminal(command, *, cwd, env, stdout=None, rows=12, columns=100, meanwhile=None, timeout=60):
    """Run a command as the foreground job of a terminal; return exit status, screen and raw text.

    Args:
        command: Program and arguments.
        cwd: Its folder.
        env: Its environment.
        stdout: Where its stdout goes instead of the terminal.
        rows: Height of the terminal.
        columns: Width of the terminal.
        meanwhile: Called with the terminal's side and all that was written so far, after each piece.
        timeout: Longest it may take, in seconds.
    """
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
    process = subprocess.Popen(
        command,
        cwd=cwd,
        env=env,
        stdin=theirs,
        stdout=theirs if stdout is None else stdout,
        stderr=theirs,
        start_new_session=True,
        preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),  # noqa: PLW1509  # the test has no threads
    )
    os.close(theirs)
    raw, end = b"", time.monotonic() + timeout
    while time.monotonic() < end:
        ready, _, _ = select.select([ours], [], [], 0.1)
        if ready:
            try:
                piece = os.read(ours, 65536)
            except OSError:  # all have closed it
                break
            if not piece:
                break
            raw += piece
            if meanwhile is not None:
                meanwhile(ours, raw)
    code = process.wait(60)
    os.close(ours)
    screen = Screen(rows, columns)
    screen.feed(raw.decode())
    return code, screen, raw.decode()
