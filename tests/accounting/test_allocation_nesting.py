"""What lies in another run, over time: a total holds each joule that was measured, once."""

from dataclasses import dataclass
from decimal import Decimal
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from carbonlens.accounting.allocation import allocate
from carbonlens.accounting.allocation_bills import Allocation
from carbonlens.accounting.allocation_totals import totals
from carbonlens.domain.run import HourEnergy, Reading, Run
from carbonlens.domain.units import US_PER_HOUR, US_PER_S
from tests.accounting.device_runs import START_US, gpu, run


def time_of(joules, **fields):
    """Return the CPU energy of a process and of what it started."""
    given = {"boundary": "it", "grade": "D", "method": "model", "u_by_source_j": {"cpu_model:f": 0.1}}
    return Reading(component="cpu", energy_j=Decimal(str(joules)), **{**given, **fields})


def nested(run_id, window, joules, parent=None, **fields):
    return run(run_id, window, time_of(joules), process=f"p-{run_id}", parent_run_id=parent, **fields)


def total(runs, chosen=None):
    return totals(runs, allocate(runs), chosen).billed.value


PARENT = nested("p", (0, 100), 1000)


@pytest.mark.parametrize(
    ("window", "expected"),
    [((100, 600), 6000), ((50, 600), 1000 + 5000 * 500 / 550), ((-100, 400), 5000), ((20, 90), 1000)],
    ids=["after it", "over its end", "over both its edges", "within it"],
)
def test_what_a_nested_run_uses_beside_its_parent_counts(window, expected):
    child = nested("c", window, 5000, "p")
    runs = [PARENT, child]
    found = allocate(runs)
    assert totals(runs, found).billed.value == pytest.approx(expected, abs=1e-5)
    assert found.bills["c"].readings == child.energy
    assert total(runs, {"c"}) == 5000
    assert totals(runs, found).runs + totals(runs, found).nested == 2
    own = [p for p in found.bills["c"].slices if not p.inside]
    assert sum(p.run.energy[0].energy_j for p in found.bills["c"].slices) == 5000
    assert float(sum(p.run.energy[0].energy_j for p in own)) == pytest.approx(expected - 1000, abs=1e-5)


def test_hours_tell_what_was_used_after_the_parents_end():
    hour = START_US // US_PER_HOUR + 1
    start = hour * US_PER_HOUR
    parent = replace(PARENT, start_us=start, end_us=start + US_PER_HOUR)
    rows = tuple(
        HourEnergy(hour_utc=hour + k, component="cpu", energy_j=Decimal(j)) for k, j in enumerate((4500, 500))
    )
    child = replace(
        nested("c", (0, 1), 5000, "p"), start_us=start, end_us=start + 2 * US_PER_HOUR, energy_by_hour=rows
    )
    assert total([parent, child]) == 1500
    (inside, own) = allocate([parent, child]).bills["c"].slices
    assert [r.energy_j for r in own.run.energy_by_hour] == [500]
    assert [r.energy_j for r in inside.run.energy_by_hour] == [4500]


def test_it_is_said_how_unsure_the_part_after_the_end_is():
    child = nested("c", (50, 150), 1000, "p")
    bill = allocate([PARENT, child]).bills["c"]
    (own,) = [p for p in bill.slices if not p.inside]
    reading = own.run.energy[0]
    # Half of it lies there if it is even; between none and all of it may.
    assert reading.energy_j == 500
    assert reading.u_by_source_j["nested:c"] == pytest.approx(500)
    assert bill.readings == child.energy
    after = nested("c", (100, 200), 1000, "p")
    (own,) = allocate([PARENT, after]).bills["c"].slices
    assert own.run.energy == after.energy


def test_a_chain_of_three_lies_in_whichever_goes_on():
    grand = nested("g", (0, 300), 3000)
    parent = nested("p", (0, 100), 1000, "g")
    child = nested("c", (0, 600), 6000, "p")
    runs = [grand, parent, child]
    assert total(runs) == 3000 + 3000
    assert total([grand, child]) == 3000 + 6000, "without its parent it is nobody's"
    assert total(runs, {"g", "c"}) == 3000 + 3000
    assert total(runs, {"p", "c"}) == 1000 + 5000
    short = [nested("g", (0, 50), 500), parent, child]
    assert total(short) == 500 + 500 + 5000
    insides = [p.inside for p in allocate(short).bills["c"].slices]
    assert insides == [("p", "g"), ("p",), ()]


def test_edges_that_two_processes_stamp_a_moment_apart_are_one():
    child = nested("c", (0.02, 100.05), 1000, "p")
    assert total([PARENT, child]) == 1000
    late = nested("c", (99.95, 200), 1000, "p")
    assert total([PARENT, late]) == 2000


def test_windows_of_one_process_lie_in_their_parent_whatever_the_clock_says():
    child = replace(nested("c", (50, 200), 500, "p"), process=PARENT.process)
    assert total([PARENT, child]) == 1000


def test_a_run_of_another_machine_is_in_no_reading_of_its_parent():
    child = nested("c", (0, 100), 500, "p", host_id="other")
    assert total([PARENT, child]) == 1500
    uuid = "GPU-3b9c6f0e-7d41-4a55-9a6e-0f1d2c3b4a59"
    shown = [
        replace(PARENT, energy=(*PARENT.energy, gpu(100, uuid, boundary="it"))),
        replace(child, energy=(*child.energy, gpu(100, uuid, boundary="it"))),
    ]
    assert total(shown) == 1100, "two containers of one machine"


def test_unknown_energy_after_the_parents_end_makes_a_total_a_lower_bound():
    child = run(
        "c",
        (50, 200),
        time_of(1).__class__(
            component="cpu", energy_j=None, boundary="it", grade=None, method="none", state="unknown"
        ),
        parent_run_id="p",
    )
    found = totals([PARENT, child], allocate([PARENT, child]))
    assert found.billed.state != "known"
    assert found.unknown == ("c",)
    inside = replace(child, start_us=START_US, end_us=START_US + 50 * US_PER_S)
    assert totals([PARENT, inside], allocate([PARENT, inside])).billed.state == "known"


def test_a_parent_without_an_end_goes_on():
    running = replace(PARENT, end_us=None, energy=(), status="running")
    child = nested("c", (50, 600), 5000, "p")
    assert totals([running, child], allocate([running, child])).nested == 1


def test_a_parent_that_was_corrected_holds_what_names_it():
    child = nested("c", (0, 50), 500, "p")
    again = replace(PARENT, run_id="p2", supersedes="p")
    assert total([again, child]) == 1000
    third = replace(PARENT, run_id="p3", supersedes="p2")
    runs = [third, child]
    assert totals(runs, allocate(runs, {"p": "p3", "p2": "p3"})).billed.value == 1000


def worker(run_id, window, joules, ancestors, **fields):
    return run(run_id, window, time_of(joules), process=f"p-{run_id}", ancestors=ancestors, **fields)


def test_a_worker_that_was_forked_before_the_block_lies_in_it():
    """The pool's worker names no parent; the block read its CPU time all the same."""
    main = nested("main", (0, 100), 1000)
    inside = worker("w", (10, 60), 400, ("p-main", "p-shell"))
    assert total([main, inside]) == 1000
    assert allocate([main, inside]).bills["w"].readings == inside.energy
    over = worker("w", (50, 150), 400, ("p-main", "p-shell"))
    assert total([main, over]) == 1200
    assert total([main, over], {"w"}) == 400
    apart = worker("w", (10, 60), 400, ("p-other",))
    assert total([main, apart]) == 1400
    assert total([main, worker("w", (10, 60), 400, None)]) == 1400, "old records do not say"


def test_a_worker_lies_in_a_block_of_its_grandparent_and_in_several():
    first, second = nested("a", (0, 50), 500), nested("b", (50, 100), 500)
    inside = worker("w", (0, 120), 1200, ("p-between", "p-a"))
    second = replace(second, process="p-a")
    assert total([first, second, inside]) == 1200
    # Windows of one process that overlap share its time; what lies in them lies in both.
    twin = replace(first, run_id="twin")
    assert total([first, twin, worker("w", (0, 50), 100, ("p-a",))]) == 500
    assert total([first, twin, worker("w", (0, 50), 100, ("p-a",))], {"twin", "w"}) == 250


def test_what_the_block_did_not_read_is_not_lost():
    main = nested("main", (0, 100), 1000)
    both = run("w", (0, 100), time_of(400), gpu(9000, boundary="it"), process="p-w", ancestors=("p-main",))
    assert total([main, both]) == 10_000
    found = allocate([main, both])
    assert found.bills["w"].readings == both.energy
    assert total([main, both], {"w"}) == 9400
    machine = run("main", (0, 100), gpu(20_000, "plug", component="wall", boundary="it"), process="p-main")
    assert total([machine, both]) == 20_000


def test_a_reused_pid_is_another_process():
    """Pseudonyms hold the start time: two processes of one pid have two."""
    main = nested("main", (0, 100), 1000)
    later = worker("w", (0, 100), 400, ("p-of-another-start",))
    assert total([main, later]) == 1400


def test_processes_that_descend_from_each_other_are_damaged_and_count():
    a = worker("a", (0, 10), 10, ("p-b",))
    b = worker("b", (0, 10), 20, ("p-a",))
    under = worker("u", (0, 10), 5, ("p-a",))
    assert total([a, b, under]) == 35


@dataclass(frozen=True)
class Tree:
    """Processes, each started by an earlier one, what each uses a second, and windows over them."""

    starters: tuple[int | None, ...]
    power: tuple[tuple[int, ...], ...]
    windows: tuple[tuple[int, int, int, bool], ...]

    def line(self, process: int) -> list[int]:
        found = []
        here = self.starters[process]
        while here is not None:
            found.append(here)
            here = self.starters[here]
        return found

    def used(self, process: int, start: int, end: int) -> int:
        """What a process and all that descend from it use."""
        below = [p for p in range(len(self.power)) if p == process or process in self.line(p)]
        return sum(sum(self.power[p][start:end]) for p in below)

    def runs(self) -> list[Run]:
        made: list[Run] = []
        for k, (process, start, end, names) in enumerate(self.windows):
            hours = tuple(
                HourEnergy(hour_utc=HOUR + t, component="cpu", energy_j=Decimal(self.used(process, t, t + 1)))
                for t in range(start, end)
            )
            parents = [r for r in made if names and r.process in {f"q{p}" for p in self.line(process)}]
            made.append(
                Run(
                    run_id=f"r{k}",
                    host_id="h",
                    start_us=(HOUR + start) * US_PER_HOUR,
                    end_us=(HOUR + end) * US_PER_HOUR,
                    energy=(time_of(self.used(process, start, end)),),
                    energy_by_hour=hours,
                    process=f"q{process}",
                    ancestors=tuple(f"q{p}" for p in self.line(process)),
                    parent_run_id=parents[-1].run_id if parents else None,
                )
            )
        return made

    def measured(self) -> int:
        """Return what some window saw: each hour of each process once."""
        whole = 0
        for process, power in enumerate(self.power):
            for hour, joules in enumerate(power):
                over = {process, *self.line(process)}
                whole += joules * any(w[0] in over and w[1] <= hour < w[2] for w in self.windows)
        return whole


HOUR = START_US // US_PER_HOUR + 1
LENGTH = 6


@st.composite
def trees(draw: st.DrawFn) -> Tree:
    count = draw(st.integers(1, 4))
    starters = tuple(
        None if k == 0 else draw(st.one_of(st.none(), st.integers(0, k - 1))) for k in range(count)
    )
    power = tuple(
        tuple(draw(st.lists(st.integers(0, 1000), min_size=LENGTH, max_size=LENGTH))) for _ in range(count)
    )
    windows = []
    for process in range(count):
        # Windows of one process that follow each other: those that overlap have laws of their own.
        edges = sorted(draw(st.sets(st.integers(0, LENGTH), max_size=4)))
        windows += [(process, a, b, draw(st.booleans())) for a, b in pairwise(edges)]
    return Tree(starters, power, tuple(windows))


@given(trees())
def test_a_total_holds_all_that_was_measured_and_nothing_twice(tree):
    runs = tree.runs()
    found: Allocation = allocate(runs)
    assert sum((p.billed.value for p in totals(runs, found).parts), 0.0) == pytest.approx(
        tree.measured(), abs=1e-4
    )
    for one in runs:
        assert (
            sum((r.energy_j for r in found.bills[one.run_id].readings), Decimal(0)) == one.energy[0].energy_j
        )
        slices = found.bills[one.run_id].slices
        if slices:
            parts = [r.energy_j for p in slices for r in p.run.energy]
            assert sum(parts, Decimal(0)) == one.energy[0].energy_j


@given(
    windows=st.lists(
        st.tuples(st.integers(0, 50), st.integers(1, 50)).map(lambda w: (w[0], w[0] + w[1])),
        min_size=1,
        max_size=4,
    ),
    joules=st.lists(st.integers(0, 10**6), min_size=4, max_size=4),
)
def test_in_a_chain_each_counts_where_nobody_above_it_goes_on(windows, joules):
    """The energies are even: the part of a window that no window above covers is its part of the total."""
    runs = [nested(f"r{k}", w, joules[k], f"r{k - 1}" if k else None) for k, w in enumerate(windows)]
    expected = 0.0
    for k, (start, end) in enumerate(windows):
        free = sum(not any(a <= t < b for a, b in windows[:k]) for t in range(start, end))
        expected += joules[k] * free / (end - start)
    assert total(runs) == pytest.approx(expected, abs=1e-4)
