"""Use case part: what holds at places in a period, found out once for all who read a view."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import TYPE_CHECKING, Any

from carbonlens.accounting.places import Place
from carbonlens.app.statement_prices import PricedHours, priced_hours
from carbonlens.app.statement_terms import Months, PlaceTerms, place_terms, without_hours
from carbonlens.domain.inventory import Inventory
from carbonlens.factors.store import FactorSet
from carbonlens.ledger.calendar import Period

if TYPE_CHECKING:
    from carbonlens.ledger.accounts import Account
    from carbonlens.ledger.frames import View


class Held:
    """What holds at places in a period, found out once for all who read a view with the same inventory.

    Attributes:
        coarse: The factors ``without_hours``.
        prepared: Sums that were made and nobody took yet.
    """

    def __init__(
        self, view: View, inventory: Inventory, factors: FactorSet, hours: Period, months: Months
    ) -> None:
        self._inventory, self._factors, self._hours, self._months = inventory, factors, hours, months
        # The records are kept with what they led to: an id is that of one record as long as it lives.
        key = ("places", id(inventory), id(factors), hours.first_hour, hours.end_hour)
        self._found: dict[Hashable, Any]
        self._rows = view.parts
        self.prepared: dict[Hashable, Account]
        _, _, self._found, self.prepared = view.kept.setdefault(key, (inventory, factors, {}, {}))

    def terms(self, name: str, zones: Sequence[str], months: Months) -> PlaceTerms:
        """Return what holds at a site; arguments as of ``place_terms``."""
        key = ("terms", name, tuple(zones), months)
        if key not in self._found:
            made = place_terms(name, zones, self._inventory, self._factors, self._coarse, months)
            self._found[key] = made
        found: PlaceTerms = self._found[key]
        return found

    def priced(self, name: str, place: Place | None) -> PricedHours:
        """Return prices of electricity at a site; arguments as of ``priced_hours``."""
        key = ("prices", name, place)
        if key not in self._found:
            self._found[key] = priced_hours(name, place, self._inventory, self._hours, self._months)
        found: PricedHours = self._found[key]
        return found

    def of_rows(self, name: Hashable, make: Callable[[], Any]) -> Any:  # noqa: ANN401 - of many kinds
        """Return what was made of the rows of the view, as long as they are the same rows.

        Args:
            name: Of it.
            make: Makes it.
        """
        key = ("rows", name, id(self._rows))
        if key not in self._found:
            # With the rows, of which the id is.
            self._found[key] = self._rows, make()
        return self._found[key][1]

    @property
    def _coarse(self) -> FactorSet:
        if "coarse" not in self._found:
            self._found["coarse"] = without_hours(self._factors)
        found: FactorSet = self._found["coarse"]
        return found
