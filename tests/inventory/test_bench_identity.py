"""What says that a series is the same: what is measured counts, how it is judged does not."""

from decimal import Decimal

import msgspec
import pytest

from carbonlens.app.bench import quick
from carbonlens.inventory import bench_file
from carbonlens.inventory.bench_identity import changed, dumps, load, what_is_measured

TEXT = """
[bench]
name = "s"
unit = "image"
units = 1
{head}

[[variant]]
name = "base"
command = "python base.py --in data.csv --out out.json"

[[variant]]
name = "function"
callable = "work.inner:call"
evaluate = "python -m checks"
{more}

[[variant]]
name = "model"
onnx = "m.onnx"
inputs = "feeds:feed"
"""

FILES = {
    "base.py": "1",
    "work/__init__.py": "",
    "work/inner.py": "def call(): 1",
    "checks.py": "1",
    "feeds.py": "1",
    "m.onnx": "model",
    "m.onnx.data": "weights",
    "data.csv": "1,2",
}


@pytest.fixture
def identity(tmp_path):
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)

    def of(head="", more="", folder=tmp_path):
        folder.mkdir(exist_ok=True)
        spec = folder / "bench.toml"
        spec.write_text(TEXT.format(head=head, more=more))
        return what_is_measured(bench_file.load(spec))

    return of


@pytest.mark.parametrize(
    ("head", "more"),
    [
        ("margin = 0.02", ""),
        ("half_width = 0.5", ""),
        ("most_rounds = 11", ""),
        ("budget_s = 3", ""),
        ('title = "other"', ""),
        ("", "engineering_hours = 4"),
        ("", 'title = "other"'),
        ("", 'measured_on = "base"'),
    ],
)
def test_what_is_judged_may_change(identity, head, more):
    assert identity(head, more) == identity()


@pytest.mark.parametrize(
    ("head", "more"),
    [
        ("window_s = 2.0", ""),
        ("warm_up = 3", ""),
        ('workload = "other"', ""),
        ("", "units = 2"),
        ("", 'environment = { A = "1" }'),
        ("", 'prepare = "feeds:feed"'),
    ],
)
def test_what_is_measured_may_not(identity, head, more):
    assert identity(head, more) != identity()


@pytest.mark.parametrize("name", sorted(FILES.keys() - {"data.csv", "work/__init__.py"}))
def test_neither_may_the_content_of_what_is_named(identity, tmp_path, name):
    before = identity()
    (tmp_path / name).write_text("changed")
    assert identity() != before
    (tmp_path / name).write_text(FILES[name])
    assert identity() == before


def test_what_a_command_reads_or_writes_is_not_looked_at(identity, tmp_path):
    before = identity()
    (tmp_path / "data.csv").write_text("changed")
    (tmp_path / "out.json").write_text("{}")
    assert identity() == before


def test_the_same_names_in_another_folder_are_something_else(identity, tmp_path):
    assert identity(folder=tmp_path / "other") != identity()


def test_what_an_effort_makes_is_not_known_beforehand(identity, tmp_path):
    made = 'prepare = "python base.py"'
    (tmp_path / "m.onnx").unlink()
    before = identity(more=made)
    (tmp_path / "m.onnx").write_text("quantized")
    assert identity(more=made) == before
    (tmp_path / "base.py").write_text("changed")
    assert identity(more=made) != before


def test_two_command_lines_are_their_scripts_and_their_window(tmp_path):
    for name in ("a.py", "b.py"):
        (tmp_path / name).write_text("1")

    def of(units=1, unit="image"):
        return quick("python a.py", ["python b.py"], units=Decimal(units), unit=unit, folder=tmp_path)

    before = what_is_measured(of())
    assert what_is_measured(of(units=2)) != before
    assert what_is_measured(of(unit="call")) != before
    longer = msgspec.structs.replace(of(), pace=msgspec.structs.replace(of().pace, window_s=2.0))
    assert what_is_measured(longer) != before
    (tmp_path / "b.py").write_text("2")
    assert what_is_measured(of()) != before


NAMED = {
    "an option with =": ("python -S run.py --model=int8.onnx", "int8.onnx"),
    "an option of one letter": ("python run.py -mint8.onnx", "int8.onnx"),
    "a list": ("python run.py --models a.pt,b.pt", "b.pt"),
    "a name with its value": ("python run.py model:int8.onnx", "int8.onnx"),
    "a response file's mark": ("python run.py @int8.onnx", "int8.onnx"),
    "a module without a blank": ("python -mpkg", "pkg/__main__.py"),
    "a module behind other options": ("python -Bum pkg", "pkg/__main__.py"),
    "a script without an ending": ("python train", "train"),
    "one behind options with values": ("python3.11 -W ignore -X dev train data", "train"),
    "one behind env": ("env A=1 python train", "train"),
    "one of a shell": ("bash train", "train"),
    "one of a launcher": ("torchrun --nproc_per_node 2 train", "train"),
    "a folder": ("python pkg", "pkg/__main__.py"),
    "a line of a shell": ("sh -c 'cd . && python train --x'", "train"),
    "a line of a shell, a model": ("sh -c 'python -c 1 int8.onnx'", "int8.onnx"),
    "a line, ended by a semicolon": ('sh -c "cd .; python train; true"', "train"),
    "a line in brackets": ('bash -c "(python train)"', "train"),
    "a line in brackets, no blank": ('bash -c "(./infer)"', "infer"),
    "a line, redirected": ('bash -lc "./infer >out 2>&1"', "infer"),
    "a line of two lines": ("sh -c 'cd .\npython train'", "train"),
    "a line in a line": ("""sh -c "timeout 9 bash -ec 'python train'" """, "train"),
    "a line for env": ("env -S 'python train'", "train"),
    "a quoted name in a line": ("sh -c 'python \"train\"'", "train"),
    "a module in a line": ('sh -c "python -m pkg"', "pkg/__main__.py"),
    "a quote that is not closed": ("""sh -c "echo it's; python train" """, "train"),
    "a program": ("./infer", "infer"),
    "a program behind a launcher": ("taskset -c 0 ./infer", "infer"),
    "a program behind env": ("env A=1 ./infer", "infer"),
    "a program for a shell": ("sh -c ./infer", "infer"),
}


@pytest.mark.parametrize("how", NAMED)
def test_a_script_or_model_counts_however_a_command_names_it(tmp_path, how):
    line, file = NAMED[how]
    for name in (
        "run.py",
        "int8.onnx",
        "a.pt",
        "b.pt",
        "train",
        "data",
        "infer",
        "pkg/__init__.py",
        "pkg/__main__.py",
    ):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("before")
    (tmp_path / "infer").chmod(0o755)

    def now():
        return what_is_measured(quick("true", [line], units=Decimal(1), folder=tmp_path))

    before = now()
    (tmp_path / "data").write_text("what a script reads is not looked at")
    assert now() == before
    (tmp_path / file).write_text("after")
    assert changed(before, now()) == (str(tmp_path / file),)


DATA_ALONE = [
    'bash -ec "cp in out"',
    'bash -o pipefail -c "cp in out"',
    'bash -lc "cat < in > out"',
    'bash -lc "./missing > in"',
    'sh -exc "cat in"',
    "python -Ic pass in",
    "python -uc pass in",
    "python -c 'print(1); (python in)'",
    "sh -c 'cat ./in'",
]


def test_what_no_interpreter_runs_is_data(tmp_path):
    for name in ("in", "module", "work.py"):
        (tmp_path / name).write_text("before")
    lines = ["cp in out", "python -m work module", "python -c 1 in", *DATA_ALONE]
    bench = quick("true", lines, units=Decimal(1), folder=tmp_path)
    assert what_is_measured(bench).files.keys() == {str(tmp_path / "work.py")}


@pytest.mark.parametrize(
    "words",
    [
        *(["x" * 5000 + ".py"], ["python", "a\0b.py"], ["python", "-m", ".."], ["/"]),
        *(
            ["sh", "-c", line]
            for line in ("", " ", "(", "'(", "'('\"'('\"", "it's (", "\u00a0(\x0b", "a\0/b c", "\\")
        ),
    ],
)
def test_odd_words_name_no_file(tmp_path, words):
    bench = quick("true", ["false"], units=Decimal(1), folder=tmp_path)
    odd = msgspec.structs.replace(bench.variants[1], command=tuple(words))
    given = msgspec.structs.replace(bench, variants=(bench.variants[0], odd))
    assert len(what_is_measured(given).spec) == 64


def test_a_changed_file_is_named_and_one_that_a_run_made_is_not(identity, tmp_path):
    (tmp_path / "m.onnx").unlink()
    before = identity()
    (tmp_path / "m.onnx").write_text("made")
    assert changed(before, identity()) == ()
    (tmp_path / "base.py").write_text("changed")
    (tmp_path / "checks.py").unlink()
    assert changed(before, identity()) == (str(tmp_path / "base.py"), str(tmp_path / "checks.py"))


def test_it_is_kept_as_it_is(identity, tmp_path):
    file = tmp_path / "kept.toml"
    assert load(file) is None
    file.write_text(dumps(identity()))
    assert load(file) == identity()
