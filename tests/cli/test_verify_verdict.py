"""The first line of ``verify``: how many figures differ, each counted once."""

import pytest

from carbonlens.app.verified import Left, Verified
from carbonlens.app.verify_data import Mismatch
from carbonlens.cli.verify_words import verdict


def verified(ids, left=()):
    return Verified(
        file="r.json",
        figures=20,
        runs=3,
        mismatches=tuple(Mismatch(figure_id=i, said=str(n), computed="x") for n, i in enumerate(ids)),
        rebuilt=None,
        versions={},
        left=left,
    )


@pytest.mark.parametrize(
    ("ids", "said"),
    [
        (["a.x"], "1 figure of 20 do"),
        (["a.x", "a.x", "b.y"], "2 figures of 20 do"),
        (["a.x"] * 30, "1 figure of 20 do"),
        (["page", "page", "a.x"], "3 parts of it do"),
    ],
)
def test_a_figure_that_differs_in_several_ways_counts_once(ids, said):
    assert said in verdict(verified(ids))


def test_so_it_does_where_a_report_is_held_against_itself():
    left = (Left(reason="r", figure_ids=("c.z",)),)
    assert "NOT verified: 2 of 21 figures" in verdict(verified(["a.x", "a.x", "b.y"], left))
