"""Settings of devices: differences are told with numbers, a cap that changed takes the verdict."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from carbonlens.compare.study import compare_study
from carbonlens.domain.factor import Vector
from carbonlens.domain.run import Conditions, DeviceConditions
from carbonlens.domain.study import Step, Study
from tests.compare.study_runs import rounds

STUDY = Study(name="t", baseline="a", steps=(Step(name="b"),), unit="image")
SEVEN = [1.0, 1.01, 0.99, 1.005, 0.995, 1.0, 1.002]
USUAL = {"clock_mhz": 1980.0, "temperature_c": 50.0, "power_cap_w": 700.0}


def compared(**changes):
    """Compare ``a`` with ``b``; a change is a list of one value a round of ``b``, or one for all."""
    found = []
    for step, level in (("a", 1.0), ("b", 0.5)):
        for place, one in enumerate(rounds(step, [x * level for x in SEVEN])):
            mine = (
                {k: v[place] if isinstance(v, list) else v for k, v in changes.items()} if step == "b" else {}
            )
            seen = DeviceConditions(device="GPU-1", **{**USUAL, **mine})
            found.append(replace(one, conditions=Conditions(wall_s=10.0, cpu_s=9.9, devices=(seen,))))
    return compare_study(STUDY, found, Vector(), {})


def told(result, code):
    return [f for f in result.findings if f.code == code]


def test_equal_settings_are_not_worth_a_line():
    result = compared(clock_mhz=1970.0, temperature_c=53.0, power_cap_w=700.4)
    assert result.steps[0].verdict == "better"
    assert told(result, "CL169") == told(result, "CL170") == []


@pytest.mark.parametrize(
    ("change", "numbers", "severity"),
    [
        ({"clock_mhz": 1500.0}, "a 1980, b 1500", "info"),
        ({"temperature_c": 71.0}, "a 50, b 71", "info"),
        ({"power_cap_w": 350.0}, "a 700, b 350", "warning"),
    ],
)
def test_what_differs_between_variants_is_told_with_its_numbers_and_the_verdict_stands(
    change, numbers, severity
):
    result = compared(**change)
    (finding,) = told(result, "CL169")
    assert numbers in finding.message
    assert finding.severity == severity
    assert result.steps[0].verdict == "better"


def test_a_clock_that_swings_by_itself_is_no_difference():
    result = compared(clock_mhz=[1500.0, 2100.0, 1600.0, 2050.0, 1700.0, 2200.0, 1800.0])
    assert told(result, "CL169") == []


@pytest.mark.parametrize(
    "change",
    [
        {"power_cap_w": [700.0] * 4 + [500.0] * 3},
        {"power_cap_w": 700.0, "earlier_power_cap_w": [None] * 6 + [500.0]},
    ],
)
def test_a_cap_that_was_changed_meanwhile_takes_the_verdict_and_says_why(change):
    result = compared(**change)
    step = result.steps[0]
    assert (step.verdict, step.decision) == ("inconclusive", "undetermined")
    assert "unchanged machine" in step.reasons[0]
    (finding,) = told(result, "CL170")
    assert "from 500 to 700 W" in finding.message


def test_runs_that_tell_nothing_of_devices_are_compared_as_before():
    found = [r for s, level in (("a", 1.0), ("b", 0.5)) for r in rounds(s, [x * level for x in SEVEN])]
    result = compare_study(STUDY, found, Vector(), {})
    assert result.steps[0].verdict == "better"
    assert told(result, "CL169") == told(result, "CL170") == []


def on_hosts(settings, places):
    """Compare steps measured on machines that each have a ``package-0`` with settings of its own."""
    found = []
    for step, level in (("a", 1.0), ("b", 0.5)):
        for number, one in enumerate(rounds(step, [x * level for x in [*SEVEN, 1.0]])):
            host = places[step][number % len(places[step])]
            seen = DeviceConditions(device="package-0", **settings[host])
            found.append(replace(one, host_id=host, conditions=Conditions(wall_s=10.0, devices=(seen,))))
    return compare_study(STUDY, found, Vector(), {})


@pytest.mark.parametrize("field", ["power_cap_w", "clock_mhz", "temperature_c"])
def test_devices_of_one_name_on_two_machines_are_two(field):
    result = on_hosts({"h0": {field: 125.0}, "h1": {field: 200.0}}, {"a": ["h0", "h1"], "b": ["h1", "h0"]})
    assert told(result, "CL169") == told(result, "CL170") == []
    assert result.steps[0].verdict == "better"


def test_a_cap_changed_on_one_of_two_machines_is_told_with_the_machine():
    found = []
    for step, level in (("a", 1.0), ("b", 0.5)):
        for number, one in enumerate(rounds(step, [x * level for x in [*SEVEN, 1.0]])):
            cap = 90.0 if (step, number) == ("b", 6) else 125.0
            seen = DeviceConditions(device="package-0", power_cap_w=cap)
            found.append(
                replace(one, host_id=f"h{number % 2}", conditions=Conditions(wall_s=10.0, devices=(seen,)))
            )
    (finding,) = told(compare_study(STUDY, found, Vector(), {}), "CL170")
    assert "package-0 of machine h0 was changed" in finding.message
