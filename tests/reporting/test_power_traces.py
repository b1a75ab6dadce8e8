"""The chart of power over time: what it draws is what was measured, and what is not known is not drawn."""

from __future__ import annotations

import json

import msgspec
import pytest

from carbonlens.domain.comparison import NoPower
from carbonlens.errors import VerificationError
from carbonlens.render.check import check_page
from carbonlens.render.markdown import render_markdown
from carbonlens.render.xlsx import render_xlsx
from carbonlens.reporting.content import plain_text
from carbonlens.reporting.document import document
from carbonlens.reporting.power_chart import power_spec
from carbonlens.reporting.power_traces import NONE_KEPT
from carbonlens.reporting.report_json import report_json
from carbonlens.reporting.view import build_view
from tests.reporting.comparisons import HOSTILE_NAMES, comparison
from tests.reporting.power_case import PHASES, hostile, power, traced
from tests.reporting.test_charts import values

replace = msgspec.structs.replace
MADE = traced(comparison())
VIEW = build_view(MADE)
PAGE = VIEW.engineering


def test_the_finding_stands_in_words_the_longest_phase_first():
    said = PAGE.power.alt.replace("\u00a0", " ")
    assert "PyTorch eager fp32: steady phase draws 218 W on average, evaluation 156 W, load 96 W" in said
    assert "peak 302 W" in said
    assert said.startswith("Power over time of one run of each step (three), phases as bands.")


def test_a_gap_ends_the_line_and_the_ribbon_and_is_no_zero():
    spec = power_spec(PAGE.power)
    curves = [
        [row for row in layer["data"]["values"] if "piece" in row]
        for panel in spec["concat"]
        for layer in panel["layer"]
    ]
    drawn = [c for c in curves if c]
    assert len(drawn) == 2 * len(PAGE.power.arms)
    pieces = [{row["piece"] for row in c} for c in drawn]
    assert pieces == [{0}, {0}, {0, 1}, {0, 1}, {0}, {0}]
    before, after = ([r["time_s"] for r in drawn[2] if r["piece"] == k] for k in (0, 1))
    assert (max(before), min(after)) == (pytest.approx(8.0), pytest.approx(10.0))
    assert all(row["power_w"] > 0 for c in drawn for row in c)


def test_a_curve_ends_with_its_run_and_every_stretch_is_drawn_to_its_end():
    rows = [r for r in values(power_spec(PAGE.power)["concat"][2]) if "piece" in r]
    assert max(r["time_s"] for r in rows) == pytest.approx(12.0)
    times = [r["time_s"] for r in rows[: len(rows) // 2]]
    assert times == sorted(set(times))


@pytest.mark.parametrize("wide", [True, False])
def test_a_specification_is_plain_data_and_the_same_each_time(wide):
    spec = power_spec(PAGE.power, wide=wide)
    assert json.loads(json.dumps(spec)) == spec == power_spec(PAGE.power, wide=wide)
    # Power begins at zero, and is on one scale in all panels.
    domains = {
        tuple(part["scale"]["domain"])
        for panel in spec["concat"]
        for layer in panel["layer"]
        if (part := layer["encoding"].get("y", {})).get("scale")
    }
    assert len(domains) == 1
    assert next(iter(domains))[0] == 0
    assert next(iter(domains))[1] > max(a.peak.value for a in PAGE.power.arms)


def test_runs_of_very_different_lengths_have_scales_of_time_of_their_own():
    def ends(made):
        spec = power_spec(build_view(made).engineering.power)
        return [panel["layer"][0]["encoding"]["x"]["scale"]["domain"][1] for panel in spec["concat"]]

    assert ends(MADE) == [20.0] * 3
    short = replace(MADE, power=(*MADE.power[:2], power(MADE.power[2].step, phases=(), seconds=2.0)))
    assert ends(short) == [20.0, 20.0, 2.0]


def test_a_phase_has_one_letter_in_all_panels_and_a_word_where_its_power_is_not_known():
    letters = [{p.name: p.letter for p in arm.phases} for arm in PAGE.power.arms]
    assert letters == [{"load": "a", "warm-up": "b", "steady": "c", "evaluation": "d"}] * 2 + [{}]
    assert PAGE.power.arms[1].phases[1].label == "b  warm-up power unknown"
    explained = [[line for line in arm.lines if "no meter told it apart" in line] for arm in PAGE.power.arms]
    assert [len(lines) for lines in explained] == [0, 1, 0]
    bands = [r for r in values(power_spec(PAGE.power)["concat"][0]) if "end_s" in r]
    assert sorted((r["time_s"], r["end_s"]) for r in bands) == [(s, e) for _, s, e, _ in PHASES]


def test_idle_power_is_a_dashed_line_where_it_is_known_alone():
    dashed = [
        [x for x in p["layer"] if x["mark"].get("strokeDash")] for p in power_spec(PAGE.power)["concat"]
    ]
    assert [len(d) for d in dashed] == [1, 0, 0]
    assert dashed[0][0]["data"]["values"] == [{"power_w": 61.0}]
    assert [any("idle" in line for line in a.lines) for a in PAGE.power.arms] == [True, False, False]


def test_the_table_says_which_run_it_is_and_why():
    note = plain_text(PAGE.power.table.note)
    assert "of three alike the one with the median energy (ONNX Runtime fp32)" in note
    assert "of two with a trace the one that tells most (Structured pruning, fine-tuned)" in note
    assert "the only one with a trace (PyTorch eager fp32)" in note
    assert plain_text(PAGE.power.table.rows[0].cells[-1][1]) == "…5196e5201dc8"


def test_steps_without_a_trace_are_named_and_without_any_it_is_said_what_to_do():
    said = [plain_text(p) for p in PAGE.left_out]
    silent = "Dynamic int8 quantization, Static int8 quantization (QDQ)"
    assert said == [f"No power trace of {silent}: no run of it kept one."]
    page = build_view(comparison()).engineering
    assert page.power is None
    assert [plain_text(p) for p in page.left_out] == [NONE_KEPT]
    assert "--trace" in NONE_KEPT


SHORT = {"why": "the run was shorter than two looks (0.2 s)", "mend": "let it do more work"}
SHARED = {"why": "others used the device too", "mend": "measure it alone"}


def left_out(made):
    return [plain_text(p) for p in build_view(made).engineering.left_out]


def test_a_trace_that_was_asked_for_and_is_not_drawn_has_its_own_reason_and_mend():
    steps = [MADE.study.baseline, *(s.step for s in MADE.steps)]
    one, two = steps[-2:]
    some = replace(MADE, no_power=(NoPower(step=one, **SHORT),))
    assert left_out(some) == [
        "No power trace of Dynamic int8 quantization: the run was shorter than two looks (0.2 s); let it do "
        "more work. No power trace of Static int8 quantization (QDQ): no run of it kept one."
    ]
    alike = replace(MADE, no_power=tuple(NoPower(step=s, **SHARED) for s in (one, two)))
    (said,) = left_out(alike)
    assert said.endswith("(QDQ): others used the device too; measure it alone.")
    # Where no arm has one, what to do is not to ask for what was asked for.
    none = replace(comparison(), no_power=tuple(NoPower(step=s, **SHORT) for s in steps))
    (said,) = left_out(none)
    assert said.startswith("No power trace: ")
    assert said.endswith(" and others: the run was shorter than two looks (0.2 s); let it do more work.")
    assert "--trace" not in said


def test_reasons_that_would_break_a_page_are_harmless():
    from carbonlens.render.html import render_html

    for name in HOSTILE_NAMES:
        view = build_view(replace(MADE, no_power=(NoPower(step=MADE.steps[-1].step, why=name, mend=name),)))
        check_page(render_html(view, ("engineering",)), view)


def of_counters(made, *over_s):
    told = (replace(p, trace=replace(p.trace, over_s=s)) for p, s in zip(made.power, over_s, strict=True))
    return replace(made, power=tuple(told))


def test_the_peak_of_a_counter_is_said_to_be_a_mean_and_over_which_time():
    def labels(view):
        return [p.figure.label for name, p in view.figures.items() if name.endswith(".peak")]

    assert labels(VIEW) == ["highest power that was read"] * 3
    assert "counter" not in plain_text(PAGE.power.table.note)
    view = build_view(of_counters(MADE, 0.5, 0.0, 5.0))
    assert labels(view) == [
        "highest mean power over 0.5 s or more",
        "highest power that was read",
        "highest mean power over 5 s or more",
    ]
    note = plain_text(view.engineering.power.table.note)
    assert "Peak, least and most are where a counter was read means over 0.5 s and 5 s or more" in note
    note = plain_text(build_view(of_counters(MADE, 0.5, 0.5, 0.5)).engineering.power.table.note)
    assert "Peak, least and most are means over 0.5 s or more: a counter tells no moment." in note


def test_every_format_has_it():
    doc = document(VIEW, ("engineering",))
    text = render_markdown(doc).replace("\u00a0", " ")
    assert "steady phase draws 218 W on average" in text
    assert "Power of the runs that are drawn" in text
    shape = msgspec.json.decode(msgspec.json.encode(report_json(VIEW, ("engineering",))))
    blocks = [b for s in shape["sections"] for b in s["blocks"] if b["kind"] == "power"]
    (series,) = blocks
    first, second, _ = series["arms"]
    assert len(first["time_s"]) == len(first["power_w"]) == len(first["high_w"]) == 200
    assert first["phases"][0] == {"name": "load", "start_s": 0.0, "end_s": 3.0}
    assert second["power_w"][85] is None
    content = render_xlsx(doc, VIEW.figures)
    assert content == render_xlsx(doc, VIEW.figures)
    openpyxl = pytest.importorskip("openpyxl", reason="openpyxl is of an extra that is not installed")
    import io

    sheet = openpyxl.load_workbook(io.BytesIO(content))["Power over time"]
    rows = list(sheet.iter_rows(min_row=3, max_col=5, values_only=True))
    assert rows[0] == ("Step", "time_s", "power_w", "low_w", "high_w")
    assert rows[1] == ("PyTorch eager fp32", 0, 90, 85, 96)
    assert rows[1 + 200 + 85][2:] == (None, None, None)


def test_a_chart_that_draws_another_power_than_its_figure_is_refused():
    from carbonlens.render.html import render_html

    page = render_html(VIEW, ("engineering",))
    check_page(page, VIEW)
    arm = PAGE.power.arms[0]
    lying = replace(arm, mean=replace(arm.mean, value=1.0))
    with pytest.raises(VerificationError):
        check_page(page, _with(lying))
    with pytest.raises(VerificationError):
        check_page(page.replace("c steady 218", "c steady 18").replace("c  steady 218", "c  steady 18"), VIEW)


def _with(arm):
    drawn = replace(PAGE.power, arms=(arm, *PAGE.power.arms[1:]))
    return replace(VIEW, engineering=replace(PAGE, power=drawn))


def heads(made):
    page = build_view(made).engineering
    return [plain_text(c.name) for t in (page.power.table, page.measured) for c in t.columns]


def renamed(made, quality):
    """The comparison with another name of its quality, at every place of its JSON."""
    told = msgspec.json.encode(made).replace(b'"accuracy"', msgspec.json.encode(quality))
    return msgspec.json.decode(told, type=type(made))


@pytest.mark.parametrize("name", ["INT8 steady ACME", "mAP", "iOS", "eSIM load", "ONNX", "straße", "Steady"])
def test_a_name_that_is_a_users_own_heads_a_column_as_it_was_written(name):
    """As the chart beside the table has it; words of ours begin with a capital."""
    phases = ((name, 0.0, 10.0, 90.0), ("warm-up", 10.0, 20.0, 180.0))
    made = replace(MADE, power=(power(MADE.study.baseline, phases=phases),))
    assert {name, f"{name}, lasted", "Warm-up", "Accuracy"} <= set(heads(made))
    assert name in heads(renamed(made, name))


def test_names_of_phases_that_would_break_a_page_and_many_of_them_are_harmless():
    from carbonlens.render.html import render_html

    made = hostile(comparison(), [*HOSTILE_NAMES, *(f"{'same' * 9}{i}" for i in range(120))])
    view = build_view(made)
    page = render_html(view, ("engineering",))
    check_page(page, view)
    assert "<script>alert" not in page
    (arm,) = view.engineering.power.arms
    assert (len(arm.phases), arm.hidden > 100) == (6, True)
    assert "further phases have no band" in arm.lines
