"""Boundaries: device energy to IT energy to facility energy, each step once.

Device energy lacks the server around it (power supply, fans, board), IT energy the
building. What is not known is not made up: without a host overhead IT energy is "at least
device", without a PUE facility energy is "at least IT", and such lower bounds are never
added to true facility figures.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import msgspec
from msgspec.structs import replace

from carbonlens.accounting import formulas
from carbonlens.accounting.factor_choice import DEFAULT_PUE_U_RELATIVE
from carbonlens.accounting.propagation import stated, through
from carbonlens.domain.counting import counted
from carbonlens.domain.estimate import Estimate, unknown
from carbonlens.domain.figure import Figure
from carbonlens.domain.finding import Finding
from carbonlens.domain.site import Site
from carbonlens.domain.units import Boundary


class Overheads(msgspec.Struct, frozen=True, kw_only=True):
    """What stands around a device at one place.

    Attributes:
        pue: Facility energy per IT energy; ``None`` when unknown.
        host: IT energy per device energy; ``None`` when unknown.
        pue_id, host_id: Ids of the rows or statements they come from.
        findings: What is to be said of them.
    """

    pue: Estimate | None = None
    host: Estimate | None = None
    pue_id: str = "pue"
    host_id: str = "host_overhead"
    findings: tuple[Finding, ...] = ()


class Energies(msgspec.Struct, frozen=True, kw_only=True):
    """One energy at the three boundaries, in kWh; unknown where it cannot be told.

    Attributes:
        boundary: The one it was measured at; the others are made from it.
        source_ids: Runs, readings or figures that the measured one rests on.
    """

    boundary: Boundary | None
    device_kwh: Estimate
    it_kwh: Estimate
    facility_kwh: Estimate
    overheads: Overheads
    findings: tuple[Finding, ...] = ()
    source_ids: tuple[str, ...] = ()

    def figures(self, prefix: str) -> tuple[Figure, ...]:
        """Return the three as figures ``<prefix>.device_kwh`` and so on, each with what made it."""
        host, pue = self.overheads.host_id, self.overheads.pue_id
        made = _MADE.get(self.boundary or "", {})
        rests = {"host": host, "pue": pue, "device": f"{prefix}.device_kwh", "it": f"{prefix}.it_kwh"}
        rests["facility"] = f"{prefix}.facility_kwh"
        figures = []
        for name in ("device", "it", "facility"):
            estimate: Estimate = getattr(self, f"{name}_kwh")
            formula, inputs = made.get(name, ("", ()))
            figures.append(
                Figure(
                    figure_id=rests[name],
                    estimate=estimate,
                    label=_LABELS[name],
                    formula=formula,
                    inputs=tuple(rests[i] for i in inputs) if formula else self._measured(name),
                )
            )
        return tuple(figures)

    def _measured(self, name: str) -> tuple[str, ...]:
        return self.source_ids if name == (self.boundary or "facility") else ()


_LABELS: Final = {
    "device": "energy of the devices",
    "it": "energy of the servers",
    "facility": "energy of the facility",
}
_MADE: Final[dict[str, dict[str, tuple[str, tuple[str, ...]]]]] = {
    "device": {
        "it": ("it_kwh = device_kwh * host_overhead", ("device", "host")),
        "facility": ("facility_kwh = it_kwh * pue", ("it", "pue")),
    },
    "it": {
        "device": ("device_kwh = it_kwh / host_overhead", ("it", "host")),
        "facility": ("facility_kwh = it_kwh * pue", ("it", "pue")),
    },
    "facility": {
        "it": ("it_kwh = facility_kwh / pue", ("facility", "pue")),
        "device": ("device_kwh = it_kwh / host_overhead", ("it", "host")),
    },
}


def site_overheads(site: Site) -> Overheads:
    """Return what a site declares about its own overheads.

    A PUE of 1 is exact: there is no building overhead. Another one whose width nobody states
    has that of a published one.
    """
    pue_id, host_id = f"pue:{site.site_id}", f"host_overhead:{site.site_id}"
    width = site.pue_u_relative
    findings: tuple[Finding, ...] = ()
    if width is None and site.pue is not None:
        width = 0.0 if site.pue == 1 else DEFAULT_PUE_U_RELATIVE
        findings = () if site.pue == 1 else (_pue_width(site),)
    pue = None if site.pue is None else stated(site.pue, width, pue_id, "1")
    host = None
    if site.host_overhead is not None:
        host = stated(site.host_overhead, site.host_overhead_u_relative, host_id, "1")
    return Overheads(pue=pue, host=host, pue_id=pue_id, host_id=host_id, findings=findings)


def _pue_width(site: Site) -> Finding:
    return Finding(
        code="CL489",
        severity="info",
        message=f"no width of the PUE {site.pue:g} of {site.site_id} is stated: one sigma of "
        f"{DEFAULT_PUE_U_RELATIVE:.1%} is taken, as for a published one",
        mend="state pue_u_relative",
        subject=site.site_id,
    )


def energies(
    energy: Estimate, boundary: Boundary | None, around: Overheads, source_ids: tuple[str, ...] = ()
) -> Energies:
    """Return an energy at the three boundaries.

    Args:
        energy: In joules, at ``boundary``.
        boundary: What the joules include; ``None`` when the source does not say.
        around: Host overhead and PUE of the place.
        source_ids: Runs or readings it was measured by.
    """
    it, of_it = it_energy(energy, boundary, around)
    facility, of_facility = facility_energy(energy, boundary, around)
    return Energies(
        boundary=boundary,
        device_kwh=_device(energy, boundary, it, around),
        it_kwh=it,
        facility_kwh=facility,
        overheads=around,
        findings=tuple(dict.fromkeys((*of_it, *of_facility))),
        source_ids=source_ids,
    )


def it_energy(
    energy: Estimate, boundary: Boundary | None, around: Overheads
) -> tuple[Estimate, tuple[Finding, ...]]:
    """Return IT energy in kWh: the base of PUE and of WUE (ISO/IEC 30134-2, 30134-9).

    Args:
        energy: In joules, at ``boundary``.
        boundary: What the joules include.
        around: Host overhead and PUE of the place.
    """
    if energy.value is None:
        return unknown("kWh"), (_NO_ENERGY,)
    kwh = _in_kwh(energy)
    if boundary == "it":
        return kwh, ()
    if boundary == "device":
        return _around_device(kwh, around)
    if boundary is None or around.pue is None:
        return unknown("kWh"), (_NO_IT_ENERGY,)
    return through(formulas.it_of_facility_kwh, kwh, around.pue, unit="kWh"), ()


def facility_energy(
    energy: Estimate, boundary: Boundary | None, around: Overheads
) -> tuple[Estimate, tuple[Finding, ...]]:
    """Return facility energy in kWh; a lower bound where a part of it is unknown.

    Device energy lacks the host, so without a host overhead its facility figure is "at
    least device x PUE".

    Args:
        energy: In joules, at ``boundary``.
        boundary: What the joules include.
        around: Host overhead and PUE of the place.
    """
    if energy.value is None:
        return unknown("kWh"), (_NO_ENERGY,)
    if boundary == "facility" or boundary is None:
        kwh = _in_kwh(energy)
        return (kwh, ()) if boundary else (_lower_bound(kwh), (_NO_BOUNDARY,))
    it, findings = it_energy(energy, boundary, around)
    if around.pue is None:
        return _lower_bound(it), (*findings, _NO_PUE)
    return through(formulas.facility_kwh, it, around.pue, unit="kWh"), findings


def in_part(parts: Iterable[Estimate]) -> tuple[Finding, ...]:
    """Return what is to be said of facility energies that are not all true figures.

    Args:
        parts: Facility energies in kWh, which are to be summed.
    """
    items = list(parts)
    bounds = [p for p in items if p.value is not None and p.state != "known"]
    missing = sum(p.value is None for p in items)
    findings = []
    if bounds:
        findings.append(
            Finding(
                code="CL381",
                severity="warning",
                message=f"{counted(len(bounds), 'line is', 'lines are')} facility energy known as a lower "
                "bound only: they have a sum of their own, not added to the true figures",
                mend="state host overhead and PUE, or meter the facility",
            )
        )
    if missing:
        findings.append(
            Finding(
                code="CL381",
                severity="error",
                message=f"the facility energy of {counted(missing, 'line')} is unknown, and left out of the "
                "total",
                mend="measure it, or state its boundary",
            )
        )
    return tuple(findings)


def _device(energy: Estimate, boundary: Boundary | None, it: Estimate, around: Overheads) -> Estimate:
    if energy.value is not None and boundary == "device":
        return _in_kwh(energy)
    if boundary is None or around.host is None:
        return unknown("kWh")
    return through(formulas.device_of_it_kwh, it, around.host, unit="kWh")


def _in_kwh(energy: Estimate) -> Estimate:
    return energy.scale(formulas.energy_kwh(1.0), "kWh")


def _around_device(kwh: Estimate, around: Overheads) -> tuple[Estimate, tuple[Finding, ...]]:
    if around.host is None:
        return _lower_bound(kwh), (_NO_HOST,)
    return through(formulas.it_kwh, kwh, around.host, unit="kWh"), ()


def _lower_bound(estimate: Estimate) -> Estimate:
    return replace(estimate, state="unbounded")


_NO_ENERGY: Final = Finding(
    code="CL301",
    severity="warning",
    message="energy is unknown, and with it emissions and the cost of electricity",
    mend="measure it with a sensor, or import a measured figure",
)
_NO_BOUNDARY: Final = Finding(
    code="CL302",
    severity="warning",
    message="the energy's boundary is not stated: no PUE is applied, and figures made from it are "
    "lower bounds",
    mend="state device, it or facility with the runs",
)
_NO_HOST: Final = Finding(
    code="CL303",
    severity="warning",
    message="device energy does not hold the host (power supply, fans, board): figures made from it are "
    "lower bounds",
    mend="add a wall or BMC reading, or a sourced host overhead",
)
_NO_PUE: Final = Finding(
    code="CL304",
    severity="warning",
    message="the site's PUE is unknown: building overhead is left out, and figures are lower bounds",
    mend="state pue with its source; 1.0 where there is no building overhead",
)
_NO_IT_ENERGY: Final = Finding(
    code="CL380",
    severity="warning",
    message="IT energy cannot be told from an energy of the facility without its PUE, nor from one whose "
    "boundary is not stated: what rests on IT energy is unknown",
    mend="state the boundary with the runs, and the site's pue with its source",
)
