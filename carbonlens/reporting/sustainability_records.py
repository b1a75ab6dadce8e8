"""Sustainability records: hardware, data quality, deliveries, meters and bills, restatements."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from carbonlens.accounting.base_year import Recalculation
from carbonlens.accounting.cost import CostLine
from carbonlens.accounting.reconciliation import Reconciliation
from carbonlens.accounting.restatement import Restated, source_name
from carbonlens.domain.counting import counted
from carbonlens.domain.estimate import Estimate
from carbonlens.domain.figure import Figure
from carbonlens.reporting.content import Phrase, Row, label, phrase, quoted
from carbonlens.reporting.document import Block, Bullets, Paragraph, TableBlock
from carbonlens.reporting.figures import Entry
from carbonlens.reporting.names import clip
from carbonlens.reporting.sustainability_desk import Desk, foreign, heading, table, text_column
from carbonlens.reporting.sustainability_input import Restating, findings_of
from carbonlens.reporting.sustainability_prints import cell, flat
from carbonlens.reporting.sustainability_sums import TOTAL, exact_money, is_exact

_MOST: Final = 60
"""Rows of a table of records: the largest, the rest counted in its note."""

_ASSET: Final = "asset:"
"""How ids of assets begin among the inputs of a line of cost."""

_METERED: Final = ("metered_kwh", "recorded_kwh", "difference_kwh")

_STATED: Final = "statement."
"""How ids of figures begin that a statement prints: others are what they rest on."""


def embodied_blocks(desk: Desk) -> Iterator[Block]:
    """Yield hardware bought and in use."""
    yield heading("Embodied emissions of hardware")
    statement = desk.given.current
    bought = desk.figures.get(f"statement.{desk.given.period}.capital_goods_kg")
    if bought is not None:
        yield Paragraph(
            text=phrase(
                "Bought in the quarter (scope ", label("3 category 2"), "): ", desk.prints.of(bought).full
            )
        )
    if not statement.amortised:
        yield Paragraph(text=phrase("No hardware is declared: its embodied emissions are unknown."))
        return
    rows = []
    for one in statement.amortised[:_MOST]:
        at = f"{one.asset.asset_id}.amortised"
        names = ("embodied_each_kg", "used_kg", "idle_kg", "written_off_kg")
        figures = [desk.of_line(at, name) for name in names]
        cells = [_amount(desk, f) for f in figures]
        head = phrase(quoted(clip(one.asset.asset_id, 30)), ": ", quoted(clip(one.asset.hardware, 40)))
        rows.append(Row(head=head, cells=(*cells, (foreign(one.how, 90),))))
    yield table(
        "Hardware",
        "Hardware in use, its embodied emissions spread over its life",
        "Asset",
        ["One piece", "Used", "Idle", "Written off", text_column("Source of the figure")],
        rows,
        phrase(*_left(desk, "hardware", len(statement.amortised) - len(rows), "asset"),
               "Spread amounts are beside the scopes: scope ", label("3 category 2"),
               " books hardware whole in the year it is bought."),
    )  # fmt: skip


def _amount(desk: Desk, figure: Figure | None) -> tuple[Phrase, ...]:
    if figure is None or figure.estimate.state == "not_applicable":
        return flat(None)
    return cell(desk.prints.of(figure))


def _left(
    desk: Desk, name: str, number: int, words: str, where: str = "in the attachments"
) -> tuple[Phrase | str, ...]:
    """Return what a table leaves out, in words; nothing where it has all."""
    if number <= 0:
        return ()
    entry = desk.prints.count(f"left_out.{name}", f"rows left out of the table: {name}", float(number))
    said = counted(number, words).partition(" ")[2]
    return (phrase("And ", entry.text, f" more {said}, {where}. "),)


def quality_blocks(desk: Desk) -> Iterator[Block]:
    """Yield data quality: what factors count, Findings by severity, and expected deliveries."""
    yield heading("Data quality and coverage")
    statement = desk.given.current
    prefix = f"statement.{desk.given.period}"
    rows = []
    for name, share in sorted(statement.span_shares.items()):
        entry = desk.prints.share(f"{prefix}.span.{name}", f"share on {name} factors", share)
        rows.append(
            Row(head=phrase(f"Location-based on {name.replace('_', ' ')} factors"), cells=(flat(entry),))
        )
    every = findings_of(desk.given)
    for severity in ("error", "warning", "info"):
        number = sum(f.severity == severity for f in every)
        entry = desk.prints.count(f"{prefix}.findings.{severity}", f"findings: {severity}", float(number))
        rows.append(Row(head=phrase(f"Findings: {severity}"), cells=(flat(entry),)))
    runs = desk.prints.count(f"{prefix}.total.runs", "runs of total", float(desk.given.runs))
    rows.append(Row(head=phrase("Runs in the totals"), cells=(flat(runs),)))
    yield table("Quality", "Quality of the data", "What", ["Share or number"], rows)
    yield from _deliveries(desk)


def _deliveries(desk: Desk) -> Iterator[Block]:
    held = desk.given.current.coverage
    if held is None:
        yield Paragraph(
            text=phrase(
                "The inventory expects no deliveries, so that nobody can tell from it what did not come."
            )
        )
        return
    at = f"statement.{desk.given.period}.deliveries"
    expected = desk.prints.count(f"{at}.expected", "deliveries expected", float(held.expected))
    came = desk.prints.count(f"{at}.came", "deliveries that came", float(held.came))
    share: tuple[Phrase | str, ...] = ()
    if held.share is not None:
        entry = desk.prints.share(f"{at}.share", "share of the deliveries that came", held.share)
        share = (" (", phrase(entry.text), ")")
    yield Paragraph(
        text=phrase("Expected deliveries: ", came.text, " of ", expected.text, " came", *share, ".")
    )
    rows = [
        Row(
            head=foreign(d.team, 40),
            cells=((foreign(d.what, 20),), (foreign(d.site or "–", 30),), (foreign(_months(d.months), 60),)),
        )
        for d in desk.given.deliveries[:_MOST]
    ]
    yield table(
        "Deliveries",
        "Deliveries expected in the months of the quarter",
        "Team",
        [text_column("What"), text_column("Site"), text_column("Months")],
        rows,
        phrase(*_left(desk, "deliveries", len(desk.given.deliveries) - len(rows), "delivery")),
    )
    gaps = [f for f in held.findings if f.code == "CL379"][:12]
    if gaps:
        yield Bullets(items=tuple(foreign(f.message, 200) for f in gaps))


def _months(months: Sequence[str]) -> str:
    return months[0] if len(months) == 1 else f"{min(months)} to {max(months)}"


def meter_blocks(desk: Desk) -> Iterator[Block]:
    """Yield the reconciliation to meters and bills, and what makes up the market-based factors."""
    yield heading("Reconciliation to meters and bills")
    statement = desk.given.current
    if statement.reconciliations:
        yield _meters(desk, statement.reconciliations)
    else:
        yield Paragraph(
            text=phrase("No meter covers any of the quarter: the energy is that of the runs alone.")
        )
    yield from _costs(desk)
    if statement.blends:
        yield _blends(desk)


def _meters(desk: Desk, held: Sequence[Reconciliation]) -> TableBlock:
    prefix, columns = f"statement.{desk.given.period}", desk.columns(desk.given.current)
    rows = []
    for one in held[:_MOST]:
        at = f"{one.metered.site_id}.{one.metered.name}"
        share = desk.prints.share(
            f"{prefix}.{at}.covered", f"share of the quarter that {at} covers", one.metered.covered
        )
        cells = []
        for n, printed in zip(_METERED, columns.reconciled(one), strict=True):
            figure = desk.of_line(at, n)
            cells.append(cell(None if figure is None else desk.prints.entered(figure, printed)))
        used = "the site’s energy" if one.is_activity else "not used"
        names = foreign(", ".join(one.metered.meter_ids), 60)
        rows.append(
            Row(
                head=phrase(foreign(one.metered.site_id, 30), ": ", names),
                cells=(*cells, flat(share), (phrase(used),)),
            )
        )
    return table(
        "Meters",
        "What meters counted beside what runs recorded, at the facility",
        "Site and meters",
        ["Metered", "Recorded", "Difference", "Covered", text_column("Used as")],
        rows,
        phrase(*_left(desk, "meters", len(held) - len(rows), "meter"),
               "Rounded so that what runs recorded and the difference add up to what meters counted."),
    )  # fmt: skip


def _costs(desk: Desk) -> Iterator[Block]:
    cost = desk.given.current.cost
    if not cost.lines:
        yield Paragraph(text=phrase("No price and no bill is known: the cost of the quarter is unknown."))
        return
    rows = []
    for number, line in list(enumerate(cost.lines, 1))[:_MOST]:
        entry = _cost(desk, number, line)
        words = line.name.replace("_", " ") + (f", {line.part}" if line.part else "")
        rows.append(
            Row(
                head=foreign(words, 40),
                cells=((foreign(_what(line), 60),), cell(entry)),
            )
        )
    for currency in cost.totals:
        rows.append(
            Row(
                head=phrase("Total in ", quoted(currency)),
                cells=(flat(None), _amount(desk, desk.of_line("cost.total", currency))),
                total=True,
            )
        )
    yield table(
        "Costs",
        "Cost by line, as bills, tariffs and prices state it",
        "Line",
        [text_column("Site or what"), "Amount"],
        rows,
        phrase(*_left(desk, "costs", len(cost.lines) - min(len(cost.lines), _MOST), "line"),
               "Currencies are never added to each other without a rate.",
               " Rounded so that the lines of each currency add up to its total." if _adds_up(desk) else ""),
    )  # fmt: skip
    in_one = desk.given.current.reported_cost
    if in_one is not None:
        figure = desk.of_line("cost", f"in_{in_one.currency}.total")
        if figure is not None:
            yield Paragraph(
                text=phrase(
                    "In ", quoted(in_one.currency), ": ", desk.prints.of(figure).full, "; ",
                    quoted(clip("; ".join(in_one.how) or "no exchange rate was needed", 200)), ".",
                )
            )  # fmt: skip


def _what(line: CostLine) -> str:
    """Return the site or what a line is of; hardware with its asset, as several may be alike."""
    words = line.site_id or line.label or "–"
    asset = next((i.removeprefix(_ASSET) for i in line.input_ids if i.startswith(_ASSET)), "")
    return f"{asset}: {words}" if asset else words


def _cost(desk: Desk, number: int, line: CostLine) -> Entry | None:
    """Return the print of a line of cost: rounded so that its currency adds up, else to the cent."""
    figure, held = desk.of_line("cost", f"{number}.{line.name}"), desk.costs.get(line.currency)
    if figure is None or figure.estimate.state == "not_applicable":
        return None
    if held is not None and str(number) in held.numbers:
        return desk.prints.in_column(figure, held, str(number))
    return (
        desk.prints.entered(figure, exact_money(line.amount))
        if is_exact(line.amount)
        else desk.prints.of(figure)
    )


def _adds_up(desk: Desk) -> bool:
    """Tell whether every line of a known total is in its sum as printed."""
    cost = desk.given.current.cost
    lines = [
        (desk.costs[x.currency], str(n)) for n, x in enumerate(cost.lines, 1) if x.currency in desk.costs
    ]
    summed = [c for c in desk.costs.values() if TOTAL in c.numbers]
    return bool(summed) and all(n in c.numbers for c, n in lines if TOTAL in c.numbers)


def _blends(desk: Desk) -> TableBlock:
    rows = []
    for blend in desk.given.current.blends:
        at = f"{blend.demand.entity}.{blend.demand.market}"
        for number, part in enumerate(blend.parts, 1):
            figure = desk.of_line(at, f"part_{number}_kwh")
            rate = Figure(
                figure_id=f"rate.{desk.given.period}.{at}.{number}",
                estimate=_kg_as(part.rate),
                label=f"rate of {part.source_id}, per kWh",
                inputs=(part.source_id,),
            )
            head = phrase(foreign(f"{blend.demand.market}: {part.source_id}"))
            rows.append(
                Row(head=head, cells=((foreign(part.kind, 20),), _amount(desk, figure), _amount(desk, rate)))
            )
    return table(
        "Instruments",
        "What the market-based factors are made of",
        "Market and source",
        [text_column("Kind"), "Energy", "Rate per kWh"],
        rows[:_MOST],
        phrase(*_left(desk, "instruments", len(rows) - min(len(rows), _MOST), "part")),
    )


def _kg_as(rate: Estimate) -> Estimate:
    """Return a rate as the mass of one kilowatt-hour."""
    return rate.scale(1.0, "kg")


def restatement_blocks(desk: Desk) -> Iterator[Block]:
    """Yield restatements, old beside new, and what came after a close."""
    yield heading("Restatements")
    given = desk.given
    if not given.restatements and not given.prior:
        yield Paragraph(
            text=phrase(
                "The ledger keeps none of any period that this report shows, and no record came after a "
                "close of one."
            )
        )
        return
    for number, one in enumerate(given.restatements):
        yield from _restating(desk, number, one)
    if given.prior:
        yield _prior(desk)


def _restating(desk: Desk, number: int, one: Restating) -> Iterator[Block]:
    """Yield one restatement: of what, from what to what, what it does to the base year, each figure."""
    why = phrase("; reason given: ", foreign(one.why, 200)) if one.why else ()
    made = phrase(foreign(one.period, 20), ", made ", label(one.made_on), ": from ")
    # Records of older versions hold folders.
    old, new = (foreign(source_name(words), 60) for words in (one.old, one.new))
    yield Paragraph(text=phrase(made, old, " to ", new, why, "."))
    if one.base_year:
        yield Bullets(items=tuple(_base_year(desk, number, m, r) for m, r in one.base_year.items()))
    shown = [r for r in _totals_first(one.rows) if r.figure_id.startswith(_STATED)][:_MOST]
    rows = [_restated(desk, number, n, row) for n, row in enumerate(shown)]
    yield table(
        f"Restated {number + 1}",
        phrase("Restated figures of ", foreign(one.period, 20)),
        "Figure",
        ["Old", "New", "Change", text_column("Reason")],
        rows,
        phrase(*_left(desk, f"restated.{number}", len(one.rows) - len(rows), "figure", "in the ledger")),
    )


def _base_year(desk: Desk, number: int, method: str, held: Recalculation) -> Phrase:
    """Return what a restatement does to the base year by one method, in words."""
    at, words = f"restated.{number}.base_year.{method}", f"base year {held.year}, {method}-based"
    stated = Figure(figure_id=f"{at}.stated", estimate=held.base_kg, label=words)
    parts: list[str | Phrase] = ["Base year ", phrase(label(str(held.year))), f", {method}-based, stated as "]
    parts += [phrase(desk.prints.of(stated).full), ": "]
    if held.change is None:
        parts += ["by how much it changes is unknown"]
    else:
        moved = desk.prints.share(f"{at}.change", f"change of the {words}", held.change, plus=True)
        parts += ["changes by ", phrase(moved.text)]
    if held.threshold is None:
        parts += [", and no threshold is declared"]
    else:
        limit = desk.prints.share(f"{at}.threshold", "threshold of recalculation", held.threshold)
        parts += [", against a threshold of ", phrase(limit.text)]
    if held.is_needed:
        again = Figure(
            figure_id=f"{at}.recalculated",
            estimate=held.recalculated_kg,
            label=f"{words}, recalculated",
            inputs=(stated.figure_id,),
        )
        return phrase(*parts, ": recalculated to ", phrase(desk.prints.of(again).full), ".")
    return phrase(*parts, ": kept as it was stated." if held.is_needed is False else ": open.")


def _totals_first(rows: Sequence[Restated]) -> list[Restated]:
    return sorted(rows, key=lambda r: (".total." not in r.figure_id, r.figure_id))


def _restated(desk: Desk, number: int, place: int, row: Restated) -> Row:
    cells = []
    for name, estimate in (("old", row.old), ("new", row.new), ("delta", row.delta)):
        figure = None
        if estimate is not None:
            figure = Figure(
                figure_id=f"restated.{number}.{place}.{name}",
                estimate=estimate,
                label=f"{row.label}, {name}",
                inputs=(row.figure_id,),
            )
        cells.append(flat(None) if figure is None else cell(desk.prints.of(figure, plus=name == "delta")))
    reason = phrase(quoted(row.reason), ": ", foreign(row.detail, 120))
    return Row(head=foreign(row.label or row.figure_id, 80), cells=(*cells, (reason,)))


def _prior(desk: Desk) -> TableBlock:
    rows = []
    for number, one in enumerate(desk.given.prior[:_MOST]):
        amount = None
        if one.adjustment_j is not None:
            amount = Figure(
                figure_id=f"prior.{number}.energy",
                estimate=Estimate(value=float(one.adjustment_j), unit="J", signed=True),
                label=f"energy of {one.period} that came after its close",
            )
        printed = flat(None) if amount is None else cell(desk.prints.of(amount, plus=True))
        boundary = one.metered_at or one.boundary or "boundary not stated"
        rows.append(
            Row(
                head=foreign(one.period, 20),
                cells=((foreign(", ".join(one.found_in), 60),), (foreign(boundary, 40),), printed),
            )
        )
    return table(
        "Prior periods",
        "Records that came after a close of a period that this report shows, or in one: lines of the "
        "period in which they were found",
        "Closed period",
        [text_column("Found in"), text_column("Boundary or site"), "Energy"],
        rows,
    )
