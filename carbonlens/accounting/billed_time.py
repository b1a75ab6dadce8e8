"""Billed time: for which time of a run a bill holds what it ran on, and for which it cannot be told.

A line of the run's own resource, or of compute with its tags, covers the run while the line lasts.
Storage, traffic or support never does. A line that shares only the place covers no run: whether it
holds the instance cannot be told, unless it is for something else than compute.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Final

import msgspec

from carbonlens.accounting.charge_joining import Part
from carbonlens.domain.charge import Charge

Span = tuple[int, int]
"""Instants, the end exclusive."""

_OTHER: Final = re.compile(
    r"(?<![a-z])(?:s3|storage|blob|buckets?|ebs|volumes?|volumeusage|disks?|snapshots?|backups?"
    r"|data ?transfer|transfer|traffic|bandwidth|egress|ingress|network(?:ing)?|vpc|nat|gateway"
    r"|load ?balanc(?:er|ing)|dns"
    r"|ip address(?:es)?|cloudwatch|logging|monitoring|support|databases?|rds|requests?)(?![a-z])"
)
_COMPUTE: Final = re.compile(
    r"(?<![a-z])(?:ec2|compute|virtual machines?|vms?|instances?|boxusage|spotusage|gpus?|sagemaker"
    r"|machine learning|batch)(?![a-z])"
)
_HOURS: Final = frozenset({"h", "hr", "hrs", "hour", "hours", "second", "seconds", "instance-hours"})
_AMOUNTS: Final = re.compile(r"(?:^|[^a-z])(?:[kmgtp]i?b|bytes?|requests?)(?![a-z])")


class BilledTime(msgspec.Struct, frozen=True, kw_only=True):
    """Time of one run.

    Attributes:
        covered: In which lines of its own hold what it ran on.
        untold: In which lines might, and nobody can tell.
    """

    covered: tuple[Span, ...] = ()
    untold: tuple[Span, ...] = ()


def is_compute(charge: Charge) -> bool | None:
    """Tell whether a line is for compute; ``None`` where it does not say.

    Args:
        charge: The line; its service, SKU and units tell.
    """
    text = f"{charge.service or ''} {charge.sku or ''}".lower()
    units = [u.lower() for u in (charge.unit, charge.pricing_unit) if u]
    if _OTHER.search(text) or any(_AMOUNTS.search(u) for u in units):
        return False
    return True if _COMPUTE.search(text) or _HOURS.intersection(units) else None


def billed_time(charges: Iterable[Charge], parts: Iterable[Part]) -> dict[str, BilledTime]:
    """Return the billed time of each run that carries a part of a line.

    Args:
        charges: Lines of bills.
        parts: Of these, as they were joined to runs.
    """
    lines = {c.charge_id: c for c in charges if c.category in (None, "usage")}
    covered: dict[str, list[Span]] = {}
    untold: dict[str, list[Span]] = {}
    for part in parts:
        line = lines.get(part.charge_id)
        if line is None or part.run_id is None or not part.share:
            continue
        found = is_compute(line)
        if found is False:
            continue
        is_own = part.how == "resource" or (part.how == "tags" and found is True)
        (covered if is_own else untold).setdefault(part.run_id, []).append((line.start_us, line.end_us))
    return {
        run: BilledTime(covered=tuple(covered.get(run, ())), untold=tuple(untold.get(run, ())))
        for run in dict.fromkeys((*covered, *untold))
    }


def without(spans: Iterable[Span], taken: Iterable[Span]) -> list[Span]:
    """Return what of some spans lies in none of others.

    Args:
        spans: Any.
        taken: What is taken off them.
    """
    rest = list(spans)
    for first, last in taken:
        rest = [part for span in rest for part in _cut(span, first, last)]
    return rest


def _cut(span: Span, first: int, last: int) -> Sequence[Span]:
    parts = ((span[0], min(span[1], first)), (max(span[0], last), span[1]))
    return [p for p in parts if p[1] > p[0]]
