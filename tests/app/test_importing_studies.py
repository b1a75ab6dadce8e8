"""Runs of other tools in a study: told by options or a map, found again, and counted once."""

from decimal import Decimal
from types import SimpleNamespace
from unittest.mock import patch

import msgspec
import pytest

from carbonlens.app import importing_runs
from carbonlens.app.importing import import_files
from carbonlens.app.importing_names import Names
from carbonlens.app.importing_placing import Placing, Said, placing_of
from carbonlens.domain.import_map import ImportMap, PlaceRule
from carbonlens.domain.in_study import InStudy, of_unstated
from carbonlens.domain.run import Run
from carbonlens.errors import ConfigError, UsageError
from carbonlens.importers import codecarbon_blocks
from carbonlens.importers.contract import RunRecord
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
    assert run.unit is None, "it is the unit of another count"


STATING = (
    "run_id,study,step,role,energy_j,unit,units,boundary,energy_grade\nr1,own,base,variant,5,token,10,it,B\n"
)


@pytest.mark.parametrize("way", ["options", "map"])
@pytest.mark.parametrize("field", InStudy.__struct_fields__)
def test_what_is_told_of_a_source_that_states_otherwise_is_left_aside_and_said(take, way, field):
    told = WHOLE if field != "role" else InStudy(role="training")
    told = InStudy(**{field: getattr(told, field)})
    given = {"in_study": told} if way == "options" else {"map": ImportMap(place=(PlaceRule(**told.told),))}
    result, (run,) = take(STATING, "t.csv", **given)
    assert fields_of(run) == InStudy(
        study="own", step="base", role="variant", unit="token", units=Decimal(10)
    )
    (said,) = (f for f in result.files[0].findings if f.code == "CL294")
    named = f"--{field}" if way == "options" else f"{field} of --map"
    assert (said.severity, said.message.partition(":")[0]) == ("info", named)
    assert result.files[0].status == "imported"


def test_what_stands_on_all_runs_is_not_said_to_be_left_aside(take):
    result, _ = take(STATING, "t.csv", in_study=InStudy(study="own", unit="token", units=Decimal(10)))
    assert "CL294" not in {f.code for f in result.files[0].findings}
    result, _ = take(many(3), in_study=WHOLE, site="hall")
    assert "CL294" not in {f.code for f in result.files[0].findings}
    sited = STATING.replace("role", "role,site", 1).replace("variant", "variant,here", 1).replace("r1", "r2")
    result, (*_, run) = take(sited, "s.csv", site="hall", in_study=InStudy(step="z", units=Decimal(10)))
    assert run.site == "here"
    (said,) = (f for f in result.files[0].findings if f.code == "CL294")
    assert said.message.startswith("--step, --site: left aside for 1 run,")


@pytest.mark.parametrize(
    ("states", "told", "taken"),
    [
        ({"units": 10}, {"unit": "image"}, {}),
        ({"units": 10}, {"unit": "image", "units": 8}, {}),
        ({"units": 10}, {"unit": "image", "units": 10}, {"unit": "image", "units": 10}),
        ({"unit": "token"}, {"unit": "image", "units": 8}, {}),
        ({"unit": "token"}, {"units": 8}, {}),
        ({"unit": "token", "units": 8}, {"units": 8}, {"units": 8}),
        ({"unit": "token", "units": 8}, {"unit": "token"}, {"unit": "token"}),
        ({"unit": "token"}, {"unit": "token", "units": 8}, {"unit": "token", "units": 8}),
        ({}, {"unit": "image"}, {"unit": "image"}),
    ],
)
def test_a_unit_is_never_put_to_the_count_of_another_one(states, told, taken):
    run = Run(run_id="r", status="complete", **states)
    found = of_unstated(run, InStudy(**told))
    assert found == taken
    assert of_unstated(msgspec.structs.replace(run, **found), InStudy(**told)) == found


@pytest.mark.parametrize(("states", "told"), [("unit", "units"), ("units", "unit")])
def test_one_of_unit_and_count_is_put_to_the_other_of_a_source_only_if_both_are_told(take, states, told):
    cells = {"unit": "", "units": "", states: str(getattr(WHOLE, states))}
    table = f"run_id,study,step,energy_j,{','.join(cells)}\nr1,own,base,5,{','.join(cells.values())}\n"
    result, (run,) = take(table, "t.csv", in_study=InStudy(**{told: getattr(WHOLE, told)}))
    assert getattr(run, told) is None
    (said,) = (f for f in result.files[0].findings if f.code == "CL294")
    assert said.message.startswith(f"--{told}: left aside for 1 run,")
    assert said.message.endswith("or states one of unit and units alone")
    result, (run,) = take(table, "t.csv", in_study=InStudy(unit=WHOLE.unit, units=WHOLE.units))
    assert (run.unit, run.units) == (WHOLE.unit, WHOLE.units)
    assert "CL294" not in {f.code for f in result.files[0].findings}


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
        *(
            (f'{name} = "{text}"', f"{name} is empty")
            for name in ("study", "step", "unit")
            for text in ("", " ")
        ),
        *((f'{name} = "  "', f"{name} is empty") for name in ("team", "site", "zone", "host")),
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


@pytest.mark.parametrize("name", ["study", "unit"])
def test_a_table_of_a_map_names_what_it_names(tmp_path, name):
    (tmp_path / "map.toml").write_text(f'[[table]]\ncolumns = {{ energy_wh = "E" }}\n{name} = "\\t"\n')
    with pytest.raises(ConfigError, match=f"table 1: {name} is empty"):
        placing_of(Said(map_file=tmp_path / "map.toml"))


def test_a_business_unit_is_a_tag_and_a_place_may_keep_another_from_naming_a_team(tmp_path):
    assert placing_of(Said(tags={"unit": "r&d"})).tags == {"unit": "r&d"}
    (tmp_path / "map.toml").write_text('[[place]]\nteam = ""\ntags = { unit = "r&d" }\n')
    (rule,) = placing_of(Said(map_file=tmp_path / "map.toml")).map.place
    assert (rule.team, rule.tags) == ("", {"unit": "r&d"})


class Counted(str):
    """A study that counts how often it is looked for."""

    __slots__ = ()
    looks = 0

    def __hash__(self):
        Counted.looks += 1
        return super().__hash__()


def test_a_run_is_looked_for_where_its_id_stands_and_not_in_every_study():
    held = [Run(run_id=f"r{i}", status="complete", study=Counted(f"s{i}")) for i in range(200)]
    before = []

    def parted(records, alike, seen):
        before.append(seen)
        return list(records), list(alike)

    keeper = importing_runs.RunKeeper(SimpleNamespace(view=lambda: SimpleNamespace(runs=held)))
    new = [RunRecord(run=Run(run_id=f"n{i}", status="complete"), line=i + 1) for i in range(50)]
    with patch.object(importing_runs, "parted", parted):
        Counted.looks = 0
        kept = keeper.keep(new, "f", lambda record: (record.run, []))
        assert len(kept.fresh) == 50
        assert before[0].known({"r7", "n3", *(f"x{i}" for i in range(50))}) == {"r7", "n3"}
    assert Counted.looks <= len(held)


def test_ids_are_found_in_all_their_studies():
    names = Names()
    names.add(None, ["a", "b"])
    names.add("s", ["b", "c"])
    names.add("t", ["b"])
    assert [names.studies(name) for name in "abcd"] == [(None,), (None, "s", "t"), ("s",), ()]
    assert names.among({"a", "c", "d"}) == {"a", "c"}
