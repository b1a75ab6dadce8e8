"""Findings about a tracked session of ONNX Runtime, one function a code."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from carbonlens.domain.counting import counted
from carbonlens.domain.finding import Finding
from carbonlens.reporting.format import apportion

_SMALL_SHARE: Final = 0.01
"""Below this share of kernel time a part on the CPU is no reason to act: providers leave the
arithmetic of shapes to the CPU on purpose."""

_MOST_NAMES: Final = 5

HOST_TIMED: Final = frozenset(
    {
        "CUDAExecutionProvider",
        "TensorrtExecutionProvider",
        "NvTensorRTRTXExecutionProvider",
        "ROCMExecutionProvider",
        "MIGraphXExecutionProvider",
        "DmlExecutionProvider",
        "WebGpuExecutionProvider",
    }
)
"""Providers of GPUs: the host goes on while the device works, and the profile has the host's time."""


def not_registered(asked: Sequence[str], registered: Sequence[str], subject: str) -> Finding:
    """A provider that was asked for is not there, and ONNX Runtime went on without it."""
    return Finding(
        code="CL190",
        severity="warning",
        message=f"{', '.join(asked)} asked for and not available: ONNX Runtime went on with "
        f"{', '.join(registered) or 'none'}",
        mend="install the build of ONNX Runtime that holds it: onnxruntime.get_available_providers() "
        "lists what this one has",
        subject=subject,
    )


def ran_on_cpu(
    share: float | None,
    nodes: tuple[int | None, int | None],
    operators: Sequence[tuple[str, float | None]],
    accelerators: Sequence[str],
    hosts: Sequence[str],
    subject: str,
) -> Finding:
    """A part of a model that was meant for an accelerator ran on the CPU.

    Args:
        share: Of the time of all kernels; ``None`` when too short for the clock.
        nodes: Of the CPU and of all providers; ``None`` where not told.
        operators: Kinds of operators on the CPU with their shares, the longest first.
        accelerators: Providers that it was meant for.
        hosts: Those of them whose time in the profile is the host's.
        subject: The session.
    """
    mine, everybody = nodes
    part = f"{counted(mine, 'node')}" if mine is not None else "nodes"
    of_all = f" of {everybody}" if mine is not None and everybody is not None else ""
    told = "an unknown share" if share is None else _percent(share, 100 * share)
    more = len(operators) - _MOST_NAMES
    rest = f" and {more} more" if more > 0 else ""
    caveat = f"; the time of {', '.join(hosts)} is the host's, its device may take longer" if hosts else ""
    small = share is not None and share < _SMALL_SHARE
    return Finding(
        code="CL191",
        severity="info" if small else "warning",
        message=f"the CPU ran {part}{of_all}, {told} of kernel time, of a model meant for "
        f"{', '.join(accelerators)}: {', '.join(_named(operators))}{rest}{caveat}",
        mend="replace or rewrite these operators by such that the provider supports, "
        "or count with a CPU that is busy too",
        subject=subject,
    )


def profile_incomplete(reason: str, subject: str) -> Finding:
    """A profile is missing, or does not hold all calls."""
    return Finding(
        code="CL192",
        severity="warning",
        message=f"the profile of ONNX Runtime {reason}: which provider ran what is not known in full",
        mend="profile a run of its own, of fewer calls, and close the session before the block ends",
        subject=subject,
    )


def calls_failed(count: int, subject: str) -> Finding:
    """Calls raised: they did no units, and what they used is in the run."""
    return Finding(
        code="CL193",
        severity="warning",
        message=f"{counted(count, 'call')} of the session failed: counted as no units, "
        "their energy is in the run",
        mend="mend the calls, and measure again",
        subject=subject,
    )


def units_not_told(count: int, reason: str, subject: str) -> Finding:
    """Nobody can tell how many units a call was."""
    return Finding(
        code="CL194",
        severity="warning",
        message=f"{counted(count, 'call')} of the session not counted as units ({reason}): "
        "the energy per unit is too high",
        mend="say units= of the session: a number a call, or a function of what the call is given",
        subject=subject,
    )


def never_called(subject: str) -> Finding:
    """A session was opened and not used."""
    return Finding(
        code="CL195",
        severity="warning",
        message="the session was never called: the run holds no inference",
        mend="call the tracked session, not the one inside it",
        subject=subject,
    )


def not_closed(subject: str) -> Finding:
    """A session with a run of its own was left open until the program ended."""
    return Finding(
        code="CL196",
        severity="warning",
        message="the session was not closed: its run holds all that the program did until its end",
        mend="use it in a with block, or call close()",
        subject=subject,
    )


def let_go(subject: str) -> Finding:
    """A session with a run of its own was dropped without ``close``."""
    return Finding(
        code="CL196",
        severity="info",
        message="the session was not closed: its run ended when the program let go of it",
        mend="use it in a with block, or call close()",
        subject=subject,
    )


def profiled(subject: str) -> Finding:
    """A run was profiled, which costs energy that the work alone does not."""
    return Finding(
        code="CL197",
        severity="info",
        message="ONNX Runtime's profile was on: the run holds what writing it costs",
        mend="take the shares from this run, and the energy from one without profile",
        subject=subject,
    )


def providers_changed(before: Sequence[str], after: Sequence[str], subject: str) -> Finding:
    """The session went over to other providers while it was measured."""
    return Finding(
        code="CL199",
        severity="warning",
        message=f"the session changed its providers from {', '.join(before)} to {', '.join(after)} meanwhile",
        mend="mend what made ONNX Runtime give a provider up, or track each set in a run of its own",
        subject=subject,
    )


def _named(operators: Sequence[tuple[str, float | None]]) -> list[str]:
    """Return the first operators with their shares, which add up to that of all of them."""
    shares = [share for _, share in operators if share is not None]
    if len(shares) < len(operators):
        return [name for name, _ in operators[:_MOST_NAMES]]
    printed = apportion([100 * share for share in shares], 0)
    return [
        f"{name} {_percent(share, rounded)}"
        for name, share, rounded in list(zip((n for n, _ in operators), shares, printed, strict=True))[
            :_MOST_NAMES
        ]
    ]


def _percent(share: float, rounded: float) -> str:
    """Return a share as printed; a small one is not made 0."""
    return "under 1 %" if 0 < share < _SMALL_SHARE else f"{rounded:.0f} %"
