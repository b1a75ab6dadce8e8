"""Every block of docs/comparing.md is what the program reads and prints."""

import re
import shlex
import tomllib
from pathlib import Path

import msgspec
import pytest

from carbonlens.compare.noise import CLOCK_GAP, LOAD_RATIO, STEAL_SHARE, THROTTLED_SHARE
from carbonlens.domain.bench import Pace
from carbonlens.domain.study import SHORT_METRICS
from carbonlens.inventory import assumptions, study_file

PAGE = (Path(__file__).parents[2] / "docs" / "comparing.md").read_text("utf-8")
BLOCKS = dict(re.findall(r"<!-- example: ([\w.]+) -->\n```\w*\n(.*?)```", PAGE, re.DOTALL))


def test_no_block_is_left_out():
    assert len(BLOCKS) == PAGE.count("```") // 2
    assert set(BLOCKS) == {
        "runs.csv",
        "compare",
        "study.toml",
        "study",
        "check",
        "place.toml",
        "carbon",
        "assumptions.toml",
        "plan",
    }


def run_block(shell, name):
    """Run the commands of a block; what the last one prints must stand below it."""
    lines = BLOCKS[name].splitlines()
    commands = [line.removeprefix("$ carbonlens ") for line in lines if line.startswith("$ ")]
    done = [shell(*shlex.split(command)) for command in commands][-1]
    assert done.stdout.splitlines() == [line for line in lines if not line.startswith("$ ")]


@pytest.mark.slow
def test_the_commands_print_what_stands_below_them(shell):
    (shell.folder / "runs.csv").write_text(BLOCKS["runs.csv"], "utf-8")
    (shell.folder / "place.toml").write_text(BLOCKS["place.toml"], "utf-8")
    (shell.folder / "study.toml").write_text(BLOCKS["study.toml"], "utf-8")
    for name in ("compare", "study", "check", "carbon", "plan"):
        run_block(shell, name)


def test_the_page_states_every_key_of_an_assumptions_file(tmp_path):
    file = tmp_path / "assumptions.toml"
    file.write_text(BLOCKS["assumptions.toml"], "utf-8")
    vector = assumptions.load(file)
    parts = (vector.location, vector.electricity, vector.machine, vector.embodied, vector.host_overhead)
    assert None not in parts
    stated = tomllib.loads(file.read_text("utf-8"))
    kinds = {f.name: f.type for f in msgspec.inspect.type_info(assumptions._Assumptions).fields}
    assert set(stated) == set(kinds)
    tables = {
        "electricity": assumptions._Electricity,
        "machine": assumptions._Machine,
        "embodied": assumptions._Embodied,
        "facility": assumptions._Facility,
    }
    for name, kind in tables.items():
        assert set(stated[name]) == {f.name for f in msgspec.structs.fields(kind)}
    assert set(stated["grid"]["location"]) == {f.name for f in msgspec.structs.fields(assumptions._Grid)}
    text = PAGE.partition("`[place]` takes also")[2].partition("\n## ")[0]
    others = {f.name for f in msgspec.structs.fields(assumptions._Place)} - {"name"}
    assert all(f"`{name}`" in text for name in others)


def test_the_study_file_is_one(tmp_path):
    file = tmp_path / "study.toml"
    file.write_text(BLOCKS["study.toml"], "utf-8")
    study, _ = study_file.load(file)
    assert [(g.metric, g.kind) for g in study.gates] == [("match", "min_retention")]
    assert study.per_day == pytest.approx(2e9 / 365.2425)


def test_the_numbers_in_the_text_are_those_of_the_program():
    assert {STEAL_SHARE, THROTTLED_SHARE, CLOCK_GAP} == {0.10, 0.15}
    assert LOAD_RATIO == 2.0
    assert Pace().least == 10
    assert [name for name in SHORT_METRICS if name != "latency" and f"`{name}`" not in PAGE] == []
