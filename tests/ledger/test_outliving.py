"""Nested runs that outlive their parent, and hosts that are one: totals in any form and period."""

import tempfile
from decimal import Decimal
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from carbonlens.accounting.allocation import allocate
from carbonlens.accounting.allocation_totals import totals
from carbonlens.app.runs import list_runs
from carbonlens.domain.money import Money
from carbonlens.domain.run import HourEnergy, Reading, Run
from carbonlens.domain.units import US_PER_HOUR
from carbonlens.ledger import compaction, queries
from carbonlens.ledger.accounts import account
from carbonlens.ledger.calendar import Calendar
from carbonlens.ledger.reading import open_view, to_pandas
from carbonlens.ledger.store import Ledger
from tests.ledger.test_sharing import NOV, OCT, fill, make, seen, total

MONTHS = ("2025-09", "2025-10", "2025-11")
SEP = Calendar().period("2025-09").first_hour * US_PER_HOUR
UUID = "GPU-3b9c6f0e-7d41-4a55-9a6e-0f1d2c3b4a59"


def process(name, start, hours, joules, parent=None, *, ancestors=None, hourly=None, **more):
    """Return a run that read its process's CPU time."""
    reading = Reading(
        component="cpu",
        energy_j=Decimal(joules),
        boundary="it",
        grade="D",
        method="m",
        u_by_source_j={"cpu_model:f": 0.1},
    )
    rows = tuple(
        HourEnergy(hour_utc=start // US_PER_HOUR + k, component="cpu", energy_j=Decimal(j))
        for k, j in enumerate(hourly or ())
    )
    given = {
        "run_id": name,
        "start_us": start,
        "end_us": start + round(hours * US_PER_HOUR),
        "host_id": "h",
        "energy": (reading,),
        "energy_by_hour": rows,
        "process": f"p-{name}",
        "parent_run_id": parent,
        "ancestors": ancestors,
    }
    return Run(**{**given, **more})


PARENT = process("p", OCT, 1, 1000)


def forms(folder, runs, *, every=False):
    """Return ledgers that hold the runs in different forms: the first one folded, or in every form."""
    fill(folder / "mixed", runs[0])
    compaction.compact(folder / "mixed", before="202512")
    fill(folder / "mixed", *runs[1:])
    if not every:
        return [folder / "mixed"]
    fill(folder / "live", *runs)
    fill(folder / "folded", *runs)
    compaction.compact(folder / "folded", before="202512")
    Ledger(folder / "batch").add_batch(runs, source_sha256="ab" * 32, importer="t-1")
    return [folder / name for name in ("live", "folded", "mixed", "batch")]


@pytest.mark.parametrize(
    ("start", "hours", "expected"),
    [(1.0, 5.0, 6000), (0.5, 5.5, 1000 + 5000 * 5 / 5.5), (0.25, 0.5, 1000), (-1.0, 1.0, 6000)],
    ids=["after", "over the end", "within", "before"],
)
def test_what_a_nested_run_uses_after_its_parents_end_counts(tmp_path, start, hours, expected):
    child = process("c", OCT + round(start * US_PER_HOUR), hours, 5000, "p")
    for ledger in forms(tmp_path, [PARENT, child]):
        assert float(total(ledger)) == pytest.approx(expected, abs=1e-5), ledger.name
        assert list_runs(ledger=ledger).totals.billed.value == pytest.approx(expected, abs=1e-5), ledger.name
        table = to_pandas(ledger)
        assert float(table[table.run_id == "c"]["energy_j"].sum()) == 5000


def test_it_is_one_run_more_with_its_own_length_and_units(tmp_path):
    child = process("c", OCT + US_PER_HOUR // 2, 2, 400, "p", duration_s=7200.0, units=Decimal(8), unit="u")
    fill(tmp_path, replace(PARENT, unit="u", units=Decimal(1)), child)
    with open_view(tmp_path) as view:
        (found,) = account(view, ["unit"]).totals
        parts = queries.roots(view.parts, view.orphans)
        lengths = [r["duration_s"] for r in view.rows(queries.run_table(parts)) if r["run_id"] == "c"]
    assert found.runs == 2
    assert found.units == 1 + 6
    assert lengths == [5400]
    assert found.energy.exact == 1300
    # One sigma of when the child had its energy: 400 J, a quarter of the time inside.
    assert found.energy.estimate.u_by_source["nested:c"] == pytest.approx(
        400 * (0.25 * 0.75) ** 0.5, rel=1e-6
    )


def test_a_run_over_both_edges_of_its_parent_is_one_run(tmp_path):
    child = process("c", OCT - US_PER_HOUR, 3, 300, "p", duration_s=10800.0)
    fill(tmp_path, PARENT, child)
    with open_view(tmp_path) as view:
        (found,) = account(view, []).totals
        rows = view.rows(queries.run_table(queries.roots(view.parts, view.orphans)))
    assert (found.runs, found.energy.exact) == (2, 1200)
    assert sum(r["duration_s"] or 0 for r in rows if r["run_id"] == "c") == 7200


@pytest.mark.slow
def test_it_does_not_matter_in_what_form_they_lie(tmp_path):
    child = process("c", OCT + US_PER_HOUR // 2, 2, 400, "p")
    worker = process("w", OCT, 2, 300, ancestors=("p-p",))
    gpus = [shared_gpu("a", OCT, "one"), shared_gpu("b", OCT, "two")]
    for ledger in forms(tmp_path, [PARENT, child, worker, *gpus], every=True):
        assert total(ledger) == total(ledger, "2025-10") == 1000 + 300 + 150 + 100, ledger.name


@pytest.mark.parametrize("hourly", [None, (900, 100, 0, 0, 40, 60)], ids=["even", "by hours"])
def test_by_month_it_is_the_same_as_in_all(tmp_path, hourly):
    parent = process("p", NOV - 2 * US_PER_HOUR, 1, 1000)
    child = process("c", NOV - 2 * US_PER_HOUR, 6, 1100, "p", hourly=hourly)
    october, november = (1100, 100) if hourly else (1000 + 1100 / 6, 1100 * 4 / 6)
    for ledger in forms(tmp_path, [parent, child]):
        found = [float(total(ledger, month)) for month in ("2025-10", "2025-11")]
        assert found == pytest.approx([october, november], abs=1e-5), ledger.name
        assert float(total(ledger)) == pytest.approx(october + november, abs=1e-5)


def test_a_parent_of_an_earlier_month_is_found(tmp_path):
    parent = process("p", OCT, 1, 1000)
    child = process("c", NOV + US_PER_HOUR, 2, 500, "p")
    for ledger in forms(tmp_path, [parent, child]):
        assert [total(ledger, m) for m in MONTHS] == [0, 1000, 500], ledger.name


def test_a_chain_of_three_in_any_form_and_month(tmp_path):
    grand = process("g", NOV - 6 * US_PER_HOUR, 8, 8000)
    parent = process("p", NOV - 6 * US_PER_HOUR, 2, 2000, "g")
    child = process("c", NOV - 6 * US_PER_HOUR, 12, 1200, "p")
    for ledger in forms(tmp_path, [grand, parent, child]):
        assert total(ledger) == 8000 + 400, ledger.name
        assert [total(ledger, m) for m in MONTHS[1:]] == [6000, 2400], ledger.name


@pytest.mark.parametrize("times", [1, 2])
def test_a_parent_that_was_corrected_holds_its_children(tmp_path, times):
    runs = [PARENT, process("c", OCT, 0.5, 300, "p")]
    runs += [replace(PARENT, run_id=f"p{k + 1}", supersedes=("p", "p1")[k]) for k in range(times)]
    for ledger in forms(tmp_path, runs):
        assert total(ledger) == 1000, ledger.name
        assert list_runs(ledger=ledger).totals.billed.value == 1000, ledger.name
    late = replace(runs[1], end_us=OCT + 2 * US_PER_HOUR)
    for ledger in forms(tmp_path / "late", [PARENT, late, *runs[2:]]):
        assert total(ledger) == 1150, ledger.name
        assert list_runs(ledger=ledger).totals.billed.value == 1150, ledger.name


def test_after_its_parents_end_it_shares_devices_with_others(tmp_path):
    runs = [
        make("p", OCT, 1, "100"),
        make("c", OCT + US_PER_HOUR, 1, "100", parent_run_id="p"),
        make("x", OCT + US_PER_HOUR, 1, "100"),
    ]
    for ledger in forms(tmp_path, runs):
        assert total(ledger) == 200, ledger.name


def test_unknown_energy_after_the_end_makes_the_sum_a_lower_bound(tmp_path):
    child = process("c", OCT, 2, 0, "p")
    child = replace(child, energy=(replace(child.energy[0], energy_j=None, state="unknown", grade=None),))
    fill(tmp_path, PARENT, child)
    with open_view(tmp_path) as view:
        (found,) = account(view, []).totals
    assert (found.runs, found.runs_unknown) == (2, 1)
    assert found.energy.estimate.state == "unbounded"


def test_a_worker_forked_before_the_block_counts_beside_it_only_where_it_goes_on_alone(tmp_path):
    worker = process("w", OCT, 2, 300, ancestors=("p-p", "p-shell"))
    for ledger in forms(tmp_path, [PARENT, worker]):
        assert total(ledger) == 1150, ledger.name
        assert list_runs(ledger=ledger).totals.billed.value == 1150, ledger.name
    within = process("w", OCT, 1, 300, ancestors=("p-p",))
    for ledger in forms(tmp_path / "within", [PARENT, within]):
        assert total(ledger) == 1000, ledger.name
        assert seen(ledger)[0] == {"p": 1000}
        assert total(ledger, "2025-10") == 1000


def below(name, start, hours, joules, parent, line, **more):
    return process(name, start, hours, joules, parent, ancestors=(*line, "init"), **more)


OUTER = below("p", OCT, 1, 1000, None, ())
SILENT = replace(OUTER.energy[0], energy_j=None, state="unknown", grade=None, u_by_source_j={})


@pytest.mark.parametrize(
    ("parent", "child", "expected"),
    [
        (OUTER, below("c", OCT, 1, 300, "p", ("p-p",)), 1000),
        (OUTER, below("c", OCT, 1, 300, "p", ("p-daemon",)), 1300),
        (OUTER, below("c", OCT, 1, 300, "p", ()), 1300),
        (OUTER, process("c", OCT, 1, 300, "p", ancestors=("init of a container",)), 1000),
        (
            replace(OUTER, status="recovered"),
            below("c", OCT + US_PER_HOUR, 1, 300, "p", (), process="p-p"),
            1300,
        ),
        (OUTER, "gpu", 1250),
        (replace(OUTER, energy=(SILENT,)), below("c", OCT, 1, 300, "p", ("p-p",)), 300),
        (OUTER, below("c", OCT - 4 * US_PER_HOUR, 0.5, 300, "p", ("p-p",)), 1000),
    ],
    ids=[
        "descends",
        "a daemon's",
        "detached",
        "a container",
        "exec",
        "a GPU of its own",
        "unknown",
        "clock",
    ],
)
def test_a_named_parent_holds_what_it_measured(tmp_path, parent, child, expected):
    if child == "gpu":
        child = below("c", OCT, 1, 300, "p", ("p-p",))
        child = replace(child, energy=(*child.energy, make("g", OCT, 1, "250").energy[0]))
        child = replace(child, energy=tuple(replace(r, boundary="it") for r in child.energy))
    for ledger in forms(tmp_path, [parent, child]):
        assert total(ledger) == total(ledger, "2025-10") == expected, ledger.name
        assert list_runs(ledger=ledger).totals.billed.value == expected, ledger.name
    fill(tmp_path / "other", child)
    compaction.compact(tmp_path / "other", before="202512")
    fill(tmp_path / "other", parent)
    assert total(tmp_path / "other") == expected
    fill(tmp_path / "files", parent, child)
    compaction.compact(tmp_path / "files", before="202512")
    assert total(tmp_path / "files") == expected


def test_a_parent_of_unknown_energy_makes_the_sum_a_lower_bound(tmp_path):
    fill(tmp_path, replace(OUTER, energy=(SILENT,)), below("c", OCT, 1, 300, "p", ("p-p",)))
    with open_view(tmp_path) as view:
        (found,) = account(view, []).totals
    assert (found.energy.exact, found.energy.estimate.state) == (300, "unbounded")


def test_it_is_said_that_a_clock_was_set_back(tmp_path):
    fill(tmp_path, OUTER, below("c", OCT - 4 * US_PER_HOUR, 0.5, 300, "p", ("p-p",)))
    assert seen(tmp_path)[1] == ["CL528"]


def test_units_and_cost_of_a_worker_stand_in_the_row_that_counts(tmp_path):
    worker = below("w", OCT, 1, 50, None, ("p-p",), units=Decimal(100), unit="image")
    gpu = replace(make("g", OCT, 1, "1000").energy[0], boundary="it")
    worker = replace(
        worker, energy=(*worker.energy, gpu), cost=Money(amount=Decimal(1), currency="EUR"), energy_by_hour=()
    )
    fill(tmp_path, OUTER, worker)
    with open_view(tmp_path) as view:
        rows = view.rows(queries.roots(view.parts, view.orphans))
    assert sum(r["units"] or 0 for r in rows) == 100
    assert sum(r["cost_amount"] or 0 for r in rows) == 1
    assert sum(r["energy_j"] for r in rows) == 2000


def shared_gpu(name, start, host, joules="100", package=None, **more):
    run = make(name, start, 1, joules, device=UUID, host=host, **more)
    readings = [replace(run.energy[0], u_by_source_j={f"sensor:nvml_counter:{UUID}": 1.0})]
    if package is not None:
        readings.append(
            Reading(
                component="cpu",
                energy_j=Decimal(package),
                boundary="device",
                grade="B",
                method="m",
                devices=("package-0",),
                u_by_source_j={"sensor:rapl:package-0": 1.0},
            )
        )
    return replace(run, energy=tuple(readings))


def test_two_containers_that_read_one_gpu_are_billed_it_once(tmp_path):
    runs = [shared_gpu("a", OCT, "one"), shared_gpu("b", OCT, "two")]
    for ledger in forms(tmp_path, runs):
        assert total(ledger) == total(ledger, "2025-10") == 100, ledger.name
        assert seen(ledger) == ({"a": 50, "b": 50}, ["CL320"])


def test_hosts_that_share_a_gpu_share_the_rest_of_the_machine_too(tmp_path):
    runs = [
        shared_gpu("a", OCT, "one", package="50"),
        shared_gpu("b", OCT, "two", package="50"),
        replace(shared_gpu("c", OCT + US_PER_HOUR, "one", package="50"), end_us=OCT + 2 * US_PER_HOUR),
        make("d", OCT + US_PER_HOUR, 1, "50", device="package-0", host="two"),
    ]
    runs[3] = replace(runs[3], energy=(replace(runs[2].energy[1]),))
    for ledger in forms(tmp_path, runs):
        assert total(ledger) == 300, ledger.name


@pytest.mark.parametrize(
    "second",
    [
        shared_gpu("b", OCT + US_PER_HOUR, "two"),
        replace(make("b", OCT, host="two"), energy=make("b", OCT).energy),
        replace(shared_gpu("b", OCT, "two"), host_id=None),
    ],
    ids=["moved", "a name that every machine has", "no host"],
)
def test_what_is_no_proof_joins_no_hosts(tmp_path, second):
    for ledger in forms(tmp_path, [shared_gpu("a", OCT, "one"), second]):
        assert total(ledger) == 200, ledger.name


@st.composite
def families(draw):
    """Draw windows in a chain over the end of a month, each naming one before it or none."""
    runs = []
    for k in range(draw(st.integers(1, 4))):
        start = draw(st.integers(0, 8))
        hours = draw(st.integers(1, 8))
        parent = draw(st.one_of(st.none(), st.integers(0, k - 1))) if k else None
        joules = draw(st.integers(0, 1000))
        line = draw(st.none() | st.sets(st.integers(0, k - 1) if k else st.nothing()))
        runs.append(
            process(
                f"r{k}",
                NOV + (start - 6) * US_PER_HOUR,
                hours,
                joules,
                None if parent is None else f"r{parent}",
                ancestors=None if line is None else (*(f"p-r{n}" for n in sorted(line)), "init"),
            )
        )
    return runs


@pytest.mark.slow
@settings(max_examples=25, deadline=None)
@given(families(), st.booleans())
def test_months_sum_to_the_whole_and_to_what_runs_says(runs, folded):
    with tempfile.TemporaryDirectory() as folder:
        ledger = Path(folder)
        fill(ledger, *runs)
        if folded:
            compaction.compact(ledger, before="202512")
        expected = totals(runs, allocate(runs)).billed.value
        months = [total(ledger, m) for m in MONTHS]
        assert float(total(ledger)) == pytest.approx(expected, abs=1e-5)
        assert float(sum(months)) == pytest.approx(expected, abs=1e-4)
