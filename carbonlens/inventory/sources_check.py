"""What declared sources must fulfil beyond the kinds of their values."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Final, Protocol
from urllib.parse import urlsplit

from carbonlens.domain.sources import ExternalMeter, Sources
from carbonlens.errors import ConfigError

COMPONENTS: Final = ("wall", "total", "cpu", "gpu", "ram", "npu")

SENSORS: Final = (
    "rapl",
    "cpu_model",
    "ram_model",
    "nvml_energy",
    "nvml_power",
    "nvml_average",
    "nvml_use",
    "amd_energy",
    "amd_power",
    "hwmon",
    "hwmon:grace",
    "hwmon:machine",
    "hwmon:intel_gpu",
    "hwmon:input",
    "jetson",
    "powermetrics",
    "intel_npu",
    "ipmi",
    "redfish",
)
"""Names that ``leave_out`` may hold, beside those of declared meters and devices."""

_LOOPBACK: Final = ("127.0.0.1", "::1", "localhost")


class Fault(Protocol):
    """Makes the error of a fault; it knows the file and finds the line."""

    def __call__(self, what: str, mend: str, key: str = "") -> ConfigError:
        """Return the error.

        Args:
            what: What is wrong.
            mend: What to do.
            key: The key it is about, by which the line is found.
        """
        ...


def check(sources: Sources, fault: Fault) -> None:
    """Refuse what cannot be right.

    Args:
        sources: What was declared.
        fault: Makes the errors.

    Raises:
        ConfigError: For the first thing that is wrong.
    """
    for problem in _problems(sources, fault):
        raise problem


def nearest(word: str, known: Sequence[str]) -> str:
    """Return a mend that names the nearest known word, or all of them."""
    import difflib  # only a mistake needs it

    close = difflib.get_close_matches(word, known, n=1)
    return f"did you mean '{close[0]}'?" if close else f"known are {', '.join(known)}"


def _problems(sources: Sources, fault: Fault) -> Iterator[ConfigError]:
    for name, value, unit in (
        ("cpu_tdp_w", sources.cpu_tdp_w, "watts"),
        ("cpu_threads", sources.cpu_threads, "threads"),
    ):
        if value is not None and not _positive(value):
            yield fault(f"{name} is {value}", f"give a number of {unit} above 0", name)
    if sources.cpu_threads is not None and sources.cpu_tdp_w is None:
        yield fault("cpu_threads stands without cpu_tdp_w", "give both, or neither", "cpu_threads")
    for meter in sources.external:
        yield from _meter_problems(meter, fault)
    for device in sources.datasheet:
        if not _positive(device.power_w):
            yield fault(f"power_w of {device.device} is {device.power_w}", "give watts above 0", "power_w")
        if device.component not in COMPONENTS:
            yield _no_component(device.component, fault)
        if not device.source.strip():
            yield fault(f"{device.device} names no source", "say which datasheet, and its date", "source")
    yield from _twice([m.name for m in sources.external], "external meters", fault)
    yield from _twice([d.device for d in sources.datasheet], "datasheet devices", fault)
    yield from _controller_problems(sources, fault)
    yield from _left_out_problems(sources, fault)


def _meter_problems(meter: ExternalMeter, fault: Fault) -> Iterator[ConfigError]:
    if not meter.name.strip() or not meter.name.isprintable():
        yield fault("an external meter has no name", 'write name = "plug"', "name")
    if bool(meter.command) == (meter.pipe is not None):
        yield fault(
            f"the meter {meter.name} needs a command or a pipe, one of them",
            'write command = ["program", "argument"], or pipe = "path"',
            "pipe" if meter.pipe is not None else "external",
        )
    if meter.component not in COMPONENTS:
        yield _no_component(meter.component, fault)
    if meter.gain_95 is not None and not 0 <= meter.gain_95 < 1:
        yield fault(f"gain_95 of {meter.name} is {meter.gain_95}", "0.01 means 1 %", "gain_95")
    if meter.offset_95_w is not None and not (math.isfinite(meter.offset_95_w) and meter.offset_95_w >= 0):
        yield fault(f"offset_95_w of {meter.name} is {meter.offset_95_w}", "give watts", "offset_95_w")
    if meter.period_s is not None and not _positive(meter.period_s):
        yield fault(f"period_s of {meter.name} is {meter.period_s}", "give seconds above 0", "period_s")
    yield from _twice(list(meter.rails), f"rails of {meter.name}", fault)


def _controller_problems(sources: Sources, fault: Fault) -> Iterator[ConfigError]:
    controller = sources.controller
    if controller is None:
        return
    if controller.kind == "ipmi":
        if controller.url is not None:
            yield fault("ipmi asks this machine's own controller and takes no url", "use redfish", "url")
        return
    parts = urlsplit(controller.url or "")
    if not parts.hostname or parts.scheme not in {"https", "http"}:
        yield fault(
            "redfish needs the address of the controller",
            'write url = "https://CONTROLLER/redfish/v1/Chassis/1"',
            "url" if controller.url is not None else "controller",
        )
    if parts.username or parts.password:
        yield fault("the url holds an account", "leave it out: it is read from the environment", "url")
    if parts.scheme == "http" and parts.hostname not in _LOOPBACK:
        yield fault("the account would be sent in the clear", "write an https address", "url")


def _left_out_problems(sources: Sources, fault: Fault) -> Iterator[ConfigError]:
    known = [
        *SENSORS,
        *(f"external:{m.name}" for m in sources.external),
        *(f"datasheet:{d.device}" for d in sources.datasheet),
    ]
    for name in sources.leave_out:
        if name not in known:
            yield fault(f"leave_out names no sensor '{name}'", nearest(name, known), "leave_out")


def _twice(names: list[str], what: str, fault: Fault) -> Iterator[ConfigError]:
    for name in dict.fromkeys(n for n in names if names.count(n) > 1):
        yield fault(f"two {what} are called '{name}'", "give each its own name", "name")


def _no_component(name: str, fault: Fault) -> ConfigError:
    return fault(f"'{name}' is no component", f"write one of {', '.join(COMPONENTS)}", "component")


def _positive(value: float) -> bool:
    return math.isfinite(value) and value > 0
