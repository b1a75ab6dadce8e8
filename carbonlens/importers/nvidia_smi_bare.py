"""nvidia-smi --query-gpu with ``noheader``: rows of which nobody says what their columns are.

Where one column alone bears watts (``56.12 W``) it is the power; where none or several do, only
who gave the command knows, and tells it by ``--columns``. No number is taken for watts because
it looks like it: utilisation, temperature and memory are numbers too.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Final

from carbonlens.domain.counting import counted
from carbonlens.errors import InputFileError
from carbonlens.importers import nvidia_smi
from carbonlens.importers.claiming import each
from carbonlens.importers.contract import USUAL, Facts, Group, Item, Kind, Options
from carbonlens.importers.nvidia_smi_columns import BARE_WATTS, STAMP
from carbonlens.importers.nvidia_smi_looks import is_told
from carbonlens.importers.rewritten import Headed
from carbonlens.importers.sources import Source
from carbonlens.importers.tables import split

_STAMP: Final = re.compile(r"^\d{4}/\d\d/\d\d \d\d:\d\d:\d\d\.\d{3}$")
_WATTS: Final = re.compile(r"^\d+\.\d\d W$")
_UUID: Final = re.compile(r"^(?:GPU|MIG)-[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$")
_BUS: Final = re.compile(r"^[0-9A-Fa-f]{8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.\d$")
_OTHERS: Final = re.compile(r"^(?:\d+ (?:MiB|%|MHz)|P\d{1,2}|\[?N/A\]?|\[Not Supported\]|\d+(?:\.\d+)?)$")
_SHOWS_ITSELF: Final = (_STAMP, _WATTS, _UUID, _BUS)
_ALIASES: Final = {"gpu_uuid": "uuid", "gpu_bus_id": "pci.bus_id", "gpu_name": "name"}
_SKIPPED: Final = "-"
_LOOK_AT: Final = 4
_LOOK_AHEAD: Final = 4096


class NvidiaSmiBareImporter:
    """Importer of ``nvidia-smi --query-gpu=... --format=csv,noheader[,nounits]``."""

    name = "nvidia-smi-bare"
    version = 1
    kind: Kind = "trace"
    rank = USUAL
    facts = Facts(
        title="nvidia-smi --query-gpu, CSV without a header",
        reads="rows with a stamp, watts, a UUID or a bus id, with and without units; --columns names them",
        units="W, as the one cell with watts states or --columns says; local time without a zone",
        grade="C: power, integrated",
        traps=(
            "one column of watts is the power; of two (draw and limit) or none (nounits) nobody can tell: "
            "--columns timestamp,index,power.draw, else refused",
            "bare numbers alone (csv,noheader,nounits without a time) show nothing of their tool and "
            "are of no known format",
            "without a UUID or bus id GPUs are told apart by their place in each burst, and that is said",
            "without a timestamp: --interval",
        ),
        tested_on=("samples written after the tool's documentation",),
    )

    def claim(self, sources: Sequence[Source]) -> list[Group]:
        """Return the sources whose first rows are cells of the tool, and one of them shows it."""
        return each(sources, _is_mine)

    def read(self, group: Group, options: Options) -> Iterator[Item]:
        """Yield the samples of each GPU.

        Raises:
            InputFileError: If nobody tells which column is the power.
        """
        yield from nvidia_smi.IMPORTER.read(with_header(group.main, options), options)


IMPORTER: Final = NvidiaSmiBareImporter()


def with_header(source: Source, options: Options) -> Group:
    """Return a log with the header that it lacks: as the user names its columns, else as they show.

    Raises:
        InputFileError: If nobody tells which column is the power.
    """
    names = _named(source, options.columns) if options.columns else _inferred(source)
    return Group((Headed(source, ", ".join(names)),))


def _is_mine(source: Source) -> bool:
    lines = source.first_lines[:_LOOK_AT]
    # The last of a short file may be cut off.
    rows = [split(line, ",") for line in (lines[:-1] if 1 < len(lines) < _LOOK_AT else lines)]
    return bool(rows) and len({len(r) for r in rows}) == 1 and all(map(_is_row, rows))


def _is_row(cells: Sequence[str]) -> bool:
    kinds = [any(p.match(cell) for p in _SHOWS_ITSELF) for cell in cells]
    # A board's name is the one cell that may be any text.
    names = [c for c, k in zip(cells, kinds, strict=True) if not k and not _OTHERS.match(c)]
    return any(kinds) and len(names) <= 1 and all(_is_name(c) for c in names)


def _is_name(cell: str) -> bool:
    return cell.startswith(("NVIDIA", "Tesla", "GeForce", "Quadro", "A100", "H100", "GRID"))


def _rows(source: Source) -> list[list[str]]:
    said = len(source.repairs)
    rows = [split(t, ",") for _, t in islice(source.lines(), _LOOK_AHEAD) if t.strip()]
    del source.repairs[said:]  # what had to be repaired is said by the reading that counts
    usual = len(rows[0]) if rows else 0
    return [row for row in rows if len(row) == usual]


def _named(source: Source, columns: Sequence[str]) -> list[str]:
    """Return the names that the user gives, each of its own; one that is left out is none of the tool's."""
    width = len(split(source.first_lines[0], ","))
    if len(columns) != width:
        raise InputFileError(
            f"has {counted(width, 'column')}, and --columns names {len(columns)}",
            where=source.shown,
            mend="name each in the order of the command; - for one that is not to be read",
        )
    return [f"column {i}" if c == _SKIPPED else _ALIASES.get(c, c) for i, c in enumerate(columns)]


def _inferred(source: Source) -> list[str]:
    """Return the names of columns whose cells show what they are.

    Raises:
        InputFileError: If not one of them alone bears watts.
    """
    rows = _rows(source)
    every = [_kind_of([row[i] for row in rows]) for i in range(len(rows[0]) if rows else 0)]
    count = every.count("power.draw")
    if count != 1:
        why = (
            "no column bears a unit of power"
            if not count
            else f"{counted(count, 'column')} bear watts, of draw, limit or the like"
        )
        raise InputFileError(
            f"has no header, and {why}: which is the power is not told",
            where=source.shown,
            mend="name the columns: --columns timestamp,index,power.draw",
        )
    names: dict[str, int] = {}
    for place, kind in enumerate(every):
        if kind is not None:
            names.setdefault(kind, place)
    of_place: Mapping[int, str] = {place: name for name, place in names.items()}
    return [of_place.get(i, f"column {i}") for i in range(len(every))]


def _kind_of(cells: Sequence[str]) -> str | None:
    told = [c for c in cells if is_told(c)]
    if not told:
        return None
    for name, pattern in (("timestamp", STAMP), ("uuid", _UUID), ("pci.bus_id", _BUS)):
        if _are_mostly(pattern, told):
            return name
    return "power.draw" if _are_mostly(BARE_WATTS, told) else None


def _are_mostly(pattern: re.Pattern[str], cells: Sequence[str]) -> bool:
    """Whether cells are of a kind: a line of another one among them changes nothing of their column."""
    return sum(bool(pattern.match(cell)) for cell in cells) > len(cells) / 2
