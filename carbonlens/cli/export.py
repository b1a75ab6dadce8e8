"""``carbonlens export``: snippets for model cards, forms, papers, merge requests and READMEs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from carbonlens.cli import grammar
from carbonlens.cli.factors import FactorsOption
from carbonlens.cli.options import AssumptionsOption, JsonOption, LedgerOption
from carbonlens.cli.prices import InventoryOption

if TYPE_CHECKING:
    from carbonlens.app.export import Exported


def register(app: grammar.Commands) -> None:
    """Add the command."""
    app.add("export", export_command)


def export_command(
    kind: Annotated[
        Literal["model-card", "ai-act", "sci", "latex", "pr", "badge"],
        grammar.Argument(help="What to write."),
    ],
    study: Annotated[
        str | None,
        grammar.Option(
            "--study", metavar="S", help="A study's name in the ledger (or a .toml).", is_path=True
        ),
    ] = None,
    step: Annotated[
        str | None, grammar.Option("--step", metavar="S", help="model-card, ai-act, sci: one step.")
    ] = None,
    role: Annotated[
        list[str] | None,
        grammar.Option(
            "--role", metavar="R", help="model-card, ai-act: roles of the runs [training, effort]."
        ),
    ] = None,
    unit: Annotated[str | None, grammar.Option("--unit", metavar="U", help="sci: functional unit.")] = None,
    training_type: Annotated[
        str | None,
        grammar.Option("--training-type", metavar="T", help="model-card: pre-training, fine-tuning."),
    ] = None,
    flop: Annotated[
        float | None,
        grammar.Option("--flop", metavar="N", help="ai-act: operations of the training, as stated."),
    ] = None,
    assumptions: AssumptionsOption = None,
    inventory: InventoryOption = None,
    factors: FactorsOption = None,
    output: Annotated[
        Path | None, grammar.Option("-o", "--output", metavar="FILE", help="Write there [stdout].")
    ] = None,
    ledger: LedgerOption = None,
    json: JsonOption = False,
) -> None:
    """Write a snippet: co2_eq_emissions of a model card, EU AI Act energy, SCI, LaTeX, PR comment, badge."""
    from carbonlens.app.assumptions import load_assumptions
    from carbonlens.app.export import OF_RUNS, SCHEMA, export_runs, export_study
    from carbonlens.cli import output as out
    from carbonlens.reporting.snippet_card import CardTerms

    vector = None if assumptions is None else load_assumptions(assumptions)
    if kind in OF_RUNS:
        terms = CardTerms(training_type=training_type, flop=flop)
        made = export_runs(
            kind, study=study, step=step, roles=role or (), vector=vector, terms=terms, ledger=ledger
        )
    elif kind == "sci":
        made = _sci(unit, study=study, step=step, inventory=inventory, factors=factors, ledger=ledger)
    else:
        made = export_study(kind, study, vector=vector, ledger=ledger)
    if json:
        out.print_json({"schema": SCHEMA, "kind": made.kind, "text": made.text, "findings": made.findings})
        return
    if output is None:
        out.print_text(made.text)
    else:
        _write(output, made.text)
    out.print_findings(made.findings, most=len(made.findings))


def _sci(unit: str | None, **where: str | Path | None) -> Exported:
    from carbonlens.app.export import Exported
    from carbonlens.app.export_sci import sci_statement
    from carbonlens.app.sci import make_sci
    from carbonlens.errors import UsageError

    if unit is None:
        raise UsageError("a score is per functional unit", where="sci", mend="give --unit request")
    scored = make_sci(unit, **where)  # type: ignore[arg-type]  # study and step are texts, the others places
    return Exported(kind="sci", text=sci_statement(scored), findings=scored.findings)


def _write(file: Path, text: str) -> None:
    from carbonlens.cli import output as out
    from carbonlens.errors import UnwritableError
    from carbonlens.ledger.store import write_atomically

    try:
        write_atomically(file, text.encode("utf-8"))
    except OSError as error:
        raise UnwritableError(
            f"cannot be written ({error.strerror or error})", where=str(file), mend="give another file"
        ) from error
    out.say(f"saved {file}")
