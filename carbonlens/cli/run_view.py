"""What ``carbonlens run`` says after the command has ended.

The command's exit code is what counts (DESIGN, law 8): what cannot be printed is
not printed, and the streams are left so that the interpreter's own end cannot fail.
"""

from __future__ import annotations

import sys

from carbonlens.app.command import CommandResult
from carbonlens.cli import output
from carbonlens.domain.run import Run
from carbonlens.reporting import format as fmt

LEFT_OUT = frozenset({"CL114", "CL118", "CL148", "CL155", "CL161"})
"""Codes of findings by which a source is not in the total, or a trace was not written: nobody would
guess it from the figure."""

UNUSED = "CL110"
"""Code of the finding that something that was said of the run could not be used."""

REPLAYED = "CL157"
"""Code of the finding that a run's figures come from a recording."""


def print_result(result: CommandResult, *, json: bool) -> None:
    """Print the run: JSON as a last line on stdout, else a line on stderr, as stdout is the command's.

    Args:
        result: How the command ended; nothing is printed when it was not measured.
        json: True for JSON.
    """
    try:
        if result.run is not None:
            _print(result, result.run, json=json)
    except Exception:  # noqa: BLE001, S110  # law 8: the exit code passes through, printed or not
        pass
    finally:
        _settle()


def _print(result: CommandResult, run: Run, *, json: bool) -> None:
    if json:
        from carbonlens.reporting.run_json import run_json  # 10 ms that the line below does without

        output.print_json_line({"schema": "carbonlens/run/1", "run": run_json(run)})
        return
    total = run.total_energy
    grade = f", grade {total.grade}" if total.grade else ""
    is_played = any(f.code == REPLAYED for f in run.findings)
    if is_played:
        grade = ", played from a recording, not measured"
    is_saved = result.stored is not None and result.stored.ledger is not None
    failed = " as failed" if run.status == "failed" else ""
    end = f"saved run {output.short_id(run.run_id)}{failed}" if is_saved else "the run was not saved"
    said = f"carbonlens: {output.figure(fmt.energy(total), total)}{grade}"
    if is_played:
        output.note(said)
        output.note(f"carbonlens: {end}")
    else:
        output.note(f"{said}; {end}")
    for finding in run.findings:
        if finding.code in LEFT_OUT:
            output.note(f"carbonlens: {finding.message}")
        elif finding.code == UNUSED:
            mend = f" ({finding.mend})" if finding.subject == "tags" else ""
            output.note(f"carbonlens: {finding.message}{mend}")


def _settle() -> None:
    """Write out what is pending; a stream that cannot be written is given up.

    A wrapper that dies by a signal would lose what is pending, and the interpreter
    ends with its own exit code where it cannot be written.
    """
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        try:
            if stream is not None:
                stream.flush()
        except (OSError, ValueError):
            setattr(sys, name, None)
