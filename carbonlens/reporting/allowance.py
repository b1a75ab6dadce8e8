"""What the work may use of its machine, in words and as JSON."""

from __future__ import annotations

from carbonlens.domain.allowance import Allowance
from carbonlens.domain.counting import counted
from carbonlens.domain.estimate import Estimate
from carbonlens.reporting import format as fmt


def cpu_words(allowed: Allowance) -> str | None:
    """Return ``1.5 of 8 CPUs``; ``None`` where the work may use all, or nothing is known."""
    whole = None if allowed.machine_cpus is None else counted(allowed.machine_cpus, "CPU")
    if allowed.cpus is None:
        return None if whole is None else f"an unknown part of {whole}"
    if allowed.cpu_limit is None:
        return None
    return f"{allowed.cpu_limit:.3g} CPUs" if whole is None else f"{allowed.cpu_limit:.3g} of {whole}"


def memory_words(allowed: Allowance) -> str | None:
    """Return ``4 GB of 16 GB of memory``; ``None`` where the work may hold all, or nothing is known."""
    whole = None if allowed.machine_memory_bytes is None else _size(allowed.machine_memory_bytes)
    if allowed.memory_bytes is None:
        return None if whole is None else f"an unknown part of {whole} of memory"
    if allowed.memory_limit_bytes is None:
        return None
    limit = _size(allowed.memory_limit_bytes)
    return f"{limit} of memory" if whole is None else f"{limit} of {whole} of memory"


def allowance_json(allowed: Allowance) -> dict[str, object]:
    """Return it for scripts: what may be used, the machine's own, and the limits.

    A limit is ``null`` where the work may use all of the machine, or where nobody tells.
    """
    return {
        "cpus": allowed.cpus,
        "machine_cpus": allowed.machine_cpus,
        "cpu_limit": allowed.cpu_limit,
        "memory_bytes": allowed.memory_bytes,
        "machine_memory_bytes": allowed.machine_memory_bytes,
        "memory_limit_bytes": allowed.memory_limit_bytes,
    }


def _size(size: int) -> str:
    text = fmt.size(Estimate(value=size, unit="B")).text
    return " ".join(text.split())  # plain spaces: scripts read these words too
