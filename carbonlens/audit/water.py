"""Stated water against IT energy and WUE (WUE as in ISO/IEC 30134-9: litres per kWh of IT energy)."""

from __future__ import annotations

from carbonlens.accounting.formulas import facility_kwh, it_of_facility_kwh
from carbonlens.accounting.water import site_water_l
from carbonlens.audit.finding import about
from carbonlens.audit.quantities import KWH, Span, agree, figure, shown, span, through
from carbonlens.audit.slips import apart, explain
from carbonlens.domain.claim import Claim
from carbonlens.domain.finding import Finding


def check_water(claim: Claim) -> tuple[Finding, ...]:
    """Return a Finding where energy and WUE do not give the water that is stated."""
    water, wue, energy, pue = span(claim.water), span(claim.wue), span(claim.energy, KWH), span(claim.pue)
    if claim.water is None or water is None or wue is None or energy is None:
        return ()
    it = energy
    if claim.boundary == "facility" and pue is not None and pue.low > 0:
        # A larger PUE is a smaller IT energy: its ends change places.
        it = through(it_of_facility_kwh, energy, Span(pue.high, pue.value, pue.low))
    expected = through(site_water_l, it, wue)
    if agree(water, expected):
        return ()
    says = (
        f"{figure(it.value)} kWh of IT energy x WUE give {figure(expected.value)} L, "
        f"{shown(claim.water)} stated"
    )
    if pue is not None and _fits(water, through(facility_kwh, expected, pue)):
        text = f"{says}: WUE was applied to facility energy"
        return (about(claim, "CL715", text, "WUE multiplies IT energy: leave the PUE out"),)
    slip = explain(water, expected, claim, with_pue=False)
    because = f": {slip.words} explains it" if slip else ": the inputs do not give the output"
    code = "CL702" if slip else "CL703"
    text = f"{says} ({apart(water, expected)}){because}"
    return (about(claim, code, text, "state every input that was used, or correct the figure"),)


def _fits(water: Span, expected: Span) -> bool:
    return water.low <= expected.value <= water.high
