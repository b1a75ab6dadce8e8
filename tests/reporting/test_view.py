"""View: what a report says, held against golden texts and against laws."""

from __future__ import annotations

import os
import random
import re

import msgspec
import pytest

from carbonlens.compare.from_runs import study_from_runs
from carbonlens.compare.study import compare_study
from carbonlens.domain.estimate import Estimate
from carbonlens.domain.factor import Vector
from carbonlens.reporting.content import Part, ReportView, plain_text
from carbonlens.reporting.view import build_view
from tests.compare.study_runs import run
from tests.compare.test_lattice import SHAPLEY_2
from tests.reporting.comparisons import DEMO, EXAMPLE_VECTOR, Arm, comparison, hostile_comparison
from tests.reporting.golden import FOLDER, as_text, cases

CASES = cases()
GROUP = "\u202f"


@pytest.fixture(scope="module")
def views():
    return {name: build_view(made) for name, made in CASES.items()}


@pytest.mark.parametrize("name", CASES)
def test_golden_text(name, views):
    file, text = FOLDER / f"{name}.txt", as_text(views[name])
    if os.environ.get("UPDATE_GOLDEN"):
        file.write_text(text, encoding="utf-8")
    assert text == file.read_text(encoding="utf-8")


def parts(node):
    """Every part of a view, wherever it stands."""
    if isinstance(node, Part):
        yield node
    elif isinstance(node, msgspec.Struct):
        for field in node.__struct_fields__:
            yield from parts(getattr(node, field))
    elif isinstance(node, tuple):
        for item in node:
            yield from parts(item)


def sections(view: ReportView):
    return (view.business_case, view.engineering)


@pytest.mark.parametrize("name", CASES)
def test_every_number_is_a_figure_and_reads_like_it(name, views):
    view = views[name]
    found = list(parts(sections(view)))
    for part in found:
        if part.figure_id is not None:
            assert part.text == view.figures[part.figure_id].form(part.aspect)
        elif not part.quoted and not part.label:
            assert not re.search(r"[0-9]", part.text), part.text
    printed = {p.figure_id for p in found if p.figure_id}
    charts = (
        {b.figure_id for b in view.business_case.waterfall.bars} if view.business_case.waterfall else set()
    )
    assert set(view.figures) <= printed | charts


def number(text):
    return float(text.replace(GROUP, "").replace("−", "-").replace("+", ""))


@pytest.mark.parametrize("name", ["demo", "demo_from_runs", "failed", "lattice", "long_ladder"])
def test_the_waterfall_adds_up_to_the_headline_as_printed(name, views):
    view = views[name]
    bars = view.business_case.waterfall.bars
    path = [b for b in bars if b.kind == "accepted"]
    shares = [number(view.figures[b.figure_id].number) for b in path]
    headline = number(view.figures["total.reduction_energy"].number)
    rest = number(view.figures["final.share"].number)
    assert -sum(shares) == pytest.approx(headline, abs=1e-9)
    assert 100 - headline == pytest.approx(rest, abs=1e-9)
    assert path[-1].end == pytest.approx(bars[-1].end, rel=2e-3)
    # The bars follow on one another: each begins where the one before ended.
    assert [b.start for b in path] == pytest.approx([100.0, *(b.end for b in path[:-1])])


@pytest.mark.parametrize("seed", [21, 24, 26, 36, 38])
def test_bars_add_up_to_the_headline_where_it_is_of_ratios_and_they_are_of_joules(seed):
    """Rounded to their own sum, the bars of these come to another number than the headline."""
    noise = random.Random(seed)  # noqa: S311 - measurements, no secrets
    runs = [
        run("+".join(cell) or "baseline", joules * noise.uniform(0.7, 1.3), repeat=i, on=tuple(cell))
        for cell, joules in SHAPLEY_2.items()
        for i in range(1, 7)
    ]
    view = build_view(compare_study(study_from_runs(runs), runs, Vector(), {}))
    shares = [f for i, f in view.figures.items() if i.endswith(".share_of_baseline")]
    assert len(shares) == 3
    headline = number(view.figures["total.reduction_energy"].number)
    assert -sum(number(f.number) for f in shares) == pytest.approx(headline, abs=1e-9)


def test_a_step_takes_over_nothing_of_what_is_in_no_step():
    """Ratios are averaged as logarithms: of rounds that scatter by half they come to another total."""
    noise = random.Random(1)  # noqa: S311 - measurements, no secrets
    runs = [
        run(
            "+".join(cell) or "baseline",
            joules * (noise.lognormvariate(0, 0.5) if cell else 1),
            repeat=i,
            on=tuple(cell),
        )
        for cell, joules in SHAPLEY_2.items()
        for i in range(1, 41)
    ]
    view = build_view(compare_study(study_from_runs(runs), runs, Vector(), {}))
    bars = {b.name: b for b in view.business_case.waterfall.bars}
    alone = bars["In no step"]
    parts = [f for i, f in view.figures.items() if i.endswith(".share_of_baseline")]
    for part in parts:
        assert number(part.number) == pytest.approx(100 * part.figure.estimate.value, abs=1.0)
    printed = [number(f.number) for f in (*parts, view.figures[alone.figure_id])]
    headline = number(view.figures["total.reduction_energy"].number)
    assert -sum(printed) == pytest.approx(headline, abs=1e-9)
    assert abs(printed[-1]) > 1


@pytest.mark.parametrize("name", ["demo", "demo_from_runs", "lattice"])
@pytest.mark.parametrize("measure", ["energy", "emissions_location", "emissions_market", "cost"])
def test_printed_attribution_adds_up(name, measure, views):
    figures = views[name].figures
    found = [f for i, f in figures.items() if i.endswith(f".attribution.{measure}") and f.number != "unknown"]
    if not found:
        assert figures[f"total.savings.{measure}"].number == "unknown"
        return
    assert sum(number(f.number) for f in found) == pytest.approx(
        number(figures[f"total.savings.{measure}"].number)
    )


def test_headline_tile_and_table_say_the_same(views):
    view = views["demo"]
    saved = view.figures["total.reduction_energy"]
    assert saved.text in view.title
    assert saved.text in plain_text(view.business_case.tiles[1].value)
    against_baseline = view.figures["step.static_int8.change_vs_baseline"]
    assert against_baseline.number.removeprefix("−") == saved.number


def test_carbon_saves_what_energy_saves(views):
    figures = views["demo"].figures
    energy, carbon = figures["total.reduction_energy"], figures["total.reduction_emissions_location"]
    assert (energy.text, energy.interval) == (carbon.text, carbon.interval)
    assert {"baseline.emissions_location", "baseline.emissions_market"} <= set(figures)


def test_modelled_joules_are_called_modelled(views):
    assert "modelled (evidence grade\u00a0D)" in plain_text(views["demo"].business_case.lead)
    measured = comparison()
    base = measured.baseline_amounts
    metered = msgspec.structs.replace(base, energy_j=msgspec.structs.replace(base.energy_j, grade="A"))
    lead = plain_text(
        build_view(msgspec.structs.replace(measured, baseline_amounts=metered)).business_case.lead
    )
    assert "an external meter (evidence grade\u00a0A)" in lead
    assert "modelled" not in lead


def test_examples_are_called_examples_and_own_figures_are_not():
    assert build_view(comparison()).example
    own = msgspec.structs.replace
    vector = own(
        EXAMPLE_VECTOR,
        **{
            name: own(getattr(EXAMPLE_VECTOR, name), example=False)
            for name in ("location", "market", "electricity", "machine", "embodied")
        },
    )
    view = build_view(comparison(vector=vector))
    assert not view.example
    assert "example assumptions" not in as_text(view)


@pytest.mark.parametrize(
    ("arms", "title"),
    [
        (DEMO[:1], "ONNX Runtime fp32 cuts energy per image by 50.6 % within the accuracy limit"),
        ((), "No step is shown to save energy"),
        (
            (Arm(name="a", cpu_us=1000, status="rejected"), Arm(name="b", cpu_us=None, status="failed")),
            "No step is shown to save energy: one rejected and one failed to run",
        ),
    ],
)
def test_the_title_claims_what_was_found(arms, title):
    assert build_view(comparison(arms)).title.replace("\u00a0", " ") == title


SLOPE = tuple(Arm(name=f"s{i}", cpu_us=855 - 5 * i, status="undetermined") for i in range(9))
"""Each saves too little against the one before to be shown; the last against the baseline does."""


@pytest.mark.parametrize(
    ("arms", "title", "tile"),
    [
        (
            tuple(
                msgspec.structs.replace(arm, measured_on=before)
                for arm, before in zip(SLOPE, ("torch", *(s.name for s in SLOPE)), strict=False)
            ),
            "No step is shown to save energy against the step it was measured on: nine undetermined",
            "no step is accepted",
        ),
        (
            (Arm(name="half", cpu_us=400, status="rejected", loss=(0.03, 0.02, 0.04)),),
            "No step is accepted, though one is shown to save energy: one rejected",
            "no step is accepted",
        ),
        (SLOPE[:1], "No step is shown to save energy: one undetermined", "no saving is shown"),
    ],
    ids=["little by little", "rejected for its quality", "none"],
)
def test_the_title_denies_no_saving_that_a_table_shows(arms, title, tile):
    view = build_view(comparison(arms))
    assert view.title == title
    assert {plain_text(t.lines[-1]) for t in view.business_case.tiles[:3]} == {tile}


def test_a_saving_whose_interval_holds_none_is_not_claimed():
    made = comparison(DEMO[:1])
    step = made.steps[0]
    wide = msgspec.structs.replace(
        step.vs_baseline, ratio=Estimate(value=0.9, unit="1", grade="D", bounds=(0.7, 1.15))
    )
    doubtful = msgspec.structs.replace(made, steps=(msgspec.structs.replace(step, vs_baseline=wide),))
    view = build_view(doubtful)
    assert view.title == "ONNX Runtime fp32 is not shown to save energy"
    assert view.business_case.tiles[1].mark == "open"


def test_break_even_tells_never_from_unknown():
    made = comparison()
    rows = list(made.break_even)
    rows[1] = msgspec.structs.replace(
        rows[1], outcome="may_never", units=Estimate(value=3.2e6, unit="1", bounds=(1.1e6, None))
    )
    rows[2] = msgspec.structs.replace(rows[2], outcome="never")
    rows[3] = msgspec.structs.replace(rows[3], outcome="unknown")
    page = build_view(msgspec.structs.replace(made, break_even=tuple(rows))).business_case
    said = [plain_text(line).replace("\u00a0", " ") for line in page.break_even]
    assert said[2:] == [
        "CO₂e, location-based: may never be earned back; if at all, after 3.2 million images [1.1, never].",
        "CO₂e, market-based: never earned back.",
        "Money: unknown.",
    ]


def test_a_volume_is_named_beside_its_amounts():
    page = build_view(comparison(volume=2.5e9)).business_case
    assert plain_text(page.basis).replace("\u00a0", " ") == (
        "Amounts are for 2.5 billion images a year, each rounded by its own interval; "
        "brackets are 95 % intervals."
    )


def test_hostile_names_are_clipped_and_numbered_apart():
    view = build_view(hostile_comparison())
    names = [b.name for b in view.business_case.waterfall.bars]
    assert all(len(name) <= 44 for name in names)
    assert len(view.figures) == len(set(view.figures))
    assert all(re.fullmatch(r"[a-z0-9_.]+", figure_id) for figure_id in view.figures)
    assert "\x00" not in as_text(view)


def test_the_view_is_made_of_frozen_records(views):
    view = views["demo"]
    with pytest.raises(AttributeError):
        view.title = "another"
    assert build_view(comparison()) == build_view(comparison())
