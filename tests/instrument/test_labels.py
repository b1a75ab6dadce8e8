"""What a run is called: names that are no UTF-8 are kept harmless, tags named as a field are told of."""

import pytest

from carbonlens import stage, track
from carbonlens.cli import run_view
from carbonlens.instrument.command import CommandResult, run_command
from carbonlens.instrument.request import FIELDS
from carbonlens.instrument.window import Label, Place, measure
from carbonlens.inventory.import_map import NO_TAGS
from carbonlens.inventory.sources_file import Sources
from tests.metering.processes import runs

ODD = "caf\udce9"
KEPT = "caf\ufffd"


@pytest.fixture
def ledger(tmp_path):
    return tmp_path / "ledger"


def test_no_name_that_is_no_utf8_costs_the_run(ledger, tmp_path):
    (tmp_path / "model.bin").write_bytes(b"abc")
    with stage(
        ODD,
        study=ODD,
        unit=ODD,
        tags={ODD: ODD},
        on=[ODD],
        workload=ODD,
        job_id=ODD,
        inputs={ODD: tmp_path / "model.bin"},
        outputs={"gone": f"{tmp_path}/{ODD}"},
        trace=ODD,
        ledger=ledger,
    ) as made:
        made.enter_phase(ODD)
        made.record_quality(ODD, 0.5, 10)
        made.output(ODD, tmp_path / "model.bin")
    (run,) = runs(ledger)
    assert run == made.run
    assert run.status == "complete"
    assert (run.step, run.study, run.unit, run.workload, run.job_id) == (KEPT,) * 5
    assert (run.tags, run.on) == ({KEPT: KEPT}, (KEPT,))
    assert {(a.name, a.bytes) for a in run.artefacts} == {(KEPT, 3), ("gone", None)}


def measured_window(ledger):
    measure(
        Label(step="s", study="t", role="variant"),
        Place(ledger=str(ledger), sources=Sources()),
        lambda _recorder, _run: None,
    )


def tracked(ledger):
    with track("s", ledger=ledger):
        pass


@pytest.mark.parametrize(
    "work",
    [tracked, lambda ledger: run_command(["true"], ledger=ledger), measured_window],
    ids=["track", "run", "bench"],
)
def test_a_variable_that_is_no_utf8_does_not_cost_the_run(ledger, monkeypatch, work):
    monkeypatch.setenv("CARBONLENS_REPLAY", f"/nowhere/{ODD}")
    work(ledger)
    (run,) = runs(ledger)
    assert run.status == "complete"
    assert any(f"trace {KEPT}" in f.message for f in run.findings)


@pytest.mark.parametrize("name", ["SLURM_JOB_ID", "TORCHELASTIC_RUN_ID"])
@pytest.mark.parametrize(
    "work", [tracked, lambda ledger: run_command(["true"], ledger=ledger)], ids=["track", "run"]
)
def test_a_job_whose_id_is_no_utf8_does_not_cost_the_run(ledger, monkeypatch, name, work):
    monkeypatch.setenv(name, ODD)
    work(ledger)
    (run,) = runs(ledger)
    assert (run.status, run.job_id) == ("complete", KEPT)


@pytest.mark.parametrize("where", ["name", "folder"])
def test_a_trace_whose_place_is_no_utf8_does_not_cost_the_run_its_journal(
    ledger, monkeypatch, tmp_path, where
):
    folder = tmp_path / ODD
    folder.mkdir()
    if where == "folder":
        monkeypatch.chdir(folder)
    file = "t.jsonl" if where == "folder" else str(tmp_path / f"{ODD}.jsonl")
    with track("s", trace=file, ledger=ledger) as run:
        assert list((tmp_path / "state").rglob("*.jsonl")), "nothing is there to recover from"
        run.add_units(1)
    (run,) = runs(ledger)
    assert any("no UTF-8 was given; a path is wanted" in f.message for f in run.findings), run.findings


def test_the_same_names_are_fields_for_every_command():
    assert set(FIELDS) == set(NO_TAGS)


def by_track(ledger, tags):
    with track("s", tags=tags, ledger=ledger):
        pass


def by_stage(ledger, tags):
    with stage("s", tags=tags, ledger=ledger) as made:
        made.output("o", b"abc")


def by_run(ledger, tags):
    run_command(["true"], tags=tags, ledger=ledger)


@pytest.mark.parametrize("work", [by_track, by_stage, by_run])
def test_a_tag_that_is_named_as_a_field_is_kept_and_told_of(ledger, work):
    tags = {**dict.fromkeys(FIELDS, "3"), "unit": "sales", "team": "vision"}
    work(ledger, tags)
    (run,) = runs(ledger)
    assert run.tags == tags
    told = [f for f in run.findings if (f.code, f.subject) == ("CL110", "tags")]
    assert [f.message.split()[2] for f in told] == list(FIELDS)
    assert all(FIELDS[name] in f.mend for name, f in zip(FIELDS, told, strict=True))


def test_a_tag_like_others_is_nothing_to_tell_of(ledger):
    by_run(ledger, {"team": "vision", "unit": "sales", "steps": "3"})
    (run,) = runs(ledger)
    assert [f for f in run.findings if f.code == "CL110"] == []


def test_the_command_line_says_what_it_could_not_use(ledger, capsys):
    result = run_command(["true"], tags={"step": "3"}, ledger=ledger)
    assert isinstance(result, CommandResult)
    run_view.print_result(result, json=False)
    assert "the tag step does not set the run" in capsys.readouterr().err
