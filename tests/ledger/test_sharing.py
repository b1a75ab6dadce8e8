"""Runs that overlap on one device: totals never exceed what the device drew, in any form and period."""

import tempfile
from decimal import Decimal
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from carbonlens.accounting.allocation import allocate
from carbonlens.domain.run import Reading, Run
from carbonlens.domain.units import US_PER_HOUR
from carbonlens.ledger import compaction, queries
from carbonlens.ledger.accounts import account
from carbonlens.ledger.calendar import Calendar
from carbonlens.ledger.reading import open_view, to_pandas
from carbonlens.ledger.store import Ledger
from carbonlens.ledger.verify import verify

SEP, OCT, NOV = (Calendar().period(m).first_hour * US_PER_HOUR for m in ("2025-09", "2025-10", "2025-11"))
MONTHS = ("2025-09", "2025-10", "2025-11")


def make(name, start, hours=1.0, joules="100", device="gpu-0", host="h", **more):
    reading = Reading(
        component="gpu",
        energy_j=Decimal(joules),
        boundary="device",
        grade="B",
        method="m",
        devices=() if device is None else (device,),
    )
    end = start + round(hours * US_PER_HOUR)
    return Run(run_id=name, start_us=start, end_us=end, host_id=host, energy=(reading,), **more)


def fill(folder, *runs):
    store = Ledger(folder)
    for run in runs:
        store.append(run)


def seen(ledger, period=None):
    with open_view(ledger, period) as view:
        rows = view.rows(queries.run_table(queries.roots(view.parts, view.orphans)))
        return {r["run_id"]: r["energy_j"] for r in rows}, [f.code for f in view.findings]


def total(ledger, period=None):
    with open_view(ledger, period) as view:
        return sum((t.energy.exact for t in account(view, []).totals), Decimal(0))


def test_two_runs_that_read_one_device_are_billed_it_once(tmp_path):
    fill(tmp_path, make("a", OCT), make("b", OCT))
    assert seen(tmp_path) == ({"a": 50, "b": 50}, ["CL320"])
    assert total(tmp_path) == total(tmp_path, "2025-10") == 100
    with open_view(tmp_path) as view:
        (finding,) = account(view, []).findings
    assert "a, b" in finding.message


@pytest.mark.parametrize(
    "runs",
    [
        [make("a", OCT), make("b", OCT, device="gpu-1")],
        [make("a", OCT), make("b", OCT, host="other")],
        [make("a", OCT, host=None), make("b", OCT, host=None)],
        [make("a", OCT), make("b", OCT + US_PER_HOUR)],
        [make("a", OCT, device=None), make("b", OCT, device=None)],
        [make("a", OCT), make("inside", OCT, 0.5, "100", parent_run_id="a")],
    ],
    ids=["devices", "hosts", "no host", "one after the other", "no device", "nested"],
)
def test_runs_that_share_nothing_stay_as_measured(tmp_path, runs):
    fill(tmp_path, *runs)
    roots = {r.run_id: Decimal(100) for r in runs if r.parent_run_id is None}
    assert seen(tmp_path) == (roots, [])


def test_it_does_not_matter_in_what_form_they_lie(tmp_path):
    runs = [make("a", OCT), make("b", OCT + 1), make("c", OCT + 2), make("d", OCT, host=None)]
    fill(tmp_path / "live", *runs)
    fill(tmp_path / "folded", *runs)
    compaction.compact(tmp_path / "folded", before="202512")
    fill(tmp_path / "mixed", runs[0])
    compaction.compact(tmp_path / "mixed", before="202512")
    fill(tmp_path / "mixed", runs[1])
    Ledger(tmp_path / "mixed").add_batch(runs[2:], source_sha256="ab" * 32, importer="t-1")
    expected, codes = seen(tmp_path / "live")
    assert expected["d"] == 100
    assert sum(expected.values()) == pytest.approx(200, abs=Decimal("0.001"))
    assert codes == ["CL320"]
    for name in ("folded", "mixed"):
        assert seen(tmp_path / name) == (expected, codes), name
        assert seen(tmp_path / name, "2025-10") == (expected, codes), name


def test_what_ran_inside_a_divided_run_is_divided_with_it(tmp_path):
    nested = make("inside", OCT, 1, "100", parent_run_id="a")
    fill(tmp_path, make("a", OCT), make("b", OCT), nested)
    table = to_pandas(tmp_path).set_index("run_id")["energy_j"]
    assert dict(table) == {"a": 50, "b": 50, "inside": 50}
    compaction.compact(tmp_path, before="202512")
    assert dict(to_pandas(tmp_path).set_index("run_id")["energy_j"]) == dict(table)


def test_a_part_whose_parent_is_not_there_shares_as_a_run_of_its_own(tmp_path):
    fill(tmp_path, make("a", OCT), make("lost", OCT, parent_run_id="gone"))
    assert seen(tmp_path)[0] == {"a": 50, "lost": 50}


def test_a_corrected_run_takes_no_part(tmp_path):
    fill(tmp_path, make("a", OCT), make("b", OCT), make("c", NOV, supersedes="b"))
    assert seen(tmp_path) == ({"a": 100, "c": 100}, [])
    assert seen(tmp_path, "2025-10") == ({"a": 100}, [])


def test_one_run_met_twice_does_not_overlap_itself(tmp_path):
    run = make("a", OCT)
    fill(tmp_path, run)
    content = (tmp_path / "runs" / "202510" / "a.json").read_bytes()
    compaction.compact(tmp_path, before="202512")
    (tmp_path / "runs" / "202510" / "a.json").write_bytes(content)
    assert seen(tmp_path) == seen(tmp_path, "2025-10") == ({"a": 100}, [])


def test_imported_runs_of_one_id_in_two_studies_are_two(tmp_path):
    runs = [make("a", OCT, study="s"), make("a", OCT, study="t")]
    Ledger(tmp_path).add_batch(runs, source_sha256="ab" * 32, importer="t-1")
    assert total(tmp_path) == 100


def test_the_record_stays_as_it_was_measured(tmp_path):
    fill(tmp_path, make("a", OCT), make("b", OCT))
    compaction.compact(tmp_path, before="202512")
    seen(tmp_path)
    assert {r.energy[0].energy_j for r in Ledger(tmp_path).view().runs} == {100}
    assert verify(tmp_path, now_us=NOV + 10**13).sound


@pytest.mark.parametrize("folded", [False, True])
def test_a_run_over_the_edge_has_the_same_part_from_either_side(tmp_path, folded):
    fill(
        tmp_path,
        make("long", OCT - 50 * 24 * US_PER_HOUR, 24 * 80, "8000"),
        make("early", SEP + US_PER_HOUR, 24, "100"),
        make("late", NOV - 4 * 24 * US_PER_HOUR - US_PER_HOUR, 24, "100"),
    )
    if folded:
        compaction.compact(tmp_path, before="202512")
    months = sum(total(tmp_path, m) for m in ("2025-08", *MONTHS))
    assert months == total(tmp_path)


@settings(max_examples=8, deadline=None)
@given(
    runs=st.lists(
        st.tuples(
            st.integers(0, 61 * 24 - 2),
            st.integers(1, 500),
            st.integers(1, 999),
            st.sampled_from(["h", "i", None]),
        ),
        min_size=1,
        max_size=8,
    ),
    folded=st.booleans(),
)
def test_any_runs_sum_to_what_the_allocation_bills_and_so_do_months(runs, folded):
    made = [
        make(f"r{i}", SEP + h * US_PER_HOUR, n, str(j), host=host) for i, (h, n, j, host) in enumerate(runs)
    ]
    bills = allocate(made).bills.values()
    expected = sum((r.energy_j for b in bills for r in b.readings), Decimal(0))
    with tempfile.TemporaryDirectory() as folder:
        fill(Path(folder), *made)
        if folded:
            compaction.compact(Path(folder), before="202510")
        assert total(Path(folder)) == expected
        assert sum(total(Path(folder), m) for m in (*MONTHS, "2025-12")) == expected
