"""Perfetto's power rails: query results, counter events and binary traces."""

import builtins
import json
import zlib
from typing import ClassVar

import pytest

from carbonlens.errors import InputFileError
from carbonlens.importers.contract import Options
from carbonlens.importers.perfetto import IMPORTER
from carbonlens.importers.perfetto_rails import rail_of
from tests.conformance.binary_importers import BinaryContract
from tests.conformance.importers import ImporterContract
from tests.importers.reading import claimed, codes, read_text

BOOT_NS = 338_297_039_804_951
HEAD = '"ts","name","value"\n'
BIG, GPU, TPU = "power.rails.cpu.big", "power.rails.gpu", "power.S10M_VDD_TPU_uws"


def row(second, rail, joules):
    return f'{BOOT_NS + round(second * 1e9)},"{rail}",{joules * 1e6:.6f}\n'


def table(count=11, rails=((BIG, 2.0), (GPU, 1.0))):
    """Rails whose counters rise by some joules a second."""
    return HEAD + "".join(row(s, name, 100 + watts * s) for s in range(count) for name, watts in rails)


def events(count=11, rails=((BIG, 2.0), (GPU, 1.0))):
    told = [
        {"ph": "C", "name": name, "pid": 0, "ts": 338e9 + s * 1e6, "args": {"value": (50 + watts * s) * 1e6}}
        for s in range(count)
        for name, watts in rails
    ]
    lines = ",\n".join(json.dumps(e) for e in told)
    return '{"traceEvents":[\n' + lines + "\n]}\n"


class TestConformance(ImporterContract):
    """The contract of importers, on two rails over 10 s: 20 J and 10 J."""

    importer = IMPORTER
    files: ClassVar = {"rails.csv": table()}
    runs = 1
    energy_j = 30.0
    delimiter = ","
    essential = ("ts", "value", "name")
    clocks = True


class TestConformanceOfEvents(ImporterContract):
    """The contract on the same rails as counter events of a JSON trace."""

    importer = IMPORTER
    files: ClassVar = {"trace.json": events()}
    runs = 1
    energy_j = 30.0
    clocks = True
    header_lines = 1


def packets(count=11, *, clocks=False, deflated=False, sequence=1):
    """Return a binary trace, packet by packet, made with Perfetto's own messages."""
    pb = pytest.importorskip(
        "perfetto.protos.perfetto.trace.perfetto_trace_pb2",
        reason="perfetto is of an extra that is not installed",
    )
    made = []

    def packet():
        made.append(pb.TracePacket(trusted_uid=9999, trusted_packet_sequence_id=sequence))
        return made[-1]

    packet().trace_config.duration_ms = 10_000
    if clocks:
        snapshot = packet().clock_snapshot.clocks
        snapshot.add(clock_id=6, timestamp=BOOT_NS)
        snapshot.add(clock_id=1, timestamp=1_772_445_600_000_000_000)
    names = packet().power_rails.rail_descriptor
    names.add(index=0, rail_name="S2M_VDD_CPUCL2", subsys_name="CPU(BIG)", sampling_rate=1000)
    names.add(index=1, rail_name="S2S_VDD_G3D", subsys_name="GPU", sampling_rate=1000)
    for s in range(count):
        data = packet().power_rails.energy_data
        for index, watts in ((0, 2.0), (1, 1.0)):
            ms = BOOT_NS // 1_000_000 + s * 1000
            data.add(index=index, timestamp_ms=ms, energy=round((100 + watts * s) * 1e6))
    if deflated:
        inner = pb.Trace(packet=made).SerializeToString()
        made = [pb.TracePacket(compressed_packets=zlib.compress(inner))]
    return made


def binary(**how):
    pb = pytest.importorskip(
        "perfetto.protos.perfetto.trace.perfetto_trace_pb2",
        reason="perfetto is of an extra that is not installed",
    )
    return pb.Trace(packet=packets(**how)).SerializeToString()


class TestConformanceOfBinaryTraces(BinaryContract):
    """The contract on a trace of Perfetto's own messages."""

    importer = IMPORTER
    runs = 1
    energy_j = 30.0

    def sample(self):
        return {"trace.pftrace": binary()}


def test_a_rail_is_a_counter_of_a_component(tmp_path):
    got = read_text(IMPORTER, tmp_path, table(rails=((BIG, 2.0), (GPU, 1.0), (TPU, 0.5))))
    (run,) = got.runs
    assert {(r.component, r.devices[0]): float(r.energy_j) for r in run.energy} == {
        ("cpu", "cpu.big"): pytest.approx(20),
        ("gpu", "gpu"): pytest.approx(10),
        ("npu", "S10M_VDD_TPU"): pytest.approx(5),
    }
    assert {r.grade for r in run.energy} == {"B"}
    assert set(codes(got)) == {"CL245", "CL267"}


def test_the_standard_library_table_names_its_columns_otherwise(tmp_path):
    head = (
        '"id","ts","dur","power_rail_name","raw_power_rail_name","energy_since_boot",'
        '"energy_since_boot_at_end","average_power","energy_delta","track_id","value"\n'
    )
    rows = "".join(
        f'{i},{BOOT_NS + i * 10**9},1000000000,"{BIG}","S2M_VDD_CPUCL2",{i * 2e6},{i * 2e6 + 2e6},'
        f"2000.0,2000000.0,7,{i * 2e6}\n"
        for i in range(1, 12)
    )
    got = read_text(IMPORTER, tmp_path, head + rows)
    assert float(got.energy_j) == pytest.approx(20)
    assert got.runs[0].energy[0].devices == ("S2M_VDD_CPUCL2",)


def test_tabs_and_rows_of_other_counters_are_passed_over(tmp_path):
    text = table(rails=((BIG, 2.0), ("batt.charge_uah", 3.0))).replace(",", "\t")
    got = read_text(IMPORTER, tmp_path, text)
    assert float(got.energy_j) == pytest.approx(20)


def test_low_dropout_rails_stand_beside_their_feeding_buck(tmp_path):
    ldo, buck = "power.L9S_GNSS_CORE_uws", "power.S6M_LLDO1_uws"
    got = read_text(IMPORTER, tmp_path, table(rails=((ldo, 1.0), (buck, 3.0))))
    assert float(got.energy_j) == pytest.approx(30)
    assert [r.devices for r in got.runs[0].beside] == [("L9S_GNSS_CORE",)]
    assert "CL269" in codes(got)
    alone = read_text(IMPORTER, tmp_path, table(rails=((ldo, 1.0), (BIG, 3.0))))
    assert float(alone.energy_j) == pytest.approx(40), "no buck holds it here"


def test_a_counter_without_a_unit_is_left_aside(tmp_path):
    got = read_text(IMPORTER, tmp_path, table(rails=((BIG, 2.0), ("power.MYSTERY", 9.0))))
    assert float(got.energy_j) == pytest.approx(20)
    assert any(f.code == "CL269" and "MYSTERY" in f.message for f in got.findings)
    with pytest.raises(InputFileError, match="no power rail whose unit is told"):
        read_text(IMPORTER, tmp_path, table(rails=(("power.MYSTERY", 9.0),)))


def test_a_counter_that_wraps_is_said(tmp_path):
    rows = HEAD + "".join(row(s, BIG, 100 + s if s < 6 else s - 6) for s in range(11))
    got = read_text(IMPORTER, tmp_path, rows)
    assert any(f.severity != "info" and f.code not in {"CL245"} for f in got.findings)
    assert float(got.energy_j) <= 10


def test_start_places_the_times(tmp_path):
    start = 1_772_445_600_000_000
    (run,) = read_text(IMPORTER, tmp_path, table(), Options(start_us=start)).runs
    assert run.duration_s == pytest.approx(10)


@pytest.mark.parametrize(
    ("track", "component"),
    [
        ("power.rails.cpu.little", "cpu"),
        ("power.S9M_VDD_CPUCL0_M_uws", "cpu"),
        ("power.rails.memory.interface", "ram"),
        ("power.S4S_VDD2H_MEM_uws", "ram"),
        ("power.rails.display", "other"),
        ("power.VSYS_PWR_MODEM_uws", "other"),
    ],
)
def test_names_tell_components(track, component):
    assert rail_of(track).component == component


@pytest.mark.parametrize("track", ["batt.current_ua", "power.rail", "cpufreq", "power"])
def test_other_tracks_are_no_rails(track):
    assert rail_of(track) is None


def test_a_binary_trace_tells_when_it_was(tmp_path):
    got = read_text(IMPORTER, tmp_path, binary(clocks=True))
    (run,) = got.runs
    assert run.start_us == pytest.approx(1_772_445_600_000_000, abs=1000)
    assert [r.component for r in run.energy] == ["cpu", "gpu"]
    assert codes(got) == ["CL267"]


def test_deflated_packets_are_read(tmp_path):
    got = read_text(IMPORTER, tmp_path, binary(deflated=True))
    assert float(got.energy_j) == pytest.approx(30)


def test_a_binary_trace_without_rails_is_refused(tmp_path):
    with pytest.raises(InputFileError, match="holds no power rail"):
        read_text(IMPORTER, tmp_path, binary(count=0))


def test_without_the_package_the_way_out_is_named(tmp_path, monkeypatch):
    content = binary()
    real = builtins.__import__

    def missing(name, *args, **kwargs):
        if name.startswith("perfetto"):
            raise ImportError(name)
        return real(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", missing)
    with pytest.raises(InputFileError, match="perfetto is not installed") as error:
        read_text(IMPORTER, tmp_path, content)
    assert "carbonlens[perfetto]" in error.value.mend
    assert "CSV" in error.value.mend


@pytest.mark.parametrize(
    "content",
    [
        b"\nHello world, this is text\n",
        b"\n\x03abc\n\x03abc",
        b'{"traceEvents":[{"ph":"C","name":"cpu","ts":1,"args":{"v":1}}]}',
        b"ts,name,value\n1,batt.charge_uah,5\n",
    ],
)
def test_what_has_no_rails_is_not_claimed(tmp_path, content):
    file = tmp_path / "a"
    file.write_bytes(content)
    assert not claimed(IMPORTER, file)


def test_counters_late_in_a_long_trace_are_found(tmp_path):
    filler = ",\n".join('{"ph":"X","name":"work","ts":1,"dur":2,"pid":1,"tid":1}' for _ in range(3000))
    got = read_text(
        IMPORTER, tmp_path, events().replace('"traceEvents":[\n', f'"traceEvents":[\n{filler},\n')
    )
    assert float(got.energy_j) == pytest.approx(30)
