"""SCI and SCI for AI: divided last, all inputs kept, offsets refused."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from carbonlens.accounting.propagation import exactly, stated
from carbonlens.accounting.sci import Component, EmbodiedShare, FunctionalUnit, Intensity, combined, sci
from carbonlens.accounting.sci_ai import STAGES, sci_ai
from carbonlens.domain.estimate import Estimate, unknown
from carbonlens.errors import IncomparableError, UsageError

GRID = Intensity(factor_id="grid:x", rate=stated(0.951, 0.1, "grid:x", "kg/kWh"))
SHARE = EmbodiedShare(
    total_kg=stated(1433.12, 0.3, "server", "kg"),
    reserved_h=1,
    life_h=35_040,
    reserved=2,
    available=16,
    input_ids=("server",),
)
DATABASE = Component(
    name="database",
    energy_kwh=Estimate(value=0.048, unit="kWh", u_random=0.001),
    intensity=GRID,
    embodied=(SHARE,),
    input_ids=("run-1",),
)
HOUR = FunctionalUnit(name="hour of 500 users", plural="hours of 500 users", rationale="load test")
TOKENS = FunctionalUnit(name="token", plural="tokens", per=1e6)


def test_a_score_is_o_and_m_per_unit():
    score = sci([DATABASE], exactly(1.0), HOUR)
    assert score.score.value == pytest.approx(50.76044, abs=1e-5)
    assert score.score.unit == "g per hour of 500 users"
    assert 1000 * score.embodied_kg.value == pytest.approx(5.112443, abs=1e-6)
    assert score.score.u_by_source == pytest.approx({"grid:x": 4.5648, "server": 5.112443 * 0.3}, rel=1e-6)
    assert score.score.u_random == pytest.approx(0.951)
    assert score.total_kg.value == pytest.approx(score.score.value / 1000)
    assert score.findings == ()


def test_all_inputs_stay_in_the_result_and_in_its_figures():
    score = sci([DATABASE], exactly(2.0), HOUR)
    assert score.components == (DATABASE,)
    assert (score.count.value, score.unit.rationale) == (2.0, "load test")
    figures = {f.figure_id: f for f in score.figures("sci")}
    assert figures["sci.score"].inputs == ("sci.operational_kg", "sci.embodied_kg", "sci.count")
    assert figures["sci.operational_kg"].inputs == ("sci.component_1.operational_kg",)
    assert figures["sci.component_1.operational_kg"].inputs == ("sci.component_1.energy_kwh", "grid:x")
    assert figures["sci.component_1.energy_kwh"].inputs == ("run-1",)
    assert figures["sci.component_1.embodied_kg"].inputs == ("server",)
    assert "TE * 1/35040 * 2/16" in figures["sci.component_1.embodied_kg"].formula


def test_emissions_and_units_are_added_up_and_divided_last():
    busy = sci([DATABASE], exactly(100.0), HOUR)
    idle = sci([DATABASE], exactly(1.0), HOUR)
    both = combined([busy, idle])
    assert both.count.value == 101
    assert both.score.value == pytest.approx(2 * 50.76044 / 101, rel=1e-6)
    mean = (busy.score.value + idle.score.value) / 2
    assert both.score.value < mean / 10


@given(st.lists(st.tuples(st.floats(1e-3, 1e3), st.floats(1, 1e6)), min_size=1, max_size=6))
def test_a_score_of_times_is_that_of_the_whole(times):
    scores = [
        sci([replace(DATABASE, energy_kwh=exactly(kwh, "kWh"))], exactly(count), TOKENS)
        for kwh, count in times
    ]
    both = combined(scores)
    kg = sum(kwh for kwh, _ in times) * 0.951 + len(times) * SHARE.kg.value
    assert both.score.value == pytest.approx(kg * 1000 / sum(c for _, c in times) * 1e6)
    energies = [s.operational_kg.value + s.embodied_kg.value for s in scores]
    assert both.total_kg.value == pytest.approx(sum(energies))


def test_c53_label_and_number_agree():
    """cases.json C53: 6500 kg a week over 50 billion tokens are 130 g per million."""
    whole = EmbodiedShare(total_kg=exactly(6500.0, "kg"), reserved_h=1, life_h=1)
    week = Component(name="week", energy_kwh=exactly(0.0, "kWh"), intensity=GRID, embodied=(whole,))
    expected = {1e3: (0.13, "1000 tokens"), 1e6: (130, "1000000 tokens"), 1: (130e-6, "token")}
    for per, (grams, label) in expected.items():
        score = sci([week], exactly(50e9), replace(TOKENS, per=per))
        assert score.score.value == pytest.approx(grams)
        assert score.score.unit == f"g per {label}"
        assert label in score.figures("s")[-1].label


@pytest.mark.parametrize("method", ["market", "residual"])
def test_market_based_factors_are_refused(method):
    with pytest.raises(UsageError, match=f"{method}-based") as caught:
        sci([replace(DATABASE, intensity=replace(GRID, method=method))], exactly(1.0), HOUR)
    assert caught.value.where == "database"


@pytest.mark.parametrize(
    "change",
    [
        {"energy_kwh": Estimate(value=-1.0, unit="kWh")},
        {"intensity": replace(GRID, rate=Estimate(value=-0.1, unit="kg/kWh"))},
        {"embodied": (SHARE, replace(SHARE, total_kg=Estimate(value=-50.0, unit="kg")))},
    ],
)
def test_offsets_are_refused(change):
    with pytest.raises(UsageError, match="offset"):
        sci([replace(DATABASE, **change)], exactly(1.0), HOUR)


def test_a_score_needs_components_and_one_unit():
    with pytest.raises(UsageError, match="component"):
        sci([], exactly(1.0), HOUR)
    with pytest.raises(UsageError, match="combine"):
        combined([])
    one, other = (sci([DATABASE], exactly(1.0), u) for u in (HOUR, TOKENS))
    with pytest.raises(IncomparableError, match="1000000 tokens"):
        combined([one, other])


def test_unstated_embodied_emissions_make_a_lower_bound():
    score = sci([DATABASE, replace(DATABASE, name="cache", embodied=())], exactly(1.0), HOUR)
    assert (score.score.state, score.embodied_kg.state) == ("unbounded", "unbounded")
    assert [f.code for f in score.findings] == ["CL307"]
    assert "cache" in score.findings[0].message
    missing = sci([replace(DATABASE, energy_kwh=unknown("kWh"))], exactly(1.0), HOUR)
    assert missing.score.state == "unbounded"
    assert sci([DATABASE], exactly(0.0), HOUR).score.state == "unknown"


def test_a_consumers_and_a_providers_score():
    used = [replace(DATABASE, name=s, stage=s) for s in STAGES["consumer"]]
    consumer = sci_ai("consumer", used, exactly(1e6), TOKENS, "effective")
    assert consumer.sci.score.value == pytest.approx(2 * 50.76044, rel=1e-6)
    assert (consumer.normalisation, consumer.findings) == ("effective", ())
    flop = FunctionalUnit(name="FLOP", plural="FLOP", per=1e15)
    trained = [replace(DATABASE, name="training", stage="development")]
    provider = sci_ai("provider", trained, exactly(1e18), flop)
    assert [f.code for f in provider.findings] == ["CL399"]
    assert "no inception and no deployment and no retirement" in provider.findings[0].message


def test_units_and_stages_belong_to_one_of_the_scores():
    with pytest.raises(UsageError, match="no functional unit of a provider"):
        sci_ai("provider", [replace(DATABASE, stage="development")], exactly(1.0), TOKENS)
    with pytest.raises(UsageError, match="development"):
        sci_ai("consumer", [replace(DATABASE, stage="development")], exactly(1.0), TOKENS)
    with pytest.raises(UsageError, match="None"):
        sci_ai("consumer", [DATABASE], exactly(1.0), TOKENS)
