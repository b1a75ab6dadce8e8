"""The score of recorded runs against plain sums; what is missing is named and leaves no score."""

from decimal import Decimal

import pytest

from carbonlens.app.sci import make_sci
from carbonlens.errors import SelectionError, UsageError
from tests.app import sci_case as case

SERVED_KWH = 2 * case.SERVING
ALL_KWH = SERVED_KWH + 1


def score(folder, unit="request", **options):
    given = {"study": "chat"} if not {"study", "period"} & set(options) else {}
    return make_sci(
        unit,
        inventory=folder / "inventory",
        factors=folder / "factors.csv",
        ledger=folder / "ledger",
        **given,
        **options,
    )


def written(tmp_path, runs, **options):
    case.write(tmp_path, runs, **options)
    return tmp_path


def plain_grams(kwh, hours, requests):
    """Return g per request in plain Decimals: E with host overhead and PUE once, times I, and M by hours."""
    operational = Decimal(kwh) * case.HOST * case.PUE * case.GRID
    embodied = Decimal(case.EACH_KG) * Decimal(hours) / Decimal(case.LIFE_H)
    return float((operational + embodied) * 1000 / Decimal(requests))


def codes(scored):
    return {f.code for f in scored.findings}


def test_a_score_is_that_of_plain_decimals_with_headroom_in_it(tmp_path):
    scored = score(written(tmp_path, [*case.served(), case.headroom()]))
    requests = case.SERVING * case.REQUESTS
    assert scored.score.value == pytest.approx(plain_grams(ALL_KWH, case.SERVING + 1, requests), rel=1e-9)
    assert scored.score.low < scored.score.value < scored.score.high
    assert scored.sci.missing == ()
    assert "CL300" not in codes(scored)
    # One sensor, one grid factor and one maker's figure: each common to all components.
    assert {"sensor:gpu", "grid:DE:Test table"} & set(scored.score.u_by_source)


def test_every_input_is_told_with_its_source_and_evidence(tmp_path):
    scored = score(written(tmp_path, case.served()))
    (built,) = scored.built
    inputs = {i.symbol: i for i in built.inputs}
    assert set(inputs) == {"E device", "E it", "E", "PUE", "host", "I", "TE", "M"}
    assert inputs["E"].evidence == "measured"
    assert "B 100%" in inputs["E"].source
    assert (inputs["PUE"].evidence, inputs["PUE"].source) == ("stated", "test")
    assert inputs["I"].estimate.value == pytest.approx(0.4)
    assert "Germany" in inputs["I"].source
    assert "own/DE" in inputs["I"].source
    assert "2026-05" in inputs["I"].source
    assert (inputs["TE"].source, inputs["TE"].evidence) == ("Maker", "stated")
    assert (inputs["TE"].estimate.low, inputs["TE"].estimate.high) == pytest.approx((100, 225))
    assert inputs["M"].evidence == "modelled"
    assert f"10 h / {case.LIFE_H} h" in inputs["M"].source
    assert scored.boundary.how == "counted by 10 runs"


def test_per_a_thousand_is_a_thousand_times_per_one(tmp_path):
    folder = written(tmp_path, case.served())
    one, many = score(folder), score(folder, per=1000)
    assert many.score.value == pytest.approx(one.score.value * 1000)
    assert many.score.unit == "g per 1000 requests"


@pytest.mark.parametrize(
    ("change", "missing", "why"),
    [
        ({"assets": None}, "M of lab, serving", "no asset holds 10 h on gpu-x"),
        ({"assets": case.ASSET.replace("gpu-x", "gpu-y")}, "M of lab, serving", "no asset holds 10 h"),
        ({"assets": case.ASSET.replace("2026-01-01,4", "2026-01-01,")}, "M of lab, serving", "no life"),
        ({"sites": case.case.SITES.replace("pue = 1.25\n", "")}, "E of lab, serving in part", "PUE"),
        ({"sites": case.case.SITES.replace('zone = "DE"\n', "")}, "I of lab, serving", "no factor"),
    ],
)
def test_a_missing_input_is_named_and_leaves_no_score(tmp_path, change, missing, why):
    scored = score(written(tmp_path, case.served(), **change))
    assert (scored.score.value, scored.score.state) == (None, "unknown")
    assert any(name.startswith(missing) for name in scored.sci.missing)
    (found,) = [f for f in scored.findings if f.code == "CL300"]
    assert found.severity == "error"
    assert why in found.message
    figures = {f.figure_id: f.estimate for f in scored.figures}
    assert figures["sci.study:chat.request.score"].value is None
    if scored.at_least is not None:
        assert figures["sci.study:chat.request.at_least"].value > 0


@pytest.mark.parametrize(
    ("runs", "why"),
    [
        (case.served(units=None), "10 runs do not say how many requests"),
        (case.served(units=None, unit=None), "10 runs do not say how many requests"),
        ([case.headroom()], "no run counts requests"),
        ([*case.served(), case.run(40, "serving", study="chat")], "1 run does not say how many requests"),
    ],
)
def test_work_that_nobody_counts_leaves_no_score(tmp_path, runs, why):
    folder = written(tmp_path, runs)
    scored = score(folder)
    assert scored.score.value is None
    assert scored.sci.missing == ("R",)
    assert scored.at_least is None
    stated = score(folder, units=5000.0)
    assert stated.score.value > 0
    assert stated.boundary.is_stated
    assert any(why in f.message for f in scored.findings if f.code == "CL300")


def test_runs_of_another_unit_are_left_out_and_said_so(tmp_path):
    others = [case.run(31, "serving", 3, units=Decimal(7), unit="images")]
    scored = score(written(tmp_path, [*case.served(), *others]))
    requests = case.SERVING * case.REQUESTS
    assert scored.score.value == pytest.approx(plain_grams(SERVED_KWH, case.SERVING, requests))
    (found,) = [f for f in scored.findings if f.code == "CL329"]
    assert "images" in found.message
    assert "3 kWh" in found.message


def test_market_instruments_do_not_lower_the_score_and_it_says_so(tmp_path):
    folder = written(tmp_path, case.served())
    with_them = score(folder)
    (folder / "inventory" / "certificates.toml").unlink()
    without = score(folder)
    assert with_them.score.value == without.score.value
    assert "CL463" in codes(with_them)
    assert "CL463" not in codes(without)


def test_a_score_of_a_step_and_of_steps_together(tmp_path):
    runs = [*case.served(step="fp32")[:5], *case.served(step="int8")[5:]]
    folder = written(tmp_path, runs)
    assert any("2 steps" in f.message for f in score(folder).findings)
    one = score(folder, step="int8")
    assert one.boundary.count.value == 5 * case.REQUESTS
    assert "CL329" not in codes(one)


def test_a_period_holds_all_studies(tmp_path):
    runs = [*case.served()[:5], *case.served(study="other")[5:]]
    folder = written(tmp_path, runs)
    assert score(folder, period=case.PERIOD).boundary.count.value == case.SERVING * case.REQUESTS
    assert score(folder, study="other").boundary.count.value == 5 * case.REQUESTS


def test_sci_for_ai_takes_stages_from_roles_and_tags(tmp_path):
    training = case.run(30, "training", 5, units=Decimal(10**6), unit="training tokens")
    stopped = case.run(31, "training", 4, units=Decimal(10**5), unit="training tokens")
    watching = case.run(32, "other", 1, tags={"stage": "monitoring"})
    tokens = {"unit": "tokens"}
    folder = written(tmp_path, [*case.served(**tokens), case.headroom(), training, stopped, watching])
    consumer = score(folder, "token", ai="consumer")
    assert {b.part for b in consumer.built} == {"operation", "monitoring"}
    energy = sum(b.component.energy_kwh.value for b in consumer.built)
    assert energy == pytest.approx((ALL_KWH + 1) * 1.1 * 1.25)
    assert "CL399" not in codes(consumer)
    provider = score(folder, "training token", ai="provider", per=1e6, normalisation="effective")
    assert [b.part for b in provider.built] == ["development"]
    assert provider.boundary.count.value == 1_100_000
    assert provider.sci.components[0].energy_kwh.value == pytest.approx(9 * 1.1 * 1.25)
    assert provider.normalisation == "effective"
    assert "CL399" in codes(provider)
    with pytest.raises(UsageError, match="functional unit"):
        score(folder, "request", ai="consumer")


def test_a_provider_counts_all_training_whatever_it_counts(tmp_path):
    training = case.run(30, "training", 5, units=Decimal(10), unit="epochs")
    folder = written(tmp_path, [training])
    scored = score(folder, "FLOP", ai="provider", units=1e18, per=1e15)
    assert scored.score.value > 0
    assert score(folder, "FLOP", ai="provider").sci.missing == ("R",)


def test_two_of_eight_devices_are_a_quarter_of_a_piece(tmp_path):
    asset = (
        "id,hardware,site,purchased,life_years,embodied_kg,embodied_low_kg,embodied_high_kg,"
        f"embodied_source,devices_each\na,gpu-x,lab,2026-01-01,4,{case.EACH_KG},100,225,Maker,8\n"
    )
    runs = case.served(device_uuids=("GPU-a", "GPU-b"))
    (built,) = score(written(tmp_path, runs, assets=asset)).built
    share = built.component.embodied[0]
    assert (share.reserved_h, share.reserved, share.available) == (2 * case.SERVING, 1, 8)
    expected = case.EACH_KG * case.SERVING / 4 / case.LIFE_H
    assert built.component.embodied_kg.value == pytest.approx(expected)


def test_inputs_of_every_figure_are_figures_records_or_lists_of_runs(tmp_path):
    scored = score(written(tmp_path, [*case.served(), case.headroom()]))
    known = {f.figure_id for f in scored.figures} | set(scored.runs_of)
    missing = {i for f in scored.figures for i in f.inputs if i not in known and not i.startswith("asset:")}
    assert missing == set()


@pytest.mark.parametrize(
    ("options", "error", "what"),
    [
        ({"study": "nobody"}, SelectionError, "no study"),
        ({"study": "chat", "step": "nobody"}, SelectionError, "no run"),
        ({"study": None, "period": None}, UsageError, "software boundary"),
        ({"study": "chat", "per": 0.0}, UsageError, "--per"),
        ({"study": "chat", "units": -1.0}, UsageError, "--units"),
    ],
)
def test_what_is_no_question_is_refused(tmp_path, options, error, what):
    folder = written(tmp_path, case.served())
    with pytest.raises(error, match=what):
        score(folder, **options)


def test_hours_on_hardware_that_was_not_there_leave_m_known_in_part(tmp_path):
    later = case.ASSET + f"b,gpu-y,lab,2027-01-01,{case.LIFE_YEARS},1000,,,Maker\n"
    runs = [*case.served()[:5], *case.served(hardware="gpu-y")[5:]]
    scored = score(written(tmp_path, runs, assets=later))
    assert scored.score.value is None
    assert scored.sci.missing == ("M of lab, serving in part",)
    (found,) = [f for f in scored.findings if f.code == "CL300"]
    assert "asset b" in found.message
    assert "2027-01-01" in found.message


@pytest.mark.parametrize("scope", [{"study": "chat"}, {"period": case.PERIOD}])
def test_hardware_whose_life_is_used_up_carries_nothing_and_says_why(tmp_path, scope):
    used = (
        "id,hardware,site,purchased,used_hours,hours_before,embodied_kg,embodied_source\n"
        "a,gpu-x,lab,2026-01-01,5,100,150,Maker\n"
    )
    scored = score(written(tmp_path, case.served(), assets=used), **scope)
    assert scored.sci.embodied_kg.value == 0
    (m,) = [i for i in scored.built[0].inputs if i.symbol == "M"]
    assert "end of the expected life of asset a" in m.source


def test_hours_of_one_machine_count_once_over_all_parts(tmp_path):
    asset = (
        "id,hardware,site,purchased,life_years,embodied_kg,embodied_source,devices\n"
        f"a,gpu-x,lab,2026-01-01,{case.LIFE_YEARS},1000,Maker,host-1\n"
    )
    idle = [case.run(i, "idle", 1, host_id="host-1") for i in range(case.SERVING)]
    scored = score(written(tmp_path, [*case.served(host_id="host-1"), *idle], assets=asset))
    assert [b.part for b in scored.built] == ["idle", "serving"]
    assert scored.sci.embodied_kg.value == pytest.approx(1000 * case.SERVING / case.LIFE_H)


def test_headroom_of_another_service_is_not_in_the_score_of_a_period(tmp_path):
    images = [case.run(i, "serving", units=Decimal(100), unit="images", study="img") for i in range(11, 15)]
    idle = case.run(20, "idle", 1, study="img")
    scored = score(written(tmp_path, [*case.served(), *images, idle]), period=case.PERIOD)
    assert [b.part for b in scored.built] == ["serving"]
    assert any("5 runs belong to another unit" in f.message for f in scored.findings)


def test_no_unit_at_all_is_named(tmp_path):
    scored = score(written(tmp_path, case.served(units=Decimal(0))))
    assert scored.sci.missing == ("R",)
    assert any("R is 0" in f.message for f in scored.findings if f.code == "CL300")
