"""Use case part: instances that runs of a period used at cloud sites, where no bill covers them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

from msgspec.structs import replace

from carbonlens.accounting.billed_time import BilledTime, without
from carbonlens.accounting.cloud_hours import InstanceUse
from carbonlens.app.charges import RESOURCE_TAGS
from carbonlens.app.statement_bills import run_key
from carbonlens.domain.inventory import Inventory
from carbonlens.domain.site import Site
from carbonlens.ledger.schema import tags_of

if TYPE_CHECKING:
    from carbonlens.ledger.frames import View

TYPE_TAG: Final = "instance_type"
"""Tag of a run that names what it ran on as prices do: ``p5.48xlarge``, or ``aws:p5.48xlarge``."""

_COLUMNS: Final = ("run_id", "study", "site", "host_id", "tags", "start_us", "end_us")


def instance_uses(
    view: View, inventory: Inventory, period: tuple[int, int], billed: Mapping[str, BilledTime]
) -> tuple[InstanceUse, ...]:
    """Return the time of instances at cloud sites that no bill covers, or of which nobody can tell.

    Args:
        view: Of the period.
        inventory: With the sites.
        period: Its instants, the end exclusive.
        billed: By the keys of runs, for which time bills hold what they ran on.
    """
    clouds = {s.site_id: s for s in inventory.sites if s.kind == "cloud"}
    if not clouds:
        return ()
    import narwhals as nw

    from carbonlens.ledger import queries

    parts = queries.roots(view.parts, view.orphans).filter(nw.col("site").is_in(sorted(clouds)))
    rows = view.rows(parts.select(*_COLUMNS).unique().sort("start_us", "run_id"))
    found = [(_use(row, clouds[row["site"]], period), billed.get(run_key(row))) for row in rows]
    return tuple(part for use, time in found for part in _not_billed(use, time or BilledTime()))


def _not_billed(use: InstanceUse, time: BilledTime) -> Iterator[InstanceUse]:
    """Yield the parts of a use that no bill covers, those of which nobody can tell marked."""
    if use.end_us is None:
        yield use
        return
    rest = without([(use.start_us, use.end_us)], time.covered)
    sure = without(rest, time.untold)
    for spans, may_be in ((sure, False), (without(rest, sure), True)):
        for start, end in spans:
            yield replace(use, start_us=start, end_us=end, may_be_billed=may_be)


def _use(row: Mapping[str, Any], site: Site, period: tuple[int, int]) -> InstanceUse:
    tags = tags_of(row["tags"])
    resource = next((tags[name] for name in RESOURCE_TAGS if name in tags), None)
    start, end = row["start_us"], row["end_us"]
    return InstanceUse(
        site_id=site.site_id,
        subject=_subject(tags.get(TYPE_TAG), site.provider),
        region=site.region,
        instance=resource or row["host_id"] or run_key(row),
        start_us=period[0] if start is None else max(start, period[0]),
        end_us=None if start is None or end is None else min(end, period[1]),
    )


def _subject(instance_type: str | None, provider: str | None) -> str | None:
    """Return what prices call an instance type; ``None`` where type or provider is unknown."""
    if instance_type is None or ":" in instance_type:
        return instance_type
    return None if provider is None else f"{provider}:{instance_type}"
