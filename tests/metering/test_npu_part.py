"""NPU figures never cover the part of a work that a CPU ran: both stand apart."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carbonlens.domain.execution import ProviderTime
from carbonlens.domain.sources import DatasheetDevice
from carbonlens.metering.journal import Facts
from carbonlens.metering.npu_part import npu_over_cpu_part
from carbonlens.metering.records import new_run, sealed_run
from carbonlens.metering.sealing import Sample, seal
from carbonlens.metering.sensors.datasheet import DatasheetSensor
from carbonlens.metering.sensors.intel_npu import IntelNpuSensor
from tests.metering.sensors import CounterSensor
from tests.metering.trees_npu import npu

NPU_W = 8.0
DECLARED = DatasheetDevice(device="intel_npu", power_w=NPU_W, source="a datasheet, v1.0")
SECONDS = 10


def execution(cpu_share):
    """Return what an NPU and a CPU did; ``None`` without a profile."""
    other = None if cpu_share is None else 1 - cpu_share
    return (
        ProviderTime(provider="QNNExecutionProvider", share=other),
        ProviderTime(provider="CPUExecutionProvider", share=cpu_share),
    )


def record(npu_sensor, npu_values, cpu_share):
    """Return the run of ten seconds in which a package counter rose by 30 J and an NPU was read."""
    cpu = CounterSensor()
    samples = [
        Sample(t_us=k * 100_000, values=((0.3 * k,), (npu_values(k / 10),))) for k in range(10 * SECONDS + 1)
    ]
    window_us = SECONDS * 1_000_000
    sealed = seal([cpu.info, npu_sensor.info], samples, start_us=0, window_us=window_us)
    facts = Facts(execution=execution(cpu_share))
    return sealed_run(new_run("track"), facts, sealed, window_us, "complete")


def energies(run):
    return {r.component: float(r.energy_j) for r in (*run.energy, *run.beside) if r.energy_j is not None}


@pytest.mark.parametrize("cpu_share", [0.0, 0.37, 0.9, None])
def test_time_in_use_covers_the_npu_alone_whatever_the_cpu_did(tmp_path, cpu_share):
    """The NPU was in use for 4 of 10 s: its figure is those 4 s, and no share changes either figure."""
    npu(tmp_path)
    run = record(IntelNpuSensor(tmp_path, DECLARED), lambda k: 100 + 0.4 * k, cpu_share)
    read = energies(run)
    assert read["npu"] == pytest.approx(4 * NPU_W)
    assert read["cpu"] == pytest.approx(30.0)
    assert "CL198" not in {f.code for f in run.findings}


@pytest.mark.parametrize(
    ("cpu_share", "said"), [(0.37, "the CPU ran 37 % of kernel time"), (None, "a part that is not known")]
)
def test_a_datasheet_power_over_the_cpus_part_is_said(cpu_share, said):
    declared = DatasheetDevice(device="hexagon", component="npu", power_w=2.0, source="a datasheet")
    run = record(DatasheetSensor(declared), lambda k: 2.0, cpu_share)
    read = energies(run)
    assert read["npu"] == pytest.approx(2.0 * SECONDS)
    assert read["cpu"] == pytest.approx(30.0)
    (finding,) = [f for f in run.findings if f.code == "CL198"]
    assert said in finding.message
    assert finding.subject == "energy.npu"


def test_nothing_is_said_where_the_cpu_ran_nothing_or_no_runtime_tells():
    declared = DatasheetDevice(device="hexagon", component="npu", power_w=2.0, source="a datasheet")
    run = record(DatasheetSensor(declared), lambda k: 2.0, 0.0)
    assert "CL198" not in {f.code for f in run.findings}
    assert npu_over_cpu_part(run.energy, ()) == []
    assert npu_over_cpu_part((), execution(0.5)) == []


@given(st.floats(0, 1, exclude_min=True))
def test_a_share_is_never_printed_as_none(share):
    declared = DatasheetDevice(device="hexagon", component="npu", power_w=2.0, source="a datasheet")
    (finding,) = npu_over_cpu_part(
        record(DatasheetSensor(declared), lambda k: 2.0, 0.0).energy, execution(share)
    )
    assert " ran 0 %" not in finding.message
