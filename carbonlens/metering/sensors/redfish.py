"""Redfish: the power that a management controller tells over HTTPS (grade C).

Asked only if the user declared its address. The account is read from environment
variables for each question, sent to that address alone, and stands in no message.
"""

from __future__ import annotations

import base64
import http.client
import json
import math
import os
import ssl
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from typing import Final
from urllib.parse import urljoin, urlsplit

from carbonlens.domain.sources import ManagementController
from carbonlens.metering.sensors import Probe, SensorInfo
from carbonlens.metering.sensors.ipmi import controller_info
from carbonlens.metering.sensors.poll import PERIOD_S, Poll

TIMEOUT_S: Final = 5.0

_MOST_BYTES: Final = 1 << 20
_MOST_SUPPLIES: Final = 16
_LOOPBACK: Final = {"127.0.0.1", "::1", "localhost"}
_PARTS: Final = {"cpu", "memory", "gpu", "accelerator", "storagedevice", "fan", "networkingdevice"}
_DENIED: Final = {401, 403}

Ask = Callable[[str], Mapping[str, object]]
"""Returns the document at a path or address of the controller; raises OSError."""


def watts_of(document: Mapping[str, object]) -> float | None:
    """Return the whole machine's watts that a document tells; ``None`` if it tells none.

    ``PowerControl`` may list parts beside the whole: these are not added, and a whole
    that is null is not made up from them. ``AverageConsumedWatts`` is the mean of
    many minutes and is not used. A figure may be a string; nought is a field that
    was not filled in.
    """
    controls = document.get("PowerControl")
    if isinstance(controls, list):
        entries = [c for c in controls if isinstance(c, dict) and not _is_part(c)]
        whole = [c for c in entries if str(c.get("PhysicalContext", "")).lower() == "chassis"]
        chosen = (whole or entries)[:1]
        return _watts(chosen[0].get("PowerConsumedWatts")) if chosen else None
    power = document.get("PowerWatts")
    return _watts(power.get("Reading")) if isinstance(power, dict) else None


def supplied_watts(document: Mapping[str, object], ask: Ask) -> float | None:
    """Return what all power supplies of a ``PowerSubsystem`` take in.

    ``None`` if one of them does not tell: a sum without it would be too low.

    Raises:
        OSError: If the controller does not answer.
    """
    listed = _link(document, "PowerSupplies")
    members = ask(listed).get("Members") if listed else None
    if not isinstance(members, list) or not 0 < len(members) <= _MOST_SUPPLIES:
        return None
    total = 0.0
    for member in members:
        place = member.get("@odata.id") if isinstance(member, dict) else None
        metrics = _link(ask(place), "Metrics") if isinstance(place, str) else None
        power = ask(metrics).get("InputPowerWatts") if metrics else None
        watts = _watts(power.get("Reading")) if isinstance(power, dict) else None
        if watts is None:
            return None
        total += watts
    return total


class RedfishSensor:
    """Asks a controller about once a second, beside the work.

    Args:
        controller: What the user declared; ``url`` is a chassis or a power resource.
        wait_s: How long a probe waits for an answer, and calls silence a fault.
            ``None`` is for the start of a run, which waits for nothing.
        clock: Monotonic seconds.
    """

    may_block = False
    rest_s = PERIOD_S

    def __init__(
        self,
        controller: ManagementController,
        *,
        wait_s: float | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Keep what was declared; nothing is asked."""
        self._controller = controller
        self._url = _address(controller.url)
        self._wait_s = wait_s
        self._poll = Poll(self._now, clock)
        self._resource: str | None = None
        self._opener: urllib.request.OpenerDirector | None = None
        self._info = controller_info("redfish", "Redfish")

    @property
    def info(self) -> SensorInfo:
        """Describe the readings."""
        return self._info

    def probe(self) -> Probe:
        """Ask the controller."""
        found = f"management controller at {urlsplit(self._url).hostname or 'no address'}"
        fault = self._misdeclared()
        if fault is not None:
            return Probe(usable=False, found=found, reason=fault[0], mend=fault[1])
        try:
            self._poll.start()
        except OSError as error:
            return Probe(usable=False, found=found, reason=str(error))
        if not self._poll.wait(self._wait_s or 0.0) and self._wait_s is None:
            return Probe(usable=True, found=f"{found}, being asked")
        try:
            return Probe(usable=True, found=f"{found}: {self._poll.latest():.4g} W now")
        except OSError as error:
            return Probe(usable=False, found=found, reason=str(error), mend=self._mend(str(error)))

    def read(self, *, edge: bool) -> tuple[float | None, ...]:
        """Return watts.

        Raises:
            OSError: If there is no recent answer, or the sensor is closed.
        """
        del edge  # an answer takes longer than the edge of a window may
        fault = self._misdeclared()
        if fault is not None:
            raise OSError(fault[0])
        self._poll.start()
        return (self._poll.latest(),)

    def close(self) -> None:
        """Ask no more."""
        self._poll.stop()

    def _misdeclared(self) -> tuple[str, str] | None:
        """Return what is wrong with the declaration and its mend."""
        parts = urlsplit(self._url)
        if parts.username or parts.password:
            return "the address holds an account", "leave it out; the account is read from the environment"
        if not parts.hostname:
            return "no address is declared", 'declare url = "https://CONTROLLER/redfish/v1/Chassis/1"'
        if parts.scheme != "https" and parts.hostname not in _LOOPBACK:
            return "the account would be sent in the clear", "declare an https address"
        missing = [name for name in self._variables if not os.environ.get(name)]
        if missing:
            return f"{' and '.join(missing)} not set", f"set {' and '.join(missing)} in the environment"
        return None

    @property
    def _variables(self) -> tuple[str, str]:
        return self._controller.user_variable, self._controller.password_variable

    def _mend(self, fault: str) -> str:
        if "refuses the account" in fault:
            return f"give an account that may read the chassis in {' and '.join(self._variables)}"
        if "SSL" in fault:
            return "save the controller's certificate to a file and declare it as ca_file"
        return "declare the chassis that holds the power (curl its /redfish/v1/Chassis to see them)"

    def _now(self) -> float:
        """Return the watts of the first resource that tells them; it is kept for the next time."""
        if self._resource is not None:
            document = self._ask(self._resource)
            watts = watts_of(document) or supplied_watts(document, self._ask)
        else:
            watts = self._found()
        if watts is None:
            raise OSError("the controller tells no power: null, 0 or no such resource")
        return watts

    def _found(self) -> float | None:
        document = self._ask(self._url)
        links = [_link(document, key) for key in ("EnvironmentMetrics", "Power", "PowerSubsystem")]
        for place in (self._url, *filter(None, links)):
            try:
                told = document if place == self._url else self._ask(place)
            except FileNotFoundError:
                continue  # older controllers link to resources that they do not have
            watts = watts_of(told) or supplied_watts(told, self._ask)
            if watts is not None:
                self._resource = place
                return watts
        return None

    def _ask(self, place: str) -> Mapping[str, object]:
        """Return the document at a place of the declared controller."""
        url = urljoin(self._url, place)
        if urlsplit(url)[:2] != urlsplit(self._url)[:2]:
            raise OSError("the controller refers to another machine, which is not asked")
        user, password = (os.environ.get(name, "") for name in self._variables)
        account = base64.b64encode(f"{user}:{password}".encode()).decode("ascii")
        headers = {"Authorization": f"Basic {account}", "Accept": "application/json"}
        if self._opener is None:
            # Kept: reading the system's certificates takes tens of milliseconds.
            self._opener = opener_for(self._url, self._controller.ca_file)
        return fetch_json(url, headers, self._opener)


class _StayHere(urllib.request.HTTPRedirectHandler):
    """Follows no redirection: it would take the account to another address."""

    def redirect_request(self, *args: object, **kwargs: object) -> None:
        """Return nothing, which makes the answer an error."""


def opener_for(url: str, ca_file: str | None) -> urllib.request.OpenerDirector:
    """Return what asks a controller: by no proxy, following no redirection.

    Args:
        url: Of the controller.
        ca_file: Certificate to trust; ``None`` trusts the system's.

    Raises:
        OSError: If the certificate cannot be read.
    """
    handlers: list[urllib.request.BaseHandler] = [urllib.request.ProxyHandler({}), _StayHere()]
    if urlsplit(url).scheme == "https":
        context = ssl.create_default_context(cafile=ca_file)
        handlers.append(urllib.request.HTTPSHandler(context=context))
    return urllib.request.build_opener(*handlers)


def fetch_json(
    url: str, headers: Mapping[str, str], opener: urllib.request.OpenerDirector
) -> Mapping[str, object]:
    """Return the JSON object at an address.

    Args:
        url: Whose scheme the caller has checked.
        headers: Sent with the question.
        opener: Asks it.

    Raises:
        OSError: If there is no such answer: PermissionError when the account is
            refused, FileNotFoundError when there is no such resource.
    """
    request = urllib.request.Request(url, headers=dict(headers))  # noqa: S310  # http is for loopback alone
    try:
        with opener.open(request, timeout=TIMEOUT_S) as answer:
            document = json.loads(answer.read(_MOST_BYTES))
    except urllib.error.HTTPError as error:
        error.close()
        if error.code in _DENIED:
            raise PermissionError(f"the controller refuses the account (HTTP {error.code})") from None
        if error.code == http.HTTPStatus.NOT_FOUND:
            raise FileNotFoundError("the controller has no such resource (HTTP 404)") from None
        raise OSError(f"the controller answers HTTP {error.code}") from None
    except urllib.error.URLError as error:
        raise OSError(f"the controller cannot be reached ({type(error.reason).__name__})") from None
    except http.client.HTTPException as error:
        raise OSError(f"the controller's answer is broken ({type(error).__name__})") from None
    except ValueError:
        raise OSError("the controller's answer is not JSON") from None
    if not isinstance(document, dict):
        raise OSError("the controller's answer is not a JSON object")
    return document


def _address(url: str | None) -> str:
    """Return an address that can be cut into its parts; nothing where there is none."""
    try:
        urlsplit(url or "").port  # noqa: B018  # raises for one that is no number
    except ValueError:
        return ""
    return url or ""


def _is_part(control: Mapping[str, object]) -> bool:
    return str(control.get("PhysicalContext", "")).lower() in _PARTS


def _link(document: Mapping[str, object], key: str) -> str | None:
    target = document.get(key)
    place = target.get("@odata.id") if isinstance(target, dict) else None
    return place if isinstance(place, str) else None


def _watts(value: object) -> float | None:
    """Return watts above 0 of a number or a string of one; ``None`` for anything else."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        watts = float(value)
    except (ValueError, OverflowError):  # JSON has numbers of any length
        return None
    return watts if math.isfinite(watts) and watts > 0 else None
