"""Android's on-device power rails (ODPM) as Perfetto names them: what each is of, and which count.

Each rail is a counter of microwatt-seconds since boot. The rails that a device logs are not its
whole: a chip's meter has a few channels. Some bucks feed the low-dropout regulators that have
rails of their own, so those stand beside where their feeding buck is logged.
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Iterator
from typing import Final

import msgspec

from carbonlens.domain.counting import counted
from carbonlens.importers.contract import Channel, Chunk, Item
from carbonlens.importers.records import finding
from carbonlens.importers.sources import Source

J_PER_UWS: Final = 1e-6
_PREFIX: Final = "power."
_FRIENDLY: Final = "power.rails."
_UNIT: Final = "_uws"
_COMPONENTS: Final = (
    ("cpu", re.compile(r"^cpu\.|CPU", re.ASCII)),
    ("gpu", re.compile(r"^gpu$|G3D|GPU", re.ASCII)),
    ("npu", re.compile(r"^tpu$|TPU", re.ASCII)),
    ("ram", re.compile(r"^ddr\.|^memory\.interface$|_MEM\b|VDD2|VDDQ|_MIF\b", re.ASCII)),
)
_LOW_DROPOUT: Final = re.compile(r"^L\d+[A-Z]_", re.ASCII)
_FEEDS_THEM: Final = re.compile(r"^ldo\.|_[LM]LDO\d*$", re.ASCII)
_FRIENDLY_LOW_DROPOUT: Final = frozenset({"ddr.c", "gps"})
"""``power.rails.ddr.c`` is L21S_VDD2L_MEM and ``power.rails.gps`` L9S_GNSS_CORE where raw names are told."""


class Rail(msgspec.Struct, frozen=True):
    """A rail: the name that it is known by, and the maker's own where that is told."""

    name: str
    raw: str | None = None

    @property
    def is_low_dropout(self) -> bool:
        """Whether it is the output of a low-dropout regulator, which a buck feeds."""
        return bool(_LOW_DROPOUT.match(self.raw or self.name)) or self.name in _FRIENDLY_LOW_DROPOUT

    @property
    def feeds_low_dropouts(self) -> bool:
        """Whether it is a buck that feeds such regulators."""
        return any(_FEEDS_THEM.search(name) for name in (self.name, self.raw or ""))

    @property
    def component(self) -> str:
        """What it is of; ``other`` where the name does not tell."""
        for component, pattern in _COMPONENTS:
            if pattern.search(self.name) or pattern.search(self.raw or ""):
                return component
        return "other"


def rail_of(track: str, raw: str | None = None) -> Rail | None:
    """Return the rail that a counter track is of; ``None`` for other tracks, and for unknown units.

    ``power.rails.NAME`` and ``power.NAME_uws`` are in microwatt-seconds.
    """
    if track.startswith(_FRIENDLY):
        return Rail(track.removeprefix(_FRIENDLY), raw)
    if track.startswith(_PREFIX) and track.endswith(_UNIT):
        return Rail(track.removeprefix(_PREFIX).removesuffix(_UNIT), raw)
    return None


class RailSamples:
    """Gathers the counters of rails, and says what they are not.

    Args:
        source: For Findings.
        relative: Whether times count from the device's boot, of which nobody knows when it was.
    """

    def __init__(self, source: Source, *, relative: bool) -> None:
        """Start without a rail."""
        self._source = source
        self._samples: dict[Rail, tuple[array[float], array[float]]] = {}
        self._relative = relative
        self.count = 0

    def add(self, rail: Rail, t_us: float, uws: float) -> None:
        """Take one reading of a rail, in microwatt-seconds."""
        times, joules = self._samples.setdefault(rail, (array("d"), array("d")))
        times.append(t_us)
        joules.append(uws * J_PER_UWS)
        self.count += 1

    def items(self) -> Iterator[Item]:
        """Yield all rails; which of them count is known once all of them are."""
        import numpy as np

        has_feeder = any(rail.feeds_low_dropouts for rail in self._samples)
        aside = [r.name for r in self._samples if has_feeder and r.is_low_dropout]
        for rail, (times, joules) in self._samples.items():
            channel = Channel(
                name=rail.name,
                component=rail.component,
                device=rail.raw or rail.name,
                kind="counter",
                counted=rail.name not in aside,
                method="Perfetto ODPM rail, energy since boot",
                unit="uJ",
            )
            yield channel
            yield Chunk(
                channel=channel,
                t_us=np.array(times, dtype=np.float64),
                values=np.array(joules, dtype=np.float64),
                relative=self._relative,
            )
        if aside:
            text = f"{', '.join(aside)}: fed by a rail that counts already, so not added"
            yield finding("CL269", "info", text, self._source)
        rails = counted(len(self._samples) - len(aside), "rail")
        text = f"the energy is that of {rails} of the chip's power meter, not of the whole device"
        yield finding("CL267", "info", text, self._source, mend="log at the battery, or by a meter")
