"""Snippets about one model's runs: a model card's emissions, and the EU's form for general-purpose AI.

A model card states grams (https://huggingface.co/docs/hub/model-cards-co2); published cards mix
them up with kilograms. The form (Model Documentation Form of 10 July 2025, after Annex XI,
section 1, point 2 (d) and (e) of Regulation (EU) 2024/1689) asks for megawatt hours with two
significant figures, a method in about a hundred words, and inference as operations, not energy.
"""

from __future__ import annotations

import json
import math
from datetime import UTC, datetime
from decimal import ROUND_FLOOR, ROUND_HALF_EVEN, Decimal
from typing import Final

import msgspec

from carbonlens._version import __version__
from carbonlens.accounting.footprint import Footprint
from carbonlens.domain.counting import counted
from carbonlens.domain.estimate import Estimate
from carbonlens.domain.units import US_PER_S
from carbonlens.reporting import format as fmt
from carbonlens.reporting.names import clip

MOST_WORDS: Final = 100
G_PER_KG: Final = 1000.0
KWH_PER_MWH: Final = 1000.0
FLOP_PER_MAC: Final = 2.0
_MEASURED: Final = ("A", "B", "C")
_NO_FIGURE: Final = "N/A"
_TEXT: Final = 200
_METHOD: Final = 80


class CardTerms(msgspec.Struct, frozen=True, kw_only=True):
    """What the runs do not know of a model.

    Attributes:
        training_type: ``pre-training`` or ``fine-tuning``; left out when ``None``.
        flop: Operations of the training as stated by its maker; ``None`` when not stated.
        macs_per_unit: Multiply-accumulates of one unit of inference; ``None`` when not recorded.
        unit: That unit.
    """

    training_type: str | None = None
    flop: float | None = None
    macs_per_unit: int | None = None
    unit: str | None = None


def model_card(found: Footprint, terms: CardTerms) -> str:
    """Return the front matter with grams, and a section on environmental impact.

    Args:
        found: What the runs took.
        terms: What else is stated.
    """
    whole = found.emissions_location_kg
    lines = ["---"]
    if whole.state == "known" and whole.value is not None:
        lines += [
            "co2_eq_emissions:",
            f"  emissions: {_three_digits(whole.value * G_PER_KG)}  # grams of CO2e",
        ]
        lines.append(f"  source: {_quoted(_source(found))}")
        if terms.training_type:
            lines.append(f"  training_type: {_quoted(terms.training_type)}")
        if found.vector.place:
            lines.append(f"  geographical_location: {_quoted(found.vector.place)}")
        if found.hardware:
            lines.append(f"  hardware_used: {_quoted(', '.join(found.hardware))}")
    else:
        # A lower bound printed as a card's one number would be read as the figure.
        lines.append(f"# co2_eq_emissions is left out: {_why_not(found)}")
    return "\n".join([*lines, "---", "", *_impact(found)]) + "\n"


def _impact(found: Footprint) -> list[str]:
    place = clip(found.vector.place or "place not stated", _TEXT)
    lines = ["## Environmental impact", ""]
    lines.append(
        f"- **Energy**: {_said(fmt.energy, _joules(found.facility_kwh))} at the building's meter, "
        f"evidence grade {found.facility_kwh.grade or 'unknown'}, over {counted(found.runs, 'run')}"
    )
    lines.append(f"- **CO₂e, location-based**: {_said(fmt.mass, found.emissions_location_kg)} ({place})")
    lines.append(f"- **CO₂e, market-based**: {_said(fmt.mass, found.emissions_market_kg)}")
    if found.wall_h is not None:
        lines.append(f"- **Time**: {_time(found.wall_h, '')}")
    if found.device_h is not None:
        lines.append(f"- **Accelerator time**: {_accelerators(found)}")
    if found.hardware:
        lines.append(f"- **Hardware**: {_plain(', '.join(found.hardware))}")
    lines.append(f"- **How**: {_plain(method_text(found))}")
    lines += [f"- **Note**: {_plain(f.message)}" for f in found.findings]
    return lines


def gpai_form(found: Footprint, terms: CardTerms) -> str:
    """Return the lines of the form that are about compute and energy.

    Args:
        found: What the training runs took.
        terms: What else is stated.
    """
    whole = found.facility_kwh
    known = whole.state == "known" and whole.value is not None
    measured = "measured" if whole.grade in _MEASURED else "estimated"
    energy = f"{_two_digits((whole.value or 0.0) / KWH_PER_MWH)} MWh ({measured})" if known else _NO_FIGURE
    at_least = ""
    if not known and whole.value:
        # Rounded to the nearest it could be more than what is known.
        bound = _significant((whole.low or whole.value) / KWH_PER_MWH, 2, rounding=ROUND_FLOOR)
        at_least = f"; what is known comes to {bound} MWh or more"
    inference = _NO_FIGURE
    if terms.macs_per_unit is not None:
        flop = terms.macs_per_unit * FLOP_PER_MAC
        inference = f"{_scientific(flop)} FLOP per {_plain(terms.unit or 'unit')}"
    rows = (
        ("Training time (Annex XI, 1, 2(d))", _span(found)),
        ("Wall-clock time of the runs", _time(found.wall_h, "unknown")),
        ("Accelerator time", _accelerators(found)),
        ("Computation used for training", _stated_flop(terms)),
        ("Energy used for training (2(e))", energy + (at_least or ("" if known else f": {_why_not(found)}"))),
        ("Method of measuring energy", method_text(found)),
        ("Computation used for inference", inference),
        ("Method of that", _inference_method(terms)),
    )
    lines = ["# Compute and energy (EU AI Act, Annex XI; Model Documentation Form)", ""]
    return "\n".join([*lines, *(f"**{name}**: {text}\n" for name, text in rows)])


def _time(hours: float | None, otherwise: str) -> str:
    return otherwise if hours is None else _said(fmt.duration, _seconds(hours))


def _accelerators(found: Footprint) -> str:
    if found.device_h is None:
        return _NO_FIGURE
    return f"{_time(found.device_h, _NO_FIGURE)} on {counted(found.devices, 'accelerator')}"


def _stated_flop(terms: CardTerms) -> str:
    return _NO_FIGURE if terms.flop is None else f"{_scientific(terms.flop)} FLOP (stated)"


def method_text(found: Footprint) -> str:
    """Return how the energy was made, in at most a hundred words.

    Args:
        found: What the runs took.
    """
    how = "; ".join(map(_in_short, found.methods[:3])) or "as the runs' source states it"
    vector = found.vector
    pue = (
        f"PUE {vector.pue:g} ({clip(vector.pue_source or 'source not stated', 80)})"
        if vector.pue
        else "PUE unknown"
    )
    grid = "No grid factor stated."
    if vector.location is not None:
        factor = vector.location
        named = f"{clip(factor.zone, 40)} {clip(factor.period, 20)} ({clip(factor.source, 80)})"
        grid = f"Grid factor {factor.value_kg_per_kwh:g} kg CO2e per kWh, {named}."
    text = (
        f"Energy read by carbonlens {__version__}: {how}. Boundary {found.boundary or 'unstated'}, "
        f"grade {found.energy_j.grade or 'unknown'}. Each joule counts once over processes, ranks and nested "
        f"runs. {pue}. {grid}"
    )
    words = text.split()
    return text if len(words) <= MOST_WORDS else " ".join(words[: MOST_WORDS - 1]) + " …"


def _source(found: Footprint) -> str:
    grade = found.facility_kwh.grade or "unknown"
    low, high = found.emissions_location_kg.low, found.emissions_location_kg.high
    interval = ""
    if low is not None and high is not None:
        interval = f", 95 % interval {_three_digits(low * G_PER_KG)} to {_three_digits(high * G_PER_KG)} g"
    example = ", with example assumptions" if found.vector.example else ""
    return f"carbonlens {__version__}, location-based, evidence grade {grade}{interval}{example}"


def _inference_method(terms: CardTerms) -> str:
    if terms.macs_per_unit is None:
        return "no run recorded the model's multiply-accumulates"
    return "two operations for each multiply-accumulate of one pass, counted from the model's layers"


def _why_not(found: Footprint) -> str:
    said = next((f.message for f in found.findings if f.severity != "info"), None)
    return _plain(said) if said else "the energy of the runs is unknown"


def _span(found: Footprint) -> str:
    if found.start_us is None or found.end_us is None:
        return "unknown"
    days = [
        datetime.fromtimestamp(us // US_PER_S, tz=UTC).date().isoformat()
        for us in (found.start_us, found.end_us)
    ]
    return days[0] if days[0] == days[1] else f"{days[0]} to {days[1]}"


def _said(quantity: fmt.Quantity, estimate: Estimate) -> str:
    printed = quantity(estimate)
    text = f"{printed.text} {printed.interval}".strip()
    return text.replace("\u202f", " ").replace("\u00a0", " ")


def _joules(kwh: Estimate) -> Estimate:
    return kwh.scale(3.6e6, "J")


def _seconds(hours: float) -> Estimate:
    return Estimate(value=hours * 3600.0, unit="s")


def _three_digits(value: float) -> str:
    return _significant(value, 3)


def _two_digits(value: float) -> str:
    return _significant(value, 2)


def _significant(value: float, digits: int, *, rounding: str = ROUND_HALF_EVEN) -> str:
    """Return a number with that many significant digits and no exponent: a form is read by people."""
    if value == 0 or not math.isfinite(value):
        return "0" if value == 0 else _NO_FIGURE
    exact = Decimal(repr(value))
    step = Decimal(1).scaleb(exact.adjusted() - digits + 1)
    rounded = (exact / step).quantize(Decimal(1), rounding=rounding) * step
    return format(rounded, "f")


def _scientific(value: float) -> str:
    return f"{value:.2e}"


def _quoted(text: str) -> str:
    """Return a YAML string that no text can break out of: JSON's are YAML's (YAML 1.2, 1.2)."""
    return json.dumps(clip(text, _TEXT), ensure_ascii=True)


def _in_short(method: str) -> str:
    """Return a method in few letters: without what stands in brackets where that makes it long."""
    return clip(method if len(method) <= _METHOD else method.partition(" (")[0], _METHOD)


def _plain(text: str) -> str:
    """Return text on one line that Markdown prints as it is."""
    clean = clip(text, 400)
    return "".join(f"\\{c}" if c in "\\`*_{}[]<>#|" else c for c in clean)
