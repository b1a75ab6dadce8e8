"""Use case: measure variants in turn, compare them, and report."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from decimal import Decimal
from pathlib import Path
from typing import Final

import msgspec

from carbonlens.app import bench_series
from carbonlens.app.assumptions import filled
from carbonlens.app.compare import compared
from carbonlens.app.terms import Terms, with_terms
from carbonlens.domain.bench import Bench, Pace, Variant
from carbonlens.domain.comparison import Comparison
from carbonlens.domain.counting import counted
from carbonlens.domain.factor import Vector
from carbonlens.domain.finding import Finding
from carbonlens.domain.study import Step, Study
from carbonlens.errors import MeasurementError, UsageError
from carbonlens.instrument.bench import BenchResult, run_bench
from carbonlens.instrument.bench_scratch import guarded_scratch
from carbonlens.instrument.interrupt import Terminated
from carbonlens.instrument.progress import Progress, Silent
from carbonlens.instrument.sources import declared_sources
from carbonlens.instrument.window import Place
from carbonlens.inventory import bench_check, bench_file, bench_identity, study_file
from carbonlens.ledger.location import locate
from carbonlens.ledger.store import Ledger

_FAR: Final = 1000
"""Nobody measures so many rounds."""


class TooEarlyError(KeyboardInterrupt):
    """A bench was interrupted before a round was complete: there is nothing to compare."""


class CutShortError(KeyboardInterrupt):
    """A bench was interrupted at once; rounds that were complete are in the ledger."""


class BenchOutcome(msgspec.Struct, frozen=True, kw_only=True):
    """What a bench came to.

    Attributes:
        comparison: Of all runs of the series.
        result: How many rounds, and why it ended.
        ledger: Folder that holds the runs.
        study: Name that ``compare`` and ``report`` know it by.
        files: Reports by format.
    """

    comparison: Comparison
    result: BenchResult
    ledger: Path
    study: str
    files: dict[str, Path] = msgspec.field(default_factory=dict)


def bench(  # noqa: PLR0913  # optional and by name
    spec: Bench | Path,
    *,
    ledger: str | Path | None = None,
    report_dir: Path | None = None,
    resume: bool = False,
    vector: Vector | None = None,
    terms: Terms | None = None,
    progress: Progress | None = None,
) -> BenchOutcome:
    """Measure the variants of a bench in interleaved rounds and compare them.

    Args:
        spec: What to measure, or the path of a bench file.
        ledger: Folder to record in; found as the command line finds it when ``None``.
        report_dir: Folder of the reports; none are written when ``None``.
        resume: Go on with the latest series of the same bench.
        vector: Factors and prices, instead of the bench file's.
        terms: Margin, gates and volume beside the bench file's.
        progress: Whom to tell.

    Raises:
        InputFileError: If the file cannot be read.
        ConfigError: If it is malformed.
        MeasurementError: If the baseline fails, or every candidate before the first round.
        SelectionError: If there is nothing to resume, or another bench is measuring it.
        MissingExtraError: If an extra is not installed; said before any work.
        UnwritableError: If ledger or reports cannot be written; likewise.
        TooEarlyError: If it was interrupted before a round was complete.
        CutShortError: If it was interrupted later, and a second time or while the report was made.
    """
    _require(report_dir)
    given = bench_file.load(spec) if isinstance(spec, Path) else spec
    store = Ledger(locate(ledger))
    store.ensure_writable()
    measured = bench_identity.what_is_measured(given)
    given = msgspec.structs.replace(given, spec_sha256=measured.spec)
    of_series = bench_series.gone_on_with if resume else bench_series.begun
    name = of_series(given, measured, store)
    study = with_terms(msgspec.structs.replace(given.study, name=name), terms)
    given = msgspec.structs.replace(given, study=study, vector=filled(vector or given.vector))
    notes: list[Finding] = []
    place = Place(ledger=str(store.path), sources=declared_sources(notes))
    told = progress or Silent()
    with _saying_what_is_kept(name, given, store):
        with bench_series.alone(name, store), guarded_scratch() as scratch:
            # Read once nobody else adds to it.
            done = bench_series.runs_of(name, given, store) if resume else ()
            store.keep_study(name, study_file.dumps(study, given.vector))
            written = bench_series.Written(name, measured, store, told)
            result = run_bench(
                given, place, scratch=scratch, progress=told, done=done, checked=written.leave_out
            )
        _require_a_candidate(given, result)
        if result.ended == "interrupted" and not result.rounds:
            raise TooEarlyError
        found = compared(name, ledger=store.path, vector=given.vector).noting(
            (*notes, *_about(result, given.pace))
        )
        comparison = found.comparison
        files: dict[str, Path] = {}
        if report_dir is not None:
            from carbonlens.app.report import report

            files = report(comparison, out_dir=report_dir, evidence=found.evidence)
    return BenchOutcome(comparison=comparison, result=result, ledger=store.path, study=name, files=files)


@contextmanager
def _saying_what_is_kept(name: str, given: Bench, store: Ledger) -> Iterator[None]:
    """Have an interrupt within the block tell whether rounds of the series are complete."""
    try:
        yield
    except (Terminated, TooEarlyError):
        raise
    except KeyboardInterrupt as end:
        has_rounds = bench_series.has_a_round(name, given, store)
        raise (CutShortError if has_rounds else TooEarlyError) from end


def quick(  # noqa: PLR0913  # each is an option of the command line
    baseline: str,
    candidates: Sequence[str],
    *,
    units: Decimal,
    unit: str = "unit",
    name: str = "bench",
    pace: Pace | None = None,
    folder: Path | None = None,
) -> Bench:
    """Return a bench of commands, without a file.

    Args:
        baseline: Command line of the baseline, split as a shell would.
        candidates: Command lines to compare with it.
        units: Functional units that one execution does.
        unit: Their name.
        name: Name of the study.
        pace: How long and how often.
        folder: Folder the commands run in; the working folder when ``None``.

    Raises:
        UsageError: If there is no candidate.
        ConfigError: If a command is malformed, or a number is impossible.
    """
    if not candidates:
        raise UsageError("there is nothing to compare with", mend="give --candidate as well")
    lines = [baseline, *candidates]
    names = ["baseline", *(f"candidate-{i}" if i > 1 else "candidate" for i in range(1, len(lines)))]
    variants = tuple(
        Variant(
            name=n, kind="command", command=bench_file.words(line, f"--{n.partition('-')[0]}"), units=units
        )
        for n, line in zip(names, lines, strict=True)
    )
    made = Bench(
        study=Study(
            name=name,
            baseline=names[0],
            baseline_title=baseline,
            steps=tuple(
                Step(name=n, title=line, measured_on=names[0])
                for n, line in zip(names[1:], lines[1:], strict=True)
            ),
            unit=unit,
            is_sequential=True,
        ),
        variants=variants,
        pace=pace or Pace(),
        vector=Vector(),
        folder=str((folder or Path.cwd()).absolute()),
    )
    bench_check.check(made, "bench")
    return made


def _require(report_dir: Path | None) -> None:
    """Refuse before the work what would fail after it."""
    from carbonlens.app.compare import require_analysis

    require_analysis()
    if report_dir is not None:
        from carbonlens.app.report import ensure_renderable, ensure_writable

        ensure_renderable()
        ensure_writable(report_dir)


def _require_a_candidate(given: Bench, result: BenchResult) -> None:
    """Say why nothing was measured.

    Raises:
        MeasurementError: If every candidate failed before the first round.
    """
    candidates = {v.name for v in given.variants} - {given.study.baseline}
    if result.rounds or not candidates <= result.failed.keys():
        return
    raise MeasurementError(
        f"every candidate failed before the first round: "
        f"{'; '.join(f'{name}: {why}' for name, why in result.failed.items())}",
        where=given.study.name,
        mend="mend that first, and run the bench again",
    )


def _about(result: BenchResult, pace: Pace) -> tuple[Finding, ...]:
    """Say where a series ended before its intervals were as narrow as wanted, and what they leave out."""
    return (*_early(result, pace), *_kept_processes(result))


def _kept_processes(result: BenchResult) -> tuple[Finding, ...]:
    if not result.in_one_process:
        return ()
    return (
        Finding(
            code="CL188",
            severity="info",
            message=f"one process for {in_one_process(result)}: how its memory happens to lie "
            "may change what it uses by some percent, which no interval holds",
            mend="repeat the bench, and believe what both series say",
            subject="rounds",
        ),
    )


def in_one_process(result: BenchResult) -> str:
    """Return which rounds shared a process; an empty text where each had its own."""
    whole = [name for name, first in result.in_one_process.items() if first == 1]
    later = [f"{name} from round {first} on" for name, first in result.in_one_process.items() if first > 1]
    return " and ".join([*([f"all rounds of {', '.join(whole)}"] if whole else ()), *later])


def _in_reach(result: BenchResult) -> str:
    """Return how many rounds their scatter asks for, which says nothing of what they show."""
    if result.needed is None or result.needed <= result.rounds:
        return ""
    if result.needed > _FAR:
        return f", and {counted(_FAR, 'round')} would be too few"
    return f", and about {counted(result.needed, 'round')} would do"


def _on(result: BenchResult, pace: Pace) -> str:
    """Return how to go on: with what allows as many rounds as their scatter asks for."""
    if result.needed is not None and result.needed > _FAR:
        return "measure longer windows on a quieter machine, in a new series, or state a wider half_width"
    if result.ended == "interrupted":
        return "go on with --resume"
    more = []
    if result.ended == "budget":
        more.append(_budget(result))
    if result.needed is not None and result.needed > pace.most:
        more.append(f"--rounds {result.needed}")
    elif result.ended == "most_rounds":
        more.append("more --rounds")
    return f"go on with --resume, {' and '.join(more)}, or measure longer windows on a quieter machine"


def _budget(result: BenchResult) -> str:
    """Return the time that the rounds which are left ask for, a tenth to spare; each call has its own."""
    left = 0 if result.needed is None else result.needed - result.rounds
    if result.round_s is None or left <= 0:
        return "a larger --budget"
    return f"--budget {math.ceil(1.1 * left * result.round_s / 10) * 10}"


def _early(result: BenchResult, pace: Pace) -> tuple[Finding, ...]:
    half = result.half_width
    wide = f"; the widest interval is ±{half * 100:.1f} %{_in_reach(result)}" if half is not None else ""
    done, wanted = counted(result.rounds, "round"), f"±{pace.half_width * 100:g} %"
    missed, late = f"{done} did not reach {wanted}", f" after {done}, before {wanted}"
    if half is not None and half <= pace.half_width:
        # As narrow as wanted, but with fewer rounds than may end a series on it.
        missed = f"fewer than {pace.least} of {done} were undisturbed and complete"
        late = f": {missed}"
    told = {
        "interrupted": ("CL166", f"measuring was interrupted after {done}{wide}"),
        "most_rounds": ("CL167", f"{missed}{wide}"),
        "budget": ("CL168", f"the time was up{late}{wide}"),
    }
    if result.ended not in told:
        return ()
    code, message = told[result.ended]
    mend = _on(result, pace)
    return (Finding(code=code, severity="warning", message=message, mend=mend, subject="rounds"),)
