"""Text for the terminal: names that are cut stay apart, and show letters."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carbonlens.cli.output import clip_apart, columns


@pytest.mark.parametrize(
    ("names", "shown"),
    [
        (["resnet50-baseline-int8", "short"], ["resnet50-baseline-i…", "short"]),
        (
            ["resnet50-baseline-int8", "resnet50-baseline-int8-pruned"],
            ["resnet50-…eline-int8", "resnet50-…nt8-pruned"],
        ),
        # They differ only where the cut would be.
        (
            ["resnet50-baseline-int8-with-a-tail", "resnet50-baseline-int4-with-a-tail"],
            ["…8-with-a-tail", "…4-with-a-tail"],
        ),
        # One is the other's beginning, and both end alike.
        (["ab" * 15, "ab" * 20], ["ababababa…ababababab"] * 2),
    ],
)
def test_names_that_read_alike_are_cut_where_they_differ(names, shown):
    assert clip_apart(names, 20) == shown


@given(st.lists(st.text("ab-語", min_size=1, max_size=30), min_size=1, max_size=4), st.integers(5, 25))
def test_every_name_fits_and_shows_some_of_itself(names, width):
    for text in clip_apart(names, width):
        assert columns(text) <= width
        assert text.strip("…")
