"""Reconciliation: what meters counted beside what runs recorded, per site and kind of meter."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from carbonlens.accounting import formulas
from carbonlens.accounting.metered import Metered
from carbonlens.accounting.site_energy import Share, SiteTerms, metered_facility_kwh
from carbonlens.domain.estimate import Estimate, add
from carbonlens.domain.figure import Figure


class Reconciliation(msgspec.Struct, frozen=True, kw_only=True):
    """A meter beside the runs at its site, in facility kWh.

    Attributes:
        is_activity: Whether the meter's count is the activity data of the site.
        runs: Figures of what was recorded.
    """

    metered: Metered
    metered_kwh: Estimate
    recorded_kwh: Estimate
    difference_kwh: Estimate
    is_activity: bool
    runs: tuple[str, ...] = ()

    def figures(self, prefix: str) -> tuple[Figure, ...]:
        """Return the meters' counts, and facility energy by them, recorded, and the difference."""
        one = self.metered
        at = f"{prefix}.{one.site_id}.{one.name}"
        meters = tuple(f"meter:{name}" for name in one.meter_ids)
        names = ", ".join(one.meter_ids)
        counts = tuple(
            Figure(
                figure_id=meter,
                estimate=one.energy.scale(formulas.energy_kwh(1.0), "kWh"),
                label=f"{one.boundary} energy counted by {names} at {one.site_id}",
                formula="sum of the readings in the period",
                inputs=tuple(f"reading:{r}" for r in one.reading_ids),
            )
            for meter in meters
        )
        rows = (
            ("metered_kwh", self.metered_kwh, "facility energy by meters", "readings, and overheads", meters),
            ("recorded_kwh", self.recorded_kwh, "facility energy of recorded runs", "sum of runs", self.runs),
            (
                "difference_kwh",
                self.difference_kwh,
                "metered less recorded",
                "metered_kwh - recorded_kwh",
                (f"{at}.metered_kwh", f"{at}.recorded_kwh"),
            ),
        )
        return *counts, *(
            Figure(figure_id=f"{at}.{name}", estimate=e, label=f"{words}, {one.site_id}", formula=f, inputs=i)
            for name, e, words, f, i in rows
        )


def reconciliations(
    counted: Iterable[Metered],
    terms: Mapping[str, SiteTerms],
    found: Sequence[Share],
    used: Sequence[Metered],
) -> tuple[Reconciliation, ...]:
    """Return each meter of a known site beside its runs.

    Args:
        counted: What meters counted.
        terms: By site.
        found: What runs recorded.
        used: Which of the meters are activity data.
    """
    made = []
    for one in counted:
        if one.site_id not in terms:
            continue
        kwh = metered_facility_kwh(one, terms[one.site_id])
        held = [s for s in found if s.site_id == one.site_id]
        own = [s.energies.facility_kwh for s in held]
        recorded_kwh = add(own, "kWh") if own else Estimate(value=0.0, unit="kWh")
        made.append(
            Reconciliation(
                metered=one,
                metered_kwh=kwh,
                recorded_kwh=recorded_kwh,
                difference_kwh=kwh.minus(recorded_kwh),
                is_activity=any(one is u for u in used),
                runs=tuple(f"{s.prefix}.facility_kwh" for s in held),
            )
        )
    return tuple(made)
