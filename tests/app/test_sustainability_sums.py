"""Every column of the company's report that has a total adds up to it, as it is printed."""

from __future__ import annotations

import json
import math
import re

import pytest

from carbonlens.domain.units import J_PER_KWH

pytestmark = pytest.mark.slow

UNITS = {"kWh": 1.0, "MWh": 1e3, "kg": 1.0, "t": 1e3}
HEAD = 2
_NUMBER = re.compile(r"^(?:EUR |USD )?([−+]?[0-9][0-9 ]*(?:\.[0-9]+)?) ?(kWh|MWh|kg|t)?")


def tables(text):
    """Return the tables of a page by caption: rows of cells, the head first."""
    held, caption = {}, ""
    for line in text.replace("\u202f", " ").replace("\u00a0", " ").splitlines():
        if line.startswith("**") and line.endswith("**"):
            caption = line.strip("*")
        elif line.startswith("|"):
            held.setdefault(caption, []).append([c.strip() for c in line.strip("|").split("|")])
    return {c: [rows[0], *rows[HEAD:]] for c, rows in held.items()}


def value(cell):
    """Return what a cell says, in kWh, kg or money; nothing where it has no number."""
    found = _NUMBER.match(cell)
    if found is None:
        return None
    said = float(found[1].replace(" ", "").replace("−", "-"))
    return said * UNITS.get(found[2], 1.0)


def assert_sums(lines, total, column):
    known = [v for v in (value(x[column]) for x in lines) if v is not None]
    assert len(known) > 1, (total, column)
    assert math.fsum(known) == pytest.approx(value(total[column]), abs=1e-6), (total[0], column, known)


def assert_one_quantity(held, text):
    """Hold what no run explains by site against the same by meter, and each table to its note."""
    (caption,) = (c for c in held if c.startswith("By site"))
    (rest,) = (x for x in held[caption] if x[0].endswith(", of it no run explains"))
    (caption,) = (c for c in held if c.startswith("What meters counted"))
    assert rest[1] == held[caption][1][3]
    metered, recorded, difference = (value(held[caption][1][n]) for n in (1, 2, 3))
    assert recorded + difference == pytest.approx(metered)
    assert text.count("Rounded so that the lines of each column add up to its total") == 1 + 3
    assert "what runs recorded and the difference add up to what meters counted" in text


def test_each_column_with_a_total_adds_up_as_it_is_printed(company_report):
    text = company_report.file("md").read_text("utf-8")
    held = tables(text)
    assert_one_quantity(held, text)
    page = held["Statement of the quarter"]
    for method in ("location", "market"):
        named = [x for x in page if f"{method}-based" in x[0] or "alike by both methods" in x[0]]
        (total,) = (x for x in named if x[0].startswith("Every scope"))
        assert len(named) == 1 + 4
        for column in range(1, 5):
            assert_sums([x for x in named if x is not total], total, column)
    (caption,) = (c for c in held if c.startswith("By site"))
    _, *sites, total = held[caption]
    of_it = [x for x in sites if ", of it" in x[0]]
    (metered,) = (x for x in sites if x[0].endswith(", metered"))
    for column in range(1, 4):
        assert_sums([x for x in sites if x not in of_it], total, column)
        assert_sums(of_it, metered, column)
    assert_sums([x for x in sites if x is not metered], total, 4)
    for name in ("team", "model", "hardware"):
        _, *groups, total = held[f"By {name}"]
        for column in range(1, 5):
            assert_sums(groups, total, column)
    (caption,) = (c for c in held if c.startswith("Cost by line"))
    for currency in ("EUR", "USD"):
        *lines, total = (x for x in held[caption] if x[-1].startswith(currency))
        assert total[0] == f"Total in {currency}"
        assert_sums(lines, total, -1)
    (caption,) = (c for c in held if c.startswith("What drove the change"))
    _, *lines, total = held[caption]
    for column in range(1, len(total)):
        assert_sums(lines, total, column)


def test_one_quantity_is_printed_in_one_way_whatever_its_ids(company_report):
    """Energy was 5.61 MWh on the first page and 5 612 kWh beside its drivers."""
    figures = json.loads(company_report.file("json").read_text("utf-8"))["figures"]
    said = {}
    for name, one in figures.items():
        if one["value"] and one["unit"] != "1" and not one["printed_number"].startswith(("+", "<", ">")):
            factor = {"kWh": J_PER_KWH, "g": 1e-3}.get(one["unit"], 1.0)
            ends = (one["value"], one["low"], one["high"])
            key = (one["unit"][-1], one["state"], *(e and f"{e * factor:.6e}" for e in ends))
            said.setdefault(key, {})[name] = f"{one['printed']} {one['printed_interval']}"
    shared = [texts for texts in said.values() if len(texts) > 1]
    assert len(shared) > 20
    assert [texts for texts in shared if len(set(texts.values())) > 1] == []
