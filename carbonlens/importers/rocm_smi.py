"""rocm-smi --showpower: text, CSV and JSON, of one call or of many that were appended.

None bears a time. Releases name the figure differently: ``Average Graphics Package Power``,
``Current Socket Graphics Package Power``.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from carbonlens.errors import InputFileError
from carbonlens.importers.cells import UNKNOWN_WORDS
from carbonlens.importers.claiming import each
from carbonlens.importers.contract import USUAL, Channel, Facts, Group, Item, Kind, Options, Tally
from carbonlens.importers.device_samples import DeviceSamples
from carbonlens.importers.once import Once
from carbonlens.importers.records import finding
from carbonlens.importers.sources import Source
from carbonlens.importers.tables import exact, names_of, split
from carbonlens.importers.unit_checks import LEAST_DEVICE_W

_NAME: Final = re.compile(r"^(Average|Current Socket) Graphics Package Power \(W\)$", re.IGNORECASE)
_TEXT: Final = re.compile(
    r"^GPU\[(\d+)\]\s*:\s*((?:Average|Current Socket) Graphics Package Power \(W\)):\s*(\S.*)$"
)
_CARD: Final = re.compile(r"^card(\d+)$", re.IGNORECASE)
_POWER_ANYWHERE: Final = re.compile(r"(?:Average|Current Socket) Graphics Package Power \(W\)")


class RocmSmiImporter:
    """Importer of what ``rocm-smi --showpower`` prints."""

    name = "rocm-smi"
    version = 1
    kind: Kind = "trace"
    rank = USUAL
    facts = Facts(
        title="rocm-smi --showpower",
        reads="text, CSV (--csv) and JSON (--json), one call or many in one file",
        units="W",
        grade="C: power, integrated",
        traps=(
            "no form bears a time: --interval gives the energy",
            "N/A (Secondary die) is a card whose first die tells the power of both: no reading, never 0",
            "JSON figures are text",
        ),
        tested_on=("tested on samples written after the documentation",),
    )

    def claim(self, sources: Sequence[Source]) -> list[Group]:
        """Return the sources with a card's package power by rocm-smi."""
        return each(sources, lambda s: _form_of(s) is not None)

    def read(self, group: Group, options: Options) -> Iterator[Item]:  # noqa: ARG002  # the framework's interval
        """Yield the samples of each card.

        Raises:
            InputFileError: If no card tells its power.
        """
        log = _Log(group.main)
        form = _form_of(group.main)
        yield from log.items({"json": log.of_json, "csv": log.of_csv}.get(form or "", log.of_text)())


IMPORTER: Final = RocmSmiImporter()

_Told = tuple[int, str, str, str]
"""Line, card, name of the figure and its text."""


def _form_of(source: Source) -> str | None:
    lines = source.head_lines()
    if not lines:
        return None
    if lines[0].lstrip().startswith("{"):
        is_card = re.match(r'\s*\{\s*"card\d+"', "\n".join(lines[:3])) is not None
        return "json" if is_card and _POWER_ANYWHERE.search("\n".join(lines)) else None
    names = split(lines[0], ",")
    if names[0].lower() == "device" and any(_NAME.match(n) for n in names[1:]):
        return "csv"
    return "text" if any(_TEXT.match(line) for line in lines) else None


class _Log:
    def __init__(self, source: Source) -> None:
        self._source = source
        self._once = Once(source)
        self._rows = self._rejected = 0
        self._said: list[Item] = []

    def items(self, told: Iterator[_Told]) -> Iterator[Item]:
        """Yield everything."""
        samples = DeviceSamples(has_times=False)
        channels: dict[str, Channel] = {}
        silent: set[str] = set()
        for line, card, name, cell in told:
            self._rows += 1
            try:
                watts = _watts(cell)
            except ValueError as error:
                self._reject(line, error)
                continue
            if math.isnan(watts) and card not in channels:
                # A card that never tells its power is no part of the sum: a second die.
                silent.add(card)
                text = f"GPU {card} tells no power ({cell}); a first die tells that of both"
                self._once.say("CL253", "warning", text, line, "check that its first die is logged")
                continue
            if card not in channels:
                channels[card] = Channel(
                    name=f"GPU {card}",
                    component="gpu",
                    device=f"card{card}",
                    kind="average" if name.lower().startswith("average") else "instant",
                    method=f"rocm-smi {name}",
                    least_w=LEAST_DEVICE_W,
                )
            samples.add(channels[card], None, watts, line)
            if samples.is_full:
                yield from samples.hand_on()
            yield from self._said
            self._said.clear()
        yield from self._said
        if not samples.is_known:
            raise InputFileError(
                "tells no power of a card", where=self._source.shown, mend="log rocm-smi --showpower"
            )
        yield from samples.hand_on()
        yield from self._once.findings()
        yield Tally(rows=self._rows, rejected=self._rejected)

    def of_text(self) -> Iterator[_Told]:
        """Yield the figures of the text form."""
        for line, text in self._source.lines():
            if told := _TEXT.match(text.strip()):
                yield line, told[1], told[2], told[3].strip()

    def of_csv(self) -> Iterator[_Told]:
        """Yield the figures of the CSV form, whose header comes again at each call."""
        names: list[str] = []
        for line, text in self._source.lines():
            cells = split(text, ",")
            if not text.strip():
                continue
            if cells[0].lower() == "device":
                names = names_of(text, ",")
                continue
            place = next((i for i, n in enumerate(names) if _NAME.match(n)), None)
            card = _CARD.match(cells[0])
            if place is None:
                continue
            if card is None or len(cells) != len(names):
                self._rows += 1
                self._reject(line, ValueError("is no row of a card"))
                continue
            yield line, card[1], names[place], cells[place]

    def of_json(self) -> Iterator[_Told]:
        """Yield the figures of JSON documents that stand one after another."""
        decoder = json.JSONDecoder()
        text, at = self._source.text(), 0
        while at < len(text):
            if text[at].isspace():
                at += 1
                continue
            line = text.count("\n", 0, at) + 1
            try:
                document, at = decoder.raw_decode(text, at)
            except (ValueError, RecursionError):
                self._rows += 1
                self._reject(line, ValueError("begins a document that is cut off or damaged"))
                return
            yield from _cards_of(document, line)

    def _reject(self, line: int, error: ValueError) -> None:
        self._rejected += 1
        text = f"line {line} {error}; it is left out"
        self._said.append(finding("CL202", "error", text, self._source, line=line, mend="mend the line"))


def _cards_of(document: object, line: int) -> Iterator[_Told]:
    if not isinstance(document, Mapping):
        return
    for name, figures in document.items():
        card = _CARD.match(str(name))
        if card is None or not isinstance(figures, Mapping):
            continue
        for key, value in figures.items():
            if _NAME.match(str(key)):
                yield line, card[1], str(key), str(value)
                break


def _watts(cell: str) -> float:
    """Return watts; NaN for a figure that is not there.

    Raises:
        ValueError: If it is no power.
    """
    if cell.lower() in UNKNOWN_WORDS or cell.upper().startswith("N/A"):
        return math.nan
    value = exact(cell)
    if value is None or value < 0:
        raise ValueError(f"has the power {cell!r}, which is none")
    return float(value)
