"""How a statement is printed: a table of sites, and what stands beside their energy."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator

from carbonlens.accounting.conversions import kwh_to_j
from carbonlens.accounting.statement import Statement
from carbonlens.accounting.statement_lines import Line
from carbonlens.app.statement import Made
from carbonlens.cli import output
from carbonlens.domain.counting import counted
from carbonlens.domain.estimate import Estimate, add
from carbonlens.reporting import format as fmt
from carbonlens.reporting.statement_json import statement_json

_MOST_LINES = 9
_MOST_PLACES = 3
_MOST_FINDINGS = 3
_NAME_WIDTH = 28
_WORDS = {"recorded": "", "at_least": ", lower bound", "metered": ", metered", "unattributed": ""}


def print_as_json(made: Made) -> None:
    """Print the whole statement with every figure."""
    payload = statement_json(made.statement)
    payload["ledger"] = made.ledger
    payload["inventory"] = made.inventory
    payload["example"] = made.example
    payload["factors_sha256"] = made.factors_sha256
    output.print_json(payload)


def print_as_text(made: Made) -> None:
    """Print the statement in about 25 lines, then the worst Findings on stderr."""
    statement = made.statement
    period = statement.period.name
    output.say(f"Statement of {period}" + (", DRAFT: the period is not closed" if made.is_draft else ""))
    entity = f"{statement.entity}: " if statement.entity else ""
    example = " (an example: its inventory is invented)" if made.example else ""
    _wrapped(f"{entity}{statement.heading}{example}")
    lines = statement.groups if statement.groups else statement.lines
    shown = lines[:_MOST_LINES]
    rows = [_row(_name(line, statement.label), line) for line in shown]
    rows.append(_row("total", statement.total))
    if statement.at_least is not None:
        rows.append(_row("beside it, lower bounds", statement.at_least))
    head = [statement.label or "site", "facility", "location-based", "market-based"]
    for text in output.table(head, rows):
        output.say(text)
    if len(lines) > len(shown):
        output.say(f"... and {counted(len(lines) - len(shown), 'more line')} (--json lists all)")
    for text in _beside(statement):
        _wrapped(text)
    output.print_findings(statement.findings, most=_MOST_FINDINGS)


def _beside(statement: Statement) -> Iterator[str]:
    kg = statement.total.estimate("location_kg")
    market = statement.total.estimate("market_kg")
    yield (
        f"Total location-based {output.figure(fmt.mass(kg), kg)}; market-based "
        f"{output.figure(fmt.mass(market), market)}"
        + (", provisional" if any(b.is_provisional for b in statement.blends) else "")
    )
    yield from _places(statement)
    yield from _scopes(statement)
    water = [statement.total.estimate(f"water_{name}_l") for name in ("site", "source")]
    yield f"Water at sites {fmt.plain(water[0], 'L').text}, at power plants {fmt.plain(water[1], 'L').text}"
    yield from _hardware(statement)
    if statement.cost.lines:
        totals = "; ".join(fmt.money(e).text for e in statement.cost.totals.values() if e.unit != "XXX")
        names = ", ".join(dict.fromkeys(line.name.replace("_", " ") for line in statement.cost.lines))
        yield f"Cost {totals or 'unknown'} ({names})"
    else:
        yield "Cost unknown: no price"
    for one in statement.reconciliations:
        found = (one.metered_kwh, one.recorded_kwh, one.difference_kwh)
        metered, recorded, rest = (fmt.energy(_joules(e)).text for e in found)
        which = f"{one.metered.site_id}, {one.metered.covers} meter"
        unused = "" if one.is_activity else " (not used)"
        yield f"{which}{unused}: {metered} at the facility, runs {recorded}, rest {rest}"
    shares = ", ".join(f"{g} {share:.0%}" for g, share in sorted(statement.grade_shares.items()))
    came = f"; deliveries: {statement.coverage.line}" if statement.coverage else ""
    yield f"Evidence grades of recorded energy: {shares or 'unknown'}{came}"


def _places(statement: Statement) -> Iterator[str]:
    values = {f.figure_id: f.estimate for f in statement.figures}
    named = [(n, t) for n, t in statement.terms.items() if any(x.site_id == n for x in statement.lines)]
    for name, terms in named[:_MOST_PLACES]:
        if not terms.input_ids:
            yield output.clip(f"{name}: {terms.place_name or 'place unknown'}, no factor", output.width())
            continue
        last = terms.input_ids[-1]
        rest = f" and {len(terms.input_ids) - 1} more" if len(terms.input_ids) > 1 else ""
        rate = values.get(last)
        value = "" if rate is None or rate.value is None else f" {rate.value:.4g} kg/kWh"
        yield output.clip(f"{name}: {terms.place_name},{value}, {last}{rest}", output.width())
    if len(named) > _MOST_PLACES:
        yield f"... and {counted(len(named) - _MOST_PLACES, 'more site')} (--json lists all)"


def _scopes(statement: Statement) -> Iterator[str]:
    for place in dict.fromkeys(total.place for total in statement.scopes):
        parts = []
        for total in statement.scopes:
            held = [e for e in (total.kg, total.at_least_kg) if e.state != "not_applicable"]
            if total.place == place:
                texts = [_short(fmt.mass(e).text) for e in held if e.value is not None]
                parts.append(f"{total.method} {' + '.join(texts) or 'unknown'}")
        yield f"{place.label[0].upper()}{place.label[1:]}: {', '.join(parts)}"


def _hardware(statement: Statement) -> Iterator[str]:
    if statement.capital is None and not statement.amortised:
        return
    parts = [p for a in statement.amortised for p in (a.used_kg, a.idle_kg, a.written_off_kg)]
    in_use = add(parts, "kg")
    bought = statement.capital.kg if statement.capital is not None else None
    told = "" if bought is None else f"bought {fmt.mass(bought).text} (scope 3 category 2), "
    yield f"Hardware: {told}amortised {fmt.mass(in_use).text}"


def _row(name: str, line: Line) -> list[str]:
    energy = fmt.energy(_joules(line.estimate("facility_kwh"))).text
    location, market = (fmt.mass(line.estimate(f"{m}_kg")).text for m in ("location", "market"))
    return [output.clip(name, _NAME_WIDTH), energy, _short(location), _short(market)]


def _name(line: Line, label: str | None) -> str:
    if label is not None and line.key.startswith("by."):
        return line.key.removeprefix(f"by.{label}.").removesuffix(".at_least") + _WORDS[line.kind]
    if line.kind == "unattributed":
        return "  of it unattributed"
    return f"{line.site_id}{_WORDS[line.kind]}"


def _short(text: str) -> str:
    """Return a mass without the words that the heading says."""
    return text.replace("\N{NO-BREAK SPACE}CO₂e", "")


def _joules(kwh: Estimate) -> Estimate:
    return kwh.scale(float(kwh_to_j(1)), "J")


def _wrapped(text: str) -> None:
    for line in textwrap.wrap(output.clean(text), output.width(), subsequent_indent="  "):
        output.say(line)
