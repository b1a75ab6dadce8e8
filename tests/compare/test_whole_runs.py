"""A whole run is a unit only where nobody counts in another one."""

import pytest

from carbonlens.compare.from_runs import study_from_runs
from carbonlens.compare.study import compare_study
from carbonlens.domain.factor import Vector
from carbonlens.domain.study import Step, Study
from carbonlens.errors import IncomparableError
from tests.compare.study_runs import rounds, run


def runs(unit):
    fields = {"units": None, "unit": unit}
    return [*rounds("a", [2000.0] * 6, **fields), *rounds("b", [1400.0] * 6, **fields)]


def study(unit):
    return Study(name="t", baseline="a", steps=(Step(name="b"),), unit=unit)


@pytest.mark.parametrize("stated", [None, "query"])
@pytest.mark.parametrize("volume", [None, 2e9])
def test_a_run_of_unknown_work_is_not_one_query(stated, volume):
    """It may have done a thousand: 2 kJ a run are no 2 kJ a query, and two billion of them no saving."""
    asked = Study(name="t", baseline="a", steps=(Step(name="b"),), unit="query", volume_units=volume)
    with pytest.raises(IncomparableError, match=r"counts in 'query', and no run states how many"):
        compare_study(asked, runs(stated), Vector(), {})


def test_runs_that_name_a_unit_and_count_none_are_refused_without_a_study_file():
    some = runs("query")
    with pytest.raises(IncomparableError, match="no run states how many"):
        compare_study(study_from_runs(some), some, Vector(), {})


@pytest.mark.parametrize("made", [study_from_runs, lambda _: study("run")])
def test_whole_runs_are_compared_where_a_run_is_the_unit(made):
    result = compare_study(made(runs(None)), runs(None), Vector(), {})
    assert result.study.unit == "run"
    assert result.baseline_amounts.energy_j.value == pytest.approx(2000.0)
    assert "CL422" in {f.code for f in result.findings}


@pytest.mark.parametrize("role", ["training", "effort", "evaluation"])
@pytest.mark.parametrize(("units", "unit"), [(1.0, "image"), (None, "run")])
def test_work_to_make_a_step_counts_in_a_unit_of_its_own(role, units, unit):
    """Training in samples comes first in the ledger, and is no reason to refuse images."""
    stated = {"units": units, "unit": None if units is None else unit}
    making = run("b", 9e3, repeat=None, role=role, units=5e4, unit="sample", run_id="made")
    some = [making, *rounds("a", [10.0] * 6, **stated), *rounds("b", [8.0] * 6, **stated)]
    result = compare_study(study_from_runs(some), some, Vector(), {})
    assert result.study.unit == unit
    assert result.steps[0].vs_previous.ratio.value == pytest.approx(0.8)
