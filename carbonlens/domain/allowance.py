"""Allowance: what of a machine the work may use, by its CPU affinity and its control groups."""

from __future__ import annotations

import msgspec


class Allowance(msgspec.Struct, frozen=True, kw_only=True):
    """What the work could use at most when its run began; nothing says that it did.

    Attributes:
        cpus: CPUs, in seconds of CPU time a second: the fewest of those that it may run on
            and of the quotas that hold it, else the machine's. ``None`` where it is not told.
        machine_cpus: Hardware threads of the machine, as far as it can be seen.
        memory_bytes: The lowest of the limits that hold it, else the machine's memory.
            ``None`` where it is not told.
        machine_memory_bytes: Memory of the machine, as far as it can be seen.
    """

    cpus: float | None = None
    machine_cpus: int | None = None
    memory_bytes: int | None = None
    machine_memory_bytes: int | None = None

    @property
    def cpu_limit(self) -> float | None:
        """CPUs that the work may use; ``None`` where that is all of the machine, or not told."""
        if self.cpus is None or (self.machine_cpus is not None and self.cpus >= self.machine_cpus):
            return None
        return self.cpus

    @property
    def memory_limit_bytes(self) -> int | None:
        """Memory that the work may hold; ``None`` where that is all of the machine, or not told."""
        whole = self.machine_memory_bytes
        if self.memory_bytes is None or (whole is not None and self.memory_bytes >= whole):
            return None
        return self.memory_bytes
