"""Joulescope's ``.jls`` recordings: signals at up to two million samples a second, read by ``pyjls``.

Power counts where it was recorded, else current times voltage; each device is a supply of its
own. The file maps samples to UTC where the recorder knew it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from carbonlens.errors import InputFileError
from carbonlens.importers.claiming import each
from carbonlens.importers.contract import USUAL, Channel, Chunk, Facts, Group, Item, Kind, Options, Tally
from carbonlens.importers.plain_files import plain_file
from carbonlens.importers.records import finding
from carbonlens.importers.sources import Source

if TYPE_CHECKING:
    from carbonlens.importers.contract import Array

_MAGIC: Final = b"jlsfmt\r\n \n \x1a  \xb2\x1c"
_SIZES: Final = {"power": {"W": 1.0}, "current": {"A": 1.0}, "voltage": {"V": 1.0}}
_AT_ONCE: Final = 1 << 18
"""Samples that are read together."""

_US: Final = 1e6
_EARLIEST_S: Final = 1_514_764_801.0
"""A second after the recorder's own zero (2018), which stands for a time that nobody knew."""

_FIXED_RATE: Final = 0
_HEADER: Final = 32
_END: Final = 0xFF
"""Tag of the chunk that closes a recording; it is a header alone."""


class JoulescopeJlsImporter:
    """Importer of Joulescope's recordings."""

    name = "joulescope-jls"
    version = 1
    kind: Kind = "trace"
    rank = USUAL
    facts = Facts(
        title="Joulescope recordings (.jls, version 2)",
        reads="power, or current and voltage, of each device in the file; needs the extra joulescope",
        units="watts, amperes, volts, as each signal states; samples at a fixed rate, mapped to UTC",
        grade="A: an external meter; its width is not in the file and stays unknown",
        traps=(
            "without pyjls it is refused: pip install 'carbonlens[joulescope]', or export it as CSV",
            "recordings without UTC count from their begin: --start",
            "NaN is a sample that was dropped: uncovered seconds, not 0",
            "charge and energy are not stored in it: power is integrated",
            "a recording that was cut off or damaged fails its checksums and is refused",
        ),
        tested_on=("files written with the maker's own library (pyjls 0.17.0), of samples typed here",),
    )

    def claim(self, sources: Sequence[Source]) -> list[Group]:
        """Return the sources with the format's first bytes."""
        return each(sources, lambda s: s.start.startswith(_MAGIC))

    def read(self, group: Group, options: Options) -> Iterator[Item]:
        """Yield the samples of each device.

        Raises:
            InputFileError: If ``pyjls`` is not installed, or there is no power in it.
        """
        source = group.main
        try:
            import pyjls  # type: ignore[import-untyped]  # it brings no types
        except ImportError as error:
            raise InputFileError(
                "is a .jls recording, and the package pyjls is not installed",
                where=source.shown,
                mend="pip install 'carbonlens[joulescope]', or export the recording as CSV",
            ) from error
        with plain_file(source) as path:
            if not _is_closed(path):
                raise InputFileError(
                    "was not closed: the recording was cut off, or the file is damaged",
                    where=source.shown,
                    mend="copy it again, or open it in the Joulescope application, which repairs it",
                )
            try:
                with pyjls.Reader(str(path)) as reader:
                    yield from _Recording(source, options, pyjls, reader).items()
            # The library raises RuntimeError for what it cannot read, ValueError for damaged texts.
            except (RuntimeError, ValueError, OSError) as error:
                raise InputFileError(
                    f"cannot be read ({str(error)[:120]})",
                    where=source.shown,
                    mend="copy the recording again, or let the application repair and export it",
                ) from error


IMPORTER: Final = JoulescopeJlsImporter()


def _is_closed(path: Path) -> bool:
    """Whether a recording has its whole length and its end, by their own checksums.

    ``pyjls`` repairs a recording that has not, by writing into the file: it must not be opened then.
    """
    size = path.stat().st_size
    if size < 2 * _HEADER:
        return False
    with path.open("rb") as file:
        begin = file.read(_HEADER)
        file.seek(size - _HEADER)
        end = file.read(_HEADER)
    length = int.from_bytes(begin[16:24], "little")
    is_whole = all(_crc32c(h[:-4]) == int.from_bytes(h[-4:], "little") for h in (begin, end))
    return is_whole and length == size and end[16] == _END


def _crc32c(content: bytes) -> int:
    """Return the Castagnoli checksum that the format uses."""
    rest = 0xFFFFFFFF
    for byte in content:
        rest ^= byte
        for _ in range(8):
            rest = (rest >> 1) ^ (0x82F63B78 if rest & 1 else 0)
    return rest ^ 0xFFFFFFFF


class _Recording:
    def __init__(self, source: Source, options: Options, library: Any, reader: Any) -> None:  # noqa: ANN401  # it brings no types
        self._source = source
        self._options = options
        self._library = library
        self._reader = reader
        self._rows = 0

    def items(self) -> Iterator[Item]:
        """Yield channels, samples, Findings and a tally."""
        supplies = self._supplies()
        found = False
        for device, signals in supplies.items():
            if "power" not in signals and not {"current", "voltage"} <= set(signals):
                text = f"{device} has neither power nor both current and voltage: no energy comes of it"
                yield finding("CL269", "info", text, self._source)
                continue
            found = True
            yield from self._device(device, signals, is_one=len(supplies) == 1)
        if not found:
            raise InputFileError(
                "holds no power, and not both current and voltage",
                where=self._source.shown,
                mend="record power, or current and voltage",
            )
        yield Tally(rows=self._rows)

    def _supplies(self) -> dict[str, dict[str, Any]]:
        """Return the signals of each device that tell its power."""
        found: dict[str, dict[str, Any]] = {}
        for signal in self._reader.signals.values():
            if signal.signal_type != _FIXED_RATE or signal.name not in _SIZES or signal.length <= 0:
                continue
            if signal.units not in _SIZES[signal.name]:
                raise InputFileError(
                    f"states {signal.name} in {signal.units!r}",
                    where=self._source.shown,
                    mend="export it as CSV with the unit in its header",
                )
            source = self._reader.sources.get(signal.source_id)
            device = (source.name if source is not None else "") or f"device {signal.source_id}"
            found.setdefault(device, {}).setdefault(signal.name, signal)
        return found

    def _device(self, device: str, signals: Mapping[str, Any], *, is_one: bool) -> Iterator[Item]:
        how = "power" if "power" in signals else "current x voltage"
        channel = Channel(
            name="device" if is_one else device,
            component="total",
            device=device,
            boundary=self._options.boundary or "device",
            grade="A",
            method=f"Joulescope {how}",
            unit="W",
        )
        yield channel
        main = signals["power"] if "power" in signals else signals["current"]
        rate_hz = float(main.sample_rate)
        if not rate_hz > 0:
            raise InputFileError(
                f"states a rate of {rate_hz:g} Hz", where=self._source.shown, mend="export it as CSV"
            )
        length = int(main.length)
        has_utc = self._start_s(main) is not None
        if "power" not in signals:
            voltage = signals["voltage"]
            if voltage.sample_rate != main.sample_rate:
                raise InputFileError(
                    f"has current at {main.sample_rate} Hz and voltage at {voltage.sample_rate} Hz",
                    where=self._source.shown,
                    mend="record power too, or export it as CSV",
                )
            length = min(length, int(voltage.length))
        for first in range(0, length, _AT_ONCE):
            count = min(_AT_ONCE, length - first)
            values = self._samples(main, first, count)
            if "power" not in signals:
                values = values * self._samples(signals["voltage"], first, count)
            t_us = self._times(main, first, count, rate_hz, has_utc=has_utc)
            self._rows += count
            yield Chunk(channel=channel, t_us=t_us, values=values, line=first + 1, relative=not has_utc)

    def _samples(self, signal: Any, first: int, count: int) -> Array:  # noqa: ANN401  # as above
        import numpy as np

        found: Array = np.asarray(self._reader.fsr(signal.signal_id, first, count), dtype=np.float64)
        return found

    def _start_s(self, signal: Any) -> float | None:  # noqa: ANN401  # as above
        """Return the UTC of the first sample; ``None`` where the recorder knew none."""
        if self._reader.time_map_length(signal.signal_id) < 1:
            return None
        told = self._library.jls_to_utc(self._reader.sample_id_to_timestamp(signal.signal_id, 0))
        return float(told) if told >= _EARLIEST_S else None

    def _times(self, signal: Any, first: int, count: int, rate_hz: float, *, has_utc: bool) -> Array:  # noqa: ANN401  # as above
        import numpy as np

        places = np.arange(count, dtype=np.float64)
        if not has_utc:
            made: Array = (places + first) * (_US / rate_hz)
            return made
        # The map may tell that the recorder's clock ran fast or slow: both ends of a block go by it.
        ends = [first, first + count]
        start_s, end_s = (
            float(self._library.jls_to_utc(self._reader.sample_id_to_timestamp(signal.signal_id, at)))
            for at in ends
        )
        at_utc: Array = start_s * _US + places * ((end_s - start_s) * _US / count)
        return at_utc
