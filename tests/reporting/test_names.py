"""Names: foreign text cannot break a line, an id or a page."""

from __future__ import annotations

import re
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carbonlens.reporting.metrics import metric_words
from carbonlens.reporting.names import clean, clip, listed_id, plural, slugs
from carbonlens.reporting.number_words import in_words, join_words
from tests.reporting.comparisons import HOSTILE_NAMES

ANY_TEXT = st.text(st.characters(), max_size=300)


@pytest.mark.parametrize(
    ("given_text", "cleaned"),
    [
        ("static int8", "static int8"),
        ("a\x00b\x1b[31m", "a□b□[31m"),
        ("lone \ud800 surrogate", "lone □ surrogate"),
        ("\u202eright to left\u202c", "right to left"),
        ("line\nbreak\t and\u2028more", "line break and more"),
        ("👩\u200d💻", "👩\u200d💻"),
        ("", "□"),
    ],
)
def test_clean(given_text, cleaned):
    assert clean(given_text) == cleaned


@given(ANY_TEXT)
def test_clean_text_can_be_encoded_and_holds_no_control_character(text):
    cleaned = clean(text)
    assert cleaned.encode("utf-8")
    assert cleaned
    assert all(unicodedata.category(c) not in ("Cc", "Cs") for c in cleaned)
    assert not re.search("[\u202a-\u202e\u2066-\u2069]", cleaned)


def test_a_pile_of_marks_is_cut_down():
    assert clean("e" + "\u0301" * 500) == "e\u0301\u0301"


@given(ANY_TEXT, st.integers(2, 60))
def test_a_clipped_name_fits(text, width):
    columns = sum(2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in clip(text, width))
    assert columns <= width


def test_clip_marks_what_it_cut():
    assert clip("A" * 10_000, 8) == "AAAAAAA…"
    assert clip("exactly8", 8) == "exactly8"


@given(st.lists(st.one_of(ANY_TEXT, st.sampled_from([*HOSTILE_NAMES, "a", "a!", "a_2", "a_3"])), max_size=12))
def test_ids_are_plain_and_unique(names):
    made = slugs(names)
    assert set(made) == set(names)
    assert len(set(made.values())) == len(made)
    assert all(re.fullmatch(r"[a-z0-9_]{1,60}", slug) for slug in made.values())


def test_words():
    assert [plural(u) for u in ("image", "query", "box", "tokens", "1k tokens", "day")] == [
        "images",
        "queries",
        "boxes",
        "tokens",
        "1k tokens",
        "days",
    ]
    assert [in_words(n) for n in (0, 13, 20, 39, 99, 100, 115, 999, 1000)] == [
        "no", "thirteen", "twenty", "thirty-nine", "ninety-nine", "one hundred", "one hundred and fifteen",
        "nine hundred and ninety-nine", "a thousand or more",
    ]  # fmt: skip
    assert [join_words(x) for x in ([], ["a"], ["a", "b"], ["a", "b", "c"])] == [
        "",
        "a",
        "a and b",
        "a, b and c",
    ]
    assert [metric_words(m) for m in ("latency_p99_ms", "model_bytes", "top_1")] == [
        "P99 latency",
        "model size",
        "top 1",
    ]


@pytest.mark.parametrize("name", ["L" * 10_000, "\x00\x07\u202e", "a  b", "team"])
def test_an_index_shows_an_id_in_one_line_with_its_begin_and_end(name):
    said = listed_id(f"statement.2026Q3.by.team.{name}.facility_kwh")
    assert said.startswith("statement.2026Q3.by.team.")
    assert said.endswith(".facility_kwh")
    assert len(said) <= 200
    assert said == clean(said)


def test_long_ids_that_differ_in_their_middle_alone_are_two_in_an_index():
    ends = [f"statement.2026Q3.by.team.{'L' * 500}{n}{'L' * 500}.facility_kwh" for n in range(20)]
    assert len({listed_id(end) for end in ends}) == 20
    assert len(listed_id(ends[0])) <= 200


def test_ids_of_our_own_making_stand_whole_in_an_index():
    own = "drivers.2026Q3.2026Q2.workload.carbon-location.unit:token.class:assistant-8b-int8.volume_before"
    assert listed_id(own) == own
