"""A bench's variant that is a URL: the server that answers is started, measured and ended with it."""

from __future__ import annotations

import http.client
import socket
import subprocess
import time
import urllib.parse
import urllib.request
from collections.abc import Mapping
from typing import Any, Final

from carbonlens.domain.bench import Variant
from carbonlens.domain.counting import counted
from carbonlens.errors import MeasurementError
from carbonlens.instrument.bench_work import Call, evaluated, function_of
from carbonlens.instrument.execution import end

SERVER_S: Final = 60.0
"""A server that a variant starts has to answer within this time, and so has each request."""

_LOOK_S: Final = 1.0
"""Longest look whether somebody else answers at the address."""

_CHUNK: Final = 1 << 16


class UrlWork:
    """Requests to a server that this variant starts, so that the server's work is measured with it."""

    def __init__(self, variant: Variant, timeout_s: float | None = None) -> None:
        """Keep what to ask for.

        Args:
            variant: What to run.
            timeout_s: Longest that a request, and the server's start, may take; ``SERVER_S`` when ``None``.
        """
        self._variant = variant
        self._timeout_s = SERVER_S if timeout_s is None else timeout_s
        self._server: subprocess.Popen[bytes] | None = None
        self._body = None if variant.body is None else variant.body.encode()
        # No proxy: it would answer for a server of this machine that does not.
        self._opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))

    def prepare(self) -> None:
        """Call ``prepare``."""
        if isinstance(self._variant.prepare, str):
            function_of(self._variant.prepare)()

    def load(self) -> Call:
        """Start the server and return one request.

        Raises:
            MeasurementError: If the address is none, somebody else answers there, or the
                server does not.
        """
        address = self._variant.url or ""
        if not address.startswith(("http://", "https://")):
            raise MeasurementError("is no address", where=address, mend="write http://127.0.0.1:8000/path")
        _require_silence(address)
        self._request = urllib.request.Request(address, self._body, dict(self._variant.headers))  # noqa: S310  # http and https only, above
        # A group of its own, so that a server that starts others is ended with all of them.
        self._server = server = subprocess.Popen(list(self._variant.serve), process_group=0)
        try:
            self._wait(server)
        except MeasurementError:
            self.close()
            raise

        def call() -> None:
            if server.poll() is not None:
                raise self._gone(server)
            self._ask(time.monotonic() + self._timeout_s)

        return call

    def _ask(self, deadline: float) -> None:
        """Make one request and read its answer to the end.

        Raises:
            MeasurementError: If there is no answer by then, or one that is an error.
        """
        patience_s = max(deadline - time.monotonic(), 0.001)
        try:
            with self._opener.open(self._request, timeout=patience_s) as answer:
                # The time is that of one reading, and a server may send a byte at a time.
                while answer.read1(_CHUNK):
                    if time.monotonic() > deadline:
                        raise TimeoutError("timed out")
                if answer.length:  # of what it said it would send; a connection's end is no error there
                    raise ConnectionError(f"its answer broke off {counted(answer.length, 'byte')} early")
        except (OSError, http.client.HTTPException) as error:
            raise MeasurementError(
                f"did not answer ({error or type(error).__name__})",
                where=self._variant.url or "",
                mend="see what the server says; timeout_s is the time that a request may take",
            ) from error

    def _wait(self, server: subprocess.Popen[bytes]) -> None:
        """Wait until the server answers."""
        deadline = time.monotonic() + self._timeout_s
        while True:
            try:
                self._ask(deadline)
            except MeasurementError as error:
                if server.poll() is not None:
                    raise self._gone(server, error) from error
                if time.monotonic() > deadline:
                    raise MeasurementError(
                        f"the server is silent after {self._timeout_s:g} s: {error.what}",
                        where=self._variant.serve[0],
                        mend=error.mend,
                    ) from error
                time.sleep(0.1)
            else:
                if server.poll() is not None:
                    raise self._gone(server)
                return

    def _gone(
        self, server: subprocess.Popen[bytes], error: MeasurementError | None = None
    ) -> MeasurementError:
        """Return the error for a server that has ended: whoever answers now is somebody else."""
        said = "" if error is None else f": {error.what}"
        return MeasurementError(
            f"the server ended with {server.returncode}{said}",
            where=self._variant.serve[0],
            mend="see what the server says; it has to stay in the foreground",
        )

    def evaluate(self) -> Mapping[str, Any] | None:
        """Call ``evaluate``."""
        return evaluated(self._variant, ())

    def close(self) -> None:
        """End the server, and what it started."""
        if self._server is not None:
            end(self._server)


def _require_silence(address: str) -> None:
    """Refuse an address at which somebody listens before the variant's own server is there.

    Raises:
        MeasurementError: If somebody does, or the address is none.
    """
    parts = urllib.parse.urlsplit(address)
    try:
        place = parts.hostname or "", parts.port or (443 if parts.scheme == "https" else 80)
        with socket.create_connection(place, timeout=_LOOK_S):
            pass
    except ValueError as error:
        raise MeasurementError(f"is no address ({error})", where=address, mend="mend the address") from error
    except OSError:
        return
    raise MeasurementError(
        "is answered already, by a server that the variant did not start",
        where=address,
        mend="end that server, or take another port: the work of what answers has to be measured",
    )
