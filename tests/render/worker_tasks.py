"""What tests have the rendering process do."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import time

from carbonlens.errors import RenderError, VerificationError
from carbonlens.render.stages import stage


def refuse():
    raise VerificationError("is not that of its figure", where="some.figure", mend="mend it")


def fail(error):
    raise error("cannot be read", mend="mend it") if error is RenderError else error("cannot be read")


def fill(megabytes):
    return b"x" * (megabytes << 20)


def joined(first, *, rest):
    stage("waiting for the rest")
    return first + rest()


def refuse_without_waiting(*, rest):
    refuse()


def slow(seconds):
    stage("counting sheep")
    time.sleep(seconds)
    return b""


def die():
    os.kill(os.getpid(), signal.SIGKILL)


def look_up():
    return socket.getaddrinfo("localhost", 80)


def start_a_program():
    return subprocess.run(["true"], check=True)


def send_a_datagram():
    return socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b"x", ("127.0.0.1", 9))


def send_a_message():
    return socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendmsg([b"x"], (), 0, ("127.0.0.1", 9))


def fork_with_a_terminal():
    if os.forkpty()[0] == 0:
        os._exit(0)
    return b""


class Ring:
    """Garbage that only a look for it finds."""

    held = 0

    def __init__(self):
        Ring.held += 1
        self.me = self

    def __del__(self):
        Ring.held -= 1


def leave_garbage():
    """Return how many rings there are with a new one that nobody has."""
    Ring()
    return str(Ring.held).encode()


def leave(code):
    raise SystemExit(code)


def interrupt():
    raise KeyboardInterrupt
