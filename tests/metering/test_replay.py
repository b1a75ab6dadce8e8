"""Traces: written, read back, and played against a clock into a session's energy."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from carbonlens.errors import InputFileError, UsageError
from carbonlens.metering.sealing import Sample, seal
from carbonlens.metering.sensors import Channel, SensorInfo
from carbonlens.metering.sensors.replay import ReplaySensor, TraceWriter, load_trace, record
from tests.metering.sensors import CounterSensor

GPU = SensorInfo(
    name="nvml_energy",
    kind="cumulative",
    unit="J",
    scope="board",
    boundary="device",
    grade="B",
    update_period_s=0.1,
    channels=(Channel(device="GPU-a", component="gpu"), Channel(device="GPU-b", component="gpu")),
    method="energy counter",
    gain_sigma=0.02,
)


def trace(path, rows, info=GPU):
    writer = TraceWriter(path, info)
    for row in rows:
        writer.append(*row)
    writer.close()
    return path


values = st.lists(st.one_of(st.none(), st.floats(0, 1e9)), min_size=2, max_size=2).map(tuple)


@given(st.lists(st.tuples(st.integers(0, 10**12), st.one_of(st.none(), values)), max_size=30))
def test_what_is_written_is_read_back_exactly(tmp_path_factory, rows):
    rows = sorted(rows, key=lambda row: row[0])
    told = load_trace(trace(tmp_path_factory.mktemp("t") / "t.jsonl", rows))
    assert told.info == GPU
    assert list(told.rows) == rows


def test_a_torn_last_line_is_left_out(tmp_path):
    path = trace(tmp_path / "t.jsonl", [(0, (1.0, 2.0)), (5, (2.0, 3.0))])
    path.write_bytes(path.read_bytes()[:-4])
    assert [row[0] for row in load_trace(path).rows] == [0]


def test_a_trace_is_not_written_over(tmp_path):
    trace(tmp_path / "t.jsonl", [])
    with pytest.raises(FileExistsError):
        TraceWriter(tmp_path / "t.jsonl", GPU)


HEADER = msgspec.json.encode({"schema": "carbonlens/trace/1", "sensor": msgspec.to_builtins(GPU)}).decode()


@pytest.mark.parametrize(
    "text",
    [
        "",
        "not json\n",
        HEADER.replace("trace/1", "trace/9") + "\n",
        HEADER + "\n[0,[1.0]]\n",
        HEADER + "\n[0,[1.0,true]]\n",
        HEADER + "\nnonsense\n[1,[1,2]]\n",
        HEADER + "\n[5,[1,2]]\n[4,[1,2]]\n",
    ],
)
def test_a_damaged_trace_is_refused_with_its_place(tmp_path, text):
    path = tmp_path / "t.jsonl"
    path.write_text(text)
    with pytest.raises(InputFileError, match=r"t\.jsonl"):
        load_trace(path)
    assert not ReplaySensor(path).probe().usable


def test_a_csv_trace_takes_its_description_from_beside_it(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("t_us,GPU-a,GPU-b\n0,1.5,2\n100,,3\n200,5,")
    assert load_trace(path, GPU).rows == ((0, (1.5, 2.0)), (100, (None, 3.0)))
    for info in (None, msgspec.structs.replace(GPU, channels=GPU.channels[:1])):
        with pytest.raises(UsageError):
            load_trace(path, info)
    for bad in ("0,x,2", "0,1", "0.5,1,2", "0,nan,1"):
        path.write_text(f"t_us,GPU-a,GPU-b\n{bad}\n")
        with pytest.raises(InputFileError):
            load_trace(path, GPU)


class Clock:
    """A clock that the test turns, and that sleeping turns."""

    def __init__(self):
        self.now = 100.0

    def __call__(self):
        return self.now

    def sleep(self, seconds):
        self.now += seconds


def test_it_tells_what_was_told_at_the_same_time(tmp_path):
    clock = Clock()
    rows = [(7_000_000, (1.0, 2.0)), (7_100_000, None), (7_200_000, (3.0, None)), (7_300_000, (4.0, 5.0))]
    sensor = ReplaySensor(trace(tmp_path / "t.jsonl", rows), clock=clock)
    assert sensor.probe().found == "trace t.jsonl: 4 readings over 0.3 s"
    assert (sensor.info.name, sensor.info.grade) == ("replay:nvml_energy", "B")
    assert sensor.info.method == "replayed from a recording: energy counter"
    assert sensor.read(edge=True) == (1.0, 2.0)
    clock.now = 100.15
    with pytest.raises(OSError, match="failed when it was recorded"):
        sensor.read(edge=False)
    clock.now = 100.25
    assert sensor.read(edge=False) == (3.0, None)
    clock.now = 100.55
    assert sensor.read(edge=False) == (4.0, 5.0)
    clock.now = 100.65
    with pytest.raises(OSError, match="no reading of this time"):
        sensor.read(edge=False)


def test_a_recording_keeps_failed_readings_as_such(tmp_path):
    clock = Clock()
    count = record(
        CounterSensor(faults=(2,)), tmp_path / "t.jsonl", 0.45, period_s=0.1, clock=clock, sleep=clock.sleep
    )
    told = load_trace(tmp_path / "t.jsonl")
    assert count == 5
    assert [row[1] for row in told.rows] == [(0.0,), (10.0,), None, (30.0,), (40.0,)]
    assert [row[0] for row in told.rows] == pytest.approx([0, 100_000, 200_000, 300_000, 400_000], abs=2)


def test_a_recorded_run_gives_its_energy_without_the_hardware(tmp_path):
    """From the file to the sealed reading: 10 s of two boards at 300 W and 50 W."""
    rows = [(k * 100_000, (k * 30.0, k * 5.0)) for k in range(101)]
    clock = Clock()
    sensor = ReplaySensor(trace(tmp_path / "t.jsonl", rows), clock=clock)
    samples = []
    for k in range(101):
        clock.now = 100.0 + k * 0.1 + 1e-6
        samples.append(Sample(k * 100_000, (sensor.read(edge=k in {0, 100}),)))
    sealed = seal([sensor.info], samples, start_us=0, window_us=10_000_000)
    joules = {r.devices: float(r.energy_j) for r in sealed.readings if r.component == "gpu"}
    assert sum(joules.values()) == pytest.approx(3500.0)
