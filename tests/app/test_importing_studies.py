"""Runs of other tools in a study: told by options or a map, found again, and counted once."""

from decimal import Decimal
from unittest.mock import patch

import pytest

from carbonlens.app import importing_runs
from carbonlens.app.importing import import_files
from carbonlens.app.importing_placing import Placing, Said, placing_of
from carbonlens.domain.import_map import ImportMap, PlaceRule
from carbonlens.domain.in_study import InStudy
from carbonlens.errors import ConfigError, UsageError
from carbonlens.importers import codecarbon_blocks
from carbonlens.ledger.records import current
from carbonlens.ledger.store import Ledger
from tests.app.test_importing_alike import rows_of
from tests.importers.test_codecarbon_columns import many

SMI = ["timestamp, index, power.draw [W]"] + [
    f"2026/01/01 00:{s // 60:02}:{s % 60:02}.000, 0, {100 + s % 7}.00 W" for s in range(90)
]
TABLE = "run_id,study,step,energy_j,units,boundary,energy_grade\nr1,own,base,5,10,it,B\n"
WHOLE = InStudy(study="s", step="int8", role="variant", unit="image", units=Decimal(8))


@pytest.fixture
def take(tmp_path):
    """Import a text; return what became of it and the runs that count."""

    def run(text, name="emissions.csv", *, in_study=None, **placing):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
        told = {"tz": "UTC", "in_study": in_study or InStudy()} | placing
        result = import_files([tmp_path / name], ledger=tmp_path / "ledger", placing=Placing(**told))
        runs, _ = current(Ledger(tmp_path / "ledger").view().runs)
        return result, runs

    return run


def fields_of(run):
    return InStudy(**{name: getattr(run, name) for name in InStudy.__struct_fields__})


@pytest.mark.parametrize("text", [many(3), "\n".join(SMI)], ids=["runs", "trace"])
def test_what_is_told_stands_on_every_run(take, text):
    _, runs = take(text, in_study=WHOLE)
    assert {fields_of(run) for run in runs} == {WHOLE}


def test_what_a_source_states_itself_stays(take):
    _, (run,) = take(TABLE, in_study=WHOLE)
    assert (run.study, run.step, run.units) == ("own", "base", 10)
    assert run.unit == "image"


def test_a_map_tells_it_by_path_and_project_and_goes_first(take):
    rules = ImportMap(
        place=(
            PlaceRule(path="int8/*", study="m", step="int8", units=Decimal(3)),
            PlaceRule(project="alpha", step="other", unit="query"),
        )
    )
    _, runs = take(many(2), "int8/e.csv", map=rules, in_study=InStudy(study="s", role="variant"))
    told = InStudy(study="m", step="int8", role="variant", unit="query", units=Decimal(3))
    assert {fields_of(run) for run in runs} == {told}


@pytest.mark.slow
@pytest.mark.parametrize("text", [many(3), "\n".join(SMI)], ids=["runs", "trace"])
def test_what_is_told_later_takes_the_place_of_the_runs_and_stays(take, text):
    _, before = take(text)
    _, after = take(text, in_study=InStudy(study="a", step="x"))
    assert [(r.study, r.step) for r in after] == [("a", "x")] * len(before)
    _, moved = take(text, in_study=InStudy(study="b"))
    assert [(r.study, r.step) for r in moved] == [("b", "x")] * len(before)
    _, again = take(text, in_study=InStudy(study="a", units=Decimal(7)))
    assert [(r.study, r.step, r.units) for r in again] == [("a", "x", 7)] * len(before)
    result, same = take(text)
    assert same == again
    assert result.files[0].status == "duplicate"
    result, same = take(text, in_study=InStudy(study="a"))
    assert same == again
    assert "CL505" not in {f.code for f in Ledger(result.ledger).view().findings}


def test_a_copy_that_overlaps_counts_once_whatever_study_is_told(take):
    take(many(3), in_study=WHOLE)
    result, runs = take(many(5), "emissions.csv.bak")
    assert result.totals.runs == 2
    assert [r.study for r in runs] == ["s", "s", "s", None, None]
    result, runs = take(many(5) + "\n", "more.csv", in_study=InStudy(study="t"))
    assert result.totals.runs_replaced == 5
    assert [(r.run_id, r.study) for r in runs] == [(f"run-{i}", "t") for i in range(5)]


def test_runs_of_one_id_in_studies_that_sources_state_are_two(take):
    take(TABLE)
    _, runs = take(TABLE.replace("own", "else"), "other.csv")
    assert [r.study for r in runs] == ["own", "else"]


def test_a_correction_by_hand_stays_until_otherwise_is_told(take, tmp_path):
    from carbonlens.app.ledger_care import supersede

    take(many(1), in_study=WHOLE)
    supersede("run-0", {"units": "9"}, ledger=tmp_path / "ledger")
    _, (run,) = take(many(1), tags={"a": "b"})
    assert run.units == 9
    _, (run,) = take(many(1), in_study=InStudy(units=Decimal(8)))
    assert run.units == 8


@pytest.mark.parametrize(
    "told", [InStudy(study="s", step="int8", unit="image"), WHOLE], ids=["names", "units"]
)
def test_columns_give_the_batch_that_records_one_by_one_give(tmp_path, told):
    (tmp_path / "e.csv").write_text(many(40))
    made = []
    for worth in (0, 1 << 60):
        ledger = tmp_path / str(worth)
        with (
            patch.object(codecarbon_blocks, "WORTH_BYTES", worth),
            patch.object(importing_runs.time, "time_ns", lambda: 1_780_000_000_000_000_000),
        ):
            result = import_files(
                [tmp_path / "e.csv"], ledger=ledger, placing=Placing(tz="UTC", in_study=told)
            )
        made.append((result.totals, rows_of(ledger), Ledger(ledger).view().runs))
    assert made[0] == made[1]
    assert {fields_of(run) for run in made[0][2]} == {InStudy(**{"role": "other"} | told.told)}


@pytest.mark.parametrize("name", ["study", "step", "role", "units", "site", "zone"])
def test_a_tag_that_is_meant_for_a_field_is_refused(name, tmp_path):
    with pytest.raises(UsageError, match=f"{name} is a field of a run"):
        placing_of(Said(tags={name: "1"}))
    (tmp_path / "map.toml").write_text(f'[[place]]\ntags = {{ {name} = "1" }}\n')
    with pytest.raises(ConfigError, match=f"{name} is a field of a run"):
        placing_of(Said(map_file=tmp_path / "map.toml"))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("units = 0", "units = 0 is no number"),
        ("units = -3", "units = -3 is no number"),
        ("units = nan", "units = NaN is no number"),
        ('units = "many"', "units"),
        ('role = "x"', "role"),
        ('study = ""', "study is empty"),
    ],
)
def test_a_map_that_no_run_can_bear_is_refused(tmp_path, text, said):
    (tmp_path / "map.toml").write_text(f"[[place]]\n{text}\n")
    with pytest.raises(ConfigError, match=said):
        placing_of(Said(map_file=tmp_path / "map.toml"))


@pytest.mark.parametrize(("number", "units"), [("1000", "1000"), ("2.5", "2.5"), ('"1e3"', "1000")])
def test_a_map_counts_units_as_it_writes_them(tmp_path, number, units):
    (tmp_path / "map.toml").write_text(f"[[place]]\nunits = {number}\n")
    (rule,) = placing_of(Said(map_file=tmp_path / "map.toml")).map.place
    assert rule.units == Decimal(units)
