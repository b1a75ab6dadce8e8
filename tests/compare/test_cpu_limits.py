"""Arms that could use differing numbers of CPUs of one machine are compared, and that is said."""

import pytest

from carbonlens.compare.study import compare_study
from carbonlens.domain.allowance import Allowance
from carbonlens.domain.factor import Vector
from carbonlens.domain.study import Step, Study
from tests.compare.study_runs import rounds

STUDY = Study(name="t", baseline="a", steps=(Step(name="b"),), unit="image")
FIVE = [1.0, 1.1, 0.9, 1.05, 0.95]
HALF = [x / 2 for x in FIVE]


def of(cpus, machine=8):
    return Allowance(cpus=cpus, machine_cpus=machine)


def compared(a, b, *, hosts=("h", "h")):
    runs = [
        *rounds("a", FIVE, allowance=a, host_id=hosts[0]),
        *rounds("b", HALF, allowance=b, host_id=hosts[1]),
    ]
    return compare_study(STUDY, runs, Vector(), {})


def said(result):
    return [f.message for f in result.findings if f.code == "CL452"]


def test_differing_limits_are_said_with_each_arm_s():
    result = compared(of(8), of(2))
    (message,) = said(result)
    assert "a 8 of 8; b 2 of 8" in message
    # It may be the step itself: there is a verdict.
    assert result.steps[0].verdict == "better"


@pytest.mark.parametrize(
    ("a", "b"), [(of(8), of(8)), (of(1.5), of(1.5)), (None, None), (of(8), None), (Allowance(), Allowance())]
)
def test_one_limit_or_none_needs_no_word(a, b):
    assert said(compared(a, b)) == []


@pytest.mark.parametrize("silent", [None, Allowance(machine_cpus=8)])
def test_a_limit_beside_runs_that_state_none_is_said(silent):
    (message,) = said(compared(of(2), silent))
    assert "runs of b do not state" in message


def test_a_limit_that_changed_between_the_rounds_of_one_arm_is_said():
    runs = rounds("a", FIVE, allowance=of(8), host_id="h")
    odd = [*runs[:4], *rounds("a", FIVE, allowance=of(4), host_id="h")[4:]]
    other = rounds("b", HALF, allowance=of(8), host_id="h")
    (message,) = said(compare_study(STUDY, [*odd, *other], Vector(), {}))
    assert "a 4 of 8, 8 of 8; b 8 of 8" in message


def test_machines_of_several_sizes_differ_by_no_limit():
    def mixed(step, energies):
        small = rounds(step, energies, allowance=of(8), host_id="small")
        large = rounds(step, energies, allowance=of(64, 64), host_id="large")
        return [*small[:2], *large[2:]]

    assert said(compare_study(STUDY, [*mixed("a", FIVE), *mixed("b", HALF)], Vector(), {})) == []
