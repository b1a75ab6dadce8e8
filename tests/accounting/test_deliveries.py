"""Expected deliveries: what came, what is missing, and what is not due yet."""

from hypothesis import given
from hypothesis import strategies as st

from carbonlens.accounting.deliveries import Held, coverage
from carbonlens.domain.initiative import Delivery

RUNS = Delivery(team="vision", months=("2025-11", "2025-12", "2026-01", "2026-02", "2026-05"))
METER = Delivery(team="ops", months=("2026-01", "2026-02"), what="meter", site="berlin")


def test_nothing_expected_is_no_share():
    found = coverage([], [])
    assert (found.share, found.line, found.findings) == (None, "no delivery was expected yet", ())


def test_what_is_missing_is_named_with_its_months():
    held = [
        Held("runs", "vision", "2025-12"),
        Held("meter", "berlin", "2026-01"),
        Held("meter", "ops", "2026-02"),
    ]
    found = coverage([RUNS, METER], held)
    assert (found.expected, found.came, found.share) == (7, 2, 2 / 7)
    assert found.line == "2 of 7 expected deliveries came (29 %)"
    runs, meter = found.findings
    assert (runs.code, runs.subject) == ("CL379", "vision")
    assert runs.message == "vision sent no runs in 4 months: 2025-11, 2026-01 to 2026-02, 2026-05"
    assert meter.message == "ops sent no meter readings for berlin in 1 month: 2026-02"


def test_a_month_that_is_not_over_is_not_due():
    found = coverage([RUNS], [Held("runs", "vision", "2025-11")], through="2025-11")
    assert (found.line, found.findings) == ("1 of 1 expected delivery came (100 %)", ())
    assert coverage([RUNS], [], through="2020-01").share is None


def test_data_of_another_kind_is_no_delivery():
    assert coverage([METER], [Held("bill", "berlin", "2026-01"), Held("runs", "berlin", "2026-02")]).came == 0


months = st.builds("2026-{:02}".format, st.integers(1, 12))
expected = st.lists(
    st.builds(
        Delivery,
        team=st.sampled_from("ab"),
        months=st.sets(months, min_size=1).map(lambda m: tuple(sorted(m))),
        what=st.sampled_from(["runs", "meter", "bill"]),
        site=st.sampled_from("xy"),
    ),
    max_size=4,
)
there = st.sets(
    st.builds(Held, st.sampled_from(["runs", "meter", "bill"]), st.sampled_from("abxy"), months), max_size=12
)


@given(expected, there, months)
def test_what_came_and_what_is_missing_is_what_was_expected(deliveries, held, through):
    found = coverage(deliveries, held, through=through)
    due = {
        (d.team, d.what, d.team if d.what == "runs" else d.site, m)
        for d in deliveries
        for m in d.months
        if m <= through
    }
    assert found.expected == len(due)
    assert found.came == sum(Held(*d[1:]) in held for d in due)
    assert bool(found.findings) == (found.came < found.expected)
    assert coverage([*deliveries, *deliveries], held, through=through).expected == found.expected
