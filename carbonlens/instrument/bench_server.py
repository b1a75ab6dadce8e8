"""A bench's variant that is a URL: the server that answers is started, measured and ended with it."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Mapping
from typing import Any, Final

from carbonlens.domain.bench import Variant
from carbonlens.errors import MeasurementError
from carbonlens.instrument.bench_work import Call, evaluated, function_of
from carbonlens.instrument.execution import end

SERVER_S: Final = 60.0
"""A server that a variant starts has to answer within this time."""


class UrlWork:
    """Requests to a server that this variant starts, so that the server's work is measured with it."""

    def __init__(self, variant: Variant) -> None:
        """Keep what to ask for."""
        self._variant = variant
        self._server: subprocess.Popen[bytes] | None = None

    def prepare(self) -> None:
        """Call ``prepare``."""
        if isinstance(self._variant.prepare, str):
            function_of(self._variant.prepare)()

    def load(self) -> Call:
        """Start the server and return one request.

        Raises:
            MeasurementError: If the address is none, or the server does not answer.
        """
        import urllib.request

        body = None if self._variant.body is None else self._variant.body.encode()
        address = self._variant.url or ""
        if not address.startswith(("http://", "https://")):
            raise MeasurementError("is no address", where=address, mend="write http://127.0.0.1:8000/path")
        request = urllib.request.Request(address, data=body, headers=dict(self._variant.headers))  # noqa: S310  # http and https only, above

        def call() -> None:
            try:
                with urllib.request.urlopen(request) as answer:  # noqa: S310  # as above
                    answer.read()
            except OSError as error:
                raise MeasurementError(
                    f"did not answer ({error})", where=address, mend="see what the server says"
                ) from error

        self._serve(call)
        return call

    def _serve(self, call: Call) -> None:
        """Start the server and wait until it answers."""
        self._server = server = subprocess.Popen(list(self._variant.serve))
        deadline = time.monotonic() + SERVER_S
        while True:
            try:
                call()
            except MeasurementError as error:
                ended = server.poll() is not None
                if ended or time.monotonic() > deadline:
                    how = f"ended with {server.returncode}" if ended else f"is silent after {SERVER_S:g} s"
                    raise MeasurementError(
                        f"the server {how}: {error.what}", where=self._variant.serve[0], mend=error.mend
                    ) from error
                time.sleep(0.1)
            else:
                return

    def evaluate(self) -> Mapping[str, Any] | None:
        """Call ``evaluate``."""
        return evaluated(self._variant, ())

    def close(self) -> None:
        """End the server."""
        if self._server is not None:
            end(self._server)
