"""NVML sensors on simulated GPUs: what they read, and what they make of faults."""

import pytest

from carbonlens.domain.nvml_fields import power_usage_meaning
from carbonlens.metering.devices.nvidia import VisibleGpus
from carbonlens.metering.patience import PatientSensor
from carbonlens.metering.sealing import Sample, seal
from carbonlens.metering.sensors import Sensor
from carbonlens.metering.sensors.nvml import NvmlAverageSensor, NvmlEnergySensor, NvmlPowerSensor, rest_s
from carbonlens.metering.sensors.nvml_faults import NvmlError
from carbonlens.metering.sensors.nvml_library import Nvml
from carbonlens.metering.sensors.nvml_sources import counter_fault, counter_source, instant_source
from carbonlens.signals.integrate import counter_energy
from tests.metering.fake_nvml import (
    AVERAGE,
    DRIVER_NOT_LOADED,
    GPU,
    GPU_IS_LOST,
    INSTANT,
    LIBRARY_NOT_FOUND,
    MODULE,
    NO_PERMISSION,
    NOT_SUPPORTED,
    UNKNOWN,
    FakeGpu,
    FakeNvml,
    hanging,
)

A, B = "GPU-aaaaaaaa-1111", "GPU-bbbbbbbb-2222"
SENSORS = [NvmlEnergySensor, NvmlPowerSensor, NvmlAverageSensor]
COUNTER, USAGE = "nvmlDeviceGetTotalEnergyConsumption", "nvmlDeviceGetPowerUsage"
NO_FIELDS = {(field, scope) for field in (INSTANT, AVERAGE) for scope in (GPU, MODULE)}


def seen(api, root, **environ):
    return VisibleGpus(Nvml(api), environ, root)


@pytest.fixture
def root(tmp_path):
    return tmp_path  # a file system without device files


def probed(sensor_class, api, root, **environ):
    sensor = sensor_class(seen(api, root, **environ), api.clock)
    assert isinstance(sensor, Sensor)
    return sensor, sensor.probe()


def test_the_counter_is_read_in_joules_of_each_gpu(root):
    api = FakeNvml(FakeGpu(A, 100.0), FakeGpu(B, 300.0))
    sensor, probe = probed(NvmlEnergySensor, api, root)
    assert probe.usable
    assert "GPU-aaaaaaaa" in probe.found
    assert "board" in probe.found
    assert "580" in probe.found
    info = sensor.info
    assert (info.name, info.kind, info.unit, info.grade, info.scope) == (
        "nvml_energy",
        "cumulative",
        "J",
        "B",
        "board",
    )
    assert [(c.device, c.component, c.rated_w) for c in info.channels] == [
        (A, "gpu", 700.0),
        (B, "gpu", 700.0),
    ]
    first = sensor.read(edge=True)
    api.clock.pass_(10)
    second = sensor.read(edge=True)
    assert [b - a for a, b in zip(first, second, strict=True)] == pytest.approx([1000.0, 3000.0])


def test_the_power_of_the_moment_follows_the_load_and_the_mean_does_not(root):
    load = [(0.0, 100.0), (1000.5, 600.0)]
    api = FakeNvml(FakeGpu(A, load))
    power, probe = probed(NvmlPowerSensor, api, root)
    assert probe.usable
    assert power.info.kind == "instant"
    assert power.info.duty == 0.25
    api.clock.pass_(0.65)
    assert power.read(edge=False) == (600.0,)

    old = FakeNvml(FakeGpu(A, load, lacks=NO_FIELDS))
    average, probe = probed(NvmlAverageSensor, old, root)
    assert probe.usable
    assert average.info.kind == "average"
    assert average.info.window_s == 1.0
    old.clock.pass_(0.65)
    (mean_w,) = average.read(edge=False)
    assert 140 < mean_w < 160


def test_the_mean_is_read_only_where_the_moment_is_not_told(root):
    api = FakeNvml(FakeGpu(A), FakeGpu(B, lacks={(INSTANT, GPU)}))
    average, probe = probed(NvmlAverageSensor, api, root)
    assert probe.usable
    assert [c.device for c in average.info.channels] == [B]
    both = FakeNvml(FakeGpu(A))
    _, probe = probed(NvmlAverageSensor, both, root)
    assert not probe.usable
    assert probe.reason == "not needed"


@pytest.mark.parametrize(
    ("capability", "meaning"),
    [((7, 0), "instant"), ((7, 5), "instant"), ((8, 0), "instant"), ((8, 6), "average"), ((9, 0), "average")],
)
def test_the_meaning_of_power_usage_is_the_architectures(root, capability, meaning):
    assert power_usage_meaning(capability) == meaning
    api = FakeNvml(FakeGpu(A, capability=capability, lacks=NO_FIELDS))
    _, instant = probed(NvmlPowerSensor, api, root)
    _, average = probed(NvmlAverageSensor, api, root)
    assert (instant.usable, average.usable) == (meaning == "instant", meaning == "average")


def test_an_unknown_architecture_is_taken_as_the_wider_mean(root):
    api = FakeNvml(FakeGpu(A, lacks=NO_FIELDS | {"nvmlDeviceGetCudaComputeCapability"}))
    assert power_usage_meaning(None) is None
    assert not probed(NvmlPowerSensor, api, root)[1].usable
    assert probed(NvmlAverageSensor, api, root)[1].usable


CONSTRAINTS = "nvmlDeviceGetPowerManagementLimitConstraints"
DEFAULT_LIMIT = "nvmlDeviceGetPowerManagementDefaultLimit"


@pytest.mark.parametrize("sensor_class", [NvmlEnergySensor, NvmlPowerSensor])
@pytest.mark.parametrize(
    "lacks", [(), (CONSTRAINTS,), (DEFAULT_LIMIT,)], ids=["all", "no bound", "no default"]
)
def test_a_cap_that_is_raised_while_a_run_goes_on_costs_no_reading(root, sensor_class, lacks):
    """Capped at 200 W at the first look, at 700 W later: 650 W are no fault."""
    gpu = FakeGpu(A, [(0.0, 190.0), (1002.0, 650.0)], lacks=lacks)
    gpu.limit_w = 200.0
    api = FakeNvml(gpu)
    sensor, probe = probed(sensor_class, api, root)
    assert probe.usable
    samples = [Sample(t_us=0, values=(sensor.read(edge=True),))]
    gpu.limit_w = 700.0
    for k in range(1, 101):
        api.clock.pass_(0.1)
        samples.append(Sample(t_us=100_000 * k, values=(sensor.read(edge=True),)))
    sealed = seal([sensor.info], samples, start_us=0, window_us=10_000_000)
    assert "CL130" not in [f.code for f in sealed.findings]
    (reading,) = sealed.readings
    assert float(reading.energy_j) == pytest.approx(2 * 190 + 8 * 650, rel=0.02)


def test_a_board_that_tells_only_the_limit_in_force_is_rated_by_it(root):
    gpu = FakeGpu(A, 100.0, lacks=(CONSTRAINTS, DEFAULT_LIMIT))
    gpu.limit_w = 300.0
    (found,) = seen(FakeNvml(gpu), root).look().gpus
    assert found.rated_w == 300.0
    none = ("nvmlDeviceGetEnforcedPowerLimit", "nvmlDeviceGetPowerManagementLimit")
    (found,) = seen(FakeNvml(FakeGpu(A, 100.0, lacks=(CONSTRAINTS, DEFAULT_LIMIT, *none))), root).look().gpus
    assert found.rated_w is None


def test_a_reading_of_nothing_is_no_power(root):
    api = FakeNvml(FakeGpu(A, [(0.0, 90.0), (1001.0, 0.0), (1002.0, 90.0)]), FakeGpu(B, 50.0))
    power, _ = probed(NvmlPowerSensor, api, root)
    api.clock.pass_(1.5)
    assert power.read(edge=True) == (None, 50.0)
    api.clock.pass_(1.5)
    assert power.read(edge=True) == (90.0, 50.0)


def test_codecarbon_1316_no_counter_is_no_zero_but_integrated_power(root):
    api = FakeNvml(FakeGpu(A, lacks={COUNTER}))
    energy, probe = probed(NvmlEnergySensor, api, root)
    assert not probe.usable
    assert "does not offer" in probe.reason
    assert energy.info.channels == ()
    assert probed(NvmlPowerSensor, api, root)[1].usable


def test_intelligence_per_watt_40_a_driver_that_starts_and_offers_nothing_reads_nothing(root):
    api = FakeNvml(FakeGpu(A, lacks=NO_FIELDS | {COUNTER, USAGE}))
    for sensor_class in SENSORS:
        sensor, probe = probed(sensor_class, api, root)
        assert not probe.usable
        assert "does not offer" in probe.reason
        with pytest.raises(OSError, match="no GPU"):
            sensor.read(edge=True)


@pytest.mark.parametrize("sensor_class", SENSORS)
@pytest.mark.parametrize(
    ("code", "says"), [(LIBRARY_NOT_FOUND, "libnvidia-ml"), (DRIVER_NOT_LOADED, "driver")]
)
def test_no_driver_is_said_with_a_mend(root, sensor_class, code, says):
    api = FakeNvml(FakeGpu(A))
    api.init_fault = code
    _, probe = probed(sensor_class, api, root)
    assert not probe.usable
    assert says in probe.reason
    assert "--gpus" in probe.mend
    assert "sudo" not in probe.mend


def test_a_driver_that_comes_later_is_found_later(root):
    api = FakeNvml(FakeGpu(A))
    api.init_fault = DRIVER_NOT_LOADED
    sensor, probe = probed(NvmlEnergySensor, api, root)
    assert not probe.usable
    api.init_fault = None
    assert sensor.probe().usable


def test_permission_is_said_of_the_gpu_it_is_missing_for(root):
    locked = FakeGpu(B)
    locked.faults = {COUNTER: NO_PERMISSION}
    sensor, probe = probed(NvmlEnergySensor, FakeNvml(FakeGpu(A), locked), root)
    assert probe.usable
    assert "no permission" in probe.reason
    assert "GPU-bbbb" in probe.reason
    assert [c.device for c in sensor.info.channels] == [A]
    assert list(sensor.unread) == [B]


def test_dmlcloud_58_a_lost_gpu_leaves_a_gap_and_the_others_go_on(root):
    lost = FakeGpu(A, 100.0)
    api = FakeNvml(lost, FakeGpu(B, 100.0))
    sensor, _ = probed(NvmlEnergySensor, api, root)
    assert None not in sensor.read(edge=False)
    lost.fault = GPU_IS_LOST
    values = sensor.read(edge=False)
    assert values[0] is None
    assert values[1] is not None

    asked = len(api.calls)
    api.clock.pass_(0.5)
    sensor.read(edge=False)
    assert len(api.calls) == asked + 1  # the lost one is left alone for a while
    lost.fault = None
    api.clock.pass_(0.6)
    assert None not in sensor.read(edge=False)  # a fresh handle, by its UUID


def test_a_lost_gpu_is_asked_less_and_less_but_always_at_an_edge(root):
    lost = FakeGpu(A)
    api = FakeNvml(lost, FakeGpu(B))
    sensor, _ = probed(NvmlPowerSensor, api, root)
    lost.fault = GPU_IS_LOST
    before = api.function("nvmlDeviceGetHandleByUUID")
    for _ in range(600):
        sensor.read(edge=False)
        api.clock.pass_(0.1)
    tries = api.function("nvmlDeviceGetHandleByUUID") - before
    assert 3 <= tries <= 8
    lost.fault = None
    assert None not in sensor.read(edge=True)


@pytest.mark.parametrize("sensor_class", SENSORS[:2])
@pytest.mark.parametrize("code", [UNKNOWN, NOT_SUPPORTED, NO_PERMISSION, GPU_IS_LOST])
def test_a_fault_of_the_only_gpu_is_a_failed_read_that_says_why(root, sensor_class, code):
    gpu = FakeGpu(A)
    api = FakeNvml(gpu)
    sensor, _ = probed(sensor_class, api, root)
    gpu.fault = code
    with pytest.raises(OSError, match=str(NvmlError(code, "x").reason)):
        sensor.read(edge=True)
    gpu.fault = None
    assert sensor.read(edge=True)[0] > 0


def test_other_code_that_shuts_the_library_down_costs_no_reading(root):
    api = FakeNvml(FakeGpu(A), FakeGpu(B))
    gpus = seen(api, root)
    energy, power = NvmlEnergySensor(gpus, api.clock), NvmlPowerSensor(gpus, api.clock)
    assert energy.probe().usable
    assert power.probe().usable
    for sensor in (energy, power):
        sensor.read(edge=True)
    api.shut_down_by_others()
    assert None not in energy.read(edge=False)
    assert None not in power.read(edge=False)
    assert api.inits == 2


def test_a_driver_reload_is_handed_on_as_a_fall_that_sealing_takes_for_a_reset(root):
    api = FakeNvml(FakeGpu(A, 100.0))
    sensor, _ = probed(NvmlEnergySensor, api, root)
    readings = []
    for second in range(10):
        if second == 5:
            api.reload_driver()
        readings.append((second * 1e6, sensor.read(edge=False)[0]))
        api.clock.pass_(1)
    values = [v for _, v in readings]
    assert values[5] < values[4]
    assert None not in values
    energy = counter_energy(readings, 0, 9e6, update_period_us=1e5)
    assert energy.value == pytest.approx(800, rel=0.02)
    assert energy.state == "unbounded"


def test_the_library_is_started_once_and_never_shut_down(root):
    api = FakeNvml(FakeGpu(A))
    library = Nvml(api)
    for _ in range(3):
        sensor = NvmlEnergySensor(VisibleGpus(library, {}, root), api.clock)
        assert sensor.probe().usable
        sensor.close()
        sensor.close()
    assert (api.inits, api.shutdowns) == (1, 0)


def test_a_second_session_reads_no_counter_to_probe_it(root):
    api = FakeNvml(FakeGpu(A))
    gpus = seen(api, root)
    NvmlEnergySensor(gpus, api.clock).probe()
    asked = len(api.calls)
    assert NvmlEnergySensor(gpus, api.clock).probe().usable
    assert len(api.calls) == asked


def test_a_hung_driver_does_not_hold_the_caller(root):
    gpu = FakeGpu(A)
    api = FakeNvml(gpu)
    sensor, _ = probed(NvmlPowerSensor, api, root)
    assert sensor.may_block
    patient = PatientSensor(sensor, wait_s=0.05)
    assert patient.read(edge=True)
    gpu.hang = hanging()
    with pytest.raises(TimeoutError):
        patient.read(edge=True)
    with pytest.raises(TimeoutError):
        patient.read(edge=True)
    gpu.hang.set()


@pytest.mark.parametrize(
    ("counter", "says"),
    [
        (lambda j: 9.2e14, "more than the device can have used"),  # kepler 897
        (lambda j: 0.0, "0 J while"),
        (lambda j: -1.0, "more than"),
        (lambda j: float(2**64 - 1) / 1000, "more than"),
    ],
)
def test_kepler_897_amdsmi_38_an_impossible_counter_is_refused(root, counter, says):
    gpu = FakeGpu(A)
    gpu.counter = counter
    _, probe = probed(NvmlEnergySensor, FakeNvml(gpu), root)
    assert not probe.usable
    assert says in probe.reason


def test_a_counter_that_jumps_or_falls_between_two_reads_is_refused(root):
    for step in (1000.0, -10.0):
        reads = iter([5000.0, 5000.0 + step])
        gpu = FakeGpu(A)
        gpu.counter = lambda joules, reads=reads: next(reads)
        _, probe = probed(NvmlEnergySensor, FakeNvml(gpu), root)
        assert not probe.usable
        assert ("rose" if step > 0 else "fell") in probe.reason


def test_plausible_counters_pass():
    assert counter_fault(5e6, 5e6, 0.008, 72.0, 700.0) is None
    assert counter_fault(5e6, 5e6 + 70, 0.008, 700.0, 700.0) is None
    assert counter_fault(0.0, 0.0, 0.008, None, None) is None
    assert counter_fault(1e9, 1e9, 0.008, 72.0, None) is None


def test_the_dearer_a_read_the_longer_it_rests():
    assert rest_s(4.4e-6) == 0.0
    assert rest_s(0.004) == pytest.approx(10.0)
    assert rest_s(8 * 0.004) == 60.0


def superchip():
    return FakeGpu(A, 300.0, module=150.0)


def test_on_a_superchip_the_counter_holds_the_processor():
    api = FakeNvml(superchip())
    library = Nvml(api)
    gpus = VisibleGpus(library, {})
    gpu = gpus.look().gpus[0]
    handle = library.handle(A)
    assert counter_source(library, handle, gpu, "aarch64").holds_cpu
    assert not counter_source(library, handle, gpu, "x86_64").holds_cpu
    instant = instant_source(library, handle, gpu, "aarch64")
    assert (instant.scope, instant.holds_cpu) == (GPU, False)


def test_gb10_dgx_spark_that_tells_scope_gpu_alone_is_no_superchip(root):
    api = FakeNvml(FakeGpu(A, 30.0))
    library = Nvml(api)
    gpu = VisibleGpus(library, {}, root).look().gpus[0]
    assert not counter_source(library, library.handle(A), gpu, "aarch64").holds_cpu


def test_a_gpu_that_tells_only_its_modules_power_is_read_by_that(root):
    api = FakeNvml(FakeGpu(A, 300.0, module=150.0, lacks={(INSTANT, GPU)}))
    library = Nvml(api)
    gpu = VisibleGpus(library, {}, root).look().gpus[0]
    source = instant_source(library, library.handle(A), gpu, "aarch64")
    assert (source.scope, source.holds_cpu) == (MODULE, True)
    assert source.read_w(library, library.handle(A)) == 450.0
    sensor, probe = probed(NvmlPowerSensor, api, root)
    assert probe.usable
    assert sensor.info.scope == "module"
    assert sensor.info.duty == 0.2
    assert sensor.info.channels[0].rated_w is None  # the limit is the GPU's alone


def test_an_old_release_of_the_library_reads_the_same(root):
    api = FakeNvml(FakeGpu(A, 250.0), old=True)
    sensor, probe = probed(NvmlPowerSensor, api, root)
    assert probe.usable
    assert "H100" in probe.found
    assert sensor.info.channels[0].device == A
    assert sensor.read(edge=True) == (250.0,)


def test_the_real_module_has_what_is_asked_of_it():
    """Every function that is called by name exists in the installed release."""
    import re
    from pathlib import Path

    import pynvml

    from carbonlens.metering.sensors import nvml_library

    source = Path(nvml_library.__file__).read_text("utf-8")
    asked = set(re.findall(r'"((?:nvml|c_nvml)[A-Z_]\w+)"', source))
    optional = {"nvmlDeviceGetAttributes", "nvmlDeviceGetComputeRunningProcesses_v3"}
    assert {"nvmlInit", "nvmlDeviceGetFieldValues", "c_nvmlGpmMetricsGet_t"} <= asked
    assert not [name for name in asked - optional if not hasattr(pynvml, name)]


def test_the_real_module_without_a_driver_says_so():
    import pynvml

    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError:
        with pytest.raises(OSError, match="starting NVML"):
            Nvml().handles()
    else:
        pytest.skip("there is a driver here")
