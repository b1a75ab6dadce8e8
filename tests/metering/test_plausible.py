"""What no device draws is no figure, whatever told it; the rest of the run stays."""

from decimal import Decimal

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from carbonlens.domain.sources import DatasheetDevice
from carbonlens.errors import MeasurementError
from carbonlens.metering.cpu_calibration import by_hand
from carbonlens.metering.cpu_device import MOST_TDP_W, Tdp, stated_curve, unusable_tdp
from carbonlens.metering.cpu_families import Processor
from carbonlens.metering.plausible import MACHINE_W, impossible, most_w
from carbonlens.metering.sensors import VOID, Channel
from carbonlens.metering.sensors.datasheet import DatasheetSensor
from carbonlens.metering.sensors.rapl import RaplSensor
from carbonlens.metering.tally import Tally
from tests.metering.powercap import Powercap
from tests.metering.test_sealing import CURVE, MODEL, both_curves, codes, power, rapl, sealed, total, wall

PACKAGE = rapl(("package-0", "cpu"), max_range=262_143.0)


def counted(values, *, pace_s=0.1):
    return [(k * pace_s, (v,)) for k, v in enumerate(values)]


@pytest.mark.parametrize(
    ("values", "joules"),
    [
        # A counter that was set back, whose range makes a wrap of it.
        ([199_980.0, 199_990.0, 200_000.0, 5.0, 15.0, 25.0], 40),
        # One that was set forward.
        ([5.0, 15.0, 25.0, 200_000.0, 200_010.0, 200_020.0], 40),
    ],
)
def test_a_counter_that_jumps_gains_nothing_by_it(values, joules):
    (cpu,) = sealed([PACKAGE], counted(values)).readings
    assert float(cpu.energy_j) == pytest.approx(joules)
    assert cpu.state == "unbounded"
    assert cpu.covered_s == pytest.approx(0.4)


@given(st.sampled_from([0.0, 1.0, 2e5, 1e12, 1e300, -5.0]), st.integers(1, 8))
def test_one_impossible_reading_among_good_ones_adds_no_energy_and_costs_little(garbage, at):
    values = [100_000.0 + 10.0 * k for k in range(10)]
    values[at] = garbage
    tally = Tally([PACKAGE])
    for t_s, row in counted(values):
        tally.add(0, round(t_s * 1e6), row)
    gained = tally.finish(900_000)[0][0]
    # What fell is a reset on either side, and the two steps are not known.
    assert 70.0 - 1e-6 <= gained.amount <= 90.0 + 1e-6


@pytest.mark.parametrize("watts", [1e12, 1e300, 60_000.0, -200.0])
@pytest.mark.parametrize("kind", ["instant", "average"])
def test_a_power_that_cannot_be_is_unknown_and_said(watts, kind):
    result = sealed([MODEL, power(kind)], [(t, (t,), (watts,)) for t, _ in steady()])
    gpu = next(r for r in (*result.readings, *result.beside) if r.component == "gpu")
    assert (gpu.energy_j, gpu.state) == (None, "unknown")
    assert "CL118" in codes(result)
    assert total(result).value is None or total(result).state == "unbounded"


def steady(seconds=2.0, pace_s=0.1):
    return [(k * pace_s, ()) for k in range(round(seconds / pace_s) + 1)]


@pytest.mark.parametrize("watts", [1e12, 1e300])
def test_an_absurd_meter_at_the_wall_leaves_the_parts_and_is_named(watts):
    rows = [(t, (t / 2,), (watts * t,)) for t, _ in steady()]
    result = sealed([MODEL, wall()], rows)
    assert [(r.component, r.energy_j) for r in result.readings] == [("cpu", Decimal("2.000000"))]
    assert {"CL114", "CL118"} <= set(codes(result))


@given(st.floats(-1e6, -1e-6))
def test_less_than_no_energy_is_no_figure(joules):
    """A calibration may take off more than was read."""
    assert impossible(joules, 2.0, 100.0).code == "CL118"
    assert impossible(0.0, 2.0, 100.0) is None


@pytest.mark.parametrize("full_w", [1e300, 1e12])
def test_an_absurd_curve_of_the_cpu_destroys_no_record(full_w):
    curve = msgspec.structs.replace(CURVE, full_w_per_thread=full_w)
    rows = [(0, (0.0,)), (1, (1.0,))]
    for info in (
        msgspec.structs.replace(MODEL, curve=curve),
        msgspec.structs.replace(both_curves(), device_curve=curve),
    ):
        result = sealed([info], rows)
        assert result.readings[0].energy_j is None
        assert "CL118" in codes(result)


def test_work_that_used_no_cpu_time_is_unknown_and_never_known_to_be_0():
    result = sealed([MODEL], [(0, (7.0,)), (0.001, (7.0,))])
    assert total(result).state == "unknown"
    assert "CL158" in codes(result)


def test_a_void_counter_tells_nothing_of_what_came_before():
    rows = [(t, (t,), (500.0 * t,) if t < 1.5 else (VOID,)) for t, _ in steady()]
    result = sealed([MODEL, wall()], rows)
    assert [r.component for r in result.readings] == ["cpu"]
    assert all(r.component != "wall" for r in result.beside)
    assert "CL114" in codes(result)


@pytest.mark.parametrize("digits", [25, 400, 5000])
def test_a_range_or_a_limit_of_any_length_is_read_as_none(tmp_path, digits):
    tree = Powercap(tmp_path / "powercap")
    counter = tree.zone("intel-rapl:0", "package-0", 5_000_000)
    for name in ("max_energy_range_uj", "constraint_0_max_power_uw"):
        (counter.parent / name).write_text("9" * digits)
    sensor = RaplSensor(tree.root)
    (channel,) = sensor.info.channels
    assert (channel.max_range, channel.most_w) == (None, None)
    assert sensor.read(edge=True) == (5.0,)
    sensor.close()


def test_the_limits_of_a_package_bound_its_power(tmp_path):
    tree = Powercap(tmp_path / "powercap")
    folder = tree.zone("intel-rapl:0", "package-0").parent
    assert RaplSensor(tree.root).info.channels[0].most_w is None
    (folder / "constraint_0_max_power_uw").write_text("125000000\n")
    (folder / "constraint_1_power_limit_uw").write_text("253000000\n")
    info = RaplSensor(tree.root).info
    assert info.channels[0].most_w == pytest.approx(506.0)
    assert most_w(info, info.channels[0]) == pytest.approx(506.0)
    # Firmware's way to say that there is none.
    (folder / "constraint_1_power_limit_uw").write_text("4095875000\n")
    assert RaplSensor(tree.root).info.channels[0].most_w is None


def test_a_declared_source_may_hold_many_devices():
    sensor = DatasheetSensor(DatasheetDevice(device="rack", power_w=12_000.0, source="s", component="gpu"))
    assert most_w(sensor.info, sensor.info.channels[0]) == MACHINE_W
    assert most_w(power(), Channel(device="g", component="gpu")) < MACHINE_W


@pytest.mark.parametrize("watts", [1e300, 2 * MACHINE_W])
def test_absurd_watts_are_refused_where_they_are_given(watts):
    with pytest.raises(MeasurementError):
        by_hand(watts / 4, watts, meter="plug", meter_95=0.01)
    tdp = Tdp(watts=watts, source="declared by the user", threads=16)
    assert stated_curve(tdp, Processor()) is None
    assert f"{MOST_TDP_W:g}" in unusable_tdp(tdp, Processor()).mend


def test_a_stored_curve_of_absurd_watts_makes_no_sense():
    found = by_hand(50.0, 180.0, meter="plug", meter_95=0.02, threads=12)
    assert found.makes_sense
    absurd = msgspec.structs.replace(found, full_w=msgspec.structs.replace(found.full_w, value=1e300))
    assert not absurd.makes_sense
