"""Programs, controllers and trees that tell power, for the sensors a user declares."""

import json
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from carbonlens.domain.sources import ExternalMeter
from carbonlens.errors import MeasurementError
from carbonlens.metering.sensors.external import collect

WATCHED = """
import sys, time
period = float(sys.argv[1])
while True:
    print(f"{time.monotonic_ns() // 1000},{sys.argv[2]}", flush=True)
    time.sleep(period)
"""


def printing(watts="100", period_s=0.02):
    """Return a command that prints lines of a steady power for ever."""
    return (sys.executable, "-u", "-c", WATCHED, str(period_s), watts)


def saying(text, *, stay=True):
    """Return a command that prints a text, and stays or ends."""
    rest = "import time; time.sleep(60)" if stay else ""
    return (sys.executable, "-c", f"import sys; sys.stdout.write({text!r}); sys.stdout.flush()\n{rest}")


def meter(command=(), **more):
    """Declare a meter of 1 %."""
    return ExternalMeter(**{"name": "plug", "command": command, "gain_95": 0.01, **more})


def collected(declared, enough=4):
    """Return a meter's lines; over more time where a busy machine started its program late.

    Args:
        declared: The meter.
        enough: Lines that are wanted.
    """
    for seconds in (0.5, 2.0, 8.0, 30.0):
        try:
            told = collect(declared, seconds)
        except MeasurementError as error:
            if "told no power" not in str(error) or seconds == 30.0:
                raise
        else:
            if len(told) >= enough:
                return told
    raise AssertionError("the meter told too little")


def plist(elapsed_s=1.0, inside="", **energies_mj):
    """Return one sample of powermetrics as it prints it, NUL first."""
    keys = "".join(f"<key>{k}</key><integer>{v}</integer>" for k, v in energies_mj.items())
    return (
        '\0<?xml version="1.0" encoding="UTF-8"?>\n<plist version="1.0"><dict>'
        f"<key>elapsed_ns</key><integer>{round(elapsed_s * 1e9)}</integer>{inside}"
        f"<key>processor</key><dict>{keys}</dict></dict></plist>\n"
    )


class Controller:
    """A management controller on this machine's loopback.

    Args:
        documents: JSON by path; a number is an HTTP status.
        context: TLS, if it shall speak HTTPS.
    """

    def __init__(self, documents, context=None):
        self.accounts = []
        controller = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self):
                controller.accounts.append(self.headers.get("Authorization"))
                told = documents.get(self.path, 404)
                status = told if isinstance(told, int) else 200
                self.send_response(status)
                if status == 302:
                    self.send_header("Location", "http://localhost:9/elsewhere")
                self.end_headers()
                if not isinstance(told, int):
                    self.wfile.write(told if isinstance(told, bytes) else json.dumps(told).encode())

            def log_message(self, *args):
                """Stay quiet."""

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        if context is not None:
            self.server.socket = context.wrap_socket(self.server.socket, server_side=True)
        scheme = "http" if context is None else "https"
        self.url = f"{scheme}://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, args=(0.01,), daemon=True).start()

    def close(self):
        self.server.shutdown()
        self.server.server_close()


class Memory:
    """A process file system that tells of memory, for this process and its children."""

    def __init__(self, root: Path, pid: int, page: int) -> None:
        self.root, self.pid, self.page = root, pid, page
        self.proc, self.cgroup = root / "proc", root / "cgroup"
        (self.proc / "self").mkdir(parents=True)
        (self.proc / str(pid) / "task" / str(pid)).mkdir(parents=True)
        self.children(pid)

    def children(self, pid, *of):
        (self.proc / str(pid) / "task" / str(pid) / "children").write_text(" ".join(map(str, of)))

    def holds(self, pid, size):
        """Have a process hold some bytes; ``self`` is this one."""
        folder = self.proc / str(pid)
        if pid != "self":
            (folder / "task" / str(pid)).mkdir(parents=True, exist_ok=True)
            self.children(pid)
        (folder / "statm").write_text(f"9999 {size // self.page} 10 1 0 5 0\n")

    def group(self, size, line="0::/job", file="job/memory.current"):
        (self.proc / "self" / "cgroup").write_text(line + "\n")
        path = self.cgroup / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{size}\n")

    def machine(self, total, available):
        (self.proc / "meminfo").write_text(
            f"MemTotal: {total // 1024} kB\nMemFree: 1 kB\nMemAvailable: {available // 1024} kB\n"
        )
