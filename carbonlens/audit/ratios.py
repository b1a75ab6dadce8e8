"""Figures per unit of work, and savings in percent."""

from __future__ import annotations

from carbonlens.audit.finding import about
from carbonlens.audit.quantities import KG, KWH, Span, agree, figure, shown, span
from carbonlens.audit.slips import apart, explain
from carbonlens.domain.claim import Claim
from carbonlens.domain.finding import Finding

_PERCENT = 100


def check_per_unit(claim: Claim) -> tuple[Finding, ...]:
    """Return a Finding where emissions over the amount of work are not the emissions per unit."""
    kg, units, each = span(claim.emissions, KG), span(claim.units), span(claim.per_unit, KG)
    if claim.per_unit is None or kg is None or units is None or each is None or units.low <= 0:
        return ()
    expected = Span(kg.low / units.high, kg.value / units.value, kg.high / units.low)
    if agree(each, expected):
        return ()
    slip = explain(each, expected, claim, with_pue=False)
    because = f": {slip.words} explains it" if slip else ": the inputs do not give the output"
    text = (
        f"{figure(kg.value)} kg over a count of {figure(units.value)} is {figure(expected.value)} kg each, "
        f"{shown(claim.per_unit)} stated ({apart(each, expected)}){because}"
    )
    return (about(claim, "CL716", text, "correct the ratio or its unit"),)


def check_saving(claim: Claim) -> tuple[Finding, ...]:
    """Return a Finding where a saving in percent is not that of the energies before and after."""
    before, after, saving = span(claim.baseline, KWH), span(claim.energy, KWH), span(claim.saving)
    if claim.saving is None or before is None or after is None or saving is None:
        return ()
    if before.low <= 0 or after.low <= 0:
        return ()
    expected = _PERCENT * (before.value - after.value) / before.value
    width = _PERCENT * (after.high / before.low - after.low / before.high) / 2
    if abs(saving.value - expected) <= width + (saving.high - saving.low) / 2:
        return ()
    readings = {
        "it is a share of the figure after": _PERCENT * (before.value - after.value) / after.value,
        "it is what remains": _PERCENT * after.value / before.value,
        "it is a ratio, and no percentage": before.value / after.value,
        "it is a share, and no percentage": expected / _PERCENT,
    }
    fits = next((words for words, value in readings.items() if saving.low <= value <= saving.high), None)
    because = f": {fits}" if fits else ": the inputs do not give the output"
    text = (
        f"{figure(before.value)} to {figure(after.value)} kWh is a saving of {expected:.3g} %, "
        f"{figure(saving.value)} % stated{because}"
    )
    return (about(claim, "CL716", text, "state the saving as a share of the baseline"),)
