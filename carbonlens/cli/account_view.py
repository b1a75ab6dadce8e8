"""How a statement is printed: a table of sites, and what stands beside their energy."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence

from carbonlens.accounting.amounts import NO_CURRENCY
from carbonlens.accounting.cost import Cost
from carbonlens.accounting.group_bills import sums_of
from carbonlens.accounting.statement import Statement
from carbonlens.accounting.statement_lines import Line
from carbonlens.app.statement import Made
from carbonlens.cli import hourly_view, initiative_view, output
from carbonlens.domain.counting import counted
from carbonlens.domain.estimate import Estimate, add
from carbonlens.reporting import format as fmt
from carbonlens.reporting.statement_columns import TOTAL, Columns, Costs, columns_of, costs_of, sum_of
from carbonlens.reporting.statement_json import statement_json

_MOST_LINES = 9
_MOST_PLACES = 3
_MOST_FINDINGS = 3
_MOST_PIECES = 2
_BASES = {"calendar_hour": "per calendar hour", "used_hour": "per expected hour of use"}
_NAME_WIDTH = 28
_CAUSES = {"CL480", "CL481"}
_NOT_OF_CLOSE = {"CL469": "inventory files", "CL400": "factors"}
_WORDS = {"recorded": "", "at_least": ", lower bound", "metered": ", metered", "unattributed": ""}
_METERED_LEAST = ", metered, lower bound"


def print_as_json(made: Made) -> None:
    """Print the whole statement with every figure."""
    payload = statement_json(made.statement)
    payload["hourly_matching"] = hourly_view.as_json(made.hourly)
    payload["ledger"] = made.ledger
    payload["label"] = made.label
    payload["inventory"] = made.inventory
    payload["inventory_sha256"] = made.inventory_sha256
    payload["inventory_snapshots"] = made.snapshots
    payload["example"] = made.example
    payload["factors_sha256"] = made.factors_sha256
    output.print_json(payload)


def print_as_text(made: Made, *, hourly: bool = False) -> None:
    """Print the statement in about 25 lines, then the worst Findings on stderr.

    Args:
        made: The statement.
        hourly: Whether the hourly matching is printed in full, or why there is none.
    """
    statement = made.statement
    period = statement.period.name
    output.say(f"Statement of {period}{output.of_period(made.label)}")
    entity = f"{statement.entity}: " if statement.entity else ""
    example = " (an example: its inventory is invented)" if made.example else ""
    _wrapped(f"{entity}{statement.heading}{example}")
    lines = statement.groups or statement.lines
    shown = lines[:_MOST_LINES]
    if statement.groups:
        # What no run explains is of no group, and a part of the total.
        lines = (*lines, *statement.unattributed)
        shown = (*shown, *statement.unattributed[:_MOST_PLACES])
    columns = columns_of(statement)
    rows = [_row(_name(line, statement.label), line, columns) for line in shown]
    rows.append(_row("total", statement.total, columns))
    if statement.at_least is not None:
        rows.append(_row("beside it, lower bounds", statement.at_least, columns))
    head = [statement.label or "site", "facility", "location-based", "market-based"]
    for text in output.table(head, rows):
        output.say(text)
    if len(lines) > len(shown):
        output.say(f"... and {counted(len(lines) - len(shown), 'more line')} (--json lists all)")
    for text in _beside(statement, columns):
        _wrapped(text)
    for text in hourly_view.lines(made.hourly, in_full=hourly):
        _wrapped(text)
    held = "no inventory" if made.inventory_sha256 is None else f"inventory {made.inventory_sha256[:12]}"
    codes = {f.code for f in statement.findings}
    other = [words for code, words in _NOT_OF_CLOSE.items() if code in codes]
    told = f" ({' and '.join(other)} not those of the close)" if other else ""
    _wrapped(f"Made with {held}, factors {made.factors_sha256[:12]}{told}; rounded to add up")
    # What is unknown because of its place is told by the place: the cause stands first.
    found = sorted(statement.findings, key=lambda f: f.code not in _CAUSES)
    output.print_findings(found, most=_MOST_FINDINGS)


def _beside(statement: Statement, columns: Columns) -> Iterator[str]:
    kg = statement.total.estimate("location_kg")
    market = statement.total.estimate("market_kg")
    of_location, of_market = (columns.printed(n, statement.total) for n in ("location_kg", "market_kg"))
    sites = list(dict.fromkeys(x.site_id for x in statement.beside))
    more = f" and {len(sites) - _MOST_PLACES} more" if len(sites) > _MOST_PLACES else ""
    without = f" without {', '.join(sites[:_MOST_PLACES])}{more} (lower bounds)" if sites else ""
    yield (
        f"Total{without} location-based {output.figure(of_location, kg)}; market-based "
        f"{output.figure(of_market, market)}"
        + (", provisional" if any(b.is_provisional for b in statement.blends) else "")
    )
    yield from _places(statement)
    yield from _scopes(statement, columns)
    water = [statement.total.estimate(f"water_{name}_l") for name in ("site", "source")]
    yield f"Water at sites {fmt.plain(water[0], 'L').text}, at power plants {fmt.plain(water[1], 'L').text}"
    yield from _hardware(statement)
    yield from _cost(statement)
    yield from initiative_view.lines(statement)
    for one in statement.reconciliations:
        metered, recorded, rest = (p.text for p in columns.reconciled(one))
        which = f"{one.metered.site_id}, {one.metered.covers} meter"
        unused = "" if one.is_activity else " (not used)"
        yield f"{which}{unused}: {metered} at the facility, runs {recorded}, rest {rest}"
    shares = ", ".join(f"{g} {share:.0%}" for g, share in sorted(statement.grade_shares.items()))
    came = f"; deliveries: {statement.coverage.line}" if statement.coverage else ""
    yield f"Evidence grades of recorded energy: {shares or 'unknown'}{came}"


def _cost(statement: Statement) -> Iterator[str]:
    cost, in_one = statement.cost, statement.reported_cost
    if not cost.lines:
        yield "Cost unknown: no price"
        return
    costs = costs_of(cost)
    totals = "; ".join(costs.text(TOTAL, e) for e in cost.totals.values() if e.unit != NO_CURRENCY)
    rest = [line.amount for line in cost.lines if line.name == "unallocated"]
    told = f"; carried by no run {'; '.join(costs.text('unallocated', e) for e in rest)}" if rest else ""
    yield f"Cost {totals or 'unknown'} ({', '.join(_parts_of(cost, costs))}){told}"
    for currency, bills in sums_of(statement.bills).items():
        held = costs.groups(currency, bills)
        each = [f"{b.value} {held.printed(b.key, b.line.amount).text}" for b in bills[:_MOST_LINES]]
        more = f" and {len(bills) - _MOST_LINES} more" if len(bills) > _MOST_LINES else ""
        yield f"Bills by {statement.label}: {', '.join(each)}{more}"
    for site in dict.fromkeys(line.site_id for line in cost.lines if line.part is not None):
        parts = [(n, x) for n, x in enumerate(cost.lines) if x.part is not None and x.site_id == site]
        yield f"Electricity bill of {site}: " + ", ".join(
            f"{x.part} {costs.text(f'bill:{n}', x.amount)}" for n, x in parts
        )
    if in_one is not None and in_one.how:
        yield f"Cost in {in_one.currency}: {fmt.money(in_one.total).text}, at {'; '.join(in_one.how)}"
    elif in_one is not None and set(cost.totals) - {in_one.currency, NO_CURRENCY}:
        yield f"Cost in {in_one.currency}: {fmt.money(in_one.total).text}, no exchange rate"
    if in_one is not None and in_one.real is not None:
        yield f"Cost {in_one.real_how}: {fmt.money(in_one.real).text}"


def _parts_of(cost: Cost, costs: Costs) -> Iterator[str]:
    """Yield what a cost is made of, each part with its amount."""
    for name in dict.fromkeys(line.name for line in cost.lines):
        units = dict.fromkeys(line.currency for line in cost.lines if line.name == name)
        sums = {unit: sum_of(cost, name, unit) for unit in units}
        texts = [
            costs.text(name, e) for unit, e in sums.items() if unit != NO_CURRENCY and e.value is not None
        ]
        texts += ["unknown"] if len(texts) < len(sums) else []
        yield f"{name.replace('_', ' ')} {' + '.join(texts)}"


def _places(statement: Statement) -> Iterator[str]:
    values = {f.figure_id: f.estimate for f in statement.figures}
    named = [(n, t) for n, t in statement.terms.items() if any(x.site_id == n for x in statement.lines)]
    for name, terms in named[:_MOST_PLACES]:
        if not terms.input_ids:
            yield output.clip(f"{name}: {terms.place_name or 'place unknown'}, no factor", output.width())
            continue
        last = terms.input_ids[-1]
        rest = f" and {len(terms.input_ids) - 1} more" if len(terms.input_ids) > 1 else ""
        rate = values[last].value if last in values else None
        if rest:
            rate = _mean_rate([x for x in statement.lines if x.site_id == name])
        value = "" if rate is None else f" {rate:.4g} kg/kWh{' on average' if rest else ''}"
        yield output.clip(f"{name}: {terms.place_name},{value}, {last}{rest}", output.width())
    if len(named) > _MOST_PLACES:
        yield f"... and {counted(len(named) - _MOST_PLACES, 'more site')} (--json lists all)"


def _mean_rate(lines: Sequence[Line]) -> float | None:
    """Return kg per kWh over the lines of a site, of those that tell both."""
    whole = [x for x in lines if x.kind == "metered"] or [x for x in lines if x.kind != "unattributed"]
    pairs = [(x.estimate("location_kg").value, x.estimate("facility_kwh").value) for x in whole]
    known = [(kg, kwh) for kg, kwh in pairs if kg is not None and kwh]
    return sum(kg for kg, _ in known) / sum(kwh for _, kwh in known) if known else None


def _scopes(statement: Statement, columns: Columns) -> Iterator[str]:
    for place in dict.fromkeys(total.place for total in statement.scopes):
        parts = []
        for total in statement.scopes:
            held = [e for e in (total.kg, total.at_least_kg) if e.state != "not_applicable"]
            if total.place == place:
                texts = [_short(columns.scope(total, e)) for e in held if e.value is not None]
                parts.append(f"{total.method} {' + '.join(texts) or 'unknown'}")
        yield f"{place.label[0].upper()}{place.label[1:]}: {', '.join(parts)}"


def _hardware(statement: Statement) -> Iterator[str]:
    if statement.capital is None and not statement.amortised:
        return
    parts = [p for a in statement.amortised for p in (a.used_kg, a.idle_kg, a.written_off_kg)]
    in_use = add(parts, "kg")
    bought = statement.capital.kg if statement.capital is not None else None
    told = "" if bought is None else f"bought {fmt.mass(bought).text} (scope 3 category 2), "
    basis = ", ".join(dict.fromkeys(_BASES[a.basis] for a in statement.amortised))
    idle = add([a.idle_kg for a in statement.amortised], "kg")
    rest = "" if idle.value is None else f", of it idle {_of_it(idle, in_use)}"
    yield f"Hardware: {told}amortised {fmt.mass(in_use).text}{rest}" + (f" ({basis})" if basis else "")
    pieces = {a.asset.hardware: a for a in statement.amortised}
    for name, one in list(pieces.items())[:_MOST_PIECES]:
        yield f"Making one {name}: {fmt.mass(one.each_kg).text}, {one.how}"
    if len(pieces) > _MOST_PIECES:
        yield f"... and {counted(len(pieces) - _MOST_PIECES, 'more kind')} of hardware (--json lists all)"


def _of_it(part: Estimate, whole: Estimate) -> str:
    """Return a part of a mass with the unit and decimals of the whole: rounded alike it is never more."""
    scale = fmt.mass_scale(whole.value)
    value, low, high = (None if x is None else x * scale.factor for x in (whole.value, whole.low, whole.high))
    places = fmt.decimal_places(value or 0.0, low, high)
    return f"{fmt.fixed((part.value or 0.0) * scale.factor, places)} {scale.unit}"


def _row(name: str, line: Line, columns: Columns) -> list[str]:
    energy, location, market = (columns.text(n, line) for n in ("facility_kwh", "location_kg", "market_kg"))
    return [output.clip(name, _NAME_WIDTH), energy, _short(location), _short(market)]


def _name(line: Line, label: str | None) -> str:
    if label is not None and line.key.startswith("by."):
        return line.key.removeprefix(f"by.{label}.").removesuffix(".at_least") + _WORDS[line.kind]
    if line.kind == "unattributed":
        return "  of it unattributed" if label is None else f"unattributed at {line.site_id}"
    is_least = line.kind == "metered" and line.is_lower_bound
    return f"{line.site_id}{_METERED_LEAST if is_least else _WORDS[line.kind]}"


def _short(text: str) -> str:
    """Return a mass without the words that the heading says."""
    return text.replace("\N{NO-BREAK SPACE}CO₂e", "")


def _wrapped(text: str) -> None:
    for line in textwrap.wrap(output.clean(text), output.width(), subsequent_indent="  "):
        output.say(line)
