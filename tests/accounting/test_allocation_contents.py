"""A whole and its parts: a wall or module reading by one run, devices inside it by others."""

from decimal import Decimal
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from carbonlens.accounting.allocation import allocate
from carbonlens.accounting.allocation_error import billed_run
from carbonlens.accounting.allocation_totals import totals
from carbonlens.domain.run import Reading
from tests.accounting.device_runs import gpu, run

MICRO = Decimal("0.000001")
SECONDS = 12
INNER = {"package-0": "cpu", "GPU-a": "gpu", "GPU-b": "gpu", "dimm": "ram"}


def wall(joules, device="plug", **fields):
    given = {"component": "wall", "boundary": "it", "grade": "A", "method": "meter", **fields}
    return gpu(joules, device, **given)


def module(joules, device="VDD_IN", **fields):
    return gpu(joules, device, component="total", method="rail", **fields)


def bare(joules, component="cpu", **fields):
    """Return energy of the work alone: no device is named."""
    return Reading(
        component=component,
        energy_j=Decimal(joules),
        boundary=fields.get("boundary", "device"),
        grade="D",
        method="model",
        u_by_source_j={"model": 1.0},
    )


def billed(runs):
    bills = allocate(runs).bills
    return {i: float(sum(r.energy_j for r in b.readings)) for i, b in bills.items()}


def lines(runs):
    """Return all that is billed to roots, and what is nobody's."""
    found = allocate(runs)
    mine = sum((r.energy_j for b in found.bills.values() if b.root for r in b.readings), Decimal(0))
    return mine, sum((s.unattributed_j for s in found.stretches), Decimal(0))


def codes(runs):
    return [f.code for f in allocate(runs).findings]


def test_golden_example_of_the_adr():
    """Worked by hand in docs/adr/0007-shared-devices.md, "A whole and its parts"."""
    runs = [
        run("plug", (0, 100), wall(50_000)),
        run("train", (0, 100), gpu(30_000, share=0.8)),
        run("tool", (0, 40), bare(2_000)),
    ]
    assert billed(runs) == {"plug": 24_000, "train": 24_000, "tool": 2_000}
    assert lines(runs) == (50_000, 0)  # 6 kJ of the GPU that are not train's are in plug's part
    (finding,) = allocate(runs).findings
    assert (finding.code, finding.severity) == ("CL325", "info")
    assert "26 kJ" in finding.message or "kWh" in finding.message


def test_a_run_that_only_watches_the_wall_leaves_the_rest_to_nobody():
    runs = [run("w", (0, 10), wall(900), role="idle"), run("g", (0, 10), gpu(300, share=0.5))]
    assert billed(runs) == {"w": 0, "g": 150}
    assert lines(runs) == (150, 750)
    whole = totals(runs, allocate(runs))
    assert {p.boundary: p.unattributed.value for p in whole.parts if p.unattributed} == {"it": 750}


def test_only_the_overlap_is_taken_off_and_its_place_in_time_is_unsure():
    runs = [run("w", (0, 10), wall(900)), run("g", (5, 15), gpu(300))]
    assert billed(runs) == {"w": 750, "g": 300}
    reading = allocate(runs).bills["w"].readings[0]
    # Between none and all of the 300 J may lie before second 10: at most 150 J, one sigma.
    where = [u for name, u in reading.u_by_source_j.items() if name.startswith("inside:")]
    assert where == [150]
    assert reading.estimate.low < 600
    assert reading.estimate.high > 900
    later = [runs[0], run("g", (10, 15), gpu(300))]
    assert billed(later) == {"w": 900, "g": 300}
    assert codes(later) == []


def test_several_readers_of_the_wall_divide_what_is_left():
    runs = [run("a", (0, 10), wall(1000)), run("b", (0, 10), wall(1000)), run("g", (0, 5), gpu(400))]
    # 0-5: 500 J less 400 J, halved; 5-10: 500 J, halved.
    assert billed(runs) == {"a": 300, "b": 300, "g": 400}
    assert sorted(codes(runs)) == ["CL320", "CL325"]


def test_wall_holds_the_module_and_the_module_its_parts():
    runs = [
        run("w", (0, 10), wall(1000)),
        run("m", (0, 10), module(600)),
        run("g", (0, 10), gpu(250)),
        run("d", (0, 10), gpu(40, "ssd", component="disk")),
    ]
    assert billed(runs) == {"w": 360, "m": 350, "g": 250, "d": 40}
    assert lines(runs) == (1000, 0)


def test_what_a_run_reads_beside_its_whole_lies_outside_it():
    """The readings of one run never hold the same joule."""
    box = run("box", (0, 10), wall(500), gpu(200, "GPU-external"))
    other = run("g", (0, 10), gpu(200, "GPU-external"))
    assert billed([box, other]) == {"box": 600, "g": 100}
    alone = run("s", (0, 10), wall(500), bare(70))
    assert billed([alone]) == {"s": 570}


def test_errors_of_what_was_taken_off_cancel_in_the_total():
    runs = [
        run("w", (0, 10), wall(1000, u_by_source_j={"sensor:plug": 10.0})),
        run("g", (0, 10), gpu(600, boundary="it", u_by_source_j={"sensor:GPU-a": 30.0})),
    ]
    found = allocate(runs)
    own = found.bills["w"].readings[0]
    assert own.u_by_source_j == {"sensor:plug": 10.0, "sensor:GPU-a": -30.0}
    assert own.grade == "B"
    assert totals(runs, found).billed.u_total == pytest.approx(10.0)
    assert billed_run(runs[0], found).energy[0].estimate.u_total == pytest.approx(1000**0.5)


def test_without_a_width_of_the_part_the_rest_has_none():
    runs = [run("w", (0, 10), wall(1000)), run("g", (0, 10), gpu(600, u_by_source_j={}))]
    reading = allocate(runs).bills["w"].readings[0]
    assert (reading.estimate.low, reading.estimate.high) == (None, None)


@pytest.mark.parametrize(
    "whole",
    [
        module(1000, devices=()),  # a stated total names nothing that it would be of
        wall(1000, boundary=None),
    ],
)
def test_unknown_containment_is_billed_once_with_both_cases_in_the_interval(whole):
    runs = [run("w", (0, 10), whole), run("g", (0, 10), gpu(600))]
    assert billed(runs) == {"w": 400, "g": 600}
    reading = allocate(runs).bills["w"].readings[0]
    assert reading.estimate.high >= 1000
    (finding,) = allocate(runs).findings
    assert (finding.code, finding.severity) == ("CL326", "warning")


def test_parts_that_exceed_the_whole_are_said_and_never_below_zero():
    runs = [run("w", (0, 10), wall(100)), run("g", (0, 10), gpu(130))]
    assert billed(runs) == {"w": 0, "g": 130}
    (finding,) = allocate(runs).findings
    assert finding.code == "CL327"
    assert "30 J more" in finding.message


def test_a_figure_with_cooling_is_not_taken_off_one_without():
    runs = [run("w", (0, 10), wall(900)), run("f", (0, 10), gpu(500, boundary="facility"))]
    assert billed(runs) == {"w": 900, "f": 500}
    assert codes(runs) == ["CL324"]


def test_two_meters_of_one_machine_are_one_unless_a_run_reads_both():
    bmc, plug = run("b", (0, 10), wall(1000, "bmc")), run("p", (0, 10), wall(1040, "plug"))
    assert sum(billed([bmc, plug]).values()) == pytest.approx(1020)
    assert totals([bmc, plug], allocate([bmc, plug])).billed.value == pytest.approx(1020)
    feeds = run("f", (0, 10), wall(300, "feed-1"), wall(600, "feed-2"))
    inside = run("g", (0, 10), gpu(300))
    assert billed([feeds, inside]) == {"f": 600, "g": 300}
    parts = [float(r.energy_j) for r in allocate([feeds, inside]).bills["f"].readings]
    assert parts == [200, 400]  # by their power


def test_another_host_and_a_run_inside_another_change_nothing():
    w = run("w", (0, 10), wall(900))
    assert billed([w, run("g", (0, 10), gpu(300), host_id="k")]) == {"w": 900, "g": 300}
    inside = [w, run("g", (0, 10), gpu(300), parent_run_id="w")]
    assert billed(inside) == {"w": 900, "g": 300}
    assert totals(inside, allocate(inside)).billed.value == 900


windows = st.tuples(st.integers(0, SECONDS - 1), st.integers(1, SECONDS)).map(
    lambda w: (w[0], min(w[0] + w[1], SECONDS))
)
profiles = st.lists(st.integers(0, 10**8), min_size=SECONDS, max_size=SECONDS)
shares = st.none() | st.sampled_from([0.0, 0.25, 0.5, 1.0])
machines = st.fixed_dictionaries({**dict.fromkeys(INNER, profiles), "rest": profiles, "outside": profiles})
readers = st.lists(
    st.tuples(windows, st.sampled_from(["wall", "total", *INNER]), shares, st.none() | st.just("idle")),
    min_size=1,
    max_size=7,
)


def drawn(machine, what, second):
    """Return the true microjoules of a device in one second."""
    if what in {"wall", "total"}:
        held = sum(machine[d][second] for d in INNER)
        return held if what == "total" else held + machine["rest"][second]
    return machine[what][second]


def exact_reading(machine, what, window, share):
    joules = sum(drawn(machine, what, t) for t in range(*window)) * MICRO
    if what == "wall":
        return wall(joules, own_share=None)
    if what == "total":
        return module(joules, boundary="device", own_share=None)
    return gpu(joules, what, component=INNER.get(what, "gpu"), share=share)


def machine_runs(machine, table):
    return [
        run(f"r{i}", window, exact_reading(machine, what, window, share), **({"role": role} if role else {}))
        for i, (window, what, share, role) in enumerate(table)
    ]


@given(st.fixed_dictionaries(dict.fromkeys([*INNER, "rest", "outside"], st.integers(0, 10**8))), readers)
def test_of_constant_powers_the_union_of_what_was_read_is_billed_once(powers, table):
    """Each second of each device counts once, however many runs read it, alone or in a whole."""
    machine = {name: [power] * SECONDS for name, power in powers.items()}
    runs = machine_runs(machine, table)
    true = 0
    for second in range(SECONDS):
        here = {what for (a, b), what, _, _ in table if a <= second < b}
        outer = "wall" if "wall" in here else "total" if "total" in here else None
        true += drawn(machine, outer, second) if outer else sum(drawn(machine, d, second) for d in here)
    mine, nobody = lines(runs)
    assert abs(mine + nobody - true * MICRO) <= len(table) * MICRO
    assert all(r.energy_j >= 0 for b in allocate(runs).bills.values() for r in b.readings)


@given(machines, readers, st.booleans())
def test_over_the_whole_window_of_a_wall_all_shares_sum_to_it(machine, table, with_outside):
    """Whatever the powers do: inside the window of an exact wall reading, its joules are billed once."""
    extra = [exact_reading(machine, "outside", (0, SECONDS), None)] if with_outside else []
    watcher = run("wall", (0, SECONDS), exact_reading(machine, "wall", (0, SECONDS), None), *extra)
    runs = [watcher, *machine_runs(machine, table)]
    if with_outside:
        runs.append(run("x", (2, 7), exact_reading(machine, "outside", (2, 7), None)))
    true = sum(drawn(machine, "wall", t) for t in range(SECONDS))
    true += sum(machine["outside"]) if with_outside else 0
    mine, nobody = lines(runs)
    if "CL327" not in codes(runs):
        assert abs(mine + nobody - true * MICRO) <= (len(table) + 2) * MICRO
    assert mine <= true * MICRO + (len(table) + 2) * MICRO or "CL327" in codes(runs)


@given(machines, readers)
def test_each_stretch_sums_to_its_device(machine, table):
    runs = machine_runs(machine, table)
    found = allocate(runs)
    shares = {(i, s.device): s.billed_j for i, bill in found.bills.items() for s in bill.shares}
    for stretch in found.stretches:
        parts = sum(shares[i, stretch.device] for i in stretch.run_ids)
        assert parts + stretch.unattributed_j + stretch.elsewhere_j == stretch.energy_j
        assert min(parts, stretch.unattributed_j, stretch.elsewhere_j) >= 0


@given(machines, readers, st.randoms(use_true_random=False))
def test_the_order_of_runs_changes_nothing(machine, table, random):
    runs = machine_runs(machine, table)
    mixed = list(runs)
    random.shuffle(mixed)
    assert {i: b.readings for i, b in allocate(mixed).bills.items()} == {
        i: b.readings for i, b in allocate(runs).bills.items()
    }


@given(st.lists(windows, min_size=1, max_size=5), st.lists(windows, min_size=1, max_size=5))
def test_a_bill_is_never_more_than_what_was_read(whole, parts):
    runs = [run(f"w{i}", w, wall(100 * (w[1] - w[0]))) for i, w in enumerate(whole)]
    runs += [run(f"g{i}", w, gpu(60 * (w[1] - w[0]))) for i, w in enumerate(parts)]
    for one in runs:
        assert billed(runs)[one.run_id] <= float(one.energy[0].energy_j) + 1e-6
    merged = sorted({t for w in (*whole, *parts) for t in w})
    true = 0
    for a, b in pairwise(merged):
        covers = [any(s <= a and b <= e for s, e in some) for some in (whole, parts)]
        true += (b - a) * (100 if covers[0] else 60 if covers[1] else 0)
    assert sum(billed(runs).values()) == pytest.approx(true, abs=1e-4)


def test_many_runs_inside_a_wall_take_seconds_not_minutes():
    runs = [run("w", (0, 2000), wall(2_000_000))]
    runs += [replace(run(f"g{i}", (i, i + 1), gpu(300, f"GPU-{i % 8}")), step="s") for i in range(2000)]
    assert billed(runs)["w"] == 2_000_000 - 2000 * 300
