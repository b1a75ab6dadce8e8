"""Hours of use of hardware: the part of a piece that was used, each device's time once, names as recorded."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carbonlens.accounting.asset_hours import Occupied, asset_hours, device_part
from carbonlens.domain.asset import Asset
from carbonlens.domain.units import US_PER_HOUR

SERVER = Asset(
    asset_id="srv", hardware="server", count=1, site="lab", purchased="2026-01-01", devices=("h1",)
)
GPUS = tuple(f"GPU-{n:08x}-aaaa" for n in range(8))


def time(run, start, end, *devices, host="h1", **more):
    """Return the time of a run, in hours."""
    return Occupied(
        run=run,
        hosts=(host, f"machine-{host}"),
        devices=devices,
        start_us=int(start * US_PER_HOUR),
        end_us=int(end * US_PER_HOUR),
        **more,
    )


def hours(asset, *times):
    found = asset_hours(asset, times)
    return found.hours, [f.code for f in found.findings]


def with_(asset, **changes):
    from msgspec.structs import replace

    return replace(asset, **changes)


def test_two_of_eight_devices_are_a_quarter_of_the_piece():
    eight = with_(SERVER, devices_each=8)
    assert hours(eight, time("a", 0, 4, *GPUS[:2])) == (pytest.approx(1.0), [])


def test_named_devices_share_the_pieces():
    named = with_(SERVER, devices=GPUS)
    found = asset_hours(named, [time("a", 0, 4, *GPUS[:2])])
    assert found.hours == pytest.approx(1.0)
    # The others are idle, or written otherwise: no warning.
    assert [(f.code, f.severity) for f in found.findings] == [("CL492", "info")]
    each_a_piece = with_(SERVER, devices=GPUS[:2], count=2)
    assert hours(each_a_piece, time("a", 0, 4, *GPUS[:2])) == (pytest.approx(8.0), [])
    # Two of sixteen pieces are named: neither stands for eight.
    assert device_part(with_(SERVER, count=16), named=2) == 1.0


def test_the_same_time_on_a_device_or_a_host_counts_once():
    eight = with_(SERVER, devices_each=8)
    assert hours(eight, time("a", 0, 4, GPUS[0]), time("b", 2, 6, GPUS[0]))[0] == pytest.approx(6 / 8)
    assert hours(SERVER, time("a", 0, 4), time("b", 2, 6)) == (pytest.approx(6.0), [])


def test_a_whole_piece_is_counted_where_nobody_says_how_many_devices_it_has():
    assert hours(SERVER, time("a", 0, 4, *GPUS[:2])) == (pytest.approx(4.0), ["CL491"])


def test_a_device_is_named_by_its_id_or_the_begin_of_one():
    by_begin = with_(SERVER, devices=("gpu-00000003",))
    assert hours(by_begin, time("a", 0, 4, *GPUS)) == (pytest.approx(4.0), [])
    assert hours(with_(SERVER, devices=("0",)), time("a", 0, 4, "0", "1")) == (pytest.approx(4.0), [])


@pytest.mark.parametrize("name", ["GPU-", "GPU-0", "GPU-ffff", "other-host"])
def test_a_name_that_no_run_records_is_said(name):
    found = asset_hours(with_(SERVER, devices=(name,)), [time("a", 0, 4, *GPUS)])
    assert found.hours is None
    assert [(f.code, name in f.message) for f in found.findings] == [("CL492", True)]


def test_a_machine_is_found_after_a_reboot():
    assert hours(with_(SERVER, devices=("machine-h1",)), time("a", 0, 1), time("b", 2, 3, host="h1")) == (
        2.0,
        [],
    )


def test_runs_of_the_hardware_at_the_site_are_on_an_asset_without_devices():
    loose = with_(SERVER, devices=())
    on = time("a", 0, 4, hardware="server", site="lab")
    assert hours(loose, on, time("b", 0, 4, hardware="server", site="other")) == (4.0, [])
    assert hours(loose, time("b", 0, 4, hardware="box", site="lab")) == (None, [])


@given(
    st.lists(st.tuples(st.integers(0, 50), st.integers(1, 50), st.sets(st.sampled_from(GPUS), min_size=1)))
)
def test_hours_never_exceed_the_piece_and_are_those_of_each_device(runs):
    eight = with_(SERVER, devices_each=8)
    times = [time(str(n), start, start + length, *sorted(d)) for n, (start, length, d) in enumerate(runs)]
    found = asset_hours(eight, times).hours or 0.0
    busy = {(d, h) for start, length, ds in runs for d in ds for h in range(start, start + length)}
    assert found == pytest.approx(len(busy) / 8)
    assert found <= 100 + 1e-9


def test_a_run_without_devices_and_one_on_them_use_a_host_once():
    eight = with_(SERVER, devices_each=8)
    assert hours(eight, time("g", 0, 10, *GPUS), time("c", 0, 10)) == (pytest.approx(10), [])
    # Two of eight for 10 h, of which the whole host for 4 h.
    assert hours(eight, time("g", 0, 10, *GPUS[:2]), time("c", 8, 12)) == (pytest.approx(8 / 4 + 4), [])


def test_all_devices_of_a_named_host_count_where_one_is_named_too():
    both = with_(SERVER, devices=("h1", GPUS[0]), devices_each=8)
    assert hours(both, time("g", 0, 10, *GPUS[:2])) == (pytest.approx(2.5), [])
    # On a host that is not named the device that is, counts alone.
    assert hours(both, time("g", 0, 10, *GPUS[:2], host="h2"))[0] == pytest.approx(1.25)
