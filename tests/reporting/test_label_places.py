"""Label places: by their points, inside the plot, none over another."""

from __future__ import annotations

from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carbonlens.reporting.label_places import place_labels
from carbonlens.reporting.latency_chart import ticks

WIDE, HIGH = 430.0, 190.0


def overlap(one, other):
    return one[0] < other[1] and other[0] < one[1] and one[2] < other[3] and other[2] < one[3]


def test_three_labels_of_one_place_stand_apart():
    texts = ["PyTorch eager", "ONNX Runtime", "pruned"]
    points = [(200.0, 90.0), (201.0, 91.0), (202.0, 90.0)]
    boxes = [
        p.box(t) for p, t in zip(place_labels(points, texts, width=WIDE, height=HIGH), texts, strict=True)
    ]
    assert not any(overlap(a, b) for a, b in combinations(boxes, 2))
    for box in boxes:
        assert not any(overlap(box, (x - 5, x + 5, y - 5, y + 5)) for x, y in points)


def test_a_whisker_is_kept_free():
    whisker = (150.0, 260.0, 88.0, 92.0)
    (place,) = place_labels([(200.0, 90.0)], ["pruned"], width=WIDE, height=HIGH, kept_free=[whisker])
    assert not overlap(place.box("pruned"), whisker)


@given(st.floats(0, WIDE), st.floats(0, HIGH), st.integers(1, int(WIDE / 6.1) - 2))
def test_a_label_that_fits_stays_inside(x, y, letters):
    (place,) = place_labels([(x, y)], ["n" * letters], width=WIDE, height=HIGH)
    left, right, top, bottom = place.box("n" * letters)
    assert left >= 0
    assert right <= WIDE
    assert top >= -14
    assert bottom <= HIGH + 7


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [
        (1.5, 23, [2, 5, 10, 20]),
        (0.08, 0.3, [0.1, 0.2]),
        (1, 1, [1]),
        (0.5, 40_000, [1, 10, 100, 1000, 10_000]),
        (3, 4, []),
    ],
)
def test_ticks_are_round_numbers(low, high, expected):
    assert ticks(low, high) == expected
