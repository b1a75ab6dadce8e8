"""Records that cannot all be true: what they say of each other goes round, or their clocks were set."""

from decimal import Decimal

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from msgspec.structs import replace

from carbonlens.accounting.allocation import allocate
from carbonlens.accounting.allocation_holding import holds
from carbonlens.accounting.allocation_totals import totals
from carbonlens.domain.run import Reading, Run
from carbonlens.ledger.outliving import _columns
from tests.accounting.device_runs import START_US, run

PROCESSES = 4


def time_of(joules, **fields):
    return Reading(
        component="cpu",
        energy_j=Decimal(joules),
        boundary="it",
        grade="D",
        method="model",
        u_by_source_j={"cpu_model:f": 0.1},
        **fields,
    )


def made(k, process, line, window, parent):
    """Return a run of a process that names any run and any processes, those below it among them."""
    return run(
        f"r{k}",
        (window[0], window[0] + window[1]),
        time_of(100 * window[1]),
        process=f"q{process}",
        ancestors=(*(f"q{p}" for p in line if p != process), "init"),
        parent_run_id=None if parent is None else f"r{parent}",
    )


rows = st.lists(
    st.tuples(
        st.integers(0, PROCESSES - 1),
        st.lists(st.integers(0, PROCESSES - 1), max_size=3, unique=True),
        st.tuples(st.integers(0, 5), st.integers(1, 5)),
        st.one_of(st.none(), st.integers(0, 7)),
    ),
    min_size=1,
    max_size=8,
)

ROUND_TWO_WAYS = [
    (1, [0], (1, 3), None),
    (2, [1, 0], (3, 5), 0),
    (0, [], (2, 3), 0),
    (1, [0], (5, 4), 2),
    (0, [], (0, 1), None),
    (3, [], (7, 1), 1),
    (1, [0], (7, 3), 2),
]


@example(ROUND_TWO_WAYS, 0)
@given(rows, st.integers(0, 7))
def test_whatever_runs_say_of_each_other_each_is_billed_what_it_read(table, turn):
    """Names and processes that go round are damage: nobody is lost, no order matters, nothing is raised."""
    runs = [made(k, *row) for k, row in enumerate(table)]
    found = allocate(runs)
    for one in runs:
        # A part of an overlap with another window of its process may be that one's: never more than was read.
        assert sum(r.energy_j for r in found.bills[one.run_id].readings) <= one.energy[0].energy_j
    whole = totals(runs, found)
    assert 0 < whole.billed.value <= float(sum(r.energy[0].energy_j for r in runs))
    turned = [*runs[turn % len(runs) :], *runs[: turn % len(runs)]]
    assert totals(turned, allocate(turned)).billed.value == pytest.approx(whole.billed.value, abs=1e-5)


@given(st.integers(1, 3_600_000_000), st.integers(1_000, 100_000_000), st.integers(0, 10**8))
def test_a_child_lies_in_its_parent_however_far_the_clock_was_set_back(back_us, length_us, after_us):
    """Its process was started by its parent's, in which all of it was measured."""
    given = {"host_id": "h", "energy": (time_of(1000),)}
    parent = Run(
        run_id="p",
        process="p",
        ancestors=("init",),
        start_us=START_US,
        end_us=START_US + length_us + after_us,
        **given,
    )
    start = START_US - back_us
    child = Run(
        run_id="c",
        process="c",
        ancestors=("p", "init"),
        start_us=start,
        end_us=start + length_us,
        parent_run_id="p",
        **given,
    )
    found = allocate([parent, child])
    assert totals([parent, child], found).billed.value == 1000
    assert [f.code for f in found.findings] == (["CL528"] if back_us > 100_000 else [])


components = st.sampled_from(["cpu", "gpu", "ram", "total", "wall"])
readings = st.builds(
    time_of,
    st.integers(1, 9),
    devices=st.sampled_from([(), ("0",), ("0", "1")]),
    divided=st.booleans(),
).flatmap(lambda r: components.map(lambda c: replace(r, component=c)))


@given(st.lists(readings, min_size=1, max_size=2), st.lists(readings, min_size=1, max_size=2))
def test_what_the_ledger_takes_for_held_without_looking_is_held(own, below):
    """The ledger reads no record of a run all of whose readings its parent has by name."""
    known = _columns(Run(run_id="p", energy=tuple(own)))[-1]
    told = _columns(Run(run_id="c", energy=tuple(below)))[-2]
    if set(told) <= set(known):
        assert all(any(holds(one, other) for one in own) for other in below)


def test_a_whole_servers_watts_hold_the_memory_of_what_runs_below():
    """A wrapper without a GPU counts a server's watts; below it a GPU has memory told apart."""
    wrapper = run("w", (0, 100), time_of(1000), process="w", ancestors=("init",))
    device = {"boundary": "device"}
    parts = (
        replace(time_of(600), **device),
        replace(time_of(50), component="ram", **device),
        replace(time_of(7000), component="gpu", devices=("GPU-1",), **device),
    )
    child = run("c", (10, 90), *parts, process="c", ancestors=("w", "init"), parent_run_id="w")
    whole = totals([wrapper, child], allocate([wrapper, child]))
    assert {p.boundary: p.billed.value for p in whole.parts} == {"it": 1000, "device": 7000}
