"""``carbonlens compare``: which step saved how much, and how sure that is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from carbonlens.cli import grammar
from carbonlens.cli.compare_business import (
    BusinessOption,
    DiscountOption,
    HorizonOption,
    OneOffOption,
    RegimeOption,
    SeedOption,
    StartOption,
    UntilOption,
    options_of,
)
from carbonlens.cli.options import AssumptionsOption, JsonOption, LedgerOption, StudyOption

if TYPE_CHECKING:
    from carbonlens.app.business import BusinessOptions
    from carbonlens.domain.comparison import Comparison

BaselineOption = Annotated[
    str | None,
    grammar.Option(
        "--baseline",
        metavar="STEP|SEL",
        help="Step to compare with, instead of the study's, a step then; or a selector, [NAME:]KEY=VALUE,... "
        "with a key of study, step, run, job, on, workload, hardware, host, zone, site, role, tag.NAME.",
    ),
]
StepsOption = Annotated[
    list[str] | None,
    grammar.Option(
        "--step", metavar="STEP|SEL", help="Step to compare, in order, instead of the study's; or a selector."
    ),
]


def register(app: grammar.Commands) -> None:
    """Add the command."""
    app.add("compare", compare_command)


def compare_command(
    study: StudyOption = None,
    baseline: BaselineOption = None,
    step: StepsOption = None,
    gate: Annotated[
        list[str] | None,
        grammar.Option(
            "--gate",
            metavar="METRIC:KIND=LIMIT",
            help="Condition beside the study's: accuracy:max_loss=0.01, latency_p95:max_ratio=1.05, "
            "power:max_value=300. Metrics: a quality's name, latency_p50, latency_p95, latency_p99, size, "
            "memory, power, throughput, in ms, bytes, W, units a second. "
            "Kinds: max_loss, max_value, min_value, min_retention, max_ratio.",
        ),
    ] = None,
    margin: Annotated[
        float | None,
        grammar.Option("--margin", help="Relative change regarded as none, instead of the study's."),
    ] = None,
    volume: Annotated[
        str | None, grammar.Option("--volume", help='Expected units, for example "2e9 a year".')
    ] = None,
    assumptions: AssumptionsOption = None,
    ledger: LedgerOption = None,
    details: Annotated[
        bool,
        grammar.Option("--details", help="Print parts, gates, Pareto front and break-even of each step too."),
    ] = False,
    business: BusinessOption = None,
    horizon: HorizonOption = None,
    discount_rate: DiscountOption = None,
    start: StartOption = None,
    regime: RegimeOption = None,
    until: UntilOption = None,
    one_off: OneOffOption = None,
    seed: SeedOption = None,
    json: JsonOption = False,
) -> None:
    """Compare the steps of a study: savings with intervals, gates, decision."""
    from carbonlens.app.assumptions import load_assumptions
    from carbonlens.app.compare import compare
    from carbonlens.app.terms import parse_terms
    from carbonlens.cli import compare_view

    vector = None if assumptions is None else load_assumptions(assumptions)
    terms = parse_terms(margin, gate or [], volume)
    comparison = compare(
        study, ledger=ledger, vector=vector, baseline=baseline, steps=step or [], terms=terms
    )
    asked = options_of(business, horizon, discount_rate, start, regime, until, one_off, seed)
    if asked.asks:
        _print_business(comparison, asked, json=json)
    elif json:
        compare_view.print_as_json(comparison)
    else:
        compare_view.print_as_text(comparison, details=details)


def _print_business(comparison: Comparison, asked: BusinessOptions, *, json: bool) -> None:
    from carbonlens.app.business import business_of, business_result
    from carbonlens.cli import compare_business_view

    result = business_result(comparison, business_of(comparison, asked))
    if json:
        compare_business_view.print_as_json(comparison, result)
    else:
        compare_business_view.print_as_text(result)
