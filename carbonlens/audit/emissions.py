"""Stated emissions against energy and factor: implied kg/kWh, slips, PUE, grams for kilograms."""

from __future__ import annotations

from typing import Final

from carbonlens.accounting.formulas import emissions_kg
from carbonlens.audit.energy import at_facility
from carbonlens.audit.finding import about
from carbonlens.audit.quantities import KG, KG_PER_KWH, Span, agree, figure, shown, span, through
from carbonlens.audit.slips import Slip, apart, explain
from carbonlens.domain.claim import Claim
from carbonlens.domain.finding import Finding

MOST_KG_PER_KWH: Final = 1.5
"""No grid's yearly average lies above; the highest bundled one is 1.31 kg/kWh."""

LEAST_KG_PER_KWH: Final = 0.005
"""Below lie single plants and a few regions of hydropower; the lowest zone bundled has 0.015."""

_GRAMS: Final = 1000.0


def check_emissions(claim: Claim) -> tuple[Finding, ...]:
    """Return Findings where energy and factor do not give the emissions that are stated."""
    claimed = span(claim.emissions, KG)
    inputs = at_facility(claim)
    if claim.emissions is None or claimed is None or inputs is None or inputs[0].value <= 0:
        return ()
    kwh, with_pue = inputs
    factor = span(claim.factor, KG_PER_KWH)
    if factor is None or claim.factor is None:
        return _implied(claim, claimed, kwh)
    expected = through(emissions_kg, kwh, factor)
    if agree(claimed, expected):
        # The factor of a statement was judged as a row of its table.
        return () if claim.accounted and claimed.value else _implied(claim, claimed, kwh)
    with_pue = with_pue or claim.it is not None
    slip = explain(claimed, expected, claim, with_pue=with_pue)
    says = (
        f"{figure(kwh.value)} kWh{' with PUE' if with_pue else ''} x {shown(claim.factor)} give "
        f"{figure(expected.value)} kg, {shown(claim.emissions)} stated ({apart(claimed, expected)}), "
        f"which implies {figure(claimed.value / kwh.value)} kg/kWh"
    )
    return (_broken(claim, says, slip), *_implied(claim, claimed, kwh))


def _broken(claim: Claim, says: str, slip: Slip | None) -> Finding:
    if slip is None:
        text = f"the inputs do not give the output: {says}"
        return about(claim, "CL703", text, "state every input that was used, or correct the figure")
    if slip.kind == "pue":
        text = f"{says}: that fits {slip.words}"
        return about(claim, "CL705", text, "apply the PUE once, and say which energy is stated")
    if _is_grams(claim, slip):
        text = f"{says}: the front matter takes grams, and kilograms were written"
        return about(claim, "CL711", text, "write co2_eq_emissions in grams", "error")
    return about(
        claim, "CL702", f"{says}: {slip.words} explains it", "correct the figure or its unit", "error"
    )


def _is_grams(claim: Claim, slip: Slip) -> bool:
    return claim.front_matter and slip.kind == "scale" and abs(slip.factor * _GRAMS - 1) < 1e-9


def _implied(claim: Claim, claimed: Span, kwh: Span) -> tuple[Finding, ...]:
    """Return a Finding where no grid has the emissions per energy that a claim implies."""
    low, high = claimed.low / kwh.high, claimed.high / kwh.low if kwh.low > 0 else float("inf")
    implied = claimed.value / kwh.value
    if low <= MOST_KG_PER_KWH and high >= LEAST_KG_PER_KWH and implied >= 0:
        return ()
    if claimed.value == 0:
        return (_zero(claim),)
    says = f"implies {figure(implied)} kg/kWh ({figure(claimed.value)} kg of {figure(kwh.value)} kWh)"
    if claim.front_matter and _plausible(implied * _GRAMS):
        text = f"{says}: the front matter takes grams, and kilograms seem to have been written"
        return (about(claim, "CL711", text, "write co2_eq_emissions in grams", "error"),)
    where = (
        f"no grid is above {MOST_KG_PER_KWH}"
        if implied > MOST_KG_PER_KWH
        else f"next to no grid is below {LEAST_KG_PER_KWH}"
    )
    return (about(claim, "CL701", f"{says}, and {where}{_mended(implied)}", _CHECK),)


_CHECK = "check the units and powers of ten of energy and emissions"


def _plausible(kg_per_kwh: float) -> bool:
    return LEAST_KG_PER_KWH <= kg_per_kwh <= MOST_KG_PER_KWH


def _mended(implied: float) -> str:
    """Return the unit slip that would make it plausible, as words; nothing where several would."""
    if implied > 0:
        for power in (3, -3, 6, -6):
            if _plausible(implied * 10.0**power):
                return f"; a unit slip by {10 ** abs(power)} would explain it"
    return ""


def _zero(claim: Claim) -> Finding:
    text = "states emissions of 0 for energy that was used"
    return about(claim, "CL701", text, "state the location-based emissions; unknown is not 0")
