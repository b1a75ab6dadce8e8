"""PyTorch's Kineto trace: own time of operators on the CPU, time of kernels by GPU; no energy.

``torch.profiler`` writes one JSON object: what it knows of the devices, then ``traceEvents``,
one event after another in no order. ``ts`` and ``dur`` are microseconds, whole ones before
2024; ``displayTimeUnit`` only says how a viewer shows them. The file is decoded event by event
and never held: it may have gigabytes.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from carbonlens.domain.counting import counted
from carbonlens.errors import InputFileError
from carbonlens.importers.claiming import each
from carbonlens.importers.contract import (
    USUAL,
    Facts,
    Group,
    Item,
    Kind,
    OperatorTime,
    Options,
    ProfileRecord,
    Tally,
)
from carbonlens.importers.kineto_events import Decoded, decoded
from carbonlens.importers.kineto_times import Spans, busy_us, own_us
from carbonlens.importers.records import finding
from carbonlens.importers.sources import Source

_US: Final = 1_000_000
_CPU: Final = "CPU"
_OPERATORS: Final = {"cpu_op", "operator"}
_KERNELS: Final = {"kernel"}
_ON_DEVICE: Final = {"kernel", "gpu_memcpy", "memcpy", "gpu_memset", "memset"}
"""Work of a GPU. Waits (``cuda_sync``) and marks (``gpu_user_annotation``) span it, and are none."""

_CATEGORY: Final = re.compile(
    r'"cat"\s*:\s*"(?:cpu_op|Operator|user_annotation|cuda_runtime|kernel|Kernel|gpu_memcpy|Trace)"'
)
_KINETO: Final = ('"deviceProperties"', '"distributedInfo"', '"record_shapes"', '"with_stack"', '"traceName"')


class KinetoImporter:
    """Reads traces of ``torch.profiler``."""

    name = "kineto"
    version = 1
    kind: Kind = "profile"
    rank = USUAL
    facts = Facts(
        title="PyTorch profiler trace (Kineto JSON)",
        reads="what torch.profiler exports, also gzipped; category names since torch 1.8",
        units="microseconds, whole or with a fraction; displayTimeUnit says nothing of them",
        grade="none: it holds times and no energy",
        traps=(
            "an operator holds the time of those it calls: each has its own time alone",
            "kernels on several streams run at once: their sum exceeds the time the GPU was busy",
            "waits and marks on the GPU's rows span kernels and are not counted as work",
            "a launch (cuda_runtime) is part of its operator",
            "a trace that was cut off gives the events before the cut, with a Finding",
            "backslashes that the tool left unescaped in names are taken literally",
        ),
        tested_on=("traces of 2023 (A100) and 2024 (CPU only, one of 300 ranks)",),
    )

    def claim(self, sources: Sequence[Source]) -> list[Group]:
        """Claim JSON objects that begin as Kineto's do."""
        return each(sources, _is_kineto)

    def read(self, group: Group, options: Options) -> Iterator[Item]:  # noqa: ARG002  # a profile has no options
        """Yield the profile of a trace.

        Raises:
            InputFileError: If it holds no event with a duration.
        """
        source = group.main
        taken = _Taken()
        for item in decoded(source):
            taken.take(item)
        if not taken.spans.events:
            raise InputFileError(
                "holds no event with a duration",
                where=source.shown,
                mend="profile some steps, and export the trace after the profiler has stopped",
            )
        yield taken.profile()
        if taken.torn:
            text = f"{counted(taken.torn, 'event')} cannot be read and are left out"
            yield finding(
                "CL276", "warning", text, source, line=taken.torn_line, mend="export the trace again"
            )
        if not taken.is_closed:
            text = "the trace is cut off: events after the cut are missing"
            yield finding(
                "CL277", "warning", text, source, mend="wait for the export to end, or copy it again"
            )
        yield Tally(rows=taken.spans.events + taken.torn, rejected=0)


IMPORTER: Final = KinetoImporter()


def _is_kineto(source: Source) -> bool:
    start = "".join(source.first_lines[:1])[:40].lstrip()
    if not start.startswith("{"):
        return False
    text = "\n".join(source.first_lines)
    if '"schemaVersion"' in text and any(word in text for word in _KINETO):
        return True
    return '"traceEvents"' in text and _CATEGORY.search(text) is not None and "_kernel_time" not in text


class _Taken:
    """What has been met so far: columns of times, and what names them."""

    def __init__(self) -> None:
        self.spans = Spans()
        self.torn = 0
        self.torn_line: int | None = None
        self.is_closed = False
        self._devices: dict[str, str] = {}

    def take(self, item: Decoded) -> None:
        """Take what the decoder found."""
        match item.what:
            case "event":
                self._event(item.value, item.line)
            case "torn":
                self._tear(item.line)
            case "devices":
                self._name_devices(item.value)
            case "closed":
                self.is_closed = True

    def _tear(self, line: int) -> None:
        self.torn += 1
        self.torn_line = self.torn_line or line

    def _event(self, event: Mapping[str, Any], line: int) -> None:
        if event.get("ph") != "X":
            return
        category, name = event.get("cat"), event.get("name")
        start, length = _us(event.get("ts")), _us(event.get("dur"))
        if not isinstance(category, str) or not isinstance(name, str) or start is None or length is None:
            self._tear(line)
            return
        category = category.lower()
        row = f"{event.get('pid')}/{event.get('tid')}"
        if category in _OPERATORS:
            self.spans.add(_CPU, name, row, start, length, kind="cpu")
        elif category in _ON_DEVICE:
            is_kernel = category in _KERNELS
            self.spans.add(
                _device_of(event), name, row, start, length, kind="kernel" if is_kernel else "copy"
            )
        else:
            self.spans.see(start, length)

    def _name_devices(self, value: object) -> None:
        for device in value if isinstance(value, list) else ():
            if isinstance(device, dict) and isinstance(device.get("name"), str):
                self._devices[f"GPU {device.get('id')}"] = device["name"]

    def profile(self) -> ProfileRecord:
        """Return the times by operator and device."""
        spans = self.spans
        operators = [
            OperatorTime(provider=provider, operator=name, calls=calls, time_s=us / _US)
            for (provider, name), (calls, us) in own_us(spans).items()
        ]
        operators.sort(key=lambda o: (-(o.time_s or 0.0), o.provider, o.operator))
        busy = busy_us(spans)
        used = sorted({self._devices.get(gpu, gpu) for gpu in busy})
        facts: dict[str, float | int | None] = {
            "cpu_operator_s": math.fsum(o.time_s or 0.0 for o in operators if o.provider == _CPU),
            "kernels": spans.kernels,
            "kernel_time_s": spans.kernel_us / _US,
            "gpu_busy_s": math.fsum(busy.values()) / _US if busy else 0.0,
            "gpus": len(busy),
        }
        return ProfileRecord(
            operators=tuple(operators),
            events=spans.events,
            span_s=spans.span_us / _US,
            device=", ".join(used) or None,
            facts=facts,
        )


def _device_of(event: Mapping[str, Any]) -> str:
    """Return the GPU that did it: by its arguments, else by its process, which is its number."""
    args = event.get("args")
    number = args.get("device") if isinstance(args, dict) else None
    return f"GPU {event.get('pid') if number is None else number}"


def _us(value: object) -> float | None:
    """Return microseconds; ``None`` for what is no time."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if 0 <= value < 2**62 else None
