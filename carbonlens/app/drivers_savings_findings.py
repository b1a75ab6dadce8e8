"""Use case part: what else changed beside an initiative, and what is to be said of its saving."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from carbonlens.app.drivers_reading import Place, Work
from carbonlens.compare.drivers_bridge import Side
from carbonlens.compare.drivers_savings import Pair
from carbonlens.domain.counting import counted
from carbonlens.domain.drivers_savings import SavingFound
from carbonlens.domain.finding import Finding

_NAMED: Final = 3


def events_of(
    works: tuple[Work, Work],
    baseline: Mapping[Place, Side],
    reporting: Mapping[Place, Side],
    pairs: Mapping[Place, Pair],
) -> list[str]:
    """Return what else changed, in words: none of it is in a figure."""
    events = []
    new = [k for k in reporting if k not in pairs and reporting[k].facility_kwh.value]
    if new:
        kwh = sum(reporting[k].facility_kwh.value or 0.0 for k in new)
        events.append(f"{listed(k[1] for k in new)}: no work of the baseline, {kwh:.4g} kWh left out")
    gone = [k for k in baseline if k[:2] not in {p[:2] for p in reporting}]
    if gone:
        events.append(f"{listed(k[1] for k in gone)}: ended since the baseline")
    moved = sorted({k[2] for k in pairs} - {k[2] for k in baseline})
    if moved:
        events.append(f"at {listed(moved)} since the baseline, whose energy per unit is of other sites")
    hardware = [{m for marks in w.marks.values() for m in marks} for w in works]
    if hardware[0] != hardware[1] and all(hardware):
        events.append(f"model or hardware changed: {listed(sorted(hardware[1] - hardware[0])) or 'fewer'}")
    return events


def listed(names: Iterable[str]) -> str:
    """Return names in words, the first few of them."""
    every = list(dict.fromkeys(names))
    more = f" and {len(every) - _NAMED} more" if len(every) > _NAMED else ""
    return ", ".join(every[:_NAMED]) + more


def said_of(found: Sequence[SavingFound]) -> list[Finding]:
    """Return what is to be said of each initiative."""
    said = []
    for one in found:
        name = one.initiative.initiative_id
        if one.verdict != "confirmed":
            said.append(
                Finding(
                    code="CL660" if one.verdict == "not confirmed" else "CL661",
                    severity="warning",
                    message=f"{name} in {one.period}: {one.verdict}, {one.reason}",
                    mend="see its lines; state --adjust where something else changed",
                    subject=name,
                )
            )
        if one.days[0] < one.days[1]:
            text = f"{name} was in effect on {one.days[0]} of {counted(one.days[1], 'day')} of {one.period}: "
            text += "its saving is of the whole period, its claim of these days"
            said.append(
                Finding(
                    code="CL662",
                    severity="info",
                    message=text,
                    mend="ask for a period in which it was in effect throughout",
                    subject=name,
                )
            )
        if one.events:
            said.append(
                Finding(
                    code="CL663",
                    severity="warning",
                    message=f"{name}, not routine and not adjusted: {'; '.join(one.events)}",
                    mend=f"state what it comes to: --adjust {name}=KWH:WHY",
                    subject=name,
                )
            )
    return said
