"""Cost of clouds and rented devices: bills before prices, prices of instances and of devices."""

import pytest

from carbonlens.domain.units import US_PER_HOUR
from tests.app import statement_case as case
from tests.app.costs_case import CLOUD, DAY_US, PRICES, START_US, asking, charge, codes, parts, run


@pytest.fixture
def ask(tmp_path):
    return asking(tmp_path)


def test_a_cloud_costs_its_bill_and_no_electricity_beside_it(ask):
    lines = [charge("a", 100, "USD", end=START_US + 10 * US_PER_HOUR, resource_id="i-1")]
    statement = ask(*lines, runs=[run("r", tags={"instance_id": "i-1"})], sites=CLOUD, prices_csv=PRICES)
    (line,) = [x for x in statement.lines if x.site_id == "aws"]
    assert not [n for n in line.amounts if n.startswith("electricity.")]
    assert statement.total.estimate("electricity.EUR").state == "known"
    assert statement.cost.totals["USD"].state == "known"
    assert statement.cost.totals["USD"].value == 100
    edge = float(case.it_kwh("edge")) * 0.5
    assert statement.cost.totals["EUR"].value == pytest.approx(float(case.cost()) + edge)


def test_runs_of_an_undeclared_place_that_a_bill_covers_have_no_electricity(ask):
    lines = [charge("a", 100, "USD", end=START_US + 10 * US_PER_HOUR, resource_id="i-1")]
    rented = run("r", site=None, zone="FR", tags={"instance_id": "i-1"})
    statement = ask(*lines, runs=[rented], prices_csv=PRICES)
    (line,) = [x for x in statement.lines if x.site_id == "zone:FR"]
    assert not [n for n in line.amounts if n.startswith("electricity.")]


def test_instances_that_no_bill_covers_take_the_price_of_their_day(ask):
    """Two runs share an instance: 10 hours at the list price; later ones at the agreed one."""
    tags = {"instance_type": "p5.48xlarge", "instance_id": "i-1"}
    later = START_US + 10 * DAY_US
    runs = [run("r", tags=tags), run("s", tags=tags), run("t", tags=tags, start=later, hours=2)]
    statement = ask(runs=runs, sites=CLOUD, prices_csv=PRICES)
    found = {x.label: x.amount.value for x in statement.cost.lines if x.name == "cloud_hours"}
    assert found == {
        "aws:p5.48xlarge at aws, list price": pytest.approx(900),
        "aws:p5.48xlarge at aws, contracted price": pytest.approx(120),
    }
    values = {f.figure_id for f in statement.figures}
    assert {"p5", "p5-ours"} <= values


def test_a_bill_comes_before_a_price_and_both_stand_apart(ask):
    tags = {"instance_type": "p5.48xlarge"}
    runs = [
        run("r", tags={**tags, "instance_id": "i-1"}),
        run("s", tags={**tags, "instance_id": "i-2"}, start=START_US + 20 * DAY_US, hours=1),
    ]
    lines = [charge("a", 500, "USD", end=START_US + 10 * US_PER_HOUR, resource_id="i-1")]
    statement = ask(*lines, runs=runs, sites=CLOUD, prices_csv=PRICES)
    assert parts(statement, "cloud") == {(None, None): 500}
    assert parts(statement, "cloud_hours") == {("aws", None): pytest.approx(60)}
    assert statement.cost.totals["USD"].value == pytest.approx(560)


def test_a_cloud_run_without_type_or_bill_is_of_unknown_cost(ask):
    statement = ask(runs=[run("r")], sites=CLOUD)
    assert parts(statement, "cloud_hours") == {("aws", None): None}
    assert "CL497" in codes(statement)
    assert statement.cost.totals["EUR"].state == "unbounded"
    typed = ask(runs=[run("s", tags={"instance_type": "x1"})], sites=CLOUD)
    assert "CL336" in codes(typed)


def test_the_tariff_of_a_cloud_is_not_used_and_that_is_said(ask):
    tariff = case.TARIFFS + case.TARIFFS.replace('"lab-2026"', '"t"').replace('"lab"', '"aws"')
    statement = ask(runs=[run("r")], sites=CLOUD, tariffs_toml=tariff)
    assert "CL499" in codes(statement)
    (line,) = [x for x in statement.lines if x.site_id == "aws"]
    assert not [n for n in line.amounts if n.startswith("electricity.")]


def test_hours_of_an_instance_that_its_bill_does_not_cover_are_priced(ask):
    """A day of the bill covers 24 of 34 hours; storage in the region covers none."""
    tags = {"instance_type": "p5.48xlarge", "instance_id": "i-1"}
    lines = [
        charge("day", 100, "USD", end=START_US + DAY_US, resource_id="i-1"),
        charge("disk", 1, "USD", service="S3", region="eu-west-3"),
    ]
    statement = ask(*lines, runs=[run("r", hours=34, tags=tags)], sites=CLOUD, prices_csv=PRICES)
    assert parts(statement, "cloud_hours") == {("aws", None): pytest.approx(900)}
    assert statement.cost.totals["USD"].value == pytest.approx(1001)


def test_hours_that_a_bill_of_the_region_may_hold_leave_a_lower_bound(ask):
    line = charge("all", 100, "USD", service="EC2", region="eu-west-3")
    runs = [run("r", tags={"instance_type": "p5.48xlarge"})]
    statement = ask(line, runs=runs, sites=CLOUD, prices_csv=PRICES)
    assert parts(statement, "cloud_hours") == {("aws", None): None}
    assert "CL455" in codes(statement)
    assert statement.cost.totals["USD"].value == 100
    assert statement.cost.totals["USD"].state == "unbounded"


DEVICE_PRICES = PRICES + (
    "ours,gpu:H100,,device_hour,3,USD,contracted,2026-01-01,0,s,a,2026-01-01\n"
    "list,gpu:A100,,device_hour,2,USD,list,2026-01-01,0,s,a,2026-01-01\n"
)


def on_devices(name, *devices, hardware="NVIDIA H100 80GB HBM3", **fields):
    from msgspec.structs import replace

    return replace(run(name, **fields), hardware=hardware, device_uuids=devices)


def of_hours(statement):
    return {
        x.label: (x.amount.value, x.amount.state) for x in statement.cost.lines if x.name == "cloud_hours"
    }


def test_devices_that_no_bill_covers_cost_their_hours_at_the_price_of_a_device(ask):
    """Ten hours on two devices, of which another run shares one: 20 device hours at 3 USD."""
    runs = [on_devices("r", "GPU-a", "GPU-b"), on_devices("s", "GPU-b")]
    statement = ask(runs=runs, sites=CLOUD, prices_csv=DEVICE_PRICES)
    assert of_hours(statement) == {"gpu:H100 at aws, contracted price": (pytest.approx(60), "known")}
    own = [f for f in statement.figures if f.figure_id.endswith(".cloud_hours") and ".in_" not in f.figure_id]
    assert [(f.inputs, f.formula) for f in own] == [(("ours",), "20 device_hour * 3 USD/device_hour")]
    assert "ours" in {f.figure_id for f in statement.figures}


def test_a_bill_or_a_price_of_the_instance_comes_before_that_of_its_devices(ask):
    tags = {"instance_id": "i-1"}
    runs = [
        on_devices("r", "GPU-a", tags=tags),
        on_devices("s", "GPU-b", tags={"instance_type": "p5.48xlarge"}),
        on_devices("t", "GPU-c", tags={"instance_type": "unpriced"}),
    ]
    lines = [charge("a", 500, "USD", end=START_US + 10 * US_PER_HOUR, resource_id="i-1")]
    statement = ask(*lines, runs=runs, sites=CLOUD, prices_csv=DEVICE_PRICES)
    assert of_hours(statement) == {
        "aws:p5.48xlarge at aws, list price": (pytest.approx(900), "known"),
        "gpu:H100 at aws, contracted price": (pytest.approx(30), "known"),
    }


def test_devices_are_counted_by_what_runs_say_of_them_and_are_a_lower_bound_else(ask):
    runs = [
        on_devices("r", hardware="4 x NVIDIA A100-SXM4-80GB"),
        on_devices("s", tags={"device_type": "H100", "devices": "8"}, hardware="AMD EPYC 9334 x64"),
        on_devices("t", hardware="NVIDIA A100"),
    ]
    statement = ask(runs=runs, sites=CLOUD, prices_csv=DEVICE_PRICES)
    assert of_hours(statement) == {
        "gpu:A100 at aws, list price": (pytest.approx(80), "known"),
        "gpu:H100 at aws, contracted price": (pytest.approx(240), "known"),
        "gpu:A100 at aws, list price, one device a run at least": (pytest.approx(20), "unbounded"),
    }
    assert "CL459" in codes(statement)
    assert statement.cost.totals["USD"].state == "unbounded"


def test_a_slice_of_a_device_is_not_priced_as_a_device(ask):
    statement = ask(runs=[on_devices("r", "MIG-a")], sites=CLOUD, prices_csv=DEVICE_PRICES)
    assert of_hours(statement) == {"cloud of aws, no price": (None, "unknown")}
    assert "CL497" in codes(statement)


def test_an_own_price_of_devices_counts_at_a_place_that_is_not_declared_and_holds_its_electricity(ask):
    runs = [on_devices("r", "GPU-a", site=None, zone="FR"), run("s", site=None, zone="FR")]
    statement = ask(runs=runs, prices_csv=DEVICE_PRICES)
    assert of_hours(statement) == {
        "gpu:H100 at zone:FR, contracted price": (pytest.approx(30), "known"),
        "cloud of zone:FR, no price": (None, "unknown"),
    }
    (line,) = [x for x in statement.lines if x.site_id == "zone:FR"]
    assert not [n for n in line.amounts if n.startswith("electricity.")]
    assert statement.cost.totals["USD"].state == "unbounded"


def test_a_bundled_price_of_devices_is_no_claim_that_a_place_is_rented(ask):
    statement = ask(runs=[on_devices("r", "GPU-a", site=None, zone="FR")], prices_csv=PRICES)
    assert of_hours(statement) == {}


def test_the_price_of_devices_is_not_added_to_own_hardware_and_that_is_said(ask):
    statement = ask(runs=[on_devices("r", "GPU-a", site="lab")], prices_csv=DEVICE_PRICES)
    assert of_hours(statement) == {}
    assert "CL468" in codes(statement)
