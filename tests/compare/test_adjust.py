"""Routine adjustments are declared, or arms of other sizes are refused."""

from __future__ import annotations

import math

import pytest

from carbonlens.compare.study import compare_study
from carbonlens.domain.study import Adjustment, Step, Study
from carbonlens.errors import ConfigError, IncomparableError
from tests.compare.study_runs import rounds, vector

A = [1.0, 1.01, 0.99, 1.005, 0.995]


def study(*adjustments):
    steps = (Step(name="b"), Step(name="c", measured_on="a"))
    return Study(name="t", baseline="a", steps=steps, unit="image", adjustments=adjustments)


def compared(*adjustments, a="16", b="32", c="32", tag="batch"):
    runs = []
    for step, level, size in (("a", 1.0, a), ("b", 0.8, b), ("c", 0.6, c)):
        tags = {} if size is None else {tag: size}
        runs += rounds(step, [x * level for x in A], tags=tags, cpu_s=2.0)
    return compare_study(study(*adjustments), runs, vector(), {})


@pytest.mark.parametrize("tag", ["batch", "sequence_length", "volume"])
def test_another_size_is_refused_with_the_mend(tag):
    with pytest.raises(IncomparableError, match=tag) as caught:
        compared(tag=tag)
    assert "[[adjustment]]" in caught.value.mend


def test_one_size_and_unstated_sizes_are_fine():
    assert compared(a="8", b="8", c="8").steps[0].verdict == "better"
    assert compared(a=None, b=None, c=None).steps[0].verdict == "better"
    assert compared(tag="colour").steps[0].verdict == "better"


def test_an_exponent_of_zero_declares_the_size_a_part_of_the_step():
    result = compared(Adjustment(tag="batch"))
    assert result.steps[0].savings.energy_j.value == pytest.approx(0.2)
    assert not any(f.code == "CL435" for f in result.findings)


def test_the_baseline_is_brought_to_the_size_of_the_last_step():
    """Energy per unit goes with batch^-0.5, so the baseline at 32 takes 1 / sqrt(2)."""
    result = compared(Adjustment(tag="batch", exponent=-0.5, source="batch sweep"))
    adjusted = 1 / math.sqrt(2)
    assert result.baseline_amounts.energy_j.value == pytest.approx(adjusted)
    assert result.steps[0].savings.energy_j.value == pytest.approx(adjusted - 0.8)
    assert result.steps[0].vs_previous.ratio.value == pytest.approx(0.8 / adjusted)
    (said,) = [f for f in result.findings if f.code == "CL435"]
    assert "batch sweep" in said.message
    assert "a from 16" in said.message


def test_all_measures_are_adjusted():
    plain = compared(Adjustment(tag="batch")).baseline_amounts
    moved = compared(Adjustment(tag="batch", exponent=1.0)).baseline_amounts
    for measure in ("energy_j", "emissions_location_kg", "embodied_kg", "cost"):
        assert getattr(moved, measure).value == pytest.approx(2 * getattr(plain, measure).value)


def test_the_error_of_the_exponent_widens_what_was_moved_and_no_more():
    sure = compared(Adjustment(tag="batch", exponent=-0.5))
    unsure = compared(Adjustment(tag="batch", exponent=-0.5, u_exponent=0.1))
    assert unsure.steps[0].vs_previous.ratio.low < sure.steps[0].vs_previous.ratio.low
    assert unsure.baseline_amounts.energy_j.u_by_source["adjustment:batch"] == pytest.approx(
        0.1 * math.log(2) / math.sqrt(2)
    )
    # b and c were measured at 32 both, so nothing moved between them.
    assert unsure.steps[1].amounts.energy_j.low == sure.steps[1].amounts.energy_j.low


def test_a_stated_size_serves_all_arms():
    result = compared(Adjustment(tag="batch", exponent=1.0, at=8.0))
    assert result.baseline_amounts.energy_j.value == pytest.approx(0.5)
    assert result.steps[0].amounts.energy_j.value == pytest.approx(0.2)


def test_a_run_without_the_variable_is_refused():
    with pytest.raises(IncomparableError, match="do not all state one batch"):
        compared(Adjustment(tag="batch", exponent=1.0), b=None)


@pytest.mark.parametrize("size", ["many", "0", "-4", "nan"])
def test_a_size_that_is_no_positive_number_is_refused(size):
    with pytest.raises(ConfigError, match="batch"):
        compared(Adjustment(tag="batch", exponent=1.0), b=size)


@pytest.mark.parametrize("fields", [{"exponent": math.nan}, {"exponent": 1.0, "at": 0.0}])
def test_an_adjustment_without_sense_is_refused(fields):
    with pytest.raises(ConfigError, match="adjustment of batch"):
        compared(Adjustment(tag="batch", **fields))
