"""What declared sources must fulfil beyond the kinds of their values."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Final, Protocol
from urllib.parse import urlsplit

from carbonlens.domain.sources import MOST_TDP_W, ExternalMeter, Sources
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

MOST_W: Final = 1e6
"""No device or machine draws more: the largest racks are rated at some 0.1 MW."""

_MOST_THREADS: Final = 100_000
_LONGEST_S: Final = 86_400.0
_LONGEST_NAME: Final = 60
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
    for name, value, unit, most in (
        ("cpu_tdp_w", sources.cpu_tdp_w, "watts", MOST_TDP_W),
        ("cpu_threads", sources.cpu_threads, "threads", _MOST_THREADS),
    ):
        if value is not None and not _within(value, most):
            yield fault(f"{name} is {value:g}", f"give {unit} above 0, and {most:g} at most", name)
    if sources.cpu_threads is not None and sources.cpu_tdp_w is None:
        yield fault("cpu_threads stands without cpu_tdp_w", "give both, or neither", "cpu_threads")
    for meter in sources.external:
        yield from _meter_problems(meter, fault)
    for device in sources.datasheet:
        yield from _name_problems(device.device, "a datasheet device", "device", fault)
        if not _within(device.power_w, MOST_W):
            yield fault(
                f"power_w of {device.device} is {device.power_w}",
                f"give watts above 0, and {MOST_W:g} at most",
                "power_w",
            )
        if device.component not in COMPONENTS:
            yield _no_component(device.component, fault)
        if not device.source.strip():
            yield fault(f"{device.device} names no source", "say which datasheet, and its date", "source")
    yield from _twice([m.name for m in sources.external], "external meters", fault)
    yield from _twice([d.device for d in sources.datasheet], "datasheet devices", fault)
    yield from _controller_problems(sources, fault)
    yield from _left_out_problems(sources, fault)


def _meter_problems(meter: ExternalMeter, fault: Fault) -> Iterator[ConfigError]:
    yield from _name_problems(meter.name, "an external meter", "name", fault)
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
    if meter.offset_95_w is not None and not 0 <= meter.offset_95_w <= MOST_W:
        yield fault(f"offset_95_w of {meter.name} is {meter.offset_95_w}", "give watts", "offset_95_w")
    if meter.period_s is not None and not _within(meter.period_s, _LONGEST_S):
        yield fault(
            f"period_s of {meter.name} is {meter.period_s}", "give seconds above 0, a day at most", "period_s"
        )
    yield from _twice(list(meter.rails), f"rails of {meter.name}", fault)


def _controller_problems(sources: Sources, fault: Fault) -> Iterator[ConfigError]:
    controller = sources.controller
    if controller is None:
        return
    if controller.kind == "ipmi":
        if controller.url is not None:
            yield fault("ipmi asks this machine's own controller and takes no url", "use redfish", "url")
        return
    try:
        parts = urlsplit(controller.url or "")
        parts.port  # noqa: B018  # raises for one that is no number
    except ValueError as error:
        yield fault(
            f"the url is no address ({error})", 'write url = "https://CONTROLLER/redfish/v1/Chassis/1"', "url"
        )
        return
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
    for name in (n for n, times in Counter(names).items() if times > 1):
        yield fault(f"two {what} are called '{name}'", "give each its own name", "name")


def _no_component(name: str, fault: Fault) -> ConfigError:
    return fault(f"'{name}' is no component", f"write one of {', '.join(COMPONENTS)}", "component")


def _name_problems(name: str, what: str, key: str, fault: Fault) -> Iterator[ConfigError]:
    if not name.strip() or not name.isprintable():
        yield fault(f"{what} has no name", f'write {key} = "plug"', key)
    elif len(name) > _LONGEST_NAME:
        yield fault(f"{what} has a name of {len(name)} characters", f"use {_LONGEST_NAME} at most", key)


def _within(value: float, most: float) -> bool:
    return 0 < value <= most  # false for NaN too
