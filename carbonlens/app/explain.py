"""Use case: explain a figure, run, factor, price or certificate down to readings and file lines."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from difflib import get_close_matches
from functools import cached_property
from pathlib import Path
from typing import Final

import msgspec

from carbonlens.app.explain_items import certificate_item, factor_item, price_item, reading_item, run_item
from carbonlens.app.statement import Made, make_statement
from carbonlens.domain.figure import Figure
from carbonlens.domain.inventory import Inventory
from carbonlens.domain.pricing import PriceRow
from carbonlens.errors import CarbonlensError, MissingExtraError, SelectionError
from carbonlens.factors.store import FactorSet
from carbonlens.reporting.explanation import Item, Kind, Node, item_of, tree

SHOWN: Final = 3
"""Runs of a list that are opened in a text; the others are counted."""

_OF_PERIOD: Final = re.compile(r"(?:statement|energy|runs)\.(\d{4}(?:Q[1-4]|-\d{2}(?:-\d{2})?)?)\.(.+)")
_OF_MARKET: Final = re.compile(r"market:.+:(\d{4}(?:Q[1-4]|-\d{2}(?:-\d{2})?)?)")
_BY: Final = re.compile(r"by\.((?:tag:)?[^.]+)\.")


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """Where to look; each as the command line takes it."""

    study: str | None = None
    period: str | None = None
    ledger: str | Path | None = None
    inventory: str | Path | None = None
    factors: str | Path | None = None


def explain(figure_id: str, options: Options = Options(), *, most: int = SHOWN) -> Node:  # noqa: B008 - frozen
    """Return what a figure rests on, as a tree.

    Args:
        figure_id: Of a statement, of a comparison, of a run, factor, price or certificate.
        options: Where to look.
        most: Runs of a list that are opened.

    Raises:
        SelectionError: If nothing has that id; near ones are named.
    """
    known = _Known(options)
    item = known.find(figure_id)
    if item is None:
        near = get_close_matches(figure_id, known.ids(figure_id), n=3, cutoff=0.5)
        meant = f"near ones: {', '.join(near)}; " if near else ""
        raise SelectionError(
            f"nothing has the id {figure_id!r}",
            where="FIGURE",
            mend=f"{meant}list ids: carbonlens explain --list",
        )
    return tree(item, known.resolve, most=most)


def ids(options: Options = Options()) -> tuple[str, ...]:  # noqa: B008 - frozen
    """Return the ids that can be explained: of the statement, and of the study where one is named or alone.

    Args:
        options: Where to look.

    Raises:
        SelectionError: If there is neither.
    """
    known = _Known(options)
    found = list(known.of_study) if options.study is not None else list(known.of_statement(options.period))
    if not found and options.study is None:
        found = list(known.of_study)
    if not found:
        known.statement(options.period)
    return tuple(dict.fromkeys(found))


class _Known:
    """All that can be looked up, each read when it is first asked for."""

    def __init__(self, options: Options) -> None:
        self._options = options
        self._made: dict[tuple[str | None, str | None], Made] = {}
        self._figures: dict[str, Figure] = {}
        self._runs_of: Mapping[str, tuple[str, ...]] = {}

    def find(self, name: str) -> Item | None:
        """Return the item of an id that a user gave; reads the statement or study it belongs to."""
        for pattern in (_OF_PERIOD, _OF_MARKET):
            match = pattern.fullmatch(name)
            if match is not None:
                by = _BY.match(match[2]) if pattern is _OF_PERIOD else None
                self._take(self.statement(match[1], by[1] if by else None))
                return self.resolve(name)
        direct = self._lookup(name) or self._lookup(f"run:{name}")
        if direct is not None:
            return direct
        if self._options.period is not None or self._options.study is None:
            self._figures |= self.of_statement(self._options.period)
        if name not in self._figures:
            self._figures |= self.of_study
        return self.resolve(name)

    def resolve(self, name: str) -> Item | None:
        """Return the item of an id that another figure names."""
        if name in self._figures:
            return self._as_item(self._figures[name])
        if name in self._runs_of:
            runs = self._runs_of[name]
            words = f"recorded runs of {name.removeprefix('runs.')}: {len(runs)}"
            return Item(item_id=name, kind="runs", title=words, inputs=tuple(f"run:{r}" for r in runs))
        return self._lookup(name)

    def ids(self, like: str) -> list[str]:
        """Return ids among which a mistyped one may be meant."""
        found = [*self._figures, *(row.factor_id for row in self._factors.rows)]
        if not self._figures and not like.startswith("statement."):
            found += self.of_statement(self._options.period)
        return [*found, *(c.certificate_id for c in self._inventory.certificates)]

    def statement(self, period: str | None, by: str | None = None) -> Made:
        """Return a statement, made once."""
        if (period, by) not in self._made:
            o = self._options
            self._made[period, by] = make_statement(
                period, by=by, inventory=o.inventory, factors=o.factors, ledger=o.ledger, listed=True
            )
        return self._made[period, by]

    def of_statement(self, period: str | None) -> dict[str, Figure]:
        """Return the figures of a period's statement; none where there is no such statement."""
        try:
            made = self.statement(period)
        except MissingExtraError:
            raise
        except CarbonlensError:
            if period is not None:
                raise
            return {}
        self._runs_of = {**self._runs_of, **made.runs_of}
        return {f.figure_id: f for f in made.statement.figures}

    @cached_property
    def of_study(self) -> dict[str, Figure]:
        """Figures of the study that is named, or the only one; empty where there is none."""
        from carbonlens.app.explain_study import study_figures

        try:
            found = study_figures(self._options.study, ledger=self._options.ledger)
        except SelectionError:
            if self._options.study is not None:
                raise
            return {}
        return {f.figure_id: f for f in found}

    @cached_property
    def _factors(self) -> FactorSet:
        from carbonlens.factors.store import open_factors

        return open_factors(self._options.factors)

    @cached_property
    def _inventory(self) -> Inventory:
        from carbonlens.app.inventory import load_inventory

        return load_inventory(self._options.inventory).inventory

    @cached_property
    def _records(self) -> Callable[[str], Item | None]:
        """Look-up of runs by id; the ledger is read once."""
        from carbonlens.ledger.opening import open_ledger
        from carbonlens.ledger.records import current

        with open_ledger(self._options.ledger) as store:
            runs = current(store.view().runs)[0] if store.exists else ()
        by_id = {run.run_id: run for run in runs}
        return lambda name: run_item(by_id[name]) if name in by_id else None

    def _take(self, made: Made) -> None:
        self._figures |= {f.figure_id: f for f in made.statement.figures}
        self._runs_of = {**self._runs_of, **made.runs_of}

    def _as_item(self, figure: Figure) -> Item:
        """Return a figure as an item; a leaf that stands for a record is told as that record."""
        direct = None if figure.inputs else self._lookup(figure.figure_id, runs=False)
        if direct is None:
            kind: Kind = "figure"
            return item_of(figure, kind)
        return msgspec.structs.replace(direct, estimate=figure.estimate)

    def _lookup(self, name: str, *, runs: bool = True) -> Item | None:
        row = next((r for r in self._factors.rows if r.factor_id == name), None)
        if row is not None:
            return factor_item(row, self._place_of(name))
        inventory = self._inventory
        for certificate in inventory.certificates:
            if certificate.certificate_id == name:
                return certificate_item(certificate)
        for price in (*inventory.prices, *_bundled_prices()):
            if price.price_id == name:
                return price_item(price)
        if name.startswith("reading:"):
            held = (r for r in inventory.readings if f"reading:{r.reading_id}" == name)
            return next((reading_item(r) for r in held), None)
        if name.startswith("asset:"):
            held_assets = (a for a in inventory.assets if f"asset:{a.asset_id}" == name)
            asset = next(held_assets, None)
            if asset is not None:
                words = f"{asset.count} {asset.hardware}, bought {asset.purchased}"
                source = (f"embodied: {asset.embodied_source}",) if asset.embodied_source else ()
                return Item(item_id=name, kind="figure", title=words, details=(*source, "assets.csv"))
        if name.startswith("study:"):
            return Item(item_id=name, kind="study", title=f"study {name.removeprefix('study:')}")
        if runs and name.startswith("run:"):
            return self._records(name.removeprefix("run:"))
        return None

    def _place_of(self, factor_id: str) -> str | None:
        return next((o.place for o in self._factors.overrides if o.row.factor_id == factor_id), None)


def _bundled_prices() -> Iterable[PriceRow]:
    from carbonlens.factors.prices_file import bundled_prices

    return bundled_prices()
