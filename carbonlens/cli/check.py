"""``carbonlens check``: fail a pipeline when a change exceeds what is tolerated."""

from __future__ import annotations

from typing import Annotated

from carbonlens.cli import grammar
from carbonlens.cli.compare import BaselineOption, StepsOption
from carbonlens.cli.options import AssumptionsOption, JsonOption, LedgerOption, StudyOption

FAILED = 1
"""Exit code of a condition that fails; no other command gives it."""


def register(app: grammar.Commands) -> None:
    """Add the command."""
    app.add("check", check_command)


def check_command(
    fail_if: Annotated[
        list[str],
        grammar.Option(
            "--fail-if",
            metavar="METRIC:>LIMIT@CONF%",
            help="energy:>+3%@95% fails when the one-sided 95 % lower bound of the change against the "
            "baseline exceeds +3 %; accuracy:<-1pp when its upper bound lies below a loss of one point. "
            "Metrics: energy, carbon, cost, latency_p50, latency_p95, latency_p99, size, memory, power, "
            "throughput, quality or a quality's name. May be given several times.",
        ),
    ],
    study: StudyOption = None,
    baseline: BaselineOption = None,
    step: StepsOption = None,
    strict: Annotated[
        bool, grammar.Option("--strict", help="Fail too when a condition cannot be determined.")
    ] = False,
    assumptions: AssumptionsOption = None,
    ledger: LedgerOption = None,
    json: JsonOption = False,
) -> None:
    """Check changes against limits; exit code 1 when one is exceeded for sure."""
    from carbonlens.app.assumptions import load_assumptions
    from carbonlens.app.check import check
    from carbonlens.cli import check_view

    vector = None if assumptions is None else load_assumptions(assumptions)
    result = check(fail_if, study, ledger=ledger, vector=vector, baseline=baseline, steps=step or [])
    fails = bool(result.failed or (strict and result.undetermined))
    if json:
        check_view.print_as_json(result, fails=fails)
    else:
        check_view.print_as_text(result)
    if fails:
        raise grammar.Exit(FAILED)
