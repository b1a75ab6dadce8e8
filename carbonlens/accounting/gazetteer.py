"""Grid zones and cloud regions, and the ways to write them."""

from __future__ import annotations

import difflib
import re
import unicodedata
from collections.abc import Iterable
from typing import Final, Literal

import msgspec

ZoneKind = Literal["country", "state", "province", "subregion", "grid"]

_SPACES = re.compile(r"[\s_]+")
_CLOSE: Final = 0.6
_MOST_NEAR: Final = 4


class Zone(msgspec.Struct, frozen=True, kw_only=True):
    """A country or a part of one that factor tables know.

    Attributes:
        zone: Id, the subject of factor rows: ISO 3166-1 alpha-2 of a country, ISO 3166-2 of
            a state or province, else that of Electricity Maps or ``US-`` and eGRID's.
        alpha2, alpha3: Of the country it lies in.
        parent: Zone around it; ``None`` of a country.
        aliases: Other ways to write it.
    """

    zone: str
    alpha2: str
    alpha3: str
    name: str
    kind: ZoneKind
    parent: str | None = None
    aliases: tuple[str, ...] = ()
    source: str


class CloudRegion(msgspec.Struct, frozen=True, kw_only=True):
    """A region of a cloud provider.

    Attributes:
        provider: ``aws``, ``gcp`` or ``azure``.
        region: As the provider writes it.
        name: As the provider shows it.
        place: City, state or country it lies in.
        country: ISO 3166-1 alpha-2.
        zone: Grid zone it draws from.
        source: Where the region was read.
        zone_source: Where the zone was read.
    """

    provider: str
    region: str
    name: str
    place: str
    country: str
    zone: str
    source: str
    zone_source: str

    @property
    def key(self) -> str:
        """The region as factor rows name it."""
        return f"{self.provider}:{self.region}"


class Gazetteer:
    """All places that are known, by every way to write them."""

    def __init__(self, zones: Iterable[Zone], regions: Iterable[CloudRegion]) -> None:
        """Keep zones and regions; of two zones with one id the first counts."""
        self.zones: dict[str, Zone] = {}
        for zone in zones:
            self.zones.setdefault(zone.zone, zone)
        self.regions: dict[str, CloudRegion] = {r.key: r for r in regions}
        self._texts: dict[str, tuple[str, ...]] = {}
        for zone in self.zones.values():
            codes = (zone.alpha3,) if zone.kind == "country" else ()
            for text in {folded(t) for t in (zone.name, *codes, *zone.aliases)}:
                self._texts[text] = (*self._texts.get(text, ()), zone.zone)
        self._ids = {folded(zone): zone for zone in self.zones}

    def zones_of(self, text: str) -> tuple[str, ...]:
        """Return the zones that a text may mean: by id if one has it, else by code or name."""
        plain = folded(text)
        return (self._ids[plain],) if plain in self._ids else self._texts.get(plain, ())

    def regions_of(self, text: str, provider: str | None = None) -> tuple[CloudRegion, ...]:
        """Return the cloud regions that a text may mean.

        Args:
            text: Id, or an availability zone of it; with a provider also the shown name.
            provider: The only one to look at.
        """
        plain = folded(text)
        seen = [r for r in self.regions.values() if provider in (None, r.provider)]
        exact = [r for r in seen if plain == r.region]
        if not exact and provider is not None:
            exact = [r for r in seen if plain == folded(r.name)]
        if not exact:
            exact = [r for r in seen if r.provider == "azure" and plain.replace(" ", "") == r.region]
        return tuple(exact or (r for r in seen if _is_availability_zone(plain, r)))

    def chain(self, zone: str) -> tuple[str, ...]:
        """Return a zone and those around it, the country last."""
        found: list[str] = []
        at: str | None = zone
        while at is not None and at not in found:
            found.append(at)
            at = self.zones[at].parent
        return tuple(found)

    def near(self, text: str, provider: str | None = None) -> tuple[str, ...]:
        """Return what was perhaps meant, the likeliest first."""
        known: dict[str, str] = {}
        if provider is None:
            known |= {folded(z.name): f"{z.zone} ({z.name})" for z in self.zones.values()}
            known |= {folded(z.zone): z.zone for z in self.zones.values()}
        for region in self.regions.values():
            if provider in (None, region.provider):
                known[region.region] = region.key
        close = difflib.get_close_matches(folded(text), known, n=2 * _MOST_NEAR, cutoff=_CLOSE)
        return tuple(dict.fromkeys(known[text] for text in close))[:_MOST_NEAR]


def folded(text: str) -> str:
    """Return a text without what people write differently: case, accents, spaces."""
    plain = unicodedata.normalize("NFKD", text)
    kept = "".join(c for c in plain if not unicodedata.combining(c))
    return _SPACES.sub(" ", kept).strip().casefold()


def _is_availability_zone(text: str, region: CloudRegion) -> bool:
    """Whether a text is a region with the letter of an availability zone."""
    between = {"aws": "", "gcp": "-"}.get(region.provider)
    return (
        between is not None and re.fullmatch(re.escape(region.region) + between + "[a-z]", text) is not None
    )
