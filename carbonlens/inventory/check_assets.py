"""Suspicious assets and initiatives: what they lack to be counted."""

from __future__ import annotations

from collections.abc import Iterator

from carbonlens.domain.finding import Finding
from carbonlens.domain.initiative import Initiative, Saving
from carbonlens.domain.inventory import Inventory


def check(inventory: Inventory) -> Iterator[Finding]:
    """Yield CL375 for assets without embodied emissions or life, CL376 for claims nobody makes."""
    for asset in inventory.assets:
        lacking = [
            text
            for text, value in (
                ("embodied_kg: a factor of its hardware is taken if there is one", asset.embodied_kg),
                (
                    "life_years: no share of it can be given to a run",
                    asset.life_years if asset.used_hours is None else asset.used_hours,
                ),
            )
            if value is None
        ]
        for text in lacking:
            yield Finding(
                code="CL375",
                severity="warning",
                message=f"asset {asset.asset_id} has no {text}",
                file="assets.toml",
                subject=asset.asset_id,
                mend=f"add {text.partition(':')[0]}",
            )
    for initiative in inventory.initiatives:
        yield from _initiative(initiative)


def _initiative(initiative: Initiative) -> Iterator[Finding]:
    if initiative.claimed in (None, Saving()):
        yield _found(initiative, "claims no saving", "add claimed: what its owner says it saves a year")
    if initiative.verified not in (None, Saving()) and initiative.verified_by is None:
        yield _found(initiative, "is verified, but by nobody", "add verified_by: who or what, and the date")


def _found(initiative: Initiative, text: str, mend: str) -> Finding:
    return Finding(
        code="CL376",
        severity="warning",
        message=f"initiative {initiative.initiative_id} {text}",
        file="initiatives.toml",
        subject=initiative.initiative_id,
        mend=mend,
    )
