"""Findings of measuring, one function a code (CL1xx), so that a code has one meaning."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from carbonlens.domain.counting import counted
from carbonlens.domain.finding import Finding


def accelerator_unmeasured(what: str) -> Finding:
    """An accelerator is there and nothing reads it: the total is a lower bound."""
    return Finding(
        code="CL101",
        severity="warning",
        message=f"{what} present but not measured: its energy is unknown and the total is a lower bound",
        mend="`carbonlens doctor` says why; hide it (CUDA_VISIBLE_DEVICES=) if the work does not use it",
        subject="energy.gpu",
    )


def unknown_cpu_family(name: str | None, factor_95: float) -> Finding:
    """The CPU is not in the table: the average over all servers was used."""
    return Finding(
        code="CL102",
        severity="warning",
        message=(
            f"no power figures for the CPU '{name or 'unknown'}': "
            f"the average over all servers is used, x/: {factor_95:.1f}"
        ),
        mend="state its TDP, or calibrate it: `carbonlens doctor` tells how",
        subject="energy.cpu",
    )


def whole_machine_counter(what: str, component: str = "cpu") -> Finding:
    """A counter of the whole machine also holds other work.

    Args:
        what: The sensor.
        component: Whose energy it tells.
    """
    return Finding(
        code="CL103",
        severity="info",
        message=f"{what} counts the whole machine: other work meanwhile is in the figure",
        mend="keep the machine free of other work, or compare CPU time",
        subject=f"energy.{component}",
    )


def memory_unmeasured() -> Finding:
    """No counter for memory beside the package's: the figure is the package alone."""
    return Finding(
        code="CL104",
        severity="warning",
        message="no sensor tells the energy of the memory: it is not in the figure",
        mend="declare a wall meter for a complete figure (docs/measuring.md)",
        subject="energy.ram",
    )


def reading_incomplete(device: str, covered_s: float, window_s: float) -> Finding:
    """A source gave no valid reading for part of the window."""
    what = "a lower bound" if covered_s > 0 else "unknown"
    return Finding(
        code="CL105",
        severity="warning",
        message=(f"{device} was read over {covered_s:.3g} s of {window_s:.3g} s: its energy is {what}"),
        mend="run the work again while the source can be read (`carbonlens doctor` says why it fails)",
        subject=device,
    )


def recovered(last_sample_s: float) -> Finding:
    """The writer of a journal ended without sealing its run."""
    return Finding(
        code="CL106",
        severity="warning",
        message=(
            f"the process ended without closing the run: it counts up to its last sample "
            f"at {last_sample_s:.3g} s, what came later is not in it, and its energy is a lower bound"
        ),
        mend="run the work again for a complete figure",
    )


def journal_damaged(lines: int) -> Finding:
    """Lines of a journal failed their checksum and were left out."""
    return Finding(
        code="CL107",
        severity="warning",
        message=f"{counted(lines, 'damaged line')} of the journal left out",
        mend="check the disk if it happens again",
    )


def overlapping_windows() -> Finding:
    """Two windows of one process overlapped and neither encloses the other."""
    return Finding(
        code="CL108",
        severity="warning",
        message="another window of this process overlapped: each holds the CPU time of the whole process, "
        "which totals bill once, in equal parts",
        mend="nest the windows, or track the work in processes of their own",
        subject="energy.cpu",
    )


def processes_outlived(count: int) -> Finding:
    """Processes of a command went on after it ended."""
    return Finding(
        code="CL109",
        severity="info",
        message=f"{counted(count, 'process', 'processes')} went on after the command: counted up to its end",
        mend="keep the work in the foreground to count all of it",
    )


def record_ignored(what: str, reason: str) -> Finding:
    """Something the user recorded could not be used; the work was not disturbed."""
    return Finding(
        code="CL110",
        severity="warning",
        message=f"{what} was not recorded: {reason}",
        mend="the documentation of the call says what it takes: help(carbonlens.track)",
        subject=what,
    )


def no_journal(reason: str) -> Finding:
    """There was no journal: a killed process would have lost this run."""
    return Finding(
        code="CL111",
        severity="info",
        message=f"no journal was kept ({reason}): a killed process would have lost this run",
        mend="make the state folder writable (XDG_STATE_HOME)",
    )


def written_elsewhere(reason: str) -> Finding:
    """The ledger could not be written; the run lies in the fallback."""
    return Finding(
        code="CL112",
        severity="warning",
        message=f"the ledger could not be written ({reason}): the run was kept in the state folder",
        mend=(
            "make the ledger writable; kept runs are read with: carbonlens runs "
            "--ledger ~/.local/state/carbonlens/ledger (or ledger below $XDG_STATE_HOME/carbonlens)"
        ),
    )


def sensor_stalled(device: str) -> Finding:
    """A source did not answer in time and was not waited for."""
    return Finding(
        code="CL113",
        severity="warning",
        message=f"{device} did not answer in time and was not waited for",
        mend="run the work again; if it stalls each time, its driver hangs (dmesg may say why)",
        subject=device,
    )


def source_passed_over(name: str, component: str, covered_s: float, window_s: float, used: str) -> Finding:
    """A better source covered too little of the window, and another stands in."""
    covered = f"was read over {covered_s:.3g} s of {window_s:.3g} s" if covered_s > 0 else "gave no reading"
    return Finding(
        code="CL114",
        severity="warning",
        message=f"{name} {covered}: the {component} figure is that of {used} instead",
        mend="run the work again while the source can be read (`carbonlens doctor` says why it fails)",
        subject=f"energy.{component}",
    )


def within_a_step(name: str, component: str, window_s: float, step_s: float, used: str) -> Finding:
    """The work was over before a counter moved, or moved twice: what it gained is of another time."""
    return Finding(
        code="CL114",
        severity="warning",
        message=f"the work took {window_s:.2g} s, less than the {step_s:.2g} s from one step of {name} to "
        f"the next: the {component} figure is that of {used} instead, and its interval is wide",
        mend="repeat the work within one run until it takes 2 s or more",
        subject=f"energy.{component}",
    )


def source_beside(name: str, component: str, used: str) -> Finding:
    """A declared source told of all the window, and another is better evidence."""
    return Finding(
        code="CL119",
        severity="info",
        message=f"{name} was read and is not in the total, it stands beside: "
        f"the {component} figure is that of {used}, which is better evidence",
        mend="`carbonlens doctor` lists the sources and their grades",
        subject=name,
    )


def no_time_used() -> Finding:
    """No CPU time was seen: less than the kernel's clock tells, or nothing ran."""
    return Finding(
        code="CL158",
        severity="warning",
        message="no CPU time was seen in the window: it is less than the clock tells, or nothing ran; "
        "its energy is unknown",
        mend="repeat the work within one window, or see whether it started",
        subject="energy.cpu",
    )


def source_not_understood(name: str, kind: str, unit: str) -> Finding:
    """A sensor's readings are of a kind that this version cannot turn into energy."""
    return Finding(
        code="CL115",
        severity="warning",
        message=f"{name} reads {kind} values in {unit}, which this version cannot turn into energy",
        mend="use the carbonlens that recorded the run",
        subject=name,
    )


def at_another_boundary(component: str, boundary: str) -> Finding:
    """A component is known at a boundary that cannot be added to the others."""
    return Finding(
        code="CL116",
        severity="warning",
        message=f"the {component} figure is of a whole server and cannot be added to those of devices "
        f"(boundary {boundary}): the total is a lower bound",
        mend="run `carbonlens doctor`; a wall meter, RAPL or the CPU's TDP would complete it",
        subject=f"energy.{component}",
    )


def device_shared(device: str, own_share: float) -> Finding:
    """Others used a device in the window; its whole energy is in the figure."""
    return Finding(
        code="CL117",
        severity="warning",
        message=f"other processes did {1 - own_share:.0%} of the work on {device} meanwhile: "
        "its energy is the whole device's",
        mend="keep the device free, or let `carbonlens runs` share it between recorded runs",
        subject=device,
    )


def no_power_figure(component: str) -> Finding:
    """How long a device was busy is known, and no published power to make energy of it."""
    return Finding(
        code="CL142",
        severity="warning",
        message=f"the {component} tells how long it was busy and nothing tells its power: "
        "its energy is unknown and the total is a lower bound",
        mend="declare its power from a datasheet, or a meter (`carbonlens doctor` tells how)",
        subject=f"energy.{component}",
    )


def job_of_one_node(*, is_alone: bool = False) -> Finding:
    """A launcher gave no id: the ranks of each node, or each rank alone, stand as a job of their own.

    Args:
        is_alone: Nothing is known that even the ranks of this node have in common.
    """
    whose = "nodes share: the ranks of each node stand" if not is_alone else "ranks share: each rank stands"
    return Finding(
        code="CL185",
        severity="info",
        message=f"the launcher named no job that its {whose} as a job of their own",
        mend="give one: torchrun --rdzv-id ID, or track(job_id=...)",
        subject="job_id",
    )


def launcher_impossible(variables: Sequence[str]) -> tuple[Finding, ...]:
    """A launcher's numbers cannot be: each is taken for absent.

    Args:
        variables: Names of those that state them.
    """
    return tuple(
        msgspec.structs.replace(
            record_ignored(name, "its value is not possible, and is taken for absent"),
            mend=f"see what sets {name}, or state job_id and attempt yourself",
        )
        for name in variables
    )
