"""A headless Chromium driven over its debugging pipe; needs no further package."""

from __future__ import annotations

import base64
import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
AXE = ROOT / ".venv/share/axe/axe_playwright_python/axe.min.js"
"""axe-core, as ``scripts/setup.sh`` installs it."""

NEEDED = bool(os.environ.get("CARBONLENS_NEEDS_BROWSER"))
"""Whether tests without a browser fail rather than be skipped, as in CI."""

BROWSER = next((b for b in ("chromium", "chromium-browser", "google-chrome") if shutil.which(b)), None)
IN_A_BROWSER = [
    pytest.mark.slow,
    pytest.mark.skipif(BROWSER is None and not NEEDED, reason="no Chromium on this machine"),
]


HIDDEN_TEXT = """
[...document.querySelectorAll('main h1, main p, main li, main .tile')].filter(e => {
  const r = e.getBoundingClientRect();
  return r.width > 0 && (r.left < -1 || r.right > document.documentElement.clientWidth + 1);
}).map(e => e.textContent.slice(0, 60))
"""
"""Texts that stick out of the window."""

BARRIERS = """
axe.run(document, {resultTypes: ['violations']}).then(found => ({
  passes: found.passes.length,
  barriers: found.violations.filter(v => ['serious', 'critical'].includes(v.impact))
    .map(v => v.id + ': ' + v.nodes.map(n => n.html.slice(0, 120)).slice(0, 3).join(' | ')),
  others: found.violations.map(v => v.id + ' ' + v.impact),
}))
"""
"""What axe-core finds, where it was loaded."""

LOUD = ("Log.entryAdded", "Runtime.consoleAPICalled", "Runtime.exceptionThrown")
"""Events of a page that says something."""


class Browser:
    """One browser with one page."""

    def __init__(self, profile: Path) -> None:
        to_browser, self._send = os.pipe()
        self._receive, from_browser = os.pipe()
        # The browser reads commands from descriptor 3 and answers on descriptor 4.
        command = (
            f"exec {BROWSER} --headless --no-sandbox --disable-gpu --remote-debugging-pipe "
            f"--user-data-dir={profile} 3<&{to_browser} 4>&{from_browser}"
        )
        self._process = subprocess.Popen(
            ["bash", "-c", command],
            pass_fds=(to_browser, from_browser),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(to_browser)
        os.close(from_browser)
        self._number, self._buffer, self.events = 0, b"", []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        attached = self.call("Target.attachToTarget", targetId=target, flatten=True)
        self._session = attached["sessionId"]
        for domain in ("Page", "Network", "Log", "Runtime"):
            self.page(f"{domain}.enable")

    def close(self) -> None:
        """End the browser."""
        self._process.terminate()
        self._process.wait(timeout=20)
        os.close(self._send)
        os.close(self._receive)

    def call(self, method: str, session: str | None = None, **params: object) -> dict:
        """Send a command and return its result; events met meanwhile are kept."""
        self._number += 1
        message = {"id": self._number, "method": method, "params": params}
        if session:
            message["sessionId"] = session
        os.write(self._send, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._next()
            if answer.get("id") == self._number:
                assert "error" not in answer, answer
                return answer["result"]
            self.events.append(answer)

    def page(self, method: str, **params: object) -> dict:
        """Send a command to the page."""
        return self.call(method, self._session, **params)

    def open(self, file: Path, *, width: int, height: int = 900, dark: bool = False) -> None:
        """Load a file at a window width and wait until it is there."""
        self.events.clear()
        self.page(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=False,
        )
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.page("Emulation.setEmulatedMedia", features=[scheme])
        self.page("Page.navigate", url=file.as_uri())
        while not any(e.get("method") == "Page.loadEventFired" for e in self.events):
            self.events.append(self._next())

    def evaluate(self, expression: str) -> object:
        """Return the value of an expression in the page."""
        found = self.page("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in found, found
        return found["result"].get("value")

    def picture(self, *, whole: bool = False) -> bytes:
        """Return the page as PNG: what the window shows, or all of it."""
        shown: dict[str, object] = {"format": "png", "captureBeyondViewport": whole}
        if whole:
            size = self.page("Page.getLayoutMetrics")["cssContentSize"]
            shown["clip"] = {"x": 0, "y": 0, "width": size["width"], "height": size["height"], "scale": 1}
        return base64.b64decode(self.page("Page.captureScreenshot", **shown)["data"])

    def _next(self) -> dict:
        while b"\0" not in self._buffer:
            chunk = os.read(self._receive, 1 << 16)
            assert chunk, "the browser has gone"
            self._buffer += chunk
        message, self._buffer = self._buffer.split(b"\0", 1)
        return json.loads(message)
