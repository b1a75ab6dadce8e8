"""Reads a perun HDF5 file into the JSON that perun's other export has; run as a process of its own.

The HDF5 library may end its process on a damaged file, which must not be the one that imports:
``python -m carbonlens.importers.perun_hdf5_tree FILE`` prints the tree, and exits 3 without h5py.
"""

from __future__ import annotations

import json
import sys
from typing import Any, Final

NO_LIBRARY: Final = 3
NO_TREE: Final = 4
_DEEPEST: Final = 12
_MOST_NODES: Final = 200_000
_OWN: Final = frozenset({"type", "device_type"})
_DEVICES: Final = 4
"""Nodes from here on (a host) hold sensors, which the import does not read."""


def main() -> int:
    """Print the tree of the file that is named.

    Returns:
        0, or why not: ``NO_LIBRARY``, ``NO_TREE``.
    """
    try:
        import h5py  # type: ignore[import-untyped]  # it brings no types
    except ImportError:
        return NO_LIBRARY
    try:
        with h5py.File(sys.argv[1], "r") as file:
            roots = [file[name] for name in file]
            if len(roots) != 1 or "type" not in roots[0].attrs:
                sys.stderr.write("has not one root node")
                return NO_TREE
            tree = _node(roots[0], 0, [0])
    except (OSError, KeyError, RuntimeError, ValueError, TypeError, AttributeError) as error:
        sys.stderr.write(str(error)[:200])
        return NO_TREE
    json.dump(tree, sys.stdout, allow_nan=False)
    return 0


def _node(group: Any, depth: int, count: list[int]) -> dict[str, Any]:  # noqa: ANN401  # as above
    count[0] += 1
    if depth > _DEEPEST or count[0] > _MOST_NODES:
        raise ValueError("has more nodes than any run")
    kind = int(group.attrs["type"])
    metrics = {m["type"]: m for g in group["metrics"].values() if (m := _metric(g)) is not None}
    children = (
        {} if kind >= _DEVICES else {name: _node(g, depth + 1, count) for name, g in group["nodes"].items()}
    )
    return {
        "id": group.name.rpartition("/")[2],
        "type": kind,
        "metadata": {name: _plain(v) for name, v in group.attrs.items() if name not in _OWN},
        "metrics": metrics,
        "nodes": children,
    }


def _metric(group: Any) -> dict[str, Any] | None:  # noqa: ANN401  # as above
    """Return a metric; ``None`` for statistics over runs, which are no figure of one."""
    if "value" not in group.attrs:
        return None
    value = float(group.attrs["value"])
    return {
        "type": str(_plain(group.attrs["type"])),
        "value": value if value == value else None,  # noqa: PLR0124  # NaN is the one that is not itself
        "metric_md": {"unit": str(_plain(group.attrs["unit"])), "mag": float(group.attrs["mag"])},
    }


def _plain(value: Any) -> Any:  # noqa: ANN401  # what HDF5 attributes hold
    if isinstance(value, bytes):
        return value.decode(errors="replace")
    if isinstance(value, str):
        return value
    plain = value.item() if hasattr(value, "item") and getattr(value, "size", 1) == 1 else str(value)
    return plain.decode(errors="replace") if isinstance(plain, bytes) else str(plain)


if __name__ == "__main__":
    sys.exit(main())
