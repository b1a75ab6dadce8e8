"""The shape of ``compare --json`` that outside scripts rely on."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest

from carbonlens.compare.from_runs import study_from_runs
from carbonlens.compare.study import compare_study
from carbonlens.domain.factor import Vector
from carbonlens.reporting.comparison_json import comparison_json
from tests.compare.study_runs import demo_comparison, run, vector

ESTIMATE = {"value", "low", "high", "unit", "grade", "state", "confidence"}
SAVINGS = {"energy_j", "emissions_location_kg", "emissions_market_kg", "cost"}
LADDER = {"ladder_j", "ladder_location_kg", "ladder_market_kg", "ladder_cost"}


def shape(comparison) -> dict[str, Any]:
    """Return the JSON as a reader gets it; NaN and infinity are refused."""
    return json.loads(json.dumps(comparison_json(comparison), allow_nan=False))


def lattice(energy):
    runs = [run("+".join(c) or "baseline", e, on=tuple(c)) for c, e in energy.items()]
    return compare_study(study_from_runs(runs), runs, Vector(), {})


def test_the_top_level():
    got = shape(demo_comparison())
    assert got["schema"] == "carbonlens/compare/1"
    assert (got["baseline"], got["unit"], got["basis"], got["mode"]) == ("torch", "image", "volume", "ladder")
    assert [s["step"] for s in got["steps"]] == ["onnx", "pruned", "dynamic-int8", "static-int8"]
    assert got["interaction_j"] is None
    assert isinstance(got["findings"], list)
    assert got["environment"] == {"hardware": "example CPU"}


def test_a_step():
    step = shape(demo_comparison())["steps"][0]
    assert {"on", "measured_on", "status", "verdict", "decision", "gates"} <= set(step)
    assert set(step["energy_per_unit_j"]) == ESTIMATE
    assert set(step["vs_previous"]["ratio"]) == ESTIMATE
    assert {"ratio", "p_holm", "verdict"} <= set(step["vs_previous"])
    assert {"ratio", "p_holm", "verdict"} <= set(step["vs_baseline"])
    assert set(step["savings"]) >= SAVINGS
    assert step["savings"]["cost"]["unit"] == "EUR"
    assert set(step["attribution"]) >= LADDER | {"shapley_j"}
    assert step["attribution"]["shapley_j"] is None
    gate = step["gates"][0]
    assert (gate["name"], gate["outcome"], gate["limit"]) == ("accuracy", "pass", 0.01)
    assert set(gate["observed"]) == ESTIMATE


def test_the_accepted_path_sums_to_the_total():
    got = shape(demo_comparison())
    assert got["total"]["path"] == ["torch", "onnx", "pruned", "static-int8"]
    for suffix, name in (("j", "energy_j"), ("location_kg", "emissions_location_kg"), ("cost", "cost")):
        parts = [s["attribution"][f"ladder_{suffix}"] for s in got["steps"] if s["status"] == "accepted"]
        assert math.fsum(p["value"] for p in parts) == got["total"]["savings"][name]["value"]


def test_a_rejected_step_has_no_part_but_what_it_would_have_saved():
    step = shape(demo_comparison())["steps"][2]
    assert step["status"] == "rejected"
    assert {step["attribution"][k] for k in LADDER} == {None}
    assert step["would_have"]["energy_j"]["value"] < 0


def test_a_failed_step_keeps_its_shape():
    step = shape(demo_comparison(failed=["pruned"]))["steps"][1]
    assert (step["status"], step["error"]) == ("failed", "ValueError: example")
    assert (step["energy_per_unit_j"], step["vs_previous"]) == (None, None)
    assert set(step["savings"].values()) == set(step["attribution"].values()) == {None}


def test_what_is_unknown_is_null_with_its_state():
    got = shape(demo_comparison(with_vector=Vector(place="somewhere")))
    emissions = got["total"]["savings"]["emissions_location_kg"]
    assert (emissions["value"], emissions["low"], emissions["state"]) == (None, None, "unknown")
    assert {f["code"] for f in got["findings"]} >= {"CL305", "CL306", "CL309"}
    assert {b["measure"]: b["outcome"] for b in got["break_even"]} == {
        "energy": "reached",
        "carbon_location": "unknown",
        "carbon_market": "unknown",
        "cost": "unknown",
    }


def test_a_lattice():
    got = shape(lattice({"": 200, "X": 200, "Y": 120, "XY": 90}))
    assert (got["mode"], got["basis"], got["baseline"]) == ("lattice", "per_unit", "baseline")
    assert [(s["step"], s["on"]) for s in got["steps"]] == [("X", ["X"]), ("Y", ["Y"])]
    assert [s["attribution"]["shapley_j"]["value"] for s in got["steps"]] == pytest.approx([15, 95])
    assert [s["attribution"]["ladder_j"] for s in got["steps"]] == [None, None]
    assert [s["energy_per_unit_j"]["value"] for s in got["steps"]] == [200, 120]
    assert got["total"]["savings"]["energy_j"]["value"] == 110
    assert got["interaction_j"]["value"] == -30


def test_a_partial_lattice_has_nulls():
    got = shape(lattice({"": 200, "X": 150, "Y": 120}))
    assert {s["attribution"]["shapley_j"] for s in got["steps"]} == {None}
    assert set(got["total"]["savings"].values()) == {None}
    assert got["interaction_j"] is None


def test_extreme_energies_stay_json():
    got = shape(lattice({"": 1e300, "X": 1e-300}))
    assert got["steps"][0]["vs_previous"]["ratio"]["high"] is None
    zero = shape(lattice({"": 0.0, "X": 5.0}))
    assert zero["steps"][0]["vs_previous"]["ratio"]["value"] is None
    assert zero["steps"][0]["savings"]["energy_j"]["value"] == -5.0


def test_an_unstated_set_of_optimizations_is_null():
    got = shape(demo_comparison())
    assert {s["on"] for s in got["steps"]} == {None}
    steps = [run("baseline", 2.0, on=()), run("q", 1.0, on=("q",))]
    stated = shape(compare_study(study_from_runs(steps), steps, Vector(), {}))
    assert [s["on"] for s in stated["steps"]] == [["q"]]


def test_the_total_states_its_change():
    got = shape(demo_comparison())
    assert got["total"]["vs_baseline"] == got["steps"][3]["vs_baseline"]
    full = shape(lattice({"": 200, "X": 200, "Y": 120, "XY": 90}))["total"]["vs_baseline"]
    assert full["ratio"]["value"] == pytest.approx(0.45)


def unknowns(got):
    if isinstance(got, dict):
        if got.get("state") == "unknown":
            yield got
        for value in got.values():
            yield from unknowns(value)
    elif isinstance(got, list):
        for value in got:
            yield from unknowns(value)


def test_an_estimate_of_state_unknown_carries_no_number():
    """Without a price of machine hours, savings of cost are differences of lower bounds."""
    got = shape(demo_comparison(with_vector=vector(machine=None)))
    assert got["total"]["savings"]["cost"]["state"] == "unknown"
    assert len(list(unknowns(got))) > 5
    assert {(e["value"], e["low"], e["high"]) for e in unknowns(got)} == {(None, None, None)}
