"""A bench's variant that is a URL: the server that answers is started, measured and ended with it."""

from __future__ import annotations

import http.client
import os
import socket
import subprocess
import time
import urllib.parse
import urllib.request
from collections.abc import Mapping
from typing import IO, Any, Final

from carbonlens.domain.bench import Variant
from carbonlens.domain.counting import counted
from carbonlens.errors import MeasurementError
from carbonlens.instrument.bench_work import Call, evaluated, function_of
from carbonlens.instrument.callers_environment import callers_environ
from carbonlens.instrument.execution import end, not_started
from carbonlens.ledger.location import LEDGER_VARIABLE
from carbonlens.metering.lineage import VARIABLE

SERVER_S: Final = 60.0
"""A server that a variant starts has to answer within this time, and so has each request."""

_LOOK_S: Final = 1.0
"""Longest look whether somebody else answers at the address."""

_CHUNK: Final = 1 << 16


_SAME_AGAIN: Final = frozenset({307, 308})
"""Redirects after which the same is sent; after any other a body is dropped (RFC 9110, 15.4)."""


class _UnfitError(MeasurementError):
    """The server answers what no waiting mends."""


class _SameServer(urllib.request.HTTPRedirectHandler):
    """Follows a redirect to another path, with all that was sent: what answers elsewhere is not measured."""

    def redirect_request(  # the library's own signature
        self,
        req: urllib.request.Request,
        fp: IO[bytes],
        code: int,
        msg: str,
        headers: http.client.HTTPMessage,
        newurl: str,
    ) -> urllib.request.Request | None:
        """Return the next request.

        Raises:
            MeasurementError: If it would go to another host or port, or without the body.
            ValueError: If it would go to no address.
        """
        if _server_of(newurl) != _server_of(req.full_url):
            raise _UnfitError(
                f"sends its callers elsewhere, to {newurl}",
                where=req.full_url,
                mend="ask the server that does the work, or have `serve` start that one",
            )
        if req.data is None:
            return super().redirect_request(req, fp, code, msg, headers, newurl)
        if code not in _SAME_AGAIN:
            raise _UnfitError(
                f"its redirect ({code}) to {newurl} drops the body",
                where=req.full_url,
                mend="let url be the address that takes the body",
            )
        # It comes from an http or https address, to the same server.
        return urllib.request.Request(newurl, req.data, dict(req.headers))  # noqa: S310  # the address was checked above


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
        # It outlives the window that it is started in: what it tracks itself is no part of that.
        self._outside = {name: os.environ.get(name) for name in (VARIABLE, LEDGER_VARIABLE)}
        self._body = None if variant.body is None else variant.body.encode()
        # No proxy: it would answer for a server of this machine that does not.
        self._opener = urllib.request.build_opener(urllib.request.ProxyHandler({}), _SameServer())

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
        # A group of its own, so that a server that starts others is ended with all of them.
        try:
            self._server = server = subprocess.Popen(
                list(self._variant.serve), env=self._environ(), process_group=0
            )
        except (OSError, ValueError) as error:
            raise not_started(self._variant.serve[0], error) from error
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

    def _environ(self) -> dict[str, str]:
        """Return this process's environment, but for the run that it is in."""
        apart = {name: value for name, value in callers_environ().items() if name not in self._outside}
        return apart | {name: value for name, value in self._outside.items() if value is not None}

    def _ask(self, deadline: float) -> None:
        """Make one request and read its answer to the end.

        Raises:
            MeasurementError: If there is no answer by then, or one that is an error.
        """
        patience_s = max(deadline - time.monotonic(), 0.001)
        # One for each call: the library counts redirects on the request itself.
        request = urllib.request.Request(  # noqa: S310  # http and https only, as `load` saw
            self._variant.url or "", self._body, dict(self._variant.headers)
        )
        try:
            with self._opener.open(request, timeout=patience_s) as answer:
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
        except ValueError as error:  # of the library: a port or host of a redirect, or a header, that is none
            raise _UnfitError(
                f"asks for what cannot be asked, or is sent on to no address ({error})",
                where=self._variant.url or "",
                mend="mend the server's redirect, or the variant's headers",
            ) from error

    def _wait(self, server: subprocess.Popen[bytes]) -> None:
        """Wait until the server answers."""
        deadline = time.monotonic() + self._timeout_s
        while True:
            try:
                self._ask(deadline)
            except _UnfitError:
                raise
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


def _server_of(address: str) -> tuple[str, int]:
    """Return host and port of an address.

    Raises:
        ValueError: If its port is none.
    """
    parts = urllib.parse.urlsplit(address)
    return parts.hostname or "", parts.port or (443 if parts.scheme == "https" else 80)


def _require_silence(address: str) -> None:
    """Refuse an address at which somebody listens before the variant's own server is there.

    Raises:
        MeasurementError: If somebody does, or the address is none.
    """
    try:
        with socket.create_connection(_server_of(address), timeout=_LOOK_S):
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
