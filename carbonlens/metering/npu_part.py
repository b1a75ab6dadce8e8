"""What an NPU's figure covers of work that a CPU did a part of.

A reading of time in use is of the NPU's own jobs, and a meter's is of its own rail: neither
holds a part that ran on the CPU, whose energy is the CPU's reading. The power of a datasheet
stands for the whole window, so that it goes on while the CPU works.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from carbonlens.domain.execution import ProviderTime
from carbonlens.domain.finding import Finding
from carbonlens.domain.run import Reading

_ON_CPU = "CPUExecutionProvider"


def npu_over_cpu_part(readings: Iterable[Reading], execution: Sequence[ProviderTime]) -> list[Finding]:
    """Return a finding where the datasheet power of an NPU stands for a part that the CPU ran.

    Args:
        readings: The energy of a run.
        execution: What each provider of its runtime did.
    """
    constant = any(r.component == "npu" and r.grade == "E" and r.energy_j for r in readings)
    cpu = next((time for time in execution if time.provider == _ON_CPU), None)
    if not constant or cpu is None or cpu.share == 0:
        return []
    part = (
        "a part that is not known (no profile)"
        if cpu.share is None
        else f"{max(100 * cpu.share, 0.1):.3g} % of kernel time"
    )
    return [
        Finding(
            code="CL198",
            severity="warning",
            message=f"the NPU's figure is its datasheet power over the whole window, and the CPU ran {part}: "
            "of that part the figure is not, so that it is too high; the CPU's own energy is a reading apart",
            mend="declare the NPU as one whose time in use is read (intel_npu), or a meter of its rail",
            subject="energy.npu",
        )
    ]
