"""Laws of the inventory: no order of rows or files matters, and what is written is read again."""

import csv
import io
import random
import tempfile
from decimal import Decimal
from pathlib import Path

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from carbonlens.inventory.folder import read
from tests.inventory.inventory_files import written
from tests.inventory.inventory_strategies import inventories


def in_order(records, *fields):
    return tuple(sorted(records, key=lambda r: tuple(getattr(r, f) for f in fields)))


def plain(inventory):
    """Return an inventory without where in its files things stand."""
    return replace(
        inventory,
        readings=tuple(replace(r, origin=None) for r in inventory.readings),
        findings=tuple(
            sorted((replace(f, line=None, file=None) for f in inventory.findings), key=msgspec.json.encode)
        ),
    )


def read_again(texts):
    with tempfile.TemporaryDirectory() as place:
        for name, text in texts.items():
            Path(place, name).write_bytes(text.encode())
        result = read(Path(place))
    assert not result.faults, result.faults
    return result.inventory


@pytest.mark.slow
@settings(max_examples=40)
@given(inventories, st.booleans())
def test_what_is_written_is_read_again(inventory, semicolon):
    known = {m.meter_id: m for m in inventory.meters}
    expected = replace(
        inventory,
        sites=in_order(inventory.sites, "site_id"),
        meters=in_order(inventory.meters, "meter_id"),
        certificates=in_order(inventory.certificates, "certificate_id"),
        assets=in_order(inventory.assets, "asset_id"),
        initiatives=in_order(inventory.initiatives, "initiative_id"),
        deliveries=in_order(inventory.deliveries, "team"),
        tariffs=in_order(inventory.tariffs, "tariff_id"),
        prices=in_order(inventory.prices, "price_id"),
        services=in_order(inventory.services, "service_id"),
        exchange_rates=in_order(inventory.exchange_rates, "base", "quote", "date"),
        price_indices=in_order(inventory.price_indices, "currency", "year"),
        expenses=in_order(inventory.expenses, "expense_id"),
        invoices=in_order(inventory.invoices, "invoice_id"),
        readings=tuple(
            r
            if (m := known.get(r.meter_id)) is None
            else replace(r, site=m.site, boundary=m.boundary, accuracy_class=m.accuracy_class)
            for r in in_order(inventory.readings, "meter_id", "start_us", "end_us", "direction", "carrier")
        ),
    )
    again = read_again(written(inventory, semicolon=semicolon))
    assert replace(plain(again), findings=()) == expected
    # Read, written and read once more, the Findings stay too.
    assert plain(read_again(written(again))) == plain(again)


def shuffled_toml(text, table, chance):
    head, *blocks = text.split(f"[[{table}]]")
    chance.shuffle(blocks)
    return head + "".join(f"[[{table}]]{b.rstrip()}\n" for b in blocks)


def shuffled_csv(text, chance):
    header, *rows = list(csv.reader(io.StringIO(text, newline="")))
    columns = list(range(len(header)))
    chance.shuffle(columns)
    chance.shuffle(rows)
    out = io.StringIO()
    csv.writer(out, quoting=csv.QUOTE_ALL).writerows([r[i] for i in columns] for r in [header, *rows])
    return out.getvalue()


COUNTED = st.lists(
    st.tuples(st.sampled_from(["m1", "m2"]), st.integers(0, 30), st.integers(0, 50)), min_size=1, max_size=12
)


@pytest.mark.slow
@settings(max_examples=40)
@given(inventories, COUNTED, COUNTED, st.integers(0, 2**32))
def test_no_order_of_rows_or_files_matters(inventory, counts, spans, seed):
    texts = written(inventory)
    day = "2026-01-{:02}T{:02}:00Z".format
    stands = [f"{m},{day(1 + d, 0)},{n},kWh" for m, d, n in counts]
    ranges = [f"{m},{day(1 + d, 0)},{day(1 + d, 1 + n % 23)},{n},kWh" for m, d, n in spans]
    texts["readings-a.csv"] = "meter,time,counter,unit\n" + "\n".join(stands)
    texts["readings-b.csv"] = "meter,start,end,energy,unit\n" + "\n".join(ranges)
    chance = random.Random(seed)  # noqa: S311  # seeded chance is no secret
    mixed = dict(texts)
    for name, text in texts.items():
        stem, _, suffix = name.rpartition(".")
        if suffix == "csv" and text:
            mixed[name] = shuffled_csv(text, chance)
        elif stem in ("sites", "meters", "assets", "initiatives", "prices"):
            mixed[name] = shuffled_toml(text, stem.removesuffix("s"), chance)
    # The rows of one file, in two, and under names that sort the other way round.
    header, *rows = mixed.pop("readings-a.csv").splitlines(keepends=True)
    cut = chance.randint(0, len(rows))
    mixed["readings-z.csv"] = header + "".join(rows[:cut])
    mixed["readings-y.csv"] = header + "".join(rows[cut:])
    assert places_left_out(read_again(mixed)) == places_left_out(read_again(texts))


def places_left_out(inventory):
    """Return it without what rightly speaks of files: how many rows each of them repeats."""
    kept = replace(inventory, findings=tuple(f for f in inventory.findings if f.code != "CL369"))
    return plain(kept)


@given(COUNTED)
def test_counters_conserve_what_was_counted(counts):
    highest = {}
    for meter, day, _ in counts:
        highest.setdefault(meter, set()).add(day)
    # A counter that only rises: its spans sum to what lies between first and last.
    rows = [f"{m},2026-01-{1 + d:02}T00:00Z,{d * 3},kWh" for m, days in highest.items() for d in days]
    inventory = read_again({"readings.csv": "meter,time,counter,unit\n" + "\n".join(rows)})
    total = sum((r.energy_j for r in inventory.readings), Decimal(0))
    assert total == sum(3 * (max(d) - min(d)) * 3_600_000 for d in highest.values())
