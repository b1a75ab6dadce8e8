"""All checks over the claims of one or more files."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import groupby
from typing import Final

from carbonlens.audit.disclosure import (
    check_age,
    check_card_units,
    check_cells,
    check_components,
    check_market,
    check_place,
    check_scopes,
    check_units,
)
from carbonlens.audit.emissions import check_emissions
from carbonlens.audit.energy import check_energy, check_facility
from carbonlens.audit.power import check_power
from carbonlens.audit.ratios import check_per_unit, check_saving
from carbonlens.audit.totals import check_basis, check_duplicates, check_totals
from carbonlens.audit.water import check_water
from carbonlens.domain.claim import Claim
from carbonlens.domain.finding import Finding

OF_ONE: Final[tuple[Callable[[Claim], tuple[Finding, ...]], ...]] = (
    check_energy,
    check_facility,
    check_emissions,
    check_power,
    check_water,
    check_per_unit,
    check_saving,
    check_totals,
    check_basis,
    check_market,
    check_age,
    check_components,
    check_cells,
)
"""Checks of one claim by itself."""

OF_TABLE: Final[tuple[Callable[[Sequence[Claim]], tuple[Finding, ...]], ...]] = (
    check_units,
    check_place,
    check_scopes,
    check_duplicates,
)
"""Checks of the claims of one table."""


def check_claims(claims: Iterable[Claim]) -> tuple[Finding, ...]:
    """Return what all checks find, in the order of files and lines.

    Args:
        claims: As read; those of one file and table are read together.
    """
    items = list(claims)
    found = [f for claim in items for check in OF_ONE for f in check(claim)]
    for _, group in groupby(sorted(items, key=_table), key=_table):
        table = list(group)
        found += [f for check in OF_TABLE for f in check(table)]
    for _, group in groupby(sorted(items, key=_file), key=_file):
        found += check_card_units(list(group))
    found.sort(key=lambda f: (f.file or "", f.line or 0, f.code))
    return tuple(found)


def _file(claim: Claim) -> str:
    return claim.file or ""


def _table(claim: Claim) -> tuple[str, int]:
    return _file(claim), claim.table
