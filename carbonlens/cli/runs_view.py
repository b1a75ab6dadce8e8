"""How runs are printed: JSON, a list, or one run whole."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Final

import msgspec

from carbonlens.accounting.allocation_totals import Totals
from carbonlens.accounting.job_runs import JobRun
from carbonlens.app.runs import ListedJob, Listing
from carbonlens.cli import output
from carbonlens.cli.artefact_view import artefact_lines
from carbonlens.cli.conditions_view import condition_lines
from carbonlens.cli.execution_view import execution_lines
from carbonlens.cli.phases_view import print_phases
from carbonlens.cli.run_view import REPLAYED
from carbonlens.cli.token_view import token_lines
from carbonlens.domain.counting import counted
from carbonlens.domain.estimate import Estimate, unknown
from carbonlens.domain.run import Run
from carbonlens.domain.units import US_PER_S
from carbonlens.reporting import format as fmt
from carbonlens.reporting import names
from carbonlens.reporting.allowance import cpu_words, memory_words
from carbonlens.reporting.run_json import job_json, run_json, totals_json

_MOST_NAMES: Final = 3
_SHORTEST_NAME: Final = 10
_SHORTEST_CUT: Final = 5
_YEAR: Final = len("2026-")
_AT_LEAST: Final = "[at least "


def print_list_as_json(listing: Listing) -> None:
    """Print the shape that outside scripts rely on."""
    output.print_json(
        {
            "schema": "carbonlens/runs/1",
            "ledger": listing.ledger,
            "runs": [run_json(r, b) for r, b in zip(listing.runs, listing.billed, strict=True)],
            "jobs": [job_json(j.run, j.billed) for j in listing.jobs],
            "totals": None if listing.totals is None else totals_json(listing.totals),
            "recovered": len(listing.recovered),
            "unread_batches": listing.unread_batches,
            "kept_elsewhere": listing.kept_elsewhere,
            "findings": listing.findings,
        }
    )


def print_run_as_json(run: Run, superseded_by: str | None = None) -> None:
    """Print one run: the listed shape, the whole record, and what corrects it."""
    output.print_json(
        {
            "schema": "carbonlens/run/1",
            "run": run_json(run),
            "record": msgspec.Raw(msgspec.json.encode(run)),
            "superseded_by": superseded_by,
        }
    )


def print_list(listing: Listing, limit: int) -> None:
    """Print the newest runs, at most ``limit``."""
    entries = _entries(listing)
    shown = entries[-limit:]
    if not listing.runs:
        output.say_words(f"no runs in {listing.ledger}")
    if listing.totals is None:
        output.say_words(f"the newest {_runs(len(shown))} in {listing.ledger} (all, with totals: --json):")
    elif len(entries) > len(shown):
        output.say_words(f"{len(entries)} runs in {listing.ledger}, the newest {len(shown)}:")
    if shown:
        for line in _table([_job_row(e) if isinstance(e, ListedJob) else _row(e) for e in shown]):
            output.say(line)
        for line in [] if listing.totals is None else _total_lines(listing.totals, listing.jobs):
            output.say(line)
        played = sum(map(_is_played, listing.runs if listing.totals is not None else ()))
        if played:
            which = counted(played, "of them was", "of them were")
            output.say(f"  {which} played from a recording, not measured")
    if any(isinstance(e, ListedJob) and e.billed is None for e in shown):
        output.note("N+ x: ranks may lie further back, so the job's energy is unknown here (all: --json)")
    if listing.recovered:
        output.note(f"recovered {_runs(len(listing.recovered))} whose process was gone")
    if listing.unread_batches:
        output.note(
            f"{counted(listing.unread_batches, 'imported batch', 'imported batches')}"
            f" not read: pip install 'carbonlens[analysis]'"
        )
    if listing.kept_elsewhere is not None:
        kept = listing.kept_elsewhere
        reach = counted(kept.runs, "run could not reach its ledger", "runs could not reach their ledger")
        output.note(f"{reach}:")
        output.note(f"  carbonlens runs --ledger {kept.ledger}")
        output.note("move the folder runs/ there into a ledger, or remove it, and this note ends")
    output.print_findings(listing.findings)


def _table(rows: list[list[str]]) -> list[str]:
    """Return the runs as lines that fit: years go first, then ends of names, then blanks."""
    header = ["run", "study/step", "status", "start (UTC)", "time", "energy", "95 %"]

    def room() -> int:
        rest = sum(
            max(output.columns(row[i]) for row in (header, *rows)) for i in range(len(header)) if i != 1
        )
        return output.WIDTH - rest - 2 * (len(header) - 1)

    if room() < min(_SHORTEST_NAME, max(output.columns(row[1]) for row in rows)):
        rows = [
            [cell if i != 3 or not cell[0].isdigit() else cell[_YEAR:] for i, cell in enumerate(row)]
            for row in rows
        ]
    gap = 2 if room() >= _SHORTEST_CUT else 1
    names = max(room() + (2 - gap) * (len(header) - 1), _SHORTEST_CUT)
    header[1] = header[1] if names >= len(header[1]) else "step"
    rows = [[cell if i != 1 else output.clip(cell, names) for i, cell in enumerate(row)] for row in rows]
    return output.table(header, rows, left=4, gap=gap)


def print_recovered(runs: tuple[Run, ...], *, json: bool) -> None:
    """Print what a recovery sealed."""
    if json:
        output.print_json({"schema": "carbonlens/recover/1", "runs": [run_json(r) for r in runs]})
        return
    output.say_words(f"recovered {_runs(len(runs))}" if runs else "nothing to recover")
    for run in runs:
        output.say(f"{run.run_id}  {_covered(run)}")


def print_run(run: Run, superseded_by: str | None = None) -> None:
    """Print the facts of one run, a line each, and its phases.

    Args:
        run: The record.
        superseded_by: Id of the record that counts in its place.
    """
    facts = [
        ("run", run.run_id),
        *((("counts no more", f"superseded by {superseded_by}"),) if superseded_by else ()),
        ("study / step", f"{run.study or '-'} / {run.step or '-'}"),
        ("role, status", f"{run.role}, {run.status}" + (f" ({run.error})" if run.error else "")),
        *((("tags", " ".join(f"{k}={v}" for k, v in sorted(run.tags.items()))),) if run.tags else ()),
        *((("job", _job_line(run)),) if run.job_id is not None else ()),
        ("start (UTC)", f"{_start(run)}, {_time(run)}"),
        ("energy", _energy_line(run)),
        *(
            ("method" if not k else "", text)
            for k, text in enumerate(
                dict.fromkeys(f"{r.component}: {r.method}" for r in run.energy) or ("none",)
            )
        ),
        *(("execution" if not k else "", text) for k, text in enumerate(execution_lines(run))),
        *(("artefacts" if not k else "", text) for k, text in enumerate(artefact_lines(run))),
        ("units", _units(run)),
        *(("tokens" if not k else "", text) for k, text in enumerate(token_lines(run))),
        ("coverage", _covered(run)),
        *((("may use", allowed),) if (allowed := _allowed(run)) else ()),
        *(("conditions" if not k else "", text) for k, text in enumerate(condition_lines(run))),
        *((("trace", run.trace.file),) if run.trace is not None else ()),
        *(("findings" if not k else "", f"{f.code} {f.message}") for k, f in enumerate(run.findings)),
    ]
    if not run.findings:
        facts.append(("findings", "none"))
    width = max(len(name) for name, _ in facts)
    for name, value in facts:
        lines = textwrap.wrap(
            output.clean(value), output.width() - width - 2, break_long_words=False, break_on_hyphens=False
        )
        for k, line in enumerate(lines or [""]):
            output.say(f"{(name if not k else '').ljust(width)}  {line}")
    print_phases(run)


def _units(run: Run) -> str:
    if run.units is None:
        return "unknown"
    unit = run.unit or "unit"
    return f"{run.units} {unit if run.units == 1 else names.plural(unit)}"


def _total_lines(totals: Totals, jobs: Sequence[ListedJob] = ()) -> list[str]:
    """Return a line a boundary, one for what nobody is billed, one for what nobody knows."""
    nested = f" and {totals.nested} inside them" if totals.nested else ""
    together = sum(len(j.run.parts) - 1 for j in jobs if j.run.first.parent_run_id is None)
    counted = f"{_runs(totals.runs - together)}{nested}"
    lines = []
    largest = max((p.billed.value or 0.0 for p in totals.parts), default=0.0)
    scale = fmt.energy_scale(largest) if len(totals.parts) > 1 else None  # to be compared by eye
    for part in totals.parts:
        which = counted if len(totals.parts) == 1 else _runs(part.runs)
        at = f" ({part.boundary} boundary)" if part.boundary else ""
        lines.append(f"total of {which}: {_total(part.billed, scale)}{at}")
        if part.unattributed is not None:
            idle = _total(part.unattributed, scale)
            lines.append(f"  idle or unrecorded work on their devices: {idle}{at}")
    if totals.unknown:
        named = ", ".join(output.short_id(i) for i in totals.unknown[:_MOST_NAMES])
        more = len(totals.unknown) - _MOST_NAMES
        rest = f" and {more} more" if more > 0 else ""
        lines.append(output.clip(f"energy unknown, in no total: {named}{rest}", output.WIDTH))
    return lines


def _total(estimate: Estimate, scale: fmt.Scale | None) -> str:
    """Return a total; one without any interval bounds nothing, whatever is missing beside it."""
    if estimate.state == "unbounded" and estimate.value is not None and estimate.low is None:
        known = Estimate(value=estimate.value, unit=estimate.unit)
        return f"{fmt.energy(known, scale).text} counted [interval unknown]"
    return output.figure(fmt.energy(estimate, scale), estimate)


def _is_played(run: Run) -> bool:
    return any(f.code == REPLAYED for f in run.findings)


def _status(run: Run | JobRun) -> str:
    """Return how a run ended; of one that was played from a recording that goes before."""
    played = _is_played(run) if isinstance(run, Run) else any(map(_is_played, run.parts))
    if not played:
        return run.status
    # There is no room for both words of a recovered one, whose interval has one end.
    return "played" if run.status in ("complete", "recovered") else f"played, {run.status}"


def _named(run: Run) -> str:
    """Return study and step of a run, or the program of one that has neither."""
    if run.study is None and run.step is None and run.origin is not None and run.origin.program:
        return f"({run.origin.program})"
    return f"{run.study or '-'}/{run.step or '-'}"


def _row(run: Run) -> list[str]:
    return [
        output.short_id(run.run_id),
        _named(run),
        _status(run),
        _start(run)[:16],
        _time(run),
        _figure(run.total_energy),
        _width(run.total_energy),
    ]


def _entries(listing: Listing) -> list[Run | ListedJob]:
    """Return what has a line of its own: what several ranks recorded together has one."""
    jobs = {r.run_id: j for j in listing.jobs for r in j.run.parts}
    last = {j.run.parts[-1].run_id for j in listing.jobs}
    return [jobs.get(r.run_id, r) for r in listing.runs if r.run_id not in jobs or r.run_id in last]


def _job_row(job: ListedJob) -> list[str]:
    run = job.run
    # The sum of what ranks read would count a device that they share once a rank.
    energy = unknown("J") if job.billed is None else job.billed
    more = "+" if job.billed is None else ""
    return [
        output.short_id(run.first.run_id),
        f"{len(run.parts)}{more} x {_named(run.first)}",
        _status(run),
        _start(run)[:16],
        _time(run),
        _figure(energy),
        _width(energy),
    ]


def _figure(energy: Estimate) -> str:
    """Return a figure; that a part of it is not known is said by its interval, which has one end."""
    return output.clean(fmt.energy(energy).text).removesuffix(" counted")


def _width(energy: Estimate) -> str:
    """Return the interval of a figure, in the unit that it is printed in."""
    if energy.value is None or energy.state in {"unknown", "not_applicable"}:
        return "-"
    if energy.low is None and energy.high is None:
        return "unknown"
    interval = fmt.energy(energy).interval
    return f"≥ {interval[len(_AT_LEAST) : -1]}" if interval.startswith(_AT_LEAST) else interval or "exact"


def _start(run: Run | JobRun) -> str:
    if run.start_us is None:
        return "unknown"
    return datetime.fromtimestamp(run.start_us / US_PER_S, tz=UTC).strftime("%Y-%m-%d %H:%M:%S")


def _time(run: Run | JobRun) -> str:
    return fmt.duration(Estimate(value=run.duration_s, unit="s")).text


def _energy_line(run: Run) -> str:
    total = run.total_energy
    grade = f", grade {total.grade}" if total.grade else ""
    boundary = f", boundary {run.boundary}" if run.boundary else ""
    return f"{output.figure(fmt.energy(total), total)}{grade}{boundary}"


def _job_line(run: Run) -> str:
    rank = "" if run.rank is None else f", rank {run.rank}"
    return f"{run.job_id}, attempt {run.attempt}{rank}"


def _allowed(run: Run) -> str | None:
    """Return what the work could use of its machine where that is not all of it."""
    if run.allowance is None:
        return None
    return ", ".join(filter(None, (cpu_words(run.allowance), memory_words(run.allowance)))) or None


def _covered(run: Run) -> str:
    if run.coverage is None and run.status == "recovered" and run.covered_s is not None:
        # Of a process that is gone nobody knows how long it went on: a share would be of nothing known.
        return f"{run.covered_s:.3g} s, up to the last sample; then unknown"
    if run.coverage is None:
        return "unknown"
    lost = f", {run.lost_s:.3g} s lost" if run.lost_s else ""
    return f"{run.coverage:.0%}{lost}"


def _runs(count: int) -> str:
    return counted(count, "run")
