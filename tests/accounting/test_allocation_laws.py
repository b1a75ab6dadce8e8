"""Laws of dividing devices, held against an independent and slower account."""

from decimal import Decimal
from fractions import Fraction
from itertools import combinations, pairwise

from hypothesis import example, given, settings
from hypothesis import strategies as st

from carbonlens.accounting.allocation import allocate
from tests.accounting.device_runs import gpu, run

MICRO = Decimal("0.000001")

joules = st.integers(0, 10**10).map(lambda n: n * MICRO)
shares = st.none() | st.sampled_from([0.0, 0.25, 0.3, 0.5, 0.9, 1.0])
windows = st.tuples(st.integers(0, 40), st.integers(1, 40)).map(lambda w: (w[0], w[0] + w[1]))
rows = st.tuples(windows, joules, shares, st.sampled_from(["GPU-a", "GPU-b"]), st.sampled_from([None, 0, 1]))
tables = st.lists(rows, min_size=1, max_size=9)
# CPU seconds divide some devices: none at all often, and such as leave a remainder when divided.
cpu_seconds = st.sampled_from([0.0, 0.0, 0.7, 1.1, 7.77, 30.011])
processor_rows = st.tuples(windows, joules, cpu_seconds)
processor_tables = st.lists(processor_rows, min_size=1, max_size=9)
idle = ((0, 81), MICRO * 10**9, 0.0)


def runs_of(table):
    return [
        run(
            f"r{i}",
            window,
            gpu(energy, device, share=share),
            job_id=None if rank is None else "job",
            rank=rank,
        )
        for i, (window, energy, share, device, rank) in enumerate(table)
    ]


def bills_of(runs):
    return {i: b.readings[0].energy_j for i, b in allocate(runs).bills.items()}


def plain_account(runs):
    """Return the parts of runs and of nobody on one device, before bounds: segment by segment, exact."""
    claims = {
        r.run_id: (r, Fraction(r.energy[0].energy_j), r.end_us - r.start_us, r.energy[0].own_share)
        for r in runs
    }
    taken = dict.fromkeys(claims, Fraction(0))
    nobody = Fraction(0)
    for start, end in pairwise(sorted({t for r in runs for t in (r.start_us, r.end_us)})):
        here = [c for c in claims.values() if c[0].start_us <= start and c[0].end_us >= end]
        if not here:
            continue
        weight = sum(Fraction(1, length) for _, _, length, _ in here)
        power = sum(Fraction(1, length) * energy / length for _, energy, length, _ in here) / weight
        device = power * (end - start)
        known = {c[0].run_id: Fraction(str(c[3])) for c in here if c[3] is not None}
        over = max(Fraction(1), sum(known.values()))
        for run_id, share in known.items():
            taken[run_id] += device * share / over
        rest = device * (1 - sum(known.values()) / over)
        silent = [c[0] for c in here if c[3] is None]
        heads = {(r.job_id or r.run_id) for r in silent}
        for r in silent:
            mates = [x for x in silent if (x.job_id or x.run_id) == (r.job_id or r.run_id)]
            taken[r.run_id] += rest / len(heads) / len(mates)
        nobody += 0 if silent else rest
    return taken, nobody


def overlap(a, b):
    return a.start_us < b.end_us and b.start_us < a.end_us


def total(runs):
    return sum(r.energy[0].energy_j for r in runs)


def covers_all(runs, start, end):
    for r in sorted(runs, key=lambda r: r.start_us):
        if r.start_us > start:
            return False
        start = max(start, r.end_us)
    return start >= end


def linked(runs, first):
    """Return the runs whose windows hang together with the first's."""
    found = [first]
    for r in found:
        found += [x for x in runs if x not in found and overlap(x, r)]
    return found


@given(tables)
def test_billed_and_unattributed_sum_to_the_device_exactly(table):
    runs = runs_of(table)
    found = allocate(runs)
    bills = bills_of(runs)
    for stretch in found.stretches:
        parts = sum(bills[i] for i in stretch.run_ids)
        assert parts + stretch.unattributed_j == stretch.energy_j
        assert stretch.unattributed_j >= 0
    assert all(b >= 0 for b in bills.values())
    assert sum(bills.values()) <= sum(r.energy[0].energy_j for r in runs)


@given(processor_tables)
@example([((n, 10 + 3 * n), MICRO * 10**8, cpu_s) for n, cpu_s in enumerate((0.7, 1.1, 7.77, 30.011))])
def test_a_processor_is_conserved_where_some_runs_used_none_of_it(table):
    runs = [
        run(f"r{i}", window, gpu(energy, "cpu-0", component="cpu"), cpu_s=cpu_s)
        for i, (window, energy, cpu_s) in enumerate([idle, idle, *table])
    ]
    bills = bills_of(runs)
    for stretch in allocate(runs).stretches:
        assert sum(bills[i] for i in stretch.run_ids) + stretch.unattributed_j == stretch.energy_j


@given(st.lists(rows, min_size=1, max_size=6))
def test_a_device_draws_what_readings_allow(table):
    """No more than any runs that cover its stretch read, no less than any that do not overlap."""
    runs = runs_of(table)
    for stretch in allocate(runs).stretches:
        mine = [r for r in runs if r.run_id in stretch.run_ids]
        sets = [c for n in range(1, len(mine) + 1) for c in combinations(mine, n)]
        span = (stretch.start_us, stretch.end_us)
        covers = [total(c) for c in sets if covers_all(c, *span)]
        apart = [total(c) for c in sets if not any(overlap(a, b) for a, b in combinations(c, 2))]
        least, most = sorted((max(apart), min(covers)))
        assert least - MICRO < stretch.energy_j <= most


@given(tables)
def test_parts_are_those_of_the_plain_account(table):
    runs = runs_of(table)
    bills = bills_of(runs)
    for stretch in allocate(runs).stretches:
        mine = [r for r in runs if r.run_id in stretch.run_ids]
        assert {r.run_id for r in linked(mine, mine[0])} == set(stretch.run_ids)
        taken, nobody = plain_account(mine)
        drawn = sum(taken.values()) + nobody
        # Bounds scale a stretch as a whole, so proportions are the plain account's.
        scale = Fraction(stretch.energy_j) / drawn if drawn else Fraction(0)
        for r in mine:
            assert abs(Fraction(bills[r.run_id]) - taken[r.run_id] * scale) <= 2 * Fraction(MICRO)
        assert abs(Fraction(stretch.unattributed_j) - nobody * scale) <= 2 * Fraction(MICRO)


@given(tables, st.randoms(use_true_random=False))
def test_the_order_of_runs_changes_nothing(table, random):
    runs = runs_of(table)
    mixed = list(runs)
    random.shuffle(mixed)
    assert bills_of(mixed) == bills_of(runs)
    assert allocate(mixed).stretches == allocate(runs).stretches


@given(tables, windows, joules)
def test_a_run_on_another_device_changes_nothing(table, window, energy):
    runs = runs_of(table)
    more = bills_of([*runs, run("other", window, gpu(energy, "GPU-c"))])
    assert more.pop("other") == energy
    assert more == bills_of(runs)


@given(windows, joules)
def test_two_identical_runs_get_half_each(window, energy):
    bills = bills_of([run("a", window, gpu(energy)), run("b", window, gpu(energy))])
    assert sum(bills.values()) == energy
    assert abs(bills["a"] - bills["b"]) <= MICRO


@given(st.lists(windows, min_size=1, max_size=9))
def test_of_a_constant_power_the_union_of_the_windows_is_billed(spans):
    """Where readings are exact, the runs together are billed what the device drew while any ran."""
    runs = [run(f"r{i}", (a, b), gpu(250 * (b - a))) for i, (a, b) in enumerate(spans)]
    seconds = {s for a, b in spans for s in range(a, b)}
    assert sum(bills_of(runs).values()) == 250 * len(seconds)


@given(st.lists(st.integers(0, 10**9), min_size=12, max_size=12), st.lists(windows, max_size=5))
@settings(max_examples=60)
def test_of_any_power_a_run_over_all_of_it_fixes_the_total(profile, spans):
    """Readings are exact integrals of one profile; a run that saw the whole stretch fixes its energy."""
    cut = [(a % 12, max(a % 12 + 1, min(b, 12))) for a, b in spans]
    exact = [run(f"r{i}", (a, b), gpu(sum(profile[a:b]) * MICRO)) for i, (a, b) in enumerate(cut)]
    bills = bills_of([run("whole", (0, 12), gpu(sum(profile) * MICRO)), *exact])
    assert sum(bills.values()) == sum(profile) * MICRO
