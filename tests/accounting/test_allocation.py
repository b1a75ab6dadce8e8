"""Shared devices: the problem reports that other tools got, and the rules one by one."""

import time
from decimal import Decimal

import pytest
from msgspec.structs import replace

from carbonlens.accounting.allocation import allocate
from carbonlens.accounting.allocation_error import billed_run
from carbonlens.accounting.allocation_totals import totals
from carbonlens.domain.run import HourEnergy, Reading
from carbonlens.domain.units import US_PER_HOUR, US_PER_S
from tests.accounting.device_runs import START_US, gpu, run

EIGHT = tuple(f"GPU-{i}" for i in range(8))


def billed(runs):
    """Return the joules that each run is billed in all."""
    bills = allocate(runs).bills
    return {i: float(sum(r.energy_j for r in b.readings)) for i, b in bills.items()}


def test_golden_example_of_the_adr():
    """Worked by hand in docs/adr/0007-shared-devices.md."""
    runs = [
        run("train", (0, 100), gpu(20_000, share=0.9)),
        run("serve", (50, 150), gpu(18_000, share=0.05)),
        run("watch", (50, 100), gpu(10_000, share=0.1)),
    ]
    found = allocate(runs)
    bills = {i: str(b.readings[0].energy_j) for i, b in found.bills.items()}
    assert bills == {"train": "17357.142857", "serve": "914.285714", "watch": "928.571429"}
    (stretch,) = found.stretches
    assert (str(stretch.energy_j), str(stretch.unattributed_j)) == ("28750.000000", "9550.000000")


def test_codecarbon_689_one_gpu_of_eight():
    """A SLURM job with one A100 of eight was billed all eight."""
    one = run("mine", (0, 60), gpu(18_000, "GPU-3"))
    assert billed([one]) == {"mine": 18_000}
    # A job that could not see what it was given reads all eight; its activity is on one of them.
    all_eight = run("mine", (0, 60), *(gpu(18_000, d, share=float(d == "GPU-3")) for d in EIGHT))
    assert billed([all_eight]) == {"mine": 18_000}
    found = allocate([all_eight])
    assert sum(s.unattributed_j for s in found.stretches) == 7 * 18_000
    # Eight such jobs on one node: the node's energy once, each its own.
    jobs = [
        run(f"job{i}", (0, 60), *(gpu(18_000, d, share=float(d == f"GPU-{i}")) for d in EIGHT), job_id=f"{i}")
        for i in range(8)
    ]
    assert billed(jobs) == {f"job{i}": 18_000 for i in range(8)}


def test_codecarbon_544_and_zeus_79_ddp_ranks_that_each_read_the_node():
    """Eight ranks each read all eight GPUs: the node counts once, each rank an eighth, two nodes twice."""
    nodes = [
        run(f"{host}-{rank}", (0, 100), *(gpu(30_000, d) for d in EIGHT), job_id="7", rank=rank, host_id=host)
        for host in ("n0", "n1")
        for rank in range(8)
    ]
    found = allocate(nodes)
    assert set(billed(nodes).values()) == {30_000}
    whole = totals(nodes, found)
    assert whole.billed.value == 2 * 8 * 30_000
    assert (whole.billed.grade, whole.runs, whole.unattributed) == ("B", 16, None)
    assert {f.code for f in found.findings} == {"CL320"}
    assert "scaled by 0.125, equally by rank" in found.findings[0].message


def test_the_ranks_of_a_job_are_one_beside_another_run():
    ranks = [run(f"r{i}", (0, 10), gpu(1000), job_id="7", rank=i) for i in range(4)]
    other = run("other", (0, 10), gpu(1000))
    assert billed([*ranks, other]) == {"r0": 125, "r1": 125, "r2": 125, "r3": 125, "other": 500}


def test_codecarbon_936_several_processes_on_one_gpu():
    """Clients on one GPU by their activity; shares above 100 % together are scaled to it."""
    shares = {"a": 0.5, "b": 0.3, "c": 0.2}
    clients = [run(i, (0, 10), gpu(3000, share=s)) for i, s in shares.items()]
    assert billed(clients) == {"a": 1500, "b": 900, "c": 600}
    doubled = [run(i, (0, 10), gpu(3000, share=min(2 * s, 1.0))) for i, s in shares.items()]
    assert sum(billed(doubled).values()) == 3000
    # One that does not know its share gets what the others leave.
    assert billed([clients[0], clients[1], run("c", (0, 10), gpu(3000))])["c"] == 600


def test_zeus_109_an_instance_is_not_divided_again():
    """A MIG reading is the instance's part already; the parent's other user keeps its own reading."""
    instance = run("mig", (0, 10), gpu(700, divided=True, share=0.35, grade="D"))
    other = run("mig2", (0, 10), gpu(500, divided=True, share=0.25, grade="D"))
    found = allocate([instance, other])
    assert billed([instance, other]) == {"mig": 700, "mig2": 500}
    assert found.stretches == ()
    assert found.bills["mig"].readings == instance.energy


def test_kepler_2465_idle_is_a_row_of_its_own():
    """What activity leaves is not smeared over the runs, and not made of 1 - utilisation."""
    runs = [run("a", (0, 10), gpu(2000, share=0.5)), run("b", (0, 10), gpu(2000, share=0.3))]
    found = allocate(runs)
    (stretch,) = found.stretches
    assert billed(runs) == {"a": 1000, "b": 600}
    assert stretch.unattributed_j == 400
    assert totals(runs, found).unattributed.value == 400
    # A run that watches the idle device takes nothing from one that works.
    watcher = run("idle", (0, 10), gpu(2000), role="idle")
    assert billed([watcher, run("a", (0, 10), gpu(2000))]) == {"idle": 0, "a": 2000}
    assert allocate([watcher]).stretches[0].unattributed_j == 2000


def test_cpu_packages_by_cpu_seconds():
    package = {"component": "cpu", "method": "RAPL"}
    a = run("a", (0, 10), gpu(800, "package-0", **package), cpu_s=30)
    b = run("b", (0, 10), gpu(800, "package-0", **package), cpu_s=10)
    assert billed([a, b]) == {"a": 600, "b": 200}
    silent = run("b", (0, 10), gpu(800, "package-0", **package))
    assert billed([a, silent]) == {"a": 400, "b": 400}


def test_energy_of_the_work_alone_is_never_scaled():
    model = Reading(component="cpu", energy_j=Decimal(50), boundary="it", grade="D", method="CPU time")
    assert billed([run("a", (0, 10), model), run("b", (0, 10), model)]) == {"a": 50, "b": 50}


@pytest.mark.parametrize("missing", ["host_id", "start_us", "end_us"])
def test_without_host_or_times_nothing_is_scaled(missing):
    runs = [replace(run(i, (0, 10), gpu(100)), **{missing: None}) for i in "ab"]
    assert billed(runs) == {"a": 100, "b": 100}


def test_windows_of_two_hosts_never_overlap():
    assert billed([run("a", (0, 10), gpu(100)), run("b", (0, 10), gpu(100), host_id="k")]) == {
        "a": 100,
        "b": 100,
    }


def test_windows_that_touch_do_not_overlap():
    runs = [run("a", (0, 10), gpu(100)), run("b", (10, 20), gpu(300))]
    assert allocate(runs).stretches == ()
    assert billed(runs) == {"a": 100, "b": 300}


def test_a_short_run_inside_a_long_one_leaves_what_the_long_one_measured():
    """The long window covers the stretch: its reading is the device's energy, whatever the short one saw."""
    runs = [run("day", (0, 3600), gpu(3600)), run("minute", (60, 120), gpu(180))]
    found = allocate(runs)
    assert found.stretches[0].energy_j == 3600
    assert sum(billed(runs).values()) == 3600
    assert 85 < billed(runs)["minute"] < 90  # half of nearly all it saw itself


def test_hours_give_the_shape_of_a_long_run():
    """1 kJ in the first hour, 9 kJ in the second; another run was there in the second only."""
    first = START_US // US_PER_HOUR + 1
    zero = (first * US_PER_HOUR - START_US) / US_PER_S
    rows = tuple(
        HourEnergy(hour_utc=first + i, component="gpu", energy_j=Decimal(j))
        for i, j in enumerate((1000, 9000))
    )
    long = run("long", (zero, zero + 7200), gpu(10_000), energy_by_hour=rows)
    late = run("late", (zero + 3600, zero + 7200), gpu(9_000))
    assert billed([long, late]) == {"long": 5500, "late": 4500}
    # Without rows the long run's energy is spread evenly, and its whole still holds.
    even = [replace(long, energy_by_hour=()), late]
    assert sum(billed(even).values()) == pytest.approx(10_000, abs=1e-6)


def test_children_are_inside_their_parent():
    parent = run("p", (0, 10), gpu(1000))
    child = run("c", (2, 6), gpu(400), parent_run_id="p")
    other = run("x", (0, 10), gpu(1000))
    alone = allocate([parent, child])
    assert billed([parent, child]) == {"p": 1000, "c": 400}
    assert totals([parent, child], alone).billed.value == 1000
    assert totals([parent, child], alone).nested == 1
    assert totals([parent, child], alone, {"c"}).billed.value == 400
    # The parent has half of the device, so its child has half of what it read.
    assert billed([parent, child, other]) == {"p": 500, "c": 200, "x": 500}
    # Children that overlap share their parent's part.
    twin = run("d", (2, 6), gpu(400), parent_run_id="p")
    assert totals([parent, child, twin], allocate([parent, child, twin]), {"c", "d"}).billed.value == 400
    # A parent that is not there, or a circle of parents, hides nobody.
    orphan = run("o", (0, 1), gpu(5), parent_run_id="gone")
    circle = [run("u", (5, 6), gpu(1), parent_run_id="v"), run("v", (7, 8), gpu(2), parent_run_id="u")]
    assert billed([orphan, *circle]) == {"o": 5, "u": 1, "v": 2}


def test_wall_and_stated_totals_of_a_host_are_devices():
    wall = [run(i, (0, 10), gpu(900, component="wall", devices=())) for i in "ab"]
    assert billed(wall) == {"a": 450, "b": 450}
    total = [run(i, (0, 10), gpu(900, component="total", devices=())) for i in "ab"]
    found = allocate(total)
    assert not found.bills["a"].shares[0].named
    assert "leave host out" in found.findings[0].mend


def test_a_reading_of_several_devices_is_taken_in_equal_parts():
    node = run("node", (0, 10), gpu(1000, devices=("GPU-a", "GPU-b")))
    one = run("one", (0, 10), gpu(500, "GPU-b"))
    assert billed([node, one]) == {"node": 750, "one": 250}


def test_an_unknown_energy_is_named_and_makes_a_lower_bound():
    runs = [run("a", (0, 10), gpu(100)), run("b", (0, 10), gpu(None, state="unknown"))]
    whole = totals(runs, allocate(runs))
    assert whole.unknown == ("b",)
    assert (whole.billed.value, whole.billed.state) == (100, "unbounded")
    assert billed(runs[:1]) == {"a": 100}


def test_boundaries_are_not_summed():
    runs = [run("a", (0, 1), gpu(100)), run("b", (2, 3), gpu(50, boundary="it"))]
    whole = totals(runs, allocate(runs))
    assert whole.billed.value is None
    assert [(p.boundary, p.billed.value) for p in whole.parts] == [("device", 100), ("it", 50)]


def test_dividing_widens_a_run_but_not_the_total():
    runs = [run("a", (0, 10), gpu(1000)), run("b", (0, 10), gpu(1000))]
    found = allocate(runs)
    one = billed_run(runs[0], found)
    assert one.energy[0].estimate.grade == "E"
    assert one.total_energy.low == pytest.approx(500 / 2, rel=0.01)
    assert "50.0% of a shared device (in equal parts)" in one.energy[0].method
    assert totals(runs, found).billed.u_total == pytest.approx(0.02 * 1000)
    known = run("a", (0, 10), gpu(1000, share=0.75))
    assert billed_run(known, allocate([known])).energy[0].estimate.grade == "D"
    alone = run("a", (0, 10), gpu(1000, share=1.0))
    assert billed_run(alone, allocate([alone])) == alone


def test_billed_runs_are_not_divided_again():
    runs = [run("a", (0, 10), gpu(1000)), run("b", (0, 10), gpu(1000))]
    found = allocate(runs)
    once = [billed_run(r, found) for r in runs]
    assert billed(once) == {"a": 500, "b": 500}


@pytest.mark.parametrize("joules", ["NaN", "Infinity", "-5", "1E+40"])
def test_a_damaged_energy_stops_nothing(joules):
    bad = run("bad", (0, 10), replace(gpu(1), energy_j=Decimal(joules)))
    found = allocate([bad, run("a", (0, 10), gpu(100)), run("b", (0, 10), gpu(100))])
    assert found.bills["bad"].readings == bad.energy
    assert found.bills["a"].readings[0].energy_j == 50


def test_ten_thousand_runs_in_a_second():
    """All overlap on one device: the hardest case of a sweep, and quadratic for a plain one."""
    runs = [run(f"r{i:05}", (i * 7 % 5000, i * 7 % 5000 + 6000), gpu(12.345678)) for i in range(10_000)]
    times = []
    for _ in range(2):
        start = time.process_time()
        found = allocate(runs)
        times.append(time.process_time() - start)
    assert len(found.stretches[0].run_ids) == 10_000
    # Below 1 s here (docs/adr/0007); a busy or slower machine is given room, n squared is not.
    assert min(times) < 3
