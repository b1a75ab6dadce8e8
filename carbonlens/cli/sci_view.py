"""How a score is printed: the score, then each component with its inputs."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from typing import Any, Final

from carbonlens.accounting.conversions import kwh_to_j
from carbonlens.app.sci import Scored
from carbonlens.app.sci_component import Built, Input
from carbonlens.cli import output
from carbonlens.domain.counting import counted
from carbonlens.domain.estimate import Estimate
from carbonlens.reporting import format as fmt
from carbonlens.reporting.statement_json import figure_json

SCHEMA: Final = "carbonlens/sci/1"

_MOST_COMPONENTS: Final = 4
_MOST_FINDINGS: Final = 4
_RULES: Final = "ISO/IEC 21031"
_RULES_AI: Final = "SCI for AI"


def print_as_json(scored: Scored) -> None:
    """Print score, inputs and figures."""
    made = scored.sci
    output.print_json(
        {
            "schema": SCHEMA,
            "method": _RULES if scored.role is None else _RULES_AI,
            "scope": scored.scope,
            "role": scored.role,
            "normalisation": None if scored.role is None else scored.normalisation,
            "unit": {
                "name": made.unit.name,
                "per": made.unit.per,
                "label": made.unit.label,
                "rationale": made.unit.rationale or None,
            },
            "score_g": {**scored.score.as_json(), "id": f"{scored.prefix}.score"},
            "at_least_g": None
            if scored.at_least is None
            else {**scored.at_least.as_json(), "id": f"{scored.prefix}.at_least"},
            "missing": made.missing,
            "intensity_basis": "location",
            "operational_kg": {**made.operational_kg.as_json(), "id": f"{scored.prefix}.operational_kg"},
            "embodied_kg": {**made.embodied_kg.as_json(), "id": f"{scored.prefix}.embodied_kg"},
            "count": {
                **made.count.as_json(),
                "id": f"{scored.prefix}.count",
                "evidence": _evidence_of_count(scored),
                "source": scored.boundary.how or scored.boundary.missing,
            },
            "components": [_component(scored, n, built) for n, built in enumerate(scored.built, 1)],
            "ledger": scored.ledger,
            "figures": [figure_json(f) for f in scored.figures],
            "findings": scored.findings,
        }
    )


def print_as_text(scored: Scored) -> None:
    """Print the score and its inputs, then the Findings on stderr."""
    made = scored.sci
    rules = _RULES if scored.role is None else f"{_RULES_AI}, {scored.role}, {scored.normalisation}"
    output.say(f"SCI of {scored.scope} ({rules})")
    label = made.unit.label
    if made.missing:
        bound = (
            "" if scored.at_least is None else f"; what is known comes to {_grams(scored.at_least, label)}"
        )
        _wrapped(f"Score unknown: {', '.join(made.missing)} missing{bound}")
    else:
        _wrapped(f"Score {_grams(scored.score, label)}")
    if made.unit.rationale:
        _wrapped(f"Unit: {label}, because {made.unit.rationale}")
    for text in _body(scored):
        _wrapped(text)
    output.print_findings(scored.findings, most=_MOST_FINDINGS)


def _body(scored: Scored) -> Iterator[str]:
    made = scored.sci
    o, m = made.operational_kg, made.embodied_kg
    yield f"O {output.figure(fmt.mass(o), o)}; M {output.figure(fmt.mass(m), m)}"
    if made.count.value is None:
        yield f"R {made.unit.plural}: missing, {scored.boundary.missing}"
    else:
        evidence = f"{_evidence_of_count(scored)}, {scored.boundary.how}"
        yield f"R {made.count.value:.15g} {made.unit.plural} ({evidence})"
    for built in scored.built[:_MOST_COMPONENTS]:
        what = "runs of role" if scored.role is None else "stage"
        yield f"At {built.site_id}, {what} {built.part}:"
        for one in built.inputs:
            symbol = "E facility" if one.symbol == "E" else one.symbol
            came = one.source or one.name
            told = came if one.estimate.value is None else f"{one.evidence}: {came}"
            yield f"  {symbol} {_amount(one)} ({told})"
    rest = len(scored.built) - _MOST_COMPONENTS
    if rest > 0:
        yield f"... and {counted(rest, 'more component')} (--json lists all)"
    yield "I is location-based: certificates, contracts and offsets do not lower it."


def _component(scored: Scored, number: int, built: Built) -> dict[str, Any]:
    at, held = f"{scored.prefix}.component_{number}", built.component
    return {
        "name": held.name,
        "part": built.part,
        "site": built.site_id,
        "energy_kwh": {**held.energy_kwh.as_json(), "id": f"{at}.energy_kwh"},
        "intensity_kg_per_kwh": held.intensity.rate.as_json(),
        "factors": held.intensity.input_ids,
        "operational_kg": {**held.operational_kg.as_json(), "id": f"{at}.operational_kg"},
        "embodied_kg": {**held.embodied_kg.as_json(), "id": f"{at}.embodied_kg"},
        "hardware": [
            {
                "name": share.name,
                "te_kg": share.total_kg.as_json(),
                "te_source": share.how,
                "tir_h": share.reserved_h,
                "el_h": share.life_h,
                "rr": share.reserved,
                "tor": share.available,
                "m_kg": share.kg.as_json(),
            }
            for share in held.embodied
        ],
        "inputs": [
            {
                "symbol": one.symbol,
                "name": one.name,
                "estimate": one.estimate.as_json(),
                "evidence": one.evidence,
                "source": one.source,
            }
            for one in built.inputs
        ],
    }


def _evidence_of_count(scored: Scored) -> str:
    if scored.sci.count.value is None:
        return "missing"
    return "stated" if scored.boundary.is_stated else "measured"


def _grams(score: Estimate, label: str) -> str:
    kg = score.scale(1e-3, "kg")
    return f"{output.figure(fmt.mass(kg), kg)} per {label}"


def _amount(one: Input) -> str:
    held = one.estimate
    if held.value is None:
        return "unknown"
    if held.unit == "kWh":
        joules = held.scale(float(kwh_to_j(1)), "J")
        return output.figure(fmt.energy(joules), joules)
    if held.unit == "kg":
        return output.figure(fmt.mass(held), held)
    in_part = " in part" if held.state != "known" else ""
    return f"{held.value:.4g}{'' if held.unit == '1' else ' ' + held.unit}{in_part}"


def _wrapped(text: str) -> None:
    indent = "    " if text.startswith("  ") else "  "
    for line in textwrap.wrap(output.clean(text), output.width(), subsequent_indent=indent):
        output.say(line)
