"""A powercap tree as the kernel lays it out, with counters the test turns."""

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


def turn(counter: Path, uj: int) -> None:
    """Set a counter, in place as sysfs files change."""
    with counter.open("r+") as stream:
        stream.truncate(0)
        stream.write(f"{uj}\n")
