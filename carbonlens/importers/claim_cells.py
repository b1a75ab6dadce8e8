"""Numbers, units and header words of tables in which people state energy and emissions."""

from __future__ import annotations

import re
from decimal import Decimal, InvalidOperation
from typing import Final

import msgspec

from carbonlens.domain.claim import Stated, stated

_NUMBER: Final = re.compile(
    r"(?P<number>[-−]?\d[\d,\u00a0\u202f']*(?:\.\d+)?(?:[eE][+-]?\d+)?)\s*(?P<rest>[^\d]*.*)", re.DOTALL
)
_LARGEST_EXPONENT: Final = 30
"""No amount of this world has more digits."""

_ABOUT: Final = re.compile(r"^\s*(?:[≈~<>±]|about|ca\.?|approx\.?)*\s*", re.IGNORECASE)
_GROUPS: Final = re.compile(r"[,\u00a0\u202f']")
_THOUSANDS: Final = re.compile(r"^[-−]?\d{1,3}([,\u00a0\u202f' ]\d{3})+(\.\d+)?$")
_SCALES: Final = {"k": 3, "thousand": 3, "m": 6, "million": 6, "b": 9, "bn": 9, "billion": 9}
_SCALE: Final = re.compile(r"^(k|thousand|m|million|b|bn|billion)(?![a-z])", re.IGNORECASE)

_UNITS: Final = (
    ("kg/kWh", r"kg[^/]*?(/|per)\s*kwh"),
    ("g/kWh", r"(?<!k)g(rams?)?\b[^/]*?(/|per)\s*kwh|\bgco2[a-z]*\s*(/|per)\s*kwh"),
    ("kg/MWh", r"kg[^/]*?(/|per)\s*mwh"),
    ("t/MWh", r"\bt(on(ne)?s?)?\b[^/]*?(/|per)\s*mwh|\btco2[a-z]*\s*(/|per)\s*mwh"),
    ("lb/MWh", r"\b(lbs?|pounds?)\b[^/]*?(/|per)\s*mwh"),
    ("lb/kWh", r"\b(lbs?|pounds?)\b[^/]*?(/|per)\s*kwh"),
    ("GWh", r"\bgwh\b"),
    ("MWh", r"\bmwh\b"),
    ("kWh", r"\bkwh\b|kilowatt.?hours?"),
    ("Wh", r"\bwh\b|\bwatt.?hours?"),
    ("J", r"\bjoules?\b|\bj\b"),
    ("kg", r"\bkg|kilograms?|\bkilos?\b"),
    ("lb", r"\blbs?\b|\bpounds?\b"),
    ("t", r"\btco2|\btonnes?|\btons?\b|\bt\b|metric tons?"),
    ("g", r"\bgrams?\b|\bgco2|\bg\b"),
    ("W", r"\bw\b|\bwatts?\b"),
    ("kW", r"\bkw\b"),
    ("mL", r"\bml\b"),
    ("kL", r"\bkl\b"),
    ("L", r"\bl\b|\blit(re|er)s?\b"),
)


class Column(msgspec.Struct, frozen=True):
    """What a column holds.

    Attributes:
        field: Field of a claim.
        unit: Unit the header states.
        part: Component whose energy it is; ``None`` where it is of the whole.
    """

    field: str
    unit: str | None = None
    part: str | None = None


_FIELDS: Final = (
    ("saving", r"(sav|reduc)\w*.*(%|percent)|(%|percent)\w*.*(sav|reduc)"),
    ("", r"%|percent|\brate\b|[a-z]_rate\b"),
    ("baseline", r"(baseline|before).*(energy|wh\b)|(energy|wh\b).*(baseline|before)"),
    ("units", r"^(number of )?(tokens|queries|requests|inferences|images|prompts)$"),
    ("per_unit", r"(co2|emission|carbon).*\bper\b\s*(token|request|query|inference|image|parameter|prompt)"),
    ("factor", r"(carbon|grid|emission)s?\W*(intensity|factor)|kg\s*/\s*kwh|g\s*co2\w*\s*/\s*kwh"),
    ("wue", r"\bwue\b|water usage effectiveness"),
    ("pue", r"\bpue\b|power usage effectiveness"),
    ("water", r"\bwater\b"),
    ("market_emissions", r"market.?based"),
    ("factor_year", r"factor.?year"),
    ("basis", r"factor basis|\bbasis\b"),
    ("emissions", r"co2|emission|carbon (emitted|footprint)|greenhouse|\bghg\b"),
    ("hours", r"\b(gpu|tpu|npu|device|accelerator|chip)s?.?\s*-?(hours?|h)\b"),
    ("elapsed", r"\bhours\b|\bduration\b|(training|wall.?clock|elapsed|run.?)\s*time|time \((h|hours)\)"),
    ("watts", r"\bpower\b|\btdp\b|\bwatts?\b"),
    ("energy", r"energy|electricity|\b[kmg]?wh\b"),
    (
        "devices",
        r"(number|count|no\.?|#|num).*(gpu|tpu|device|chip|accelerator)|^\s*(gpus|devices|chips)\s*$",
    ),
    ("hardware", r"hardware|gpu type|device type|accelerator|\bgpu\b|\bchip\b"),
    ("region", r"region|location|country|\bzone\b|\bplace\b"),
    ("scope", r"\bscope\b"),
    ("year", r"\byear\b"),
)
_BEFORE_UNIT: Final = re.compile(r"_(?=(?:[kmg]?wh|kg|g|t|lbs?|l|ml|kl|w|kw|j)$)")
"""What parts a unit from the name of a column, as programs write it: ``emissions_kg``."""

_PART: Final = re.compile(r"\b(cpu|gpu|d?ram)[ _-]?(?=energy|electricity|\(|[kmg]?wh)")
TEXT_FIELDS: Final = frozenset({"hardware", "region", "scope", "basis"})
YEAR_FIELDS: Final = frozenset({"year", "factor_year"})
_SIGNED_FIELDS: Final = frozenset({"saving"})
"""Fields that may be below 0: an optimization may cost energy."""

_NO_FIGURE: Final = re.compile(r"[-+.\u2212]*(nan|inf(inity)?|\u221e)\b", re.IGNORECASE)


def column_of(header: str) -> Column | None:
    """Return what a column holds by its header; ``None`` for one that is of no use here."""
    words = _BEFORE_UNIT.sub(" ", plain(header).lower())
    for field, pattern in _FIELDS:
        if re.search(pattern, words):
            part = _PART.search(words) if field == "energy" else None
            name = part[1].replace("dram", "ram") if part else None
            return Column(field, unit_of(words), name) if field else None
    return None


def unit_of(text: str) -> str | None:
    """Return the unit a text names; ``None`` without one. A quotient is found before its parts."""
    words = text.lower().replace("₂", "2")
    return next((unit for unit, pattern in _UNITS if re.search(pattern, words)), None)


def plain(cell: str) -> str:
    """Return a cell without Markdown's marks, footnotes and line breaks."""
    text = re.sub(r"</?su[bp]>", "", cell.replace("\\", ""))
    text = re.sub(r"<[^>]*>|\[\^?\d+\]", " ", text)
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", text)
    return re.sub(r"\s+", " ", text.replace("*", "").replace("`", "").replace("₂", "2")).strip()


def number_in(cell: str, unit: str | None) -> Stated | None:
    """Return the number of a cell; ``None`` for a dash, a word or an empty cell.

    Args:
        cell: Such as ``1,720,320``, ``39.3 k``, ``≈1.3M``, ``12 t``.
        unit: The header's, for a cell that states none.
    """
    text = _ABOUT.sub("", plain(cell))
    found = _NUMBER.match(text)
    if found is None:
        return None
    digits, rest = found["number"], found["rest"].strip()
    whole = re.match(r"^(\d{1,3}(?: \d{3})+(?:\.\d+)?)(?!\d)(.*)$", text)
    if whole is not None:
        digits, rest = whole[1].replace(" ", ""), whole[2].strip()
    if "," in digits and _THOUSANDS.match(digits) is None:
        if digits.count(",") != 1 or "." in digits:
            return None
        digits = digits.replace(",", ".")
    bare = _GROUPS.sub("", digits).replace("−", "-")
    shift = _SCALE.match(rest)
    own = unit_of(rest[shift.end() :] if shift else rest)
    try:
        number = Decimal(bare)
        if shift:
            number = number.scaleb(_SCALES[shift[1].lower()])
    except InvalidOperation:
        return None
    if not number.is_finite() or abs(number.adjusted()) > _LARGEST_EXPONENT:
        return None
    return stated(number, own or unit)


def fault_in(cell: str, field: str) -> str | None:
    """Return why a cell of numbers states no figure that can be; ``None`` where it does, or states none.

    Args:
        cell: As for ``number_in``.
        field: What its column holds.
    """
    text = _ABOUT.sub("", plain(cell))
    if _NO_FIGURE.match(text):
        return "is no figure"
    if _NUMBER.match(text) is None:
        return None
    number = number_in(cell, None)
    if number is None:
        return "cannot be read as one figure"
    least = 1 if field == "pue" else 0
    if number.value < least and field not in _SIGNED_FIELDS:
        return f"is below {least}, which it cannot be"
    return None


def year_in(cell: str) -> int | None:
    """Return a year of four digits in a cell."""
    found = re.search(r"\b(19|20)\d{2}\b", cell)
    return int(found[0]) if found else None
