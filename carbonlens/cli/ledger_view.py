"""What ``carbonlens ledger`` prints."""

from __future__ import annotations

import os
import sys
import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from carbonlens.cli import output
from carbonlens.domain.counting import counted
from carbonlens.domain.estimate import Estimate
from carbonlens.domain.finding import Finding
from carbonlens.domain.units import State
from carbonlens.errors import UnwritableError
from carbonlens.reporting import format as fmt

if TYPE_CHECKING:
    from carbonlens.app.ledger_care import Exported
    from carbonlens.ledger.closes import Close, ClosedEnergy
    from carbonlens.ledger.compaction import Compaction
    from carbonlens.ledger.redacting import Redaction
    from carbonlens.ledger.verify import Check, Verification

_MOST_FINDINGS = 4
_MOST_LINES = 8
"""Of findings."""

_MOST_MONTHS = 6


def print_compaction(result: Compaction, *, json: bool) -> None:
    """Print what was folded."""
    if json:
        output.print_json({"schema": "carbonlens/ledger-compact/1", **_builtins(result)})
        return
    runs = sum(m.runs for m in result.months)
    size = sum(m.size_bytes for m in result.months)
    if not result.months:
        output.say("Nothing to fold: past months are compact.")
    if result.days:
        output.say(f"Samples of {_count(len(result.days), 'day')} put into one file a day.")
    for month in result.months[-_MOST_MONTHS:]:
        output.say(f"{month.month}  {_count(month.runs, 'run')}, {_count(month.folded, 'file')} folded")
    if runs:
        output.say(f"{_count(runs, 'run')} in {size / 1000:.1f} kB, {size / runs:.0f} bytes a run.")
    if result.left_open:
        output.note(f"left as files, not over yet: {', '.join(result.left_open)}")
    output.print_findings(result.findings)


def print_verification(result: Verification, *, json: bool) -> None:
    """Print each check, and the worst findings."""
    if json:
        checks = [
            {"name": c.name, "holds": c.holds, "state": _state(c), "findings": c.findings}
            for c in result.checks
        ]
        output.print_json(
            {
                "schema": "carbonlens/ledger-verify/1",
                "sound": result.sound,
                "records": result.records,
                "counting": result.counting,
                "unread_files": result.unread_files,
                "checks": checks,
            }
        )
        return
    for check in result.checks:
        count = f" ({_count(len(check.findings), 'finding')})" if check.findings else ""
        output.say(f"{_state(check):<8} {check.holds}{count}")
    verdict = "The ledger is sound" if result.sound else "The ledger does NOT hold what was written"
    corrected = result.records - result.counting
    counting = counted(result.counting, "run counts", "runs count")
    for line in output.wrap(
        f"{verdict}: {counting}, {_count(corrected, 'corrected record')} beside {_them(result.counting)}.",
        output.WIDTH,
    ):
        output.say(line)
    if result.unread_files:
        files = counted(result.unread_files, "Parquet file")
        output.note(f"{files} not checked: pip install 'carbonlens[analysis]'")
    _print_worst(result.findings)


def write_export(result: Exported, file: Path | None) -> None:
    """Write the export to a file or to stdout.

    Raises:
        UnwritableError: If the file cannot be written.
    """
    if file is None:
        sys.stdout.buffer.write(result.content)
        sys.stdout.buffer.flush()
    else:
        from carbonlens.ledger.atomic import write_atomically

        try:
            write_atomically(file, result.content)
        except OSError as error:
            raise UnwritableError(
                f"cannot be written ({error.strerror or error})", where=str(file), mend="give another with -o"
            ) from error
        output.note(f"{_count(result.runs, 'run')} written to {os.fspath(file)}")
    if result.label == "DRAFT":
        output.note("DRAFT: the period is not closed, so its figures may change")
    elif result.label:
        output.note(f"{result.label}: records came or changed after the period was closed")
    output.print_findings(result.findings)


def print_close(result: Close, *, json: bool) -> None:
    """Print what the period was closed with."""
    if json:
        output.print_json({"schema": "carbonlens/ledger-close/1", **_builtins(result)})
        return
    from carbonlens.ledger.calendar import spoken

    output.say_words(
        f"Closed {spoken(result.period)}: {counted(result.counting, 'run counts', 'runs count')}, "
        f"{_count(len(result.runs), 'record')}, {_count(len(result.charges), 'charge')}, "
        f"{_count(len(result.readings), 'meter reading')}."
    )
    output.say_words(_days(result))
    for energy in result.energy:
        at = f"{energy.boundary} boundary" if energy.boundary else "boundary not stated"
        is_whole = energy.boundary not in result.partial
        output.say_words(f"Energy {_energy(energy, is_whole=is_whole)} ({at}).")
    if result.unknown_energy:
        output.say_words(
            f"Of {_count(result.unknown_energy, 'run')} the energy is not known, or in part only."
        )
    if result.adjustments:
        output.say_words(f"{_count(len(result.adjustments), 'prior-period adjustment')} taken up.")
    before = (
        f"{spoken(result.previous)}, manifest {str(result.previous_sha256)[:12]}"
        if result.previous
        else "none before it"
    )
    output.say_words(f"Chained to: {before}.")
    if result.factor_set_sha256:
        output.say(f"Factor set {result.factor_set_sha256[:12]} (carbonlens factors list).")
    if result.inventory:
        output.say(f"Kept {_count(len(result.inventory), 'file')} of the inventory.")


def print_redaction(result: Redaction, *, json: bool) -> None:
    """Print what was taken out, and where copies may still be."""
    if json:
        output.print_json({"schema": "carbonlens/ledger-redact/1", **_builtins(result)})
        return
    what = ", ".join(result.fields)
    output.say_words(f"Taken out: {what} of {_count(len(result.run_ids), 'record')}; a tombstone stays.")
    if result.energy:
        output.say("The run's energy is unknown from now on, and so is every sum it is part of.")
    for file in result.remaining:
        output.note(f"may still hold it: {file}")
    if result.remaining:
        output.note("remove these, or run the same again in an hour where a writer was cut off")
    for file in result.tombstones:
        output.note(f"keeps the reason of an earlier redaction: {file}")
    if result.tombstones:
        output.note("tombstones stay: without them the redacted record is called altered")
    output.note("Copies outside the ledger (backups, exports, reports) still hold it.")


def _days(closed: Close) -> str:
    """Return from which day to which, and of which calendar; a period's name alone does not tell."""
    from carbonlens.domain.units import US_PER_HOUR
    from carbonlens.ledger.calendar import Calendar

    calendar = Calendar(
        reporting_timezone=closed.reporting_timezone or "UTC", fiscal_year_start=closed.fiscal_year_start or 1
    )
    hours = (closed.start_us // US_PER_HOUR, closed.end_us // US_PER_HOUR - 1)
    first, last = (
        f"{row.date // 10000:04}-{row.date // 100 % 100:02}-{row.date % 100:02}"
        for row in calendar.rows_of(hours)
    )
    return f"From {first} to {last} in {calendar.words}."


def _energy(closed: ClosedEnergy, *, is_whole: bool) -> str:
    if closed.energy_j is None:
        return "unknown"
    state: State = "known" if is_whole else "unbounded"
    return fmt.energy(Estimate(value=float(closed.energy_j), unit="J", state=state)).text


def _print_worst(findings: Sequence[Finding]) -> None:
    order = {"error": 0, "warning": 1, "info": 2}
    ranked = sorted(findings, key=lambda f: order[f.severity])
    printed, lines = 0, 0
    for finding in ranked[:_MOST_FINDINGS]:
        place = f"{Path(finding.file).name}: " if finding.file else ""
        mend = f" ({finding.mend})" if finding.mend else ""
        text = output.clean(f"{finding.code} {finding.severity}: {place}{finding.message}{mend}")
        wrapped = textwrap.wrap(text, output.WIDTH, subsequent_indent="  ")
        # Whole or not at all: what is cut off last is the mend.
        if printed and lines + len(wrapped) > _MOST_LINES:
            break
        for line in wrapped:
            output.note(line)
        printed, lines = printed + 1, lines + len(wrapped)
    if len(ranked) > printed:
        output.note(f"... and {len(ranked) - printed} more (--json lists all, with their files)")


def _them(count: int) -> str:
    return "it" if count == 1 else "them"


def _state(check: Check) -> str:
    severities = {f.severity for f in check.findings}
    if "error" in severities:
        return "MISMATCH"
    return "look" if "warning" in severities else "ok"


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def _builtins(record: msgspec.Struct) -> dict[str, object]:
    plain: dict[str, object] = msgspec.to_builtins(record)
    plain.pop("schema_version", None)
    return plain
