"""Cells read eight letters at a time are what each of them says alone."""

from decimal import Decimal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from carbonlens.importers.eight_letters import Letters, apart, even_numbers

PLACES = st.integers(0, 3)


def block(cells):
    """Return the letters of cells, with where each begins and ends: eight letters stand before and behind."""
    ends = np.cumsum([8, *(len(cell) + 1 for cell in cells)])
    starts = ends[:-1] + 0
    text = b"x" * 8 + b"".join(cell.encode() + b"," for cell in cells) + bytes(72)
    return Letters(text), starts, ends[1:] - 1


@given(places=PLACES, whole=st.lists(st.integers(0, 9_999), min_size=1, max_size=40))
def test_even_numbers_are_the_nearest_to_their_decimals(places, whole):
    cells = [str(Decimal(n).scaleb(-places)) if places else str(n) for n in whole]
    cells = [f"{Decimal(cell):.{places}f}" for cell in cells]
    got = even_numbers(*block(cells))
    assert got is not None
    assert got.tolist() == [float(cell) for cell in cells]


STRANGE = [
    *(
        "",
        ".5",
        "5.",
        "-1",
        "+1",
        "1e3",
        "1_0",
        "1 0",
        "1,5",
        "nan",
        "inf",
        "1.2.3",
        "x",
        ":",
        "/",
        "1.5",
        "12.34",
    ),
    *("123456789", "\x7f1", "0x1", "1\t"),
]


@pytest.mark.parametrize("cell", STRANGE)
@pytest.mark.parametrize("place", [0, 1, 2])
def test_what_is_not_even_is_left_to_others(cell, place):
    cells = ["1.250", "33.125"]
    cells.insert(place, cell)
    assert even_numbers(*block(cells)) is None


@given(cells=st.lists(st.sampled_from([f"GPU-{n}" * n for n in range(1, 9)]), min_size=1, max_size=60))
def test_texts_are_told_apart_by_all_their_letters(cells):
    found = apart(*block(cells), most=8)
    assert {name: rows.tolist() for name, rows in found.items()} == {
        name: [n for n, cell in enumerate(cells) if cell == name] for name in dict.fromkeys(cells)
    }


def test_texts_that_differ_in_their_last_letter_are_two():
    a, b = "GPU-11111111-2222-3333-4444-555555555555", "GPU-11111111-2222-3333-4444-555555555556"
    assert list(apart(*block([a, b, a]), most=2)) == [a, b]
    assert apart(*block([a, b, a]), most=1) is None
