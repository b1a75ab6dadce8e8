"""The demo: it claims its folder with care, and runs end to end on a small scale."""

from __future__ import annotations

import json
import os
import signal
import tomllib
from pathlib import Path

import pytest

from carbonlens.app.assumptions import load_assumptions
from carbonlens.errors import MeasurementError, UnwritableError
from carbonlens.inventory import study_file
from carbonlens.ledger.store import Ledger
from carbonlens.studies.demo import STUDY_NAME, example_assumptions, run_demo
from tests.studies.arms import Watcher

STEPS = ["ort-fp32", "pruned", "dynamic-int8", "static-int8"]


class Stop(Watcher):
    """Progress that presses Ctrl-C at a place of the work."""

    def __init__(self, phase: str, done: int) -> None:
        super().__init__()
        self.place = [phase, done]

    def advance(self) -> None:
        super().advance()
        if [self.phases[-1][0], self.phases[-1][2]] == self.place:
            os.kill(os.getpid(), signal.SIGINT)


class WorkStartedError(Exception):
    """Raised when work starts that should have been refused before."""


class NoWork(Watcher):
    """Progress that ends the demo as soon as its work starts."""

    def start(self, total: int, label: str) -> None:
        raise WorkStartedError


def refuses(out_dir) -> UnwritableError:
    with pytest.raises(UnwritableError) as caught:
        run_demo(out_dir, progress=NoWork(), small=True)
    return caught.value


def test_a_folder_with_other_content_is_refused_and_left_alone(tmp_path):
    (tmp_path / "thesis.tex").write_text("years of work")
    assert str(tmp_path) in str(refuses(tmp_path))
    assert [p.name for p in tmp_path.iterdir()] == ["thesis.tex"]


def test_another_study_is_no_former_demo(tmp_path):
    text = '[study]\nname = "mine"\nbaseline = "a"\nunit = "image"\n'
    (tmp_path / "study.toml").write_text(text)
    (tmp_path / "ledger").mkdir()
    refuses(tmp_path)
    assert (tmp_path / "study.toml").read_text() == text
    assert (tmp_path / "ledger").is_dir()


def test_a_damaged_study_file_is_no_former_demo(tmp_path):
    (tmp_path / "study.toml").write_text("[study\n")
    refuses(tmp_path)


def test_a_folder_below_a_file_is_refused(tmp_path):
    (tmp_path / "file").write_text("")
    assert refuses(tmp_path / "file" / "demo").code == "CL003"


def test_a_new_or_empty_folder_is_taken(tmp_path):
    with pytest.raises(WorkStartedError):
        run_demo(tmp_path / "new" / "demo", progress=NoWork(), small=True)
    assert (tmp_path / "new" / "demo").is_dir()


def test_a_former_demo_is_cleared_and_other_files_stay(tmp_path):
    text = f'[study]\nname = "{STUDY_NAME}"\nbaseline = "a"\nunit = "image"\n'
    (tmp_path / "study.toml").write_text(text)
    (tmp_path / "report.html").write_text("old")
    (tmp_path / "ledger" / "runs").mkdir(parents=True)
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(WorkStartedError):
        run_demo(tmp_path, progress=NoWork(), small=True)
    assert [p.name for p in tmp_path.iterdir()] == ["notes.txt"]


def test_too_few_rounds_are_refused_before_the_folder_is_touched(tmp_path):
    with pytest.raises(MeasurementError):
        run_demo(tmp_path / "demo", rounds=4, progress=NoWork())
    assert not (tmp_path / "demo").exists()


def test_the_example_assumptions_are_complete_and_say_that_they_are_examples():
    vector = load_assumptions(example_assumptions())
    parts = (vector.location, vector.market, vector.electricity, vector.machine, vector.embodied)
    assert all(p is not None and p.example and p.source for p in parts)
    assert vector.pue == 1.2
    assert vector.location.value_kg_per_kwh == 0.27582
    # 40 % of the use under contract at zero, the rest at the grid average.
    assert vector.market.value_kg_per_kwh == pytest.approx(0.6 * vector.location.value_kg_per_kwh)
    # A c5 server's 1344.29 kg over four years and 96 virtual cores.
    assert vector.embodied.value_kg_per_core_hour == pytest.approx(1344.29 / 35_040 / 96, rel=1e-3)
    assert "example" in vector.notes[0]


@pytest.fixture(scope="module")
def small_demo(tmp_path_factory):
    out_dir = tmp_path_factory.mktemp("demo")
    watcher = Watcher()
    return run_demo(out_dir, small=True, progress=watcher), out_dir, watcher


@pytest.mark.slow
def test_it_writes_reports_study_and_ledger_and_nothing_else(small_demo):
    result, out_dir, watcher = small_demo
    assert sorted(p.name for p in out_dir.iterdir()) == ["ledger", "report.html", "report.pdf", "study.toml"]
    assert sorted(result.files) == ["html", "pdf"]
    assert result.files["pdf"].read_bytes().startswith(b"%PDF-")
    assert "<html" in result.files["html"].read_text("utf-8")
    assert not result.failed_steps
    assert (result.rounds, result.interrupted) == (5, False)
    assert [p[0] for p in watcher.phases] == ["Loading", "Preparing", "Checking", "Measuring", "Reporting"]
    assert all(total == done for _, total, done in watcher.phases)


@pytest.mark.slow
def test_every_arm_has_its_runs(small_demo):
    result, _, _ = small_demo
    runs = Ledger(result.ledger).view().runs
    assert {r.study for r in runs} == {STUDY_NAME}
    for step in ("torch-fp32", *STEPS):
        mine = [r for r in runs if r.step == step]
        assert [r.role for r in mine].count("effort") == 1
        rounds = sorted((r for r in mine if r.role == "variant"), key=lambda r: r.repeat)
        assert [r.repeat for r in rounds] == [1, 2, 3, 4, 5]
        for run in rounds:
            assert run.unit == "image"
            assert run.units > 0
            assert run.latency.n > 0
            assert run.model_bytes > 0
            assert run.macs_per_unit > 0
            assert run.conditions.cpu_s > 0
            assert run.conditions.load_1m is not None
    bytes_of = {r.step: r.model_bytes for r in runs if r.role == "variant"}
    assert bytes_of["static-int8"] < bytes_of["pruned"] < bytes_of["ort-fp32"]


@pytest.mark.slow
def test_the_parts_of_the_path_sum_to_its_total(small_demo):
    comparison = small_demo[0].comparison
    assert [s.step for s in comparison.steps] == STEPS
    assert {s.step: s.measured_on for s in comparison.steps}["static-int8"] == "pruned"
    parts = [s.attribution.energy_j.value for s in comparison.steps if s.attribution is not None]
    assert sum(parts) == pytest.approx(comparison.total.energy_j.value, rel=1e-12)
    quality = {s.step: s.metrics.quality["accuracy"] for s in comparison.steps}
    assert all(q.low < q.value < q.high for q in quality.values())
    assert all(g.observed.low is not None for s in comparison.steps for g in s.gates)


@pytest.mark.slow
def test_the_study_file_alone_gives_the_same_comparison(small_demo):
    from carbonlens.app.compare import compare

    result, out_dir, _ = small_demo
    study, vector = study_file.load(out_dir / "study.toml")
    assert vector == load_assumptions(example_assumptions())
    by_file = compare(out_dir / "study.toml", ledger=result.ledger)
    by_name = compare(study.name, ledger=result.ledger)
    assert by_file.steps == by_name.steps == result.comparison.steps


@pytest.mark.slow
def test_no_path_of_this_machine_is_in_the_outputs(small_demo):
    _, out_dir, _ = small_demo
    texts = [p for p in out_dir.rglob("*") if p.suffix in {".json", ".toml", ".html"}]
    assert len(texts) > 30
    for file in texts:
        content = file.read_text("utf-8")
        assert str(out_dir) not in content
        assert str(Path.home()) not in content or str(Path.home()) == "/"


@pytest.mark.slow
def test_an_interrupted_demo_reports_on_the_finished_rounds(tmp_path):
    # Four rounds of five arms and one arm of the fifth.
    result = run_demo(tmp_path, small=True, rounds=6, progress=Stop("Measuring", 21))
    assert (result.rounds, result.interrupted) == (4, True)
    assert (tmp_path / "report.pdf").is_file()
    assert "CL131" in {f.code for f in result.comparison.findings}
    assert {s.verdict for s in result.comparison.steps} == {"inconclusive"}
    assert tomllib.loads((tmp_path / "study.toml").read_text("utf-8"))["study"]["name"] == STUDY_NAME
    json.dumps(result.failed_steps)
