"""What the terminal says beside the table: what was left out, what is unknown and why, whole names."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from carbonlens.app.check import CheckResult
from carbonlens.cli import check_view
from carbonlens.cli.compare_view import print_as_text
from carbonlens.compare.checking import check_conditions, parse_condition
from carbonlens.compare.study import compare_study, material_of
from carbonlens.domain.factor import Vector
from carbonlens.domain.study import Step, Study
from tests.compare.study_runs import rounds, run, vector

STUDY = Study(name="t", baseline="base", steps=(Step(name="a"), Step(name="b")), unit="image")
LEVELS = {"base": 10.0, "a": 9.0, "b": 8.0}


def lost(many=5, **fields):
    """Return ten rounds of two arms, and five of the third."""
    return [
        r
        for step, level in LEVELS.items()
        for r in rounds(step, [level] * (many if step == "b" else 10), **fields)
    ]


def printed(capsys, runs, factors=None, *, details=False, study=STUDY):
    print_as_text(compare_study(study, runs, factors or Vector(), {}), details=details)
    seen = capsys.readouterr()
    return seen.out + seen.err


def checked(capsys, runs, *texts, factors=None, study=STUDY):
    material, findings = material_of(study, runs, factors or Vector(), {})
    done = check_conditions(material, [parse_condition(t) for t in texts])
    check_view.print_as_text(CheckResult(study="t", unit="image", checked=done, findings=findings))
    seen = capsys.readouterr()
    return seen.out + seen.err


@pytest.mark.parametrize("details", [True, False])
def test_rounds_left_out_are_said(capsys, details):
    assert "CL405" in printed(capsys, lost(), details=details)
    twice = [*lost(10), run("b", 8.0, repeat=1, run_id="again")]
    assert "CL406" in printed(capsys, twice, details=details)


def test_a_check_says_what_was_left_out_and_no_factor_that_nobody_asks_for(capsys):
    runs = [*lost(boundary="device"), run("b", None, repeat=6, boundary="device")]
    text = checked(capsys, runs, "energy:>+3%")
    assert "CL405" in text
    assert "CL401" in text
    assert "CL30" not in text
    assert "CL305" in checked(capsys, lost(10), "carbon:>+3%")
    assert "CL309" in checked(capsys, lost(10), "cost:>+3%")


def test_a_reason_of_a_check_is_not_cut(capsys):
    runs = [replace(r, conditions=None) for r in lost(10)]
    text = " ".join(checked(capsys, runs, "power:>+10%").split())
    assert "the time or a part of the energy is not known in every round" in text


def test_steps_that_differ_at_their_end_read_apart_everywhere(capsys):
    names = [f"structured-pruning-of-channels-{i}" for i in (1, 2)]
    study = Study(name="t", baseline="base", steps=tuple(Step(name=n) for n in names), unit="image")
    runs = [
        r for n, level in (("base", 10.0), (names[0], 11.0), (names[1], 12.0)) for r in rounds(n, [level] * 6)
    ]
    for text in (
        printed(capsys, runs, details=True, study=study),
        checked(capsys, runs, "energy:>+3%", study=study),
    ):
        assert "nnels-1" in text
        assert "nnels-2" in text
        assert "structured-pruning-…" not in text


@pytest.mark.parametrize(
    ("boundary", "factors", "words"),
    [
        ("device", {}, "leaves out the host around them ([facility] host_overhead)"),
        ("it", {"pue": None}, "the PUE of the place is unknown"),
        (None, {}, "do not state the boundary"),
    ],
)
def test_a_saving_in_carbon_and_cost_that_is_unknown_says_why(capsys, boundary, factors, words):
    runs = lost(10, boundary=boundary, cpu_s=1.0)
    text = " ".join(printed(capsys, runs, vector(**factors)).split())
    carbon = text.split("carbon saved per image: ")[1]
    assert carbon.startswith("unknown, as ")
    assert words in carbon
    assert "at least" in carbon.split(" before, ")[0]
    assert f"cost saved per image: unknown, as {carbon[len('unknown, as ') :].split(';')[0]}" in text


def test_a_sourced_host_overhead_makes_it_known(capsys):
    runs = lost(10, boundary="device", cpu_s=1.0)
    with_host = vector(host_overhead=1.1, host_overhead_source="wall", host_overhead_u_relative=0.02)
    known = compare_study(STUDY, runs, with_host, {}).total.emissions_location_kg
    at_it = compare_study(STUDY, lost(10, cpu_s=1.0), vector(), {}).total.emissions_location_kg
    assert known.value == pytest.approx(1.1 * at_it.value)
    assert known.state == "known"
    assert "unknown" not in printed(capsys, runs, with_host).split("carbon saved")[1].splitlines()[0]
    unsure = compare_study(STUDY, runs, replace(with_host, host_overhead_u_relative=None), {}).total
    assert (unsure.emissions_location_kg.low, unsure.emissions_location_kg.high) == (None, None)


def test_the_title_of_what_stands_beside_names_the_columns_that_are_there(capsys):
    assert "above idle" not in printed(capsys, lost(10, cpu_s=1.0), details=True)


def test_own_work_is_wrapped_and_keeps_unit_and_days(capsys):
    study = replace(STUDY, units_per_day=10.0)
    effort = [run("a", 3.08e9, repeat=None, units=None, role="effort", cpu_s=1.0)]
    text = printed(capsys, [*lost(10, cpu_s=1.0), *effort], vector(), details=True, study=study)
    own = text.split("earned back after:\n")[1].split("\nCL")[0]
    assert "…" not in own
    assert max(map(len, own.splitlines())) <= 80
    assert "images" in own


@pytest.mark.parametrize(
    ("cpu_s", "factors", "words"),
    [
        (1.0, {"machine": None}, "no price of machine hours is stated"),
        (1.0, {"electricity": None}, "no price of electricity is stated"),
        (None, {}, "the runs do not tell the CPU time that machine hours are made of"),
    ],
)
@pytest.mark.parametrize("with_effort", [False, True])
def test_a_saving_in_cost_that_is_unknown_names_what_the_cost_lacks(
    capsys, cpu_s, factors, words, with_effort
):
    """Effort at another boundary is no part of the saving, and no reason."""
    effort = run("a", 5.0, repeat=None, units=None, role="effort", boundary="device", run_id="e")
    text = printed(capsys, [*lost(10, cpu_s=cpu_s), *([effort] if with_effort else [])], vector(**factors))
    cost = " ".join(text.split()).split("cost saved per image: unknown, as ")[1]
    assert cost.startswith(words)
    assert "([facility] host_overhead)" not in " ".join(text.split())
    assert "carbon saved per image: unknown" not in text


def test_a_place_with_a_market_factor_alone_is_not_called_unknown(capsys):
    text = printed(capsys, lost(10, cpu_s=1.0), vector(location=None))
    assert "no location factor, so no carbon figure" in text
    assert "place unknown" not in text
