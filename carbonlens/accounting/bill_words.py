"""Words of electricity bills by the part of the cost that they tell, in six languages.

English, German, French, Spanish, Dutch and Italian. Texts are compared without accents and in
lower case; a word of the table must stand alone, so that it never counts inside another.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from typing import Final

WORDS: Final[Mapping[str, str]] = {
    "tax": "tax|taxes|vat"
    r"|[a-z]*steuer|mwst|ust"
    "|taxe|tva|accises?|cspe|ticfe"
    "|impuestos?|iva"
    r"|btw|[a-z]*belasting"
    "|imposta|imposte|accisa",
    "levy": "levy|levies|surcharge|duty|concession fee"
    r"|[a-z]*umlagen?|[a-z]*abgaben?"
    "|contribution tarifaire|cta"
    "|recargos?|cargos"
    r"|[a-z]*heffing|opslag"
    "|oneri(?: di sistema)?",
    "network": "network|grid (?:fee|usage|charge)s?|transmission|distribution"
    r"|netzentgelte?|netznutzung(?:sentgelte?)?|netzkosten"
    "|acheminement|turpe|reseau"
    "|peajes?|transporte|distribucion"
    "|netbeheer|netwerkkosten|netkosten|transportkosten"
    "|trasporto|distribuzione|dispacciamento",
    "fixed": "standing charge|base fee|basic charge|service charge|metering"
    "|grundpreis|grundgebuhr|grundgebuehr|leistungspreis|messstellenbetrieb|messung"
    "|abonnement|comptage"
    "|termino (?:fijo|de potencia)|potencia|alquiler"
    "|vastrecht|vaste (?:leverings)?kosten|meterhuur"
    "|quota fissa|quota potenza|potenza",
    "credit": "gutschrift|avoir|descuento|korting|sconto",
}
"""Part to the words that tell it; the first part of which a word stands there counts."""

ENERGY: Final = (
    "energy|consumption|commodity|unit charge|peak|off-peak|day|night"
    r"|arbeitspreis|verbrauch|energie|stromlieferung|ht|nt"
    "|consommation|fourniture|heures (?:pleines|creuses)"
    "|energia|consumo|consumos"
    "|verbruik|levering|leveringskosten|normaaltarief|daltarief"
    "|consumi|materia prima"
)
"""Words of a line that is the energy itself."""

_PARTS: Final = tuple((part, re.compile(rf"(?<![a-z])(?:{words})(?![a-z])")) for part, words in WORDS.items())
_ENERGY: Final = re.compile(rf"(?<![a-z])(?:{ENERGY})(?![a-z])")


def part_in(text: str) -> str | None:
    """Return the part that words of a text tell; ``None`` where none does.

    Args:
        text: What a line names: service and SKU.
    """
    plain = _plain(text)
    return next((part for part, words in _PARTS if words.search(plain)), None)


def names_energy(text: str) -> bool:
    """Tell whether words of a text name the energy itself."""
    return _ENERGY.search(_plain(text)) is not None


def _plain(text: str) -> str:
    parts = unicodedata.normalize("NFKD", text.casefold())
    return "".join(c for c in parts if not unicodedata.combining(c))
