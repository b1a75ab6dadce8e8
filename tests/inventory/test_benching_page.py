"""The blocks of docs/benching.md are what the program reads."""

import re
from pathlib import Path

import pytest

from carbonlens.errors import ConfigError
from carbonlens.instrument import bench_result
from carbonlens.inventory import bench_file
from carbonlens.metering.recorder import Recorder

PAGE = (Path(__file__).parents[2] / "docs" / "benching.md").read_text("utf-8")
BLOCKS = dict(re.findall(r"<!-- example: ([\w.]+) -->\n```\w*\n(.*?)```", PAGE, re.DOTALL))


def test_the_bench_file_is_one_and_states_what_the_program_takes_for_granted(tmp_path):
    file = tmp_path / "bench.toml"
    file.write_text(BLOCKS["bench.toml"], "utf-8")
    bench = bench_file.load(file)
    plain = "\n".join(
        line
        for line in BLOCKS["bench.toml"].splitlines()
        if not re.match(r"(half_width|least_rounds|most_rounds|window_s|warm_up) ", line)
    )
    file.write_text(plain, "utf-8")
    assert bench_file.load(file).pace == bench.pace


def test_the_file_that_is_said_to_run_is_there_and_so_is_what_it_names():
    name = re.search(r"carbonlens bench (docs/\S+\.toml)`", PAGE)[1]
    file = Path(__file__).parents[2] / name
    bench = bench_file.load(file)
    assert all((file.parent / word).is_file() for v in bench.variants for word in v.command[1:])
    assert all(v.command[0] == "python" for v in bench.variants)


@pytest.mark.parametrize(
    ("section", "told"),
    [
        ("[assumptions.electricity]\nsource = 'x'", "[electricity] lacks the key 'id'"),
        ("[assumptions.machine]\nid = 'x'\nprice = 1", "[machine] "),
        ("[assumptions.facility]\npeu = 1.2", "[facility] has an unknown key 'peu'"),
        ("[assumptions.facility]\npue = 'x'", "facility.pue: expected"),
        ("[assumptions.grid.location]\nid = 'x'", "[grid.location] lacks the key 'zone'"),
    ],
)
def test_a_wrong_key_of_the_assumptions_is_told_in_words(tmp_path, section, told):
    text = BLOCKS["bench.toml"].partition("[assumptions")[0]
    file = tmp_path / "bench.toml"
    file.write_text(f"{text}\n{section}\n", "utf-8")
    with pytest.raises(ConfigError) as refused:
        bench_file.load(file)
    assert told in str(refused.value)
    assert "Object" not in str(refused.value)
    assert "$" not in str(refused.value)


def test_the_result_is_one():
    recorder = Recorder()
    assert bench_result.record(bench_result.parse(BLOCKS["result.json"], "page"), recorder, where="page")


def test_every_kind_of_variant_stands_there():
    assert all(f"| `{kind}` |" in PAGE for kind in ("command", "callable", "onnx", "url"))
