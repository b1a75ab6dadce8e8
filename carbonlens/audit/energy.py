"""Stated energy against hours, watts and devices; what energy a claim's emissions rest on."""

from __future__ import annotations

from carbonlens.accounting.formulas import facility_kwh
from carbonlens.accounting.power import energy_of_power_kwh
from carbonlens.audit.finding import about
from carbonlens.audit.quantities import KWH, Span, agree, figure, shown, span, through
from carbonlens.audit.slips import apart, explain
from carbonlens.domain.claim import Claim
from carbonlens.domain.finding import Finding


def of_hours(claim: Claim) -> Span | None:
    """Return the energy in kWh of hours, watts and devices; ``None`` where hours or watts are unknown.

    Elapsed hours with no number of devices are those of one machine, and so are its watts.
    """
    hours, watts = span(claim.hours), span(claim.watts)
    if hours is None or watts is None:
        return None
    kwh = through(energy_of_power_kwh, watts, hours)
    if claim.device_hours:
        return kwh  # Device hours have the devices in them.
    devices = span(claim.devices)
    return kwh if devices is None else through(lambda each, count: each * count, kwh, devices)


def at_facility(claim: Claim) -> tuple[Span, bool] | None:
    """Return the facility energy in kWh that the claim's inputs give, and whether PUE is in it once.

    A stated energy that hours, watts and PUE give is facility energy already. One of which
    nobody says what it includes is taken as IT energy where a PUE stands beside it.
    """
    energy, pue, worked = span(claim.energy, KWH), span(claim.pue), of_hours(claim)
    if energy is None and worked is not None:
        return (worked, False) if pue is None else (_facility(worked, pue), True)
    if energy is None:
        return None
    if pue is None or claim.boundary == "facility":
        return energy, False
    if worked is not None and agree(energy, _facility(worked, pue)):
        return energy, False
    return _facility(energy, pue), True


def check_facility(claim: Claim) -> tuple[Finding, ...]:
    """Return a Finding where IT energy and PUE do not give the facility energy that stands beside it."""
    energy, it, pue = span(claim.energy, KWH), span(claim.it, KWH), span(claim.pue)
    if claim.energy is None or energy is None or it is None or pue is None:
        return ()
    expected = _facility(it, pue)
    if agree(energy, expected):
        return ()
    slip = explain(energy, expected, claim, with_pue=True)
    says = (
        f"{figure(it.value)} kWh of IT energy x PUE give {figure(expected.value)} kWh, "
        f"{shown(claim.energy)} stated"
    )
    if slip is None:
        text = f"the inputs do not give the output: {says} ({apart(energy, expected)})"
        return (about(claim, "CL703", text, "state every input that was used, or correct the figure"),)
    if slip.kind == "pue":
        mend = "apply the PUE once, and say which energy is stated"
        return (about(claim, "CL705", f"{says}: that fits {slip.words}", mend),)
    text = f"{says}: {slip.words} explains it"
    return (about(claim, "CL702", text, "correct the figure or its unit", "error"),)


def _facility(kwh: Span, pue: Span) -> Span:
    return through(facility_kwh, kwh, pue)


def check_energy(claim: Claim) -> tuple[Finding, ...]:
    """Return a Finding where hours, watts and devices do not give the energy that is stated."""
    energy, worked = span(claim.energy, KWH), of_hours(claim)
    if claim.energy is None or energy is None or worked is None:
        return ()
    pue = span(claim.pue)
    expected = worked if pue is None else _facility(worked, pue)
    if agree(energy, expected):
        return ()
    if pue is not None and claim.boundary != "facility" and agree(energy, worked):
        return ()  # The device's energy, before the PUE.
    slip = explain(energy, expected, claim, with_pue=pue is not None)
    says = f"hours x watts give {figure(expected.value)} kWh, {shown(claim.energy)} stated"
    if slip is not None and slip.kind == "pue":
        text = f"{says}: that fits {slip.words}"
        return (about(claim, "CL705", text, "apply the PUE once, and say which energy is stated"),)
    because = f"; {slip.words} would explain it" if slip else ""
    text = f"{says} ({apart(energy, expected)}){because}"
    return (about(claim, "CL704", text, "check hours, power per device and number of devices"),)
