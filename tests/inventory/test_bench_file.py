"""The bench file: what it takes, and what it refuses with a mend."""

from decimal import Decimal

import pytest

from carbonlens.errors import ConfigError, InputFileError
from carbonlens.inventory import bench_file, study_file

GOOD = """
[bench]
name = "mlp"
unit = "inference"
units = 100
volume_units = 1e6

[[variant]]
name = "base"
command = "python 'my base.py' --fast"
environment = { OMP_NUM_THREADS = "1" }

[[variant]]
name = "int8"
title = "Static int8"
onnx = "int8.onnx"
units = 1
prepare = "tools.quantize:run"
evaluate = ["python", "evaluate.py"]
engineering_hours = 4.0

[[gate]]
name = "accuracy"
metric = "accuracy"
kind = "max_loss"
limit = 0.01
"""


@pytest.fixture
def load(tmp_path):
    def load_text(text):
        file = tmp_path / "bench.toml"
        file.write_text(text)
        return bench_file.load(file)

    return load_text


def test_everything_stated_is_there(load, tmp_path):
    bench = load(GOOD)
    base, int8 = bench.variants
    assert base.command == ("python", "my base.py", "--fast")
    assert (base.units, int8.units) == (Decimal(100), Decimal(1))
    assert base.environment == {"OMP_NUM_THREADS": "1"}
    assert (int8.kind, int8.prepare, int8.evaluate) == (
        "onnx",
        "tools.quantize:run",
        ("python", "evaluate.py"),
    )
    assert bench.study.baseline == "base"
    assert bench.study.steps[0].engineering_hours == 4.0
    assert bench.study.is_sequential
    assert bench.study.gates[0].metric == "accuracy"
    assert bench.folder == str(tmp_path)
    assert (bench.pace.least, bench.pace.most) == (10, 40)


def test_its_study_is_kept_as_a_study_file(load, tmp_path):
    bench = load(GOOD)
    (tmp_path / "study.toml").write_text(study_file.dumps(bench.study, bench.vector))
    assert study_file.load(tmp_path / "study.toml")[0] == bench.study


def test_a_gate_means_what_it_means_in_a_study_file(load):
    assert load(GOOD.replace('metric = "accuracy"', 'metric = "size"')).study.gates[0].metric == "model_bytes"


REFUSED = {
    "one variant": (
        '[bench]\nname="a"\nunit="u"\nunits=1\n[[variant]]\nname="x"\ncommand="true"',
        "at least",
    ),
    "no variant": ('[bench]\nname="a"\nunit="u"', "baseline"),
    "nothing to run": (GOOD.replace('onnx = "int8.onnx"\n', ""), "state one of"),
    "two kinds": (GOOD.replace('onnx = "int8.onnx"', 'onnx = "int8.onnx"\nurl = "http://x"'), "state one of"),
    "open quote": (GOOD.replace("'my base.py'", "'my base.py"), "quote"),
    "empty command": (GOOD.replace("python 'my base.py' --fast", " "), "empty"),
    "empty prepare": (GOOD.replace('"tools.quantize:run"', "[]"), "empty"),
    "empty evaluate": (GOOD.replace('["python", "evaluate.py"]', "[]"), "empty"),
    "empty word of a command": (GOOD.replace('["python", "evaluate.py"]', '[""]'), "empty"),
    "empty text for evaluate": (GOOD.replace('["python", "evaluate.py"]', '" "'), "empty"),
    "empty list of a command": (GOOD.replace("\"python 'my base.py' --fast\"", "[]"), "empty"),
    "empty serve": (GOOD.replace('onnx = "int8.onnx"', 'url = "http://localhost"\nserve = []'), "empty"),
    "no units": (GOOD.replace("units = 100\n", "").replace("units = 1\n", ""), "units"),
    "zero units": (GOOD.replace("units = 100", "units = 0"), "units"),
    "more units than a record holds": (GOOD.replace("units = 100", "units = 1000000000000000000"), "units"),
    "unknown key": (GOOD.replace("title", "titel"), "titel"),
    "few rounds by name": (GOOD.replace("units = 100", "units = 100\nleast_rounds = 6"), "least_rounds is 6"),
    "least above most": (
        GOOD.replace("units = 100", "units = 100\nleast_rounds = 50\nmost_rounds = 20"),
        "least_rounds is 50, and most_rounds 20",
    ),
    "no width": (GOOD.replace("units = 100", "units = 100\nhalf_width = 0"), "half_width is 0.0"),
    "few rounds": (GOOD.replace("units = 100", "units = 100\nleast_rounds = 6"), "at least 10"),
    "most below least": (GOOD.replace("units = 100", "units = 100\nmost_rounds = 9"), "allow 10 at least"),
    "no window": (GOOD.replace("units = 100", "units = 100\nwindow_s = 0.0"), "window_s"),
    "endless budget": (GOOD.replace("units = 100", "units = 100\nbudget_s = inf"), "budget_s"),
    "negative warm-up": (GOOD.replace("units = 100", "units = 100\nwarm_up = -1"), "warm_up"),
    "a name twice": (GOOD.replace('name = "int8"', 'name = "base"'), "twice"),
    "no name": (GOOD.replace('name = "int8"', 'name = " "'), "empty step name"),
    "function of a command": (
        GOOD.replace("environment =", 'evaluate = "a.b:c"\nenvironment ='),
        "state a command",
    ),
    "field of another kind": (
        GOOD.replace("environment =", 'inputs = "a:b"\nenvironment ='),
        "belongs to onnx",
    ),
    "url without server": (GOOD.replace('onnx = "int8.onnx"', 'url = "http://localhost"'), "serve"),
    "measured on nothing": (GOOD.replace("title =", 'measured_on = "x"\ntitle ='), "measured on"),
    "no TOML": ("[bench", "TOML"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_fault_is_named_with_its_mend(load, name):
    text, said = REFUSED[name]
    with pytest.raises(ConfigError) as refused:
        load(text)
    assert said in str(refused.value)
    assert refused.value.mend


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(InputFileError):
        bench_file.load(tmp_path / "nothing.toml")
