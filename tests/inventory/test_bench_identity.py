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


@pytest.mark.parametrize(
    "words", [["x" * 5000 + ".py"], ["python", "a\0b.py"], ["python", "-m", ".."], ["/"]]
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
