"""Sustainability changes: trends over quarters, intensities, the drivers' bridge, and initiatives."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from carbonlens.accounting.periods_compared import every_scope_key
from carbonlens.domain.drivers import Bridge, Drivers
from carbonlens.domain.figure import Figure
from carbonlens.reporting import drivers_lines
from carbonlens.reporting.block_charts import Bars, Kind, Mark
from carbonlens.reporting.content import Phrase, Row, label, phrase, quoted
from carbonlens.reporting.document import Block, Paragraph, TableBlock
from carbonlens.reporting.drivers_savings_json import RegisterLine, register_lines
from carbonlens.reporting.figures import Entry
from carbonlens.reporting.format import Printed
from carbonlens.reporting.names import clip
from carbonlens.reporting.sustainability_desk import (
    MOST_ROWS,
    Desk,
    cost_keys,
    currency_of,
    foreign,
    head_of,
    heading,
    table,
    text_column,
    undrawn,
)
from carbonlens.reporting.sustainability_input import Score
from carbonlens.reporting.sustainability_marks import bars, panel, said, trend
from carbonlens.reporting.sustainability_prints import by_id, cell, flat
from carbonlens.reporting.sustainability_units import axis_of

_MEASURES: Final = {
    "energy": "energy",
    "carbon-location": "location-based emissions",
    "carbon-market": "market-based emissions",
    "cost": "cost of electricity and more",
}
_QUANTITIES: Final = {
    "energy_kwh": "energy",
    "emissions_location_kg": "location-based",
    "emissions_market_kg": "market-based",
    "money": "money",
}
_PER_UNIT: Final = (("energy", "energy"), ("location", "location-based"), ("market", "market-based"))


def trend_blocks(desk: Desk) -> Iterator[Block]:
    """Yield the trend of totals and of intensities, with SCI."""
    yield heading("Trends and intensities")
    series = desk.given.compared.series
    wanted = [
        ("Energy of the facilities", "total.facility_kwh"),
        ("Every scope, location-based", every_scope_key("location")),
        ("Every scope, market-based", every_scope_key("market")),
        *((f"Cost, {currency_of(k)}", k) for k in cost_keys(desk)),
    ]
    panels = [panel(name, _over(desk, _whole(desk, key))) for name, key in wanted if key in series]
    yield from desk.picture(trend("trend", phrase("Totals by quarter"), panels))
    left = undrawn(desk, [(n, k) for n, k in wanted if k in series], [q.name for q in desk.given.quarters])
    if left:
        yield left
    yield from _intensities(desk)


def _whole(desk: Desk, key: str) -> list[tuple[str, Figure | None]]:
    """Return a line over the quarters; where a part of one is a lower bound, it would look like a fall."""
    found = desk.given.compared
    return [
        (q.name, found.series[key].by_period.get(q.name))
        for q in desk.given.quarters
        if not found.has_least(key, q.name)
    ]


def _over(desk: Desk, held: Sequence[tuple[str, Figure | None]]) -> list[tuple[str, Kind, Entry]]:
    last = desk.given.period
    return [(n, "actual" if n == last else "earlier", desk.prints.of(f)) for n, f in held if f is not None]


def _intensities(desk: Desk) -> Iterator[Block]:
    scores = desk.given.scores
    if not scores:
        yield Paragraph(
            text=phrase(
                "Intensities: no run of the quarter both counts its work and has a known energy of the "
                "facility, so there is none."
            )
        )
        return
    units = list(dict.fromkeys(s.unit for s in scores))
    panels = []
    for unit in units:
        for key, words in _PER_UNIT[:2]:
            held = [(s.period, s.figures.get(key)) for s in scores if s.unit == unit]
            panels.append(panel(f"{clip(unit, 20)}: {words} per unit", _over(desk, held)))
    yield from desk.picture(trend("intensities", phrase("Energy and emissions per unit of work"), panels))
    yield _intensity_table(desk, units)
    rows = list(_sci_rows(desk, units))
    if rows:
        names = [n for n in dict.fromkeys(s.period for s in scores) if any(_has_sci(s, n) for s in scores)]
        yield table(
            "SCI",
            "SCI, per one functional unit (operational and embodied, location-based)",
            "Functional unit",
            [head_of(desk, n) for n in names],
            rows,
            phrase(
                "A score of which an input is missing is unknown; what is known of it is its lower bound."
            ),
        )


def _has_sci(score: Score, name: str) -> bool:
    return score.period == name and "sci_score" in score.figures


def _intensity_table(desk: Desk, units: Sequence[str]) -> TableBlock:
    names = [q.name for q in desk.given.quarters]
    held = {(s.unit, s.period): s.figures for s in desk.given.scores}
    rows = []
    for unit in units:
        rows.append(_per_quarter(desk, phrase(quoted(clip(unit, 30)), ", units done"), unit, "count", held))
        for key, words in _PER_UNIT:
            rows.append(_per_quarter(desk, phrase(quoted(clip(unit, 30)), f", {words}"), unit, key, held))
    return table(
        "Intensities",
        "Work done, and what a unit of it took at the facility",
        "Unit and quantity",
        [head_of(desk, n) for n in names],
        rows,
        phrase("Runs that count no work are in no intensity; volumes of different units are never added."),
    )


def _per_quarter(
    desk: Desk, head: Phrase, unit: str, key: str, held: Mapping[tuple[str, str], Mapping[str, Figure]]
) -> Row:
    cells = []
    for quarter in desk.given.quarters:
        figure = held.get((unit, quarter.name), {}).get(key)
        if figure is not None and key == "count":
            number = figure.estimate.value
            made = desk.prints.count(figure.figure_id, figure.label, number or 0.0) if number else None
            cells.append(flat(made))
        else:
            cells.append(cell(None if figure is None else desk.prints.of(figure)))
    return Row(head=head, cells=tuple(cells))


def _sci_rows(desk: Desk, units: Sequence[str]) -> Iterator[Row]:
    for unit in units:
        own = [s for s in desk.given.scores if s.unit == unit and "sci_score" in s.figures]
        if not own:
            continue
        yield Row(
            head=phrase(quoted(clip(unit, 40))),
            cells=tuple(_sci(desk, s) for s in own),
        )


def _sci(desk: Desk, score: Score) -> tuple[Phrase, ...]:
    whole = desk.prints.of(score.figures["sci_score"])
    least = score.figures.get("sci_at_least")
    if whole.known or least is None:
        return cell(whole)
    bound = desk.prints.of(least)
    return (phrase(whole.text), phrase("known of it: ", bound.text))


def driver_blocks(desk: Desk) -> Iterator[Block]:
    """Yield the bridges from the quarter before, each a chart and together a table."""
    yield heading("Why it changed: drivers")
    drivers = desk.given.drivers
    if drivers is None:
        yield Paragraph(text=phrase("No bridge: ", quoted(clip(desk.given.no_drivers, 200)), "."))
        return
    rows = {b.key: _bridge_rows(desk, drivers, b) for b in drivers.bridges if not b.is_least}
    for bridge in drivers.bridges:
        if not bridge.is_least and bridge.measure in ("energy", "carbon-location"):
            yield from desk.picture(_bridge(drivers, bridge, rows[bridge.key]))
    if rows:
        yield _bridge_table(drivers, rows)


_Line = tuple[drivers_lines.Row, Entry]


def _bridge_rows(desk: Desk, drivers: Drivers, bridge: Bridge) -> list[_Line]:
    known = by_id(drivers.figures)
    at = f"{drivers.prefix}.{bridge.key}"
    found = []
    before, after = (desk.prints.said(e) for e in (bridge.before, bridge.after))
    ends = drivers_lines.ends_of(bridge, before, after)
    for row in drivers_lines.rows(bridge, (drivers.against, drivers.period), at, ends):
        if row.figure_id in known:
            printed = Printed(text=row.number, number=row.number, interval=row.interval)
            found.append((row, desk.prints.entered(known[row.figure_id], printed)))
    return found


def _bridge(drivers: Drivers, bridge: Bridge, rows: Sequence[_Line]) -> Bars | None:
    drawn = [(r, e) for r, e in rows if r.kind != "remainder" and e.printed.figure.estimate.value is not None]
    effects = [e.printed.figure.estimate for r, e in drawn if r.kind == "effect"]
    if not effects:
        return None
    scale, factor = axis_of(effects)
    marks = []
    for row, entry in drawn:
        estimate = entry.printed.figure.estimate
        value = (estimate.value or 0.0) * factor
        start = row.start * factor if row.kind == "effect" else 0.0
        kind: Kind = "end" if row.kind == "end" else "rise" if value > 0 else "fall"
        ends = [None if b is None else start + b * factor for b in (estimate.low, estimate.high)]
        marks.append(
            Mark(
                name=clip(row.name, 34),
                kind=kind,
                value=value,
                start=start,
                figure_id=entry.figure_id,
                text=entry.printed.text,
                interval=entry.printed.interval,
                factor=factor,
                low=ends[0],
                high=ends[1],
            )
        )
    words = _MEASURES[bridge.measure]
    title = phrase(f"From the {words} of ", label(drivers.against), " to that of ", label(drivers.period))
    return Bars(
        name=f"bridge-{bridge.measure}",
        title=title,
        alt=f"Bridge of {words}. {said(marks)}",
        marks=tuple(marks),
        axis=f"{scale.unit}; the bars of both totals are cut off",
    )


def _bridge_table(drivers: Drivers, rows: Mapping[str, Sequence[_Line]]) -> TableBlock:
    """Return one row a driver, one column a measure: the sum of a column is its last row."""
    names = list(dict.fromkeys((r.kind != "effect", r.name) for held in rows.values() for r, _ in held))
    effects = [n for is_other, n in names if not is_other]
    order = [drivers.against, *effects, "remainder (rounding)", drivers.period]
    made = []
    for name in order:
        cells = []
        for held in rows.values():
            entry = next((e for r, e in held if r.name == name), None)
            cells.append(cell(entry))
        is_end = name in (drivers.against, drivers.period)
        made.append(
            Row(head=phrase(label(name)) if is_end else foreign(name), cells=tuple(cells), total=is_end)
        )
    bridges = {b.key: b for b in drivers.bridges}
    heads = [phrase(_head(bridges[key])) for key in rows]
    return table(
        "Drivers",
        phrase("What drove the change from ", label(drivers.against), " to ", label(drivers.period)),
        "Driver",
        heads,
        made,
        phrase(
            "Grid, price and place are lines of their own: none of them is claimed as efficiency. Split by ",
            quoted(" and ".join(dict.fromkeys(b.method.upper() for b in drivers.bridges))),
            "; each column adds up to its last row.",
        ),
    )


def _head(bridge: Bridge) -> str:
    words = {"carbon-location": "Location-based", "carbon-market": "Market-based"}
    said = words.get(bridge.measure, bridge.measure.capitalize())
    return f"{said}, {bridge.unit}" if bridge.measure == "cost" else said


def register_blocks(desk: Desk) -> Iterator[Block]:
    """Yield the initiatives: what is claimed beside what was found."""
    yield heading("Initiatives: claimed and measured")
    register = desk.given.register
    if register is None:
        yield Paragraph(text=phrase("No register: ", quoted(clip(desk.given.no_register, 200)), "."))
        return
    known = by_id(register.figures)
    rows, marks = [], []
    for line in register_lines(register)[:MOST_ROWS]:
        claimed, found = (
            None if i is None or i not in known else desk.prints.of(known[i]) for i in line.figures
        )
        rows.append(_initiative(line, claimed, found))
        if line.name == "energy_kwh":
            pairs: tuple[tuple[str, Kind, Entry | None], ...] = (
                (f"{clip(line.initiative_id, 22)}, claimed", "stated", claimed),
                (f"{clip(line.initiative_id, 22)}, found", "actual", found),
            )
            marks += [(n, k, e) for n, k, e in pairs if e is not None]
    yield table(
        "Initiatives",
        phrase("Initiatives in effect in ", label(register.period), ": claimed, and found by measurement"),
        "Initiative",
        [text_column("Quantity"), "Claimed of the quarter", "Found", text_column("Verdict")],
        rows,
        phrase("Found: the baseline at this quarter’s volume and mix, less what was measured."),
    )
    yield from desk.picture(
        bars("register", phrase("Savings of energy, claimed (outlined) and found"), marks)
    )


def _initiative(line: RegisterLine, claimed: Entry | None, found: Entry | None) -> Row:
    is_claimed = line.claimed is not None
    # The verdict of an initiative is one on what it claims.
    verdict = phrase(quoted(line.verdict), ": ", quoted(clip(line.reason, 160)))
    verdict = verdict if is_claimed else phrase("nothing claimed")
    return Row(
        head=foreign(line.title),
        cells=(
            (phrase(_QUANTITIES.get(line.name, line.name.replace("_", " "))),),
            flat(claimed),
            cell(found),
            (verdict,),
        ),
        mark="" if line.verdict == "confirmed" or not is_claimed else "open",
    )
