"""Channels of a Jetson's rails: the input alone counts, or the sum where there is none."""

from __future__ import annotations

from collections.abc import Sequence

from carbonlens.domain.finding import Finding, Severity
from carbonlens.domain.jetson_rails import Layout, is_rail, layout
from carbonlens.importers.contract import Channel
from carbonlens.importers.records import finding
from carbonlens.importers.sources import Source


def channels_of(
    names: Sequence[str], method: str, source: Source
) -> tuple[Layout, dict[str, Channel], list[Finding]]:
    """Return what the rails amount to, a channel a rail that is read, and what must be said.

    Args:
        names: Rails as logged.
        method: Tool that logged them.
        source: For Findings.
    """
    found = layout(names)
    channels = {
        rail.name: Channel(
            name=rail.name,
            component=rail.component,
            device=rail.name,
            counted=found.total is None or rail is found.total,
            method=f"{method} {rail.name}",
            unit="mW",
        )
        for rail in found.rails
    }
    placed = bool(channels)
    for name, _ in found.ignored:
        if is_rail(name):
            channels[name] = Channel(
                name=name, component="soc", device=name, counted=False, method=f"{method} {name}", unit="mW"
            )
    said: list[Finding] = []
    strange = [name for name, _ in found.ignored if is_rail(name)]
    if strange:
        text = f"{', '.join(strange)}: of the carrier board or unknown; beside the energy, not in it"
        severity: Severity = "info" if placed else "warning"
        mend = "log at the module's input rail, or at the wall"
        said.append(finding("CL267", severity, text, source, mend=mend))
    if found.missing:
        text = (
            f"the rails of {found.title} lack {', '.join(found.missing)}: their sum is less than the module"
        )
        said.append(finding("CL267", "warning", text, source, mend="log all rails"))
    elif not found.whole and placed:
        text = f"no rail of {found.title} is known as its input: the sum of those known counts"
        said.append(finding("CL267", "warning", text, source, mend="log at the wall"))
    if found.caveat and placed:
        said.append(finding("CL267", "info", f"{found.title}: {found.caveat}", source))
    return found, channels, said
