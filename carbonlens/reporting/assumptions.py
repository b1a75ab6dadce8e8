"""Assumptions: the factors and prices all arms share, with place and source."""

from __future__ import annotations

from carbonlens.domain.estimate import Estimate
from carbonlens.domain.factor import Embodied, Factor, Price
from carbonlens.reporting import format as fmt
from carbonlens.reporting.content import Column, Phrase, Row, Table, phrase, quoted
from carbonlens.reporting.facts import Facts
from carbonlens.reporting.figures import Entry, stated
from carbonlens.reporting.names import clip

_SOURCE_WIDTH = 160
_NOTE_WIDTH = 320


def assumption_table(facts: Facts) -> Table:
    """Return the table of factors and prices; what is unknown is listed as unknown."""
    vector = facts.comparison.vector
    rows = (
        _factor_row(facts, "Grid, location-based", "grid_location", vector.location),
        _factor_row(facts, "Grid, market-based", "grid_market", vector.market),
        _pue_row(facts),
        *_host_rows(facts),
        _price_row(facts, "Electricity", "electricity_price", vector.electricity),
        _price_row(facts, "Machine", "machine_price", vector.machine),
        _embodied_row(facts, vector.embodied),
    )
    caption = "Assumptions, the same for every step"
    return Table(
        caption=phrase(caption),
        head="Factor or price",
        columns=(
            Column(name=phrase("Value"), numeric=False),
            Column(name=phrase("Zone and period"), numeric=False),
            Column(name=phrase("Source"), numeric=False),
        ),
        rows=rows,
        note=phrase(quoted(clip(" ".join(vector.notes), _NOTE_WIDTH))) if vector.notes else (),
    )


def _row(head: str, value: Phrase, where: Phrase, source: str, *, example: bool) -> Row:
    # A source that calls itself an example need not be called one twice.
    mark = "example: " if example and not source.lower().startswith("example") else ""
    marked = phrase(mark, quoted(clip(source, _SOURCE_WIDTH)))
    return Row(head=phrase(head), cells=((value,), (where,), (marked,)), mark="open" if example else "")


def _unknown_row(head: str, mend: str) -> Row:
    return Row(
        head=phrase(head), cells=((phrase(fmt.UNKNOWN),), (phrase("–"),), (phrase(mend),)), mark="muted"
    )


def _factor_row(facts: Facts, head: str, name: str, factor: Factor | None) -> Row:
    if factor is None:
        return _unknown_row(
            head, "state a factor with zone, period and source; emissions are unknown without it"
        )
    estimate = stated(factor.value_kg_per_kwh, factor.u_relative, "kg/kWh")
    entry = _enter(
        facts, name, f"{head} factor", estimate, fmt.given(estimate, "g CO₂e/kWh", 1e3), factor.factor_id
    )
    basis = f" ({', '.join(factor.basis)})" if factor.basis else ""
    where = phrase(quoted(clip(f"{factor.zone}, {factor.period}{basis}", 90)))
    return _row(head, entry.full, where, factor.source, example=factor.example)


def _price_row(facts: Facts, head: str, name: str, price: Price | None) -> Row:
    if price is None and facts.is_cost_stated:
        said = "the cost is what the runs themselves state; no price is applied"
        return Row(
            head=phrase(head), cells=((phrase("not used"),), (phrase("–"),), (phrase(said),)), mark="muted"
        )
    if price is None:
        return _unknown_row(head, "state a price with its period and source; its part of the cost is unknown")
    per = price.per.replace("_", " ")
    estimate = stated(float(price.amount), price.u_relative, price.currency)
    printed = fmt.given(estimate, price.currency, pattern="{unit} {number}/" + per, least=2)
    entry = _enter(facts, name, f"{head} price", estimate, printed, price.price_id)
    return _row(head, entry.full, phrase(quoted(clip(price.period, 24))), price.source, example=price.example)


def _pue_row(facts: Facts) -> Row:
    vector = facts.comparison.vector
    if vector.pue is None:
        return _unknown_row("PUE", "state the site's PUE; facility energy is a lower bound without it")
    estimate = stated(vector.pue, vector.pue_u_relative, "1")
    entry = _enter(
        facts, "pue", "facility energy per IT energy (PUE)", estimate, fmt.given(estimate, ""), "pue"
    )
    place = phrase(quoted(clip(vector.place or "place not stated", 44)))
    source = vector.pue_source or "source not stated"
    return _row("PUE", entry.full, place, source, example=vector.pue_source is not None and vector.example)


def _host_rows(facts: Facts) -> tuple[Row, ...]:
    """Return the row of the host overhead, which only energy of devices needs."""
    vector = facts.comparison.vector
    if vector.host_overhead is None:
        return ()
    estimate = stated(vector.host_overhead, vector.host_overhead_u_relative or 0.0, "1")
    words = "IT energy per device energy (host overhead)"
    printed = fmt.given(estimate, "")
    entry = _enter(facts, "host_overhead", words, estimate, printed, "host_overhead")
    source = vector.host_overhead_source or "source not stated"
    return (_row("Host overhead", entry.full, phrase("–"), source, example=False),)


def _embodied_row(facts: Facts, embodied: Embodied | None) -> Row:
    if embodied is None:
        return _unknown_row("Embodied", "state kg per core hour; embodied emissions are unknown without it")
    estimate = stated(embodied.value_kg_per_core_hour, embodied.u_relative, "kg/core hour")
    printed = fmt.given(estimate, "g CO₂e/core hour", 1e3)
    entry = _enter(
        facts, "embodied", "embodied emissions of the hardware", estimate, printed, embodied.factor_id
    )
    return _row("Embodied", entry.full, phrase("–"), embodied.source, example=embodied.example)


def _enter(
    facts: Facts, name: str, words: str, estimate: Estimate, printed: fmt.Printed, source_id: str
) -> Entry:
    return facts.book.enter(f"assumption.{name}", words, estimate, printed, inputs=(clip(source_id, 60),))
