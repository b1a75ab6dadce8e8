"""``tariffs.toml``: prices of electricity by time of use."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from carbonlens.domain.pricing import Tariff, TariffBand
from carbonlens.inventory.records import Kind, Problem
from carbonlens.inventory.values import a_currency, a_date, a_sigma, a_time_zone, at_least_0, plain

WEEKDAYS: Final = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
_BAND_KEYS: Final = TariffBand.__struct_fields__


def _shape(values: dict[str, Any]) -> Iterator[Problem]:
    """Turn the names of weekdays into numbers, and refuse what no band has."""
    bands = values.get("band")
    if not isinstance(bands, list) or not all(isinstance(b, dict) for b in bands):
        return
    values["band"] = shaped = [dict(b) for b in bands]
    for band in shaped:
        for key in band.keys() - set(_BAND_KEYS):
            yield "band", f"a band has the unknown key {key!r}", f"known are {', '.join(_BAND_KEYS)}"
        days = band.get("weekdays")
        if days is None:
            continue
        if not isinstance(days, list) or not days or not all(d in WEEKDAYS for d in days):
            yield "band", f"weekdays is {days!r}", f"write a list of {', '.join(WEEKDAYS)}"
            del band["weekdays"]
        else:
            band["weekdays"] = sorted({WEEKDAYS.index(d) for d in days})


def _check(tariff: Tariff) -> Iterator[Problem]:
    if not tariff.bands:
        yield "band", "has no band", "add [[tariff.band]] with name and amount_per_kwh"
    if tariff.valid_to is not None and tariff.valid_to <= tariff.valid_from:
        yield (
            "valid_to",
            f"ends {tariff.valid_to}, not after it begins",
            "valid_to is the first day without it",
        )
    for band in tariff.bands:
        wrong = plain(band.amount_per_kwh)
        if wrong:
            yield "band", f"amount_per_kwh of {band.name} is {band.amount_per_kwh}", wrong
        if not (0 <= band.start_hour <= 23 and 1 <= band.end_hour <= 24) or band.start_hour == band.end_hour:
            hours = f"{band.start_hour} to {band.end_hour}"
            yield "band", f"hours of {band.name} are {hours}", "write 8 to 20; 22 to 6 goes over midnight"
        if not band.months or not all(1 <= m <= 12 for m in band.months):
            yield "band", f"months of {band.name} are {list(band.months)}", "write months from 1 to 12"


KIND: Final = Kind(
    name="tariffs",
    table="tariff",
    type=Tariff,
    id_field="tariff_id",
    rules={
        "currency": a_currency,
        "timezone": a_time_zone,
        "valid_from": a_date,
        "valid_to": a_date,
        "fixed_per_month": at_least_0,
        "u_relative": a_sigma,
    },
    renamed={"band": "bands"},
    shape=_shape,
    check=_check,
)
"""How a tariff stands in its file; whether its hours fit is for ``check_tariffs``."""
