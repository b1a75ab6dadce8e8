"""amd-smi monitor as it prints: columns parted by blanks, units behind the numbers.

``POWER`` is watts, as its cells say; ``TIMESTAMP``, seconds since 1970, is there where it
watches (``-w``). The same command's CSV is read by ``amd_smi``, and so are these rows.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

from carbonlens.importers import amd_smi
from carbonlens.importers.claiming import each
from carbonlens.importers.contract import USUAL, Facts, Group, Item, Kind, Options
from carbonlens.importers.rewritten import Rewritten
from carbonlens.importers.sources import Source
from carbonlens.importers.tables import other_header

_HEADER: Final = re.compile(r"^\s*(?:TIMESTAMP\s+)?GPU\s+(?:XCP\s+)?POWER(?:\s+[A-Z][A-Z0-9_%]*)*\s*$")
_CELL: Final = re.compile(r"(?:N/A|-?\d+(?:\.\d+)?(?:/-?\d+(?:\.\d+)?)?)(?: (?!N/A)[^\d\s-]\S*)?")
_OTHER_TABLE: Final = re.compile(r"^\s*(?:PROCESS INFO:|(?:TIMESTAMP\s+)?GPU\s+NAME\b)")
_NAMES: Final = {"TIMESTAMP": "timestamp", "GPU": "gpu", "XCP": "xcp", "POWER": "power_usage"}
_SECONDS: Final = re.compile(r"\d{9,10}", re.ASCII)
_SOME_SECOND: Final = "1000000000"
"""Times are whole seconds since 1970; what is none makes a row torn, as no other unit is printed."""

_LOOK_AT: Final = 3
"""Lines in which the header stands, where a banner is before it."""


class AmdSmiTableImporter:
    """Importer of what ``amd-smi monitor`` prints."""

    name = "amd-smi-table"
    version = 1
    kind: Kind = "trace"
    rank = USUAL
    facts = Facts(
        title="amd-smi monitor, as printed",
        reads="any set of columns with POWER, with and without TIMESTAMP (-w) and XCP",
        units="W, as each cell states; seconds since 1970",
        grade="C: power, integrated",
        traps=(
            "a wide number leaves one blank between columns: cells are told by their form, not by blanks",
            "headers repeat within the output, and a table of processes (-q) may follow: no rows of either",
            "N/A is a failed reading, never 0",
            "without -w no time is printed: --interval",
            "rows of further partitions (XCP) of a GPU repeat it: only the first counts",
        ),
        tested_on=("samples written after the tool's release notes and source code",),
    )

    def claim(self, sources: Sequence[Source]) -> list[Group]:
        """Return the sources that begin with the table's header."""
        return each(sources, lambda s: any(_HEADER.match(t) for t in s.first_lines[:_LOOK_AT]))

    def read(self, group: Group, options: Options) -> Iterator[Item]:
        """Yield the samples of each GPU.

        Raises:
            InputFileError: If no row tells a power.
        """
        source = group.main
        header = next(t for t in source.first_lines if _HEADER.match(t)).split()
        told = [name for name in header if name in _NAMES]
        names = ",".join(_NAMES[name] for name in told)
        table = Rewritten(source, names, lambda: _rows(source, header, told))
        yield from amd_smi.IMPORTER.read(Group((table,)), options)


IMPORTER: Final = AmdSmiTableImporter()


def _rows(source: Source, header: Sequence[str], told: Sequence[str]) -> Iterator[tuple[int, str]]:
    """Yield each row as cells of the columns that are read; one that is torn as it stands.

    Raises:
        InputFileError: If another header follows.
    """
    is_other = False
    for line, text in source.lines():
        if _HEADER.match(text):
            # One that begins alike was cut off where its log ended.
            if not " ".join(header).startswith(" ".join(text.split())):
                raise other_header(source.shown, line)
            is_other = False
            continue
        is_other = is_other or _OTHER_TABLE.match(text) is not None
        if is_other or not text.strip():
            continue
        cells = _CELL.findall(text)
        if len(cells) != len(header) or _CELL.sub("", text).strip():
            yield line, text.strip()
            continue
        row = dict(zip(header, cells, strict=True))
        is_time = _SECONDS.fullmatch(row.get("TIMESTAMP", _SOME_SECOND)) is not None
        yield line, ",".join(row[name] for name in told) if is_time else text.strip()
