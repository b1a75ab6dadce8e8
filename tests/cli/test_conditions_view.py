"""What is printed of a run's conditions: what is known, and nothing where nothing is."""

import pytest

from carbonlens.cli.conditions_view import condition_lines
from carbonlens.domain.run import Conditions, DeviceConditions, Run


def lines(**conditions):
    return condition_lines(Run(run_id="r", conditions=Conditions(wall_s=1.0, **conditions)))


def test_what_nobody_told_is_not_printed():
    assert condition_lines(Run(run_id="r")) == []
    assert lines() == []
    assert lines(devices=(DeviceConditions(device="cpu0"),)) == ["cpu0: tells nothing"]


def test_all_that_is_known_is_printed():
    gpu = DeviceConditions(
        device="GPU-aaaaaaaa-1111-2222-3333-444444444444",
        clock_mhz=1755.4,
        lowest_clock_mhz=1200.0,
        temperature_c=64.0,
        power_cap_w=700.0,
        memory_bytes=12_300_000_000,
    )
    first, second = lines(
        cpu_s=2.5, load_1m=3.25, steal_s=0.5, throttled_s=1.5, peak_rss_bytes=1_500_000_000, devices=(gpu,)
    )
    assert first == (
        "2.5 s of CPU time, load 3.25, 0.5 s stolen by the hypervisor, 1.5 s slowed by heat or a fault, "
        "memory up to 1.5 GB"
    )
    assert second == (
        "GPU-aaaaaaaa-1111-2222-…: 1755 MHz (lowest 1200), up to 64 °C, cap 700 W, memory up to 12.3 GB"
    )


@pytest.mark.parametrize("field", ["steal_s", "throttled_s"])
def test_what_took_nothing_is_no_news(field):
    assert lines(**{field: 0.0}) == []
