"""MLPerf Power: the meter's log of a testing run, within the load generator's marks."""

import itertools
import json
from typing import ClassVar

import numpy as np
import pytest

from carbonlens.app.importing import import_files
from carbonlens.errors import InputFileError
from carbonlens.importers.claiming import claims, importers
from carbonlens.importers.contract import Chunk, Options, Window
from carbonlens.importers.harvest import harvest
from carbonlens.importers.mlperf_power import IMPORTER
from carbonlens.importers.sources import Source
from tests.conformance.importers import ImporterContract
from tests.importers.parsed_traces import SHARED, real_file, right_totals
from tests.importers.reading import Got, codes

SESSION = "2026-03-02_09-59-00"


def sample(second, watts="20.0", phase="testing", minute=0, hour=10):
    stamp = f"03-02-2026 {hour:02}:{minute:02}:{second:02}.500"
    return f"Time,{stamp},Watts,{watts},Volts,230.1,Amps,0.1,PF,0.5,Mark,{SESSION}_{phase}\n"


def spl(watts=lambda second: "20.0", **kind):
    return "".join(sample(second, watts(second), **kind) for second in range(30))


def entry(key, value, kind="POINT_IN_TIME"):
    told = {"key": key, "value": value, "time_ms": 1.5, "namespace": "mlperf::logging", "event_type": kind}
    return f":::MLLOG {json.dumps(told)}\n"


def detail(*, begin="03-02-2026 10:00:05.000", end="03-02-2026 10:00:25.000", minute=0, **more):
    told = {
        "loadgen_version": "4.0",
        "test_datetime": f"2026-03-02T10:{minute:02}:04Z",
        "sut_name": "board",
        "effective_scenario": "SingleStream",
        "power_begin": begin,
        "power_end": end,
        "result_validity": "VALID",
        "result_query_count": 50,
        "generated_query_count": 80,
        "generated_samples_per_query": 2,
    } | more
    return "".join(entry(key, value) for key, value in told.items() if value is not None)


def side(*, timezone=0, messages=None, at=1_772_445_600.0):
    phases = {
        "ranging": [[at - 700, 1.0], [at - 690, 2.0], [at - 90, 3.0], [at - 80, 4.0]],
        "testing": [[at - 20, 5.0], [at, 6.0], [at + 30, 7.0], [at + 40, 8.0]],
    }
    told = {"version": "1.0", "timezone": timezone, "modules": {}, "sources": {}}
    told |= {"messages": [{"cmd": "mlcommons/power client v3"}], "session_name": SESSION, "phases": phases}
    return json.dumps(told | ({} if messages is None else {"ptd_messages": messages}))


def daemon(*lines):
    head = [
        "Selected power meter 'WT310'",
        "SPEC PTDaemon Tool",
        "Uncertainty checking for WT310 is activated",
    ]
    return "\n".join([*head, f"03-02-2026 10:00:00.100: Go with mark '{SESSION}_testing'", *lines, ""])


IDENTIFY = [{"cmd": "Identify", "reply": "YokogawaWT310E,1000,1"}]
WHOLE = {
    "spl.txt": spl(),
    "detail.txt": detail(),
    "server.json": side(messages=IDENTIFY),
    "client.json": side(),
}


class TestConformance(ImporterContract):
    """The contract of importers, on thirty samples of which twenty count."""

    importer = IMPORTER
    files: ClassVar = WHOLE
    runs = 1
    energy_j = 400.0
    header_lines = 0
    clocks = True


@pytest.fixture
def read(tmp_path):
    numbers = itertools.count()

    def of(files, options=None):
        folder = tmp_path / str(next(numbers))
        sources = []
        for name, text in files.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
            sources.append(Source(path))
        found, left = claims(sources, [IMPORTER])
        assert not left
        (claim,) = found
        return Got(harvest(IMPORTER, claim.group, options or Options()))

    return of


def test_only_samples_between_the_marks_count(read):
    loud = spl(lambda second: "20.0" if 5 <= second < 25 else "900.0")
    got = read(WHOLE | {"spl.txt": loud})
    (record,) = got.records
    assert record.run.energy[0].component == "wall"
    assert record.run.energy[0].grade == "A"
    assert record.run.boundary == "it"
    assert float(got.energy_j) == pytest.approx(400.0)
    assert record.measured.samples == 20
    assert record.run.duration_s == pytest.approx(20.0)
    assert (record.run.units, record.run.unit, record.run.workload) == (100, "sample", "board")
    assert record.run.tags["meter"] == "YokogawaWT310E"
    assert "10 of 30 samples lie outside" in got.findings[0].message


@pytest.mark.parametrize("mark", ["power_begin", "power_end"])
def test_a_missing_mark_is_refused_and_named(read, mark):
    with pytest.raises(InputFileError, match=f"{mark} mark in detail.txt"):
        read(WHOLE | {"detail.txt": detail(**{mark: None})})


def test_a_mark_of_time_zero_is_no_window(read):
    with pytest.raises(InputFileError, match="no time between"):
        read(WHOLE | {"detail.txt": detail(end="03-02-2026 10:00:05.000")})


@pytest.mark.parametrize("bad", ["-1.000000", "nan", "-nan", "inf"])
def test_a_reading_that_failed_is_unknown_and_not_zero(read, bad):
    whole = read(WHOLE)
    got = read(WHOLE | {"spl.txt": spl(lambda second: bad if second in {9, 10} else "20.0")})
    assert got.records[0].measured.samples == 18
    assert got.records[0].measured.mean_power_w == pytest.approx(20.0)
    assert got.energy_j <= whole.energy_j


def test_an_error_of_the_daemon_is_a_failed_reading(read):
    bad = "Time,03-02-2026 10:00:09.500,ERROR,Bad volts reading nan from WT310\n"
    got = read(WHOLE | {"spl.txt": spl().replace(sample(9), bad)})
    assert got.records[0].measured.samples == 19
    assert got.rows_rejected == 0


@pytest.mark.parametrize(("watts", "said"), [("20.0", False), ("20000.0", True), ("0.02", True)])
def test_watts_are_held_against_volts_and_amperes(read, watts, said):
    got = read(WHOLE | {"spl.txt": spl(lambda _: watts)})
    found = [f for f in got.findings if f.code == "CL247"]
    assert bool(found) is said
    assert all("20 lines" in f.message for f in found)


def test_meters_of_one_box_are_added_up(read):
    """Merged logs name a meter before each sample."""
    two = "".join(f"Analyzer1,{sample(n)}Analyzer2,{sample(n, '5.0')}" for n in range(30))
    got = read(WHOLE | {"spl.txt": two})
    assert float(got.energy_j) == pytest.approx(500.0)
    assert got.records[0].measured.mean_power_w == pytest.approx(25.0)


@pytest.mark.parametrize(("total", "joules"), [("Watts,20.0,Volts,230.1,", 400.0), ("", 500.0)])
def test_channels_are_added_up_where_no_sum_stands_before_them(read, total, joules):
    channels = "Ch1,Watts,21.0,Volts,230.0,Ch2,Watts,4.0,Volts,230.0\n"
    lines = [f"Time,03-02-2026 10:00:{n:02}.500,{total}Mark,{SESSION}_testing,{channels}" for n in range(30)]
    assert float(read(WHOLE | {"spl.txt": "".join(lines)}).energy_j) == pytest.approx(joules)


def test_a_torn_line_is_left_out_and_said(read):
    got = read(WHOLE | {"spl.txt": spl() + "Time,03-02-2026 10:0"})
    assert (got.rows, got.rows_rejected) == (31, 1)
    assert "CL202" in codes(got)


@pytest.mark.parametrize(("hours", "timezone", "shown"), [(-8, 28_800, 2), (1, -3600, 11), (2, -3600, 12)])
def test_the_zone_of_the_power_log_is_the_servers(read, hours, timezone, shown):
    """The last of them is in summer time, which the server's zone leaves out."""
    assert shown == 10 + hours
    files = {"spl.txt": spl(hour=shown), "server.json": side(timezone=timezone, messages=IDENTIFY)}
    got = read(WHOLE | files)
    assert float(got.energy_j) == pytest.approx(400.0)
    assert got.runs[0].start_us == 1_772_445_605_000_000
    assert "CL241" not in codes(got)


def test_marks_in_the_clients_local_time_are_put_into_its_phase(read):
    local = detail(begin="03-02-2026 02:00:05.000", end="03-02-2026 02:00:25.000")
    got = read(WHOLE | {"detail.txt": local, "client.json": side(timezone=28_800)})
    assert got.runs[0].start_us == 1_772_445_605_000_000


def test_without_session_files_the_zone_is_the_users(read):
    files = {"spl.txt": spl(hour=11), "detail.txt": detail()}
    with pytest.raises(InputFileError, match="no sample between"):
        read(files)
    got = read(files, Options(tz="Europe/Paris"))
    assert float(got.energy_j) == pytest.approx(400.0)


def test_the_ranging_run_is_not_counted(read):
    ranging = {
        "ranging/spl.txt": spl(lambda _: "500.0", phase="ranging", minute=48, hour=9),
        "ranging/detail.txt": detail(test_datetime="2026-03-02T09:48:40Z"),
    }
    got = read(ranging | WHOLE)
    assert float(got.energy_j) == pytest.approx(400.0)
    assert any("ranging run" in f.message for f in got.findings)
    with pytest.raises(InputFileError, match="ranging run"):
        read(ranging)


def test_a_load_generators_log_alone_is_refused_with_the_reason(read):
    with pytest.raises(InputFileError, match="without the log of a power meter"):
        read({"detail.txt": detail()})


def test_sessions_of_one_folder_are_told_apart_by_their_times(tmp_path):
    one, two = spl(), spl(lambda _: "40.0", minute=30).replace(SESSION, "2026-03-02_10-29-00")
    later = detail(begin="03-02-2026 10:30:05.000", end="03-02-2026 10:30:25.000", minute=30)
    files = {"a.txt": two, "b.txt": detail(), "c.txt": one, "d.txt": later}
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    result = import_files([tmp_path], ledger=tmp_path / "ledger")
    assert result.totals.runs == 2
    assert result.totals.energy_kwh == pytest.approx(1200.0 / 3.6e6)


def test_invalid_runs_are_kept_and_said(read):
    got = read(WHOLE | {"detail.txt": detail(result_validity="INVALID")})
    assert got.energy_j is not None
    assert "CL280" in codes(got)


def test_the_width_is_known_where_the_daemon_checked_each_sample(read):
    def width(files):
        energy = read(files).runs[0].energy[0].estimate
        return None if energy.low is None else (energy.high - energy.low) / energy.value

    warned = daemon("03-02-2026 10:00:10.500: WARNING: Uncertainty unknown for the last measurement sample!")
    before = daemon("03-02-2026 10:00:01.500: WARNING: Uncertainty unknown for the last measurement sample!")
    assert width(WHOLE) is None
    assert width(WHOLE | {"ptd.txt": daemon()}) == pytest.approx(0.02, rel=0.01)
    assert width(WHOLE | {"ptd.txt": before}) == pytest.approx(0.02, rel=0.01)
    assert width(WHOLE | {"ptd.txt": warned}) is None
    assert "CL281" in codes(read(WHOLE | {"ptd.txt": warned}))


def test_session_files_that_come_later_count_the_run_once(tmp_path):
    for name, text in WHOLE.items():
        (tmp_path / name).write_text(text)
    first = import_files([tmp_path / "spl.txt", tmp_path / "detail.txt"], ledger=tmp_path / "ledger")
    assert first.totals.runs == 1
    again = import_files([tmp_path], ledger=tmp_path / "ledger")
    assert again.totals.runs == 0


def test_it_claims_no_power_log_alone(tmp_path):
    (tmp_path / "spl.txt").write_text(spl())
    assert not IMPORTER.claim([Source(tmp_path / "spl.txt")])


def test_the_real_session_comes_to_its_totals(tmp_path):
    real_file("mlperf_orin_off_run_1_spl.txt")
    expected = right_totals("mlperf_orin_off_*")
    paths = sorted((SHARED / "files").glob("mlperf_orin_off_*"))
    found, left = claims([Source(p) for p in paths], importers())
    assert not left
    (claim,) = found
    assert claim.importer is IMPORTER
    got = Got(harvest(IMPORTER, claim.group, Options()))
    told = got.records[0].measured
    assert (got.rows, told.samples) == (expected["samples_in_file"], expected["samples_in_window"])
    assert told.mean_power_w == pytest.approx(expected["avg_W_in_window"], rel=1e-9)
    assert got.runs[0].duration_s == pytest.approx(expected["window_s"], rel=1e-9)
    assert told.covered_s + told.uncovered_s == pytest.approx(expected["window_s"], rel=1e-9)
    assert float(got.energy_j) == pytest.approx(expected["energy_J"], rel=1e-3)
    items = list(IMPORTER.read(claim.group, Options()))
    window = next(i for i in items if isinstance(i, Window))
    watts = np.concatenate([i.values for i in items if isinstance(i, Chunk)])
    mean_j = float(np.mean(watts)) * (window.end_us - window.start_us) / 1e6
    assert mean_j == pytest.approx(expected["energy_J"], rel=1e-9)
