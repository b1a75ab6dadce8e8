"""Units below a millionth in all are refused: no ledger holds them, and none divides by them."""

import sys
from decimal import Decimal

import pytest
from msgspec.structs import replace

from carbonlens import track
from carbonlens.cli.run_plain import units_of
from carbonlens.domain.bench import Variant
from carbonlens.domain.limits import LEAST_UNITS, misfit
from carbonlens.domain.sources import Sources
from carbonlens.errors import MeasurementError, UsageError
from carbonlens.instrument.bench import arm_of
from carbonlens.instrument.bench_result import record, require_units
from carbonlens.instrument.bench_work import calls
from carbonlens.instrument.window import Label, Place
from carbonlens.metering.recorder import Recorder
from tests.compare.study_runs import run
from tests.instrument.synthetic import bench_of

TOO_FEW = ["1e-400", "1e-310", "9e-7"]


@pytest.mark.parametrize("text", TOO_FEW)
def test_units_below_the_least_do_not_fit_a_record(text):
    assert "units is" in (misfit(replace(run("a", 1.0), units=Decimal(text))) or "")


@pytest.mark.parametrize("units", [LEAST_UNITS, Decimal(0), Decimal(1), None])
def test_the_least_and_none_at_all_fit(units):
    assert misfit(replace(run("a", 1.0), units=units)) is None


@pytest.mark.parametrize("text", TOO_FEW)
def test_the_command_line_refuses_them(text):
    with pytest.raises(UsageError, match="less than a record holds"):
        units_of(text)


@pytest.mark.parametrize("text", TOO_FEW)
def test_work_that_counted_no_more_in_all_is_not_counted_and_that_is_said(text):
    recorder = Recorder()
    recorder.add_units(Decimal(text))
    facts = recorder.facts()
    assert facts.units is None
    assert [(f.code, f.subject) for f in facts.findings] == [("CL110", "units")]
    recorder.add_units(3)
    facts = recorder.facts()
    assert facts.units == pytest.approx(3)
    assert facts.findings == ()


@pytest.mark.parametrize(("part", "times"), [(512 / 1e9, 1000), (1e-7, 10)])
def test_small_parts_of_a_sum_that_a_record_holds_all_count(part, times):
    recorder = Recorder()
    for _ in range(times):
        recorder.add_units(part)
    facts = recorder.facts()
    assert (facts.units, facts.findings) == (Decimal(repr(part)) * times, ())


def test_a_loop_that_counts_bytes_in_gigabytes_has_all_of_them_in_its_record(tmp_path):
    with track("t", unit="GB", ledger=tmp_path) as run:
        for size in (900, 64, 1500, 64, 900):
            run.add_units(size / 1e9)
    assert run.run.units == Decimal("0.000003428")
    assert "CL110" not in {f.code for f in run.run.findings}


def test_a_benched_window_sums_small_results_and_is_refused_where_the_sum_is_too_small():
    recorder = Recorder()
    assert record({"units": 4e-7}, recorder, where="result")
    with pytest.raises(MeasurementError, match="the units of a window come to"):
        require_units(recorder, where="a")
    for _ in range(2):
        record({"units": 4e-7}, recorder, where="result")
    require_units(recorder, where="a")
    assert recorder.facts().units == Decimal("0.0000012")
    assert calls(lambda: Decimal("4e-7"), None, 0)[0] == Decimal("4e-7")


@pytest.mark.parametrize("kind", ["command", "callable"])
def test_a_variant_whose_windows_do_too_little_fails_with_its_first_round(tmp_path, kind):
    (tmp_path / "tiny.py").write_text(
        "import json, os\nfrom decimal import Decimal\n"
        "def call():\n    return Decimal('1e-300')\n"
        "if __name__ == '__main__':\n"
        "    open(os.environ['CARBONLENS_RESULT'], 'w').write(json.dumps({'units': 1e-300}))\n"
    )
    does = {"command": (sys.executable, "-S", "tiny.py")} if kind == "command" else {"callable": "tiny:call"}
    bench = replace(bench_of(("a", "b"), window_s=0.001, warm_up=0), folder=str(tmp_path))
    place = Place(ledger=str(tmp_path / "ledger"), sources=Sources())
    label = Label(step="a", study="s", role="variant", unit="GB")
    arm = arm_of(Variant(name="a", kind=kind, **does), bench, place, label, tmp_path)
    try:
        arm.check(record=True)
        with pytest.raises(MeasurementError, match="the units of a window come to"):
            arm.measure(1)
    finally:
        arm.close()
