"""Scaphandre's JSON exporter: one report after another, with or without anything between them.

A report holds the host's power, that of its sockets with their domains, and that of the
processes that use most; all in microwatts, each with its time in seconds since 1970.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

import msgspec

from carbonlens.domain.decoding import convert
from carbonlens.errors import InputFileError
from carbonlens.importers.claiming import each
from carbonlens.importers.contract import USUAL, Channel, Facts, Group, Item, Kind, Options, Tally
from carbonlens.importers.device_samples import DeviceSamples, epoch_us
from carbonlens.importers.records import finding
from carbonlens.importers.sources import Source

_W_PER_UW: Final = 1e-6
_BETWEEN: Final = " \t\r\n,[]"


class ScaphandreJsonImporter:
    """Importer of what ``scaphandre json`` writes."""

    name = "scaphandre-json"
    version = 1
    kind: Kind = "trace"
    rank = USUAL
    facts = Facts(
        title="Scaphandre, JSON exporter",
        reads="reports written one after another, on lines of their own, or as one list",
        units="uW; times are seconds since 1970",
        grade="C: power, integrated; from RAPL: processor and memory, no GPU",
        traps=(
            "the host's power holds sockets, domains and processes: those stand beside or are left out",
            "a power of 0 is a reading that failed (no domain could be read), never an idle machine",
            "a file that was cut off gives its whole reports",
        ),
        tested_on=("tested on samples written after the documentation and the exporter's source",),
    )

    def claim(self, sources: Sequence[Source]) -> list[Group]:
        """Return the sources that begin with a report of a host."""
        return each(sources, _is_mine)

    def read(self, group: Group, options: Options) -> Iterator[Item]:  # noqa: ARG002  # no option changes it
        """Yield the power of host and sockets.

        Raises:
            InputFileError: If no report tells the host's power.
        """
        source = group.main
        samples = DeviceSamples()
        rows = rejected = 0
        for line, report in _reports(source):
            rows += 1
            try:
                if report is None:
                    raise ValueError("is cut off or damaged")
                _take(convert(report, _Report), samples, line)
            except (ValueError, msgspec.ValidationError) as error:
                rejected += 1
                text = f"the report at line {line} {error}; it is left out"
                yield finding("CL202", "error", text, source, line=line, mend="let scaphandre end by itself")
            if samples.is_full:
                yield from samples.hand_on()
        if not samples.is_known:
            raise InputFileError(
                "tells no power of a host",
                where=source.shown,
                mend="let scaphandre read RAPL: as root, and not in a virtual machine",
            )
        yield from samples.hand_on()
        yield Tally(rows=rows, rejected=rejected)


IMPORTER: Final = ScaphandreJsonImporter()

_HOST: Final = Channel(
    name="host", component="cpu+ram", device="host", method="Scaphandre host consumption", unit="uW"
)


class _Socket(msgspec.Struct, frozen=True):
    id: int
    consumption: float
    timestamp: float | None = None


class _Host(msgspec.Struct, frozen=True):
    consumption: float
    timestamp: float


class _Report(msgspec.Struct, frozen=True):
    host: _Host
    sockets: list[_Socket] = msgspec.field(default_factory=list)


def _is_mine(source: Source) -> bool:
    text = "\n".join(source.first_lines).lstrip(_BETWEEN)
    return text.startswith("{") and '"host"' in text[:40] and '"consumption"' in text[:200]


def _take(report: _Report, samples: DeviceSamples, line: int) -> None:
    t_us = epoch_us(report.host.timestamp)
    watts = report.host.consumption * _W_PER_UW
    if watts < 0:
        raise ValueError(f"has a power of {watts:g} W, below zero")
    samples.add(_HOST, t_us, watts or float("nan"), line)
    for socket in report.sockets:
        name = f"socket {socket.id}"
        channel = Channel(
            name=name,
            component="cpu",
            device=name,
            counted=False,
            method="Scaphandre socket consumption",
            unit="uW",
        )
        at_us = t_us if socket.timestamp is None else epoch_us(socket.timestamp)
        samples.add(channel, at_us, socket.consumption * _W_PER_UW or float("nan"), line)


def _reports(source: Source) -> Iterator[tuple[int, Mapping[str, object] | None]]:
    """Yield line and content of each report; ``None`` for what is none."""
    decoder = json.JSONDecoder()
    text, at = source.text(), 0
    line = 1
    counted_to = 0
    while at < len(text):
        if text[at] in _BETWEEN:
            at += 1
            continue
        line += text.count("\n", counted_to, at)
        counted_to = at
        try:
            report, end = decoder.raw_decode(text, at)
        except (ValueError, RecursionError):
            yield line, None
            # The next report begins with its host.
            at = text.find('{"host"', at + 1)
            if at < 0:
                return
            continue
        yield line, report if isinstance(report, dict) else None
        at = end
