"""Places as people and tools write them, and the one grid zone each of them means.

A place may be written as a country (``FR``, ``FRA``, ``France``), a grid zone
(``SE-SE3``, ``SE3``), a state (``US-VA``, ``Virginia``) or a cloud region
(``aws:us-east-1``, ``Azure West Europe``). What cannot be told is an error that names
near matches; there is no default place.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final

import msgspec

from carbonlens.accounting.gazetteer import Gazetteer, Zone, folded
from carbonlens.domain.finding import Finding
from carbonlens.errors import SelectionError

PROVIDERS: Final[Mapping[str, str]] = {
    "aws": "aws",
    "amazon": "aws",
    "amazon web services": "aws",
    "gcp": "gcp",
    "google": "gcp",
    "google cloud": "gcp",
    "google cloud platform": "gcp",
    "azure": "azure",
    "microsoft": "azure",
    "microsoft azure": "azure",
}
"""Names of cloud providers, and the short name of each."""

NO_PLACE: Final = frozenset({"", "xxx", "unknown", "none", "n/a", "nan", "null", "-", "world", "global"})
"""Words that stand where a place should."""

_LEADING_PROVIDER = re.compile(
    r"^(" + "|".join(sorted(map(re.escape, PROVIDERS), key=len, reverse=True)) + r")(?:\s*[:/]\s*|\s+)(.+)$"
)


class Place(msgspec.Struct, frozen=True, kw_only=True):
    """A place that was found.

    Attributes:
        written: As it was asked for.
        zone: Its grid zone.
        name: The place in words.
        country: ISO 3166-1 alpha-2.
        cloud: Region as factor rows name it; ``None`` where it is no cloud region.
        chain: The zone and those around it, the country last.
        how: How it was found, in words.
        findings: What a reader must know about that.
    """

    written: str
    zone: str
    name: str
    country: str
    cloud: str | None = None
    chain: tuple[str, ...]
    how: str
    findings: tuple[Finding, ...] = ()

    @property
    def provider(self) -> str | None:
        """Cloud provider; ``None`` where it is no cloud region."""
        return self.cloud.partition(":")[0] if self.cloud else None


def resolve(
    written: str, gazetteer: Gazetteer, *, region: str | None = None, country: str | None = None
) -> Place:
    """Return the place that a text means.

    Args:
        written: Country, zone, state or cloud region.
        gazetteer: The known places.
        region: Part of the country ``written``. One that has no zone of its own takes the
            country, with a Finding (CL350).
        country: Country the place is said to lie in.

    Raises:
        SelectionError: If the text means no place, or more than one, or one in another
            country than the stated.
    """
    place = _resolved(written, gazetteer)
    if country is not None:
        _agree(place, country, gazetteer)
    return place if region is None else _part(place, region, gazetteer)


def _resolved(written: str, gazetteer: Gazetteer) -> Place:
    plain = folded(written)
    if plain in NO_PLACE:
        raise SelectionError(
            f"{written!r} is no place",
            where="place",
            mend="name a country, a grid zone or a cloud region, for example FR, SE3 or aws:eu-west-3",
        )
    led = _LEADING_PROVIDER.match(plain)
    if led:
        return _in_cloud(written, led[2], PROVIDERS[led[1]], gazetteer)
    zones = gazetteer.zones_of(written)
    if len(zones) == 1:
        return _in_zone(written, zones[0], gazetteer)
    if zones:
        raise _ambiguous(written, [f"{z} ({gazetteer.zones[z].name})" for z in zones])
    return _in_cloud(written, written, None, gazetteer)


def _in_zone(written: str, zone: str, gazetteer: Gazetteer) -> Place:
    known = gazetteer.zones[zone]
    said = "" if folded(written) == folded(zone) else f"{written} is "
    return Place(
        written=written,
        zone=zone,
        name=_named(known, gazetteer),
        country=known.alpha2,
        chain=gazetteer.chain(zone),
        how=f"{said}zone {zone}, {known.name}",
    )


def _in_cloud(written: str, text: str, provider: str | None, gazetteer: Gazetteer) -> Place:
    found = gazetteer.regions_of(text, provider)
    if len(found) > 1:
        raise _ambiguous(written, [r.key for r in found])
    if not found:
        near = gazetteer.near(text, provider)
        what = f"no region {text!r} of {provider} is known" if provider else f"no place {written!r} is known"
        raise SelectionError(
            what,
            where="place",
            mend=f"did you mean {_or(near)}?"
            if near
            else "name a country, a grid zone or a cloud region, for example FR, SE3 or aws:eu-west-3",
        )
    region = found[0]
    return Place(
        written=written,
        zone=region.zone,
        name=f"{region.key}, {region.place}",
        country=region.country,
        cloud=region.key,
        chain=gazetteer.chain(region.zone),
        how=f"{region.key} lies in {region.place}, zone {region.zone} ({region.zone_source})",
    )


def _agree(place: Place, country: str, gazetteer: Gazetteer) -> None:
    stated = [z for z in gazetteer.zones_of(country) if gazetteer.zones[z].kind == "country"]
    if not stated:
        near = gazetteer.near(country)
        raise SelectionError(
            f"no country {country!r} is known",
            where="place",
            mend=f"did you mean {_or(near)}?" if near else "write it as ISO 3166 does, for example FR or FRA",
        )
    if stated[0] != place.country:
        there, said = gazetteer.zones[place.country], gazetteer.zones[stated[0]]
        raise SelectionError(
            f"{place.cloud or place.written} lies in {there.name} ({there.zone}), "
            f"but the country is stated as {said.name} ({said.zone})",
            where="place",
            mend="mend one of the two",
        )


def _part(place: Place, region: str, gazetteer: Gazetteer) -> Place:
    texts = (region, f"{place.country}-{region}")
    inside = [
        zone
        for text in texts
        for zone in gazetteer.zones_of(text)
        if gazetteer.zones[zone].alpha2 == place.country and zone != place.country
    ]
    found = tuple(dict.fromkeys(inside))
    if len(found) == 1:
        return msgspec.structs.replace(_in_zone(region, found[0], gazetteer), cloud=place.cloud)
    if len(found) > 1:
        raise _ambiguous(region, found)
    country = gazetteer.zones[place.country]
    near = [z for z in gazetteer.near(region) if z.startswith(f"{place.country}-")]
    note = Finding(
        code="CL350",
        severity="warning",
        message=f"no zone for this region, country value used: {region!r} of {country.name} is no grid zone, "
        f"so {place.zone} stands for it",
        subject=region,
        mend=f"did you mean {_or(near)}?" if near else f"name a grid zone of {country.name}",
    )
    how = f"{place.how}; {region!r} has no zone of its own"
    return msgspec.structs.replace(place, how=how, findings=(*place.findings, note))


def _ambiguous(written: str, meanings: Sequence[str]) -> SelectionError:
    return SelectionError(
        f"{written!r} may mean {_or(meanings)}", where="place", mend="write the one that is meant"
    )


def _named(zone: Zone, gazetteer: Gazetteer) -> str:
    if zone.kind == "country":
        return f"{zone.name} ({zone.zone})"
    return f"{zone.name}, {gazetteer.zones[zone.alpha2].name} ({zone.zone})"


def _or(texts: Sequence[str]) -> str:
    return texts[0] if len(texts) == 1 else f"{', '.join(texts[:-1])} or {texts[-1]}"
