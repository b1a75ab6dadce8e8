"""Arms that may not stand beside each other are refused with a mend."""

from __future__ import annotations

import pytest

from carbonlens.compare.study import compare_study
from carbonlens.domain.factor import Vector
from carbonlens.domain.money import Money
from carbonlens.domain.run import Conditions
from carbonlens.domain.study import Step, Study
from carbonlens.errors import IncomparableError
from tests.compare.study_runs import rounds, run

STUDY = Study(name="t", baseline="a", steps=(Step(name="b"),), unit="image")
FIVE = [1.0, 1.1, 0.9, 1.05, 0.95]


def compared(a=None, b=None):
    runs = [*rounds("a", FIVE, **(a or {})), *rounds("b", FIVE, **(b or {}))]
    return compare_study(STUDY, runs, Vector(), {})


def euros(currency="EUR"):
    from decimal import Decimal

    return Money(Decimal("0.10"), currency)


@pytest.mark.parametrize(
    ("field", "a", "b"),
    [
        ("unit", {"unit": "image"}, {"unit": "token"}),
        ("boundary", {"boundary": "it"}, {"boundary": "device"}),
        ("boundary", {"boundary": "it"}, {"boundary": None}),
        ("workload", {"workload": "digits"}, {"workload": "letters"}),
        ("hardware", {"hardware": "CPU X"}, {"hardware": "CPU Y"}),
        ("host", {"host_id": "h1"}, {"host_id": "h2"}),
        ("currency", {"cost": euros()}, {"cost": euros("USD")}),
    ],
)
def test_differing_arms_are_refused(field, a, b):
    with pytest.raises(IncomparableError, match=field) as caught:
        compared(a, b)
    assert caught.value.mend
    assert caught.value.exit_code == 2


@pytest.mark.parametrize("field", ["unit", "boundary", "workload", "hardware", "host"])
def test_what_no_arm_states_is_a_finding(field):
    key = "host_id" if field == "host" else field
    result = compared({key: None}, {key: None})
    assert [f.subject for f in result.findings if f.code == "CL407"] == [field]


def test_what_some_arms_state_is_a_warning():
    result = compared({"hardware": None})
    assert [(f.subject, f.severity) for f in result.findings if f.code == "CL420"] == [
        ("hardware", "warning")
    ]


def test_several_hosts_are_fine_when_all_arms_ran_on_them():
    hosts = ["h1", "h1", "h2", "h2", "h2"]
    runs = [
        run(step, e, repeat=i, host_id=h)
        for step in ("a", "b")
        for i, (e, h) in enumerate(zip(FIVE, hosts, strict=True), start=1)
    ]
    assert compare_study(STUDY, runs, Vector(), {}).steps[0].vs_previous.n_rounds == 5


def test_other_components_are_said():
    from msgspec.structs import replace

    runs = rounds("a", FIVE)
    runs += [replace(r, energy=(replace(r.energy[0], component="gpu"),)) for r in rounds("b", FIVE)]
    result = compare_study(STUDY, runs, Vector(), {})
    assert any(f.code == "CL410" and "cpu; gpu" in f.message for f in result.findings)


def test_noise_that_modelled_energy_does_not_count_is_reported_and_nothing_dropped():
    noisy = Conditions(wall_s=10.0, cpu_s=9.0, load_1m=4.2, steal_s=2.0)
    result = compared(
        {"conditions": noisy}, {"conditions": Conditions(wall_s=10.0, cpu_s=9.0, load_1m=1.1, steal_s=0.1)}
    )
    by_code = {f.code: f.message for f in result.findings}
    assert "5 of 10 runs (up to 20 %" in by_code["CL408"]
    assert "load up to 4.2" in by_code["CL409"]
    assert result.steps[0].vs_previous.n_rounds == 5


def test_without_cpu_time_load_says_nothing():
    result = compared({"conditions": Conditions(wall_s=10.0, load_1m=40.0)})
    assert not any(f.code == "CL409" for f in result.findings)


def with_idle(step, *conventions):
    from msgspec.structs import replace

    runs = rounds(step, FIVE)
    return [
        replace(r, energy=(replace(r.energy[0], idle=conventions[i % len(conventions)]),))
        for i, r in enumerate(runs)
    ]


@pytest.mark.parametrize(
    ("a", "b"),
    [(("reserved",), ("dynamic",)), ((None,), ("dynamic",)), (("reserved",), ("reserved", "dynamic"))],
)
def test_mixed_idle_conventions_are_refused(a, b):
    with pytest.raises(IncomparableError, match="leaves out idle power") as caught:
        compare_study(STUDY, [*with_idle("a", *a), *with_idle("b", *b)], Vector(), {})
    assert "one idle convention" in caught.value.mend


def test_parts_of_a_run_with_mixed_idle_conventions_are_refused():
    from msgspec.structs import replace

    def mixed(step):
        return [
            replace(r, energy=(replace(r.energy[0], idle="dynamic"), replace(r.energy[0], component="gpu")))
            for r in rounds(step, FIVE)
        ]

    with pytest.raises(IncomparableError, match="idle power"):
        compare_study(STUDY, [*mixed("a"), *mixed("b")], Vector(), {})


@pytest.mark.parametrize("stated", ["reserved", None])
def test_energy_with_its_idle_share_needs_no_word(stated):
    result = compare_study(STUDY, [*with_idle("a", "reserved"), *with_idle("b", stated)], Vector(), {})
    assert not any(f.code == "CL436" for f in result.findings)


def test_dynamic_energy_alone_is_compared_and_said():
    result = compare_study(STUDY, [*with_idle("a", "dynamic"), *with_idle("b", "dynamic")], Vector(), {})
    assert [f.severity for f in result.findings if f.code == "CL436"] == ["warning"]


def test_dynamic_energy_stands_beside_where_every_reading_tells_it():
    from decimal import Decimal

    from msgspec.structs import replace

    def told(step, *parts):
        return [
            replace(r, energy=(replace(r.energy[0], dynamic_j=parts[i % len(parts)]),))
            for i, r in enumerate(rounds(step, FIVE))
        ]

    half = Decimal("0.5")
    result = compare_study(STUDY, [*told("a", half), *told("b", half, None)], Vector(), {})
    assert result.baseline_metrics.dynamic_per_unit_j.value == pytest.approx(0.5)
    assert result.steps[0].metrics.dynamic_per_unit_j.value is None
