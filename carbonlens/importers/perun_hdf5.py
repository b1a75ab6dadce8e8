"""perun's HDF5 export, the format it keeps by default: the same tree as its JSON, read by ``h5py``."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator, Sequence
from typing import Final

import msgspec

from carbonlens.errors import InputFileError
from carbonlens.importers import perun
from carbonlens.importers.claiming import each
from carbonlens.importers.contract import USUAL, Facts, Group, Item, Kind, Options, RunRecord
from carbonlens.importers.perun_hdf5_tree import NO_LIBRARY, NO_TREE
from carbonlens.importers.plain_files import plain_file
from carbonlens.importers.records import origin_of
from carbonlens.importers.rewritten import Rewritten
from carbonlens.importers.sources import Source

_MAGIC: Final = b"\x89HDF\r\n\x1a\n"
_NODES: Final = (b"metrics", b"nodes", b"type")
_LONGEST_S: Final = 600
_MEND: Final = "export it as JSON: perun export FILE ID json"


class PerunHdf5Importer:
    """Importer of perun's HDF5 files."""

    name = "perun-hdf5"
    version = 1
    kind: Kind = "runs"
    rank = USUAL
    facts = Facts(
        title="perun HDF5",
        reads="trees of an application, as perun keeps them (perun_results/*.hdf5); needs the extra perun",
        units="joules, seconds, grams, each with a magnitude beside it",
        grade="CPU and memory B (RAPL), GPU C (polled power)",
        traps=(
            "without h5py it is refused: pip install 'carbonlens[perun]', or export it as JSON",
            "a damaged file can end the process that reads it: another one does, and the file is refused",
            "raw readings of sensors are not read: perun's CSV export has them",
            "all traps of perun's JSON: overhead and PUE, means over runs, local times",
        ),
        tested_on=(
            "files written as perun 1.0.0 writes them, of trees typed here; "
            "one that perun 0.9.1 made on a machine without sensors",
        ),
    )

    def claim(self, sources: Sequence[Source]) -> list[Group]:
        """Return HDF5 files that name what a perun node holds in their first bytes."""
        return each(sources, _is_mine)

    def read(self, group: Group, options: Options) -> Iterator[Item]:
        """Yield the runs of the tree.

        Raises:
            InputFileError: If ``h5py`` is not installed, or the file is damaged or no tree of perun.
        """
        origin = origin_of(IMPORTER, group.main)
        for item in perun.IMPORTER.read(Group((_Tree(group.main),)), options):
            if isinstance(item, RunRecord):
                run = msgspec.structs.replace(item.run, origin=origin)
                yield msgspec.structs.replace(item, run=run)
            else:
                yield item


IMPORTER: Final = PerunHdf5Importer()


def _is_mine(source: Source) -> bool:
    return source.start.startswith(_MAGIC) and all(name in source.head() for name in _NODES)


class _Tree(Rewritten):
    """An HDF5 source whose text is the tree as JSON."""

    def __init__(self, source: Source) -> None:
        super().__init__(source, "", lambda: iter(()))
        self._hdf5 = source

    def text(self) -> str:
        """Return the tree as JSON, read by a process of its own.

        Raises:
            InputFileError: If it cannot be read.
        """
        with plain_file(self._hdf5) as path:
            command = [sys.executable, "-m", "carbonlens.importers.perun_hdf5_tree", str(path.resolve())]
            try:
                done = subprocess.run(command, capture_output=True, timeout=_LONGEST_S, check=False)
            except (OSError, subprocess.TimeoutExpired) as error:
                raise self._refused(f"cannot be read ({error})") from error
        if done.returncode == NO_LIBRARY:
            raise InputFileError(
                "is an HDF5 file, and the package h5py is not installed",
                where=self.shown,
                mend=f"pip install 'carbonlens[perun]', or {_MEND}",
            )
        if done.returncode == NO_TREE:
            raise self._refused(f"is no whole tree of perun ({done.stderr.decode(errors='replace')[:120]})")
        if done.returncode:
            raise self._refused("is damaged: the HDF5 library gave up on it")
        return done.stdout.decode(errors="replace")

    def _refused(self, what: str) -> InputFileError:
        return InputFileError(what, where=self.shown, mend=f"copy it again, or {_MEND}")
