"""What is one thing under several names: a machine, a process, a whole with two meters."""

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carbonlens.accounting.allocation import allocate
from carbonlens.accounting.allocation_totals import totals
from carbonlens.domain.run import Reading
from tests.accounting.device_runs import gpu, run

UUID = "GPU-3b9c6f0e-7d41-4a55-9a6e-0f1d2c3b4a59"
OTHER_UUID = "GPU-00000000-7d41-4a55-9a6e-0f1d2c3b4a59"


def cpu_time(joules, component="cpu", **fields):
    given = {"boundary": "it", "grade": "D", "method": "model", "u_by_source_j": {"cpu_model:f": 1.0}}
    return Reading(component=component, energy_j=Decimal(str(joules)), **{**given, **fields})


def whole(joules, component, device, method, grade="A"):
    boundary = "it" if component == "wall" else "device"
    fields = {"component": component, "method": method, "grade": grade, "boundary": boundary}
    return gpu(joules, device, **fields)


def billed(runs):
    bills = allocate(runs).bills
    return {i: float(sum(r.energy_j for r in b.readings)) for i, b in bills.items()}


def codes(runs):
    return [f.code for f in allocate(runs).findings]


@pytest.mark.parametrize("host", [None, "container-b"], ids=["one host", "two containers"])
def test_a_gpu_read_from_two_containers_is_billed_once(host):
    second = {} if host is None else {"host_id": host}
    runs = [run("a", (0, 100), gpu(20_000, UUID)), run("b", (0, 100), gpu(20_000, UUID), **second)]
    assert sum(billed(runs).values()) == 20_000
    assert totals(runs, allocate(runs)).billed.value == 20_000
    assert codes(runs) == ["CL320"]


def test_containers_that_share_a_gpu_share_the_rest_of_the_machine_too():
    def both(name, window, **more):
        package = gpu(5000, "package-0", component="cpu")
        return run(name, window, gpu(20_000, UUID), package, **more)

    runs = [both("a", (0, 100)), both("b", (0, 100), host_id="x"), both("c", (0, 100), host_id="y")]
    assert sum(billed(runs).values()) == 25_000


@pytest.mark.parametrize("device", ["0", "GPU-0", "GPU-a", "cpu", "package-0", "VDD_IN"])
def test_names_that_every_machine_has_keep_two_machines_apart(device):
    runs = [run("a", (0, 100), gpu(20_000, device)), run("b", (0, 100), gpu(20_000, device), host_id="k")]
    assert sum(billed(runs).values()) == 40_000


def test_a_gpu_that_was_moved_to_another_machine_joins_nothing():
    package = gpu(5000, "package-0", component="cpu")
    runs = [
        run("a", (0, 100), gpu(20_000, UUID), package),
        run("b", (100, 200), gpu(20_000, UUID), package, host_id="k"),
        run("c", (0, 100), gpu(1000, OTHER_UUID), package, host_id="k"),
    ]
    assert sum(billed(runs).values()) == 20_000 + 20_000 + 1000 + 3 * 5000


@pytest.mark.parametrize("component", ["cpu", "ram"])
@pytest.mark.parametrize("count", [2, 4, 9])
def test_windows_of_one_process_hold_its_time_once(component, count):
    runs = [run(f"t{k}", (0, 10), cpu_time(40, component), process="p", cpu_s=2.0) for k in range(count)]
    assert sum(billed(runs).values()) == pytest.approx(40)
    assert list(billed(runs).values()) == pytest.approx([40 / count] * count, abs=1e-5)
    assert all(s.basis == "equal" for b in allocate(runs).bills.values() for s in b.shares)
    assert codes(runs) == ["CL320"]


def test_windows_of_one_process_one_after_the_other_and_of_two_processes_stay_as_they_are():
    follow = [run(f"t{k}", (10 * k, 10 * k + 10), cpu_time(40), process="p") for k in range(3)]
    assert billed(follow) == {"t0": 40, "t1": 40, "t2": 40}
    apart = [run(f"t{k}", (0, 10), cpu_time(40), process=f"p{k}") for k in range(3)]
    assert billed(apart) == {"t0": 40, "t1": 40, "t2": 40}
    unsaid = [run(f"t{k}", (0, 10), cpu_time(40)) for k in range(3)]
    assert billed(unsaid) == {"t0": 40, "t1": 40, "t2": 40}


def test_windows_inside_another_one_are_divided_inside_it():
    outer = run("outer", (0, 10), cpu_time(40), process="p")
    inside = [run(f"t{k}", (0, 10), cpu_time(40), process="p", parent_run_id="outer") for k in range(2)]
    runs = [outer, *inside]
    assert billed(runs) == {"outer": 40, "t0": 20, "t1": 20}
    assert totals(runs, allocate(runs)).billed.value == 40


def instance(joules, device=UUID):
    return gpu(joules, device, divided=True, grade="D")


def test_a_share_of_a_gpu_and_a_run_that_read_all_of_it_are_billed_its_energy_once():
    runs = [run("all", (0, 100), gpu(20_000, UUID)), run("mig", (0, 100), instance(5000))]
    assert billed(runs) == {"all": 15_000, "mig": 5000}
    assert codes(runs) == ["CL325"]
    assert totals(runs, allocate(runs)).billed.value == 20_000
    half = [run("all", (0, 100), gpu(20_000, UUID)), run("mig", (50, 150), instance(5000))]
    assert billed(half) == {"all": 17_500, "mig": 5000}
    apart = [run("all", (0, 100), gpu(20_000, UUID)), run("mig", (0, 100), instance(5000, OTHER_UUID))]
    assert billed(apart) == {"all": 20_000, "mig": 5000}


def test_instances_that_read_more_than_their_gpu_are_a_contradiction_that_is_said():
    runs = [run("all", (0, 100), gpu(4000, UUID)), run("mig", (0, 100), instance(5000))]
    assert billed(runs) == {"all": 0, "mig": 5000}
    assert codes(runs) == ["CL327"]


def test_a_wall_holds_a_gpu_and_the_share_of_it_once():
    runs = [
        run("wall", (0, 100), whole(50_000, "wall", "plug", "meter")),
        run("all", (0, 100), gpu(20_000, UUID)),
        run("mig", (0, 100), instance(5000)),
    ]
    assert billed(runs) == {"wall": 30_000, "all": 15_000, "mig": 5000}


windows = st.tuples(st.integers(0, 11), st.integers(1, 12)).map(lambda w: (w[0], min(w[0] + w[1], 12)))


@given(power=st.lists(st.integers(0, 10**6), min_size=12, max_size=12), table=st.lists(windows, max_size=6))
def test_whatever_the_windows_a_process_is_billed_no_more_than_it_used(power, table):
    """One window holds all of the process; others lie in it in any way."""
    table = [(0, 12), *table]
    runs = [run(f"t{k}", w, cpu_time(sum(power[w[0] : w[1]])), process="p") for k, w in enumerate(table)]
    assert sum(b for b in billed(runs).values()) == pytest.approx(sum(power), abs=1e-4)


@pytest.mark.parametrize("component", ["wall", "total"])
@pytest.mark.parametrize("order", [1, -1])
def test_two_meters_of_one_whole_in_one_run_are_billed_once_the_better_one(component, order):
    readings = [
        whole(30_000, component, "plug", "external meter"),
        whole(32_000, component, "controller", "IPMI", grade="C"),
    ][::order]
    a = run("a", (0, 100), *readings)
    assert billed([a]) == {"a": 30_000}
    assert codes([a]) == ["CL328"]
    b = run("b", (0, 100), *readings)
    assert sum(billed([a, b]).values()) == 30_000


def test_rails_of_one_meter_and_modules_with_ids_of_their_own_add_up():
    feeds = run("f", (0, 10), whole(300, "wall", "feed:1", "meter"), whole(600, "wall", "feed:2", "meter"))
    assert billed([feeds]) == {"f": 900}
    modules = run(
        "m", (0, 10), whole(300, "total", UUID, "counter"), whole(600, "total", OTHER_UUID, "power")
    )
    assert billed([modules]) == {"m": 900}
    assert codes([feeds]) == codes([modules]) == []


@pytest.mark.parametrize("covered_s", [10.0, 50.0, 95.0])
@pytest.mark.parametrize("window", [(0, 100), (0, 60), (40, 100)])
def test_a_run_that_saw_all_of_a_device_fixes_it_whatever_a_partial_one_read(covered_s, window):
    all_of_it = run("b", (0, 100), gpu(20_000))
    length = window[1] - window[0]
    seen = min(covered_s, 0.9 * length)
    partial = run("a", window, gpu(200 * seen, covered_s=seen, state="unbounded"))
    assert sum(billed([all_of_it, partial]).values()) == pytest.approx(20_000)


def test_partial_readings_alone_are_the_lower_bound_that_they_are():
    runs = [
        run("a", (0, 100), gpu(10_000, covered_s=50.0, state="unbounded")),
        run("b", (0, 100), gpu(12_000, covered_s=60.0, state="unbounded")),
    ]
    assert sum(billed(runs).values()) == 12_000


def test_two_rails_and_a_controller_by_another_run_are_one_machine():
    rails = run("a", (0, 100), *(whole(15_000, "wall", f"psu:{k}", "meter") for k in "ab"))
    ipmi = run("b", (0, 100), whole(30_000, "wall", "controller", "IPMI", grade="C"))
    assert sum(billed([rails, ipmi]).values()) == 30_000
    assert billed([rails, ipmi]) == {"a": 15_000, "b": 15_000}
    uneven = run("a", (0, 100), whole(10_000, "wall", "psu:a", "m"), whole(20_000, "wall", "psu:b", "m"))
    assert sum(billed([uneven, ipmi]).values()) == 30_000
    later = run("c", (100, 200), whole(7000, "wall", "controller", "IPMI", grade="C"))
    assert billed([uneven, later]) == {"a": 30_000, "c": 7000}


def test_modules_and_their_sockets_are_one_whole_in_one_run_and_in_two():
    socket = whole(30_000, "total", "Module Power Socket 0", "grace", grade="C")
    module = whole(30_000, "total", UUID, "counter", grade="B")
    assert sum(billed([run("a", (0, 100), socket, module)]).values()) == 30_000
    assert billed([run("a", (0, 100), socket), run("b", (0, 100), module)]) == {"a": 15_000, "b": 15_000}


def test_modules_with_ids_of_their_own_are_never_taken_for_one_another():
    runs = [
        run("a", (0, 100), whole(30_000, "total", UUID, "counter")),
        run("b", (0, 100), whole(20_000, "total", OTHER_UUID, "counter")),
    ]
    assert billed(runs) == {"a": 30_000, "b": 20_000}


def test_windows_of_one_process_at_two_boundaries_do_not_divide_each_other():
    runs = [
        run("it", (0, 10), cpu_time(1000), process="p"),
        run("device", (0, 10), cpu_time(400, boundary="device"), process="p"),
    ]
    assert billed(runs) == {"it": 1000, "device": 400}
