"""Use case: an SCI statement as Markdown: score, boundary, method and every input (ISO/IEC 21031, 4)."""

from __future__ import annotations

from carbonlens.app.sci import Scored
from carbonlens.app.sci_component import Built, Input
from carbonlens.domain.estimate import Estimate
from carbonlens.render.markdown import escaped
from carbonlens.reporting import format as fmt


def sci_statement(scored: Scored) -> str:
    """Return the statement.

    Args:
        scored: A score with its inputs.
    """
    made = scored.sci
    method = "ISO/IEC 21031" if scored.role is None else f"SCI for AI, {scored.role}, {scored.normalisation}"
    lines = [f"# Software Carbon Intensity of {escaped(scored.scope)}", ""]
    lines += [f"**Score**: {_score(scored)}", ""]
    lines.append(f"- **Method**: {method}; SCI = (O + M) per R, O = E × I")
    lines.append(f"- **Functional unit (R)**: {escaped(made.unit.label)}{_because(made.unit.rationale)}")
    if made.count.value is not None:
        lines.append(f"- **Count of R**: {made.count.value:.15g} ({escaped(scored.boundary.how or '')})")
    lines.append(f"- **O, operational**: {_printed(fmt.mass, made.operational_kg)}")
    lines.append(f"- **M, embodied**: {_printed(fmt.mass, made.embodied_kg)}")
    lines.append("- **I** is location-based: certificates, contracts and offsets do not lower it")
    lines += ["", "| Component | Input | Value | Evidence | Source |", "|---|---|---:|---|---|"]
    for built in scored.built:
        lines += [_row(built, one) for one in built.inputs]
    if scored.findings:
        lines += ["", *(f"- {f.code}: {escaped(f.message)}" for f in scored.findings if f.severity != "info")]
    return "\n".join(lines) + "\n"


def _score(scored: Scored) -> str:
    made = scored.sci
    if not made.missing:
        return f"{_grams(scored.score)} per {escaped(made.unit.label)}"
    known = "" if scored.at_least is None else f"; what is known comes to {_grams(scored.at_least)} or more"
    return f"unknown, because {escaped(', '.join(made.missing))} missing{known}"


def _grams(grams: Estimate) -> str:
    return _printed(fmt.mass, grams.scale(1e-3, "kg"))


def _row(built: Built, one: Input) -> str:
    where = escaped(f"{built.site_id}, {built.part}")
    name = escaped(f"{one.symbol} {one.name}")
    cells = (where, name, _value(one.estimate), escaped(one.evidence), escaped(one.source or ""))
    return f"| {' | '.join(cells)} |"


def _value(estimate: Estimate) -> str:
    quantity = {"kg": fmt.mass, "J": fmt.energy, "s": fmt.duration}.get(estimate.unit)
    if quantity is not None:
        return _printed(quantity, estimate)
    if estimate.unit == "kWh":
        return _printed(fmt.energy, estimate.scale(3.6e6, "J"))
    printed = fmt.plain(estimate, "" if estimate.unit == "1" else estimate.unit)
    return escaped(f"{printed.text} {printed.interval}".strip())


def _printed(quantity: fmt.Quantity, estimate: Estimate) -> str:
    printed = quantity(estimate)
    return f"{printed.text} {printed.interval}".strip().replace("\u202f", " ").replace("\u00a0", " ")


def _because(rationale: str) -> str:
    return f", because {escaped(rationale)}" if rationale else ""
