"""What differs between two sets of factors."""

from hypothesis import given
from hypothesis import strategies as st

from carbonlens.factors.difference import difference
from tests.factors.rows import row

SETS = st.dictionaries(st.sampled_from("ABCDE"), st.sampled_from([1, 2, 3]), max_size=5).map(
    lambda values: [row(factor_id=name, subject=name, value=f"0.{v}") for name, v in values.items()]
)


def test_rows_meet_by_id_or_by_what_they_count():
    old = [
        row(factor_id="a", value="0.1"),
        row(factor_id="b", value="0.2", span="direct"),
        row(factor_id="c", value="0.2", subject="DE"),
        row(factor_id="gone", value="0.3", subject="XK"),
    ]
    new = [
        row(factor_id="a", value="0.4", source="New edition"),
        row(factor_id="b2", value="0.25", span="direct"),
        row(factor_id="c", value="0.2", subject="DE"),
        row(factor_id="added", value="0.3", subject="AL"),
    ]
    found = difference(old, new)
    assert [(c.old.factor_id, c.new.factor_id, c.ratio) for c in found.changed] == [
        ("a", "a", 4.0),
        ("b", "b2", 1.25),
    ]
    assert found.same == 1
    assert [r.factor_id for r in found.only_old] == ["gone"]
    assert [r.factor_id for r in found.only_new] == ["added"]


def test_a_row_without_a_basis_is_held_against_every_form():
    old = [row(factor_id="a", value="0.1", span="direct"), row(factor_id="b", value="0.2", span="life_cycle")]
    found = difference(old, [row(factor_id="mine", value="0.4")])
    assert [(c.old.factor_id, c.ratio) for c in found.changed] == [("a", 4.0), ("b", 2.0)]
    assert (found.only_old, found.only_new) == ((), ())


def test_a_change_from_zero_is_the_largest():
    old = [row(factor_id="a", value=0, kind="wue"), row(factor_id="b", value="0.1")]
    new = [row(factor_id="b", value="0.9"), row(factor_id="a", value="0.1", kind="wue")]
    assert [(c.new.factor_id, c.ratio) for c in difference(old, new).changed] == [("a", None), ("b", 9.0)]


@given(SETS, SETS)
def test_each_row_is_accounted_for_once_and_both_ways_agree(old, new):
    there, back = difference(old, new), difference(new, old)
    assert len(old) == len(there.changed) + there.same + len(there.only_old)
    assert len(new) == len(there.changed) + there.same + len(there.only_new)
    assert {r.factor_id for r in there.only_old} == {r.factor_id for r in back.only_new}
    assert {c.new.factor_id for c in there.changed} == {c.new.factor_id for c in back.changed}


@given(SETS)
def test_a_set_does_not_differ_from_itself(rows):
    found = difference(rows, rows)
    assert (found.changed, found.only_old, found.only_new, found.same) == ((), (), (), len(rows))
