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
from carbonlens.accounting.allocation_windows import Windows
from carbonlens.domain.money import Money
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


def started(run_id, window, joules, line, parent=None, *readings, **fields):
    """Return a run of a process that tells its line up to the first process of its machine."""
    given = {"process": f"p-{run_id}", "ancestors": (*line, "init"), "parent_run_id": parent}
    return run(run_id, window, time_of(joules), *readings, **{**given, **fields})


@pytest.mark.parametrize("window", [(5, 95), (50, 150)], ids=["within", "over its end"])
def test_what_a_daemon_started_is_in_no_reading_of_the_run_that_it_names(window):
    """Srun hands its environment to a daemon: the job's process waits, the rank works elsewhere."""
    job = started("job", (0, 100), 1, ("p-shell",))
    rank = started("rank", window, 390, ("p-daemon",), "job")
    assert total([job, rank]) == 391
    inside = started("step", (10, 90), 100, ("p-rank", "p-daemon"), "rank")
    assert total([job, replace(rank, end_us=job.end_us, start_us=job.start_us), inside]) == 391
    detached = started("server", (10, 90), 590, (), "job")
    assert total([job, detached]) == 591


def test_a_meter_of_the_whole_machine_holds_what_a_daemon_started():
    """A node's record of a job by its wall meter: the ranks name it and descend from the scheduler."""
    node = started("node", (0, 100), 1000, ("p-shell",))
    node = replace(node, energy=(replace(node.energy[0], component="wall", devices=("plug",)),))
    assert total([node, started("rank", (5, 95), 390, ("p-daemon",), "node")]) == 1000


def test_what_runs_below_a_wrapper_lies_in_it():
    wrapper = started("w", (0, 100), 1000, ())
    for line in (("p-w",), ("p-launcher", "p-w")):
        assert total([wrapper, started("c", (10, 90), 900, line, "w")]) == 1000


@pytest.mark.parametrize(
    "fields", [{"ancestors": ("p-shim", "init of a container")}, {"ancestors": None}, {"process": None}]
)
def test_where_processes_cannot_be_compared_the_name_tells(fields):
    outer = started("o", (0, 100), 1000, ("p-shell",))
    assert total([outer, started("c", (10, 90), 400, (), "o", **fields)]) == 1000


def test_a_device_of_the_whole_machine_is_shared_with_what_a_daemon_started():
    job = run("job", (0, 100), gpu(1000), process="a", ancestors=("init",))
    rank = run("rank", (0, 100), gpu(1000), process="b", ancestors=("init",), parent_run_id="job")
    assert total([job, rank]) == 1000


def test_what_a_program_uses_after_it_replaced_itself_counts():
    """One process, whose window before the exec nobody closed: it was recovered at its last sample."""
    before = started("b", (0, 100), 187, (), status="recovered")
    after = started("a", (101, 400), 583, (), "b", process="p-b")
    assert total([before, after]) == 770
    assert total([replace(before, status="complete"), after]) == 187, "the clock is not asked"


def test_a_device_that_only_the_inner_run_reads_counts():
    outer = started("o", (0, 100), 100, ())
    inner = started("i", (0, 100), 50, ("p-o",), "o", gpu(1000, boundary="it"))
    assert total([outer, inner]) == 1100
    both = started("o", (0, 100), 100, (), None, gpu(1000, boundary="it"))
    assert total([both, inner]) == 1100
    unsaid = replace(inner, ancestors=None)
    assert total([outer, unsaid]) == 100, "old records lie wholly in what they name"


def test_a_parent_of_unknown_energy_holds_nothing_of_its_child():
    silent = replace(time_of(0), energy_j=None, state="unknown", grade=None, u_by_source_j={})
    for readings in ((silent,), ()):
        outer = run("o", (0, 100), *readings, process="p-o", ancestors=("init",), status="recovered")
        found = total_of([outer, started("i", (20, 90), 50, ("p-o",), "o")])
        assert (found.billed.value, found.billed.state, found.unknown) == (50, "unbounded", ("o",))


def total_of(runs):
    return totals(runs, allocate(runs))


def test_a_child_cannot_begin_before_its_parent():
    """Its machine's clock was set back by an hour: as long as the parent goes on it lies in it."""
    parent = started("p", (3600, 3700), 440, ())
    child = started("c", (10, 90), 390, ("p-p",), "p")
    found = allocate([parent, child])
    assert totals([parent, child], found).billed.value == 440
    (said,) = found.findings
    assert (said.code, said.subject) == ("CL528", "c")
    longer = started("c", (10, 210), 400, ("p-p",), "p")
    assert total([parent, longer]) == 440 + 200
    assert not allocate([parent, started("c", (3600, 3650), 1, ("p-p",), "p")]).findings


def test_a_worker_is_in_no_reading_of_a_run_on_another_machine_above_its_window():
    far = started("far", (0, 200), 1000, (), host_id="a")
    window = started("w", (0, 100), 500, (), "far", host_id="b", ancestors=None)
    below = started("c", (50, 150), 200, ("p-w",), host_id="b")
    assert total([far, window, below]) == 1600


def test_what_is_done_is_in_a_sum_where_any_of_its_energy_is():
    """CPU time lies in the block; the GPU that the block did not read counts, and 100 images with it."""
    block = started("b", (0, 100), 100, ())
    cost = Money(amount=Decimal(1), currency="EUR")
    did = {"units": Decimal(100), "unit": "image", "cost": cost}
    worker = started("w", (20, 90), 50, ("p-b",), None, gpu(1000, boundary="it"), **did)
    inside, own = sorted(allocate([block, worker]).bills["w"].slices, key=lambda p: not p.inside)
    assert (own.run.units, own.run.cost) == (100, cost)
    assert (inside.run.units, inside.run.cost.amount) == (0, 0)
    late = replace(worker, end_us=START_US + 120 * US_PER_S)
    slices = allocate([block, late]).bills["w"].slices
    assert sum(p.run.units for p in slices if not p.inside) == 100
    alone = started("w", (50, 150), 50, ("p-b",), **did)
    slices = allocate([block, alone]).bills["w"].slices
    assert [(bool(p.inside), p.run.units, p.run.cost.amount) for p in slices] == [
        (True, 50, Decimal("0.5")),
        (False, 50, Decimal("0.5")),
    ]


@given(
    st.lists(st.tuples(st.integers(0, 30), st.integers(1, 30)), max_size=20),
    st.integers(-5, 40),
    st.integers(1, 20),
)
def test_windows_are_found_as_by_looking_at_each(spans, start, length):
    windows = [(a, a + n, f"{k}") for k, (a, n) in enumerate(spans)]
    found = list(Windows(windows).overlapping(start, start + length))
    assert sorted(found) == sorted(i for a, b, i in windows if a < start + length and b > start)
    assert len(found) == len(set(found))


@dataclass(frozen=True)
class Window:
    """A window of a process over hours: what it names, whether its CPU reading is known, the GPUs it sees."""

    process: int
    start: int
    end: int
    names: int | None
    known: bool
    sees: frozenset[int]


@dataclass(frozen=True)
class Tree:
    """Processes, each started by an earlier one or apart, what each uses an hour, and windows over them."""

    starters: tuple[int | None, ...]
    power: tuple[tuple[int, ...], ...]
    gpu_power: tuple[int, ...]
    windows: tuple[Window, ...]

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
        for k, w in enumerate(self.windows):
            hours = tuple(
                HourEnergy(
                    hour_utc=HOUR + t, component="cpu", energy_j=Decimal(self.used(w.process, t, t + 1))
                )
                for t in range(w.start, w.end)
            )
            cpu = time_of(self.used(w.process, w.start, w.end))
            if not w.known:
                cpu, hours = replace(cpu, energy_j=None, state="unknown", u_by_source_j={}), ()
            gpus = [
                gpu(self.gpu_power[g] * (w.end - w.start), f"GPU-{g}", boundary="it") for g in sorted(w.sees)
            ]
            # Named is what was open where a process began, or had been: nothing that begins later.
            parent = made[w.names] if w.names is not None and w.names < k else None
            begun = parent is not None and parent.start_us <= (HOUR + w.start) * US_PER_HOUR
            made.append(
                Run(
                    run_id=f"r{k}",
                    host_id="h",
                    status="recovered",
                    start_us=(HOUR + w.start) * US_PER_HOUR,
                    end_us=(HOUR + w.end) * US_PER_HOUR,
                    energy=(cpu, *gpus),
                    energy_by_hour=hours,
                    process=f"q{w.process}",
                    ancestors=(*(f"q{p}" for p in self.line(w.process)), "init"),
                    parent_run_id=parent.run_id if begun else None,
                )
            )
        return made

    def measured(self) -> int:
        """Return what some window saw: each hour of each process, and of each GPU, once."""
        whole = 0
        for hour in range(LENGTH):
            here = [w for w in self.windows if w.start <= hour < w.end]
            for process, power in enumerate(self.power):
                over = {process, *self.line(process)}
                whole += power[hour] * any(w.process in over and w.known for w in here)
            whole += sum(self.gpu_power[g] for g in {g for w in here for g in w.sees})
        return whole


HOUR = START_US // US_PER_HOUR + 1
LENGTH = 6
GPUS = 2


@st.composite
def trees(draw: st.DrawFn) -> Tree:
    count = draw(st.integers(1, 4))
    starters = tuple(
        None if k == 0 else draw(st.one_of(st.none(), st.integers(0, k - 1))) for k in range(count)
    )
    power = tuple(
        tuple(draw(st.lists(st.integers(0, 1000), min_size=LENGTH, max_size=LENGTH))) for _ in range(count)
    )
    windows: list[Window] = []
    for process in range(count):
        # Windows of one process that follow each other: those that overlap have laws of their own.
        edges = sorted(draw(st.sets(st.integers(0, LENGTH), max_size=4)))
        for a, b in pairwise(edges):
            # Any that began is named: an ancestor's, one of a process apart (a daemon started it), its own
            # from before an exec.
            names = draw(st.one_of(st.none(), st.integers(0, 8)))
            known = draw(st.booleans()) or draw(st.booleans())
            windows.append(Window(process, a, b, names, known, draw(st.frozensets(st.integers(0, GPUS - 1)))))
    return Tree(
        starters,
        power,
        tuple(draw(st.lists(st.integers(0, 1000), min_size=GPUS, max_size=GPUS))),
        tuple(windows),
    )


@given(trees())
def test_a_total_holds_all_that_was_measured_and_nothing_twice(tree):
    """Whatever windows name: what a parent measured lies in it, all else counts."""
    runs = tree.runs()
    found: Allocation = allocate(runs)
    whole = totals(runs, found)
    assert sum((p.billed.value for p in whole.parts), 0.0) == pytest.approx(tree.measured(), abs=1e-4)
    for one in runs:
        billed, slices = found.bills[one.run_id].readings, found.bills[one.run_id].slices
        cpu = [r.energy_j for r in billed if r.component == "cpu"]
        assert cpu == [one.energy[0].energy_j]
        if slices and cpu != [None]:
            parts = [r.energy_j for p in slices for r in p.run.energy if r.component == "cpu"]
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
