"""Prometheus text of DCGM exporter, Kepler and Scaphandre: what counts once, and blanks."""

from typing import ClassVar

import pytest

from carbonlens.errors import InputFileError
from carbonlens.importers.contract import Options
from carbonlens.importers.prometheus_text import IMPORTER
from tests.conformance.importers import ImporterContract
from tests.importers.parsed_traces import real_file, right_totals, taken
from tests.importers.reading import claimed, codes, read_text

POWER, ENERGY = "DCGM_FI_DEV_POWER_USAGE", "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION"
T0_MS = 1_772_445_600_000


def gpu(metric, index, value, at_ms=None, **labels):
    told = {"gpu": index, "UUID": f"GPU-{index:04}", "Hostname": "node-a"} | labels
    inner = ",".join(f'{k}="{v}"' for k, v in told.items())
    return f"{metric}{{{inner}}} {value}" + (f" {at_ms}" if at_ms is not None else "") + "\n"


def scrapes(count=11, metric=ENERGY, per_s=100_000, **labels):
    """Return scrapes a second apart, of two GPUs whose counters rise alike."""
    head = f"# HELP {metric} Some help.\n# TYPE {metric} counter\n"
    return head + "".join(
        gpu(metric, g, 5_000_000 + s * per_s, T0_MS + 1000 * s, **labels)
        for s in range(count)
        for g in (0, 1)
    )


class TestConformance(ImporterContract):
    """The contract of importers, on counters of two GPUs of 100 W over 10 s."""

    importer = IMPORTER
    files: ClassVar = {"scrape.prom": scrapes()}
    runs = 1
    energy_j = 2000.0
    clocks = True
    header_lines = 2


class TestConformanceOfOneScrape(ImporterContract):
    """The contract on one scrape of counters: all that they counted."""

    importer = IMPORTER
    files: ClassVar = {"scrape.prom": "".join(gpu(ENERGY, g, 1_500_000) for g in (0, 1))}
    runs = 1
    energy_j = 3000.0
    header_lines = 0
    repeats_count_once = False


def test_a_real_scrape_of_divided_gpus_counts_each_gpu_once():
    told = right_totals("dcgm02_mig_dup.prom")
    got = taken(IMPORTER, real_file("dcgm02_mig_dup.prom"))
    (record,) = got.records
    assert len(record.run.energy) == told["gpus"]
    assert float(record.stated_j) == pytest.approx(told["energy_mJ"] / 1000, rel=1e-9)
    assert float(record.stated_j) / 3.6e6 == pytest.approx(told["energy_kwh"], rel=1e-6)
    assert record.run.host_id == "node-a"
    assert record.run.duration_s is None
    assert [f.code for f in got.findings] == ["CL269", "CL266"]


def test_a_real_scrape_without_power_is_refused():
    with pytest.raises(InputFileError, match="no metric of power or energy"):
        taken(IMPORTER, real_file("dcgm01_readme.prom"))


@pytest.mark.parametrize("kind", ["energy", "power"])
def test_mig_and_pods_repeat_their_gpu(tmp_path, kind):
    metric, per = (ENERGY, 100_000) if kind == "energy" else (POWER, 0)
    body = "".join(
        gpu(metric, 0, 5_000_000 + s * per if per else 100, T0_MS + 1000 * s, GPU_I_ID=i, pod=f"job-{i}")
        for s in range(11)
        for i in range(7)
    )
    got = read_text(IMPORTER, tmp_path, body)
    assert float(got.energy_j) == pytest.approx(1000)
    assert codes(got) == ["CL269"]


def test_series_of_one_device_that_differ_are_said(tmp_path):
    body = "".join(gpu(POWER, 0, 100 * i, T0_MS + 1000 * s, GPU_I_ID=i) for s in range(11) for i in (1, 2))
    got = read_text(IMPORTER, tmp_path, body)
    assert float(got.energy_j) == pytest.approx(1000)
    assert "CL268" in codes(got)


@pytest.mark.parametrize(
    "blank",
    ["9223372036854775794", "9223372036854775792", "NaN", "+Inf", "140737488355328", "1.40737488355330e+14"],
)
def test_a_blank_is_a_failed_reading(tmp_path, blank):
    values = [100] * 5 + [blank] * 10 + [100] * 5
    body = "".join(gpu(POWER, 0, v, T0_MS + 1000 * s) for s, v in enumerate(values))
    got = read_text(IMPORTER, tmp_path, body)
    measured = got.records[0].measured
    assert measured.mean_power_w == pytest.approx(100)
    assert measured.uncovered_s > 0
    assert measured.covered_s + measured.uncovered_s == pytest.approx(19)


def test_blanks_alone_are_refused(tmp_path):
    with pytest.raises(InputFileError, match="blank or failed"):
        read_text(IMPORTER, tmp_path, gpu(POWER, 0, "9223372036854775794"))


def test_the_counter_counts_and_power_stands_beside(tmp_path):
    body = "".join(
        gpu(ENERGY, 0, 5_000_000 + s * 100_000, T0_MS + 1000 * s) + gpu(POWER, 0, 90, T0_MS + 1000 * s)
        for s in range(11)
    )
    got = read_text(IMPORTER, tmp_path, body)
    assert float(got.energy_j) == pytest.approx(1000)
    (beside,) = got.runs[0].beside
    assert float(beside.energy_j) == pytest.approx(900)
    assert [e.grade for e in got.runs[0].energy] == ["B"]


def test_instant_power_goes_before_the_mean(tmp_path):
    body = "".join(
        gpu(POWER, 0, 90, T0_MS + 1000 * s) + gpu(f"{POWER}_INSTANT", 0, 100, T0_MS + 1000 * s)
        for s in range(11)
    )
    assert float(read_text(IMPORTER, tmp_path, body).energy_j) == pytest.approx(1000)


def test_scrapes_without_times_are_what_the_counters_rose_by(tmp_path):
    body = "".join(gpu(ENERGY, g, 5_000_000 + s * 100_000) for s in range(11) for g in (0, 1))
    got = read_text(IMPORTER, tmp_path, body)
    assert float(got.energy_j) == pytest.approx(2000)
    assert got.runs[0].duration_s is None
    assert codes(got) == ["CL266"]
    got = read_text(IMPORTER, tmp_path, body, Options(interval_s=15.0))
    assert float(got.energy_j) == pytest.approx(2000)
    assert got.runs[0].duration_s == pytest.approx(10 * 15, abs=15)


def test_a_counter_that_was_begun_anew_gives_a_lower_bound(tmp_path):
    values = [5_000_000, 5_100_000, 100_000, 200_000]
    got = read_text(IMPORTER, tmp_path, "".join(gpu(ENERGY, 0, v) for v in values))
    assert float(got.energy_j) == pytest.approx(200)
    assert got.runs[0].energy[0].state == "unbounded"


def test_one_scrape_of_power_is_no_energy(tmp_path):
    got = read_text(IMPORTER, tmp_path, gpu(POWER, 0, 100))
    assert got.energy_j is None
    assert got.records[0].measured.mean_power_w == pytest.approx(100)
    assert codes(got) == ["CL244"]


@pytest.mark.parametrize("label", ["Hostname", "hostname", "node"])
def test_each_host_is_a_run_of_its_own(tmp_path, label):
    body = "".join(
        f'{POWER}{{gpu="0",{label}="{host}"}} 100 {T0_MS + 1000 * s}\n' for s in range(11) for host in "ab"
    )
    got = read_text(IMPORTER, tmp_path, body)
    assert [(r.host_id, float(r.energy[0].energy_j)) for r in got.runs] == [("a", 1000), ("b", 1000)]


def test_times_of_openmetrics_are_seconds(tmp_path):
    body = "".join(f'{POWER}{{gpu="0"}} 100 {T0_MS / 1000 + s:.3f}\n' for s in range(11)) + "# EOF\n"
    got = read_text(IMPORTER, tmp_path, body)
    assert float(got.energy_j) == pytest.approx(1000)
    assert got.runs[0].start_us == T0_MS * 1000


def test_labels_may_hold_anything(tmp_path):
    name = r"a \"b\", c=\"d\" \\ } {"
    body = "".join(f'{POWER}{{gpu="0",modelName="{name}"}} 100 {T0_MS + 1000 * s}\n' for s in range(11))
    assert float(read_text(IMPORTER, tmp_path, body).energy_j) == pytest.approx(1000)


def kepler(zone, value, at_ms, metric="kepler_node_cpu_joules_total"):
    return f'{metric}{{node_name="n",path="/sys/{zone}",zone="{zone}"}} {value} {at_ms}\n'


def test_zones_of_kepler_overlap_and_only_package_and_dram_count(tmp_path):
    watts = {"package": 50, "core": 40, "uncore": 5, "dram": 10, "psys": 90}
    body = "".join(
        kepler(zone, 1000 + w * s, T0_MS + 1000 * s) for s in range(11) for zone, w in watts.items()
    )
    body += "".join(
        f'kepler_container_cpu_joules_total{{container_id="{c}",zone="package"}} {c} {T0_MS}\n'
        for c in range(3)
    )
    got = read_text(IMPORTER, tmp_path, body)
    assert float(got.energy_j) == pytest.approx(600)
    assert sorted(e.component for e in got.runs[0].energy) == ["cpu", "ram"]
    assert len(got.runs[0].beside) == 3
    assert codes(got) == ["CL269"]


def test_power_of_kepler_counts_where_no_counter_is(tmp_path):
    body = "".join(kepler("package", 50, T0_MS + 1000 * s, "kepler_node_cpu_watts") for s in range(11))
    assert float(read_text(IMPORTER, tmp_path, body).energy_j) == pytest.approx(500)


def test_older_kepler_parts_energy_in_use_and_idle(tmp_path):
    body = "".join(
        f'kepler_node_{part}_joules_total{{instance="n",mode="{mode}"}} {1000 + w * s} {T0_MS + 1000 * s}\n'
        for s in range(11)
        for part, mode, w in (
            ("package", "dynamic", 30),
            ("package", "idle", 20),
            ("dram", "dynamic", 10),
            ("platform", "dynamic", 200),
        )
    )
    assert float(read_text(IMPORTER, tmp_path, body).energy_j) == pytest.approx(600)


def test_keplers_overflow_is_no_reading(tmp_path):
    values = [1000 + 50 * s for s in range(10)] + [922_337_203_685_477.0]
    body = "".join(kepler("package", v, T0_MS + 1000 * s) for s, v in enumerate(values))
    got = read_text(IMPORTER, tmp_path, body)
    assert float(got.energy_j) == pytest.approx(450)


def test_shares_alone_are_refused(tmp_path):
    text = f'kepler_container_cpu_joules_total{{container_id="c",zone="package"}} 5 {T0_MS}\n'
    with pytest.raises(InputFileError, match="shares of processes or containers alone"):
        read_text(IMPORTER, tmp_path, text)


def test_scaphandres_host_counts_and_its_sockets_do_not(tmp_path):
    body = "".join(
        f"scaph_host_power_microwatts 60000000 {T0_MS + 2000 * s}\n"
        f'scaph_socket_power_microwatts{{socket_id="0"}} 50000000 {T0_MS + 2000 * s}\n'
        f'scaph_process_power_consumption_microwatts{{pid="1",exe="a"}} 1000 {T0_MS + 2000 * s}\n'
        for s in range(6)
    )
    got = read_text(IMPORTER, tmp_path, body)
    assert float(got.energy_j) == pytest.approx(600)
    assert [float(b.energy_j) for b in got.runs[0].beside] == [pytest.approx(500)]


def test_two_tools_of_one_processor_count_once(tmp_path):
    body = "".join(
        kepler("package", 1000 + 50 * s, T0_MS + 1000 * s)
        + f'scaph_host_power_microwatts{{node="n"}} 60000000 {T0_MS + 1000 * s}\n'
        for s in range(11)
    )
    assert float(read_text(IMPORTER, tmp_path, body).energy_j) == pytest.approx(500)


def test_text_of_other_exporters_is_not_claimed(tmp_path):
    path = tmp_path / "m.prom"
    path.write_text('# HELP node_load1 Load.\nnode_load1 0.5\nnode_cpu_seconds_total{cpu="0"} 5\n')
    assert not claimed(IMPORTER, path)
