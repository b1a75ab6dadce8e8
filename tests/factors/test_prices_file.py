"""The price table: what it must say, and that every bundled price says it."""

from datetime import date

import pycountry
import pytest

from carbonlens.app.prices import difference, held_prices
from carbonlens.domain.currencies import CURRENCIES
from carbonlens.errors import ConfigError
from carbonlens.factors.prices_file import FIELDS, bundled_prices, read_prices

HEAD = "price_id,subject,per,amount,currency,valid_from,valid_to,source,address,read_on"
ROW = "a,gpu:H100,device_hour,4.02,USD,2026-01-01,,s,https://example.com,2026-01-05"


def read(*lines):
    return read_prices("\n".join(lines).encode(), where="p.csv").rows


def test_a_row_is_a_price_and_notes_are_let_pass():
    (row,) = read("# ours", HEAD.replace("price_id", "id"), "", ROW)
    assert (row.price_id, str(row.amount.amount), row.amount.currency) == ("a", "4.02", "USD")
    assert (row.region, row.valid_to, row.cost_kind, row.u_relative) == (None, None, "list", None)
    assert set(HEAD.split(",")) <= set(FIELDS)


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("4.02", "4,02", "cells where the header"),
        ("4.02", "-1", "has the amount -1"),
        ("4.02", "NaN", "p.csv:2"),
        ("4.02", "", "has no amount"),
        ("USD", "XXX", "has the currency 'XXX'"),
        ("device_hour", "fortnight", "p.csv:2"),
        ("2026-01-01", "1.1.2026", "has valid_from"),
        ("2026-01-01,", "2026-01-01,2026-01-01", "not after it begins"),
        ("https://example.com", "", "has no address"),
    ],
)
def test_a_row_that_is_no_price_is_refused_with_its_place(old, new, words):
    with pytest.raises(ConfigError, match=words):
        read(HEAD, ROW.replace(old, new, 1))


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        ([HEAD, ROW, ROW], "of p.csv:2"),
        ([HEAD.replace(",source", ""), ROW], "lacks the column source"),
        ([HEAD + ",colour", ROW + ",red"], "unknown column 'colour'"),
        ([HEAD + ",source", ROW + ",s"], "twice"),
        ([], "is empty"),
        ([HEAD, 'a,"x'], "no CSV"),
    ],
)
def test_a_table_that_is_none_is_refused(lines, words):
    with pytest.raises(ConfigError, match=words):
        read(*lines)


def test_every_bundled_price_names_its_source_its_address_and_its_day():
    rows = bundled_prices()
    assert len(rows) >= 4
    for row in rows:
        assert row.source
        assert row.address.startswith("https://")
        assert date.fromisoformat(row.read_on) >= date(2026, 11, 1)
        assert row.price_id.startswith(f"{row.price_id.partition('/')[0]}/")
        # An undated figure does not hold before it was read, and its note says so.
        assert "undated" in row.note
        assert row.valid_from == row.read_on


def test_a_users_price_of_the_same_id_stands_in_the_place_of_a_bundled_one():
    ours = bundled_prices()[0]
    (own,) = read(HEAD, ROW.replace("a,", f"{ours.price_id},", 1))
    held = held_prices([own])
    assert held.replaced == (ours,)
    assert len(held.rows) == len(bundled_prices())


def test_the_difference_of_two_tables():
    (old,) = read(HEAD, ROW)
    (dearer,) = read(HEAD, ROW.replace("4.02", "6.03"))
    (euros,) = read(HEAD, ROW.replace("USD", "EUR").replace("a,", "b,", 1))
    found = difference("x", [old], "y", [dearer])
    assert found.changed[0].ratio == pytest.approx(1.5)
    # Another id, but the same thing, place and day.
    assert difference("x", [old], "y", [euros]).changed[0].ratio is None
    assert difference("x", [old], "y", [old]).same == 1
    (other,) = read(HEAD, ROW.replace("a,gpu:H100", "c,gpu:A100"))
    found = difference("x", [old], "y", [other])
    assert (found.only_old, found.only_new, found.changed) == ((old,), (other,), ())


def test_currencies_are_those_of_the_standard():
    iso = {c.alpha_3 for c in pycountry.currencies}
    replaced = {"ANG", "BGN", "HRK", "SLL"}
    assert CURRENCIES - iso <= replaced
    units_of_no_bill = {
        *("BOV", "CHE", "CHW", "COU", "MXV", "USN", "XAD", "XAG", "XAU", "XBA", "XBB", "XBC", "XBD"),
        *("XDR", "XPD", "XPT", "XSU", "XTS", "XUA", "XXX"),
    }
    assert iso - CURRENCIES <= units_of_no_bill
