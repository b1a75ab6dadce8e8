"""Runs as claims: the same checks over what was measured or imported."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Final

import msgspec

from carbonlens.audit.disclosure import check_age, check_components
from carbonlens.audit.emissions import check_emissions
from carbonlens.audit.power import check_power
from carbonlens.domain.claim import Claim, Stated
from carbonlens.domain.counting import counted
from carbonlens.domain.factor import Factor
from carbonlens.domain.finding import Finding
from carbonlens.domain.run import Reading, Run
from carbonlens.domain.units import G_PER_KG, J_PER_KWH, S_PER_HOUR

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_DATED = 4
_PLACES: Final = 3
"""Countries with one factor from which on that is no coincidence."""
_NAMED: Final = 4
_SPANS = frozenset({"direct", "life-cycle", "life_cycle"})


def check_runs(runs: Sequence[Run], factors: Iterable[Factor] = ()) -> tuple[Finding, ...]:
    """Return what the checks find in runs, one Finding a code and how many more runs have it.

    Args:
        runs: Root runs and their parts alike; each is checked by itself.
        factors: The location-based factors they are accounted with, where they are known.
    """
    known = list(factors)
    found: list[Finding] = []
    for run in runs:
        claim = claim_of(run, known)
        found += [*check_emissions(claim), *check_components(claim), *check_age(claim)]
        found += [f for part in (claim, *device_claims(run)) for f in check_power(part)]
    return (*_folded(found), *_placeless(runs, known), *_one_factor(runs), *_mixed(known))


def claim_of(run: Run, factors: Sequence[Factor] = ()) -> Claim:
    """Return what a run states as a whole.

    Args:
        run: The run; its own emissions are those its source states.
        factors: Of the account; the year of a single one is the claim's.
    """
    total = run.total_energy
    # Of a lower bound nothing can be said that holds of the whole.
    joules = None if total.value is None or total.state != "known" else Decimal(repr(total.value))
    years = {f.period[:_DATED] for f in factors}
    year = years.pop() if len(years) == 1 else ""
    return Claim(
        what=f"run {run.run_id}",
        file=None if run.origin is None else run.origin.source_file,
        line=None if run.origin is None else run.origin.source_line,
        energy=None if joules is None else Stated(value=joules, unit="J"),
        boundary=run.boundary,
        emissions=None if run.emissions_reported_kg is None else _kg(run.emissions_reported_kg),
        hours=_hours(run.duration_s),
        device_hours=False,
        hardware=run.hardware,
        region=run.zone or run.site,
        year=None if run.start_us is None else (_EPOCH + timedelta(microseconds=run.start_us)).year,
        factor_year=int(year) if year.isdigit() else None,
        components=tuple(sorted({r.component for r in run.energy})) if run.boundary == "device" else None,
    )


def device_claims(run: Run) -> tuple[Claim, ...]:
    """Return what a run states of its graphics processors, each reading by itself."""
    return tuple(_of_reading(run, r) for r in run.energy if r.component == "gpu" and r.devices)


def _of_reading(run: Run, reading: Reading) -> Claim:
    joules = reading.energy_j
    return Claim(
        what=f"run {run.run_id}, gpu",
        file=None if run.origin is None else run.origin.source_file,
        line=None if run.origin is None else run.origin.source_line,
        energy=None if joules is None else Stated(value=joules, unit="J"),
        hours=_hours(run.duration_s if reading.covered_s is None else reading.covered_s),
        device_hours=False,
        devices=Stated(value=Decimal(len(reading.devices))),
        hardware=run.hardware,
    )


def _kg(amount: Decimal) -> Stated:
    return Stated(value=amount, unit="kg")


def _hours(seconds: float | None) -> Stated | None:
    return None if not seconds else Stated(value=Decimal(repr(seconds)) / S_PER_HOUR)


def _placeless(runs: Sequence[Run], factors: Sequence[Factor]) -> tuple[Finding, ...]:
    """Say that runs tell no place, where nothing else says with which factor they are accounted."""
    blank = [r for r in runs if r.energy and r.zone is None and r.site is None]
    if not blank or factors:
        return ()
    text = f"{counted(len(blank), 'run states', 'runs state')} neither zone nor site: no factor is theirs"
    mend = "state zone or site with the runs (import --site), or audit with --assumptions FILE"
    return (Finding(code="CL710", severity="warning", message=text, mend=mend, subject=blank[0].run_id),)


def _one_factor(runs: Sequence[Run]) -> Iterator[Finding]:
    """Say that sources took one factor in several countries: a default, where nobody chose one."""
    countries: dict[str, dict[str, str]] = {}
    for run in runs:
        joules, kg = run.total_energy.value, run.emissions_reported_kg
        if run.zone and joules and kg and run.total_energy.state == "known":
            # Sources round kWh and grams: three digits of a factor are told apart, not more.
            rate = f"{float(kg) / (joules / J_PER_KWH):.2e}"
            countries.setdefault(rate, {}).setdefault(run.zone.partition("-")[0], run.run_id)
    for rate, places in countries.items():
        if len(places) >= _PLACES:
            named = ", ".join(sorted(places)[:_NAMED]) + (" and others" if len(places) > _NAMED else "")
            text = (
                f"{float(rate) * G_PER_KG:.3g} g/kWh in {len(places)} countries ({named}): no grid of one is "
            )
            text += "that of the others, so the source took a default"
            mend = (
                "keep what it states as evidence, and account with factors of each place: carbonlens account"
            )
            yield Finding(
                code="CL720", severity="warning", message=text, mend=mend, subject=min(places.values())
            )


def _mixed(factors: Sequence[Factor]) -> tuple[Finding, ...]:
    spans = sorted({word for f in factors for word in f.basis if word in _SPANS})
    if len(spans) < 2:
        return ()
    text = f"the runs are accounted with factors of different bases ({', '.join(spans)})"
    return (
        Finding(code="CL713", severity="warning", message=text, mend="use one basis, or show a sum for each"),
    )


def _folded(findings: Sequence[Finding]) -> tuple[Finding, ...]:
    """Return the first Finding of each code and severity, saying how many more runs have it."""
    groups: dict[tuple[str, str], list[Finding]] = {}
    for finding in findings:
        groups.setdefault((finding.code, finding.severity), []).append(finding)
    return tuple(_first_of(group) for group in groups.values())


def _first_of(group: Sequence[Finding]) -> Finding:
    rest = len({f.subject for f in group}) - 1
    if rest < 1:
        return group[0]
    text = f"{group[0].message} (and {counted(rest, 'more run')} likewise)"
    return msgspec.structs.replace(group[0], message=text)
