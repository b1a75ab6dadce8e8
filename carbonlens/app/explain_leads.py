"""Use case part: inputs of figures that a statement makes of more than it names.

A line of cost knows the price it was made with; which runs, meters or purchases its quantity
is of, only the whole statement tells.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import msgspec

from carbonlens.accounting.metered import Metered
from carbonlens.accounting.site_energy import SiteTerms
from carbonlens.accounting.statement import Statement
from carbonlens.app.statement import Made
from carbonlens.domain.asset import Asset
from carbonlens.domain.figure import Figure

_UPWARDS = ("device", "it", "facility")


def led(made: Made, assets: Sequence[Asset]) -> dict[str, Figure]:
    """Return the figures of a statement by id, each with all that it rests on.

    Args:
        made: The statement, with its runs listed.
        assets: Of the inventory.
    """
    figures = {f.figure_id: f for f in made.statement.figures}
    for name, inputs in (*_of_cost(made), *_of_hardware(made, assets), *_of_meters(made.statement)):
        held = figures.get(name)
        if held is not None:
            every = tuple(dict.fromkeys((*held.inputs, *inputs)))
            figures[name] = msgspec.structs.replace(held, inputs=every)
    return figures


def _of_cost(made: Made) -> Iterator[tuple[str, Iterable[str]]]:
    """Yield the runs of cloud hours, the energy that nobody prices, and the index of a price year."""
    statement = made.statement
    at = f"statement.{statement.period.name}"
    for number, line in enumerate(statement.cost.lines, 1):
        name = f"{at}.cost.{number}.{line.name}"
        if line.name == "cloud_hours" and line.site_id is not None:
            yield name, _runs_at(line.site_id, made)
        elif line.name == "electricity" and not line.input_ids:
            words = line.label.replace(",", " ").split()
            own = [x for x in statement.lines if x.site_id in words and x.kind != "unattributed"]
            yield name, [f"{at}.{x.key}.facility_kwh" for x in own]
    one = statement.reported_cost
    if one is not None and one.real is not None:
        years = dict.fromkeys((*(m[:4] for m in statement.period.months), str(one.price_year)))
        name = f"{at}.cost.in_{one.currency}.total_{one.price_year}"
        yield name, [f"price_index:{one.currency}:{year}" for year in years]


def _of_hardware(made: Made, assets: Sequence[Asset]) -> Iterator[tuple[str, Iterable[str]]]:
    """Yield what was or was not bought, and the runs whose hours hardware was used."""
    at = f"statement.{made.statement.period.name}"
    yield f"{at}.capital_goods_kg", [f"asset:{a.asset_id}" for a in assets]
    for one in made.statement.amortised:
        runs = _runs_at(one.asset.site, made) if one.asset.site is not None and one.used_hours else []
        yield f"{at}.{one.asset.asset_id}.amortised.used_kg", runs


def _of_meters(statement: Statement) -> Iterator[tuple[str, Iterable[str]]]:
    """Yield the overheads between what a meter counts and the boundary of a figure."""
    at = f"statement.{statement.period.name}"
    for one in statement.reconciliations:
        site, terms = one.metered.site_id, statement.terms[one.metered.site_id]
        name = f"{at}.{site}.{one.metered.name}.metered_kwh"
        yield name, _around(one.metered, "facility", terms)
        if one.is_activity:
            own = next(x.key for x in statement.lines if x.site_id == site and x.kind == "metered")
            yield f"{at}.{own}.facility_kwh", _around(one.metered, "facility", terms)
            yield f"{at}.{own}.it_kwh", _around(one.metered, "it", terms)


def _around(meter: Metered, boundary: str, terms: SiteTerms) -> list[str]:
    """Return the overheads that lie between a meter's boundary and another, of all months."""
    low, high = sorted((_UPWARDS.index(meter.boundary), _UPWARDS.index(boundary)))
    every = [terms.of(month).overheads for month in meter.by_month] or [terms.overheads]
    ids = [i for o in every for i in (o.host_id, o.pue_id)[low:high]]
    return list(dict.fromkeys(ids))


def _runs_at(site_id: str, made: Made) -> list[str]:
    begin = f"runs.{made.statement.period.name}.{site_id}."
    return [name for name in made.runs_of if name.startswith(begin)]
