"""What a claim leaves out: units, place, method, parts, and how old its factor is."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from carbonlens.accounting.conversions import lb_to_kg
from carbonlens.audit.finding import about
from carbonlens.audit.quantities import KG, KG_PER_KWH, KWH, agree, figure, shown, span, through
from carbonlens.domain.claim import Claim, Stated
from carbonlens.domain.counting import counted
from carbonlens.domain.finding import Finding

OLD_YEARS: Final = 2
"""A factor this much older than the work is stale: factors of the year come about a year late."""

_MISTAKEN: Final = (
    (1000.0, "kilograms were written for grams"),
    (1e6, "tonnes were written for grams"),
    (float(lb_to_kg(1000)), "pounds were written for grams"),
    (0.001, "the text is a thousandth of it, grams for kilograms"),
)
"""What the text is of the front matter where one of them has the wrong unit."""

_GPU: Final = ("gpu", "a100", "h100", "v100", "nvidia", "cuda", "rtx", "t4")


def check_units(claims: Sequence[Claim]) -> tuple[Finding, ...]:
    """Return a Finding for each amount whose unit is missing or not known: it is not used."""
    first: dict[tuple[str, str | None], tuple[Claim, Stated, tuple[str, ...]]] = {}
    rows: Counter[tuple[str, str | None]] = Counter()
    for claim in claims:
        for name, number, units in _amounts(claim):
            if number is not None and number.unit not in units:
                first.setdefault((name, number.unit), (claim, number, tuple(units)))
                rows[name, number.unit] += 1
    found = []
    for (name, unit), (claim, number, known) in first.items():
        rest = rows[name, unit] - 1
        more = f" ({counted(rest, 'row')} more likewise)" if rest else ""
        said = "no unit" if unit is None else f"the unit {unit!r}"
        text = f"{name} {figure(number.value)} has {said}{more}"
        found.append(about(claim, "CL708", text, f"state one of {', '.join(known)}"))
    return tuple(found)


def _amounts(claim: Claim) -> tuple[tuple[str, Stated | None, Mapping[str, Callable[[Any], Any]]], ...]:
    return (
        ("energy", claim.energy, KWH),
        ("emissions", claim.emissions, KG),
        ("market-based emissions", claim.market_emissions, KG),
        ("factor", claim.factor, KG_PER_KWH),
    )


def check_cells(claim: Claim) -> tuple[Finding, ...]:
    """Return a Finding for each cell that states no possible figure: it is not used."""
    mend = "write the figure, or leave the cell empty where nobody knows it"
    return tuple(about(claim, "CL719", f"{text}: it stays unknown", mend, "error") for text in claim.unread)


def check_market(claim: Claim) -> tuple[Finding, ...]:
    """Return a Finding where market-based emissions stand without location-based ones."""
    if claim.market_emissions is None or claim.emissions is not None:
        return ()
    said = "of 0 " if claim.market_emissions.value == 0 else ""
    text = f"states market-based emissions {said}without location-based ones"
    return (about(claim, "CL714", text, "state both (GHG Protocol Scope 2 Guidance, chapter 7)"),)


def check_age(claim: Claim) -> tuple[Finding, ...]:
    """Return a Finding where the factor is years older than the work."""
    if claim.year is None or claim.factor_year is None or claim.year - claim.factor_year <= OLD_YEARS:
        return ()
    text = f"uses a factor of {claim.factor_year} for work of {claim.year}"
    return (about(claim, "CL718", text, "use the factor of the year, or of the one before"),)


def check_components(claim: Claim) -> tuple[Finding, ...]:
    """Return a Finding where the energy leaves out a part that the work used."""
    if claim.components is None or not claim.components or claim.boundary == "facility":
        return ()
    held = set(claim.components)
    if held & {"total", "wall"}:
        return ()
    missing = []
    hardware = (claim.hardware or "").lower()
    if any(word in hardware for word in _GPU) and "gpu" not in held:
        missing.append("the GPU")
    if held & {"cpu", "gpu"} and "ram" not in held:
        missing.append("memory")
    if held == {"gpu"}:
        missing.append("the CPU")
    if not missing:
        return ()
    text = f"its energy leaves out {' and '.join(missing)}: it is a lower bound"
    return (
        about(claim, "CL712", text, "measure the part, or state the energy as that of the parts it holds"),
    )


def check_place(claims: Sequence[Claim]) -> tuple[Finding, ...]:
    """Return one Finding for the rows of a table that state emissions with neither place nor factor."""
    blank = [
        c
        for c in claims
        if c.region is None
        and c.factor is None
        and (
            (c.emissions is not None and c.emissions.value != 0)
            or (c.accounted and c.energy is not None and c.energy.value != 0)
        )
    ]
    if not blank:
        return ()
    rest = len(blank) - 1
    more = f" ({counted(rest, 'row')} more likewise)" if rest else ""
    what = "energy" if blank[0].emissions is None else "emissions"
    text = f"states {what} with neither place nor emission factor{more}"
    return (about(blank[0], "CL710", text, "state the place (country, grid zone or region) and the factor"),)


def check_scopes(claims: Sequence[Claim]) -> tuple[Finding, ...]:
    """Return a Finding where one energy is in scope 2 and scope 3, or rented machines in scope 2."""
    found = []
    seen: dict[tuple[str, float], Claim] = {}
    for claim in claims:
        if claim.scope is None:
            continue
        if claim.cloud and claim.scope.startswith("2"):
            text = "books rented machines in scope 2; they belong to scope 3, category 1"
            found.append(about(claim, "CL717", text, "book them in scope 3 alone"))
        energy = span(claim.energy, KWH)
        if energy is None:
            continue
        other = seen.setdefault((claim.what.casefold(), energy.value), claim)
        if other.scope is not None and {other.scope[0], claim.scope[0]} == {"2", "3"}:
            text = f"the same {figure(energy.value)} kWh are in scope {other.scope} and scope {claim.scope}"
            found.append(about(claim, "CL717", text, "book them in one scope; only upstream is scope 3 too"))
    return tuple(found)


def check_card_units(claims: Sequence[Claim]) -> tuple[Finding, ...]:
    """Return a Finding where a card's front matter and its text state one figure in two units.

    A text that states the same mass anywhere settles it: its other figures are of other things.
    """
    found = []
    for card in (c for c in claims if c.front_matter):
        mine = span(card.emissions, KG)
        texts = [c for c in claims if not c.front_matter and span(c.emissions, KG) is not None]
        if mine is None or card.emissions is None or mine.value <= 0:
            continue
        stated = [(c, kg) for c in texts if (kg := span(c.emissions, KG)) is not None and kg.value > 0]
        if any(agree(mine, kg) for _, kg in stated):
            continue
        for other, kg in stated:
            meant = next((w for f, w in _MISTAKEN if agree(through(lambda x, f=f: x * f, mine), kg)), None)
            if meant is not None and other.emissions is not None:
                text = (
                    f"holds {shown(card.emissions)} in co2_eq_emissions, and line {other.line} states "
                    f"{shown(other.emissions)}: {meant}"
                )
                found.append(about(card, "CL711", text, "write co2_eq_emissions in grams", "error"))
                break
    return tuple(found)
