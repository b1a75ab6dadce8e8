"""``carbonlens bench``: from two scripts, or a bench file, to a comparison that can be believed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from carbonlens.cli import grammar
from carbonlens.cli.options import AssumptionsOption, JsonOption, LedgerOption
from carbonlens.errors import MeasurementError, UsageError

if TYPE_CHECKING:
    from carbonlens.domain.bench import Bench

_QUICK_BUDGET_S = 30.0


def register(app: grammar.Commands) -> None:
    """Add the command."""
    app.add("bench", bench_command)


def bench_command(  # each is an option of the command line
    spec: Annotated[Path | None, grammar.Argument(metavar="[SPEC.toml]", help="A bench file.")] = None,
    baseline: Annotated[
        str | None, grammar.Option("--baseline", metavar="CMD", help='Instead of a file: "python base.py".')
    ] = None,
    candidate: Annotated[
        list[str] | None,
        grammar.Option("--candidate", metavar="CMD", help="Command to compare; may be given several times."),
    ] = None,
    units: Annotated[str | None, grammar.Option("--units", help="Units that one execution does.")] = None,
    unit: Annotated[str, grammar.Option("--unit", help="Functional unit, such as inference.")] = "unit",
    name: Annotated[str | None, grammar.Option("--name", help="Name of the study.")] = None,
    report: Annotated[
        Path | None, grammar.Option("--report", metavar="DIR", help="Write report.html and report.pdf there.")
    ] = None,
    resume: Annotated[
        bool, grammar.Option("--resume", help="Go on with the latest series of the same bench.")
    ] = False,
    rounds: Annotated[int | None, grammar.Option("--rounds", help="Most rounds [40].")] = None,
    half_width: Annotated[
        float | None, grammar.Option("--half-width", help="Stop when each interval is as narrow [0.01].")
    ] = None,
    budget: Annotated[
        float | None,
        grammar.Option("--budget", metavar="SECONDS", help="Begin no round after it [30 without a file]."),
    ] = None,
    window: Annotated[
        float | None,
        grammar.Option("--window", metavar="SECONDS", help="Repeat shorter work to fill a window [1.0]."),
    ] = None,
    gate: Annotated[
        list[str] | None,
        grammar.Option("--gate", metavar="METRIC:KIND=LIMIT", help="Condition, as for compare."),
    ] = None,
    margin: Annotated[
        float | None, grammar.Option("--margin", help="Relative change regarded as none.")
    ] = None,
    volume: Annotated[
        str | None, grammar.Option("--volume", help='Expected units, for example "2e9 a year".')
    ] = None,
    assumptions: AssumptionsOption = None,
    ledger: LedgerOption = None,
    json: JsonOption = False,
) -> None:
    """Measure variants in interleaved rounds until it is clear which one takes less."""
    from carbonlens.app.assumptions import load_assumptions
    from carbonlens.app.bench import bench
    from carbonlens.app.terms import parse_terms
    from carbonlens.cli import bench_view, demo_view
    from carbonlens.instrument.interrupt import ended_in_order

    vector = None if assumptions is None else load_assumptions(assumptions)
    terms = parse_terms(margin, gate or [], volume)
    given = _given(spec, baseline, candidate or [], units, unit, name)
    given = _paced(given, (rounds, half_width, window), budget, is_quick=spec is None)
    with _told_of_an_early_end(), ended_in_order(), _naming(spec), demo_view.progress() as bars:
        outcome = bench(
            given, ledger=ledger, report_dir=report, resume=resume, vector=vector, terms=terms, progress=bars
        )
    bench_view.print_outcome(outcome, json=json)
    if outcome.result.failed:
        raise grammar.Exit(3)
    if outcome.result.ended == "interrupted":
        raise grammar.Exit(130)


@contextmanager
def _told_of_an_early_end() -> Iterator[None]:
    """Say what an interrupt comes to that leaves nothing to print: too early a one, or a second one."""
    from carbonlens.app.bench import CutShortError
    from carbonlens.cli import output

    try:
        yield
    except CutShortError:
        output.note("interrupted; the rounds that were complete are kept: --resume goes on with them")
        raise
    except KeyboardInterrupt:
        output.note("interrupted before a round was complete: there is nothing to compare")
        raise


@contextmanager
def _naming(spec: Path | None) -> Iterator[None]:
    """Have what fails of a bench name its file: a variant's name alone may stand in several."""
    try:
        yield
    except MeasurementError as error:
        if spec is None:
            raise
        where = f"{spec}: {error.where}" if error.where else str(spec)
        raise MeasurementError(error.what, where=where, mend=error.mend) from error


def _given(
    spec: Path | None,
    baseline: str | None,
    candidates: list[str],
    units: str | None,
    unit: str,
    name: str | None,
) -> Bench:
    import msgspec

    from carbonlens.app.bench import quick
    from carbonlens.inventory import bench_file

    if spec is not None:
        if baseline is not None or candidates or units is not None:
            raise UsageError(
                "a bench file and commands are both given", mend="state the commands in the file"
            )
        made = bench_file.load(spec)
        if name is None:
            return made
        return msgspec.structs.replace(made, study=msgspec.structs.replace(made.study, name=name))
    if baseline is None:
        raise UsageError(
            "there is nothing to measure",
            mend='give a bench file, or --baseline "python a.py" --candidate "python b.py" --units 20000',
        )
    if units is None:
        raise UsageError(
            "--units is missing", mend="say how many units one execution does, for example --units 20000"
        )
    return quick(baseline, candidates, units=_number(units), unit=unit, name=name or "bench")


def _number(text: str) -> Decimal:
    try:
        value = Decimal(text)
    except InvalidOperation:
        value = Decimal("NaN")
    if not value.is_finite() or value <= 0:
        raise UsageError(f"--units {text!r} is no positive number", mend="write --units 1000")
    return value


def _paced(
    given: Bench,
    stated: tuple[int | None, float | None, float | None],
    budget: float | None,
    *,
    is_quick: bool,
) -> Bench:
    """Return the bench at the pace of the options: most rounds, half width, window, where stated."""
    import msgspec

    from carbonlens.inventory import bench_check

    pace = given.pace
    rounds, half_width, window = stated
    pace = msgspec.structs.replace(
        pace,
        most=pace.most if rounds is None else rounds,
        half_width=pace.half_width if half_width is None else half_width,
        window_s=pace.window_s if window is None else window,
        budget_s=budget if budget is not None else (_QUICK_BUDGET_S if is_quick else pace.budget_s),
    )
    changed = msgspec.structs.replace(given, pace=pace)
    bench_check.check(changed, "bench")
    return changed
