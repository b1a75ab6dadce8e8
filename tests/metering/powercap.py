"""A powercap tree as the kernel lays it out, with counters the test turns."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

RANGE_UJ = 262_143_328_850


class Powercap:
    """Zones by path, for example ``intel-rapl:0`` and ``intel-rapl:0:0``."""

    def __init__(self, root: Path) -> None:
        self.root = root
        root.mkdir()
        (root / "intel-rapl").mkdir()

    def zone(self, folder: str, name: str, uj: int = 0, max_range_uj: int | None = RANGE_UJ) -> Path:
        """Add a zone and return its counter file."""
        path = self.root / folder
        path.mkdir()
        (path / "name").write_text(name + "\n")
        if max_range_uj is not None:
            (path / "max_energy_range_uj").write_text(f"{max_range_uj}\n")
        counter = path / "energy_uj"
        counter.write_text(f"{uj}\n")
        return counter


@contextmanager
def turning(*counters: Path, uj: int = 1000) -> Iterator[None]:
    """Let counters go on all the time, as those of a machine do."""
    done = threading.Event()
    told = dict.fromkeys(counters, 0)

    def turn_all() -> None:
        while not done.wait(0.005):
            for counter in counters:
                told[counter] += uj
                # In one write: whoever reads meanwhile must not find nothing.
                with counter.open("r+") as stream:
                    stream.write(f"{10**9 + told[counter]}\n")

    beside = threading.Thread(target=turn_all, daemon=True)
    beside.start()
    try:
        yield
    finally:
        done.set()
        beside.join()


def turn(counter: Path, uj: int) -> None:
    """Set a counter, in place as sysfs files change."""
    with counter.open("r+") as stream:
        stream.truncate(0)
        stream.write(f"{uj}\n")
