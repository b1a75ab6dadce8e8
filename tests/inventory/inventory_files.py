"""Writing an inventory as files, and bare texts that make one."""

import csv
import io
from datetime import UTC, datetime
from pathlib import Path

import msgspec
import tomli_w

from carbonlens.domain.certificate import CRITERIA
from carbonlens.inventory.folder import read
from carbonlens.inventory.tariffs_file import WEEKDAYS

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
TABLES = {
    "sites": ("site", "site_id"),
    "meters": ("meter", "meter_id"),
    "certificates": ("certificate", "certificate_id"),
    "assets": ("asset", "asset_id"),
    "initiatives": ("initiative", "initiative_id"),
    "deliveries": ("delivery", None),
    "tariffs": ("tariff", "tariff_id"),
    "services": ("service", "service_id"),
}


def lay(folder: Path, **texts: str) -> Path:
    """Write files: ``sites_toml`` is ``sites.toml``, ``readings_a_csv`` is ``readings-a.csv``."""
    folder.mkdir(parents=True, exist_ok=True)
    for key, text in texts.items():
        stem, _, suffix = key.rpartition("_")
        name = (
            stem
            if stem in ("exchange_rates", "certificate_hours", "service_uses", "price_index")
            else stem.replace("_", "-")
        )
        (folder / f"{name}.{suffix}").write_text(text, "utf-8")
    return folder


def loaded(folder: Path, **texts: str):
    """Write files and read the folder."""
    return read(lay(folder, **texts))


def inventory_of(folder: Path, **texts: str):
    """Write files that are well-formed, and return their inventory."""
    result = loaded(folder, **texts)
    assert not result.faults, result.faults
    return result.inventory


def codes(inventory) -> list[str]:
    """Return the codes of the Findings."""
    return [f.code for f in inventory.findings]


def written(inventory, *, semicolon: bool = False) -> dict[str, str]:
    """Return the texts of files that hold the inventory."""
    texts = {f"{kind}.toml": tomli_w.dumps(_tables(inventory, kind)) for kind in TABLES}
    texts["reporting.toml"] = tomli_w.dumps(_stated(_plain(inventory.terms)))
    texts["prices.csv"] = _csv([_with_amount(p, "price_id") for p in inventory.prices], semicolon)
    texts["exchange_rates.csv"] = _csv([_plain(r) for r in inventory.exchange_rates], semicolon)
    texts["price_index.csv"] = _csv([_plain(i) for i in inventory.price_indices], semicolon)
    texts["expenses.csv"] = _csv([_with_amount(e, "expense_id") for e in inventory.expenses], semicolon)
    texts["invoices.csv"] = _csv([_with_amount(i, "invoice_id") for i in inventory.invoices], semicolon)
    texts["readings.csv"] = _csv([_reading(r) for r in inventory.readings], semicolon)
    texts["certificate_hours.csv"] = _csv(
        [
            {"certificate": c.certificate_id, "hour_utc": _time(hour * 3_600_000_000), "mwh": str(mwh)}
            for c in inventory.certificates
            for hour, mwh in c.hourly_mwh.items()
        ],
        semicolon,
    )
    return texts


def _tables(inventory, kind):
    table, id_field = TABLES[kind]
    return {table: [_entry(record, id_field) for record in getattr(inventory, kind)]}


def _entry(record, id_field):
    plain = _stated(_plain(record))
    if id_field is not None:
        plain["id"] = plain.pop(id_field)
    plain.pop("hourly_mwh", None)
    if "uses" in plain:
        plain["use"] = [_stated(use) for use in plain.pop("uses")]
    if "bands" in plain:
        plain["band"] = plain.pop("bands")
        for band in plain["band"]:
            band["weekdays"] = [WEEKDAYS[d] for d in band["weekdays"]]
    return plain


def _with_amount(record, id_field):
    plain = _plain(record)
    name, amount = plain.pop(id_field), plain.pop("amount")
    return {**plain, **(amount or {}), "id": name}


def _reading(reading):
    keys = ("reading_id", "direction", "carrier", "method", "supersedes")
    factor = {"energy": "energy_j", "counter_start": "counter_start_j", "counter_end": "counter_end_j"}
    return {
        "meter": reading.meter_id,
        "start": _time(reading.start_us),
        "end": _time(reading.end_us),
        "unit": "J",
        **{k: getattr(reading, k) for k in keys},
        **{k: getattr(reading, f) for k, f in factor.items()},
    }


def _time(instant_us):
    day, rest = divmod(instant_us, 86_400_000_000)
    moment = datetime.fromtimestamp(day * 86_400, tz=UTC)
    return (moment.replace(microsecond=0) + _span(rest)).isoformat()


def _span(us):
    from datetime import timedelta

    return timedelta(microseconds=us)


def _plain(record):
    return msgspec.to_builtins(record)


def _stated(value):
    if isinstance(value, dict):
        return {k: _stated(v) for k, v in value.items() if v is not None and v != ""}
    if isinstance(value, list):
        return [_stated(v) for v in value]
    return value


def _csv(rows, semicolon):
    if not rows:
        return ""
    out = io.StringIO()
    columns = list(dict.fromkeys(key for row in rows for key in row))
    writer = csv.DictWriter(
        out, columns, delimiter=";" if semicolon else ",", quoting=csv.QUOTE_ALL, lineterminator="\r\n"
    )
    writer.writeheader()
    writer.writerows([{k: "" if v is None else v for k, v in row.items()} for row in rows])
    return out.getvalue()


ANSWERED = "\n".join(f"{name} = true" for name in CRITERIA)
SITE = '[[site]]\nid = "berlin"\nkind = "own"\nentity = "E"\nmarket = "DE"\nzone = "DE"\n'
METER = '[[meter]]\nid = "m1"\nsite = "berlin"\nboundary = "facility"\n'
TERMS = 'timezone = "Europe/Berlin"\n'
CERTIFICATE = (
    '[[certificate]]\nid = "C1"\nkind = "certificate"\nentity = "E"\nmarket = "DE"\nenergy_mwh = 10\n'
    f'period = "2026"\nvalue_kg_per_kwh = 0\nretired = 2026-04-30\n[certificate.criteria]\n{ANSWERED}\n'
)
