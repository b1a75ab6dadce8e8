"""``initiatives.toml``: measures that claim a saving."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from carbonlens.domain.initiative import Initiative
from carbonlens.inventory.records import Kind, Problem
from carbonlens.inventory.values import a_date, a_saving


def _check(initiative: Initiative) -> Iterator[Problem]:
    if initiative.end is not None and initiative.end < initiative.start:
        yield "end", f"ends {initiative.end}, before its start", "check both dates"
    if initiative.step is not None and initiative.study is None:
        yield "step", "names a step without its study", "add study"


KIND: Final = Kind(
    name="initiatives",
    table="initiative",
    type=Initiative,
    id_field="initiative_id",
    rules={"start": a_date, "end": a_date, "claimed": a_saving, "verified": a_saving},
    check=_check,
)
"""How an initiative stands in its file."""
