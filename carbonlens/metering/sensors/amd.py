"""AMD GPUs: energy counter (grade B) and socket power (grade C) of each card.

The counter of an MI100 stands still or counts some hundredths of what the card draws
(ROCm/amdsmi issues 22 and 38), and is right on MI200 and later: it is checked against
power when probed, and refused where the two are apart. Of the two power fields a product
answers one (an MI300X has no average, an MI210 no current power). Tested on a fake
library made after recorded answers, not on a GPU.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

from carbonlens.domain.grades import COUNTER_GAIN_95
from carbonlens.domain.units import Z_95
from carbonlens.metering.sensors import Channel, Kind, Probe, SensorInfo
from carbonlens.metering.sensors.amd_library import FIELDS, Amd, AmdError, Card, cards

CHECK_S: Final = 0.5
"""The longest that a counter is watched for; a good one is told apart within some ticks."""

PLAUSIBLE: Final = 5.0
"""Counter and power may be this many times apart over so short a time; an MI100's are 300."""

_STEP_S: Final = 0.01
_TICKS: Final = 3
_DEFAULT_PERIOD_S: Final = 0.1
_GAIN_SIGMA: Final = COUNTER_GAIN_95 / Z_95
_AVERAGE: Final = "average_socket_power"
_TESTED: Final = "tested on recordings"


class _AmdSensor:
    """What both sensors have in common: the cards.

    Args:
        library: An object with the functions of the module ``amdsmi``; that module by
            default, imported at the first question.
        environ: The work's environment; this process's by default.
        root: The file system, to tell a missing library from a missing GPU.
    """

    may_block = True
    rest_s = 0.0

    def __init__(
        self,
        library: Any = None,  # noqa: ANN401  # a module without types, or a fake of it
        environ: Mapping[str, str] | None = None,
        *,
        root: Path = Path("/"),
    ) -> None:
        """Prepare; the library is loaded by the probe or the first read."""
        self._amd = Amd(library)
        self._environ = os.environ if environ is None else environ
        self._root = root
        self._cards: list[Card] | None = None
        self._rated_w: list[float | None] = []

    def close(self) -> None:
        """Nothing is given back: the work may use the library too."""

    def _known(self) -> list[Card]:
        """Return the cards; they are listed once.

        Raises:
            AmdError: If there is no library or no driver.
        """
        if self._cards is None:
            found = cards(self._amd, self._environ)
            self._rated_w = [self._amd.rated_w(card.gpu) for card in found]
            self._cards = found
        return self._cards

    def _channels(self) -> tuple[Channel, ...]:
        pairs = zip(self._cards or (), self._rated_w, strict=True)
        return tuple(Channel(device=c.gpu.uuid, component="gpu", rated_w=w) for c, w in pairs)

    def _names(self) -> str:
        dies = {1: "", 2: " (two dies, one reading)"}
        return ", ".join(f"{c.gpu.name}{dies.get(c.dies, '')}" for c in self._known())

    def _absent(self) -> Probe | None:
        """Return why there is no card to read; ``None`` when there is one."""
        try:
            if self._known():
                return None
        except AmdError as fault:
            present = (self._root / "dev" / "kfd").exists()
            return Probe(
                usable=False,
                found="an AMD GPU (/dev/kfd)" if present else "no AMD GPU",
                reason=str(fault),
                mend="install the Python package amdsmi of the installed ROCm" if present else None,
            )
        return Probe(
            usable=False, found="no AMD GPU that the work may use", reason="none, or none is visible"
        )


class _Watch:
    """A card's counter beside its power, over some ticks."""

    def __init__(self, card: Card) -> None:
        self.card = card
        self.fault: str | None = None
        self._watts: list[float] = []
        self._ticks: list[tuple[float, float]] = []
        self._last_j: float | None = None

    @property
    def done(self) -> bool:
        """Whether more looks would tell nothing new."""
        return self.fault is not None or len(self._ticks) > _TICKS

    @property
    def period_s(self) -> float:
        """Seconds from tick to tick."""
        return (self._ticks[-1][0] - self._ticks[0][0]) / (len(self._ticks) - 1)

    def look(self, amd: Amd, clock: Callable[[], float]) -> None:
        """Read counter and power once."""
        joules = amd.energy_j(self.card.gpu)
        if joules is None:
            self.fault = self.fault or "it has no energy counter"
            return
        if self._last_j is not None and joules < self._last_j:
            self.fault = "its energy counter runs backwards"
        if self._last_j is not None and joules > self._last_j:
            self._ticks.append((clock(), joules))
        self._last_j = joules
        self._watts += [w for f in FIELDS if (w := amd.power_w(self.card.gpu, f)) is not None]

    def doubt(self) -> str | None:
        """Return why the counter must not be believed; ``None`` when it may be."""
        if self.fault is not None:
            return self.fault
        if not self._watts:
            return "no power to check its energy counter against"
        span_s = self._ticks[-1][0] - self._ticks[0][0] if self._ticks else 0.0
        if not span_s > 0:
            return "its energy counter stands still"
        counted_w = (self._ticks[-1][1] - self._ticks[0][1]) / span_s
        mean_w = sum(self._watts) / len(self._watts)
        if not mean_w / PLAUSIBLE <= counted_w <= mean_w * PLAUSIBLE:
            return (
                f"its energy counter tells {counted_w:.3g} W and its power {mean_w:.3g} W (amdsmi issue 38)"
            )
        return None


class AmdEnergySensor(_AmdSensor):
    """Reads the energy counter of each card.

    Args:
        library: An object with the functions of the module ``amdsmi``.
        environ: The work's environment; this process's by default.
        root: The file system.
        clock: Seconds of a steady clock.
        wait: Waits for some seconds.
    """

    def __init__(
        self,
        library: Any = None,  # noqa: ANN401  # a module without types, or a fake of it
        environ: Mapping[str, str] | None = None,
        *,
        root: Path = Path("/"),
        clock: Callable[[], float] = time.monotonic,
        wait: Callable[[float], None] = time.sleep,
    ) -> None:
        """Prepare; the library is loaded by the probe or the first read."""
        super().__init__(library, environ, root=root)
        self._clock = clock
        self._wait = wait
        self._period_s = _DEFAULT_PERIOD_S

    @property
    def info(self) -> SensorInfo:
        """Describe the readings."""
        return SensorInfo(
            name="amd_energy",
            kind="cumulative",
            unit="J",
            scope="board",
            boundary="device",
            grade="B",
            update_period_s=self._period_s,
            channels=self._channels(),
            method=f"energy counter of the AMD GPU (amdsmi); sensor {_TESTED}",
            gain_sigma=_GAIN_SIGMA,
        )

    def probe(self) -> Probe:
        """Watch each counter beside power, for at most half a second."""
        absent = self._absent()
        if absent is not None:
            return absent
        found = self._names()
        watches = [_Watch(card) for card in self._known()]
        begin_s = self._clock()
        while not all(w.done for w in watches) and self._clock() - begin_s <= CHECK_S:
            for watch in watches:
                watch.look(self._amd, self._clock)
            self._wait(_STEP_S)
        for watch in watches:
            doubt = watch.doubt()
            if doubt is not None:
                return Probe(
                    usable=False,
                    found=found,
                    reason=f"{watch.card.gpu.name}: {doubt}",
                    mend="power is integrated instead; a restart of the machine may mend the counter",
                )
        self._period_s = max(_STEP_S, *(watch.period_s for watch in watches))
        return Probe(usable=True, found=f"{found}; {_TESTED}")

    def read(self, *, edge: bool) -> tuple[float | None, ...]:
        """Return joules a card; ``None`` for one that tells none now.

        Raises:
            OSError: If no card tells any.
        """
        del edge
        values = tuple(self._amd.energy_j(card.gpu) for card in self._known())
        if not values or all(v is None for v in values):
            raise AmdError("no energy counter of an AMD GPU could be read")
        return values


class AmdPowerSensor(_AmdSensor):
    """Reads the socket power of each card, by the field that answers.

    Args:
        library: An object with the functions of the module ``amdsmi``.
        environ: The work's environment; this process's by default.
        root: The file system.
    """

    _field = FIELDS[0]

    @property
    def info(self) -> SensorInfo:
        """Describe the readings; their kind is that of the field."""
        kind: Kind = "average" if self._field == _AVERAGE else "instant"
        return SensorInfo(
            name="amd_power",
            kind=kind,
            unit="W",
            scope="board",
            boundary="device",
            grade="C",
            update_period_s=_DEFAULT_PERIOD_S,
            channels=self._channels(),
            method=f"socket power of the AMD GPU ({self._field}), integrated; sensor {_TESTED}",
            gain_sigma=_GAIN_SIGMA,
        )

    def probe(self) -> Probe:
        """Ask each card for both fields; one that answers on most cards is read."""
        absent = self._absent()
        if absent is not None:
            return absent
        found = self._names()
        known = self._known()
        answers = {f: [c for c in known if self._amd.power_w(c.gpu, f) is not None] for f in FIELDS}
        self._field = max(FIELDS, key=lambda f: len(answers[f]))
        silent = [c.gpu.name for c in known if c not in answers[self._field]]
        if len(silent) == len(known):
            return Probe(usable=False, found=found, reason="neither power field answers (N/A or 0)")
        if silent:
            found += f"; no {self._field} from {', '.join(silent)}"
        return Probe(usable=True, found=f"{found}; {self._field}; {_TESTED}")

    def read(self, *, edge: bool) -> tuple[float | None, ...]:
        """Return watts a card; ``None`` for one that tells none now.

        Raises:
            OSError: If no card tells any.
        """
        del edge
        values = tuple(self._amd.power_w(card.gpu, self._field) for card in self._known())
        if not values or all(v is None for v in values):
            raise AmdError("no power of an AMD GPU could be read")
        return values
