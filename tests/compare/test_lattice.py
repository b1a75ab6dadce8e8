"""Lattices: Shapley values, interaction, main effects."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from carbonlens.compare.from_runs import study_from_runs
from carbonlens.compare.lattice import interaction_weights, is_lattice, shapley_weights
from carbonlens.compare.study import compare_study
from carbonlens.domain.factor import Vector
from carbonlens.domain.run import Quality
from carbonlens.domain.study import Gate, Step, Study
from tests.compare.study_runs import run, vector

H100 = {"": 184, "P": 199, "L": 224, "PL": 203, "B": 60, "BP": 32.9, "BL": 44.0, "BPL": 32.6}
"""Joules per 1000 images of ResNet-50 on an H100, measured: channels-last and compile, with bf16."""
SHAPLEY_2 = {"": 1000, "P": 700, "Q": 500, "B": 600, "PQ": 380, "PB": 430, "QB": 320, "PQB": 250}
SHAPLEY_3 = {"": 200, "X": 200, "Y": 120, "XY": 90}


def lattice_runs(energy, n_rounds=1, spread=0.0, u_relative=0.0):
    return [
        run(
            "+".join(cell) or "baseline",
            e * (1 + spread * ((i * 7 + len(cell)) % 3 - 1)),
            repeat=i,
            on=tuple(cell),
            u_relative=u_relative,
        )
        for cell, e in energy.items()
        for i in range(1, n_rounds + 1)
    ]


def compared(energy, with_vector=None, **rounds):
    runs = lattice_runs(energy, **rounds)
    return compare_study(study_from_runs(runs), runs, with_vector or Vector(), {})


@pytest.mark.parametrize(
    ("energy", "values", "total", "interaction"),
    [
        (SHAPLEY_2, {"P": 515 / 3, "Q": 980 / 3, "B": 755 / 3}, 750, 450),
        (SHAPLEY_3, {"X": 15, "Y": 95}, 110, -30),
    ],
    ids=["attr/shapley-2-full-lattice-3", "attr/shapley-3-enabler"],
)
def test_golden_shapley(energy, values, total, interaction):
    result = compared(energy)
    assert result.mode == "lattice"
    got = {s.step: s.attribution.energy_j.value for s in result.steps}
    assert got == pytest.approx(values, rel=1e-9)
    assert result.total.energy_j.value == pytest.approx(total, rel=1e-9)
    assert result.interaction_j.value == pytest.approx(interaction, rel=1e-9)


def test_shapley_has_an_interval_by_rounds_in_all_currencies():
    result = compared(SHAPLEY_2, vector(), n_rounds=5, spread=0.01, u_relative=0.05)
    for step in result.steps:
        for estimate in (step.attribution.energy_j, step.attribution.emissions_location_kg):
            assert estimate.low < estimate.value < estimate.high
    kg = math.fsum(s.attribution.emissions_location_kg.value for s in result.steps)
    assert kg == result.total.emissions_location_kg.value
    assert [s.verdict for s in result.steps] == ["better"] * 3
    assert [s.status for s in result.steps] == ["accepted"] * 3
    assert [s.on for s in result.steps] == [("P",), ("Q",), ("B",)]


def test_the_single_cell_is_what_a_step_shows_of_itself():
    result = compared(SHAPLEY_2, n_rounds=5)
    by_name = {s.step: s for s in result.steps}
    assert by_name["P"].metrics.energy_per_unit_j.value == 700
    assert by_name["P"].savings.energy_j.value == 300
    assert by_name["P"].vs_baseline.ratio.value == pytest.approx(0.7)
    ratios = [(700, 1000), (380, 500), (430, 600), (250, 320)]
    expected = math.exp(sum(math.log(a / b) for a, b in ratios) / 4)
    assert by_name["P"].vs_previous.ratio.value == pytest.approx(expected)


def test_a_partial_lattice_has_no_shapley_value():
    """golden.json attr/shapley-4-partial-lattice, which is never called Shapley."""
    result = compared({"": 1000, "P": 700, "Q": 500, "PQ": 380, "PQB": 250})
    assert result.attribution_method == "order_mean"
    mean = {s.step: s.attribution.energy_j.value for s in result.steps}
    assert mean == pytest.approx({"P": 210, "Q": 410, "B": 130})
    ranges = {s.step: (s.order_range.low_j, s.order_range.high_j) for s in result.steps}
    assert ranges == {"P": (120, 300), "Q": (320, 500), "B": (130, 130)}
    assert (result.orders.measured, result.orders.possible) == (2, 6)
    assert result.total.energy_j.value == 750
    assert result.interaction_j is None
    assert {s.step: s.metrics is None for s in result.steps} == {"P": False, "Q": False, "B": True}
    assert any(f.code == "CL413" and "5 of 8" in f.message for f in result.findings)


def test_a_step_whose_ratio_and_joules_disagree_is_said():
    result = compared(H100, n_rounds=6, spread=0.003, u_relative=1e-9)
    layout = next(s for s in result.steps if s.step == "L")
    assert layout.verdict == "better"
    assert layout.attribution.energy_j.high < 0
    assert [f.subject for f in result.findings if f.code == "CL444"] == ["L"]
    # The measured research notes: alone it costs, and the singles together hide 82 J.
    assert layout.savings.energy_j.value == pytest.approx(-40, abs=1)
    assert result.interaction_j.value == pytest.approx(-82, abs=1.5)
    assert layout.order_range.low_j < 0 < layout.order_range.high_j
    assert [s.joules_say for s in result.steps] == [None, "costs", None]


def test_a_lattice_without_its_full_set_has_no_total():
    result = compared({"": 1000, "P": 700, "Q": 500})
    assert (result.total, result.final_amounts, result.break_even) == (None, None, ())
    assert any("no total" in f.message for f in result.findings)
    # P and Q together were not measured, so nothing is known of either on top of the other.
    assert [s.leave_one_out for s in result.steps] == [None, None]


def test_what_is_a_lattice():
    def study(*steps):
        return Study(name="t", baseline="base", steps=steps, unit="image")

    a, b, ab = (Step(name="+".join(s), on=tuple(s)) for s in ("a", "b", "ab"))
    assert is_lattice(study(a, b), frozenset())
    assert is_lattice(study(a, b, ab), frozenset())
    assert not is_lattice(study(a, ab), frozenset())
    assert not is_lattice(study(a), frozenset())
    assert not is_lattice(study(a, Step(name="b")), frozenset())
    assert not is_lattice(study(a, Step(name="b", on=("b",), measured_on="base")), frozenset())
    # Against another baseline than the empty set these are alternatives, not combinations.
    assert not is_lattice(study(b, Step(name="base", on=())), frozenset({"a"}))


cells = st.lists(st.floats(1.0, 1000.0), min_size=8, max_size=8)
SETS = ("", "P", "Q", "B", "PQ", "PB", "QB", "PQB")


@settings(max_examples=30, deadline=None)
@given(energies=cells)
def test_shapley_is_efficient(energies):
    result = compared(dict(zip(SETS, energies, strict=True)))
    parts = math.fsum(s.attribution.energy_j.value for s in result.steps)
    assert parts == result.total.energy_j.value
    assert parts == pytest.approx(energies[0] - energies[-1], abs=1e-9)


@settings(max_examples=30, deadline=None)
@given(e0=st.floats(1.0, 1000.0), p=st.floats(0.1, 1.0), q=st.floats(0.1, 1.0))
def test_shapley_is_symmetric_and_gives_a_dummy_nothing(e0, p, q):
    alike = {"": e0, "P": e0 * p, "Q": e0 * p, "PQ": e0 * p * q}
    values = [s.attribution.energy_j.value for s in compared(alike).steps]
    assert values[0] == pytest.approx(values[1], abs=1e-9)
    dummy = {"": e0, "P": e0 * p, "Q": e0, "PQ": e0 * p}
    values = [s.attribution.energy_j.value for s in compared(dummy).steps]
    assert values[1] == pytest.approx(0.0, abs=1e-9)


@pytest.mark.parametrize("n", [1, 2, 4])
def test_weights_are_contrasts(n):
    players = "abcd"[:n]
    for player in players:
        weights = shapley_weights(player, players)
        assert math.fsum(w for w, _ in weights) == pytest.approx(0.0, abs=1e-12)
        assert math.fsum(w for w, _ in weights if w > 0) == pytest.approx(1.0)
    assert math.fsum(w for w, _ in interaction_weights(players)) == pytest.approx(0.0)


def failing(runs, cell):
    """Return the runs with the last round of a cell failed."""
    last = max(r.repeat for r in runs)
    return [
        replace(r, status="failed", error="E: boom") if r.on == tuple(cell) and r.repeat == last else r
        for r in runs
    ]


def test_an_optimization_that_raised_is_never_adopted():
    runs = failing(lattice_runs(SHAPLEY_2, n_rounds=7), "P")
    result = compare_study(study_from_runs(runs), runs, Vector(), {})
    by_name = {s.step: s for s in result.steps}
    assert (by_name["P"].status, by_name["P"].error) == ("failed", "E: boom")
    assert by_name["P"].would_have.energy_j.value == 300
    assert [by_name[p].status for p in "QB"] == ["accepted"] * 2


def test_a_combination_that_raised_is_not_adopted_with_any_of_its_parts():
    runs = failing(lattice_runs(SHAPLEY_2, n_rounds=7), "PQ")
    steps = {s.step: s for s in compare_study(study_from_runs(runs), runs, Vector(), {}).steps}
    assert [(steps[p].decision, steps[p].status) for p in "PQ"] == [("undetermined", "undetermined")] * 2
    assert steps["P"].reasons[0] == "the combination P+Q failed: E: boom"
    assert steps["B"].decision == "adopt"


def test_a_full_set_that_raised_has_no_total():
    runs = failing(lattice_runs(SHAPLEY_2, n_rounds=7), "PQB")
    result = compare_study(study_from_runs(runs), runs, Vector(), {})
    assert (result.total, result.total_effect) == (None, None)
    assert all(s.decision != "adopt" for s in result.steps)


def test_the_effect_of_a_lattice_is_that_of_its_full_set():
    assert compared(SHAPLEY_2, n_rounds=5).total_effect.ratio.value == pytest.approx(0.25)


def effort(cell, joules):
    return run("+".join(cell), joules, role="effort", on=tuple(cell), units=None)


@pytest.mark.parametrize(
    ("efforts", "accepted", "rejected"),
    [
        ({"P": 10.0, "Q": 20.0, "B": 30.0, "PQ": 40.0, "PQB": 55.0}, 115.0, 40.0),
        ({"P": 10.0, "Q": 20.0, "B": 30.0, "PQ": 40.0}, 60.0, 40.0),
        ({"PQB": 55.0}, 55.0, None),
    ],
)
def test_the_effort_is_that_of_the_full_set_and_of_what_is_in_it(efforts, accepted, rejected):
    """What putting all together took comes on top of making each, and replaces none of it."""
    runs = [*lattice_runs(SHAPLEY_2, n_rounds=5), *(effort(c, e) for c, e in efforts.items())]
    result = compare_study(study_from_runs(runs), runs, Vector(), {})
    assert result.accepted_effort.energy_j.value == pytest.approx(accepted)
    others = result.rejected_effort
    assert (None if others is None else others.energy_j.value) == (rejected and pytest.approx(rejected))
    assert not any(f.code == "CL419" for f in result.findings)


def named_after_what_it_adds(**study):
    """Return a lattice whose full set is named as its last optimization, with work on that set."""
    sets = {"baseline": (), "a": ("a",), "b": ("b",), "c": ("a", "b", "c")}
    levels = {"baseline": 100.0, "a": 90.0, "b": 80.0, "c": 60.0}
    runs = [run(n, levels[n], repeat=i, on=on) for n, on in sets.items() for i in range(1, 6)]
    work = run("c", 1000.0, role="effort", on=sets["c"], units=None)
    made = study_from_runs([*runs, work])
    return compare_study(replace(made, **study), [*runs, work], Vector(), {})


def test_the_work_on_a_full_set_named_as_an_optimization_is_counted_once():
    result = named_after_what_it_adds()
    assert result.mode == "lattice"
    assert result.accepted_effort.energy_j.value == 1000.0
    assert result.rejected_effort is None


def parts_of(energies):
    table = dict(zip(SETS, energies, strict=True))
    return [s.attribution.energy_j.value for s in compared(table).steps]


@settings(max_examples=20, deadline=None)
@given(one=cells, other=cells)
def test_shapley_is_additive(one, other):
    """The values of a sum of two games are the sums of their values (Shapley 1953)."""
    both = parts_of([a + b for a, b in zip(one, other, strict=True)])
    apart = [a + b for a, b in zip(parts_of(one), parts_of(other), strict=True)]
    assert both == pytest.approx(apart, abs=1e-8)


@settings(max_examples=20, deadline=None)
@given(energies=cells, scale=st.sampled_from([1e-3, 3.6e6]))
def test_shapley_is_proportional_to_the_unit_of_energy(energies, scale):
    scaled = parts_of([e * scale for e in energies])
    assert scaled == pytest.approx([v * scale for v in parts_of(energies)], rel=1e-9, abs=1e-9 * scale)


@settings(max_examples=20, deadline=None)
@given(energies=cells)
def test_shapley_does_not_depend_on_names(energies):
    table = dict(zip(SETS, energies, strict=True))
    renamed = {"".join(sorted(k.replace("P", "Z"))): v for k, v in table.items()}
    plain = {s.step: s.attribution.energy_j.value for s in compared(table).steps}
    other = {s.step: s.attribution.energy_j.value for s in compared(renamed).steps}
    assert other == pytest.approx({k.replace("P", "Z"): v for k, v in plain.items()}, abs=1e-9)


def with_quality(share_of, **study):
    runs = [
        replace(r, quality=(Quality(name="accuracy", value=share_of(r.on), n=2000),))
        for r in lattice_runs({"": 200.0, "X": 160.0, "Y": 120.0, "XY": 90.0}, n_rounds=6, spread=0.01)
    ]
    made = replace(
        study_from_runs(runs),
        gates=(Gate(name="g", metric="accuracy", kind="max_loss", limit=0.03),),
        **study,
    )
    effort = run("X+Y", 4000.0, repeat=None, units=None, role="effort", on=("X", "Y"))
    return compare_study(made, [*runs, effort], Vector(), {})


def test_a_full_set_that_fails_a_gate_is_not_claimed():
    """Each optimization alone keeps the accuracy; both together halve it."""
    result = with_quality(lambda on: 0.50 if len(on) == 2 else 0.95)
    assert [g.outcome for s in result.steps for g in s.gates] == ["pass", "pass"]
    assert [g.outcome for g in result.total_gates] == ["fail"]
    assert result.total_decision == "reject"
    assert {s.decision for s in result.steps} == {"undetermined"}
    assert all("gate g fails" in s.reasons[0] for s in result.steps)
    assert result.break_even == ()
    assert any(f.code == "CL446" and "gate g fails" in f.message for f in result.findings)


def test_a_full_set_that_passes_is_adopted():
    result = with_quality(lambda _: 0.95)
    assert (result.total_decision, {s.decision for s in result.steps}) == ("adopt", {"adopt"})
    assert result.break_even != ()
    assert not {"CL446", "CL447"} & {f.code for f in result.findings}


def test_a_rejected_step_within_the_total_is_told():
    result = compared({"": 200.0, "X": 210.0, "Y": 120.0, "XY": 126.0}, n_rounds=6, spread=0.01)
    assert {s.step: s.decision for s in result.steps} == {"X": "reject", "Y": "adopt"}
    (found,) = [f for f in result.findings if f.code == "CL447"]
    assert "holds X, which is rejected" in found.message
