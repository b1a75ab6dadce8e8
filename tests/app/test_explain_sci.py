"""Ids of scores: each says what was asked for, and explain makes the same score of it again."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carbonlens.app.explain import explain, explain_each
from carbonlens.app.explain_known import Options
from carbonlens.app.explain_sci import question_of
from carbonlens.app.sci import make_sci
from carbonlens.app.sci_ids import unit_in_id
from carbonlens.reporting.explanation import walk
from tests.app import sci_case as case

NAMES = st.text("ab.:-*= 1Q", min_size=1, max_size=8).filter(lambda t: t == t.strip())
PERIODS = st.sampled_from([None, "2026", "2026Q1", "2026-05", "2026-05-03"])
FIELDS = st.sampled_from(["score", "at_least", "count", "component_1.embodied_kg", "variant.lab.it.it_kwh"])


@given(
    study=NAMES,
    step=st.one_of(st.none(), NAMES),
    period=PERIODS,
    role=st.sampled_from([None, "consumer", "provider"]),
    unit=st.sampled_from(
        [
            "token",
            "FLOP",
            "second of audio",
            "sq. km",
            "v1.5 image",
            "a=b*2",
            "50%",
            "2026",
            "provider",
            "%2E",
        ]
    ),
    units=st.sampled_from([None, 1e21, 2.5, 7.0]),
    per=st.sampled_from([1.0, 1000.0, 1e6, 0.5, 1e-7]),
    field=FIELDS,
    begin=st.sampled_from(["", "energy.", "runs."]),
)
def test_an_id_tells_what_was_asked_for(  # noqa: PLR0917 - each is a part of the id
    study, step, period, role, unit, units, per, field, begin
):
    scope = [f"study:{study}", *([f"step:{step}"] if step else []), *([period] if period else [])]
    stated = "" if units is None else f"={units:.15g}"
    last = f"{unit_in_id(unit)}{stated}" + ("" if per == 1 else f"*{per:.15g}")
    name = begin + ".".join(["sci", *scope, *([role] if role else []), last, field])
    asked = question_of(name, [study], [step] if step else [])
    assert asked == {
        "unit": unit,
        "study": study,
        "step": step,
        "period": period,
        "ai": role,
        "units": units,
        "per": per,
    }


@pytest.mark.parametrize(
    "name", ["sci.", "sci.score", "sci.study:other.request.score", "statement.2026.total"]
)
def test_an_id_of_no_score_is_none(name):
    assert question_of(name, ["chat"], []) is None


@pytest.mark.parametrize(
    "asked",
    [
        {"unit": "request"},
        {"unit": "requests", "per": 1000.0},
        {"unit": "request", "period": case.PERIOD, "units": 12345.0},
        {"unit": "token", "ai": "consumer", "units": 1e9, "per": 1e6},
        {"unit": "request", "step": "a.b"},
        {"unit": "v1.5 *request=", "units": 2.5},
    ],
)
def test_the_root_of_the_tree_is_the_number_of_the_score(tmp_path, asked):
    case.write(tmp_path, [*case.served(step="a.b"), *([] if "step" in asked else [case.headroom()])])
    where = {
        "ledger": tmp_path / "ledger",
        "inventory": tmp_path / "inventory",
        "factors": tmp_path / "factors.csv",
    }
    scored = make_sci(study="chat", **asked, **where)
    assert scored.score.value is not None
    ids = [f.figure_id for f in scored.figures]
    for figure, node in zip(scored.figures, explain_each(ids, Options(**where)), strict=True):
        assert node.item.estimate.value == pytest.approx(figure.estimate.value)
    ends = {n.item.kind for n in walk(explain(f"{scored.prefix}.score", Options(**where))) if not n.children}
    assert "unknown" not in ends


def test_a_count_of_runs_names_them_and_a_stated_one_is_an_assumption(tmp_path):
    case.write(tmp_path, [*case.served(), case.headroom()])
    where = {
        "ledger": tmp_path / "ledger",
        "inventory": tmp_path / "inventory",
        "factors": tmp_path / "factors.csv",
    }
    node = explain("sci.study:chat.request.count", Options(**where), most=100)
    assert len([n for n in walk(node) if n.item.kind == "run"]) == case.SERVING
    assert explain("sci.study:chat.request=5.count", Options(**where)).item.kind == "assumption"


def test_energy_that_nobody_knows_at_a_boundary_is_no_measurement(tmp_path):
    case.write(tmp_path, case.served())
    where = {
        "ledger": tmp_path / "ledger",
        "inventory": tmp_path / "inventory",
        "factors": tmp_path / "factors.csv",
    }
    scored = make_sci("request", study="chat", **where)
    for one in (i for b in scored.built for i in b.inputs):
        assert (one.evidence == "missing") == (one.estimate.value is None), one.symbol
