"""What is left of a trace beside those that tell of the same devices over a part of its time.

A log that was rotated may begin with lines that end the one before. The ledger keeps runs and no samples,
so it is time that decides: what lies in the time that is counted already is left out, the rest is counted.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Final

import msgspec

from carbonlens.app.importing_again import CUT_BESIDE, CUT_FROM, Again, Before, told_of
from carbonlens.app.importing_devices import sure_devices
from carbonlens.app.importing_overlaps import Apart, Overlapped, file_of, step_s
from carbonlens.app.importing_twins import of_host
from carbonlens.domain.counting import counted
from carbonlens.domain.finding import Finding
from carbonlens.domain.run import Run
from carbonlens.domain.units import US_PER_S
from carbonlens.errors import InputFileError
from carbonlens.importers.claiming import Claim
from carbonlens.importers.contract import Options, RunRecord
from carbonlens.importers.harvest import Harvest, harvest
from carbonlens.importers.sources import Source

_FROM, _UNTIL = CUT_FROM, "counted until us"
"""What is kept with a run of which a part is left out, so that it stays so when more is told of it."""

_REPAIRED: Final = "CL240"

_MEND: Final = "if they are of two machines, name the host of each: --host, or host in a [[place]] of --map"

Span = tuple[float, float]
"""Begin and end, UTC microseconds."""


class Rest(msgspec.Struct, frozen=True):
    """A trace of which a part is counted.

    Attributes:
        before: What was imported before, with what part of it counts.
        harvested: What is left of it.
        apart: What of that counts beside others.
        beside: Ids of those that tell of the rest, and of which nothing is left out.
    """

    before: Before
    harvested: Harvest
    apart: Apart
    beside: frozenset[str]


def rest(  # noqa: PLR0913, PLR0917 - what an import of a trace is made of
    claim: Claim,
    before: Before,
    options: Options,
    host: str | None,
    found: Apart,
    whole: Harvest,
    apart_of: Callable[[Harvest], Apart],
) -> Rest | None:
    """Return a trace without the time that others tell of; ``None`` where nothing or all counts.

    Args:
        claim: The trace.
        before: What was imported of it before.
        options: How it is read.
        host: Machine that its runs are of, where the content names none.
        found: What of it counts as a whole.
        whole: All of it.
        apart_of: Tells what of the rest counts.
    """
    group = claim.group
    # Of several runs, or files, the times differ.
    if len(group.sources) > 1 or len(whole.singles) != 1 or not found.overlapped:
        return None
    span = _rest_of(whole.singles[0], found.overlapped)
    if span is None:
        return None
    try:
        less = harvest(claim.importer, group, msgspec.structs.replace(options, kept_us=span))
    except InputFileError:
        # It was changed since it was read: what is said of it as a whole stands.
        return None
    say_repaired(less, whole.findings)
    if host is not None:
        less.singles = [of_host(r, host) for r in less.singles]
    beside = apart_of(less)
    if len(beside.records) != 1 or beside.refused:
        return None
    beside.findings.insert(
        0, _say_left_out(group.main, whole.singles[0], beside.records[0], found.overlapped, span)
    )
    others = dict.fromkeys(o.run.run_id for o in found.overlapped)
    told = {
        **before.told,
        _FROM: str(round(span[0])),
        _UNTIL: str(round(span[1])),
        CUT_BESIDE: "\n".join(others),
    }
    free = [o.run.run_id for o in found.overlapped if rest_in(told_of([o.run])) is None]
    return Rest(msgspec.structs.replace(before, told=told), less, beside, frozenset(free))


def say_repaired(got: Harvest, earlier: Iterable[Finding]) -> None:
    """Say what had to be repaired of a source, where an earlier reading of it alone met that.

    Args:
        got: What the reading that counts gave.
        earlier: What was said by those before.
    """
    for said in earlier:
        if said.code == _REPAIRED and said not in got.findings:
            got.findings.append(said)


def leave_out(
    harvested: Harvest, ids: Collection[str], again: Again, apart_of: Callable[[Harvest], Apart]
) -> None:
    """Leave out of content that is told anew what was left out of it before, beside others.

    Args:
        harvested: All of the content.
        ids: Of its runs in the ledger.
        again: What the import is beside earlier ones.
        apart_of: Tells what of its further runs counts.
    """
    new = Harvest()
    new.singles = [r for r in harvested.singles if r.run.run_id not in ids and again.partner(r.run) is None]
    beside = apart_of(new)
    out = {r.run.run_id for r in new.singles} - {r.run.run_id for r in beside.records}
    harvested.singles = [r for r in harvested.singles if r.run.run_id not in out]
    harvested.findings += beside.findings


def _rest_of(record: RunRecord, overlapped: Sequence[Overlapped]) -> Span | None:
    """Return the time of a run that nothing else tells of; ``None`` where that is none, or not one."""
    run, least_s = record.run, step_s(record)
    devices = {d for r in run.energy if r.energy_j for d in r.devices}
    rests = {tuple(_rests(run, [o.run for o in overlapped if d in o.devices], least_s)) for d in devices}
    # Of devices that others tell different parts of, no one time is left.
    (only,) = rests if len(rests) == 1 else ((),)
    return only[0] if len(only) == 1 else None


def _rests(run: Run, others: Sequence[Run], least_s: float) -> list[Span]:
    """Return the parts of a run's time that others leave, of more than a step."""
    start_us, end_us = float(run.start_us or 0), float(run.end_us or 0)
    found: list[Span] = []
    at_us = start_us
    for other in sorted(others, key=lambda o: o.start_us or 0):
        found.append((at_us, float(other.start_us or 0)))
        at_us = max(at_us, float(other.end_us or 0))
    found.append((at_us, end_us))
    return [(a, b) for a, b in found if b - a > least_s * US_PER_S]


def rest_in(told: Mapping[str, str]) -> Span | None:
    """Return the time that counts of a source, as kept with its runs; ``None`` where all does."""
    return (float(told[_FROM]), float(told[_UNTIL])) if _FROM in told and _UNTIL in told else None


def may_be_cut_beside(cut: Run, run: Run) -> bool:
    """Tell whether a part of a run may have been left out beside another one, where no ids tell that.

    Args:
        cut: A run of which a part is left out.
        run: The other one, as it was.
    """
    span = rest_in(told_of([cut]))
    if span is None or run.start_us is None or run.end_us is None or not any(sure_devices(cut, run)):
        return False
    # The part that counts begins after the other's end, and not at once.
    length_us = run.end_us - run.start_us
    return span[0] <= run.end_us + length_us and run.start_us - length_us <= span[1]


def without_rest(told: Mapping[str, str]) -> dict[str, str]:
    """Return what was told of a source without which part of it counts: it is another one now."""
    return {name: text for name, text in told.items() if name not in {_FROM, _UNTIL, CUT_BESIDE}}


def _say_left_out(
    source: Source, whole: RunRecord, rest: RunRecord, overlapped: Sequence[Overlapped], span: Span
) -> Finding:
    """Return what is said of a trace of which a part is counted.

    Args:
        source: The trace.
        whole: Its run with all samples.
        rest: Its run without those that are left out.
        overlapped: Runs that tell of the time of those.
        span: The time that they leave; the first sample in it may stand further on.
    """
    seconds = _length_s(whole.run) - (span[1] - span[0]) / US_PER_S
    samples = _samples(whole) - _samples(rest)
    names = list(dict.fromkeys(file_of(o.run) for o in overlapped))
    more = f" and {counted(len(names) - 1, 'further trace')}" if len(names) > 1 else ""
    device = min(min(o.devices) for o in overlapped)
    text = (
        f"tells of {seconds:.6g} s of {device} that {names[0]}{more} told of: {counted(samples, 'sample')} "
        f"of that time left out, those from {_at(rest.run.start_us)} to {_at(rest.run.end_us)} are counted"
    )
    return Finding(code="CL297", severity="warning", message=text, file=source.shown, mend=_MEND)


def _length_s(run: Run) -> float:
    return ((run.end_us or 0) - (run.start_us or 0)) / US_PER_S


def _samples(record: RunRecord) -> int:
    return record.measured.samples if record.measured else 0


def _at(us: int | None) -> str:
    moment = datetime.fromtimestamp((us or 0) / US_PER_S, tz=UTC)
    return f"{moment:%Y-%m-%d %H:%M:%S} UTC"
