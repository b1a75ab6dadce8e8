"""``carbonlens run``: measure a command into the ledger, and recover what was left behind."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal
from pathlib import Path

from carbonlens.domain.finding import Finding
from carbonlens.instrument.command import CommandResult
from carbonlens.instrument.command import run_command as measure_command
from carbonlens.instrument.request import Request, said_of, text_of
from carbonlens.instrument.sources import declared_sources
from carbonlens.ledger.location import locate
from carbonlens.metering import findings
from carbonlens.metering.deposit import fallback_ledger
from carbonlens.metering.notice import tell, tell_fault, tell_misplaced, tell_unmeasured
from carbonlens.metering.recovery import WAIT_S, recover_beside
from carbonlens.metering.trace_target import target_of
from carbonlens.metering.wording import error_text

__all__ = ["CommandResult", "run_command"]


def run_command(  # noqa: PLR0913  # each is an option of the command line
    argv: Sequence[str],
    *,
    step: str | None = None,
    study: str | None = None,
    unit: str | None = None,
    units: Decimal | int | None = None,
    repeat: int | None = None,
    tags: Mapping[str, str] | None = None,
    record_args: bool = False,
    ledger: str | Path | None = None,
    trace: str | Path | None = None,
    live: bool = False,
    may_give_way: bool = False,
    meanwhile: Sequence[str] = (),
) -> CommandResult:
    """Run a command and record it; runs whose process was killed are sealed meanwhile.

    A ledger that cannot be written never stops the command: the run is kept in the
    state folder, and one line on stderr says so at the end.

    Args:
        argv: Program and arguments, run without a shell.
        step: Step of the study that the run measures.
        study: Study the run belongs to.
        unit: Functional unit.
        units: How many units the command does.
        repeat: Number of the round, 0 or more.
        tags: The user's own labels.
        record_args: True to keep the arguments, not only their hash.
        ledger: Folder to record in, else as ``ledger.location.locate`` finds it.
        trace: File that gets every reading when the command has ended; one that cannot
            be written is a finding on the run.
        live: True to show power and energy so far on the terminal that stderr is.
        may_give_way: True where the command may take this process's place if no other can
            be started: it then runs unmeasured, and nothing returns.
        meanwhile: Names of modules that the caller needs afterwards, to be loaded while the command works.

    Raises:
        UsageError: If there is no command.
    """
    fault: str | None = None
    notes: list[Finding] = []
    try:
        place = locate(ledger)
    except Exception as error:  # noqa: BLE001  # law 8: no home of a user, no such folder: the command runs
        fault = error_text(error)
        notes.append(findings.written_elsewhere(fault))
        try:
            place = fallback_ledger()
        except OSError:
            # Nothing here can be written: storing the run will fail, and say so at the end.
            place = Path(".carbonlens")
    sources = declared_sources(notes)
    request = Request(step=step, study=study, unit=unit, trace=trace)
    target = said_of(request, "trace", target_of, notes)
    recovery = recover_beside()
    result = measure_command(
        argv,
        ledger=place,
        step=said_of(request, "step", text_of, notes),
        study=said_of(request, "study", text_of, notes),
        unit=said_of(request, "unit", text_of, notes),
        units=units,
        repeat=repeat,
        tags=tags,
        record_args=record_args,
        sources=sources,
        notes=notes,
        trace=target,
        live=live,
        may_give_way=may_give_way,
        meanwhile=meanwhile,
    )
    if recovery is not None:
        recovery.join(WAIT_S)
    if result.message is not None:
        tell(result.message)
    if result.stored is not None:
        tell_fault(result.stored, place)
        if fault is not None:
            tell_misplaced(fault, result.stored)
    elif result.fault is not None:
        tell_unmeasured(result.fault)
    return result
