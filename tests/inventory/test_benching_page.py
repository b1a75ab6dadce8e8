"""The blocks of docs/benching.md are what the program reads."""

import re
from pathlib import Path

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


def test_the_result_is_one():
    recorder = Recorder()
    assert bench_result.record(bench_result.parse(BLOCKS["result.json"], "page"), recorder, where="page")


def test_every_kind_of_variant_stands_there():
    assert all(f"| `{kind}` |" in PAGE for kind in ("command", "callable", "onnx", "url"))
