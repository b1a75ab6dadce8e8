"""``sites.toml``: places where work runs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from carbonlens.domain.site import SITE_FIGURES, Site
from carbonlens.inventory.records import Kind, Problem
from carbonlens.inventory.values import a_first_of_month, a_sigma, at_least_0


def _check(site: Site) -> Iterator[Problem]:
    if site.control is not None and site.kind != "colocation":
        yield "control", f"control is stated of a site of kind {site.kind!r}", "only a colocation has it"
    for value, source in (
        ("pue", "pue_source"),
        ("wue_l_per_kwh", "wue_source"),
        ("host_overhead", "host_overhead_source"),
    ):
        if getattr(site, value) is not None and getattr(site, source) is None:
            yield value, f"{value} has no source", f"add {source}: where the figure comes from"
    for figure, field in SITE_FIGURES.items():
        start, end = site.validity(figure)
        if (start, end) != (None, None) and site.figure(figure) is None:
            stated = f"{figure}_valid_from" if start is not None else f"{figure}_valid_to"
            yield stated, f"states when a figure holds that it does not have: {field}", f"add {field}"
        if start is not None and end is not None and end <= start:
            yield (
                f"{figure}_valid_to",
                f"ends {end}, not after it begins",
                "valid_to is the first day without it",
            )


KIND: Final = Kind(
    name="sites",
    table="site",
    type=Site,
    id_field="site_id",
    rules={
        "pue": at_least_0,
        "pue_u_relative": a_sigma,
        "wue_l_per_kwh": at_least_0,
        "host_overhead": at_least_0,
        "host_overhead_u_relative": a_sigma,
        **{f"{figure}_valid_{end}": a_first_of_month for figure in SITE_FIGURES for end in ("from", "to")},
    },
    check=_check,
)
"""How a site stands in its file; whether a figure is plausible is for ``check_sites``."""
